// Type names as written in SQL → type and typmod.
#include "parser/analyzer.h"

namespace sluice {
namespace {

constexpr int32_t kIntervalFullRange = 0x7fff, kIntervalFullPrecision = 0xffff;
constexpr int32_t kCharLengthMax = 10 * 1024 * 1024;

std::string SpelledName(const PgQuery__TypeName& name) {
  std::string text;
  for (size_t i = 0; i < name.n_names; i++) {
    if (i > 0) text += '.';
    text += RawString(name.names[i]);
  }
  for (size_t i = 0; i < name.n_array_bounds; i++) text += "[]";
  return text;
}

std::vector<int32_t> TypmodValues(ParseState& p, const PgQuery__TypeName& name) {
  std::vector<int32_t> values;
  for (size_t i = 0; i < name.n_typmods; i++) {
    const RawNode* node = name.typmods[i];
    if (node->node_case != PG_QUERY__NODE__NODE_A_CONST ||
        node->a_const->val_case != PG_QUERY__A__CONST__VAL_IVAL)
      ThrowAt(p, p.Location(name.location), sqlstate::kSyntaxError,
              "type modifiers must be simple constants or identifiers");
    values.push_back(node->a_const->ival->ival);
  }
  return values;
}

int32_t NumericTypmod(ParseState& p, std::span<const int32_t> mods, int location) {
  if (mods.size() > 2)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "invalid NUMERIC type modifier");
  if (mods[0] < 1 || mods[0] > 1000)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue,
            "NUMERIC precision {} must be between 1 and 1000", mods[0]);
  int32_t scale = mods.size() == 2 ? mods[1] : 0;
  if (scale < -1000 || scale > 1000)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue,
            "NUMERIC scale {} must be between -1000 and 1000", scale);
  return ((mods[0] << 16) | (scale & 0x7ff)) + 4;
}

int32_t LengthTypmod(ParseState& p, std::span<const int32_t> mods, const char* type, int32_t header,
                     int location) {
  if (mods.size() != 1)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "invalid type modifier");
  if (mods[0] < 1)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "length for type {} must be at least 1",
            type);
  int32_t max = header == 0 ? kCharLengthMax * 8 : kCharLengthMax;
  if (mods[0] > max)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "length for type {} cannot exceed {}",
            type, max);
  return mods[0] + header;
}

int32_t PrecisionTypmod(ParseState& p, std::span<const int32_t> mods, const char* type,
                        const char* zone, int location) {
  if (mods.size() != 1)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "invalid type modifier");
  if (mods[0] < 0)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue,
            "{}({}){} precision must not be negative", type, mods[0], zone);
  return std::min(mods[0], 6);
}

// The grammar gives the fields as a bit mask (YEAR TO MONTH), or all of them and a precision.
int32_t IntervalTypmod(ParseState& p, std::span<const int32_t> mods, int location) {
  if (mods.size() == 1)
    return mods[0] == kIntervalFullRange ? -1 : (mods[0] << 16) | kIntervalFullPrecision;
  if (mods.size() != 2 || mods[1] < 0)
    ThrowAt(p, location, sqlstate::kInvalidParameterValue, "invalid INTERVAL type modifier");
  return (mods[0] << 16) | std::min(mods[1], 6);
}

int32_t TypmodOf(ParseState& p, Oid type, const PgQuery__TypeName& name, int location) {
  if (name.n_typmods == 0) return name.typemod;
  std::vector<int32_t> mods = TypmodValues(p, name);
  switch (type) {
    case kNumericOid:
      return NumericTypmod(p, mods, location);
    case kVarcharOid:
      return LengthTypmod(p, mods, "varchar", 4, location);
    case kBpcharOid:
      return LengthTypmod(p, mods, "char", 4, location);
    case kBitOid:
      return LengthTypmod(p, mods, "bit", 0, location);
    case kVarbitOid:
      return LengthTypmod(p, mods, "varbit", 0, location);
    case kTimeOid:
      return PrecisionTypmod(p, mods, "TIME", "", location);
    case kTimetzOid:
      return PrecisionTypmod(p, mods, "TIME", " WITH TIME ZONE", location);
    case kTimestampOid:
      return PrecisionTypmod(p, mods, "TIMESTAMP", "", location);
    case kTimestamptzOid:
      return PrecisionTypmod(p, mods, "TIMESTAMP", " WITH TIME ZONE", location);
    case kIntervalOid:
      return IntervalTypmod(p, mods, location);
  }
  if (type >= kFirstUserOid) RefuseAt(p, location, "type modifiers of type {}", TypeText(type));
  ThrowAt(p, location, sqlstate::kSyntaxError, "type modifier is not allowed for type \"{}\"",
          TypeText(type));
}

}  // namespace

Oid FindTypeByName(const ParseState& p, std::string_view schema, std::string_view name) {
  if (schema.empty() || schema == "pg_catalog") {
    if (const TypeInfo* info = FindType(name)) return info->oid;
    if (!schema.empty()) return kInvalidOid;
  }
  const AnalyzeContext& context = p.a.context;
  if (!schema.empty()) {
    const TypeInfo* info = context.catalog->FindTypeByName(schema, name);
    return info == nullptr ? kInvalidOid : info->oid;
  }
  for (const std::string& path_schema : context.search_path)
    if (const TypeInfo* info = context.catalog->FindTypeByName(path_schema, name)) return info->oid;
  return kInvalidOid;
}

TypeSpec ResolveTypeName(ParseState& p, const PgQuery__TypeName& name) {
  int location = p.Location(name.location);
  if (name.setof)
    ThrowAt(p, location, sqlstate::kInvalidTableDefinition, "a cast cannot return a set");
  if (name.pct_type) RefuseAt(p, location, "%TYPE");
  if (name.n_names == 0 || name.n_names > 2)
    RefuseAt(p, location, "type name {}", SpelledName(name));
  std::string_view schema = name.n_names == 2 ? RawString(name.names[0]) : std::string_view();
  Oid type = FindTypeByName(p, schema, RawString(name.names[name.n_names - 1]));
  if (type == kInvalidOid && !schema.empty() && !p.a.context.catalog->HasSchema(schema))
    ThrowAt(p, location, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", schema);
  if (type == kInvalidOid)
    ThrowAt(p, location, sqlstate::kUndefinedObject, "type \"{}\" does not exist",
            SpelledName(name));
  int32_t typmod = TypmodOf(p, type, name, location);
  if (name.n_array_bounds > 0) {
    const TypeInfo* info = FindType(type);
    if (info->array == kInvalidOid)
      ThrowAt(p, location, sqlstate::kUndefinedObject, "type \"{}\" does not exist",
              SpelledName(name));
    type = info->array;
  }
  return {type, typmod};
}

}  // namespace sluice
