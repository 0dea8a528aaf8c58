#include "executor/column_buffer.h"

namespace sluice {

std::vector<Oid> ColumnTypes(std::span<const OutputColumn> columns) {
  std::vector<Oid> types;
  for (const OutputColumn& column : columns) types.push_back(column.type);
  return types;
}

ColumnBuffer::ColumnBuffer(Oid type) {
  column.type = type;
  column.physical = PhysicalOf(type);
  data_ = std::make_unique_for_overwrite<uint64_t[]>(kBatchRows * WidthOf(column.physical) / 8);
  column.data = data_.get();
}

void ColumnBuffer::Clear() {
  column.nulls = nullptr;
  column.mask = ~size_t{0};
  column.data = data_.get();
}

uint8_t* ColumnBuffer::Nulls() {
  if (column.nulls == nullptr) {
    if (nulls_ == nullptr) nulls_ = std::make_unique_for_overwrite<uint8_t[]>(kBatchRows);
    std::memset(nulls_.get(), 0, kBatchRows);
    column.nulls = nulls_.get();
  }
  return column.nulls;
}

void GatherColumn(const Column& from, const uint32_t* rows, size_t count, ColumnBuffer* to) {
  to->Clear();
  if (count == 0) return;
  if (from.constant()) {
    CopyRows(from, nullptr, 1, to);
    to->column.mask = 0;
    return;
  }
  WithWidth(WidthOf(from.physical), [&](auto tag) {
    using T = decltype(tag);
    const T* source = from.Data<T>();
    T* target = to->column.Data<T>();
    for (size_t i = 0; i < count; i++) target[i] = source[rows[i]];
  });
  if (from.nulls != nullptr) {
    uint8_t* nulls = to->Nulls();
    for (size_t i = 0; i < count; i++) nulls[i] = from.nulls[rows[i]];
  }
}

void CopyRows(const Column& from, const uint32_t* rows, size_t count, ColumnBuffer* to) {
  WithWidth(WidthOf(from.physical), [&](auto tag) {
    using T = decltype(tag);
    const T* source = from.Data<T>();
    T* target = to->column.Data<T>();
    size_t mask = from.mask;
    if (rows == nullptr) {
      for (size_t i = 0; i < count; i++) target[i] = source[i & mask];
    } else {
      for (size_t i = 0; i < count; i++) target[rows[i]] = source[rows[i] & mask];
    }
  });
  if (from.nulls == nullptr && to->column.nulls == nullptr) return;
  uint8_t* nulls = to->Nulls();
  for (size_t i = 0; i < count; i++) {
    size_t row = rows == nullptr ? i : rows[i];
    nulls[row] = from.IsNull(row);
  }
}

void AppendRows(const Column& from, const uint32_t* rows, size_t count, size_t at,
                ColumnBuffer* to) {
  WithWidth(WidthOf(from.physical), [&](auto tag) {
    using T = decltype(tag);
    const T* source = from.Data<T>();
    T* target = to->column.Data<T>() + at;
    size_t mask = from.mask;
    if (rows == nullptr) {
      for (size_t i = 0; i < count; i++) target[i] = source[i & mask];
    } else {
      for (size_t i = 0; i < count; i++) target[i] = source[rows[i] & mask];
    }
  });
  if (from.nulls == nullptr) return;
  uint8_t* nulls = to->Nulls() + at;
  for (size_t i = 0; i < count; i++) nulls[i] = from.IsNull(rows == nullptr ? i : rows[i]);
}

void AppendNulls(size_t count, size_t at, ColumnBuffer* to) {
  if (count == 0) return;
  size_t width = WidthOf(to->column.physical);
  std::memset(static_cast<char*>(to->column.data) + at * width, 0, count * width);
  std::memset(to->Nulls() + at, 1, count);
}

Batch ConstantRow(const Batch& batch, size_t row, std::vector<Column>* columns) {
  columns->assign(batch.columns.begin(), batch.columns.end());
  for (Column& column : *columns) {
    if (column.constant()) continue;
    column.data = static_cast<char*>(column.data) + row * WidthOf(column.physical);
    if (column.nulls != nullptr) column.nulls += row;
    column.mask = 0;
  }
  return Batch{1, *columns};
}

Column CopyValue(const Column& from, size_t row, Arena* arena) {
  Column result = from;
  size_t width = WidthOf(from.physical);
  result.mask = 0;
  result.data = arena->Allocate(width);
  result.nulls = nullptr;
  if (from.IsNull(row)) {
    std::memset(result.data, 0, width);
    result.nulls = arena->NewArray<uint8_t>(1).data();
    result.nulls[0] = 1;
  } else if (from.physical == Physical::kBytes) {
    new (result.data) std::string_view(arena->CopyString(from.At<std::string_view>(row)));
  } else {
    std::memcpy(result.data, static_cast<char*>(from.data) + (row & from.mask) * width, width);
  }
  return result;
}

Batch SliceBatch(const Batch& batch, size_t first, size_t rows, std::vector<Column>* columns) {
  columns->assign(batch.columns.begin(), batch.columns.end());
  for (Column& column : *columns) {
    if (column.constant()) continue;
    column.data = static_cast<char*>(column.data) + first * WidthOf(column.physical);
    if (column.nulls != nullptr) column.nulls += first;
  }
  return Batch{rows, *columns};
}

BatchBuffer::BatchBuffer(std::span<const OutputColumn> columns) {
  buffers_.reserve(columns.size());
  for (const OutputColumn& column : columns) buffers_.emplace_back(column.type);
  columns_.resize(buffers_.size());
}

BatchBuffer::BatchBuffer(std::span<const Oid> types) {
  buffers_.reserve(types.size());
  for (Oid type : types) buffers_.emplace_back(type);
  columns_.resize(buffers_.size());
}

void BatchBuffer::Clear() {
  for (ColumnBuffer& buffer : buffers_) buffer.Clear();
}

void BatchBuffer::Show(size_t rows, Batch* batch) {
  for (size_t i = 0; i < buffers_.size(); i++) columns_[i] = buffers_[i].column;
  batch->rows = rows;
  batch->columns = columns_;
}

}  // namespace sluice
