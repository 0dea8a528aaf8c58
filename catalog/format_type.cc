// Type names as Postgres's format_type() gives them.
#include "catalog/builtin.h"
#include "catalog/quote.h"

namespace sluice {

namespace {

constexpr int32_t kVarHeaderBytes = 4;

std::string IntervalModifier(int32_t typmod) {
  constexpr int kYear = 1 << 2, kMonth = 1 << 1, kDay = 1 << 3, kHour = 1 << 10, kMinute = 1 << 11,
                kSecond = 1 << 12;
  int fields = (typmod >> 16) & 0x7fff, precision = typmod & 0xffff;
  struct Name {
    int fields;
    const char* text;
  };
  static constexpr Name kNames[] = {{kYear, " year"},
                                    {kMonth, " month"},
                                    {kDay, " day"},
                                    {kHour, " hour"},
                                    {kMinute, " minute"},
                                    {kSecond, " second"},
                                    {kYear | kMonth, " year to month"},
                                    {kDay | kHour, " day to hour"},
                                    {kDay | kHour | kMinute, " day to minute"},
                                    {kDay | kHour | kMinute | kSecond, " day to second"},
                                    {kHour | kMinute, " hour to minute"},
                                    {kHour | kMinute | kSecond, " hour to second"},
                                    {kMinute | kSecond, " minute to second"}};
  std::string text;
  for (const Name& name : kNames)
    if (name.fields == fields) text = name.text;
  return precision == 0xffff ? text : fmt::format("{}({})", text, precision);
}

std::string Precision(int32_t typmod) {
  return typmod < 0 ? std::string() : fmt::format("({})", typmod);
}

std::string Length(int32_t typmod) {
  return typmod <= kVarHeaderBytes ? std::string() : fmt::format("({})", typmod - kVarHeaderBytes);
}

std::string NumericModifier(int32_t typmod) {
  if (typmod < kVarHeaderBytes) return {};
  int32_t packed = typmod - kVarHeaderBytes;
  int32_t scale = ((packed & 0x7ff) ^ 1024) - 1024;  // 11 bits, signed
  return fmt::format("({},{})", (packed >> 16) & 0xffff, scale);
}

// Names that the SQL standard spells otherwise than pg_type does; empty: as in pg_type.
std::string StandardName(Oid type, int32_t typmod, bool for_message) {
  switch (type) {
    case kBitOid:
      if (typmod >= 0) return fmt::format("bit({})", typmod);
      return for_message ? "bit" : "";  // "bit" alone would mean bit(1)
    case kVarbitOid:
      return "bit varying" + Precision(typmod);
    case kBoolOid:
      return "boolean";
    case kBpcharOid:
      if (typmod > kVarHeaderBytes) return "character" + Length(typmod);
      return for_message ? "character" : "";  // "character" alone would mean character(1)
    case kVarcharOid:
      return "character varying" + Length(typmod);
    case kFloat4Oid:
      return "real";
    case kFloat8Oid:
      return "double precision";
    case kInt2Oid:
      return "smallint";
    case kInt4Oid:
      return "integer";
    case kInt8Oid:
      return "bigint";
    case kNumericOid:
      return "numeric" + NumericModifier(typmod);
    case kIntervalOid:
      return "interval" + (typmod < 0 ? "" : IntervalModifier(typmod));
    case kTimeOid:
      return "time" + Precision(typmod) + " without time zone";
    case kTimetzOid:
      return "time" + Precision(typmod) + " with time zone";
    case kTimestampOid:
      return "timestamp" + Precision(typmod) + " without time zone";
    case kTimestamptzOid:
      return "timestamp" + Precision(typmod) + " with time zone";
    default:
      return {};
  }
}

std::string Format(Oid oid, int32_t typmod, bool for_message) {
  if (oid == kInvalidOid) return "-";
  const TypeInfo* type = FindType(oid);
  if (type == nullptr) return "???";
  std::string suffix;
  // int2vector and oidvector are arrays too, but have names of their own.
  if (type->element != kInvalidOid && type->category == 'A' && type->oid != 22 && type->oid != 30) {
    const TypeInfo* element = FindType(type->element);
    if (element == nullptr) return "???[]";
    type = element;
    suffix = "[]";
  }
  std::string name = StandardName(type->oid, typmod, for_message);
  if (name.empty()) {
    name = type->schema == "pg_catalog" || type->schema == "public"
               ? QuoteIdentifier(type->name)
               : QuoteQualified(type->schema, type->name);
  }
  return name + suffix;
}

}  // namespace

std::string FormatType(Oid type, int32_t typmod) {
  return Format(type, typmod, false);
}
std::string FormatTypeName(Oid type) {
  return Format(type, -1, true);
}

}  // namespace sluice
