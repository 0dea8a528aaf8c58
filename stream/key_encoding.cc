#include "stream/key_encoding.h"

#include <cmath>

#include "catalog/builtin.h"
#include "common/bytes.h"
#include "common/error.h"
#include "types/array.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/datetime.h"
#include "types/md5.h"
#include "types/sort_key.h"

namespace sluice {
namespace {

// Before each value. NULLs come last, or first where a sort key says so.
constexpr char kNullFirst = 0x01, kValue = 0x02, kNullLast = 0x03, kLongPrefix = 0x04;

template <typename Unsigned>
void AppendBig(Unsigned value, std::string* out) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(value >> shift));
}

template <typename Unsigned, typename Signed>
void AppendSigned(Signed value, std::string* out) {
  AppendBig(static_cast<Unsigned>(static_cast<Unsigned>(value) ^
                                  (Unsigned{1} << (sizeof(Unsigned) * 8 - 1))),
            out);
}

void AppendFloat(double value, std::string* out) {
  if (value == 0) value = 0;  // not -0
  if (std::isnan(value)) return AppendBig(~uint64_t{0}, out);
  auto bits = std::bit_cast<uint64_t>(value);
  AppendBig(bits >> 63 ? ~bits : bits | uint64_t{1} << 63, out);
}

void AppendText(std::string_view text, std::string* out) {
  for (char byte : text) {
    out->push_back(byte);
    if (byte == 0) out->push_back(static_cast<char>(0xFF));
  }
  out->append(2, '\0');
}

void AppendNumeric(std::string_view wire, std::string* out) {
  auto header = [&](size_t i) { return LoadBig<uint16_t>(wire.data() + 2 * i); };
  uint16_t count = header(0), sign = header(2);
  int weight = static_cast<int16_t>(header(1));
  if (sign == 0xF000 || sign == 0xD000 || sign == 0xC000) {
    out->push_back(sign == 0xF000 ? 0 : sign == 0xD000 ? 4 : 5);  // -Infinity, Infinity, NaN
    return;
  }
  size_t first = 0, end = count;
  while (first < end && header(4 + first) == 0) first++, weight--;
  while (end > first && header(3 + end) == 0) end--;
  if (first == end) return out->push_back(2);
  bool negative = sign == 0x4000;
  out->push_back(negative ? 1 : 3);
  size_t magnitude = out->size();
  AppendSigned<uint32_t>(weight, out);
  for (size_t i = first; i < end; i++) AppendBig(static_cast<uint16_t>(header(4 + i) + 1), out);
  AppendBig(uint16_t{0}, out);
  if (negative)
    for (size_t i = magnitude; i < out->size(); i++) (*out)[i] = static_cast<char>(~(*out)[i]);
}

void AppendValue(Oid type, const Column& values, size_t row, std::string* out);

void AppendArray(Oid element, std::string_view wire, std::string* out) {
  ArrayReader reader(wire);
  std::string_view bytes;
  bool is_null;
  while (reader.Next(&bytes, &is_null)) {
    out->push_back(is_null ? kNullLast : kValue);
    if (is_null) continue;
    alignas(16) char slot[16];
    Column value{element, PhysicalOf(element), 0, nullptr, slot};
    DecodeBinaryValue(element, bytes, &value, 0);
    AppendValue(element, value, 0, out);
  }
  out->push_back(0);
  const ArrayHeader& header = reader.header();
  out->push_back(static_cast<char>(header.dimensions));
  for (int i = 0; i < header.dimensions; i++) {
    AppendSigned<uint32_t>(header.lengths[i], out);
    AppendSigned<uint32_t>(header.lower_bounds[i], out);
  }
}

bool IsText(Oid type) {
  switch (type) {
    case kTextOid:
    case kVarcharOid:
    case kBpcharOid:
      return true;
    default:
      return false;
  }
}

bool IsEnum(Oid type) {
  const TypeInfo* info = FindType(type);
  return info != nullptr && info->kind == 'e';
}

void AppendBytesValue(Oid type, std::string_view value, std::string* out) {
  if (type == kNumericOid) return AppendNumeric(value, out);
  if (Oid element = ElementTypeOf(type); element != kInvalidOid)
    return AppendArray(element, value, out);
  if (type == kBpcharOid)
    while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  AppendText(value, out);
}

void AppendValue(Oid type, const Column& values, size_t row, std::string* out) {
  switch (values.physical) {
    case Physical::kBool:
      out->push_back(static_cast<char>(values.At<uint8_t>(row)));
      return;
    case Physical::kInt2:
      return AppendSigned<uint16_t>(values.At<int16_t>(row), out);
    case Physical::kInt4:
      return AppendSigned<uint32_t>(values.At<int32_t>(row), out);
    case Physical::kInt8:
      return AppendSigned<uint64_t>(values.At<int64_t>(row), out);
    case Physical::kUint4:
      return AppendBig(values.At<uint32_t>(row), out);
    case Physical::kFloat4:
      return AppendFloat(static_cast<double>(values.At<float>(row)), out);
    case Physical::kFloat8:
      return AppendFloat(values.At<double>(row), out);
    case Physical::kInterval:
      return AppendSigned<unsigned __int128>(IntervalSpan(values.At<Interval>(row)), out);
    case Physical::kUuid:
      out->append(reinterpret_cast<const char*>(values.At<Uuid>(row).bytes), sizeof(Uuid));
      return;
    case Physical::kBytes:
      return AppendBytesValue(type, values.At<std::string_view>(row), out);
  }
}

}  // namespace

bool CanEncodeKey(Oid type) {
  if (PhysicalOf(type) != Physical::kBytes || IsText(type) || IsEnum(type)) return true;
  if (type == kNumericOid || type == kByteaOid || type == kNameOid || type == kCharOid) return true;
  Oid element = ElementTypeOf(type);
  return element != kInvalidOid && HasBinaryCodec(element) && CanEncodeKey(element);
}

bool EncodesOrder(Oid type, Oid collation) {
  if (!CanEncodeKey(type) || IsEnum(type)) return false;
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid)
    return !IsText(element) || (CanCollate(collation) && FindCollator(collation)->is_c());
  return !IsText(type) || CanCollate(collation);
}

KeyEncoder::KeyEncoder(std::vector<KeyColumn> columns) : columns_(std::move(columns)) {
  for (const KeyColumn& column : columns_)
    if (!CanEncodeKey(column.type))
      Refuse("comparing values of type {} in a live view is not supported",
             FormatType(column.type));
  for (const KeyColumn& column : columns_) {
    const Collator* collator = IsText(column.type) ? FindCollator(column.collation) : nullptr;
    collators_.push_back(collator == nullptr || collator->is_c() ? nullptr : collator);
  }
}

static std::vector<KeyColumn> Ascending(std::span<const Oid> types) {
  std::vector<KeyColumn> columns;
  for (Oid type : types) columns.push_back({type});
  return columns;
}

KeyEncoder::KeyEncoder(std::span<const Oid> types) : KeyEncoder(Ascending(types)) {}

void KeyEncoder::Append(std::span<const Column> values, size_t row, std::string* out) const {
  for (size_t c = 0; c < columns_.size(); c++) AppendColumn(c, values[c], row, out);
}

void KeyEncoder::AppendColumn(size_t column, const Column& values, size_t row,
                              std::string* out) const {
  const KeyColumn& key = columns_[column];
  if (values.IsNull(row)) return out->push_back(key.nulls_first ? kNullFirst : kNullLast);
  out->push_back(kValue);
  size_t start = out->size();
  if (collators_[column] != nullptr) {
    sort_key_.clear();
    AppendSortKey(*collators_[column], values.At<std::string_view>(row), &sort_key_);
    AppendText(sort_key_, out);
  }
  AppendValue(key.type, values, row, out);
  if (key.descending)
    for (size_t i = start; i < out->size(); i++) (*out)[i] = static_cast<char>(~(*out)[i]);
}

std::string_view StoredKey(std::string_view key, std::string* buffer) {
  if (!IsLongKey(key)) return key;
  buffer->assign(key.substr(0, kCutKeyBytes));
  buffer->append(Md5Hex(key));
  return *buffer;
}

void AppendKeyPrefix(std::string_view key, std::string* out) {
  if (key.size() <= kKeyPrefixMax) {
    out->append(key);
    return;
  }
  out->push_back(kLongPrefix);
  out->append(Md5Hex(key));
}

}  // namespace sluice
