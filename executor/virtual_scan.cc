#include "executor/virtual_scan.h"

#include "common/assert.h"
#include "types/codec.h"

namespace sluice {

VirtualScan::VirtualScan(const VirtualScanPlan& plan, ExecutionState& state)
    : Node(plan, state), scan_(plan), output_(plan.output) {}

void VirtualScan::ReadAll() {
  read_ = true;
  SLUICE_ASSERT(state_.context->scan_virtual != nullptr);  // the planner keeps it out of workers
  state_.context->scan_virtual(scan_.name,
                               [this](std::span<const std::optional<std::string>> values) {
                                 TextRow& row = rows_.emplace_back();
                                 for (int column : scan_.columns)
                                   row.push_back(values[static_cast<size_t>(column)]);
                               });
}

void VirtualScan::StoreValue(const std::optional<std::string>& text, size_t row, ColumnBuffer* to) {
  if (!text) {
    to->Nulls()[row] = 1;
  } else if (HasBinaryCodec(to->column.type)) {
    std::string_view binary =
        ParseText(to->column.type, -1, *text, *state_.context->settings, &arena_);
    DecodeBinaryValue(to->column.type, binary, &to->column, row);
  } else {
    to->column.Data<std::string_view>()[row] = *text;
  }
}

void VirtualScan::NextBatch(Batch* batch) {
  if (!read_) ReadAll();
  arena_.Reset();
  output_.Clear();
  size_t rows = std::min(kBatchRows, rows_.size() - next_);
  for (size_t row = 0; row < rows; row++)
    for (size_t i = 0; i < output_.size(); i++) StoreValue(rows_[next_ + row][i], row, &output_[i]);
  next_ += rows;
  output_.Show(rows, batch);
}

}  // namespace sluice
