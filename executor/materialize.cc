#include "executor/materialize.h"

#include "executor/child.h"
#include "shm/process_table.h"

namespace sluice {

Materialize::Materialize(const MaterializePlan& plan, ExecutionState& state,
                         std::unique_ptr<Node> child)
    : Node(plan, state),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      rows_(plan.output, state.context->work_mem_bytes, state.context->temp_directory) {}

void Materialize::ReadAll() {
  Batch batch;
  for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) {
    CheckForInterrupts();
    rows_.Append(batch);
  }
  complete_ = true;
  Statistics().memory_bytes_max = std::max(Statistics().memory_bytes_max, rows_.memory_bytes());
  Statistics().spilled_bytes += rows_.spilled_bytes();
}

void Materialize::NextBatch(Batch* batch) {
  if (!complete_) ReadAll();
  rows_.Next(batch);
}

// The child is read once: what it gave is all there is.
void Materialize::Rescan() {
  if (complete_) rows_.Rewind();
}

}  // namespace sluice
