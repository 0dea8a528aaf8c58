#include "executor/view_scan.h"

#include "common/assert.h"
#include "common/error.h"
#include "executor/expression.h"
#include "optimizer/expr_util.h"

namespace sluice {

ViewScan::ViewScan(const ViewScanPlan& plan, ExecutionState& state)
    : Node(plan, state), scan_(plan) {}

void ViewScan::Open() {
  SLUICE_ASSERT(state_.context->scan_view != nullptr);  // the planner keeps it out of workers
  rows_ = state_.context->scan_view(scan_);
  std::vector<const Expr*> conjuncts;
  SplitConjuncts(condition_, &conjuncts);
  std::vector<RowSource::Equality> equalities;
  for (const Expr* conjunct : conjuncts) {
    const Expr *column, *value;
    if (!IsEquality(conjunct, &column, &value)) continue;
    if (column->kind != ExprKind::kColumn) std::swap(column, value);
    bool known = !AnyExpr(value, [](const Expr& e, int) {
      return e.kind == ExprKind::kColumn || e.kind == ExprKind::kSubquery;
    });
    if (column->kind != ExprKind::kColumn || !known || HasVolatile(value)) continue;
    try {
      Column found = EvaluateConstant(*value, state_, &arena_);
      if (!found.IsNull(0))
        equalities.push_back({scan_.columns[static_cast<size_t>(column->column)], found});
    } catch (const QueryError&) {  // it is the Filter's to raise, if there is a row
    }
  }
  if (!equalities.empty()) rows_->Restrict(equalities);
}

void ViewScan::NextBatch(Batch* batch) {
  if (rows_ == nullptr) Open();
  rows_->Next(batch);
}

void ViewScan::Rescan() {
  if (rows_ != nullptr) rows_->Rescan();
}

}  // namespace sluice
