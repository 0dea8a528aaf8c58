// WindowAgg: window functions over input sorted by partition and order. One partition at a time is
// kept whole (in memory, past work_mem in a mapped temporary file) and its rows come out as they
// went in, each with the functions' results behind its columns.
#pragma once

#include "common/arena.h"
#include "executor/accumulator.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "executor/file_blocks.h"
#include "executor/node.h"
#include "executor/row_comparator.h"
#include "executor/row_layout.h"
#include "executor/window_frame.h"

namespace sluice {

class WindowAgg : public Node {
 public:
  WindowAgg(const WindowAggPlan& plan, ExecutionState& state,
            std::unique_ptr<Node> child = nullptr);
  ~WindowAgg() override;
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  struct Call {
    const WindowCall* plan;
    size_t first_argument = 0, argument_count = 0;  // columns of layout_
    int filter = -1;                                // column of layout_
    // Aggregates: the state covers `covered`.
    std::unique_ptr<Arena> state_arena;
    std::unique_ptr<Accumulator> accumulator;
    std::vector<RowRange> covered;
    std::vector<ColumnBuffer> arguments;
    std::unique_ptr<ColumnBuffer> filter_values, result;
  };

  size_t AddColumn(const Expr& expr);
  void AddCall(const WindowCall& call);
  // The next partition's rows; false: there is none.
  bool ReadPartition();
  bool FillIncoming();
  void TakeIncoming(size_t count);
  void StartPartition();

  void Compute(Call* call, size_t first, size_t count, ColumnBuffer* out);
  void Rank(WindowKind kind, size_t first, size_t count, ColumnBuffer* out);
  void Ntile(const Call& call, size_t first, size_t count, ColumnBuffer* out);
  void LagOrLead(const Call& call, size_t first, size_t count, ColumnBuffer* out);
  void ValueOfFrame(const Call& call, size_t first, size_t count, ColumnBuffer* out);
  void Aggregate(Call* call, size_t first, size_t count, ColumnBuffer* out);
  void Accumulate(Call* call, const RowRange& range);
  int64_t IntegerAt(size_t column, size_t row) const;  // int4 or int8

  const WindowAggPlan& window_plan_;
  std::unique_ptr<Node> child_;
  size_t child_columns_;
  std::vector<Oid> types_;  // the child's columns, then what is evaluated for the calls
  std::vector<std::unique_ptr<CompiledExpression>> evaluated_;
  std::vector<Call> calls_;
  size_t range_key_ = 0, range_start_ = 0, range_end_ = 0;  // columns, where there are offsets
  std::unique_ptr<RowLayout> layout_;
  std::unique_ptr<RowComparator> partition_order_;

  // Rows read that belong to the next partition, from incoming_at_ on.
  Arena expression_arena_, incoming_arena_;
  std::vector<char*> incoming_;
  size_t incoming_at_ = 0;
  bool input_done_ = false;

  FileBlocks blocks_;
  std::unique_ptr<Arena> rows_arena_;
  std::vector<const char*> rows_;
  size_t emitted_ = 0;
  std::unique_ptr<WindowFrame> frame_;

  BatchBuffer output_;
  Arena output_arena_;
};

}  // namespace sluice
