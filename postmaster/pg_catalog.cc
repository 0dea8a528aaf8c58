#include "postmaster/pg_catalog.h"

#include "catalog/quote.h"
#include "catalog/system_catalog.h"
#include "common/assert.h"
#include "postmaster/running_query.h"

namespace sluice {

CatalogRow::CatalogRow(std::string_view table)
    : table_(*FindVirtualTable("pg_catalog", table)), values_(table_.columns.size()) {}

CatalogRow& CatalogRow::Set(std::string_view column, CatalogValue value) {
  for (size_t i = 0; i < values_.size(); i++) {
    if (table_.columns[i].name != column) continue;
    values_[i] = std::move(value);
    return *this;
  }
  SLUICE_ASSERT(false);  // no such column
  return *this;
}

CatalogRow& CatalogRow::Set(std::initializer_list<std::string_view> columns, const char* value) {
  for (std::string_view column : columns) Set(column, value);
  return *this;
}

std::string TextArray(const std::vector<std::string>& values) {
  std::string array = "{";
  for (const std::string& value : values) {
    if (array.size() > 1) array += ',';
    array += '"';
    for (char c : value) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + "}";
}

CatalogValue OptionsArray(const Options& options) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : options)
    if (name.find("password") == name.npos) texts.push_back(name + "=" + value);
  if (texts.empty()) return std::nullopt;
  return TextArray(texts);
}

Oid DerivedOid(std::string_view kind, std::string_view key) {
  uint32_t hash = 2166136261;  // FNV-1a
  auto add = [&](std::string_view text) {
    for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  };
  add(kind);
  add("\n");
  add(key);
  // Oids that are handed out count up from 16384; those of labels are from 0xC0000000.
  return (hash & 0x3fffffff) | 0x80000000;
}

Oid ColumnDefaultOid(Oid table, size_t number) {
  return DerivedOid("default", fmt::format("{}.{}", table, number));
}

std::string AclText(const Acl& acl) {
  std::vector<std::string> items;
  for (const AclItem& item : acl.items) {
    std::string text = item.grantee.empty() ? "" : QuoteIdentifier(item.grantee);
    text += '=';
    for (char privilege : item.privileges) {
      text += privilege;
      if (item.grant_options.find(privilege) != item.grant_options.npos) text += '*';
    }
    items.push_back(text + "/" + QuoteIdentifier(item.grantor));
  }
  return TextArray(items);
}

CatalogValue AclValue(const Acl& acl) {
  if (!acl.set) return std::nullopt;
  return AclText(acl);
}

Oid RoleOid(const Catalog& catalog, std::string_view name) {
  if (const Role* role = catalog.FindRole(name)) return role->oid;
  return name == "postgres" ? kBootstrapRoleOid : DerivedOid("role", name);
}

std::set<std::string> KnownRoles(const Catalog& catalog, const std::string& user) {
  std::set<std::string> names{"postgres", user};
  for (const auto& [oid, role] : catalog.roles) names.insert(role.name);
  for (const auto& [oid, server] : catalog.servers) names.insert(server.owner);
  for (const auto& [oid, relation] : catalog.relations) names.insert(relation.owner);
  for (const UserMapping& mapping : catalog.user_mappings) names.insert(mapping.user);
  names.erase("");
  names.erase("public");
  return names;
}

std::string RoleName(const Catalog& catalog, const std::string& user, Oid role) {
  for (const std::string& name : KnownRoles(catalog, user))
    if (RoleOid(catalog, name) == role) return name;
  return "";
}

std::vector<std::string> AllSchemas(const Catalog& catalog) {
  std::vector<std::string> names{"pg_catalog", "information_schema", "public", "sluice"};
  for (const auto& [name, schema] : catalog.schemas)
    if (name != "public") names.push_back(name);
  return names;
}

Oid SchemaOid(const Catalog& catalog, std::string_view name) {
  if (name == "pg_catalog") return kPgCatalogSchemaOid;
  auto found = catalog.schemas.find(std::string(name));
  if (found != catalog.schemas.end()) return found->second.oid;
  if (name == "sluice") return kSluiceSchemaOid;
  for (SystemRows rows = SystemRowsOf("pg_namespace"); rows.Next();)
    if (rows.Raw(1) == name) return static_cast<Oid>(std::stoul(std::string(rows.Raw(0))));
  return kInvalidOid;
}

char RelationKindLetter(const Relation& relation) {
  if (relation.is_distributed()) return 'r';
  switch (relation.kind) {
    case RelationKind::kForeignTable:
      return 'f';
    case RelationKind::kPartitioned:
      return 'p';
    case RelationKind::kView:
      return 'v';
    case RelationKind::kMaterializedView:
      return 'm';
    default:
      return 'r';
  }
}

bool IsShown(const Relation& relation) {
  return !relation.hidden;
}

Oid ForeignDataWrapperOid(std::string_view name) {
  return DerivedOid("wrapper", name);
}

void ScanSystemCatalog(const QuerySession& session, const VirtualTable& table,
                       const VirtualRowSink& sink) {
  std::vector<CatalogValue> row;
  for (SystemRows rows = SystemRowsOf(table.name); rows.Next();) {
    SLUICE_ASSERT(rows.size() == table.columns.size());
    row.clear();
    for (size_t i = 0; i < rows.size(); i++) row.push_back(rows.Value(i));
    sink(row);
  }
  for (auto find : {FindRelationScan, FindIndexScan, FindTypeScan, FindForeignScan, FindGlobalScan})
    if (CatalogScan scan = find(table.name)) scan(session, sink);
}

}  // namespace sluice
