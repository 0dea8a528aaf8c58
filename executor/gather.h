// Gather: runs its child in workers and here, and passes on the rows of all, in no order.
#pragma once

#include <optional>

#include "executor/fragment.h"
#include "executor/node.h"
#include "executor/result_stash.h"
#include "executor/slice_reader.h"

namespace sluice {

class Gather : public Node {
 public:
  Gather(const GatherPlan& plan, ExecutionState& state);
  ~Gather() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  void Start();
  bool TakeSlice(const Slice& slice, Batch* batch);
  bool NextOwn(Batch* batch);
  bool StashResults();
  static bool StashBeforeWait(void* self) { return static_cast<Gather*>(self)->StashResults(); }

  const GatherPlan& gather_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Node> own_;  // null: this process's share is done
  std::optional<ChunkConsumer> consumer_;
  SliceReader reader_, stash_reader_;
  ResultStash stash_;
};

}  // namespace sluice
