// Chain: an Append's inputs one after the other, where no streams and no other participants are
// (live views run parts of plans over their own store).
#pragma once

#include "executor/node.h"

namespace sluice {

class Chain : public Node {
 public:
  Chain(const AppendPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  std::vector<std::unique_ptr<Node>> inputs_;
  size_t at_ = 0;
};

}  // namespace sluice
