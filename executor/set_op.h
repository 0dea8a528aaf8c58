// SetOp: INTERSECT and EXCEPT, with and without ALL, by counting equal rows of both sides in a hash
// table. Past work_mem both sides' rows that the table does not know are spilled and done partition
// by partition.
#pragma once

#include "executor/column_buffer.h"
#include "executor/group_table.h"
#include "executor/node.h"
#include "executor/spill.h"

namespace sluice {

class SetOp : public Node {
 public:
  SetOp(const SetOpPlan& plan, ExecutionState& state, std::unique_ptr<Node> left = nullptr,
        std::unique_ptr<Node> right = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  struct Counts {
    uint64_t left = 0, right = 0;
  };
  struct Partition {
    std::unique_ptr<SpillFile> left, right;
    int level;
  };

  void ReadInput();
  bool ReadPartition();
  void ReadFile(SpillFile& file, bool left, int level);
  void Count(const Batch& input, bool left, int level);
  void FinishInput(int level);
  void Clear();
  uint64_t Wanted(const Counts& counts) const;

  const SetOpPlan& set_op_plan_;
  std::unique_ptr<Node> left_, right_;
  RowLayout layout_;
  GroupTable table_;
  std::vector<Counts> counts_;
  bool full_ = false;
  std::unique_ptr<SpillPartitions> spilling_left_, spilling_right_;
  std::vector<Partition> partitions_;
  bool started_ = false;
  size_t group_at_ = 0;
  uint64_t given_of_group_ = 0;
  BatchBuffer rows_, output_;
};

}  // namespace sluice
