// HashJoin: builds a hash table of the inner side, then looks up each outer row.
//
// Build past work_mem: both sides are spilled by hash and joined partition by partition,
// recursively. With `shared_build` all participants of the Gather build one table together
// (shm/shared_build.h) and then probe it without locks.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "executor/join_table.h"
#include "executor/node.h"
#include "executor/spill.h"
#include "shm/query_arena.h"
#include "shm/shared_build.h"

namespace sluice {

// The leader's, before workers start: the shared state of a join with `shared_build`, nullptr for
// others.
void* PrepareHashJoinShared(const HashJoinPlan& plan, ExecutionState& state);

class HashJoin : public Node {
 public:
  HashJoin(const HashJoinPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer = nullptr,
           std::unique_ptr<Node> inner = nullptr);
  ~HashJoin() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  enum class Phase { kBuild, kOuter, kStep, kUnmatchedOuter, kUnmatchedInner, kPartition, kDone };
  struct Partition {
    std::vector<std::unique_ptr<SpillFile>> inner, outer;
    int level;
  };
  using Expressions = std::vector<std::unique_ptr<CompiledExpression>>;

  void PlanColumns();

  // Build.
  void Build();
  void BuildShared();
  void InsertShared(SharedBuild* build);
  void PartitionShared(SharedBuild* build, bool built);
  bool ClaimSharedPartition();  // false: none is left
  std::string SharedPath(uint32_t participant, size_t side) const;
  void AddInner(const Batch& input);
  void SpillInner(std::unique_ptr<SpillPartitions> partitions);
  void SpillInnerShared();
  void MakeBuckets();
  bool BuildPartition();  // false: there is none left
  bool LoadPartition(Partition* partition);
  void SplitPartition(Partition* partition);
  void PartitionOuter();  // all of the outer side, after an inner side that was spilled
  void SpillOuter(SpillPartitions* outer);
  void AddPartitions(SpillPartitions* inner, SpillPartitions* outer, int level);
  void AddPartition(Partition partition);
  std::unique_ptr<JoinRows> MakePrivateRows();
  size_t memory_bytes() const;
  size_t work_mem_bytes() const;
  void NoteMemory();
  size_t SelectNonNullKeys(std::span<const Column> keys, size_t rows, uint32_t* list) const;

  // Probe.
  void StartOuter();
  bool NextOuter(Batch* input);
  void HashOuter();
  bool Step();  // one step along all open chains; false: no room for its pairs
  void TakePairs(size_t first);
  void EmitUnmatchedOuter();
  void EmitUnmatchedInner();
  void AppendInner(char* const* rows, size_t count);
  bool Show(Batch* batch);

  bool outer_only() const {
    return join_plan_.type == JoinType::kSemi || join_plan_.type == JoinType::kAnti;
  }
  bool keeps_inner() const {
    return join_plan_.type == JoinType::kRight || join_plan_.type == JoinType::kFull;
  }
  bool keeps_outer() const {
    return join_plan_.type == JoinType::kLeft || join_plan_.type == JoinType::kFull ||
           join_plan_.type == JoinType::kAnti;
  }

  const HashJoinPlan& join_plan_;
  SharedBuildState* shared_ = nullptr;
  std::unique_ptr<Node> outer_, inner_;
  size_t outer_columns_;
  Expressions outer_keys_, inner_keys_;
  std::unique_ptr<CompiledExpression> condition_;

  // A stored inner row: the keys, then the inner columns that are not keys themselves.
  std::vector<Oid> key_types_;
  std::vector<Oid> stored_types_;
  std::vector<size_t> stored_from_;   // stored column, behind the keys → inner column
  std::vector<size_t> inner_stored_;  // inner column → stored column
  std::unique_ptr<RowLayout> layout_;
  std::unique_ptr<KeyEquality> equality_;
  std::unique_ptr<RowLayout> outer_layout_;

  Phase phase_ = Phase::kBuild;
  std::unique_ptr<SharedListBlocks> shared_blocks_;
  std::unique_ptr<JoinRows> rows_;
  std::vector<uint64_t> bucket_memory_;
  JoinBuckets buckets_;
  uint64_t inner_rows_ = 0;  // all of the inner side, NULL keys included
  bool inner_null_key_ = false;

  std::unique_ptr<SpillPartitions> spilling_inner_;
  bool inner_spilled_ = false;  // the outer child has been read to its end, into partitions
  std::vector<Partition> partitions_;
  std::vector<std::unique_ptr<SpillFile>> outer_files_;  // read instead of the outer child
  bool shared_spilled_ = false;
  std::unique_ptr<BatchBuffer> outer_rows_;

  // The outer batch in work.
  Batch outer_batch_;
  std::vector<Column> outer_batch_columns_;
  std::vector<Column> outer_key_columns_;
  std::vector<Column> stored_columns_;
  uint64_t hashes_[kBatchRows];
  uint8_t outer_null_key_[kBatchRows];
  uint8_t outer_matched_[kBatchRows];
  // Open chains: outer row and the inner row to look at next.
  uint32_t open_rows_[kBatchRows];
  char* open_at_[kBatchRows];
  size_t open_count_ = 0;
  // Pairs gathered for the output.
  uint32_t pair_outer_[kBatchRows];
  char* pair_inner_[kBatchRows];
  size_t pair_count_ = 0;

  size_t inner_at_ = 0;  // kUnmatchedInner
  uint32_t selected_[kBatchRows];
  BatchBuffer output_;
  std::unique_ptr<BatchBuffer> condition_outer_, condition_inner_;
  Arena key_arena_, condition_arena_;
};

}  // namespace sluice
