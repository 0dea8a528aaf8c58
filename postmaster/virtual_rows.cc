#include "postmaster/virtual_rows.h"

#include "catalog/catalog.h"
#include "catalog/privilege.h"
#include "catalog/quote.h"
#include "postmaster/child_process.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"
#include "postmaster/settings.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_reader.h"
#include "postmaster/view_verify.h"
#include "shm/shared_memory.h"
#include "stream/pgoutput.h"
#include "types/codec.h"

namespace sluice {

std::optional<std::string> TimestampValue(int64_t at) {
  if (at == 0) return std::nullopt;
  static const SessionSettings utc;
  Column column;
  column.type = kTimestamptzOid;
  column.physical = Physical::kInt8;
  column.mask = 0;
  column.data = &at;
  std::string text;
  AppendText(column, 0, utc, &text);
  return text;
}

namespace {

using Value = std::optional<std::string>;

Value TextOrNull(const char* text) {
  return text[0] == 0 ? std::nullopt : Value(text);
}

const char* NameOfState(ActivityState state) {
  switch (state) {
    case ActivityState::kNone:
      return "";
    case ActivityState::kIdle:
      return "idle";
    case ActivityState::kActive:
      return "active";
    case ActivityState::kIdleInTransaction:
      return "idle in transaction";
    case ActivityState::kIdleInFailedTransaction:
      return "idle in transaction (aborted)";
  }
  return "";
}

// Users see what the sessions of roles whose privileges they have are doing.
void ScanActivity(const QuerySession& session, const VirtualRowSink& sink) {
  const Catalog& catalog = *session.catalog;
  const Role* self = catalog.FindRole(session.user);
  auto may_see = [&](const Role* role) {
    return self != nullptr &&
           (self->superuser || role == nullptr || HasPrivilegesOf(catalog, *self, role->oid));
  };
  const ProcessTable& table = shared_memory->processes;
  for (ProcNumber number = 0; number < table.count; number++) {
    ActivityRow a;
    if (!ReadActivity(table.slots[number], &a)) continue;
    bool client = a.kind == ProcessKind::kClientBackend;
    const Role* role = a.user[0] == 0 ? nullptr : catalog.FindRole(a.user);
    Value role_oid = role != nullptr ? Value(std::to_string(role->oid)) : std::nullopt;
    if (!may_see(role)) {
      Value row[22] = {Value("1"), TextOrNull(a.database), std::to_string(a.pid),    std::nullopt,
                       role_oid,   TextOrNull(a.user),     Value(a.application_name)};
      row[20] = "<insufficient privilege>";
      sink(row);
      continue;
    }
    const WaitEventName& wait = NameOf(a.wait_event);
    Value leader;
    if (a.leader != kNoProc && a.leader < table.count)
      leader = std::to_string(table.slots[a.leader].pid.load(std::memory_order_relaxed));
    // Clients that have not finished their start-up have no user yet.
    Value row[] = {
        client ? Value("1") : std::nullopt,
        TextOrNull(a.database),
        std::to_string(a.pid),
        leader,
        role_oid,
        TextOrNull(a.user),
        Value(a.application_name),
        TextOrNull(a.client_addr),
        std::nullopt,
        client ? Value(std::to_string(a.client_port)) : std::nullopt,
        TimestampValue(a.backend_start),
        TimestampValue(a.xact_start),
        TimestampValue(a.query_start),
        TimestampValue(a.state_change),
        TextOrNull(wait.type),
        TextOrNull(wait.name),
        TextOrNull(NameOfState(a.state)),
        std::nullopt,
        std::nullopt,
        std::nullopt,
        Value(a.query),
        NameOf(a.kind),
    };
    sink(row);
  }
}

const char* NameOf(SettingContext context) {
  switch (context) {
    case SettingContext::kInternal:
      return "internal";
    case SettingContext::kPostmaster:
      return "postmaster";
    case SettingContext::kSighup:
      return "sighup";
    case SettingContext::kUser:
      return "user";
  }
  return "";
}

const char* NameOf(SettingType type) {
  switch (type) {
    case SettingType::kBool:
      return "bool";
    case SettingType::kInt:
      return "integer";
    case SettingType::kReal:
      return "real";
    case SettingType::kString:
      return "string";
    case SettingType::kEnum:
      return "enum";
  }
  return "";
}

const char* NameOf(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kFile:
      return "configuration file";
    case SettingSource::kCommandLine:
      return "command line";
    case SettingSource::kClient:
      return "client";
    case SettingSource::kSession:
      return "session";
  }
  return "";
}

void ScanSettings(const Settings& settings, const VirtualRowSink& sink) {
  for (const SettingInfo& info : AllSettings()) {
    bool number = info.type == SettingType::kInt || info.type == SettingType::kReal;
    Value choices;
    if (info.type == SettingType::kEnum) {
      choices = "{\"" + std::string(info.choices) + "\"}";
      for (size_t at; (at = choices->find('|')) != std::string::npos;)
        choices->replace(at, 1, "\",\"");
    }
    Value row[] = {
        std::string(info.name),
        settings.Text(info.name),
        info.unit.empty() ? std::nullopt : Value(info.unit),
        std::string(info.group),
        std::string(info.description),
        std::nullopt,
        NameOf(info.context),
        NameOf(info.type),
        NameOf(settings.Source(info.name)),
        number ? Value(fmt::format("{}", info.min)) : std::nullopt,
        number ? Value(fmt::format("{}", info.max)) : std::nullopt,
        choices,
        std::string(info.boot_value),
        settings.ResetText(info.name),
        std::nullopt,
        std::nullopt,
        "f",
    };
    sink(row);
  }
}

std::string OptionsText(const Options& options) {
  std::string text;
  for (const auto& [name, value] : options)
    if (name.find("password") == std::string::npos)
      text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

void ScanServers(const Catalog& catalog, const VirtualRowSink& sink) {
  for (const auto& [oid, server] : catalog.servers) {
    int tables = 0;
    for (const auto& [number, relation] : catalog.relations) tables += relation.server == oid;
    Value row[] = {server.name, server.wrapper, OptionsText(server.options), server.owner,
                   std::to_string(tables)};
    sink(row);
  }
}

void ScanTables(const Catalog& catalog, const VirtualRowSink& sink) {
  static constexpr const char* kKinds[] = {"foreign table",      "partitioned table",
                                           "inheritance parent", "view",
                                           "replicated table",   "materialized view"};
  static constexpr const char* kStrategies[] = {"", "HASH", "LIST", "RANGE"};
  for (const auto& [oid, relation] : catalog.relations) {
    Value parent, key, server, remote;
    if (const Relation* above = catalog.FindRelation(relation.parent))
      parent = above->schema + "." + above->name;
    if (relation.key.strategy != PartitionStrategy::kNone) {
      key = std::string(kStrategies[static_cast<int>(relation.key.strategy)]) + " (";
      for (size_t i = 0; i < relation.key.expressions.size(); i++)
        *key += (i == 0 ? "" : ", ") + relation.key.expressions[i];
      *key += ")";
    }
    auto found = catalog.servers.find(relation.server);
    if (found != catalog.servers.end()) {
      server = found->second.name;
      remote = relation.remote_schema() + "." + relation.remote_table();
    }
    Value row[] = {relation.schema,
                   relation.name,
                   kKinds[static_cast<int>(relation.kind)],
                   parent,
                   key,
                   server,
                   remote,
                   std::to_string(relation.columns.size()),
                   fmt::format("{}", relation.row_estimate)};
    sink(row);
  }
}

const char* NameOf(StreamKind kind) {
  switch (kind) {
    case StreamKind::kQuery:
      return "query";
    case StreamKind::kSimple:
      return "command";
    case StreamKind::kCopyOut:
      return "copy out";
    case StreamKind::kCopyIn:
      return "copy in";
    case StreamKind::kDescribe:
      return "describe";
    case StreamKind::kLines:
      return "lines";
    default:
      return "other";
  }
}

const char* NameOf(StreamState state) {
  switch (state) {
    case StreamState::kPending:
      return "waiting for admission";
    case StreamState::kConnecting:
      return "connecting";
    case StreamState::kRunning:
      return "running";
    case StreamState::kEnded:
      return "ended";
    case StreamState::kFailed:
      return "failed";
    case StreamState::kCancelled:
      return "canceled";
  }
  return "";
}

// Whom a stream waits for.
Value WaitOf(const StreamRow& stream) {
  switch (stream.state) {
    case StreamState::kPending:
      return "admission";
    case StreamState::kConnecting:
      return "server";
    case StreamState::kRunning:
      return stream.held_back ? "consumer" : "server";
    default:
      return stream.chunks_in_use > 0 ? Value("consumer") : std::nullopt;
  }
}

void ScanStreams(const VirtualRowSink& sink) {
  const ProcessTable& table = shared_memory->processes;
  auto ms = [](int64_t us) { return fmt::format("{:.3f}", static_cast<double>(us) / 1000); };
  for (const StreamRow& s : ReadStreams()) {
    Value pid;
    if (s.backend < table.count) pid = std::to_string(table.slots[s.backend].pid.load());
    // A connection that is lent is the session's own matter: nothing is counted.
    auto number = [&](auto value) { return s.lent ? Value() : std::to_string(value); };
    Value row[] = {pid,
                   s.server_name,
                   s.lent ? "connection" : NameOf(s.kind),
                   s.lent ? "lent" : NameOf(s.state),
                   number(s.rows),
                   number(s.bytes),
                   number(s.chunks),
                   number(s.chunks_in_use),
                   number(s.chunk_quota),
                   s.held_back ? "t" : "f",
                   s.lent ? Value() : ms(s.held_back_us),
                   s.first_row_us == 0 ? Value() : ms(s.first_row_us),
                   ms(s.age_us),
                   s.lent ? Value() : WaitOf(s),
                   s.lent ? Value() : Value(s.sql)};
    sink(row);
  }
}

// What keeps it from being complete, besides its own rows.
std::string WaitsFor(const QuerySession& session, const ViewSnapshot* snapshot,
                     const Relation& view, size_t building) {
  const Catalog& catalog = *session.catalog;
  std::string list;
  auto add = [&](const std::string& text) { list += (list.empty() ? "" : ", ") + text; };
  for (Oid used : view.view_uses) {
    const Relation* relation = catalog.FindRelation(used);
    if (relation == nullptr) continue;
    if (relation->kind == RelationKind::kMaterializedView) {
      if (StatusOfView(snapshot, *relation).state != ViewState::kCreated)
        add(QuoteQualified(relation->schema, relation->name));
      continue;
    }
    for (const Relation* leaf : catalog.Leaves(*relation)) {
      const ReplicatedServer* stream = FindReplicatedServer(leaf->server);
      if (stream != nullptr && stream->streaming.load(std::memory_order_relaxed) == 0)
        add("server " + QuoteIdentifier(catalog.servers.at(leaf->server).name));
    }
  }
  if (BackfillRateLimit(view) == 0) add("backfill_rate_limit");
  bool stored = snapshot != nullptr && snapshot->Relation(view.oid);
  if (!stored && building >= static_cast<size_t>(session.settings->Integer("max_backfills")))
    add("max_backfills");
  return list;
}

// Views that are not created; a job is its view's creation.
void ScanJobs(const QuerySession& session, const VirtualRowSink& sink) {
  const Catalog& catalog = *session.catalog;
  std::unique_ptr<ViewSnapshot> snapshot = LookAtViews(session.settings->Text("data_directory"));
  std::vector<std::pair<const Relation*, ViewStatus>> jobs;
  size_t building = 0;
  for (const auto& [oid, view] : catalog.relations) {
    if (view.kind != RelationKind::kMaterializedView) continue;
    ViewStatus status = StatusOfView(snapshot.get(), view);
    if (status.state == ViewState::kCreated) continue;
    bool stored = snapshot != nullptr && snapshot->Relation(oid);
    if (stored && status.state != ViewState::kFailed && BackfillRateLimit(view) != 0) building++;
    jobs.emplace_back(&view, std::move(status));
  }
  for (const auto& [view, status] : jobs) {
    ViewProgress progress = ProgressOfView(snapshot.get(), catalog, *view);
    std::string waits_for = status.state == ViewState::kFailed
                                ? ""
                                : WaitsFor(session, snapshot.get(), *view, building);
    auto text = [](const std::string& value) {
      return value.empty() ? std::nullopt : Value(value);
    };
    auto number = [](const auto& value) {
      return value ? Value(fmt::format("{}", *value)) : std::nullopt;
    };
    Value row[] = {
        std::to_string(view->oid),
        QuoteQualified(view->schema, view->name),
        view->view_command,
        NameOf(status.state),
        text(waits_for),
        std::to_string(progress.rows_done),
        number(progress.rows_estimated),
        text(progress.shards),
        number(progress.Percent()),
        number(progress.RowsPerSecond()),
        progress.SecondsLeft() ? Value(fmt::format("{} s", *progress.SecondsLeft())) : std::nullopt,
        progress.started_at ? TimestampValue(*progress.started_at) : std::nullopt,
        status.error ? Value(status.error->message) : std::nullopt};
    sink(row);
  }
}

void ScanShards(const Catalog& catalog, const VirtualRowSink& sink) {
  for (const ReplicatedServer& entry : shared_memory->live_views.servers) {
    Oid oid = entry.server.load(std::memory_order_acquire);  // W1
    if (oid == 0) break;
    auto server = catalog.servers.find(oid);
    uint64_t applied = entry.applied_lsn.load(std::memory_order_acquire);  // W2
    if (server == catalog.servers.end() || applied == ~uint64_t{0}) continue;
    uint64_t reached = entry.server_lsn.load(std::memory_order_relaxed);
    uint64_t lag_bytes = reached > applied ? reached - applied : 0;
    int64_t lag_us = entry.server_time_us.load(std::memory_order_relaxed) -
                     entry.applied_at_us.load(std::memory_order_relaxed);
    double lag_s = lag_bytes == 0 ? 0 : static_cast<double>(std::max<int64_t>(lag_us, 0)) / 1e6;
    Value row[] = {
        server->second.name,     entry.streaming.load(std::memory_order_relaxed) != 0 ? "t" : "f",
        LsnText(applied),        LsnText(entry.confirmed_lsn.load(std::memory_order_relaxed)),
        LsnText(reached),        std::to_string(lag_bytes),
        fmt::format("{}", lag_s)};
    sink(row);
  }
}

void ScanStatus(const VirtualRowSink& sink) {
  const SharedMemory& shared = *shared_memory;
  auto put = [&](const char* name, std::string value) {
    Value row[] = {name, std::move(value)};
    sink(row);
  };
  int64_t now = PostgresNow();
  put("uptime_seconds", std::to_string((now - supervision->started_at.load()) / 1'000'000));
  put("crash_restarts", std::to_string(supervision->crash_restarts.load()));
  put("io_method", shared.io_uses_epoll.load() != 0 ? "epoll" : "io_uring");
  put("shard_connections", std::to_string(shared.shards_connections.load()));
  put("chunks", std::to_string(shared.chunks.chunk_count));
  put("chunks_in_use", std::to_string(shared.chunks.in_use.load()));
  put("chunks_in_use_max", std::to_string(shared.chunks.in_use_max.load()));
  put("chunk_size_bytes", std::to_string(shared.chunks.chunk_size_bytes));
  put("arena_bytes", std::to_string(shared.extents.used_bytes.load()));
  put("catalog_generation", std::to_string(shared.catalog_generation.load()));
}

// Views of what Sluice does not have: no rows is the truth.
bool IsEmptyView(std::string_view name) {
  static constexpr std::string_view kViews[] = {
      "pg_policies",          "pg_publication_tables",   "pg_seclabels",
      "pg_replication_slots", "pg_stat_subscription",    "pg_replication_origin_status",
      "pg_stat_replication",  "pg_stat_wal_receiver",    "pg_stat_user_functions",
      "pg_stat_gssapi",       "pg_available_extensions", "pg_available_extension_versions"};
  return std::find(std::begin(kViews), std::end(kViews), name) != std::end(kViews);
}

}  // namespace

void ScanVirtualTable(const QuerySession& session, std::string_view name,
                      const VirtualRowSink& row) {
  if (name == "pg_stat_activity") return ScanActivity(session, row);
  if (name == "pg_settings") return ScanSettings(*session.settings, row);
  if (name == "servers") return ScanServers(*session.catalog, row);
  if (name == "tables") return ScanTables(*session.catalog, row);
  if (name == "streams") return ScanStreams(row);
  if (name == "jobs") return ScanJobs(session, row);
  if (name == "shards") return ScanShards(*session.catalog, row);
  if (std::string_view view = VerifiedView(name); !view.empty())
    return VerifyView(session, view, row);
  if (name == "status") return ScanStatus(row);
  if (name == "transactions") return ScanTransactions(session, row);
  const VirtualTable* table = FindVirtualTable("pg_catalog", name);
  bool here = table != nullptr && (table->kind == 'r' || IsEmptyView(name));
  if (here) return ScanSystemCatalog(session, *table, row);
  Refuse("view \"{}\" is not supported yet", name);
}

}  // namespace sluice
