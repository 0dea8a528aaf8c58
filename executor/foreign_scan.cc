#include "executor/foreign_scan.h"

#include "common/assert.h"
#include "executor/remote_end.h"

namespace sluice {
namespace {

const ScanShared* SharedOf(const Plan& plan, const ExecutionState& state) {
  auto* shared = static_cast<ScanShared*>(state.shared_states[plan.id]);
  SLUICE_ASSERT(shared != nullptr);
  return shared;
}

}  // namespace

ForeignScan::ForeignScan(const ForeignScanPlan& plan, ExecutionState& state)
    : Node(plan, state),
      scan_(plan),
      shared_(SharedOf(plan, state)),
      reader_(plan.output, *state.context->settings),
      consumer_(shared_->Mine(state).queue, state.participant) {}

void ForeignScan::NextBatch(Batch* batch) {
  started_ = true;
  while (!reader_.Next(batch)) {
    reader_.Release();
    Slice slice;
    if (!consumer_.ClaimOrWait(&slice, WaitEvent::kAppendReady)) {
      batch->rows = 0;
      return;
    }
    if (slice.kind == SliceKind::kEnd) {
      CheckStreamEnd(shared_->group->streams[slice.stream]);
    } else {
      reader_.Start(slice, &scan_);
    }
  }
}

void ForeignScan::Rescan() {
  // The planner puts a Materialize above what is read twice.
  if (started_) Throw(sqlstate::kInternalError, "a foreign scan cannot be read twice");
}

}  // namespace sluice
