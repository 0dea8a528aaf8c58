#include "executor/row_comparator.h"

#include <cmath>

#include "common/bytes.h"
#include "common/error.h"
#include "types/collation.h"

namespace sluice {
namespace {

uint64_t FlipSign(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}

// NaN last, -0 like 0.
uint64_t OrderedBits(double value) {
  if (std::isnan(value)) return ~uint64_t{0};
  if (value == 0) value = 0;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

uint64_t FirstBytes(std::string_view value) {
  uint64_t bits = 0;
  if (value.size() >= 8) return LoadBig<uint64_t>(value.data());
  for (size_t i = 0; i < value.size(); i++) {
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(value[i])) << (56 - 8 * i);
  }
  return bits;
}

// Monotonic, not exact: sign, then weight, then the first two base-10000 digits.
uint64_t NumericPrefix(std::string_view wire) {
  uint16_t digits = LoadBig<uint16_t>(wire.data());
  int16_t weight = LoadBig<int16_t>(wire.data() + 2);
  uint16_t sign = LoadBig<uint16_t>(wire.data() + 4);
  if (sign == 0xC000) return ~uint64_t{0};
  if (sign == 0xD000) return ~uint64_t{0} - 1;
  if (sign == 0xF000) return 0;
  // Wire values may have leading zero digits: skip them, or the weight misleads.
  size_t first = 0;
  while (first < digits && LoadBig<uint16_t>(wire.data() + 8 + 2 * first) == 0) first++;
  constexpr uint64_t kZero = uint64_t{1} << 63;
  if (first == digits) return kZero;
  uint64_t magnitude = static_cast<uint64_t>(weight - static_cast<int>(first) + 0x10000) << 44;
  for (size_t i = 0; i < 3 && first + i < digits; i++) {
    magnitude |= static_cast<uint64_t>(LoadBig<uint16_t>(wire.data() + 8 + 2 * (first + i)))
                 << (30 - 14 * i);
  }
  return sign == 0x4000 ? kZero - magnitude - 1 : kZero + magnitude;
}

bool HasExactPrefix(Oid type) {
  switch (PhysicalOf(type)) {
    case Physical::kInterval:
    case Physical::kUuid:
    case Physical::kBytes:
      return false;
    default:
      return true;
  }
}

}  // namespace

const Collator* CollatorOrNull(Oid collation) {
  return collation == kInvalidOid ? nullptr : FindCollator(collation);
}

RowComparator::RowComparator(const RowLayout* layout, std::span<const RowSortKey> keys)
    : layout_(layout) {
  for (const RowSortKey& sort : keys) {
    Oid type = layout->type(sort.column);
    CompareFn compare = FindCompare(type);
    if (compare == nullptr) Refuse("ordering values of type OID {} is not supported here", type);
    Column view{type, PhysicalOf(type), 0, nullptr, nullptr};
    keys_.push_back({sort, compare, CollatorOrNull(sort.collation), view, view});
  }
  prefix_is_exact_ = !keys.empty() && HasExactPrefix(layout->type(keys[0].column));
}

int RowComparator::Compare(const char* a, const char* b, size_t from) {
  for (size_t k = from; k < keys_.size(); k++) {
    Key& key = keys_[k];
    bool null_a = layout_->IsNull(a, key.sort.column);
    bool null_b = layout_->IsNull(b, key.sort.column);
    if (null_a || null_b) {
      if (null_a && null_b) continue;
      return null_a == key.sort.nulls_first ? -1 : 1;
    }
    layout_->Point(a, key.sort.column, &key.view_a);
    layout_->Point(b, key.sort.column, &key.view_b);
    int order = key.compare(key.view_a, 0, key.view_b, 0, key.collation);
    if (order != 0) return key.sort.descending ? -order : order;
  }
  return 0;
}

uint64_t RowComparator::Prefix(const Column& column, size_t row) const {
  const Key& key = keys_[0];
  if (column.IsNull(row)) return key.sort.nulls_first ? 0 : ~uint64_t{0};
  uint64_t prefix = 0;
  switch (key.view_a.physical) {
    case Physical::kBool:
      prefix = column.At<uint8_t>(row);
      break;
    case Physical::kInt2:
      prefix = FlipSign(column.At<int16_t>(row));
      break;
    case Physical::kInt4:
      prefix = FlipSign(column.At<int32_t>(row));
      break;
    case Physical::kInt8:
      prefix = FlipSign(column.At<int64_t>(row));
      break;
    case Physical::kUint4:
      prefix = column.At<uint32_t>(row);
      break;
    case Physical::kFloat4:
      prefix = OrderedBits(column.At<float>(row));
      break;
    case Physical::kFloat8:
      prefix = OrderedBits(column.At<double>(row));
      break;
    case Physical::kUuid:
      prefix = LoadBig<uint64_t>(&column.At<Uuid>(row));
      break;
    case Physical::kInterval:
      break;
    case Physical::kBytes: {
      std::string_view value = column.At<std::string_view>(row);
      Oid type = layout_->type(key.sort.column);
      if (type == kNumericOid) {
        prefix = NumericPrefix(value);
      } else if (type == kByteaOid || ((type == kTextOid || type == kVarcharOid) &&
                                       (key.collation == nullptr || key.collation->is_c()))) {
        prefix = FirstBytes(value);
      }
      break;
    }
  }
  return key.sort.descending ? ~prefix : prefix;
}

}  // namespace sluice
