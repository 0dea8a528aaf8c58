// Project: computes each output column by an expression over the child's row.
#pragma once

#include "common/arena.h"
#include "executor/expression.h"
#include "executor/node.h"

namespace sluice {

class Project : public Node {
 public:
  Project(const ProjectPlan& plan, ExecutionState& state, std::unique_ptr<Node> child = nullptr);
  void Rescan() override;

 protected:
  void NextBatch(Batch* batch) override;

 private:
  std::unique_ptr<Node> child_;
  std::vector<std::unique_ptr<CompiledExpression>> expressions_;
  std::vector<Column> columns_;
  Arena arena_;
};

}  // namespace sluice
