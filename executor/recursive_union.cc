#include "executor/recursive_union.h"

#include "executor/child.h"
#include "shm/process_table.h"

namespace sluice {

RecursiveUnion::RecursiveUnion(const RecursiveUnionPlan& plan, ExecutionState& state)
    : Node(plan, state),
      union_plan_(plan),
      stores_{{plan.output, state.context->work_mem_bytes, state.context->temp_directory},
              {plan.output, state.context->work_mem_bytes, state.context->temp_directory}},
      output_(plan.output) {
  state.work_tables[plan.work_table] = &table_;
  ShowRound();
  first_ = GivenOrMade(nullptr, plan, 0, state);
  recursive_ = GivenOrMade(nullptr, plan, 1, state);
  if (!plan.all) seen_ = std::make_unique<GroupTable>(ColumnTypes(plan.output));
}

RecursiveUnion::~RecursiveUnion() = default;

void RecursiveUnion::ShowRound() {
  Column& param = state_.exec_params[static_cast<size_t>(union_plan_.work_table)];
  param.type = kInt8Oid;
  param.physical = Physical::kInt8;
  param.mask = 0;
  param.nulls = nullptr;
  param.data = &table_.round;
}

void RecursiveUnion::NextBatch(Batch* batch) {
  Batch input;
  while (!done_) {
    CheckForInterrupts();
    (in_recursion_ ? recursive_ : first_)->Next(&input);
    if (input.rows > 0) {
      if (Take(input, batch)) return;
    } else if (!StartRound()) {
      done_ = true;
    }
  }
  batch->rows = 0;
}

bool RecursiveUnion::Take(const Batch& input, Batch* batch) {
  *batch = input;
  if (seen_ != nullptr) {
    uint32_t groups[kBatchRows], fresh[kBatchRows];
    uint64_t hashes[kBatchRows];
    size_t known = seen_->group_count(), count = 0;
    seen_->Find(input.columns, input.rows, true, groups, hashes);
    std::vector<bool> shown(seen_->group_count() - known);
    for (size_t row = 0; row < input.rows; row++) {
      if (groups[row] < known || shown[groups[row] - known]) continue;
      shown[groups[row] - known] = true;
      fresh[count++] = static_cast<uint32_t>(row);
    }
    if (count == 0) return false;
    for (size_t c = 0; c < output_.size(); c++)
      GatherColumn(input.columns[c], fresh, count, &output_[c]);
    output_.Show(count, batch);
    Statistics().memory_bytes_max =
        std::max<uint64_t>(Statistics().memory_bytes_max, seen_->memory_bytes());
  }
  stores_[writing_].Append(*batch);
  wrote_ = true;
  return true;
}

bool RecursiveUnion::StartRound() {
  if (!wrote_) return false;
  Statistics().spilled_bytes += stores_[writing_].spilled_bytes();
  table_.rows = &stores_[writing_];
  table_.round++;
  writing_ = 1 - writing_;
  stores_[writing_].Clear();
  wrote_ = false;
  in_recursion_ = true;
  if (recursive_started_) recursive_->Rescan();
  recursive_started_ = true;
  return true;
}

void RecursiveUnion::Rescan() {
  first_->Rescan();
  for (RowStore& store : stores_) store.Clear();
  if (seen_ != nullptr) seen_->Clear();
  // The rounds of the next run have other numbers: nothing may be taken for the same.
  table_.rows = nullptr;
  wrote_ = in_recursion_ = done_ = false;
}

WorkTableScan::WorkTableScan(const WorkTableScanPlan& plan, ExecutionState& state)
    : Node(plan, state), table_(state.work_tables.at(plan.work_table)) {}

void WorkTableScan::NextBatch(Batch* batch) {
  table_->rows->Next(batch);
}

void WorkTableScan::Rescan() {
  if (table_->rows != nullptr) table_->rows->Rewind();
}

}  // namespace sluice
