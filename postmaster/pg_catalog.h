// The rows of Postgres's system catalogs: those that every Postgres has (catalog/system_catalog.h)
// and those of the objects that DDL made here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/virtual_tables.h"
#include "postmaster/virtual_rows.h"

namespace sluice {

struct QuerySession;

using CatalogValue = std::optional<std::string>;

// A row being made, all NULL at first; columns are set by name.
class CatalogRow {
 public:
  explicit CatalogRow(std::string_view table);
  CatalogRow& Set(std::string_view column, CatalogValue value);
  CatalogRow& Set(std::string_view column, const char* value) {
    return Set(column, CatalogValue(value));
  }
  CatalogRow& Set(std::string_view column, bool value) { return Set(column, value ? "t" : "f"); }
  template <typename Int>
  requires std::is_integral_v<Int> CatalogRow& Set(std::string_view column, Int value) {
    return Set(column, CatalogValue(std::to_string(value)));
  }
  // Each column that is still NULL of these names.
  CatalogRow& Set(std::initializer_list<std::string_view> columns, const char* value);
  VirtualRow values() const { return values_; }

 private:
  const VirtualTable& table_;
  std::vector<CatalogValue> values_;
};

// {"a","b"}
std::string TextArray(const std::vector<std::string>& values);
// {a=1,b=2} of options, secrets left out; NULL for none.
CatalogValue OptionsArray(const Options& options);

// Oids of what the catalog keeps no oid for: always the same for the same object, and apart from
// those that are handed out.
Oid DerivedOid(std::string_view kind, std::string_view key);
Oid ColumnDefaultOid(Oid table, size_t number);  // pg_attrdef's
Oid RoleOid(const Catalog& catalog, std::string_view name);
std::string RoleName(const Catalog& catalog, const std::string& user, Oid role);  // "": none
std::vector<std::string> AllSchemas(const Catalog& catalog);
// Everybody who is known by name: roles, and whom older catalogs name as owners. `user` is
// the session's.
std::set<std::string> KnownRoles(const Catalog& catalog, const std::string& user);
Oid SchemaOid(const Catalog& catalog, std::string_view name);
Oid ForeignDataWrapperOid(std::string_view name);
inline constexpr Oid kDatabaseOid = 5;

// Whether rows of the catalog `name` are made here: any table of pg_catalog is.
void ScanSystemCatalog(const QuerySession& session, const VirtualTable& table,
                       const VirtualRowSink& sink);

// By catalog; each calls the sink for the objects made here only. In pg_catalog_*.cc.
using CatalogScan = void (*)(const QuerySession& session, const VirtualRowSink& sink);
CatalogScan FindRelationScan(std::string_view table);
CatalogScan FindIndexScan(std::string_view table);
CatalogScan FindTypeScan(std::string_view table);
CatalogScan FindForeignScan(std::string_view table);
CatalogScan FindGlobalScan(std::string_view table);

// How a relation is shown.
char RelationKindLetter(const Relation& relation);
bool IsShown(const Relation& relation);  // not the leaves of tables that Sluice made
CatalogValue AclValue(const Acl& acl);   // {postgres=arwdDxt/postgres}; NULL: the default
CatalogRow MakeClassRow(Oid oid, const std::string& name, Oid schema, Oid owner, char kind);
CatalogRow MakeAttributeRow(Oid relation, size_t number, std::string_view name, Oid type,
                            int32_t typmod, Oid collation);
Oid CollationOf(Oid type, Oid collation);  // the type's where there is none
// The catalog that holds an object, as an oid of pg_class; kInvalidOid: unknown here.
Oid CatalogOf(const Catalog& catalog, Oid object);
std::string PartitionBoundText(const Catalog& catalog, const Relation& relation);
std::string PartitionKeyText(const Relation& relation);

}  // namespace sluice
