#include "executor/packed_key.h"

#include <cstring>

#include "executor/column_buffer.h"
#include "executor/key_equality.h"

namespace sluice {
namespace {

constexpr size_t kColumnsMax = 4;
constexpr size_t kKeyBytes = 16;

// The bytes of a string of up to 15 bytes as a little-endian number, without reading beyond it.
inline PackedKey LoadShort(const char* data, size_t size) {
  PackedKey value;
  if (size >= 8) {
    std::memcpy(&value.low, data, 8);
    if (size > 8) {
      uint64_t last;
      std::memcpy(&last, data + size - 8, 8);
      value.high = last >> (8 * (16 - size));
    }
  } else if (size >= 4) {
    uint32_t first, last;
    std::memcpy(&first, data, 4);
    std::memcpy(&last, data + size - 4, 4);
    value.low = first | static_cast<uint64_t>(last) << (8 * (size - 4));
  } else if (size > 0) {
    value.low = static_cast<uint8_t>(data[0]) |
                static_cast<uint64_t>(static_cast<uint8_t>(data[size / 2])) << (8 * (size / 2)) |
                static_cast<uint64_t>(static_cast<uint8_t>(data[size - 1])) << (8 * (size - 1));
  }
  return value;
}

}  // namespace

bool KeyPacker::Plan(std::span<const Oid> types, std::vector<Place>* places, size_t* string_at) {
  if (types.empty() || types.size() > kColumnsMax) return false;
  size_t low_used = 1, high_used = 0, strings = 0;
  for (Oid type : types) {
    if (!EqualMeansSameBytes(type)) return false;
    Physical physical = PhysicalOf(type);
    size_t width = WidthOf(physical);
    if (physical == Physical::kBytes) {
      strings++;
      places->push_back({0, 0});
    } else if (width == 16) {
      return false;
    } else if (low_used + width <= 8) {
      places->push_back({static_cast<uint8_t>(low_used), static_cast<uint8_t>(width)});
      low_used += width;
    } else if (high_used + width <= 8) {
      places->push_back({static_cast<uint8_t>(8 + high_used), static_cast<uint8_t>(width)});
      high_used += width;
    } else {
      return false;
    }
  }
  if (strings > 1 || (strings == 1 && high_used > 0)) return false;
  *string_at = low_used == 1 ? 1 : 8;
  return true;
}

bool KeyPacker::CanPack(std::span<const Oid> types) {
  std::vector<Place> places;
  size_t string_at;
  return Plan(types, &places, &string_at);
}

KeyPacker::KeyPacker(std::span<const Oid> types) {
  bool planned = Plan(types, &places_, &string_at_);
  SLUICE_ASSERT(planned);
}

size_t KeyPacker::Pack(std::span<const Column> columns, size_t rows, PackedKey* keys,
                       uint8_t* too_long) const {
  std::memset(static_cast<void*>(keys), 0, sizeof(PackedKey) * rows);
  size_t long_count = 0;
  for (size_t c = 0; c < places_.size(); c++) {
    const Column& column = columns[c];
    if (places_[c].width_bytes == 0) {
      long_count = PackString(column, c, rows, keys, too_long);
      continue;
    }
    bool high = places_[c].byte >= 8;
    int shift = 8 * (places_[c].byte & 7);
    WithWidth(places_[c].width_bytes, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (sizeof(T) <= 8) {
        for (size_t i = 0; i < rows; i++) {
          uint64_t bits = static_cast<uint64_t>(column.At<T>(i).bits) << shift;
          if (column.IsNull(i)) {
            keys[i].low |= uint64_t{1} << c;
          } else if (high) {
            keys[i].high |= bits;
          } else {
            keys[i].low |= bits;
          }
        }
      }
    });
  }
  return long_count;
}

size_t KeyPacker::PackString(const Column& column, size_t index, size_t rows, PackedKey* keys,
                             uint8_t* too_long) const {
  size_t size_max = kKeyBytes - string_at_;
  size_t long_count = 0;
  for (size_t i = 0; i < rows; i++) {
    if (column.IsNull(i)) {
      keys[i].low |= uint64_t{1} << index;
      continue;
    }
    const std::string_view& value = column.At<std::string_view>(i);
    if (value.size() > size_max) {
      if (long_count++ == 0) std::memset(too_long, 0, kBatchRows);
      too_long[i] = 1;
      continue;
    }
    PackedKey bytes = LoadShort(value.data(), value.size());
    keys[i].low |= static_cast<uint64_t>(value.size()) << 4;
    if (string_at_ == 1) {
      keys[i].low |= bytes.low << 8;
      keys[i].high = bytes.high << 8 | bytes.low >> 56;
    } else {
      keys[i].high = bytes.low;
    }
  }
  return long_count;
}

}  // namespace sluice
