#include "executor/chain.h"

namespace sluice {

Chain::Chain(const AppendPlan& plan, ExecutionState& state) : Node(plan, state) {
  for (const Plan* child : plan.children) inputs_.push_back(MakeNode(*child, state));
}

void Chain::NextBatch(Batch* batch) {
  for (batch->rows = 0; at_ < inputs_.size(); at_++) {
    inputs_[at_]->Next(batch);
    if (batch->rows > 0) return;
  }
}

void Chain::Rescan() {
  for (auto& input : inputs_) input->Rescan();
  at_ = 0;
}

}  // namespace sluice
