// Moving a query one or more levels down, under queries put around it.
#include "parser/shift_levels.h"

#include <unordered_set>

#include "parser/walk.h"

namespace sluice {
namespace {

class Shifter {
 public:
  explicit Shifter(int delta) : delta_(delta) {}

  // `level`: how many levels up from here the first reference is that leaves the moved query.
  void Shift(Query& query, int level) {
    ForEachQueryExpr(query, [&](const Expr& e) { Shift(const_cast<Expr&>(e), level); });
    for (const QueryRel& rel : query.rels)
      if (rel.kind == RelKind::kCte && rel.cte_levels_up >= level)
        const_cast<QueryRel&>(rel).cte_levels_up += delta_;
    ForEachSubquery(query, [&](const Query& q) { Shift(const_cast<Query&>(q), level + 1); });
  }

 private:
  void Shift(Expr& expr, int level) {
    if (!seen_.insert(&expr).second) return;  // parts may be shared
    if (expr.kind == ExprKind::kColumn && expr.levels_up >= level) expr.levels_up += delta_;
    if (expr.kind == ExprKind::kAggregate && expr.aggregate_levels_up >= level)
      expr.aggregate_levels_up += delta_;
    ForEachChild(expr, [&](const Expr& child) { Shift(const_cast<Expr&>(child), level); });
    if (expr.subquery != nullptr) Shift(const_cast<Query&>(*expr.subquery), level + 1);
  }

  int delta_;
  std::unordered_set<const Expr*> seen_;
};

}  // namespace

void ShiftLevels(Query& query, int delta) {
  Shifter(delta).Shift(query, 1);
}

}  // namespace sluice
