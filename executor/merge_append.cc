#include "executor/merge_append.h"

namespace sluice {

MergeAppend::MergeAppend(const MergeAppendPlan& plan, ExecutionState& state)
    : Node(plan, state), merge_(plan) {
  for (const Plan* child : plan.children) children_.push_back(MakeNode(*child, state));
  MakeMerger();
}

void MergeAppend::MakeMerger() {
  merger_ = std::make_unique<Merger>(
      merge_.output, merge_.keys, children_.size(),
      [this](size_t input, Batch* batch) { children_[input]->Next(batch); });
}

void MergeAppend::Rescan() {
  for (auto& child : children_) child->Rescan();
  MakeMerger();
}

}  // namespace sluice
