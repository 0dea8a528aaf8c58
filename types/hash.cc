// HashColumn: one loop for each physical type.
#include "types/hash.h"

#include <cmath>

#include "common/error.h"
#include "types/array.h"
#include "types/bpchar.h"
#include "types/codec.h"
#include "types/compare.h"
#include "types/datetime.h"
#include "types/numeric.h"

namespace sluice {
namespace {

constexpr uint64_t kNullHash = 0x5851F42D4C957F2D;

uint64_t HashDouble(double value) {
  if (value == 0) value = 0;  // -0 too
  if (std::isnan(value)) value = NAN;
  return std::bit_cast<uint64_t>(value);
}

template <typename T, typename Hash>
void HashRows(const Column& column, size_t rows, uint64_t* hashes, Hash&& hash) {
  const T* values = column.Data<T>();
  if (column.nulls == nullptr && !column.constant()) {
    for (size_t i = 0; i < rows; i++) hashes[i] = HashCombine(hashes[i], hash(values[i]));
    return;
  }
  for (size_t i = 0; i < rows; i++) {
    hashes[i] =
        HashCombine(hashes[i], column.IsNull(i) ? kNullHash : hash(values[i & column.mask]));
  }
}

uint64_t HashValue(Oid type, std::string_view wire);

// Shape and elements; as equal arrays are equal in both.
uint64_t HashArray(std::string_view wire) {
  ArrayReader reader(wire);
  const ArrayHeader& header = reader.header();
  uint64_t state = static_cast<uint64_t>(header.dimensions);
  for (int i = 0; i < header.dimensions; i++) {
    state = HashCombine(state, static_cast<uint64_t>(header.lengths[i]) << 32 |
                                   static_cast<uint32_t>(header.lower_bounds[i]));
  }
  std::string_view element;
  bool is_null = false;
  while (reader.Next(&element, &is_null)) {
    state = HashCombine(state, is_null ? kNullHash : HashValue(header.element_type, element));
  }
  return state;
}

uint64_t HashValue(Oid type, std::string_view wire) {
  alignas(16) char slot[16];
  Column column{type, PhysicalOf(type), 0, nullptr, slot};
  DecodeBinaryValue(type, wire, &column, 0);
  uint64_t hash = 0;
  HashColumn(column, 1, &hash);
  return hash;
}

}  // namespace

uint64_t HashNumericWire(std::string_view wire) {
  const char* at = wire.data();
  int count = LoadBig<int16_t>(at);
  // Value 0 has no digits, whatever its scale.
  uint64_t head =
      static_cast<uint64_t>(LoadBig<uint16_t>(at + 4)) << 16 | LoadBig<uint16_t>(at + 2);
  const char* digits = at + kNumericHeaderBytes;
  if (count == 0) return (head >> 16) >= 0xC000 ? head : 0;
  if ((digits[0] | digits[1]) == 0 || (digits[2 * count - 2] | digits[2 * count - 1]) == 0) {
    std::string stripped;  // not in normal form: from a client
    AppendNumericWire(NumericFromWire(wire), &stripped);
    return HashNumericWire(stripped);
  }
  if (count <= 4) {
    // Two loads that overlap, rather than one of a length known only now.
    size_t size = 2 * static_cast<size_t>(count);
    uint64_t value = count == 1 ? HashLoad(digits, 2)
                                : HashLoad(digits, 4) | HashLoad(digits + size - 4, 4) << 32;
    return HashFold(value ^ kHashOdd0, head ^ kHashOdd2);
  }
  return HashFold(HashBytes({digits, 2 * static_cast<size_t>(count)}), head ^ kHashOdd2);
}

bool CanHash(Oid type) {
  switch (type) {
    case kJsonOid:
    case kJsonbOid:
      return false;
    case kUnknownOid:
      return true;
    default:
      break;
  }
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid) return HasBinaryCodec(element) && CanHash(element);
  return HasBinaryCodec(type);
}

void HashColumn(const Column& column, size_t rows, uint64_t* hashes) {
  auto as_word = [](auto value) { return static_cast<uint64_t>(value); };
  switch (column.physical) {
    case Physical::kBool:
      return HashRows<uint8_t>(column, rows, hashes, as_word);
    case Physical::kInt2:
      return HashRows<int16_t>(column, rows, hashes, as_word);
    case Physical::kInt4:
      return HashRows<int32_t>(column, rows, hashes, as_word);
    case Physical::kInt8:
      return HashRows<int64_t>(column, rows, hashes, as_word);
    case Physical::kUint4:
      return HashRows<uint32_t>(column, rows, hashes, as_word);
    case Physical::kFloat4:
      return HashRows<float>(column, rows, hashes, [](float x) { return HashDouble(x); });
    case Physical::kFloat8:
      return HashRows<double>(column, rows, hashes, HashDouble);
    case Physical::kInterval:
      return HashRows<Interval>(column, rows, hashes, [](const Interval& x) {
        __int128 span = IntervalSpan(x);
        return static_cast<uint64_t>(span) ^ static_cast<uint64_t>(span >> 64) * kHashOdd0;
      });
    case Physical::kUuid:
      return HashRows<Uuid>(column, rows, hashes, [](const Uuid& x) {
        return HashBytes({reinterpret_cast<const char*>(x.bytes), sizeof x});
      });
    case Physical::kBytes:
      break;
  }
  using View = std::string_view;
  switch (column.type) {
    case kNumericOid:
      return HashRows<View>(column, rows, hashes, HashNumericWire);
    case kBpcharOid:
      return HashRows<View>(column, rows, hashes, [](View x) { return HashBytes(TrimBpchar(x)); });
    case kTextOid:
    case kVarcharOid:
      return HashRows<View>(column, rows, hashes, HashBytes);
    default:
      break;
  }
  if (ElementTypeOf(column.type) != kInvalidOid && HasBinaryCodec(column.type)) {
    return HashRows<View>(column, rows, hashes, HashArray);
  }
  HashRows<View>(column, rows, hashes, HashBytes);
}

}  // namespace sluice
