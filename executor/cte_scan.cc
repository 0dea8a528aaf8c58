#include "executor/cte_scan.h"

#include "executor/init_plan.h"
#include "executor/plan_streams.h"
#include "executor/row_store.h"
#include "executor/sub_plan.h"

namespace sluice {
namespace {

// Whether the plan reads only of the first `ctes` WITH queries.
bool ReadsOnly(const PlannedStatement& statement, const Plan& plan, size_t ctes) {
  if (plan.kind == PlanKind::kCteScan &&
      static_cast<size_t>(static_cast<const CteScanPlan&>(plan).cte) >= ctes)
    return false;
  for (const Plan* child : plan.children)
    if (!ReadsOnly(statement, *child, ctes)) return false;
  for (int number : plan.sub_plans)
    if (!ReadsOnly(statement, *statement.sub_plans[static_cast<size_t>(number)].plan, ctes))
      return false;
  return true;
}

void RunCte(const CtePlan& cte, std::vector<std::unique_ptr<RowStore>>* scans,
            ExecutionState& state) {
  for (int i = 0; i < cte.scans; i++)
    scans->push_back(std::make_unique<RowStore>(cte.plan->output, state.context->work_mem_bytes,
                                                state.context->temp_directory));
  PlanStreams streams(*cte.plan, state);
  streams.AwaitAdmission();
  std::vector<std::unique_ptr<SubPlanRunner>> sub_plans(state.statement->sub_plans.size());
  auto* outer = std::exchange(state.sub_plans, &sub_plans);
  std::unique_ptr<Node> node = MakeNode(*cte.plan, state);
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch))
    for (auto& rows : *scans) rows->Append(batch);
  node.reset();
  state.sub_plans = outer;
}

}  // namespace

CteScan::CteScan(const CteScanPlan& plan, ExecutionState& state)
    : Node(plan, state),
      rows_(*(*state.cte_rows)[static_cast<size_t>(plan.cte)][static_cast<size_t>(plan.scan)]) {}

void CteScan::NextBatch(Batch* batch) {
  rows_.Next(batch);
}

void CteScan::Rescan() {
  rows_.Rewind();
}

void RunBeforehand(const PlannedStatement& statement, ExecutionState& state) {
  std::vector<bool> done(statement.init_plans.size(), false);
  state.cte_rows->resize(statement.ctes.size());
  for (size_t ctes = 0; ctes <= statement.ctes.size(); ctes++) {
    for (size_t i = 0; i < done.size(); i++) {
      if (done[i] || !ReadsOnly(statement, *statement.init_plans[i].plan, ctes)) continue;
      RunInitPlan(statement.init_plans[i], state);
      done[i] = true;
    }
    if (ctes < statement.ctes.size()) RunCte(statement.ctes[ctes], &(*state.cte_rows)[ctes], state);
  }
}

}  // namespace sluice
