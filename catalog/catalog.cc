#include "catalog/catalog.h"

#include <cstdio>

#include "catalog/quote.h"
#include "types/collation.h"

namespace sluice {

namespace {

const std::string* FindOption(const Options& options, const char* name) {
  auto found = options.find(name);
  return found == options.end() ? nullptr : &found->second;
}

}  // namespace

const std::string& ColumnInfo::remote_name() const {
  const std::string* option = FindOption(options, "column_name");
  return option == nullptr ? name : *option;
}

const std::string& Relation::remote_schema() const {
  const std::string* option = FindOption(options, "schema_name");
  return option == nullptr ? schema : *option;
}

const std::string& Relation::remote_table() const {
  const std::string* option = FindOption(options, "table_name");
  return option == nullptr ? name : *option;
}

int Relation::FindColumn(std::string_view column_name) const {
  for (size_t i = 0; i < columns.size(); i++)
    if (columns[i].name == column_name) return static_cast<int>(i);
  return -1;
}

const Server* Catalog::FindServer(std::string_view name) const {
  for (const auto& [oid, server] : servers)
    if (server.name == name) return &server;
  return nullptr;
}

const UserMapping* Catalog::FindUserMapping(Oid server, std::string_view user) const {
  const UserMapping* everyone = nullptr;
  for (const UserMapping& mapping : user_mappings) {
    if (mapping.server != server) continue;
    if (mapping.user == user) return &mapping;
    if (mapping.user == "public") everyone = &mapping;
  }
  return everyone;
}

// Every catalog has its first superuser, who owns what nobody made.
Catalog::Catalog() : schemas{{"public", {kPublicSchemaOid, kBootstrapRole, {}}}} {
  Role role;
  role.oid = kBootstrapRoleOid;
  role.name = kBootstrapRole;
  role.superuser = role.login = role.create_role = role.create_database = true;
  roles[role.oid] = std::move(role);
}

NameIndex::Entry Catalog::FindName(std::string_view schema, std::string_view name) const {
  if (names_.built()) return names_.Find(schema, name);
  for (const auto& [oid, relation] : relations) {
    if (relation.schema != schema || relation.hidden) continue;
    if (relation.name == name) return {NameIndex::kRelation, oid, kInvalidOid};
    for (const Index& index : relation.indexes)
      if (index.name == name) return {NameIndex::kIndex, index.oid, oid};
  }
  for (const auto& [oid, sequence] : sequences)
    if (sequence.name == name && sequence.schema == schema)
      return {NameIndex::kSequence, oid, kInvalidOid};
  return {};
}

const Relation* Catalog::FindRelation(std::string_view schema, std::string_view name) const {
  NameIndex::Entry found = FindName(schema, name);
  return found.kind == NameIndex::kRelation ? &relations.at(found.oid) : nullptr;
}

const Sequence* Catalog::FindSequence(std::string_view schema, std::string_view name) const {
  NameIndex::Entry found = FindName(schema, name);
  return found.kind == NameIndex::kSequence ? &sequences.at(found.oid) : nullptr;
}

const Sequence* Catalog::FindSequence(const std::vector<std::string>& search_path,
                                      std::string_view name) const {
  for (const std::string& schema : search_path)
    if (const Sequence* found = FindSequence(schema, name)) return found;
  return nullptr;
}

Catalog::IndexOfTable Catalog::FindIndex(std::string_view schema, std::string_view name) const {
  NameIndex::Entry found = FindName(schema, name);
  if (found.kind != NameIndex::kIndex) return {};
  const Relation& table = relations.at(found.table);
  for (const Index& index : table.indexes)
    if (index.oid == found.oid) return {&table, &index};
  return {};
}

const Role* Catalog::FindRole(std::string_view name) const {
  for (const auto& [oid, role] : roles)
    if (role.name == name) return &role;
  return nullptr;
}

const Relation* Catalog::FindRelation(const std::vector<std::string>& search_path,
                                      std::string_view name) const {
  for (const std::string& schema : search_path)
    if (const Relation* found = FindRelation(schema, name)) return found;
  return nullptr;
}

const Relation* Catalog::FindRelation(Oid oid) const {
  auto found = relations.find(oid);
  return found == relations.end() ? nullptr : &found->second;
}

std::vector<const Relation*> Catalog::Leaves(const Relation& relation) const {
  std::vector<const Relation*> leaves;
  if (relation.kind == RelationKind::kForeignTable) leaves.push_back(&relation);
  for (Oid child : relation.children)
    if (const Relation* found = FindRelation(child))
      for (const Relation* leaf : Leaves(*found)) leaves.push_back(leaf);
  return leaves;
}

const TypeInfo* Catalog::FindTypeByName(std::string_view schema, std::string_view name) const {
  if (schema.empty() || schema == "pg_catalog") {
    const TypeInfo* own = FindType(name);
    if (own != nullptr || !schema.empty()) return own;
  }
  const UserType* found = nullptr;
  for (const auto& [oid, type] : types) {
    if (type.name != name || (!schema.empty() && type.schema != schema)) continue;
    if (found == nullptr || type.schema == "public") found = &type;
  }
  return found == nullptr ? nullptr : FindType(found->info.oid);
}

const UserType* Catalog::FindUserType(Oid oid) const {
  auto found = types.find(oid);
  return found == types.end() ? nullptr : &found->second;
}

bool Catalog::HasSchema(std::string_view name) const {
  for (const char* own : {"pg_catalog", "information_schema", "sluice"})
    if (name == own) return true;
  return schemas.contains(std::string(name));
}

Oid Catalog::FindCollationByName(std::string_view schema, std::string_view name) const {
  if (schema.empty() || schema == "pg_catalog") {
    if (name == "C") return kCCollationOid;
    if (name == "POSIX") return kPosixCollationOid;
    if (name == "default") return kDefaultCollationOid;
  }
  for (const auto& [oid, collation] : collations)
    if (collation.name == name && (schema.empty() || collation.schema == schema)) return oid;
  return kInvalidOid;
}

std::string Catalog::CollationSql(Oid collation) const {
  if (collation == kInvalidOid) return "";
  if (collation == kCCollationOid) return "\"C\"";
  if (collation == kPosixCollationOid) return "\"POSIX\"";
  if (collation == kDefaultCollationOid) return "\"default\"";
  auto found = collations.find(collation);
  if (found == collations.end()) return "";
  const CatalogCollation& info = found->second;
  return info.schema == "pg_catalog" ? QuoteIdentifier(info.name)
                                     : QuoteQualified(info.schema, info.name);
}

void Catalog::MakeCurrent() const {
  RegisterObjects();
  if (!names_.built()) names_.Build(*this);
}

void Catalog::RegisterObjects() const {
  for (const auto& [oid, type] : types) {
    TypeInfo info = type.info;
    info.schema = type.schema;
    info.name = type.name;
    RegisterUserType(info);
  }
  for (const auto& [oid, collation] : collations) {
    // A nondeterministic collation has no collator here: FindCollator refuses what is not
    // registered.
    if (!collation.deterministic) continue;
    CollationInfo info = {};
    info.oid = oid;
    bool is_c =
        collation.provider == 'c' && (collation.locale == "C" || collation.locale == "POSIX");
    info.provider = is_c                        ? CollationProvider::kC
                    : collation.provider == 'i' ? CollationProvider::kIcu
                                                : CollationProvider::kLibc;
    std::snprintf(info.locale, sizeof info.locale, "%s", collation.locale.c_str());
    std::snprintf(info.version, sizeof info.version, "%s", collation.version.c_str());
    RegisterCollation(info);
  }
}

}  // namespace sluice
