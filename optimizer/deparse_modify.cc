// INSERT, UPDATE and DELETE as SQL text.
#include "catalog/catalog.h"
#include "catalog/quote.h"
#include "common/assert.h"
#include "common/error.h"
#include "optimizer/deparse.h"
#include "optimizer/expr_util.h"

namespace sluice {
namespace {

bool Contains(const JoinTree& tree, int rel) {
  if (tree.is_leaf) return tree.rel == rel;
  return Contains(*tree.left, rel) || Contains(*tree.right, rel);
}

bool IsSemi(const JoinTree& tree) {
  return tree.type == JoinType::kSemi || tree.type == JoinType::kAnti;
}

}  // namespace

std::string Deparser::AnyQuery(const Query& query) {
  return query.command == QueryCommand::kSelect ? Select(query) : Modify(query);
}

bool Deparser::CanChange(const JoinTree& tree, int target) {
  if (tree.is_leaf) return true;
  if (!Contains(tree, target)) return true;
  if (Contains(*tree.right, target) && tree.type != JoinType::kInner) return false;
  if (tree.type != JoinType::kInner && !IsSemi(tree)) return false;
  return CanChange(*tree.left, target) && CanChange(*tree.right, target);
}

// What stands around the target becomes items of FROM (or USING) and conditions.
void Deparser::TakeOutTarget(const JoinTree& tree, int target, std::vector<std::string>* items,
                             std::vector<std::string>* conditions) {
  if (!Contains(tree, target)) {
    items->push_back(From(tree, conditions));
    return;
  }
  if (tree.is_leaf) return;
  if (IsSemi(tree)) {
    std::vector<std::string> inner;
    std::string text = "SELECT 1 FROM " + From(*tree.right, &inner);
    TakeOutTarget(*tree.left, target, items, conditions);
    if (tree.on != nullptr) inner.push_back(Expression(*tree.on));
    for (size_t i = 0; i < inner.size(); i++) text += (i == 0 ? " WHERE " : " AND ") + inner[i];
    conditions->push_back((tree.type == JoinType::kAnti ? "(NOT EXISTS (" : "(EXISTS (") + text +
                          "))");
    return;
  }
  SLUICE_ASSERT(tree.type == JoinType::kInner);
  TakeOutTarget(*tree.left, target, items, conditions);
  TakeOutTarget(*tree.right, target, items, conditions);
  if (tree.on != nullptr) conditions->push_back(Expression(*tree.on));
}

std::string Deparser::SetList(const QueryRel& target, const Relation& leaf,
                              std::span<const Assignment> assignments) {
  std::string text;
  for (const Assignment& assignment : assignments)
    text += (text.empty() ? "" : ", ") +
            QuoteIdentifier(RemoteColumn(leaf, target, assignment.column)) + " = " +
            Expression(*assignment.value);
  return text;
}

std::string Deparser::Returning(std::span<const Target> returning) {
  std::string text;
  for (const Target& target : returning)
    text += (text.empty() ? " RETURNING " : ", ") + Expression(*target.expr);
  return text;
}

std::string Deparser::ChangeStatement(const Change& change) {
  Scope& scope = scopes_.back();
  const QueryRel& target = scope.rels[static_cast<size_t>(change.target)];
  const auto& leaves = LeavesOf(scope, change.target);
  SLUICE_ASSERT(leaves.size() == 1);
  std::string table = QuoteQualified(leaves[0]->remote_schema(), leaves[0]->remote_table()) + " " +
                      scope.aliases[static_cast<size_t>(change.target)];
  bool is_update = change.command == QueryCommand::kUpdate;
  std::string text =
      is_update ? "UPDATE " + table + " SET " + SetList(target, *leaves[0], change.assignments)
                : "DELETE FROM " + table;
  std::vector<std::string> items, conditions;
  if (change.from != nullptr) TakeOutTarget(*change.from, change.target, &items, &conditions);
  for (const Expr* qual : change.quals) conditions.push_back(Expression(*qual));
  for (size_t i = 0; i < items.size(); i++)
    text += (i > 0 ? ", " : is_update ? " FROM " : " USING ") + items[i];
  for (size_t i = 0; i < conditions.size(); i++)
    text += (i == 0 ? " WHERE " : " AND ") + conditions[i];
  return text + Returning(change.returning);
}

std::string Deparser::InsertHead(int target, std::span<const int> columns) {
  Scope& scope = scopes_.back();
  const QueryRel& rel = scope.rels[static_cast<size_t>(target)];
  const Relation& leaf = *LeavesOf(scope, target)[0];
  std::string text = "INSERT INTO " + QuoteQualified(leaf.remote_schema(), leaf.remote_table()) +
                     " AS " + scope.aliases[static_cast<size_t>(target)];
  if (columns.empty()) return text;
  for (size_t i = 0; i < columns.size(); i++)
    text += (i == 0 ? " (" : ", ") + QuoteIdentifier(RemoteColumn(leaf, rel, columns[i]));
  return text + ")";
}

std::string Deparser::InsertTail(const Modification& modification,
                                 std::span<const Target> returning) {
  if (modification.on_conflict == nullptr) return Returning(returning);
  const OnConflict& conflict = *modification.on_conflict;
  Scope& scope = scopes_.back();
  const QueryRel& target = scope.rels[static_cast<size_t>(modification.target)];
  const Relation& leaf = *LeavesOf(scope, modification.target)[0];
  std::string text = " ON CONFLICT";
  bool qualify = scope.qualify;
  scope.qualify = false;  // an arbiter names the index's columns
  for (size_t i = 0; i < conflict.arbiter.size(); i++) {
    const Expr& expr = *conflict.arbiter[i];
    std::string item = Expression(expr);
    if (expr.kind != ExprKind::kColumn) item = "(" + item + ")";
    text += (i == 0 ? " (" : ", ") + item;
  }
  if (!conflict.arbiter.empty()) text += ")";
  if (conflict.arbiter_where != nullptr) text += " WHERE " + Expression(*conflict.arbiter_where);
  scope.qualify = qualify;
  if (!conflict.constraint.empty())
    text += " ON CONSTRAINT " + QuoteIdentifier(conflict.constraint);
  if (!conflict.do_update) return text + " DO NOTHING" + Returning(returning);
  text += " DO UPDATE SET " + SetList(target, leaf, conflict.assignments);
  if (conflict.where != nullptr) text += " WHERE " + Expression(*conflict.where);
  return text + Returning(returning);
}

std::string Deparser::Modify(const Query& query) {
  OpenScope(query.rels, true, &query);
  std::string text = With(query);
  const Modification& modification = *query.modification;
  if (query.command == QueryCommand::kInsert) {
    text += InsertHead(modification.target, modification.columns);
    text += modification.columns.empty() ? " DEFAULT VALUES" : " " + AnyQuery(*modification.source);
    text += InsertTail(modification, query.targets);
  } else {
    Change change{query.command, modification.target, query.from, {}, modification.assignments,
                  query.targets};
    if (query.where != nullptr) change.quals.push_back(query.where);
    text += ChangeStatement(change);
  }
  CloseScope();
  return text;
}

}  // namespace sluice
