#include "executor/row_store.h"

#include "common/assert.h"

namespace sluice {
namespace {

std::vector<Oid> TypesOf(std::span<const OutputColumn> columns) {
  std::vector<Oid> types;
  for (const OutputColumn& column : columns) types.push_back(column.type);
  return types;
}

}  // namespace

RowStore::RowStore(std::span<const OutputColumn> columns, int64_t memory_bytes_max,
                   std::string_view temp_directory)
    : layout_(TypesOf(columns), 0),
      memory_bytes_max_(memory_bytes_max),
      temp_directory_(temp_directory),
      output_(columns),
      pointers_(kBatchRows),
      tags_(kBatchRows) {}

void RowStore::Append(const Batch& batch) {
  SLUICE_ASSERT(!reading_);
  if (output_.size() == 0) {
    column_less_rows_ += batch.rows;
    return;
  }
  layout_.Store(batch.columns, nullptr, batch.rows, &arena_, pointers_.data());
  if (file_ == nullptr) {
    rows_.insert(rows_.end(), pointers_.begin(),
                 pointers_.begin() + static_cast<ptrdiff_t>(batch.rows));
    auto used = arena_.allocated_bytes() + rows_.size() * sizeof(char*);
    if (static_cast<int64_t>(used) > memory_bytes_max_) Spill();
    return;
  }
  for (size_t i = 0; i < batch.rows; i++) file_->Append(pointers_[i], 0);
  arena_.Reset();
}

void RowStore::Spill() {
  file_ = std::make_unique<SpillFile>(&layout_, temp_directory_);
  for (char* row : rows_) file_->Append(row, 0);
  rows_ = {};
  arena_.Reset();
}

void RowStore::Next(Batch* batch) {
  if (!reading_) Rewind();
  if (output_.size() == 0) {
    batch->columns = {};
    batch->rows = std::min<size_t>(kBatchRows, column_less_rows_ - next_);
    next_ += batch->rows;
    return;
  }
  char** rows = rows_.data() + next_;
  size_t count = std::min(kBatchRows, rows_.size() - next_);
  if (file_ != nullptr) {
    rows = pointers_.data();
    count = file_->Read(kBatchRows, rows, tags_.data());
  }
  next_ += file_ == nullptr ? count : 0;
  for (size_t i = 0; i < output_.size(); i++) layout_.Load(rows, count, i, &output_[i]);
  output_.Show(count, batch);
}

void RowStore::Load(const uint32_t* numbers, size_t count, Batch* batch) {
  SLUICE_ASSERT(file_ == nullptr && count <= kBatchRows);
  for (size_t i = 0; i < count; i++) pointers_[i] = rows_[numbers[i]];
  for (size_t i = 0; i < output_.size(); i++) layout_.Load(pointers_.data(), count, i, &output_[i]);
  output_.Show(count, batch);
}

void RowStore::Rewind() {
  reading_ = true;
  next_ = 0;
  if (file_ != nullptr) file_->StartReading();
}

void RowStore::Clear() {
  rows_.clear();
  file_.reset();
  column_less_rows_ = 0;
  arena_.Reset();
  reading_ = false;
  next_ = 0;
}

}  // namespace sluice
