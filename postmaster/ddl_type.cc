// Type names in DDL: Postgres's own with their modifiers, and those that are looked up on a shard.
#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

constexpr int32_t kVarHeaderBytes = 4;
constexpr int kMaxAttributeBytes = 10'485'760;
constexpr int kIntervalFullRange = 0x7fff, kFullPrecision = 0xffff;

std::vector<int> Modifiers(Ddl& ddl, const PgQuery__TypeName& name) {
  std::vector<int> modifiers;
  for (size_t i = 0; i < name.n_typmods; i++) {
    const RawNode* node = name.typmods[i];
    bool integer = node->node_case == PG_QUERY__NODE__NODE_A_CONST &&
                   node->a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL;
    if (!integer)
      ddl.ThrowAt(MakeError(sqlstate::kInvalidParameterValue, "invalid type modifier"),
                  name.location);
    modifiers.push_back(node->a_const->ival->ival);
  }
  return modifiers;
}

int32_t TimePrecision(Ddl& ddl, int precision, std::string_view type, std::string_view suffix) {
  if (precision < 0)
    Throw(sqlstate::kInvalidParameterValue, "{}({}){} precision must not be negative", type,
          precision, suffix);
  if (precision > 6) {
    ddl.Warning(MakeError(sqlstate::kInvalidParameterValue,
                          "{}({}){} precision reduced to maximum allowed, 6", type, precision,
                          suffix));
    return 6;
  }
  return precision;
}

int32_t NumericModifier(const std::vector<int>& m) {
  int precision = m[0], scale = m.size() > 1 ? m[1] : 0;
  if (m.size() > 2) Throw(sqlstate::kInvalidParameterValue, "invalid NUMERIC type modifier");
  if (precision < 1 || precision > 1000)
    Throw(sqlstate::kInvalidParameterValue, "NUMERIC precision {} must be between 1 and 1000",
          precision);
  if (scale < -1000 || scale > 1000)
    Throw(sqlstate::kInvalidParameterValue, "NUMERIC scale {} must be between -1000 and 1000",
          scale);
  return ((precision << 16) | (scale & 0x7ff)) + kVarHeaderBytes;
}

int32_t LengthModifier(const std::vector<int>& m, std::string_view type, int length_max,
                       int header) {
  if (m.size() != 1) Throw(sqlstate::kInvalidParameterValue, "invalid type modifier");
  if (m[0] < 1)
    Throw(sqlstate::kInvalidParameterValue, "length for type {} must be at least 1", type);
  if (m[0] > length_max)
    Throw(sqlstate::kInvalidParameterValue, "length for type {} cannot exceed {}", type,
          length_max);
  return m[0] + header;
}

int32_t IntervalModifier(Ddl& ddl, const std::vector<int>& m) {
  int range = m[0];
  if (m.size() == 1) return range == kIntervalFullRange ? -1 : (range << 16) | kFullPrecision;
  return (range << 16) | TimePrecision(ddl, m[1], "INTERVAL", "");
}

// What the type's typmodin function makes of the numbers in parentheses.
int32_t TypeModifier(Ddl& ddl, Oid type, const PgQuery__TypeName& name) {
  std::vector<int> m = Modifiers(ddl, name);
  if (m.empty()) return -1;
  switch (type) {
    case kNumericOid:
      return NumericModifier(m);
    case kVarcharOid:
      return LengthModifier(m, "varchar", kMaxAttributeBytes, kVarHeaderBytes);
    case kBpcharOid:
      return LengthModifier(m, "char", kMaxAttributeBytes, kVarHeaderBytes);
    case kBitOid:
      return LengthModifier(m, "bit", kMaxAttributeBytes * 8, 0);
    case kVarbitOid:
      return LengthModifier(m, "varbit", kMaxAttributeBytes * 8, 0);
    case kTimeOid:
      return TimePrecision(ddl, m[0], "TIME", "");
    case kTimetzOid:
      return TimePrecision(ddl, m[0], "TIME", " WITH TIME ZONE");
    case kTimestampOid:
      return TimePrecision(ddl, m[0], "TIMESTAMP", "");
    case kTimestamptzOid:
      return TimePrecision(ddl, m[0], "TIMESTAMP", " WITH TIME ZONE");
    case kIntervalOid:
      return IntervalModifier(ddl, m);
  }
  if (type >= kFirstUserOid) Refuse("modifiers of type {} are not supported", FormatTypeName(type));
  ddl.ThrowAt(MakeError(sqlstate::kSyntaxError, "type modifier is not allowed for type \"{}\"",
                        FindType(type)->name),
              name.location);
}

Oid FindNamedType(Ddl& ddl, const QualifiedName& name) {
  if (!name.schema.empty()) {
    const TypeInfo* found = ddl.catalog.FindTypeByName(name.schema, name.name);
    return found == nullptr ? kInvalidOid : found->oid;
  }
  if (const TypeInfo* own = FindType(name.name)) return own->oid;
  for (const std::string& schema : ddl.context.search_path)
    if (const TypeInfo* found = ddl.catalog.FindTypeByName(schema, name.name)) return found->oid;
  return kInvalidOid;
}

[[noreturn]] void ThrowNoType(Ddl& ddl, const QualifiedName& name, int location) {
  if (!name.schema.empty() && !ddl.catalog.HasSchema(name.schema))
    ddl.ThrowAt(
        MakeError(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", name.schema),
        location);
  std::string shown = name.schema.empty() ? name.name : name.schema + "." + name.name;
  ddl.ThrowAt(MakeError(sqlstate::kUndefinedObject, "type \"{}\" does not exist", shown), location);
}

struct RemoteType {
  std::string schema, name;
  int16_t length;
  char kind, category;
  bool preferred, collatable;
  std::string base_schema, base_name;  // of a domain
  int32_t base_typmod = -1;
  std::vector<std::string> labels;  // of an enum
};

// nullopt: the server has none.
std::optional<RemoteType> ReadType(Ddl& ddl, Oid server, std::string_view schema,
                                   std::string_view name) {
  std::string where = fmt::format("t.typname = {}", QuoteLiteral(name));
  if (!schema.empty()) where += fmt::format(" AND n.nspname = {}", QuoteLiteral(schema));
  const RemoteQuery queries[] = {
      {server,
       "SELECT n.nspname, t.typname, t.typlen, t.typtype, t.typcategory, t.typispreferred,"
       " t.typcollation <> 0, bn.nspname, b.typname, t.typtypmod"
       " FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace"
       " LEFT JOIN pg_type b ON b.oid = t.typbasetype LEFT JOIN pg_namespace bn ON bn.oid = "
       "b.typnamespace"
       " WHERE " +
           where + " ORDER BY n.nspname <> 'public', n.nspname"},
      {server,
       "SELECT n.nspname, e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid"
       " JOIN pg_namespace n ON n.oid = t.typnamespace"
       " WHERE " +
           where + " ORDER BY e.enumsortorder"}};
  std::vector<RemoteRows> results = ddl.Remote(queries);
  if (results[0].rows.empty()) return std::nullopt;
  const RemoteRow& row = results[0].rows[0];
  RemoteType type;
  type.schema = *row[0];
  type.name = *row[1];
  type.length = static_cast<int16_t>(std::stoi(*row[2]));
  type.kind = row[3]->at(0);
  type.category = row[4]->at(0);
  type.preferred = *row[5] == "t";
  type.collatable = *row[6] == "t";
  type.base_schema = row[7].value_or("");
  type.base_name = row[8].value_or("");
  type.base_typmod = std::stoi(*row[9]);
  for (const RemoteRow& label : results[1].rows)
    if (*label[0] == type.schema) type.labels.push_back(*label[1]);
  return type;
}

const UserType* FindRegistered(Ddl& ddl, std::string_view schema, std::string_view name) {
  for (const auto& [oid, type] : ddl.catalog.types)
    if (type.name == name && type.schema == schema) return &type;
  return nullptr;
}

std::string ListOf(const std::vector<std::string>& labels) {
  std::string list;
  for (const std::string& label : labels) list += (list.empty() ? "" : ", ") + QuoteLiteral(label);
  return list.empty() ? "no enum" : list;
}

void CheckSameType(Ddl& ddl, Oid server, const UserType& known, const RemoteType& remote) {
  bool same = known.info.kind == remote.kind && known.enum_labels == remote.labels &&
              known.info.category == remote.category;
  if (same) return;
  throw QueryError(
      MakeError(sqlstate::kDatatypeMismatch,
                "type \"{}\" of server \"{}\" differs from the type of that name on other servers",
                QuoteQualified(remote.schema, remote.name), ddl.catalog.servers.at(server).name)
          .Detail(fmt::format("Labels there: {}; known before: {}.", ListOf(remote.labels),
                              ListOf(known.enum_labels))));
}

UserType MakeUserType(Oid oid, std::string_view schema, std::string_view name) {
  UserType type;
  type.info = {};
  type.info.oid = oid;
  type.schema = schema;
  type.name = name;
  return type;
}

TypeAndMod BaseOfDomain(Ddl& ddl, Oid server, const RemoteType& domain) {
  TypeAndMod base{kInvalidOid, -1};
  const TypeInfo* own = domain.base_schema == "pg_catalog" ? FindType(domain.base_name) : nullptr;
  if (own != nullptr)
    base.type = own->oid;
  else
    base = ImportType(ddl, server, domain.base_schema, domain.base_name, false);
  if (domain.base_typmod != -1) base.typmod = domain.base_typmod;
  return base;
}

// The type, and its array type as Postgres makes one.
Oid RegisterType(Ddl& ddl, Oid server, const RemoteType& remote) {
  Oid base = remote.kind == 'd' ? BaseOfDomain(ddl, server, remote).type : kInvalidOid;
  UserType type = MakeUserType(ddl.NewOid(), remote.schema, remote.name);
  UserType array = MakeUserType(ddl.NewOid(), remote.schema, "_" + remote.name);
  type.info.length = remote.length;
  type.info.kind = remote.kind;
  type.info.category = remote.category;
  type.info.preferred = remote.preferred;
  type.info.array = array.info.oid;
  type.info.base = base;
  type.info.collation = remote.collatable ? kDefaultCollationOid : kInvalidOid;
  type.enum_labels = remote.labels;
  array.info.length = -1;
  array.info.kind = 'b';
  array.info.category = 'A';
  array.info.element = type.info.oid;
  array.info.collation = type.info.collation;
  Oid oid = type.info.oid;
  ddl.catalog.types.emplace(array.info.oid, std::move(array));
  ddl.catalog.types.emplace(oid, std::move(type));
  ddl.catalog.RegisterObjects();
  return oid;
}

}  // namespace

TypeAndMod ImportType(Ddl& ddl, Oid server, std::string_view schema, std::string_view name,
                      bool keep_domain) {
  std::optional<RemoteType> remote = ReadType(ddl, server, schema, name);
  if (!remote)
    Throw(sqlstate::kUndefinedObject, "type \"{}\" does not exist on server \"{}\"",
          schema.empty() ? QuoteIdentifier(name) : QuoteQualified(schema, name),
          ddl.catalog.servers.at(server).name);
  if (remote->schema == "pg_catalog") {
    const TypeInfo* own = FindType(remote->name);
    if (own != nullptr) return {own->oid, -1};
  }
  if (remote->kind == 'd' && !keep_domain) return BaseOfDomain(ddl, server, *remote);
  if (const UserType* known = FindRegistered(ddl, remote->schema, remote->name)) {
    CheckSameType(ddl, server, *known, *remote);
    return {known->info.oid, -1};
  }
  return {RegisterType(ddl, server, *remote), -1};
}

TypeAndMod ResolveType(Ddl& ddl, const PgQuery__TypeName& type_name, Oid server) {
  if (type_name.setof || type_name.pct_type) Refuse("%TYPE and SETOF are not supported here");
  QualifiedName name = NameOfList(ddl, type_name.names, type_name.n_names);
  Oid oid = FindNamedType(ddl, name);
  bool askable = server != kInvalidOid && name.schema != "pg_catalog" &&
                 ddl.catalog.servers.at(server).wrapper == kPostgresWrapper;
  bool array = type_name.n_array_bounds > 0;
  const UserType* user_type = ddl.catalog.FindUserType(oid);
  bool domain = user_type != nullptr && user_type->info.kind == 'd' && !array;
  int32_t typmod = -1;
  if ((oid == kInvalidOid || domain) && askable) {
    try {
      TypeAndMod imported = ImportType(ddl, server, name.schema, name.name, array);
      oid = imported.type;
      typmod = imported.typmod;
    } catch (const QueryError& failure) {
      if (failure.error.state != sqlstate::kUndefinedObject) throw;
    }
  }
  if (oid == kInvalidOid) ThrowNoType(ddl, name, type_name.location);
  try {
    if (type_name.n_typmods > 0) typmod = TypeModifier(ddl, oid, type_name);
  } catch (QueryError& failure) {
    ddl.ThrowAt(failure.error, type_name.location);
  }
  if (array) {
    oid = FindType(oid)->array;
    if (oid == kInvalidOid) {
      name.name += "[]";
      ThrowNoType(ddl, name, type_name.location);
    }
  }
  const TypeInfo* info = FindType(oid);
  if (info->kind == 'p')
    Throw(sqlstate::kInvalidTableDefinition, "column cannot have pseudo-type {}",
          FormatTypeName(oid));
  return {oid, typmod};
}

}  // namespace sluice
