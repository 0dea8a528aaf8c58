// Names of objects for regclass, regtype and their kin, and what functions of the catalog see of
// the session that calls them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "types/kernel.h"
#include "types/object_name.h"

namespace sluice {

class Settings;

// The session of this process, as far as functions look at it; set at each statement's start.
struct CatalogSession {
  std::shared_ptr<const Catalog> catalog;
  Settings* settings = nullptr;
  uint64_t settings_version = 0;
  const SessionSettings* session_settings = nullptr;
  std::vector<std::string> search_path;
  std::string user, database;
};

// Makes the session what this process's functions see, and its catalog what object_names knows.
void SetCatalogSession(CatalogSession session);
// Whether that is what it was set to last.
bool SeesCatalog(const std::shared_ptr<const Catalog>& catalog, uint64_t settings_version);
// Throws 0A000 in a process without a session (a parallel worker).
const CatalogSession& CurrentCatalogSession();

// What has a name in a schema: a relation, a sequence, an index.
struct NamedObject {
  Oid oid = kInvalidOid;
  std::string schema, name;
};
// Whatever pg_class shows under that oid; oid 0: nothing.
NamedObject FindClass(const Catalog& catalog, Oid oid);
Catalog::IndexOfTable FindIndexByOid(const Catalog& catalog, Oid oid);
// An empty schema: along the search path. kInvalidOid: none.
Oid FindClassByName(const CatalogSession& session, const std::string& schema,
                    const std::string& name);
// Whether the name alone finds the object.
bool IsClassVisible(const CatalogSession& session, Oid oid);
bool IsSchemaInPath(const CatalogSession& session, std::string_view schema);

// "Schema".name as quote_ident() writes it, the parts unquoted; 42602 for what is no name.
std::vector<std::string> SplitQualifiedName(std::string_view text);

// nullopt instead of an error where there is none of that name.
std::optional<Oid> TryFindObject(Oid type, std::string_view name);

}  // namespace sluice
