#include "stream/row_codec.h"

#include "common/error.h"

namespace sluice {

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

uint64_t TakeVarint(std::string_view* from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from->empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(from->front());
    from->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  Throw(sqlstate::kDataCorrupted, "the view store holds a damaged number");
}

std::string_view TakeBytes(size_t count, std::string_view* from) {
  if (from->size() < count) Throw(sqlstate::kDataCorrupted, "the view store holds a short row");
  std::string_view bytes = from->substr(0, count);
  from->remove_prefix(count);
  return bytes;
}

RowCodec::RowCodec(std::span<const Oid> types) : types_(types.begin(), types.end()) {
  for (Oid type : types) {
    Physical physical = PhysicalOf(type);
    widths_.push_back(physical == Physical::kBytes ? 0 : static_cast<uint32_t>(WidthOf(physical)));
  }
}

void RowCodec::Append(std::span<const Column> columns, size_t row, std::string* out) const {
  size_t bitmap = out->size();
  out->append((types_.size() + 7) / 8, '\0');
  for (size_t c = 0; c < types_.size(); c++) {
    const Column& column = columns[c];
    if (column.IsNull(row)) {
      (*out)[bitmap + c / 8] |= static_cast<char>(1 << c % 8);
    } else if (widths_[c] == 0) {
      std::string_view value = column.At<std::string_view>(row);
      AppendVarint(value.size(), out);
      out->append(value);
    } else {
      out->append(static_cast<const char*>(column.data) + (row & column.mask) * widths_[c],
                  widths_[c]);
    }
  }
}

void RowCodec::Decode(std::string_view bytes, size_t row, std::span<const int> place,
                      BatchBuffer* to) const {
  std::string_view bitmap = TakeBytes((types_.size() + 7) / 8, &bytes);
  for (size_t c = 0; c < types_.size(); c++) {
    int target = place.empty() ? static_cast<int>(c) : place[c];
    ColumnBuffer* buffer = target < 0 ? nullptr : &(*to)[static_cast<size_t>(target)];
    if (bitmap[c / 8] >> c % 8 & 1) {
      if (buffer != nullptr) buffer->Nulls()[row] = 1;
      continue;
    }
    bool variable = widths_[c] == 0;
    std::string_view value = TakeBytes(variable ? TakeVarint(&bytes) : widths_[c], &bytes);
    if (buffer == nullptr) continue;
    if (variable)
      buffer->column.Data<std::string_view>()[row] = value;
    else
      std::memcpy(buffer->column.Data<char>() + row * widths_[c], value.data(), widths_[c]);
  }
  if (!bytes.empty())
    Throw(sqlstate::kDataCorrupted, "the view store holds a row that is too long");
}

}  // namespace sluice
