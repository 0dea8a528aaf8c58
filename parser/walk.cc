#include "parser/walk.h"

#include <algorithm>

#include "catalog/builtin.h"

namespace sluice {
namespace {

bool EqualQueries(const Query& a, const Query& b);

template <typename T, typename Eq>
bool EqualSpans(std::span<const T> a, std::span<const T> b, Eq eq) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), eq);
}

bool EqualExprSpans(std::span<const Expr* const> a, std::span<const Expr* const> b) {
  return EqualSpans(a, b, [](const Expr* x, const Expr* y) { return EqualExprs(x, y); });
}

bool EqualSortKeys(std::span<const SortKey> a, std::span<const SortKey> b) {
  return EqualSpans(a, b, [](const SortKey& x, const SortKey& y) {
    return x.target == y.target && x.less_operator == y.less_operator &&
           x.descending == y.descending && x.nulls_first == y.nulls_first &&
           x.collation == y.collation && EqualExprs(x.expr, y.expr);
  });
}

bool EqualJoinTrees(const JoinTree* a, const JoinTree* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->is_leaf != b->is_leaf) return false;
  if (a->is_leaf) return a->rel == b->rel;
  return a->type == b->type && EqualExprs(a->on, b->on) && EqualJoinTrees(a->left, b->left) &&
         EqualJoinTrees(a->right, b->right);
}

bool EqualSetOps(const SetOpTree* a, const SetOpTree* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if ((a->leaf == nullptr) != (b->leaf == nullptr)) return false;
  if (a->leaf != nullptr) return EqualQueries(*a->leaf, *b->leaf);
  return a->kind == b->kind && a->all == b->all && EqualSetOps(a->left, b->left) &&
         EqualSetOps(a->right, b->right);
}

bool EqualRels(const QueryRel& a, const QueryRel& b) {
  if (a.kind != b.kind || a.table != b.table || a.only != b.only || a.alias != b.alias ||
      a.virtual_name != b.virtual_name || a.ordinality != b.ordinality || a.cte != b.cte ||
      a.cte_levels_up != b.cte_levels_up || !EqualExprs(a.function, b.function) ||
      (a.subquery == nullptr) != (b.subquery == nullptr))
    return false;
  if (a.subquery != nullptr && !EqualQueries(*a.subquery, *b.subquery)) return false;
  return EqualSpans(a.values, b.values, EqualExprSpans);
}

bool EqualQueries(const Query& a, const Query& b) {
  auto equal_ints = [](std::span<const int> x, std::span<const int> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  return EqualSpans(a.rels, b.rels, EqualRels) && EqualJoinTrees(a.from, b.from) &&
         EqualExprs(a.where, b.where) &&
         EqualSpans(a.targets, b.targets,
                    [](const Target& x, const Target& y) {
                      return x.name == y.name && x.junk == y.junk && EqualExprs(x.expr, y.expr);
                    }) &&
         a.has_aggregates == b.has_aggregates && equal_ints(a.group_by, b.group_by) &&
         EqualSpans(a.grouping_sets, b.grouping_sets, equal_ints) &&
         EqualExprs(a.having, b.having) && a.distinct == b.distinct &&
         equal_ints(a.distinct_on, b.distinct_on) && EqualSortKeys(a.order_by, b.order_by) &&
         EqualExprs(a.limit, b.limit) && EqualExprs(a.offset, b.offset) &&
         a.with_ties == b.with_ties && EqualSetOps(a.set_op, b.set_op) &&
         EqualSpans(a.windows, b.windows,
                    [&](const WindowClause& x, const WindowClause& y) {
                      return equal_ints(x.partition_by, y.partition_by) &&
                             EqualSortKeys(x.order_by, y.order_by) &&
                             x.frame_options == y.frame_options &&
                             EqualExprs(x.start_offset, y.start_offset) &&
                             EqualExprs(x.end_offset, y.end_offset);
                    }) &&
         EqualSpans(a.ctes, b.ctes, [](const Cte& x, const Cte& y) {
           return x.name == y.name && x.recursive == y.recursive &&
                  EqualQueries(*x.query, *y.query);
         });
}

int Leftmost(int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return std::min(a, b);
}

bool ContainsColumnIn(const Query& query, int levels_up);

bool ContainsColumnAt(const Expr& expr, int levels_up) {
  if (expr.kind == ExprKind::kColumn && expr.levels_up == levels_up) return true;
  if (expr.subquery != nullptr && ContainsColumnIn(*expr.subquery, levels_up + 1)) return true;
  bool found = false;
  ForEachChild(expr,
               [&](const Expr& child) { found = found || ContainsColumnAt(child, levels_up); });
  return found;
}

bool ContainsColumnIn(const Query& query, int levels_up) {
  bool found = false;
  ForEachQueryExpr(query, [&](const Expr& e) { found = found || ContainsColumnAt(e, levels_up); });
  ForEachSubquery(query,
                  [&](const Query& q) { found = found || ContainsColumnIn(q, levels_up + 1); });
  return found;
}

}  // namespace

bool EqualExprs(const Expr* a, const Expr* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->type != b->type || a->typmod != b->typmod ||
      a->is_null != b->is_null || a->value != b->value || a->rel != b->rel ||
      a->column != b->column || a->levels_up != b->levels_up || a->param != b->param ||
      a->function != b->function || a->oper != b->oper || a->variadic != b->variadic ||
      a->star != b->star || a->distinct != b->distinct ||
      a->aggregate_levels_up != b->aggregate_levels_up || a->sublink != b->sublink)
    return false;
  if (a->kind == ExprKind::kCollate && a->collation != b->collation) return false;
  if ((a->subquery == nullptr) != (b->subquery == nullptr)) return false;
  if (!EqualExprs(a->filter, b->filter) || !EqualSortKeys(a->order_by, b->order_by)) return false;
  if (a->subquery != nullptr && !EqualQueries(*a->subquery, *b->subquery)) return false;
  return EqualExprSpans(a->args, b->args);
}

int ExprLocation(const Expr& expr) {
  int location = expr.location;
  switch (expr.kind) {
    case ExprKind::kCall:
    case ExprKind::kWindow:
    case ExprKind::kAnyOf:
    case ExprKind::kAllOf:
    case ExprKind::kIsDistinct:
    case ExprKind::kIsNotDistinct:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot:
    case ExprKind::kRelabel:
    case ExprKind::kCoerceViaIo:
    case ExprKind::kArrayCoerce:
    case ExprKind::kCollate:
    case ExprKind::kIsNull:
    case ExprKind::kIsNotNull:
    case ExprKind::kIsTrue:
    case ExprKind::kIsNotTrue:
    case ExprKind::kIsFalse:
    case ExprKind::kIsNotFalse:
    case ExprKind::kIsUnknown:
    case ExprKind::kIsNotUnknown:
    case ExprKind::kSubquery:
      // Written before or after their operands: f(x) before, x + y and x::t after the first.
      for (const Expr* arg : expr.args) {
        location = Leftmost(location, ExprLocation(*arg));
        if (expr.kind == ExprKind::kAnd || expr.kind == ExprKind::kOr) break;
      }
      break;
    default:
      break;
  }
  return location;
}

bool ContainsVolatile(const Expr& expr) {
  if (expr.function != kInvalidOid) {
    const ProcInfo* proc = FindProc(expr.function);
    if (proc != nullptr && proc->volatility == 'v') return true;
  }
  if (expr.subquery != nullptr && ContainsVolatile(*expr.subquery)) return true;
  bool found = false;
  ForEachChild(expr, [&](const Expr& child) { found = found || ContainsVolatile(child); });
  return found;
}

bool ContainsVolatile(const Query& query) {
  bool found = false;
  ForEachQueryExpr(query, [&](const Expr& e) { found = found || ContainsVolatile(e); });
  ForEachSubquery(query, [&](const Query& q) { found = found || ContainsVolatile(q); });
  return found;
}

bool ContainsColumn(const Expr& expr, int levels_up) {
  return ContainsColumnAt(expr, levels_up);
}
bool ContainsColumn(const Query& query, int levels_up) {
  return ContainsColumnIn(query, levels_up);
}

}  // namespace sluice
