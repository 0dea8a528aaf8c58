#include "executor/modify.h"

#include "common/assert.h"
#include "executor/plan_streams.h"

namespace sluice {

Modify::Modify(const ModifyPlan& plan, ExecutionState& state)
    : Node(plan, state),
      modify_(plan),
      child_(MakeNode(*plan.children[0], state)),
      writer_(plan, state),
      rows_(plan.output, state.context->work_mem_bytes, state.context->temp_directory) {
  for (const Expr* key : plan.keys) keys_.push_back(CompiledExpression::Compile(*key, state));
  for (const Expr* expr : plan.returning)
    returning_.push_back(CompiledExpression::Compile(*expr, state));
}

void Modify::NextBatch(Batch* batch) {
  if (!ran_) {
    Run();
    ran_ = true;
    Statistics().rows_modified = count_;
    Statistics().memory_bytes_max = std::max(Statistics().memory_bytes_max, rows_.memory_bytes());
    Statistics().spilled_bytes += rows_.spilled_bytes();
  }
  // Without RETURNING there are no rows, however many were written.
  if (modify_.output.empty()) {
    batch->rows = 0;
    return;
  }
  rows_.Next(batch);
}

// The rows again; nothing is written twice.
void Modify::Rescan() {
  if (ran_) rows_.Rewind();
}

void Modify::Run() {
  switch (modify_.method) {
    case ModifyMethod::kRemote:
      return RunRemote();
    case ModifyMethod::kInsert:
      return RunInsert();
    case ModifyMethod::kById:
      return RunById();
  }
}

void Modify::RunRemote() {
  Batch batch;
  for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) {
    CheckForInterrupts();
    if (!modify_.output.empty()) rows_.Append(batch);
  }
  CountRemote(*modify_.children[0]);
}

void Modify::CountRemote(const Plan& plan) {
  if (plan.kind == PlanKind::kForeignScan) {
    auto* shared = static_cast<ScanShared*>(state_.shared_states[plan.id]);
    count_ += RowsOfTag(shared->group->streams[shared->copies[0].stream]);
  } else if (plan.kind == PlanKind::kAppend) {
    auto* shared = static_cast<AppendShared*>(state_.shared_states[plan.id]);
    size_t count = modify_.replicated ? 1 : shared->scans.size();
    for (size_t i = 0; i < count; i++)
      count_ += RowsOfTag(shared->group->streams[shared->copies[0].first_stream + i]);
  }
}

}  // namespace sluice
