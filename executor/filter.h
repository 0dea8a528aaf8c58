// Filter: the child's rows for which a condition is true.
#pragma once

#include "common/arena.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "executor/node.h"

namespace sluice {

class Filter : public Node {
 public:
  Filter(const FilterPlan& plan, ExecutionState& state, std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  std::unique_ptr<Node> child_;
  std::unique_ptr<CompiledExpression> condition_;
  BatchBuffer output_;
  uint32_t selected_[kBatchRows];
  Arena arena_;
};

}  // namespace sluice
