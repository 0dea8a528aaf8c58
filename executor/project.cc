#include "executor/project.h"

#include "executor/child.h"

namespace sluice {

Project::Project(const ProjectPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      columns_(plan.expressions.size()) {
  for (const Expr* expr : plan.expressions) {
    expressions_.push_back(CompiledExpression::Compile(*expr, state));
  }
}

void Project::NextBatch(Batch* batch) {
  Batch input;
  child_->Next(&input);
  batch->rows = input.rows;
  if (input.rows == 0) return;
  arena_.Reset();
  for (size_t i = 0; i < expressions_.size(); i++) {
    columns_[i] = expressions_[i]->Evaluate(input, nullptr, input.rows, &arena_);
  }
  batch->columns = columns_;
}

void Project::Rescan() {
  child_->Rescan();
}

}  // namespace sluice
