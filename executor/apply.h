// Apply: a nested loop that runs its inner side anew for each outer row, whose values it finds in
// parameters (LATERAL). What of the inner side does not depend on them is kept by the Materialize
// nodes that the planner has put there.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "executor/node.h"

namespace sluice {

class Apply : public Node {
 public:
  Apply(const ApplyPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer = nullptr,
        std::unique_ptr<Node> inner = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  bool ReadOuter();    // false: no more
  void StartInner();   // for the outer row at outer_at_
  void FinishInner();  // what is left to say about the outer row
  void AppendOuter(size_t count);
  void AppendInner(const uint32_t* rows, size_t count);
  bool outer_only() const {
    return apply_.type == JoinType::kSemi || apply_.type == JoinType::kAnti;
  }

  const ApplyPlan& apply_;
  std::unique_ptr<Node> outer_, inner_;
  std::vector<std::unique_ptr<CompiledExpression>> arguments_;
  std::unique_ptr<CompiledExpression> condition_;
  size_t outer_columns_, inner_columns_;

  Batch outer_batch_, inner_batch_;
  std::vector<Column> outer_batch_columns_, argument_columns_, row_columns_;
  Arena argument_arena_;
  size_t outer_at_ = 0;
  bool outer_done_ = false;
  bool inner_started_ = false;  // ever: from then on it is rescanned
  bool inner_open_ = false;     // for the present outer row
  bool matched_ = false;

  uint32_t selected_[kBatchRows];  // rows of inner_batch_ that match…
  size_t selected_count_ = 0, selected_at_ = 0;

  BatchBuffer output_;
  Arena output_arena_;  // inner values, which die with the inner side's next run
  size_t output_rows_ = 0;
  Arena arena_;
};

}  // namespace sluice
