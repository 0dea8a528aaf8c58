// System views that the server answers itself: their names and columns. The rows are made in
// postmaster/.
#pragma once

#include <span>
#include <string_view>

#include "types/oid.h"

namespace sluice {

struct VirtualColumn {
  std::string_view name;
  Oid type;
};

struct VirtualTable {
  std::string_view schema, name;
  std::span<const VirtualColumn> columns;
};

std::span<const VirtualTable> AllVirtualTables();
// An empty schema: as if pg_catalog came first in the search path; sluice's views need their
// schema.
const VirtualTable* FindVirtualTable(std::string_view schema, std::string_view name);

}  // namespace sluice
