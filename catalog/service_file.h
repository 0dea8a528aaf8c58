// libpq's connection service file. It is read here because libpq would do it in the io worker, and
// then look up the host names that it finds there.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sluice {

// What the service says, keyword → value: from $PGSERVICEFILE or ~/.pg_service.conf, else from
// pg_service.conf in $PGSYSCONFDIR (or Debian's folder). Throws 08001 where there is no such
// service, or where its lines are not understood.
std::map<std::string, std::string> ReadService(std::string_view name);

}  // namespace sluice
