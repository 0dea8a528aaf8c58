// Aggregate: GROUP BY by hash, in one step or as the partial and final half of a parallel one.
//
// Memory past work_mem: a partial aggregate hands out what it has and starts over (the final one
// combines). The others take in no further groups: rows of unknown groups are spilled by hash, and
// when the known groups have been handed out, each partition is aggregated in the same way.
#pragma once

#include "common/arena.h"
#include "executor/accumulator.h"
#include "executor/expression.h"
#include "executor/group_table.h"
#include "executor/node.h"
#include "executor/spill.h"

namespace sluice {

class Aggregate : public Node {
 public:
  Aggregate(const AggregatePlan& plan, ExecutionState& state,
            std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  struct Call {
    std::unique_ptr<Accumulator> accumulator;
    size_t first_argument = 0, argument_count = 0;  // evaluated columns
    int filter = -1;                                // evaluated column
  };
  struct Partition {
    std::unique_ptr<SpillFile> file;
    int level;  // of the rows in it
  };

  void AddCall(const AggregateCall& call);
  size_t AddColumn(const Expr& expr);
  void Evaluate(const Batch& input);
  bool ReadInput();               // false: stopped because memory is full
  void ConsumeSets(size_t rows);  // the evaluated rows, once for each grouping set
  void AdmitEmptySets();          // there were no rows: () has one group all the same
  bool ReadPartition();           // false: there is none left
  void Consume(std::span<const Column> columns, size_t rows, int level);
  void SpillUnknown(std::span<const Column> columns, size_t rows, const uint64_t* hashes,
                    int level);
  void UpdateCalls(std::span<const Column> columns, const uint32_t* list, size_t count);
  void FinishInput();
  void ClearGroups();
  void Emit(Batch* batch);
  size_t memory_bytes() const;

  const AggregatePlan& aggregate_plan_;
  std::unique_ptr<Node> child_;
  size_t key_count_;
  bool grouped_;

  std::vector<std::unique_ptr<CompiledExpression>> expressions_;  // of the evaluated columns
  std::vector<Oid> types_;                                        // the same
  std::vector<Column> evaluated_;
  Arena set_arena_;
  Arena expression_arena_;

  Arena state_arena_;
  std::vector<Call> calls_;
  std::unique_ptr<GroupTable> table_;
  size_t group_count_ = 0;
  bool full_ = false;  // no further groups
  uint32_t groups_[kBatchRows];
  uint32_t known_[kBatchRows];
  uint32_t filtered_[kBatchRows];

  RowLayout spill_layout_;
  std::unique_ptr<SpillPartitions> spilling_;
  std::vector<Partition> partitions_;

  enum class Phase { kReading, kEmitting, kDone };
  Phase phase_ = Phase::kReading;
  bool input_done_ = false;
  bool any_input_ = false;
  size_t emitted_ = 0;
  std::unique_ptr<BatchBuffer> output_;
  std::unique_ptr<BatchBuffer> spilled_rows_;
  Arena output_arena_;
};

}  // namespace sluice
