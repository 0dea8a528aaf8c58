// One statement on one server or several at once, its rows as text: what IMPORT FOREIGN SCHEMA,
// attach_table and analyze ask of the shards' catalogs. Small results only; all is held in memory.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/connection.h"
#include "executor/executor.h"

namespace sluice {

struct RemoteQuery {
  Oid server;
  std::string sql;
  StreamTransaction transaction = {};  // pin 0: RemoteSession's
  uint64_t xid = 0;                    // Stream::xid
};

using RemoteRow = std::vector<std::optional<std::string>>;
struct RemoteRows {
  std::vector<RemoteRow> rows;
  std::string command_tag;
  uint64_t xid = 0;  // Stream::xid
};

// Appends whole DataRow messages with values in the text format. Throws 08P01.
void AppendRemoteRows(const char* data, size_t size_bytes, std::vector<RemoteRow>* rows);

// How this session reaches servers.
struct RemoteSession {
  std::string user;
  RemoteSettings settings;
  ConnectionLimits limits;
  int64_t admission_timeout_us = 60'000'000;
  int64_t silence_timeout_us = 0;
  // In which transaction; null: each statement by itself.
  std::function<StreamTransaction(Oid server)> transaction;
  StreamKind kind = StreamKind::kQuery;  // kSimple: several statements in one text, no rows
  StreamGate gate = StreamGate::kNone;
};

// All at once, through the io worker; results in the order of `queries`. Throws the first error,
// after all have ended.
std::vector<RemoteRows> RunRemoteQueries(const Catalog& catalog, const RemoteSession& session,
                                         std::span<const RemoteQuery> queries);

// The same without throwing what a server answered: one result or error a query.
std::vector<Result<RemoteRows>> TryRemoteQueries(const Catalog& catalog,
                                                 const RemoteSession& session,
                                                 std::span<const RemoteQuery> queries);

// RunRemoteQueries with the session bound: what DDL gets.
using RemoteRunner = std::function<std::vector<RemoteRows>(const Catalog& catalog,
                                                           std::span<const RemoteQuery> queries)>;

}  // namespace sluice
