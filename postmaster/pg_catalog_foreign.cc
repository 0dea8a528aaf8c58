// pg_foreign_*, pg_user_mapping.
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"

namespace sluice {
namespace {

void ScanWrappers(const QuerySession&, const VirtualRowSink& sink) {
  for (const char* name : {"postgres_fdw", "lines_fdw"}) {
    CatalogRow row("pg_foreign_data_wrapper");
    row.Set("oid", ForeignDataWrapperOid(name)).Set("fdwname", name);
    row.Set("fdwowner", kBootstrapRoleOid).Set({"fdwhandler", "fdwvalidator"}, "0");
    sink(row.values());
  }
}

void ScanServers(const QuerySession& session, const VirtualRowSink& sink) {
  auto text = [](const std::string& s) { return s.empty() ? std::nullopt : CatalogValue(s); };
  for (const auto& [oid, server] : session.catalog->servers) {
    CatalogRow row("pg_foreign_server");
    row.Set("oid", oid).Set("srvname", CatalogValue(server.name));
    row.Set("srvowner", RoleOid(*session.catalog, server.owner));
    row.Set("srvfdw", ForeignDataWrapperOid(server.wrapper));
    row.Set("srvtype", text(server.type)).Set("srvversion", text(server.version));
    row.Set("srvoptions", OptionsArray(server.options));
    sink(row.values());
  }
}

void ScanForeignTables(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, relation] : session.catalog->relations) {
    if (relation.kind != RelationKind::kForeignTable || !IsShown(relation)) continue;
    CatalogRow row("pg_foreign_table");
    row.Set("ftrelid", oid).Set("ftserver", relation.server);
    row.Set("ftoptions", OptionsArray(relation.options));
    sink(row.values());
  }
}

// Passwords are shown to nobody.
void ScanUserMappings(const QuerySession& session, const VirtualRowSink& sink) {
  for (const UserMapping& mapping : session.catalog->user_mappings) {
    CatalogRow row("pg_user_mapping");
    row.Set("oid", DerivedOid("mapping", fmt::format("{}.{}", mapping.server, mapping.user)));
    row.Set("umuser",
            mapping.user == "public" ? kInvalidOid : RoleOid(*session.catalog, mapping.user));
    row.Set("umserver", mapping.server).Set("umoptions", OptionsArray(mapping.options));
    sink(row.values());
  }
}

}  // namespace

CatalogScan FindForeignScan(std::string_view table) {
  if (table == "pg_foreign_data_wrapper") return ScanWrappers;
  if (table == "pg_foreign_server") return ScanServers;
  if (table == "pg_foreign_table") return ScanForeignTables;
  if (table == "pg_user_mapping") return ScanUserMappings;
  return nullptr;
}

}  // namespace sluice
