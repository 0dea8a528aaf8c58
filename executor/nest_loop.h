// NestLoop: joins without an equality to hash on. The inner side is kept (in memory, or past
// work_mem in a file that is read once per outer batch); each step joins one row with a whole batch
// of the other side.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "executor/node.h"
#include "executor/row_store.h"

namespace sluice {

class NestLoop : public Node {
 public:
  NestLoop(const NestLoopPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer = nullptr,
           std::unique_ptr<Node> inner = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  // What the next step is.
  enum class Phase { kStart, kOuter, kChunk, kPairs, kUnmatchedOuter, kUnmatchedInner, kDone };

  void ReadInner();
  void StartOuter();
  void StartChunk();
  bool JoinOne();  // the outer or inner row at `pair_at_` with all of the other batch
  void Match(size_t outer_row, size_t inner_row);
  void EmitUnmatchedOuter();
  void EmitUnmatchedInner();
  void AppendSide(const Batch& from, const uint32_t* rows, size_t count, size_t first_column);
  void AppendNullSide(size_t columns, size_t count, size_t first_column);
  bool Show(Batch* batch);  // false: nothing gathered

  bool outer_only() const {
    return nest_plan_.type == JoinType::kSemi || nest_plan_.type == JoinType::kAnti;
  }

  const NestLoopPlan& nest_plan_;
  std::unique_ptr<Node> outer_, inner_;
  std::unique_ptr<CompiledExpression> condition_;
  size_t outer_columns_, inner_columns_;
  RowStore store_;

  Phase phase_ = Phase::kStart;
  Batch outer_batch_, chunk_;
  std::vector<Column> outer_batch_columns_;
  size_t chunk_first_ = 0;  // number of the chunk's first row
  size_t pair_at_ = 0;
  std::vector<Column> constant_columns_;
  uint8_t outer_matched_[kBatchRows];
  std::vector<uint8_t> inner_matched_;  // right and full joins
  uint32_t selected_[kBatchRows];

  BatchBuffer output_;
  size_t output_rows_ = 0;
  Arena arena_;
};

}  // namespace sluice
