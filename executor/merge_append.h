// MergeAppend: sorted children merged into one sorted result. Remote children have a queue each,
// whose order is the shard's; when the node goes away early, their statements are cancelled.
#pragma once

#include "executor/merger.h"
#include "executor/node.h"

namespace sluice {

class MergeAppend : public Node {
 public:
  MergeAppend(const MergeAppendPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override { merger_->Next(batch); }

 private:
  void MakeMerger();

  const MergeAppendPlan& merge_;
  std::vector<std::unique_ptr<Node>> children_;
  std::unique_ptr<Merger> merger_;
};

}  // namespace sluice
