// Statements and FROM as SQL text.
#include "optimizer/deparse.h"

#include "catalog/catalog.h"
#include "catalog/quote.h"
#include "common/assert.h"
#include "common/error.h"
#include "optimizer/expr_util.h"

namespace sluice {

std::string Deparser::WholeQuery(const Query& query) {
  return AnyQuery(query);
}

void Deparser::OpenScope(std::span<const QueryRel> rels, bool qualify, const Query* query) {
  Scope scope{rels, {}, std::vector<std::vector<const Relation*>>(rels.size()), qualify, {}, query};
  for (size_t i = 0; i < rels.size(); i++)
    scope.aliases.push_back(rels[i].kind == RelKind::kExcluded ? "excluded"
                                                               : fmt::format("r{}", ++rel_count_));
  scopes_.push_back(std::move(scope));
}

void Deparser::CloseScope() {
  scopes_.pop_back();
}

const std::vector<const Relation*>& Deparser::LeavesOf(Scope& scope, int rel) {
  auto& leaves = scope.leaves[static_cast<size_t>(rel)];
  if (leaves.empty()) leaves = find_leaves_(scope.rels[static_cast<size_t>(rel)]);
  SLUICE_ASSERT(!leaves.empty());
  return leaves;
}

std::string Deparser::RemoteColumn(const Relation& leaf, const QueryRel& rel, int column) const {
  // A partition's columns may stand in another order than its parent's: names tell.
  const std::string& name = rel.table->columns[static_cast<size_t>(column)].name;
  int at = leaf.FindColumn(name);
  if (at < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of \"{}\" does not exist", name, leaf.name);
  return leaf.columns[static_cast<size_t>(at)].remote_name();
}

std::string Deparser::TableRel(Scope& scope, int rel) {
  const QueryRel& table = scope.rels[static_cast<size_t>(rel)];
  const auto& leaves = LeavesOf(scope, rel);
  const std::string& alias = scope.aliases[static_cast<size_t>(rel)];
  auto remote = [](const Relation& leaf) {
    return QuoteQualified(leaf.remote_schema(), leaf.remote_table());
  };
  if (leaves.size() == 1) return remote(*leaves[0]) + (scope.qualify ? " " + alias : "");
  std::string text = "(";
  for (size_t i = 0; i < leaves.size(); i++) {
    text += i == 0 ? "SELECT " : " UNION ALL SELECT ";
    for (size_t c = 0; c < table.columns.size(); c++) {
      text += (c == 0 ? "" : ", ") +
              QuoteIdentifier(RemoteColumn(*leaves[i], table, static_cast<int>(c))) +
              fmt::format(" AS c{}", c + 1);
    }
    text += " FROM " + remote(*leaves[i]);
  }
  return text + ") " + alias;
}

std::string Deparser::ColumnAliases(const QueryRel& rel) const {
  std::string text = "(";
  for (size_t i = 0; i < rel.columns.size(); i++)
    text += fmt::format("{}c{}", i == 0 ? "" : ", ", i + 1);
  return text + ")";
}

std::string Deparser::Rel(int index) {
  Scope& scope = scopes_.back();
  const QueryRel& rel = scope.rels[static_cast<size_t>(index)];
  std::string alias = scope.aliases[static_cast<size_t>(index)];
  const char* lateral = rel.lateral ? "LATERAL " : "";
  switch (rel.kind) {
    case RelKind::kTable:
      return TableRel(scope, index);
    case RelKind::kSubquery:
      return lateral + ("(" + Select(*rel.subquery) + ") ") + alias + ColumnAliases(rel);
    case RelKind::kValues: {
      std::string text = "(VALUES ";
      for (size_t i = 0; i < rel.values.size(); i++)
        text += (i == 0 ? "(" : ", (") + Arguments(rel.values[i]) + ")";
      return text + ") " + alias + ColumnAliases(rel);
    }
    case RelKind::kFunction:
      return lateral + Expression(*rel.function) + (rel.ordinality ? " WITH ORDINALITY " : " ") +
             alias + ColumnAliases(rel);
    case RelKind::kCte: {
      const Scope& owner = scopes_[scopes_.size() - 1 - static_cast<size_t>(rel.cte_levels_up)];
      return owner.cte_names[static_cast<size_t>(rel.cte)] + " " + alias + ColumnAliases(rel);
    }
    case RelKind::kVirtual:
    case RelKind::kExcluded:
      break;
  }
  Refuse("\"{}\" cannot be sent to a shard", rel.alias);
}

std::string Deparser::From(const JoinTree& tree, std::vector<std::string>* conditions) {
  if (tree.is_leaf) return Rel(tree.rel);
  std::string left = From(*tree.left, conditions);
  if (tree.type == JoinType::kSemi || tree.type == JoinType::kAnti) {
    std::vector<std::string> inner;
    std::string text = "SELECT 1 FROM " + From(*tree.right, &inner);
    if (tree.on != nullptr) inner.push_back(Expression(*tree.on));
    for (size_t i = 0; i < inner.size(); i++) text += (i == 0 ? " WHERE " : " AND ") + inner[i];
    conditions->push_back((tree.type == JoinType::kAnti ? "(NOT EXISTS (" : "(EXISTS (") + text +
                          "))");
    return left;
  }
  std::vector<std::string> right_conditions;
  std::string right = From(*tree.right, &right_conditions);
  if (!tree.right->is_leaf) right = "(" + right + ")";
  if (!right_conditions.empty()) {
    if (tree.type != JoinType::kInner)
      Refuse("a semi join below an outer join cannot be sent to a shard");
    conditions->insert(conditions->end(), right_conditions.begin(), right_conditions.end());
  }
  static constexpr const char* kWords[] = {" INNER JOIN ", " LEFT JOIN ", " RIGHT JOIN ",
                                           " FULL JOIN "};
  std::string on = tree.on == nullptr ? "true" : Expression(*tree.on);
  return left + kWords[static_cast<int>(tree.type)] + right + " ON (" + on + ")";
}

std::string Deparser::With(const Query& query) {
  std::string text;
  bool recursive = false;
  for (const Cte& cte : query.ctes) recursive |= cte.recursive;
  for (size_t i = 0; i < query.ctes.size(); i++)
    scopes_.back().cte_names.push_back(fmt::format("w{}", ++cte_count_));
  for (size_t i = 0; i < query.ctes.size(); i++) {
    const Cte& cte = query.ctes[i];
    text += i == 0 ? (recursive ? "WITH RECURSIVE " : "WITH ") : ", ";
    text += scopes_.back().cte_names[i];
    text += cte.materialized ? " AS MATERIALIZED (" : " AS (";
    text += AnyQuery(*cte.query) + ")";
  }
  return text.empty() ? text : text + " ";
}

std::string Deparser::SetOp(const SetOpTree& tree) {
  if (tree.leaf != nullptr) return "(" + Select(*tree.leaf) + ")";
  static constexpr const char* kWords[] = {" UNION ", " INTERSECT ", " EXCEPT "};
  std::string left = SetOp(*tree.left);
  return "(" + left + kWords[static_cast<int>(tree.kind)] + (tree.all ? "ALL " : "") +
         SetOp(*tree.right) + ")";
}

// ORDER BY, LIMIT, OFFSET. position[target]: its place in the select list, from 1; 0 for junk.
std::string Deparser::Tail(const Query& query, const std::vector<int>& position) {
  std::string text;
  for (size_t i = 0; i < query.order_by.size(); i++) {
    const SortKey& key = query.order_by[i];
    std::string item;
    if (key.target >= 0 && position[static_cast<size_t>(key.target)] > 0)
      item = fmt::format("{}", position[static_cast<size_t>(key.target)]);
    else
      item = Unpositional(key.target >= 0 ? *query.targets[static_cast<size_t>(key.target)].expr
                                          : *key.expr);
    text += (i == 0 ? " ORDER BY " : ", ") + SortItem(key, item);
  }
  if (query.offset != nullptr) text += " OFFSET " + Expression(*query.offset);
  if (query.limit != nullptr && query.with_ties)
    text += " FETCH FIRST (" + Expression(*query.limit) + ") ROWS WITH TIES";
  else if (query.limit != nullptr)
    text += " LIMIT " + Expression(*query.limit);
  return text;
}

std::string Deparser::Select(const Query& query) {
  OpenScope(query.rels, true, &query);
  std::string text = With(query);
  std::vector<int> position(query.targets.size(), 0);
  int count = 0;
  for (size_t i = 0; i < position.size(); i++)
    if (!query.targets[i].junk) position[i] = ++count;
  if (query.set_op != nullptr) {
    text += SetOp(*query.set_op) + Tail(query, position);
    CloseScope();
    return text;
  }
  auto item = [&](int target) {
    size_t i = static_cast<size_t>(target);
    return position[i] > 0 ? fmt::format("{}", position[i]) : Unpositional(*query.targets[i].expr);
  };
  text += "SELECT ";
  if (query.distinct && query.distinct_on.empty()) text += "DISTINCT ";
  for (size_t i = 0; i < query.distinct_on.size(); i++)
    text += (i == 0 ? "DISTINCT ON (" : ", ") + item(query.distinct_on[i]);
  if (!query.distinct_on.empty()) text += ") ";
  bool first = true;
  for (const Target& target : query.targets) {
    if (target.junk) continue;
    text += (first ? "" : ", ") + Expression(*target.expr);
    first = false;
  }
  std::vector<std::string> conditions;
  if (query.from != nullptr) text += " FROM " + From(*query.from, &conditions);
  if (query.where != nullptr) conditions.push_back(Expression(*query.where));
  for (size_t i = 0; i < conditions.size(); i++)
    text += (i == 0 ? " WHERE " : " AND ") + conditions[i];
  if (query.grouping_sets.empty()) {
    for (size_t i = 0; i < query.group_by.size(); i++)
      text += (i == 0 ? " GROUP BY " : ", ") + item(query.group_by[i]);
  } else {
    // Spelled out: GROUPING's arguments must be the very expressions.
    auto spelled = [&](int member) {
      int target = query.group_by[static_cast<size_t>(member)];
      return Unpositional(*query.targets[static_cast<size_t>(target)].expr);
    };
    for (size_t s = 0; s < query.grouping_sets.size(); s++) {
      text += s == 0 ? " GROUP BY GROUPING SETS ((" : ", (";
      for (size_t i = 0; i < query.grouping_sets[s].size(); i++)
        text += (i == 0 ? "" : ", ") + spelled(query.grouping_sets[s][i]);
      text += ")";
    }
    text += ")";
  }
  bool any_aggregate = HasAggregate(query.having);
  for (const Target& target : query.targets) any_aggregate |= HasAggregate(target.expr);
  if (query.has_aggregates && query.group_by.empty() && query.grouping_sets.empty() &&
      !any_aggregate)
    text += " GROUP BY ()";
  if (query.having != nullptr) text += " HAVING " + Expression(*query.having);
  text += Tail(query, position);
  for (const RowMark& mark : query.row_marks) text += RowLock(mark, true);
  CloseScope();
  return text;
}

std::string Deparser::RowLock(const RowMark& mark, bool of_alias) const {
  std::string text = fmt::format(" {}", NameOf(mark.strength));
  if (of_alias) text += " OF " + Alias(mark.rel);
  if (mark.wait_policy == LockWaitPolicy::kSkipLocked) text += " SKIP LOCKED";
  if (mark.wait_policy == LockWaitPolicy::kNoWait) text += " NOWAIT";
  return text;
}

}  // namespace sluice
