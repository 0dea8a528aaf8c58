#include "executor/row_layout.h"

namespace sluice {

RowLayout::RowLayout(std::span<const Oid> types, size_t header_bytes)
    : header_bytes_(header_bytes) {
  size_t offset = (header_bytes + types.size() + 7) & ~size_t{7};
  for (Oid type : types) {
    Physical physical = PhysicalOf(type);
    size_t width = WidthOf(physical);
    size_t alignment = std::min<size_t>(width, 8);
    offset = (offset + alignment - 1) & ~(alignment - 1);
    if (physical == Physical::kBytes) bytes_columns_.push_back(columns_.size());
    columns_.push_back(
        {type, physical, static_cast<uint32_t>(width), static_cast<uint32_t>(offset)});
    offset += width;
  }
  fixed_bytes_ = (offset + 7) & ~size_t{7};
}

void RowLayout::Store(std::span<const Column> columns, const uint32_t* rows, size_t count,
                      Arena* arena, char** out) const {
  SLUICE_ASSERT(columns.size() >= columns_.size());
  auto row_at = [rows](size_t i) { return rows == nullptr ? i : size_t{rows[i]}; };
  for (size_t i = 0; i < count; i++) {
    size_t bytes = fixed_bytes_;
    size_t row = row_at(i);
    for (size_t c : bytes_columns_) {
      if (!columns[c].IsNull(row)) bytes += columns[c].At<std::string_view>(row).size();
    }
    out[i] = static_cast<char*>(arena->Allocate((bytes + 7) & ~size_t{7}, 8));
  }
  for (size_t c = 0; c < columns_.size(); c++) {
    const Column& column = columns[c];
    size_t null_offset = header_bytes_ + c;
    for (size_t i = 0; i < count; i++) out[i][null_offset] = column.IsNull(row_at(i));
    if (columns_[c].physical == Physical::kBytes) continue;
    WithWidth(columns_[c].width_bytes, [&](auto tag) {
      using T = decltype(tag);
      for (size_t i = 0; i < count; i++) {
        *reinterpret_cast<T*>(out[i] + columns_[c].offset) = column.At<T>(row_at(i));
      }
    });
  }
  if (bytes_columns_.empty()) return;
  for (size_t i = 0; i < count; i++) {
    char* end = out[i] + fixed_bytes_;
    size_t row = row_at(i);
    for (size_t c : bytes_columns_) {
      std::string_view value;
      if (!columns[c].IsNull(row)) value = columns[c].At<std::string_view>(row);
      if (!value.empty()) std::memcpy(end, value.data(), value.size());
      new (out[i] + columns_[c].offset) std::string_view(end, value.size());
      end += value.size();
    }
  }
}

Column RowLayout::View(const char* row, size_t column) const {
  const ColumnPlace& place = columns_[column];
  Column view{place.type, place.physical, 0, nullptr, const_cast<char*>(row) + place.offset};
  if (IsNull(row, column)) {
    view.nulls = reinterpret_cast<uint8_t*>(const_cast<char*>(row)) + header_bytes_ + column;
  }
  return view;
}

void RowLayout::Load(const char* const* rows, size_t count, size_t column, ColumnBuffer* to) const {
  to->Clear();
  const ColumnPlace& place = columns_[column];
  size_t null_offset = header_bytes_ + column;
  bool nulls = false;
  for (size_t i = 0; i < count; i++) nulls |= rows[i] == nullptr || rows[i][null_offset] != 0;
  if (nulls) {
    uint8_t* null_map = to->Nulls();
    for (size_t i = 0; i < count; i++)
      null_map[i] = rows[i] == nullptr || rows[i][null_offset] != 0;
  }
  WithWidth(place.width_bytes, [&](auto tag) {
    using T = decltype(tag);
    T* target = to->column.Data<T>();
    for (size_t i = 0; i < count; i++) {
      target[i] = rows[i] == nullptr ? T{} : *reinterpret_cast<const T*>(rows[i] + place.offset);
    }
  });
}

size_t RowLayout::RowBytes(const char* row) const {
  size_t bytes = fixed_bytes_;
  for (size_t c : bytes_columns_) {
    bytes += reinterpret_cast<const std::string_view*>(Slot(row, c))->size();
  }
  return (bytes + 7) & ~size_t{7};
}

void RowLayout::Relocate(char* row) const {
  char* end = row + fixed_bytes_;
  for (size_t c : bytes_columns_) {
    auto* view = reinterpret_cast<std::string_view*>(row + columns_[c].offset);
    *view = std::string_view(end, view->size());
    end += view->size();
  }
}

}  // namespace sluice
