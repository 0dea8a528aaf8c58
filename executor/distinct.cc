#include "executor/distinct.h"

#include "common/error.h"
#include "executor/child.h"
#include "shm/process_table.h"
#include "types/compare.h"

namespace sluice {
Distinct::Distinct(const DistinctPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      distinct_plan_(plan),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      output_(plan.output),
      layout_(ColumnTypes(plan.output), 0) {
  for (int column : plan.columns) key_columns_.push_back(static_cast<size_t>(column));
  if (plan.columns.empty()) {
    for (size_t c = 0; c < plan.output.size(); c++) key_columns_.push_back(c);
  }
  keys_.resize(key_columns_.size());
  if (plan.sorted_input) return;
  std::vector<Oid> types;
  for (size_t c : key_columns_) {
    types.push_back(plan.output[c].type);
    if (!CanHash(types.back()))
      Refuse("DISTINCT over type OID {} is not supported here", types.back());
  }
  seen_ = std::make_unique<GroupTable>(types);
}

void Distinct::NextBatch(Batch* batch) {
  Batch input;
  for (;;) {
    CheckForInterrupts();
    batch->rows = 0;
    if (!NextInput(&input)) return;
    size_t count = distinct_plan_.sorted_input ? SelectFirsts(input) : SelectNew(input);
    if (count == 0) continue;
    if (count == input.rows) {
      *batch = input;
      return;
    }
    for (size_t c = 0; c < output_.size(); c++) {
      GatherColumn(input.columns[c], selected_, count, &output_[c]);
    }
    output_.Show(count, batch);
    return;
  }
}

bool Distinct::NextInput(Batch* input) {
  if (!child_done_) {
    child_->Next(input);
    if (input->rows > 0) return true;
    child_done_ = true;
    TakePartitions();
  }
  for (;;) {
    if (reading_ != nullptr) {
      char* rows[kBatchRows];
      uint64_t tags[kBatchRows];
      size_t count = reading_->Read(kBatchRows, rows, tags);
      if (count > 0) {
        for (size_t c = 0; c < spilled_rows_->size(); c++) {
          layout_.Load(rows, count, c, &(*spilled_rows_)[c]);
        }
        spilled_rows_->Show(count, input);
        return true;
      }
      reading_ = nullptr;
      TakePartitions();
    }
    if (partitions_.empty()) return false;
    reading_ = std::move(partitions_.back().file);
    level_ = partitions_.back().level;
    partitions_.pop_back();
    reading_->StartReading();
    seen_->Clear();
    full_ = false;
    if (spilled_rows_ == nullptr)
      spilled_rows_ = std::make_unique<BatchBuffer>(distinct_plan_.output);
  }
}

void Distinct::TakePartitions() {
  if (spilling_ == nullptr) return;
  Statistics().spilled_bytes += spilling_->bytes();
  for (std::unique_ptr<SpillFile>& file : spilling_->TakeFiles()) {
    if (file->row_count() > 0) partitions_.push_back({std::move(file), level_ + 1});
  }
  spilling_ = nullptr;
}

size_t Distinct::SelectNew(const Batch& input) {
  for (size_t k = 0; k < key_columns_.size(); k++) keys_[k] = input.columns[key_columns_[k]];
  if (keys_.empty()) {  // no columns: all rows are alike
    if (full_) return 0;
    full_ = true;
    selected_[0] = 0;
    return 1;
  }
  uint32_t groups[kBatchRows];
  uint64_t hashes[kBatchRows];
  uint8_t given[kBatchRows] = {};
  uint32_t unknown[kBatchRows];
  size_t known = seen_->group_count();
  bool admit = !full_ || level_ >= SpillPartitions::kLevelsMax;
  seen_->Find(keys_, input.rows, admit, groups, hashes);
  size_t count = 0, unknown_count = 0;
  for (size_t i = 0; i < input.rows; i++) {
    if (groups[i] == kNoGroup) {
      unknown[unknown_count++] = static_cast<uint32_t>(i);
    } else if (groups[i] >= known && !given[groups[i] - known]) {
      given[groups[i] - known] = 1;
      selected_[count++] = static_cast<uint32_t>(i);
    }
  }
  if (unknown_count > 0) {
    if (spilling_ == nullptr) {
      spilling_ =
          std::make_unique<SpillPartitions>(&layout_, state_.context->temp_directory, level_);
    }
    spilling_->Append(input.columns, unknown, unknown_count, hashes);
  }
  size_t memory = seen_->memory_bytes();
  full_ = full_ || memory > static_cast<size_t>(state_.context->work_mem_bytes);
  Statistics().memory_bytes_max = std::max<uint64_t>(Statistics().memory_bytes_max, memory);
  return count;
}

bool Distinct::SameAsRowBefore(const Batch& input, size_t row) const {
  if (row == 0 && last_keys_.empty() && !key_columns_.empty()) return false;
  for (size_t k = 0; k < key_columns_.size(); k++) {
    const Column& column = input.columns[key_columns_[k]];
    bool same = row == 0 ? NotDistinct(last_keys_[k], 0, column, row)
                         : NotDistinct(column, row - 1, column, row);
    if (!same) return false;
  }
  return true;
}

size_t Distinct::SelectFirsts(const Batch& input) {
  size_t count = 0;
  for (size_t i = 0; i < input.rows; i++) {
    if (!SameAsRowBefore(input, i)) selected_[count++] = static_cast<uint32_t>(i);
  }
  last_keys_.clear();
  last_arena_.Reset();
  for (size_t c : key_columns_) {
    last_keys_.push_back(CopyValue(input.columns[c], input.rows - 1, &last_arena_));
  }
  return count;
}

void Distinct::Rescan() {
  child_->Rescan();
  child_done_ = false;
  full_ = false;
  level_ = 0;
  spilling_ = nullptr;
  partitions_.clear();
  reading_ = nullptr;
  last_keys_.clear();
  if (seen_ != nullptr) seen_->Clear();
}

}  // namespace sluice
