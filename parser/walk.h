// Looking over analysed expressions and queries.
#pragma once

#include "parser/query.h"

namespace sluice {

// Calls fn(const Expr&) for each direct child: arguments, FILTER, ORDER BY of aggregates. Not for
// what is inside a sublink's query.
template <typename Fn>
void ForEachChild(const Expr& expr, Fn&& fn) {
  for (const Expr* arg : expr.args) fn(*arg);
  if (expr.filter != nullptr) fn(*expr.filter);
  for (const SortKey& key : expr.order_by)
    if (key.expr != nullptr) fn(*key.expr);
}

template <typename Fn>
void ForEachJoinCondition(const JoinTree* tree, Fn&& fn) {
  if (tree == nullptr || tree->is_leaf) return;
  ForEachJoinCondition(tree->left, fn);
  ForEachJoinCondition(tree->right, fn);
  if (tree->on != nullptr) fn(*tree->on);
}

template <typename Fn>
void ForEachSetOpLeaf(const SetOpTree* tree, Fn&& fn) {
  if (tree == nullptr) return;
  if (tree->leaf != nullptr) return fn(*tree->leaf);
  ForEachSetOpLeaf(tree->left, fn);
  ForEachSetOpLeaf(tree->right, fn);
}

// All but those of the source.
template <typename Fn>
void ForEachModificationExpr(const Modification& modification, Fn&& fn) {
  for (const Assignment& assignment : modification.assignments) fn(*assignment.value);
  if (modification.on_conflict == nullptr) return;
  const OnConflict& conflict = *modification.on_conflict;
  for (const Expr* expr : conflict.arbiter) fn(*expr);
  if (conflict.arbiter_where != nullptr) fn(*conflict.arbiter_where);
  for (const Assignment& assignment : conflict.assignments) fn(*assignment.value);
  if (conflict.where != nullptr) fn(*conflict.where);
}

// Every expression that stands directly in `query`, not in its subqueries.
template <typename Fn>
void ForEachQueryExpr(const Query& query, Fn&& fn) {
  for (const Target& target : query.targets) fn(*target.expr);
  for (const QueryRel& rel : query.rels) {
    for (auto row : rel.values)
      for (const Expr* value : row) fn(*value);
    if (rel.function != nullptr) fn(*rel.function);
  }
  ForEachJoinCondition(query.from, fn);
  if (query.where != nullptr) fn(*query.where);
  if (query.modification != nullptr) ForEachModificationExpr(*query.modification, fn);
  if (query.having != nullptr) fn(*query.having);
  if (query.limit != nullptr) fn(*query.limit);
  if (query.offset != nullptr) fn(*query.offset);
  for (const WindowClause& window : query.windows) {
    if (window.start_offset != nullptr) fn(*window.start_offset);
    if (window.end_offset != nullptr) fn(*window.end_offset);
  }
}

// The queries directly below `query`, those of sublinks aside: in FROM, WITH, of set operations,
// and an INSERT's source.
template <typename Fn>
void ForEachSubquery(const Query& query, Fn&& fn) {
  for (const QueryRel& rel : query.rels)
    if (rel.subquery != nullptr) fn(*rel.subquery);
  for (const Cte& cte : query.ctes) fn(*cte.query);
  if (query.modification != nullptr && query.modification->source != nullptr)
    fn(*query.modification->source);
  ForEachSetOpLeaf(query.set_op, fn);
}

// The same expression, wherever it is written (locations do not count).
bool EqualExprs(const Expr* a, const Expr* b);

// Where the expression's text starts: the leftmost location in it, as Postgres's exprLocation().
int ExprLocation(const Expr& expr);

bool ContainsVolatile(const Expr& expr);
bool ContainsVolatile(const Query& query);
// Whether there is a column of the query `levels_up` above the expression's own.
bool ContainsColumn(const Expr& expr, int levels_up = 0);
// The same for a query: 1 is the query directly around it.
bool ContainsColumn(const Query& query, int levels_up);

}  // namespace sluice
