// pg_database, pg_authid, pg_namespace, pg_db_role_setting.
#include "catalog/virtual_tables.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"

namespace sluice {
namespace {

// The shards' default collation, where they were asked: "c en_US.UTF-8 2.36".
std::string DatabaseLocale(const Catalog& catalog) {
  for (const auto& [oid, server] : catalog.servers) {
    size_t from = server.collation.find(' ');
    if (from == server.collation.npos) continue;
    size_t to = server.collation.find(' ', from + 1);
    return server.collation.substr(from + 1, to == server.collation.npos ? to : to - from - 1);
  }
  return "C";
}

void ScanDatabase(const QuerySession& session, const VirtualRowSink& sink) {
  constexpr int kUtf8 = 6, kDefaultTablespace = 1663;
  std::string locale = DatabaseLocale(*session.catalog);
  CatalogRow row("pg_database");
  row.Set("oid", kDatabaseOid).Set("datname", CatalogValue(session.database));
  row.Set("datdba", kBootstrapRoleOid).Set("encoding", kUtf8).Set("datlocprovider", "c");
  row.Set("datistemplate", false).Set("datallowconn", true).Set("datconnlimit", -1);
  row.Set({"datfrozenxid", "datminmxid"}, "0").Set("dattablespace", kDefaultTablespace);
  row.Set("datcollate", CatalogValue(locale)).Set("datctype", CatalogValue(locale));
  sink(row.values());
}

void ScanNamespace(const QuerySession& session, const VirtualRowSink& sink) {
  auto put = [&](const std::string& name) {
    CatalogRow row("pg_namespace");
    row.Set("oid", SchemaOid(*session.catalog, name)).Set("nspname", CatalogValue(name));
    auto schema = session.catalog->schemas.find(name);
    row.Set("nspowner", kBootstrapRoleOid);
    if (schema != session.catalog->schemas.end()) {
      row.Set("nspowner", RoleOid(*session.catalog, schema->second.owner));
      row.Set("nspacl", AclValue(schema->second.acl));
    }
    sink(row.values());
  };
  for (const std::string& name : AllSchemas(*session.catalog)) {
    bool builtin = name == "pg_catalog" || name == "information_schema" || name == "public";
    if (!builtin) put(name);
  }
}

void ScanRoles(const QuerySession& session, const VirtualRowSink& sink) {
  for (const std::string& name : KnownRoles(*session.catalog, session.user)) {
    CatalogRow row("pg_authid");
    row.Set("oid", RoleOid(*session.catalog, name)).Set("rolname", CatalogValue(name));
    if (const Role* role = session.catalog->FindRole(name)) {
      row.Set("rolsuper", role->superuser).Set("rolinherit", role->inherit);
      row.Set("rolcreaterole", role->create_role).Set("rolcreatedb", role->create_database);
      row.Set("rolcanlogin", role->login).Set("rolconnlimit", role->connection_limit);
      row.Set({"rolreplication", "rolbypassrls"}, "f");
      if (!role->valid_until.empty()) row.Set("rolvaliduntil", CatalogValue(role->valid_until));
      sink(row.values());
      continue;
    }
    row.Set({"rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin"}, "t");
    row.Set({"rolreplication", "rolbypassrls"}, "f").Set("rolconnlimit", -1);
    sink(row.values());
  }
}

void ScanMembers(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, role] : session.catalog->roles) {
    for (const Role::Membership& membership : role.member_of) {
      CatalogRow row("pg_auth_members");
      row.Set("roleid", membership.role).Set("member", oid);
      row.Set("grantor", RoleOid(*session.catalog, membership.grantor));
      row.Set("admin_option", membership.admin_option);
      sink(row.values());
    }
  }
}

void ScanExtensions(const QuerySession& session, const VirtualRowSink& sink) {
  auto put = [&](const std::string& name, Oid oid, const char* schema) {
    CatalogRow row("pg_extension");
    row.Set("oid", oid).Set("extname", CatalogValue(name)).Set("extowner", kBootstrapRoleOid);
    row.Set("extnamespace", SchemaOid(*session.catalog, schema)).Set("extrelocatable", false);
    row.Set("extversion", "");  // each server has its own
    sink(row.values());
  };
  put("sluice", kSluiceExtensionOid, "sluice");
  for (const auto& [name, oid] : session.catalog->extensions) put(name, oid, "public");
}

void ScanDescriptions(const QuerySession& session, const VirtualRowSink& sink) {
  constexpr Oid kPgClass = 1259, kPgNamespace = 2615;
  auto put = [&](Oid object, Oid catalog, size_t part, const std::string& text) {
    CatalogRow row("pg_description");
    row.Set("objoid", object).Set("classoid", catalog).Set("objsubid", part);
    row.Set("description", CatalogValue(text));
    sink(row.values());
  };
  Oid public_oid = SchemaOid(*session.catalog, "public");
  if (!session.catalog->comments.contains(public_oid))
    put(public_oid, kPgNamespace, 0, "standard public schema");
  for (const auto& [object, text] : session.catalog->comments)
    put(object, CatalogOf(*session.catalog, object), 0, text);
  for (const auto& [oid, relation] : session.catalog->relations)
    for (size_t i = 0; i < relation.columns.size(); i++)
      if (!relation.columns[i].comment.empty() && IsShown(relation))
        put(oid, kPgClass, i + 1, relation.columns[i].comment);
}

void ScanDatabaseSettings(const QuerySession& session, const VirtualRowSink& sink) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : session.catalog->database_settings)
    settings.push_back(name + "=" + value);
  if (settings.empty()) return;
  CatalogRow row("pg_db_role_setting");
  row.Set("setdatabase", kDatabaseOid).Set("setrole", "0");
  row.Set("setconfig", CatalogValue(TextArray(settings)));
  sink(row.values());
}

}  // namespace

CatalogScan FindGlobalScan(std::string_view table) {
  if (table == "pg_database") return ScanDatabase;
  if (table == "pg_namespace") return ScanNamespace;
  if (table == "pg_authid") return ScanRoles;
  if (table == "pg_auth_members") return ScanMembers;
  if (table == "pg_extension") return ScanExtensions;
  if (table == "pg_description") return ScanDescriptions;
  if (table == "pg_db_role_setting") return ScanDatabaseSettings;
  return nullptr;
}

}  // namespace sluice
