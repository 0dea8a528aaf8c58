// kSubPlan: for each row its arguments go into the sub plan's parameters, then the sub plan is run.
#include "common/error.h"
#include "executor/expression_internal.h"
#include "executor/sub_plan.h"

namespace sluice {
namespace {

class SubPlanStep : public Step {
 public:
  SubPlanStep(const Expr& expr, SubPlanRunner* runner, ExecutionState& state)
      : runner_(runner),
        state_(state),
        args_(CompileSteps(expr.args, state)),
        columns_(args_.size()),
        out_(expr.type) {}

  const Column& Evaluate(const StepInput& input) override {
    for (size_t i = 0; i < args_.size(); i++) columns_[i] = args_[i]->Evaluate(input);
    out_.Clear();
    if (input.count == 0) return out_.column;
    bool constant = true;
    for (const Column& column : columns_) constant = constant && column.constant();
    if (constant && !runner_->plan().is_volatile) {
      Store(0, input.Row(0), input.arena);
      out_.column.mask = 0;
      return out_.column;
    }
    for (size_t i = 0; i < input.count; i++) Store(input.Row(i), input.Row(i), input.arena);
    return out_.column;
  }

 private:
  void Store(size_t to, size_t row, Arena* arena) {
    for (size_t i = 0; i < columns_.size(); i++)
      state_.exec_params[static_cast<size_t>(runner_->plan().params[i])] = RowOf(columns_[i], row);
    Column value = runner_->Run(arena);
    uint32_t first = 0;
    AppendRows(value, &first, 1, to, &out_);
  }

  SubPlanRunner* runner_;
  ExecutionState& state_;
  std::vector<StepPtr> args_;
  std::vector<Column> columns_;
  ColumnBuffer out_;
};

}  // namespace

StepPtr CompileSubPlanStep(const Expr& expr, ExecutionState& state) {
  if (state.sub_plans == nullptr)
    Throw(sqlstate::kInternalError, "a sub plan where none can be run");
  auto number = static_cast<size_t>(expr.param);
  std::unique_ptr<SubPlanRunner>& runner = (*state.sub_plans)[number];
  if (runner == nullptr)
    runner = std::make_unique<SubPlanRunner>(state.statement->sub_plans[number], state);
  return std::make_unique<SubPlanStep>(expr, runner.get(), state);
}

}  // namespace sluice
