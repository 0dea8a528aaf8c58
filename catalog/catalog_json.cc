#include "catalog/catalog_json.h"

#include "catalog/json_records.h"

namespace sluice {

namespace {

// The version of the records' shape; a build that changes it reads the older ones too.
constexpr int kFormatVersion = 2;

std::string KeyOf(const char* kind, Oid oid) {
  return fmt::format("{}/{:010}", kind, oid);
}

Json ServerToJson(const Server& s) {
  return {{"name", s.name},          {"type", s.type},       {"version", s.version},
          {"wrapper", s.wrapper},    {"options", s.options}, {"owner", s.owner},
          {"collation", s.collation}};
}

Server ServerFromJson(Oid oid, const Json& j) {
  Server s;
  s.oid = oid;
  Get(j, "name", &s.name);
  Get(j, "type", &s.type);
  Get(j, "version", &s.version);
  Get(j, "wrapper", &s.wrapper);
  Get(j, "options", &s.options);
  Get(j, "owner", &s.owner);
  Get(j, "collation", &s.collation);
  return s;
}

Json ColumnToJson(const ColumnInfo& c) {
  return {{"name", c.name},
          {"type", c.type},
          {"typmod", c.typmod},
          {"collation", c.collation},
          {"not_null", c.not_null},
          {"default", c.default_sql},
          {"options", c.options},
          {"distinct", c.distinct},
          {"null_fraction", c.null_fraction},
          {"width", c.average_width_bytes},
          {"identity", c.identity == '\0' ? "" : std::string(1, c.identity)},
          {"generated", c.generated},
          {"sequence", c.sequence},
          {"comment", c.comment}};
}

ColumnInfo ColumnFromJson(const Json& j) {
  ColumnInfo c;
  Get(j, "name", &c.name);
  Get(j, "type", &c.type);
  Get(j, "typmod", &c.typmod);
  Get(j, "collation", &c.collation);
  Get(j, "not_null", &c.not_null);
  Get(j, "default", &c.default_sql);
  Get(j, "options", &c.options);
  Get(j, "distinct", &c.distinct);
  Get(j, "null_fraction", &c.null_fraction);
  Get(j, "width", &c.average_width_bytes);
  GetChar(j, "identity", &c.identity);
  Get(j, "generated", &c.generated);
  Get(j, "sequence", &c.sequence);
  Get(j, "comment", &c.comment);
  return c;
}

Json RangeToJson(const std::vector<PartitionBound::RangeDatum>& range) {
  Json list = Json::array();
  for (const auto& datum : range)
    list.push_back({{"infinite", datum.infinite}, {"value", datum.value}});
  return list;
}

void RangeFromJson(const Json& j, const char* field, std::vector<PartitionBound::RangeDatum>* to) {
  auto found = j.find(field);
  if (found == j.end()) return;
  for (const Json& datum : *found) {
    auto& added = to->emplace_back();
    Get(datum, "infinite", &added.infinite);
    Get(datum, "value", &added.value);
  }
}

Json BoundToJson(const PartitionBound& b) {
  Json list = Json::array();
  for (const auto& value : b.list) list.push_back(value ? Json(*value) : Json(nullptr));
  return {{"default", b.is_default}, {"modulus", b.modulus},        {"remainder", b.remainder},
          {"list", std::move(list)}, {"from", RangeToJson(b.from)}, {"to", RangeToJson(b.to)}};
}

PartitionBound BoundFromJson(const Json& j) {
  PartitionBound b;
  Get(j, "default", &b.is_default);
  Get(j, "modulus", &b.modulus);
  Get(j, "remainder", &b.remainder);
  if (auto list = j.find("list"); list != j.end())
    for (const Json& value : *list)
      b.list.push_back(value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
  RangeFromJson(j, "from", &b.from);
  RangeFromJson(j, "to", &b.to);
  return b;
}

Json RelationToJson(const Relation& r) {
  Json columns = Json::array();
  for (const ColumnInfo& column : r.columns) columns.push_back(ColumnToJson(column));
  return {{"schema", r.schema},
          {"name", r.name},
          {"kind", static_cast<int>(r.kind)},
          {"columns", std::move(columns)},
          {"primary_key", r.primary_key},
          {"owner", r.owner},
          {"server", r.server},
          {"options", r.options},
          {"parent", r.parent},
          {"bound", BoundToJson(r.bound)},
          {"key",
           {{"strategy", static_cast<int>(r.key.strategy)},
            {"expressions", r.key.expressions},
            {"types", r.key.types},
            {"collations", r.key.collations}}},
          {"children", r.children},
          {"view", r.view_sql},
          {"uses", r.view_uses},
          {"view_settings", r.view_settings},
          {"view_command", r.view_command},
          {"rows", r.row_estimate},
          {"distribution", static_cast<int>(r.distribution)},
          {"hidden", r.hidden},
          {"constraints", ListToJson(r.constraints, ConstraintToJson)},
          {"indexes", ListToJson(r.indexes, IndexToJson)},
          {"acl", AclToJson(r.acl)}};
}

Relation RelationFromJson(Oid oid, const Json& j) {
  Relation r;
  r.oid = oid;
  r.kind = RelationKind::kForeignTable;
  Get(j, "schema", &r.schema);
  Get(j, "name", &r.name);
  GetEnum(j, "kind", &r.kind);
  for (const Json& column : j.at("columns")) r.columns.push_back(ColumnFromJson(column));
  Get(j, "primary_key", &r.primary_key);
  Get(j, "owner", &r.owner);
  Get(j, "server", &r.server);
  Get(j, "options", &r.options);
  Get(j, "parent", &r.parent);
  if (auto bound = j.find("bound"); bound != j.end()) r.bound = BoundFromJson(*bound);
  if (auto key = j.find("key"); key != j.end()) {
    GetEnum(*key, "strategy", &r.key.strategy);
    Get(*key, "expressions", &r.key.expressions);
    Get(*key, "types", &r.key.types);
    Get(*key, "collations", &r.key.collations);
  }
  Get(j, "children", &r.children);
  Get(j, "view", &r.view_sql);
  Get(j, "uses", &r.view_uses);
  Get(j, "view_settings", &r.view_settings);
  Get(j, "view_command", &r.view_command);
  Get(j, "rows", &r.row_estimate);
  GetEnum(j, "distribution", &r.distribution);
  Get(j, "hidden", &r.hidden);
  ListFromJson(j, "constraints", ConstraintFromJson, &r.constraints);
  ListFromJson(j, "indexes", IndexFromJson, &r.indexes);
  AclFromJson(j, "acl", &r.acl);
  return r;
}

Json TypeToJson(const UserType& t) {
  return {{"schema", t.schema},
          {"name", t.name},
          {"length", t.info.length},
          {"kind", std::string(1, t.info.kind)},
          {"category", std::string(1, t.info.category)},
          {"preferred", t.info.preferred},
          {"element", t.info.element},
          {"array", t.info.array},
          {"base", t.info.base},
          {"collation", t.info.collation},
          {"labels", t.enum_labels}};
}

// info.name and info.schema stay empty: they would be views into a copy. FindType() has them.
UserType TypeFromJson(Oid oid, const Json& j) {
  UserType t;
  std::string kind = "b", category = "U";
  Get(j, "schema", &t.schema);
  Get(j, "name", &t.name);
  t.info = {};
  t.info.oid = oid;
  Get(j, "length", &t.info.length);
  Get(j, "kind", &kind);
  Get(j, "category", &category);
  t.info.kind = kind.at(0);
  t.info.category = category.at(0);
  Get(j, "preferred", &t.info.preferred);
  Get(j, "element", &t.info.element);
  Get(j, "array", &t.info.array);
  Get(j, "base", &t.info.base);
  Get(j, "collation", &t.info.collation);
  Get(j, "labels", &t.enum_labels);
  return t;
}

Json CollationToJson(const CatalogCollation& c) {
  return {{"schema", c.schema}, {"name", c.name},       {"provider", std::string(1, c.provider)},
          {"locale", c.locale}, {"version", c.version}, {"deterministic", c.deterministic}};
}

CatalogCollation CollationFromJson(Oid oid, const Json& j) {
  CatalogCollation c;
  std::string provider = "c";
  c.oid = oid;
  Get(j, "schema", &c.schema);
  Get(j, "name", &c.name);
  Get(j, "provider", &provider);
  c.provider = provider.at(0);
  Get(j, "locale", &c.locale);
  Get(j, "version", &c.version);
  Get(j, "deterministic", &c.deterministic);
  return c;
}

// Format 1 kept the schemas' names only, in "meta". They get oids that nothing can have had.
void ReadOldSchemas(Catalog* catalog, const Json& meta) {
  std::vector<std::string> names;
  Get(meta, "schemas", &names);
  for (const std::string& name : names)
    catalog->schemas.emplace(name, Schema{catalog->next_oid++, "postgres", {}});
}

void AddRecord(Catalog* catalog, std::string_view key, const Json& j) {
  auto is = [&](std::string_view prefix) { return key.substr(0, prefix.size()) == prefix; };
  size_t slash = key.find('/');
  auto oid = [&] { return static_cast<Oid>(std::stoul(std::string(key.substr(slash + 1)))); };
  if (key == "meta") {
    if (j.at("format").get<int>() > kFormatVersion)
      Throw(sqlstate::kDataCorrupted, "the catalog was written by a newer version of Sluice");
    Get(j, "generation", &catalog->generation);
    Get(j, "next_oid", &catalog->next_oid);
    ReadOldSchemas(catalog, j);
    Get(j, "extensions", &catalog->extensions);
    Get(j, "settings", &catalog->database_settings);
    Get(j, "decisions", &catalog->decisions);
  } else if (is("server/")) {
    catalog->servers.emplace(oid(), ServerFromJson(oid(), j));
  } else if (is("mapping/")) {
    UserMapping m;
    Get(j, "server", &m.server);
    Get(j, "user", &m.user);
    Get(j, "options", &m.options);
    catalog->user_mappings.push_back(std::move(m));
  } else if (is("relation/")) {
    catalog->relations.emplace(oid(), RelationFromJson(oid(), j));
  } else if (is("sequence/")) {
    catalog->sequences.emplace(oid(), SequenceFromJson(oid(), j));
  } else if (is("role/")) {
    catalog->roles.insert_or_assign(oid(), RoleFromJson(oid(), j));
  } else if (is("schema/")) {
    auto [name, schema] = SchemaFromJson(oid(), j);
    catalog->schemas[name] = schema;
  } else if (is("comment/")) {
    Get(j, "text", &catalog->comments[oid()]);
  } else if (is("type/")) {
    catalog->types.emplace(oid(), TypeFromJson(oid(), j));
  } else if (is("collation/")) {
    catalog->collations.emplace(oid(), CollationFromJson(oid(), j));
  } else {
    Throw(sqlstate::kDataCorrupted, "unknown record \"{}\" in the catalog", key);
  }
}

}  // namespace

std::map<std::string, std::string> CatalogToRecords(const Catalog& catalog) try {
  std::map<std::string, std::string> records;
  records["meta"] = Json{{"format", kFormatVersion},
                         {"generation", catalog.generation},
                         {"next_oid", catalog.next_oid},
                         {"extensions", catalog.extensions},
                         {"settings", catalog.database_settings},
                         {"decisions", catalog.decisions}}
                        .dump();
  for (const auto& [oid, server] : catalog.servers)
    records[KeyOf("server", oid)] = ServerToJson(server).dump();
  // By number, not by name: a key of LMDB is at most 511 bytes.
  for (size_t i = 0; i < catalog.user_mappings.size(); i++) {
    const UserMapping& m = catalog.user_mappings[i];
    records[KeyOf("mapping", static_cast<Oid>(i))] =
        Json{{"server", m.server}, {"user", m.user}, {"options", m.options}}.dump();
  }
  for (const auto& [oid, relation] : catalog.relations)
    records[KeyOf("relation", oid)] = RelationToJson(relation).dump();
  for (const auto& [oid, sequence] : catalog.sequences)
    records[KeyOf("sequence", oid)] = SequenceToJson(sequence).dump();
  for (const auto& [oid, role] : catalog.roles)
    records[KeyOf("role", oid)] = RoleToJson(role).dump();
  for (const auto& [name, schema] : catalog.schemas)
    records[KeyOf("schema", schema.oid)] = SchemaToJson(name, schema).dump();
  for (const auto& [oid, text] : catalog.comments)
    records[KeyOf("comment", oid)] = Json{{"text", text}}.dump();
  for (const auto& [oid, type] : catalog.types)
    records[KeyOf("type", oid)] = TypeToJson(type).dump();
  for (const auto& [oid, collation] : catalog.collations)
    records[KeyOf("collation", oid)] = CollationToJson(collation).dump();
  return records;
} catch (const Json::exception&) {
  Throw(sqlstate::kCharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"");
}

Catalog CatalogFromRecords(const std::map<std::string, std::string>& records) {
  Catalog catalog;
  for (const auto& [key, value] : records) {
    try {
      AddRecord(&catalog, key, Json::parse(value));
    } catch (const QueryError&) {
      throw;
    } catch (const std::exception& e) {
      Throw(sqlstate::kDataCorrupted, "could not read record \"{}\" of the catalog: {}", key,
            e.what());
    }
  }
  return catalog;
}

}  // namespace sluice
