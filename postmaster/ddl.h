// Commands that change the catalog: Postgres's DDL for servers, foreign tables, partitions and
// views, and CALL sluice.…. Each works on a copy of the session's catalog and replaces it when it
// has succeeded, so that a failed command leaves nothing behind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "common/log.h"
#include "parser/raw.h"
#include "postmaster/distributed_transaction.h"
#include "types/kernel.h"

namespace sluice {

class Settings;

struct Ddl;

struct DdlContext {
  // The session's catalog. After a change: a new one, not yet durable; the caller commits it by
  // CatalogStore at COMMIT or forgets it at ROLLBACK (and then registers the old one's objects
  // again).
  std::shared_ptr<const Catalog>& current;
  bool& pending;  // set with every change of `current`
  const SessionSettings* settings;
  std::vector<std::string> search_path;  // resolved, as SearchPath() gives it
  std::string user, database;
  std::function<void(LogLevel level, const Error& notice)> notice;  // kNotice, kWarning
  RemoteRunner remote;
  // For materialized views: all settings; whether a view is complete; out: views to be built.
  const Settings* configuration = nullptr;
  std::function<bool(const Relation& view)> is_created;
  std::vector<Oid> created_views;
  // One text of several statements on servers at once, as a part of the session's transaction.
  std::function<void(std::span<const Oid> servers, const std::string& sql)> run_on_servers;
  bool in_block = false;             // BEGIN was said
  std::string default_distribution;  // the setting sluice.default_distribution
  std::string command_tag;           // out
  // Out: a statement that the session runs next (CREATE TABLE AS); "SELECT" and its rows are the
  // tag.
  std::string then_insert;
  // Out: the rest of the command, after that statement (RunDdlFinish).
  std::function<void(Ddl& ddl)> finish;
};

// False if the statement is none that is known here; then nothing happened.
bool RunDdl(const RawStatement& statement, DdlContext& context);
void RunDdlFinish(const RawStatement& statement, DdlContext& context);

}  // namespace sluice
