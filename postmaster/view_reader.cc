#include "postmaster/view_reader.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "parser/raw.h"
#include "postmaster/child_process.h"
#include "postmaster/view_definition.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"
#include "stream/change_reader.h"

namespace sluice {

ViewStore* SharedViewStore(const std::string& directory) {
  static std::unique_ptr<ViewStore> store;  // one environment must not be opened twice
  if (store == nullptr) {
    Result<std::unique_ptr<ViewStore>> opened = ViewStore::Open(directory + "/views", {});
    if (!opened.ok()) {
      if (opened.error().state == MakeSqlState("58P01")) return nullptr;
      throw QueryError(opened.error());
    }
    store = std::move(*opened);
  }
  return store.get();
}

std::unique_ptr<ViewSnapshot> LookAtViews(const std::string& directory) {
  ViewStore* store = SharedViewStore(directory);
  if (store == nullptr) return nullptr;
  try {
    return store->Snapshot();
  } catch (const QueryError& error) {
    // Made just now, and still without anything in it.
    if (error.error.state == sqlstate::kObjectNotInPrerequisiteState) return nullptr;
    throw;
  }
}

const char* NameOf(ViewState state) {
  switch (state) {
    case ViewState::kCreating:
      return "creating";
    case ViewState::kCaughtUp:
      return "caught up";
    case ViewState::kCreated:
      return "created";
    case ViewState::kFailed:
      return "failed";
  }
  return "";
}

// ViewDefinitionText, which is asked for with every query, made once for a definition.
static const std::string& DefinitionOf(const Relation& view) {
  struct Known {
    std::string sql, text;
    Options settings, options;
  };
  static std::map<Oid, Known> definitions;
  Known& known = definitions[view.oid];
  if (known.text.empty() || known.sql != view.view_sql || known.settings != view.view_settings ||
      known.options != view.options)
    known = {view.view_sql, ViewDefinitionText(view), view.view_settings, view.options};
  return known.text;
}

ViewStatus StatusOfView(const ViewSnapshot* snapshot, const Relation& view) {
  ViewStatus status;
  if (snapshot == nullptr) return status;
  std::optional<RelationInfo> info = snapshot->Relation(view.oid);
  if (!info || info->definition != DefinitionOf(view)) {
    std::optional<std::string> text = snapshot->Get(JobKey(view.oid));
    if (!text) return status;
    JobFailure failure = JobFailure::Parse(*text);
    if (failure.definition != DefinitionOf(view)) return status;
    status.state = ViewState::kFailed;
    status.error = failure.error;
    return status;
  }
  status.rows = info->rows;
  switch (info->state) {
    case RelationState::kCreating:
      status.state = ViewState::kCreating;
      break;
    case RelationState::kCaughtUp:
      status.state = ViewState::kCaughtUp;
      // It is fed by a table's copy while that grows: that is its own backfill.
      for (Oid input : info->inputs) {
        std::optional<RelationInfo> source = snapshot->Relation(input);
        if (source && source->kind == StoredRelationKind::kSource &&
            source->state != RelationState::kCreated)
          status.state = ViewState::kCreating;
      }
      break;
    case RelationState::kCreated:
      status.state = ViewState::kCreated;
      break;
    case RelationState::kFailed:
      status.state = ViewState::kFailed;
      status.error = info->failure;
      break;
  }
  return status;
}

std::optional<double> ViewProgress::Percent() const {
  if (!rows_estimated) return std::nullopt;
  if (*rows_estimated <= rows_done) return *rows_estimated == 0 ? 0.0 : 100.0;
  double percent = 100.0 * static_cast<double>(rows_done) / static_cast<double>(*rows_estimated);
  return std::round(percent * 10) / 10;
}

std::optional<double> ViewProgress::RowsPerSecond() const {
  if (!started_at || now <= *started_at) return std::nullopt;
  double rows = static_cast<double>(rows_done);
  return std::round(rows / (static_cast<double>(now - *started_at) / 1e6));
}

std::optional<int64_t> ViewProgress::SecondsLeft() const {
  std::optional<double> rate = RowsPerSecond();
  if (!rows_estimated || !rate || *rate <= 0) return std::nullopt;
  if (*rows_estimated <= rows_done) return 0;
  return static_cast<int64_t>(std::ceil(static_cast<double>(*rows_estimated - rows_done) / *rate));
}

namespace {

// Of one table: rows read and estimated, added up, and a text a shard.
void AddTableProgress(const ViewSnapshot& snapshot, const Catalog& catalog, Oid table,
                      ViewProgress* progress, uint64_t* read, uint64_t* estimated) {
  snapshot.ForEach(
      fmt::format("leaf/{}/", table), [&](std::string_view key, std::string_view value) {
        nlohmann::json json = nlohmann::json::parse(value);
        uint64_t rows = json.at("rows").get<uint64_t>();
        // A table that has never been analyzed has no estimate until it is read.
        uint64_t of = std::max(rows, json.value("estimate", uint64_t{0}));
        if (json.at("complete").get<bool>()) of = rows;
        *read += rows;
        *estimated += of;
        Oid leaf = static_cast<Oid>(std::stoul(std::string(key.substr(key.rfind('/') + 1))));
        const Relation* relation = catalog.FindRelation(leaf);
        if (relation == nullptr || !catalog.servers.contains(relation->server)) return;
        progress->shards +=
            fmt::format("{}{} {}/{}", progress->shards.empty() ? "" : ", ",
                        QuoteIdentifier(catalog.servers.at(relation->server).name), rows, of);
      });
}

}  // namespace

ViewProgress ProgressOfView(const ViewSnapshot* snapshot, const Catalog& catalog,
                            const Relation& view) {
  ViewProgress progress;
  progress.now = PostgresNow();
  std::optional<RelationInfo> info;
  if (snapshot != nullptr) info = snapshot->Relation(view.oid);
  if (!info || info->definition != ViewDefinitionText(view)) return progress;
  if (std::optional<std::string> started = snapshot->Get(JobStartKey(view.oid)))
    progress.started_at = std::stoll(*started);
  progress.rows_estimated = 0;
  for (const EdgeInfo& edge : snapshot->Edges(*info)) {
    std::optional<RelationInfo> input = snapshot->Relation(edge.input);
    if (!input) continue;
    uint64_t read = input->rows, estimated = input->rows;
    if (input->kind == StoredRelationKind::kSource) {
      read = estimated = 0;
      AddTableProgress(*snapshot, catalog, edge.input, &progress, &read, &estimated);
    }
    // An edge at its input's end takes in what comes there. Otherwise a table's rows are read into
    // its copy, and then from there: half the work each.
    uint64_t done = edge.at_end ? read : edge.rows_delivered;
    if (!edge.at_end && input->kind == StoredRelationKind::kSource && !BackfillRateLimit(view))
      done = (read + edge.rows_delivered) / 2;
    progress.rows_done += done;
    *progress.rows_estimated += std::max(estimated, done);
  }
  return progress;
}

void WaitForViews(const std::string& directory,
                  const std::function<std::shared_ptr<const Catalog>()>& catalog,
                  std::span<const Oid> views) {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    std::shared_ptr<const Catalog> now = catalog();
    std::unique_ptr<ViewSnapshot> snapshot = LookAtViews(directory);
    bool all = true;
    for (Oid oid : views) {
      const Relation* view = now->FindRelation(oid);
      if (view == nullptr)
        Throw(sqlstate::kUndefinedTable,
              "the materialized view was dropped while it was waited for");
      ViewStatus status = StatusOfView(snapshot.get(), *view);
      if (status.state == ViewState::kFailed) throw QueryError(*status.error);
      all = all && status.state == ViewState::kCreated;
    }
    if (all) return;
    snapshot.reset();
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

void WaitForViewWorker(uint64_t generation) {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (shared_memory->live_views.catalog_generation.load(std::memory_order_acquire) > generation)
      return;  // W5
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

void WaitForPositions(std::span<const ServerPosition> positions) {
  ViewNewsWaiter waiter;
  for (;;) {
    ResetLatch(&my_proc->latch);
    bool reached = true;
    for (const ServerPosition& position : positions) {
      const ReplicatedServer* server = FindReplicatedServer(position.server);
      if (server == nullptr) continue;
      reached =
          reached && server->applied_lsn.load(std::memory_order_acquire) > position.lsn;  // W2
    }
    if (reached) return;
    WaitInterruptibly(WaitEvent::kViewProgress);
  }
}

void FlushServers(const Catalog& catalog, const RemoteSession& session,
                  std::span<const Oid> servers) {
  // A mark on every shard: when it has come, so has everything committed before.
  std::vector<RemoteQuery> queries;
  for (Oid server : servers)
    queries.push_back(
        {server, fmt::format("SELECT pg_catalog.pg_logical_emit_message(true, '{}', 'flush')",
                             kMarkMessagePrefix)});
  std::vector<RemoteRows> answers = RunRemoteQueries(catalog, session, queries);
  std::vector<ServerPosition> positions;
  for (size_t i = 0; i < queries.size(); i++)
    positions.push_back({queries[i].server, ParseLsn(answers[i].rows.at(0).at(0).value_or(""))});
  WaitForPositions(positions);
}

const Relation& FindViewByText(const Catalog& catalog, const std::vector<std::string>& search_path,
                               std::string_view text) {
  // The name is read by the grammar.
  ParsedSql parsed = ParseSql(fmt::format("TABLE {}", text));
  const PgQuery__RangeVar& name =
      *parsed.statements().at(0).node->select_stmt->from_clause[0]->range_var;
  std::string_view schema = name.schemaname == nullptr ? "" : name.schemaname;
  const Relation* view = schema.empty() ? catalog.FindRelation(search_path, name.relname)
                                        : catalog.FindRelation(schema, name.relname);
  if (view == nullptr) Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", text);
  if (view->kind != RelationKind::kMaterializedView)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a materialized view", view->name);
  return *view;
}

}  // namespace sluice
