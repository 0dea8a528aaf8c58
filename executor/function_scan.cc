#include "executor/function_scan.h"

#include "shm/process_table.h"

namespace sluice {

FunctionScan::FunctionScan(const FunctionScanPlan& plan, ExecutionState& state)
    : Node(plan, state), scan_(plan), output_(plan.output) {}

void FunctionScan::NextBatch(Batch* batch) {
  CheckForInterrupts();
  if (!started_) {
    started_ = true;
    series_ = MakeSeries(*scan_.call, state_);
  }
  arena_.Reset();
  output_.Clear();
  size_t rows = 0;
  if (series_ != nullptr) rows = series_->Next(kBatchRows, &output_[0], &arena_);
  if (scan_.ordinality) {
    auto* numbers = output_[1].column.Data<int64_t>();
    for (size_t i = 0; i < rows; i++) numbers[i] = ++row_number_;
  }
  output_.Show(rows, batch);
}

void FunctionScan::Rescan() {
  started_ = false;
  series_.reset();
  row_number_ = 0;
}

}  // namespace sluice
