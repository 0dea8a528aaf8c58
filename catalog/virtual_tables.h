// The relations that the server answers itself: Postgres's system catalogs and views, with the
// names, oids and columns that Postgres gives them, and the views of schema sluice. The rows of
// those that are not views over others are made in postmaster/.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "types/oid.h"

namespace sluice {

inline constexpr Oid kPgCatalogSchemaOid = 11, kSluiceSchemaOid = 15000,
                     kSluiceExtensionOid = 14999;  // what users did not make is its

struct VirtualColumn {
  std::string_view name;
  Oid type;
};

struct VirtualTable {
  Oid oid;
  std::string_view schema, name;
  std::span<const VirtualColumn> columns;
  char kind;  // as in pg_class: r or v
  // A view's query, every relation qualified with its schema; empty: rows made here.
  std::string_view sql = {};
};

// Of the function sluice.verify.
std::span<const VirtualColumn> VerifyColumns();

void LoadVirtualTables();  // by LoadBuiltinCatalog()

std::span<const VirtualTable> AllVirtualTables();
// An empty schema: as if pg_catalog came first in the search path; the others need their schema.
const VirtualTable* FindVirtualTable(std::string_view schema, std::string_view name);
const VirtualTable* FindVirtualTable(Oid oid);

}  // namespace sluice
