#include "executor/view_scan.h"

#include "common/assert.h"

namespace sluice {

ViewScan::ViewScan(const ViewScanPlan& plan, ExecutionState& state)
    : Node(plan, state), scan_(plan) {}

void ViewScan::NextBatch(Batch* batch) {
  if (rows_ == nullptr) {
    SLUICE_ASSERT(state_.context->scan_view != nullptr);  // the planner keeps it out of workers
    rows_ = state_.context->scan_view(scan_);
  }
  rows_->Next(batch);
}

void ViewScan::Rescan() {
  if (rows_ != nullptr) rows_->Rescan();
}

}  // namespace sluice
