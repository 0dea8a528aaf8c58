#include "executor/filter.h"

#include "executor/child.h"
#include "executor/view_scan.h"
#include "shm/process_table.h"

namespace sluice {

Filter::Filter(const FilterPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      condition_(CompiledExpression::Compile(*plan.condition, state)),
      output_(plan.output) {
  if (auto* scan = dynamic_cast<ViewScan*>(child_.get())) scan->Restrict(plan.condition);
}

void Filter::NextBatch(Batch* batch) {
  for (;;) {
    CheckForInterrupts();
    Batch input;
    child_->Next(&input);
    batch->rows = 0;
    if (input.rows == 0) return;
    arena_.Reset();
    size_t count = SelectRows(*condition_, input, nullptr, input.rows, &arena_, selected_);
    if (count == 0) continue;
    if (count == input.rows) {
      *batch = input;
      return;
    }
    for (size_t i = 0; i < output_.size(); i++) {
      GatherColumn(input.columns[i], selected_, count, &output_[i]);
    }
    output_.Show(count, batch);
    return;
  }
}

void Filter::Rescan() {
  child_->Rescan();
}

}  // namespace sluice
