// A server, a user and a session's settings → the ConnectionSpec that the io worker connects by.
#pragma once

#include <string_view>

#include "catalog/catalog.h"
#include "common/arena.h"
#include "shm/stream.h"

namespace sluice {

// Settings under which a shard's answers would be those of one Postgres with this session's
// settings, as SHOW prints them. An empty text leaves the shard's own.
struct RemoteSettings {
  std::string_view time_zone = "UTC";
  std::string_view date_style = "ISO, MDY";
  std::string_view interval_style = "postgres";
  std::string_view bytea_output = "hex";
  int extra_float_digits = 1;
  // Names in Remote SQL are qualified, so that this is fixed unless a whole statement goes to a
  // shard.
  std::string_view search_path = "pg_catalog";
  std::string_view lc_monetary, lc_numeric, lc_time;
  std::string_view xml_option;
  int64_t lock_timeout_ms = 0;  // 0: none
};

struct ConnectionLimits {
  uint32_t connections_max = 32;
};

// In `arena`, which is to be shared memory if the io worker reads it. Host names are resolved here
// (kept for a minute): nothing may block the io worker. Throws 08001 for a name that does not
// resolve, 42704 where `user` has no user mapping. `replication`: the server end is a walsender.
const ConnectionSpec* MakeConnectionSpec(const Catalog& catalog, Oid server, std::string_view user,
                                         const RemoteSettings& settings,
                                         const ConnectionLimits& limits, Arena* arena,
                                         bool replication = false);

// A foreign table of lines_fdw: keywords hostaddr and port, or path.
const ConnectionSpec* MakeLinesSpec(const Catalog& catalog, const Relation& table,
                                    const ConnectionLimits& limits, Arena* arena);

// For requests to forget pooled connections.
uint64_t HashPoolKey(std::string_view pool_key);

}  // namespace sluice
