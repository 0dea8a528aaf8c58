// Text format: columns to text, text to wire values.
#include "common/bytes.h"
#include "common/error.h"
#include "types/array.h"
#include "types/codec.h"
#include "types/datetime.h"
#include "types/json.h"
#include "types/number_text.h"
#include "types/numeric.h"
#include "types/object_name.h"
#include "types/typmod.h"
#include "types/utf8.h"

namespace sluice {
namespace {

template <typename T>
std::string_view Store(T value, Arena* arena) {
  char* to = static_cast<char*>(arena->Allocate(sizeof(T), 1));
  StoreBig<T>(to, value);
  return {to, sizeof(T)};
}

std::string_view StoreInterval(const Interval& interval, Arena* arena) {
  char* to = static_cast<char*>(arena->Allocate(16, 1));
  StoreBig<int64_t>(to, interval.microseconds);
  StoreBig<int32_t>(to + 8, interval.days);
  StoreBig<int32_t>(to + 12, interval.months);
  return {to, 16};
}

// int2vector and oidvector: one dimension from 0 without NULLs, written with spaces between.
void AppendVectorText(std::string_view wire, std::string* out) {
  ArrayReader reader(wire);
  std::string_view element;
  bool is_null = false;
  for (bool first = true; reader.Next(&element, &is_null); first = false) {
    if (!first) *out += ' ';
    if (element.size() == 2)
      AppendInteger(LoadBig<int16_t>(element.data()), out);
    else
      AppendInteger(LoadBig<uint32_t>(element.data()), out);
  }
}

std::string_view ParseVector(Oid type, std::string_view text, Arena* arena) {
  bool small = type == kInt2vectorOid;
  ArrayHeader header;
  header.element_type = small ? kInt2Oid : kOidOid;
  std::string elements, wire;
  for (size_t at = 0;;) {
    while (at < text.size() && text[at] == ' ') at++;
    if (at == text.size()) break;
    size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    char bytes[4];
    if (small)
      StoreBig(bytes, static_cast<int16_t>(ParseInteger(word, INT16_MIN, INT16_MAX, "smallint")));
    else
      StoreBig(bytes, ParseOid(word, "oid"));
    AppendArrayElement({bytes, small ? size_t{2} : size_t{4}}, false, &elements);
    header.lengths[0]++;
    at = end;
  }
  header.dimensions = header.lengths[0] == 0 ? 0 : 1;
  AppendArrayHeader(header, false, &wire);
  return arena->CopyString(wire + elements);
}

Oid ParseObjectName(Oid type, std::string_view text) {
  if (text == "-") return kInvalidOid;
  if (!text.empty() && text.find_first_not_of("0123456789") == text.npos)
    return ParseOid(text, "oid");
  if (object_names == nullptr)
    Refuse("\"{}\" as the name of an object is not supported here", text);
  return object_names->Find(type, text);
}

}  // namespace

const ObjectNames* object_names = nullptr;

void AppendText(const Column& from, size_t row, const SessionSettings& settings, std::string* out) {
  switch (from.type) {
    case kTextOid:
    case kVarcharOid:
    case kBpcharOid:
      *out += from.At<std::string_view>(row);
      return;
    case kBoolOid:
      out->push_back(from.At<uint8_t>(row) ? 't' : 'f');
      return;
    case kInt2Oid:
      return AppendInteger(from.At<int16_t>(row), out);
    case kInt4Oid:
      return AppendInteger(from.At<int32_t>(row), out);
    case kInt8Oid:
      return AppendInteger(from.At<int64_t>(row), out);
    case kOidOid:
    case kXidOid:
    case kCidOid:
      return AppendInteger(from.At<uint32_t>(row), out);
    case kFloat4Oid:
      return AppendFloat(from.At<float>(row), settings.extra_float_digits, out);
    case kFloat8Oid:
      return AppendDouble(from.At<double>(row), settings.extra_float_digits, out);
    case kDateOid:
      return AppendDateText(from.At<int32_t>(row), settings, out);
    case kTimeOid:
      return AppendTimeText(from.At<int64_t>(row), out);
    case kTimestampOid:
      return AppendTimestampText(from.At<int64_t>(row), settings, out);
    case kTimestamptzOid:
      return AppendTimestamptzText(from.At<int64_t>(row), settings, out);
    case kIntervalOid:
      return AppendIntervalText(from.At<Interval>(row), settings, out);
    case kUuidOid:
      return AppendUuid(from.At<Uuid>(row), out);
    case kNumericOid:
      return AppendNumericText(from.At<std::string_view>(row), out);
    case kByteaOid:
      return AppendBytea(from.At<std::string_view>(row), settings.bytea_escape, out);
    case kJsonbOid:
      *out += from.At<std::string_view>(row).substr(1);
      return;
    case kCharOid: {
      return AppendCharText(from.At<std::string_view>(row)[0], out);
    }
    default:
      break;
  }
  if (IsObjectName(from.type)) {
    if (object_names == nullptr) Refuse("text of object names (regclass, …) is not supported here");
    Oid object = from.physical == Physical::kUint4
                     ? from.At<uint32_t>(row)
                     : LoadBig<uint32_t>(from.At<std::string_view>(row).data());
    *out += object_names->NameOf(from.type, object);
    return;
  }
  if (from.type == kInt2vectorOid || from.type == kOidvectorOid)
    return AppendVectorText(from.At<std::string_view>(row), out);
  std::string_view value = from.At<std::string_view>(row);
  if (ElementTypeOf(from.type) != kInvalidOid && HasBinaryCodec(from.type)) {
    return AppendArrayText(value, settings, out);
  }
  *out += value;
}

std::string_view ParseText(Oid type, int32_t typmod, std::string_view text,
                           const SessionSettings& settings, Arena* arena) {
  CheckUtf8(text);
  switch (type) {
    case kBoolOid:
      return Store<uint8_t>(ParseBool(text), arena);
    case kInt2Oid:
      return Store(static_cast<int16_t>(ParseInteger(text, INT16_MIN, INT16_MAX, "smallint")),
                   arena);
    case kInt4Oid:
      return Store(static_cast<int32_t>(ParseInteger(text, INT32_MIN, INT32_MAX, "integer")),
                   arena);
    case kInt8Oid:
      return Store(ParseInteger(text, INT64_MIN, INT64_MAX, "bigint"), arena);
    case kOidOid:
      return Store(ParseOid(text, "oid"), arena);
    case kXidOid:
      return Store(ParseOid(text, "xid"), arena);
    case kCidOid:
      return Store(ParseOid(text, "cid"), arena);
    case kFloat4Oid:
      return Store(std::bit_cast<uint32_t>(ParseFloat(text)), arena);
    case kFloat8Oid:
      return Store(std::bit_cast<uint64_t>(ParseDouble(text)), arena);
    case kDateOid:
      return Store(ParseDate(text, settings), arena);
    case kTimeOid:
      return Store(ParseTime(text, typmod, settings), arena);
    case kTimestampOid:
      return Store(ParseTimestamp(text, typmod, settings), arena);
    case kTimestamptzOid:
      return Store(ParseTimestamptz(text, typmod, settings), arena);
    case kIntervalOid:
      return StoreInterval(ParseInterval(text, typmod, settings), arena);
    case kUuidOid: {
      Uuid uuid = ParseUuid(text);
      return arena->CopyString({reinterpret_cast<const char*>(uuid.bytes), sizeof uuid});
    }
    case kNumericOid: {
      Numeric value = NumericFromText(text);
      ApplyNumericTypmod(&value, typmod);
      return NumericToWire(value, arena);
    }
    case kByteaOid:
      return arena->CopyString(ParseBytea(text));
    case kCharOid: {
      char c = ParseChar(text);
      return arena->CopyString({&c, 1});
    }
    case kNameOid:
      return arena->CopyString(Utf8Clip(text, 63));
    case kVarcharOid:
      return CoerceVarchar(arena->CopyString(text), typmod, false);
    case kBpcharOid:
      return CoerceBpchar(arena->CopyString(text), typmod, false, arena);
    case kJsonOid:
      CheckJson(text);
      return arena->CopyString(text);
    case kJsonbOid:
      return arena->CopyString("\x01" + NormalizeJsonb(text));
    default:
      break;
  }
  if (IsObjectName(type)) return Store(ParseObjectName(type, text), arena);
  if (type == kInt2vectorOid || type == kOidvectorOid) return ParseVector(type, text, arena);
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid && HasBinaryCodec(element)) {
    return ParseArray(element, typmod, text, settings, arena);
  }
  return arena->CopyString(text);
}

}  // namespace sluice
