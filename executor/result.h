// Result: one row of expressions over nothing, or a child's rows, behind a condition that is
// decided once.
#pragma once

#include "common/arena.h"
#include "executor/expression.h"
#include "executor/node.h"

namespace sluice {

class ResultNode : public Node {
 public:
  ResultNode(const ResultPlan& plan, ExecutionState& state);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  bool Passes();

  const ResultPlan& result_;
  std::unique_ptr<Node> child_;
  std::vector<std::unique_ptr<CompiledExpression>> expressions_;
  std::vector<Column> columns_;
  Arena arena_;
  bool done_ = false;
  bool decided_ = false;
};

}  // namespace sluice
