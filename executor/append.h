// Append: the rows of all children, in the order in which they become ready. See the picture in
// DESIGN.md, section 6.
//
// Foreign scans are produced by the io worker into the Append's one queue. Other children:
//   - in a Parallel Append one that is not partial comes through a Scatter: the participant that
//   claims it
//     runs it, and publishes its batches in the same queue whenever it has nothing else to do;
//   - a partial child, and any child where there are no other participants, is run in place.
// It sleeps only when no slice is ready and no child can be run.
#pragma once

#include <optional>

#include "executor/batch_chunk.h"
#include "executor/node.h"
#include "executor/plan_streams.h"
#include "executor/slice_reader.h"

namespace sluice {

class Append : public Node {
 public:
  Append(const AppendPlan& plan, ExecutionState& state);
  ~Append() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  // A Scatter child that this participant has claimed.
  struct Produced;
  enum class Step { kBatch, kAgain, kNothing, kDone };

  void Sleep();
  Step TryNext(Batch* batch);
  Step StartSlice(const Slice& slice);
  Step RunScatters(Batch* batch);
  Step RunScatter(Produced* produced, Batch* batch);
  Step RunInPlace(Batch* batch);
  bool ClaimScatter();
  void Keep(size_t child);
  void NextWhole(Batch* batch);
  bool ClaimWhole();
  void Count(size_t child, size_t rows);
  bool OthersTakePart() const;

  const AppendPlan& append_;
  AppendShared* shared_;
  ReadyQueue* queue_ = nullptr;  // null: claim_whole
  std::optional<ChunkConsumer> consumer_;
  SliceReader reader_;
  std::vector<std::unique_ptr<Produced>> produced_;
  std::vector<std::unique_ptr<Node>> kept_;  // by child: ended, to be rescanned
  std::vector<uint16_t> in_place_;           // children to run here that have not ended
  std::unique_ptr<Node> running_;            // the first of them
  bool started_ = false;

  // claim_whole: the child in work.
  uint32_t next_child_ = 0;  // where no one else takes part
  int32_t whole_child_ = -1;
};

}  // namespace sluice
