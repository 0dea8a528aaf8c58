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
  std::vector<RowSource::Condition> conditions;
  for (const Expr* conjunct : conjuncts) {
    const Expr *column, *value;
    ComparedAs as;
    if (!IsColumnCompared(conjunct, &column, &value, &as)) continue;
    auto comparison = as == ComparedAs::kEqual     ? RowSource::Comparison::kEqual
                      : as == ComparedAs::kAtLeast ? RowSource::Comparison::kAtLeast
                                                   : RowSource::Comparison::kAtMost;
    try {
      Column found = EvaluateConstant(*value, state_, &arena_);
      if (!found.IsNull(0))
        conditions.push_back(
            {scan_.columns[static_cast<size_t>(column->column)], comparison, found});
    } catch (const QueryError&) {  // it is the Filter's to raise, if there is a row
    }
  }
  if (!conditions.empty()) rows_->Restrict(conditions);
}

void ViewScan::NextBatch(Batch* batch) {
  if (rows_ == nullptr) Open();
  rows_->Next(batch);
}

void ViewScan::Rescan() {
  if (rows_ != nullptr) rows_->Rescan();
}

}  // namespace sluice
