// Postgres's system views that are queries over the system catalogs here too: those of
// information_schema, pg_tables, pg_views, pg_roles, …
#pragma once

#include <string_view>

namespace sluice {

// Empty: the view is not one of these.
std::string_view SystemViewSql(std::string_view schema, std::string_view name);

}  // namespace sluice
