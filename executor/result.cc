#include "executor/result.h"

namespace sluice {

ResultNode::ResultNode(const ResultPlan& plan, ExecutionState& state)
    : Node(plan, state), result_(plan), columns_(plan.expressions.size()) {
  if (!plan.children.empty()) child_ = MakeNode(*plan.children[0], state);
  for (const Expr* expr : plan.expressions)
    expressions_.push_back(CompiledExpression::Compile(*expr, state));
}

bool ResultNode::Passes() {
  if (result_.one_time_filter == nullptr) return true;
  Column passes = EvaluateConstant(*result_.one_time_filter, state_, &arena_);
  return !passes.IsNull(0) && passes.At<uint8_t>(0) != 0;
}

void ResultNode::NextBatch(Batch* batch) {
  batch->rows = 0;
  if (!decided_) {
    decided_ = true;
    done_ = !Passes();
  }
  if (done_) return;
  Batch input{1, {}};  // one row without columns
  if (child_ != nullptr) {
    child_->Next(&input);
    if (expressions_.empty() || input.rows == 0) {
      *batch = input;
      return;
    }
  } else {
    done_ = true;
  }
  arena_.Reset();
  for (size_t i = 0; i < expressions_.size(); i++)
    columns_[i] = expressions_[i]->Evaluate(input, nullptr, input.rows, &arena_);
  batch->rows = input.rows;
  batch->columns = columns_;
}

void ResultNode::Rescan() {
  decided_ = done_ = false;
  if (child_ != nullptr) child_->Rescan();
}

}  // namespace sluice
