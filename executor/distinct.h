// Distinct: each different row once (by hash; past work_mem by partitions in temporary files), or,
// in sorted input, the first row of each run of rows that agree in some columns (DISTINCT ON).
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/group_table.h"
#include "executor/node.h"
#include "executor/spill.h"

namespace sluice {

class Distinct : public Node {
 public:
  Distinct(const DistinctPlan& plan, ExecutionState& state, std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  struct Partition {
    std::unique_ptr<SpillFile> file;
    int level;
  };

  bool NextInput(Batch* input);  // of the child, then of the partitions; false at the end
  void TakePartitions();
  size_t SelectNew(const Batch& input);
  size_t SelectFirsts(const Batch& input);
  bool SameAsRowBefore(const Batch& input, size_t row) const;

  const DistinctPlan& distinct_plan_;
  std::unique_ptr<Node> child_;
  std::vector<size_t> key_columns_;
  std::vector<Column> keys_;
  uint32_t selected_[kBatchRows];
  BatchBuffer output_;

  // Hashed. Rows are spilled whole, keys being some or all of their columns.
  std::unique_ptr<GroupTable> seen_;
  RowLayout layout_;
  bool full_ = false;
  bool child_done_ = false;
  int level_ = 0;
  std::unique_ptr<SpillPartitions> spilling_;
  std::vector<Partition> partitions_;
  std::unique_ptr<SpillFile> reading_;
  std::unique_ptr<BatchBuffer> spilled_rows_;

  // Sorted.
  std::vector<Column> last_keys_;
  Arena last_arena_;
};

}  // namespace sluice
