#include "postmaster/running_query.h"

#include <set>

#include "catalog/connection.h"
#include "catalog/partition_router.h"
#include "common/bytes.h"
#include "executor/node.h"
#include "executor/plan_streams.h"
#include "executor/row_writer.h"
#include "postmaster/child_process.h"
#include "postmaster/distributed_transaction.h"
#include "postmaster/lease_set.h"
#include "postmaster/plan_cache.h"
#include "postmaster/remote_query.h"
#include "postmaster/settings.h"
#include "postmaster/statement_snapshots.h"
#include "postmaster/view_reader.h"
#include "postmaster/virtual_rows.h"
#include "shm/process_table.h"
#include "shm/transaction_table.h"
#include "types/codec.h"

namespace sluice {

PlannerSettings PlannerSettingsOf(const Settings& settings) {
  PlannerSettings planner;
  planner.enable_pushdown_filter = settings.Boolean("enable_pushdown_filter");
  planner.enable_pushdown_join = settings.Boolean("enable_pushdown_join");
  planner.enable_pushdown_aggregate = settings.Boolean("enable_pushdown_aggregate");
  planner.enable_pushdown_distinct = settings.Boolean("enable_pushdown_distinct");
  planner.enable_pushdown_sort = settings.Boolean("enable_pushdown_sort");
  planner.enable_pushdown_limit = settings.Boolean("enable_pushdown_limit");
  planner.claim_whole = settings.Text("parallel_append_claim") == "plan";
  planner.max_parallel_workers_per_gather =
      static_cast<int>(std::min(settings.Integer("max_parallel_workers_per_gather"),
                                settings.Integer("max_parallel_workers")));
  planner.work_mem_bytes = settings.Integer("work_mem") * 1024;
  planner.connections_per_scan = static_cast<int>(settings.Integer("connections_per_scan"));
  return planner;
}

RemoteSession RemoteSessionOf(const QuerySession& session) {
  const Settings& settings = *session.settings;
  RemoteSession remote;
  remote.user = session.user;
  remote.settings.time_zone = settings.Text("TimeZone");
  remote.settings.date_style = settings.Text("DateStyle");
  remote.settings.interval_style = settings.Text("IntervalStyle");
  remote.settings.bytea_output = settings.Text("bytea_output");
  remote.settings.extra_float_digits = static_cast<int>(settings.Integer("extra_float_digits"));
  remote.settings.xml_option = settings.Text("xmloption");
  remote.settings.lock_timeout_ms = settings.Integer("lock_timeout");
  remote.limits.connections_max = static_cast<uint32_t>(settings.Integer("connections_per_server"));
  remote.admission_timeout_us = settings.Integer("admission_timeout") * 1000;
  remote.silence_timeout_us = settings.Integer("shard_silence_timeout") * 1000;
  return remote;
}

const ConnectionSpec* ConnectionSpecFor(const QuerySession& session, Oid server, Arena* arena) {
  RemoteSession remote = RemoteSessionOf(session);
  // A foreign table with a socket of its own is reached by its options; oids of tables and servers
  // differ.
  if (const Relation* table = session.catalog->FindRelation(server))
    return MakeLinesSpec(*session.catalog, *table, remote.limits, arena);
  return MakeConnectionSpec(*session.catalog, server, remote.user, remote.settings, remote.limits,
                            arena);
}

RunningQuery::RunningQuery(const QuerySession& session, const Query& query,
                           const QueryOptions& options)
    : session_(session) {
  MakeContext(options);
  PlannerSettings planner = PlannerSettingsOf(*session.settings);
  PlanRequest request;
  request.catalog = session.catalog.get();
  request.session = context_.settings;
  request.settings = &planner;
  request.arena = &arena_;
  request.params = options.params;
  request.result_formats = options.formats;
  request.allow_pass_through =
      options.allow_pass_through && session.settings->Boolean("enable_pass_through");
  request.copy_options = options.copy_options;
  plans_ = options.plans;
  if (plans_ != nullptr) plan_ = plans_->Find(query, request);
  if (plan_ == nullptr) plan_ = PlanQuery(query, request);
}

RunningQuery::RunningQuery(const QuerySession& session, const Planner& plan,
                           const QueryOptions& options)
    : session_(session) {
  MakeContext(options);
  plan_ = plan(&arena_);
}

namespace {

// While a query's rows are sent: its client may fall behind.
class ClientWatch {
 public:
  ClientWatch(ClientSocket* client, int after_ms) : client_(after_ms < 0 ? nullptr : client) {
    if (client_ != nullptr) client_->LetFallBehind(after_ms);
  }
  ~ClientWatch() {
    if (client_ != nullptr) client_->LetFallBehind(-1);
  }
  ClientWatch(const ClientWatch&) = delete;
  ClientWatch& operator=(const ClientWatch&) = delete;

 private:
  ClientSocket* client_;
};

bool IsBehind(RowSink* sink) {
  ClientSocket* client = sink->client();
  return client != nullptr && client->behind();
}

}  // namespace

RunningQuery::~RunningQuery() {
  Finish();
}

void RunningQuery::Finish() {
  done_ = true;
  if (slice_) ReleaseSlice(*slice_);
  slice_.reset();
  slice_file_.reset();
  row_files_.clear();
  if (snapshots_ != nullptr) snapshots_->Cancel();
  executor_.reset();  // before the arena: it waits until nobody else uses that
  snapshots_.reset();
  view_snapshot_.reset();
}

void RunningQuery::MakeContext(const QueryOptions& options) {
  // Workers read the settings and parameters in place, so they lie in the shared arena too.
  context_.shared_arena = &arena_;
  context_.settings = arena_.New<SessionSettings>(*session_.session_settings);
  context_.work_mem_bytes = session_.settings->Integer("work_mem") * 1024;
  context_.chunks_per_stream =
      static_cast<uint32_t>(session_.settings->Integer("chunks_per_stream"));
  context_.temp_directory = arena_.CopyString(session_.temp_directory);
  spill_delay_ms_ = static_cast<int>(session_.settings->Integer("spill_delay"));
  context_.admission_timeout_us = session_.settings->Integer("admission_timeout") * 1000;
  context_.silence_timeout_us = session_.settings->Integer("shard_silence_timeout") * 1000;
  settings_version_ = session_.settings->version();
  view_snapshot_ = std::move(session_.view_snapshot);
  if (DistributedTransaction* transaction = session_.transaction) {
    transaction->TakeSnapshots();
    context_.transaction = [this, transaction](Oid server) {
      StreamTransaction found = transaction->For(server);
      found.begin_sql = arena_.CopyString(found.begin_sql);
      return found;
    };
    context_.gate_snapshots = transaction->gates_snapshots();
  }
  context_.share_snapshots = [this](std::span<const ServerStreams> servers) {
    std::vector<ServerStreams> outside;  // of the session's own transaction
    for (const ServerStreams& each : servers)
      if (TransactionOn(context_, each.server).pin == 0) outside.push_back(each);
    if (outside.empty()) return ExecutorContext::Snapshots();
    snapshots_ =
        std::make_unique<StatementSnapshots>(session_, context_.gate_snapshots, outside, &arena_);
    return ExecutorContext::Snapshots(
        [this](Oid server, uint32_t nth) { return snapshots_->For(server, nth); });
  };
  context_.query_text = arena_.CopyString(options.text);
  context_.instrument = options.instrument;
  auto params = arena_.NewArray<Column>(options.params.size());
  for (size_t i = 0; i < params.size(); i++) {
    const PlanRequest::Param& param = options.params[i];
    params[i] =
        MakeConstantColumn(param.type, arena_.CopyString(param.value), param.is_null, &arena_);
  }
  context_.params = params;
  context_.connect = [this](Oid server) { return ConnectionSpecFor(session_, server, &arena_); };
  context_.join_for_write = [transaction = session_.transaction](std::span<const Oid> servers,
                                                                 bool one_statement) {
    if (transaction != nullptr) transaction->JoinForWrite(servers, one_statement);
  };
  context_.partition_rule = [this](Oid relation) -> RouteRows {
    auto router = std::make_shared<PartitionRouter>(*session_.catalog,
                                                    session_.catalog->relations.at(relation));
    return
        [router](const Batch& keys, std::span<uint32_t> targets) { router->Route(keys, targets); };
  };
  context_.scan_view = [this](const ViewScanPlan& scan) {
    // All views of a statement are read at one epoch.
    if (view_snapshot_ == nullptr) {
      view_snapshot_ = LookAtViews(session_.settings->Text("data_directory"));
      if (view_snapshot_ == nullptr)
        Throw(sqlstate::kObjectNotInPrerequisiteState,
              "materialized view \"{}\" has not been populated", scan.relation_name);
    }
    view_snapshot_->CheckReadable(scan.relation);
    return view_snapshot_->Scan(scan.relation, scan.columns, scan.index);
  };
  context_.scan_virtual = [this](std::string_view name, const VirtualRowSink& row) {
    ScanVirtualTable(session_, name, row);
  };
}

namespace {

void CollectServers(const Plan& plan, std::set<Oid>* servers) {
  if (plan.kind == PlanKind::kForeignScan)
    servers->insert(static_cast<const ForeignScanPlan&>(plan).server);
  for (const Plan* child : plan.children) CollectServers(*child, servers);
}

}  // namespace

// What must be known of all servers of the plan before it begins.
void RunningQuery::JoinServers() {
  if (session_.transaction == nullptr) return;
  if (AnyRecovering()) {
    std::set<Oid> servers;
    CollectServers(*plan_->root, &servers);
    for (const CtePlan& cte : plan_->ctes) CollectServers(*cte.plan, &servers);
    for (const InitPlan& init : plan_->init_plans) CollectServers(*init.plan, &servers);
    for (const SubPlan& sub : plan_->sub_plans) CollectServers(*sub.plan, &servers);
    // Others than servers' oids are tables with sockets of their own.
    std::erase_if(servers, [&](Oid server) { return !session_.catalog->servers.contains(server); });
    std::vector<Oid> all(servers.begin(), servers.end());
    if (all.size() > 1) session_.transaction->AwaitRecovery(all);
  }
  if (plan_->written_servers.empty()) return;
  if (plan_->writes)
    session_.transaction->JoinForWrite(plan_->written_servers, plan_->one_statement_each);
  else
    session_.transaction->JoinForLocks(plan_->written_servers);
}

Executor& RunningQuery::executor() {
  if (executor_ == nullptr) {
    UseTimeSlices(TimeSlices::kShort);
    JoinServers();
  }
  if (executor_ == nullptr) executor_ = std::make_unique<Executor>(*plan_, context_);
  return *executor_;
}

uint64_t RunningQuery::Run(RowSink* sink, uint64_t rows_max) {
  if (done_) return 0;
  if (executor_ == nullptr && !let_go_ && rows_max == 0) {
    if (const ForeignScanPlan* scan = OnlyStatement())
      if (std::optional<uint64_t> rows = RunBorrowed(*scan, sink)) return *rows;
  }
  if (!let_go_) executor();
  ClientWatch watch(sink->client(), spillable() ? spill_delay_ms_ : -1);
  return plan_->pass_through ? RunSlices(sink, rows_max) : RunBatches(sink, rows_max);
}

// Where the whole comes to one statement on one shard that leaves nothing to do here: a SELECT
// whose rows pass through, or a change that returns none.
const ForeignScanPlan* RunningQuery::OnlyStatement() const {
  if (session_.leases == nullptr || context_.instrument || plan_->copy_out ||
      !plan_->init_plans.empty() || !plan_->ctes.empty())
    return nullptr;
  const Plan* root = plan_->root;
  if (root->kind == PlanKind::kModify) {
    const auto& modify = static_cast<const ModifyPlan&>(*root);
    if (modify.method != ModifyMethod::kRemote || !modify.output.empty()) return nullptr;
    root = root->children[0];
  } else if (!plan_->pass_through) {
    return nullptr;
  }
  if (root->kind != PlanKind::kForeignScan) return nullptr;
  const auto& scan = static_cast<const ForeignScanPlan&>(*root);
  bool fits =
      scan.row_limit == 0 && !scan.lines && (scan.writes || scan.sql.starts_with("SELECT "));
  return fits ? &scan : nullptr;
}

// On a shard's connection that is lent to this session, if there is one. If not, the io worker runs
// the statement, and lends the connection for the next.
std::optional<uint64_t> RunningQuery::RunBorrowed(const ForeignScanPlan& scan, RowSink* sink) {
  JoinServers();
  DistributedTransaction* transaction = session_.transaction;
  if (transaction != nullptr && transaction->TakesPart(scan.server)) return RunHeld(scan, sink);
  // One that takes its snapshots together, with its first statement, is the io worker's.
  if (context_.transaction != nullptr && context_.transaction(scan.server).pin != 0)
    return std::nullopt;
  LeaseSet::Origin origin{scan.server, session_.catalog, settings_version_, session_.user};
  const ConnectionSpec* spec = nullptr;
  std::optional<LeaseSet::Found> found = session_.leases->Find(origin);
  if (!found) {
    spec = context_.connect(scan.server);
    found = session_.leases->Find(origin, *spec);
  }
  if (found) {
    std::optional<uint64_t> rows;
    try {
      rows = RunOn(found->connection, found->server_name, scan, {}, sink);
    } catch (...) {
      session_.leases->DropUnusable();
      throw;
    }
    session_.leases->DropUnusable();
    if (rows) return rows;
    if (spec == nullptr) spec = context_.connect(scan.server);
  }
  context_.lease = session_.leases->Want(*spec);
  return std::nullopt;
}

// The same in a transaction that the server takes part in.
std::optional<uint64_t> RunningQuery::RunHeld(const ForeignScanPlan& scan, RowSink* sink) {
  DistributedTransaction& transaction = *session_.transaction;
  if (std::optional<DistributedTransaction::Held> held = transaction.Hold(scan.server)) {
    bool begun = held->connection->in_transaction();
    std::optional<uint64_t> rows;
    try {
      rows = RunOn(held->connection, held->server_name, scan, held->begin_sql, sink);
    } catch (...) {
      transaction.DropBroken();
      throw;
    }
    if (rows) return rows;
    if (begun) {
      transaction.DropBroken();
      transaction.For(scan.server);  // says it
    }
    transaction.ForgetHeld(scan.server);
  }
  context_.lease = session_.leases->Want(*context_.connect(scan.server));
  return std::nullopt;
}

// nullopt: the connection was lost before an answer came.
std::optional<uint64_t> RunningQuery::RunOn(BorrowedConnection* connection,
                                            std::string_view server_name,
                                            const ForeignScanPlan& scan, std::string_view begin_sql,
                                            RowSink* sink) {
  ExecutionState state{};
  state.statement = plan_;
  state.context = &context_;
  BorrowedQuery query{server_name,
                      scan.sql,
                      MakeStreamParams(scan.params, state),
                      MakeResultFormats(scan.binary, &arena_),
                      !scan.params.empty(),
                      context_.silence_timeout_us,
                      begin_sql,
                      !scan.writes || !begin_sql.empty()};
  std::optional<uint64_t> rows = connection->Run(
      query, [&](std::string_view messages) { sink->Messages(messages); },
      [&] { sink->BeforeWait(); });
  if (!rows) return rows;
  done_ = true;
  UseTimeSlices(TimeSlices::kUsual);
  if (scan.writes) modified_ = RowsOfTag(connection->command_tag(), server_name);
  return rows;
}

uint64_t RunningQuery::RunBatches(RowSink* sink, uint64_t rows_max) {
  uint64_t sent = 0;
  while (!done_ && (rows_max == 0 || sent < rows_max)) {
    CheckForInterrupts();
    if (IsBehind(sink)) SpillBehind(sink->client());
    if (batch_next_ == batch_.rows) {
      NextBatch();
      if (batch_.rows == 0) {
        done_ = true;
        break;
      }
    }
    size_t take = batch_.rows - batch_next_;
    if (rows_max != 0) take = std::min<size_t>(take, rows_max - sent);
    sink->Rows(batch_, batch_next_, batch_next_ + take);
    batch_next_ += take;
    sent += take;
  }
  return sent;
}

uint64_t RunningQuery::RunSlices(RowSink* sink, uint64_t rows_max) {
  uint64_t sent = 0;
  while (rows_max == 0 || sent < rows_max) {
    CheckForInterrupts();
    if (IsBehind(sink)) SpillBehind(sink->client());
    if (!slice_) {
      Slice next;
      Claim claim = TryTakeSlice(&next);
      if (claim == Claim::kEmpty) {
        // Rows from a shard that only trickles must not lie in the buffer meanwhile.
        if (sent > 0) sink->BeforeWait();
        if (IsBehind(sink)) continue;
        claim = executor_->NextSlice(&next) ? Claim::kSlice : Claim::kDone;
      }
      if (claim == Claim::kDone) {
        done_ = true;
        break;
      }
      slice_ = next;
      slice_next_bytes_ = 0;
    }
    std::string_view rest(slice_->data + slice_next_bytes_, slice_->size_bytes - slice_next_bytes_);
    uint64_t rows = slice_->rows;
    if (rows_max != 0 && rows > rows_max - sent) {
      // Only some of its rows are wanted now: walk to the end of the last of them.
      rows = rows_max - sent;
      size_t end = 0;
      for (uint64_t i = 0; i < rows; i++) end += 1 + LoadBig<uint32_t>(rest.data() + end + 1);
      rest = rest.substr(0, end);
    }
    if (plan_->copy_out)
      sink->CopyData(slice_->stream, rest);
    else
      sink->Messages(rest);
    sent += rows;
    slice_->rows -= static_cast<uint32_t>(rows);
    slice_next_bytes_ += rest.size();
    if (slice_->rows == 0) {
      ReleaseSlice(*slice_);
      slice_.reset();
    }
  }
  return sent;
}

}  // namespace sluice
