// GatherMerge: runs its sorted child in workers and here, and merges the rows of all.
#pragma once

#include "executor/fragment.h"
#include "executor/merger.h"
#include "executor/node.h"
#include "executor/result_stash.h"
#include "executor/slice_reader.h"

namespace sluice {

class GatherMerge : public Node {
 public:
  GatherMerge(const GatherMergePlan& plan, ExecutionState& state);
  ~GatherMerge() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  // One worker's sorted rows.
  struct Source;

  void Start();
  void Refill(size_t input, Batch* batch);
  void RefillFromWorker(Source* source, Batch* batch);
  bool StashResults();
  static bool StashBeforeWait(void* self) {
    return static_cast<GatherMerge*>(self)->StashResults();
  }

  const GatherMergePlan& gather_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Node> own_;
  std::vector<std::unique_ptr<Source>> sources_;
  SliceReader stash_reader_;
  std::unique_ptr<Merger> merger_;
};

}  // namespace sluice
