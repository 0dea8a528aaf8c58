// Binary format, and what types there are. Text is in codec_text.cc.
#include "types/codec.h"

#include "common/bytes.h"
#include "common/error.h"
#include "types/array.h"
#include "types/datetime.h"
#include "types/numeric.h"
#include "types/object_name.h"
#include "types/utf8.h"
#include "types/value_checks.h"

namespace sluice {
namespace {

struct ArrayType {
  Oid element, array;
};

constexpr ArrayType kArrayTypes[] = {
    {kBoolOid, kBoolArrayOid},
    {kByteaOid, kByteaArrayOid},
    {kCharOid, 1002},
    {kNameOid, kNameArrayOid},
    {kInt8Oid, kInt8ArrayOid},
    {kInt2Oid, kInt2ArrayOid},
    {kInt4Oid, kInt4ArrayOid},
    {kRegprocOid, 1008},
    {kTextOid, kTextArrayOid},
    {kOidOid, kOidArrayOid},
    {kXidOid, 1011},
    {kCidOid, 1012},
    {kJsonOid, kJsonArrayOid},
    {kXmlOid, 143},
    {kPointOid, 1017},
    {kFloat4Oid, kFloat4ArrayOid},
    {kFloat8Oid, kFloat8ArrayOid},
    {kMoneyOid, 791},
    {kInetOid, 1041},
    {kCidrOid, 651},
    {kBpcharOid, kBpcharArrayOid},
    {kVarcharOid, kVarcharArrayOid},
    {kDateOid, kDateArrayOid},
    {kTimeOid, kTimeArrayOid},
    {kTimestampOid, kTimestampArrayOid},
    {kTimestamptzOid, kTimestamptzArrayOid},
    {kIntervalOid, kIntervalArrayOid},
    {kTimetzOid, 1270},
    {kBitOid, 1561},
    {kVarbitOid, 1563},
    {kNumericOid, kNumericArrayOid},
    {kRegclassOid, 2210},
    {kRegtypeOid, 2211},
    {kUuidOid, kUuidArrayOid},
    {kJsonbOid, kJsonbArrayOid},
    {kAclitemOid, 1034},
    {kRegprocedureOid, 2207},
    {kRegoperOid, 2208},
    {kRegoperatorOid, 2209},
    {kRegconfigOid, 3735},
    {kRegdictionaryOid, 3770},
    {kRegnamespaceOid, 4090},
    {kRegroleOid, 4097},
    {kRegcollationOid, 4192},
    // Last: the array type of an element is the one above.
    {kInt2Oid, kInt2vectorOid},
    {kOidOid, kOidvectorOid},
};

[[noreturn]] void BadWire() {
  Throw(sqlstate::kInvalidBinaryRepresentation, "incorrect binary data format");
}

template <typename T>
T Decode(const char* from) {
  if constexpr (sizeof(T) == 4 && std::is_same_v<T, float>)
    return std::bit_cast<float>(LoadBig<uint32_t>(from));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(LoadBig<uint64_t>(from));
  else
    return LoadBig<T>(from);
}
template <>
uint8_t Decode<uint8_t>(const char* from) {
  return *from != 0;
}
template <>
Interval Decode<Interval>(const char* from) {
  return {LoadBig<int64_t>(from), LoadBig<int32_t>(from + 8), LoadBig<int32_t>(from + 12)};
}
template <>
Uuid Decode<Uuid>(const char* from) {
  Uuid uuid;
  std::memcpy(uuid.bytes, from, sizeof uuid);
  return uuid;
}

template <typename T>
void DecodeFixed(const char* const* at, const int32_t* lengths, size_t count, uint8_t* nulls_buffer,
                 Column* to) {
  T* out = to->Data<T>();
  bool bad = false, any_null = false;
  for (size_t i = 0; i < count; i++) {
    if (__builtin_expect(lengths[i] == static_cast<int32_t>(sizeof(T)), 1)) {
      out[i] = Decode<T>(at[i]);
    } else {
      bad |= lengths[i] != -1;
      any_null = true;
      nulls_buffer[i] = 1;
    }
  }
  if (bad) BadWire();
  if (any_null) to->nulls = nulls_buffer;
}

// `check` is called for each value; it throws on what must not get in.
template <typename Check>
void DecodeViews(const char* const* at, const int32_t* lengths, size_t count, uint8_t* nulls_buffer,
                 Column* to, Check&& check) {
  auto* out = to->Data<std::string_view>();
  bool any_null = false;
  for (size_t i = 0; i < count; i++) {
    if (__builtin_expect(lengths[i] >= 0, 1)) {
      out[i] = std::string_view(at[i], static_cast<size_t>(lengths[i]));
      check(out[i]);
    } else {
      any_null = true;
      nulls_buffer[i] = 1;
    }
  }
  if (any_null) to->nulls = nulls_buffer;
}

template <typename T>
void EncodeFixed(T value, std::string* out) {
  char bytes[sizeof(T)];
  StoreBig<T>(bytes, value);
  out->append(bytes, sizeof(T));
}

}  // namespace

Oid ElementTypeOf(Oid array_type) {
  for (const ArrayType& type : kArrayTypes) {
    if (type.array == array_type) return type.element;
  }
  return kInvalidOid;
}

Oid ArrayTypeOf(Oid element_type) {
  for (const ArrayType& type : kArrayTypes) {
    if (type.element == element_type) return type.array;
  }
  return kInvalidOid;
}

bool HasBinaryCodec(Oid type) {
  switch (type) {
    case kBoolOid:
    case kByteaOid:
    case kCharOid:
    case kNameOid:
    case kInt8Oid:
    case kInt2Oid:
    case kInt4Oid:
    case kRegprocOid:
    case kTextOid:
    case kOidOid:
    case kXidOid:
    case kCidOid:
    case kJsonOid:
    case kFloat4Oid:
    case kFloat8Oid:
    case kUnknownOid:
    case kBpcharOid:
    case kVarcharOid:
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kIntervalOid:
    case kNumericOid:
    case kRegclassOid:
    case kRegtypeOid:
    case kUuidOid:
    case kJsonbOid:
    case kPgNodeTreeOid:
    case kAclitemOid:
      return true;
    default:
      if (IsObjectName(type)) return true;
      break;
  }
  Oid element = ElementTypeOf(type);
  return element != kInvalidOid && HasBinaryCodec(element);
}

namespace {

// What the types' receive functions refuse although the length is right.
void CheckRange(Oid type, const char* bytes) {
  const char* bad = nullptr;
  if (type == kDateOid) {
    int32_t date = LoadBig<int32_t>(bytes);
    if (!IsInfinite(date) && !IsValidDate(date)) bad = "date";
  } else if (type == kTimestampOid || type == kTimestamptzOid) {
    int64_t timestamp = LoadBig<int64_t>(bytes);
    if (!IsInfinite(timestamp) && !IsValidTimestamp(timestamp)) bad = "timestamp";
  } else if (type == kTimeOid) {
    int64_t time = LoadBig<int64_t>(bytes);
    if (time < 0 || time > kMicrosPerDay) bad = "time";
  }
  if (bad != nullptr) Throw(sqlstate::kDatetimeFieldOverflow, "{} out of range", bad);
}

}  // namespace

void CheckBinaryValue(Oid type, std::string_view bytes) {
  Physical physical = PhysicalOf(type);
  if (physical != Physical::kBytes) {
    if (bytes.size() != WidthOf(physical)) BadWire();
    return CheckRange(type, bytes.data());
  }
  if (IsWireObjectName(type) && bytes.size() != sizeof(Oid)) BadWire();
  switch (type) {
    case kNumericOid:
      return CheckNumericWire(bytes);
    case kJsonbOid:
      if (bytes.empty() || bytes[0] != 1) {
        Throw(sqlstate::kInternalError, "unsupported jsonb version number {}",
              bytes.empty() ? 0 : static_cast<int>(bytes[0]));
      }
      return CheckUtf8(bytes);
    case kCharOid:
      if (bytes.size() != 1) BadWire();
      return;
    case kTextOid:
    case kVarcharOid:
    case kBpcharOid:
    case kNameOid:
    case kJsonOid:
    case kUnknownOid:
    case kPgNodeTreeOid:
    case kAclitemOid:
      return CheckUtf8(bytes);
    default:
      break;
  }
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid && HasBinaryCodec(element)) CheckArrayWire(element, bytes);
}

void DecodeBinaryValue(Oid type, std::string_view bytes, Column* to, size_t row) {
  CheckBinaryValue(type, bytes);
  const char* from = bytes.data();
  switch (PhysicalOf(type)) {
    case Physical::kBool:
      to->Data<uint8_t>()[row] = Decode<uint8_t>(from);
      break;
    case Physical::kInt2:
      to->Data<int16_t>()[row] = Decode<int16_t>(from);
      break;
    case Physical::kInt4:
      to->Data<int32_t>()[row] = Decode<int32_t>(from);
      break;
    case Physical::kInt8:
      to->Data<int64_t>()[row] = Decode<int64_t>(from);
      break;
    case Physical::kUint4:
      to->Data<uint32_t>()[row] = Decode<uint32_t>(from);
      break;
    case Physical::kFloat4:
      to->Data<float>()[row] = Decode<float>(from);
      break;
    case Physical::kFloat8:
      to->Data<double>()[row] = Decode<double>(from);
      break;
    case Physical::kInterval:
      to->Data<Interval>()[row] = Decode<Interval>(from);
      break;
    case Physical::kUuid:
      to->Data<Uuid>()[row] = Decode<Uuid>(from);
      break;
    case Physical::kBytes:
      to->Data<std::string_view>()[row] = bytes;
      break;
  }
}

void DecodeBinaryColumn(Oid type, const char* const* at, const int32_t* lengths, size_t count,
                        uint8_t* nulls_buffer, Column* to) {
  switch (PhysicalOf(type)) {
    case Physical::kBool:
      return DecodeFixed<uint8_t>(at, lengths, count, nulls_buffer, to);
    case Physical::kInt2:
      return DecodeFixed<int16_t>(at, lengths, count, nulls_buffer, to);
    case Physical::kInt4:
      return DecodeFixed<int32_t>(at, lengths, count, nulls_buffer, to);
    case Physical::kInt8:
      return DecodeFixed<int64_t>(at, lengths, count, nulls_buffer, to);
    case Physical::kUint4:
      return DecodeFixed<uint32_t>(at, lengths, count, nulls_buffer, to);
    case Physical::kFloat4:
      return DecodeFixed<float>(at, lengths, count, nulls_buffer, to);
    case Physical::kFloat8:
      return DecodeFixed<double>(at, lengths, count, nulls_buffer, to);
    case Physical::kInterval:
      return DecodeFixed<Interval>(at, lengths, count, nulls_buffer, to);
    case Physical::kUuid:
      return DecodeFixed<Uuid>(at, lengths, count, nulls_buffer, to);
    case Physical::kBytes:
      break;
  }
  switch (type) {
    case kTextOid:
    case kVarcharOid:
    case kBpcharOid:
    case kNameOid:
    case kByteaOid:
    case kJsonOid:
      return DecodeViews(at, lengths, count, nulls_buffer, to, [](std::string_view) {});
    case kNumericOid:
      return DecodeViews(at, lengths, count, nulls_buffer, to, CheckNumericWire);
    default:
      return DecodeViews(at, lengths, count, nulls_buffer, to,
                         [type](std::string_view bytes) { CheckBinaryValue(type, bytes); });
  }
}

void AppendBinary(const Column& from, size_t row, std::string* out) {
  switch (from.physical) {
    case Physical::kBool:
      out->push_back(static_cast<char>(from.At<uint8_t>(row)));
      break;
    case Physical::kInt2:
      EncodeFixed(from.At<int16_t>(row), out);
      break;
    case Physical::kInt4:
      EncodeFixed(from.At<int32_t>(row), out);
      break;
    case Physical::kInt8:
      EncodeFixed(from.At<int64_t>(row), out);
      break;
    case Physical::kUint4:
      EncodeFixed(from.At<uint32_t>(row), out);
      break;
    case Physical::kFloat4:
      EncodeFixed(std::bit_cast<uint32_t>(from.At<float>(row)), out);
      break;
    case Physical::kFloat8:
      EncodeFixed(std::bit_cast<uint64_t>(from.At<double>(row)), out);
      break;
    case Physical::kInterval: {
      const Interval& interval = from.At<Interval>(row);
      EncodeFixed(interval.microseconds, out);
      EncodeFixed(interval.days, out);
      EncodeFixed(interval.months, out);
      break;
    }
    case Physical::kUuid:
      out->append(reinterpret_cast<const char*>(from.At<Uuid>(row).bytes), sizeof(Uuid));
      break;
    case Physical::kBytes:
      out->append(from.At<std::string_view>(row));
      break;
  }
}

Column MakeConstantColumn(Oid type, std::string_view binary, bool is_null, Arena* arena) {
  Column column;
  column.type = type;
  column.physical = PhysicalOf(type);
  column.mask = 0;
  size_t width = WidthOf(column.physical);
  column.data = arena->Allocate(width, 16);
  std::memset(column.data, 0, width);
  if (is_null) {
    column.nulls = arena->NewArray<uint8_t>(1).data();
    column.nulls[0] = 1;
  } else {
    DecodeBinaryValue(
        type, column.physical == Physical::kBytes ? arena->CopyString(binary) : binary, &column, 0);
  }
  return column;
}

}  // namespace sluice
