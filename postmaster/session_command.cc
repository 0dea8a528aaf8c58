// Commands that are no queries: transactions, prepared statements, DISCARD, EXPLAIN, and DDL's
// entry.
#include <pg_query/pg_query.pb-c.h>

#include "postmaster/activity.h"
#include "postmaster/child_process.h"
#include "postmaster/ddl.h"
#include "postmaster/explain.h"
#include "postmaster/sequence_kernels.h"
#include "postmaster/session.h"
#include "types/codec.h"

namespace sluice {
namespace {

std::string QuoteText(const char* text) {
  return text == nullptr ? "" : text;
}

// Whether connections that one describes are those that the other does. What was added changes
// none.
bool SameServers(const Catalog& before, const Catalog& after) {
  for (const auto& [oid, server] : before.servers) {
    auto now = after.servers.find(oid);
    if (now == after.servers.end() || now->second.options != server.options) return false;
  }
  for (const UserMapping& mapping : before.user_mappings)
    if (std::ranges::none_of(after.user_mappings, [&](const UserMapping& now) {
          return now.server == mapping.server && now.user == mapping.user &&
                 now.options == mapping.options;
        }))
      return false;
  return true;
}

}  // namespace

Session::CommandResult Session::RunCommand(const std::shared_ptr<Statement>& statement) {
  const RawStatement& raw = *statement->raw;
  switch (raw.node->node_case) {
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
      return RunTransaction(raw);
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT:
      return RunSet(raw);
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
      return RunShow(raw);
    case PG_QUERY__NODE__NODE_PREPARE_STMT:
      return RunPrepare(*statement);
    case PG_QUERY__NODE__NODE_DEALLOCATE_STMT:
      return RunDeallocate(raw);
    case PG_QUERY__NODE__NODE_DISCARD_STMT:
      return RunDiscard(raw);
    case PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT:
      return RunDeclare(statement);
    case PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT:
      return RunClose(raw);
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
      return RunExplain(statement);
    case PG_QUERY__NODE__NODE_UNLISTEN_STMT:
      return {"UNLISTEN", std::nullopt};  // nothing can be listened to
    case PG_QUERY__NODE__NODE_CALL_STMT:
      if (auto result = RunViewCommand(raw)) return std::move(*result);
      return RunDdlCommand(raw);
    default:
      return RunDdlCommand(raw);
  }
}

Session::CommandResult Session::RunDdlCommand(const RawStatement& raw) {
  bool changes = raw.node->node_case != PG_QUERY__NODE__NODE_LOCK_STMT &&
                 raw.node->node_case != PG_QUERY__NODE__NODE_VACUUM_STMT;
  if (changes && settings_.Boolean("transaction_read_only"))
    Throw(sqlstate::kReadOnlySqlTransaction, "cannot execute {} in a read-only transaction",
          CommandName(raw));
  WaitForViewsOf(raw);
  QuerySession session = MakeQuerySession();
  RemoteSession remote = RemoteSessionOf(session);
  std::shared_ptr<const Catalog> before = catalog_;
  DdlContext context{
      catalog_, catalog_pending_, &session_settings_, SearchPath(settings_, current_user()),
      current_user(), database_,
      [this](LogLevel level, const Error& notice) {
        SendNotice(notice, level == LogLevel::kWarning ? "WARNING" : "NOTICE");
      },
      // What the transaction did on a server is seen by itself only.
      [&](const Catalog& catalog, std::span<const RemoteQuery> queries) {
        bool inside = std::any_of(queries.begin(), queries.end(), [&](const RemoteQuery& query) {
          return distributed_.TakesPart(query.server);
        });
        return inside ? distributed_.RunOn(queries) : RunRemoteQueries(catalog, remote, queries);
      }};
  context.configuration = &settings_;
  context.is_created = [this](const Relation& view) { return IsViewCreated(view); };
  context.run_on_servers = [this](std::span<const Oid> servers, const std::string& sql) {
    distributed_.RunOn(servers, sql);
  };
  context.in_block = transaction_.in_block();
  context.default_distribution = settings_.Text("sluice.default_distribution");
  if (!RunDdl(raw, context)) Refuse("{} is not supported", CommandName(raw));
  if (catalog_pending_ && catalog_base_ == nullptr) catalog_base_ = before;
  new_views_.insert(new_views_.end(), context.created_views.begin(), context.created_views.end());
  if (!context.then_insert.empty()) {
    uint64_t rows = RunInsert(context.then_insert);
    if (context.command_tag == "SELECT") context.command_tag += fmt::format(" {}", rows);
    if (context.finish) RunDdlFinish(raw, context);
  }
  return {context.command_tag, std::nullopt};
}

uint64_t Session::RunInsert(const std::string& sql) {
  ShowCatalogToFunctions();  // what the command has made by now, too
  auto parsed = std::make_shared<const ParsedSql>(ParseSql(sql));
  const RawStatement& raw = parsed->statements()[0];
  auto statement = MakeStatement(parsed, raw, raw.node);
  try {
    Analyze(statement.get());
    QueryOptions options;
    options.allow_pass_through = false;
    options.text = statement->text();
    Arena arena;
    auto running = MakeRunning(statement.get(), &arena, options);
    TextSink sink(statement->columns.size(), session_settings_);
    running->Run(&sink, 0);
    return running->rows_modified();
  } catch (QueryError& failure) {
    failure.error.position = 0;  // it would be one in `sql`, not in the client's text
    throw;
  }
}

// --- transactions

void Session::StartTransaction() {
  transaction_.Start(PostgresNow());
  settings_.BeginLevel();
  if (defaults_applied_ == settings_.version()) return;
  for (const char* name : {"isolation", "read_only", "deferrable"}) {
    std::string current = fmt::format("transaction_{}", name);
    const std::string& wanted = settings_.Text("default_" + current);
    if (settings_.Text(current) != wanted)
      settings_.Set(current, wanted, SettingSource::kSession, true);
  }
  defaults_applied_ = settings_.version();
}

void Session::Commit() {
  bool catalog_changed = catalog_pending_;
  // The catalog's change is durable when all servers have promised theirs, before they are told to
  // carry it out: a change that another session's has overtaken undoes both.
  auto commit_catalog = [this](const Decision* decision) {
    Catalog changed = *catalog_;
    // Those of living transactions may not be in the decision log yet, nor those of before a crash.
    bool taken = transaction_table->catalog_taken.load(std::memory_order_acquire) != 0;  // T9
    std::erase_if(changed.decisions, [&](const auto& known) {
      return !IsLive(known.first) && (taken || EpochOf(known.first) == transaction_table->epoch);
    });
    if (decision != nullptr) changed.decisions.push_back({decision->number, decision->servers});
    Status status = follower_->store()->Commit(changed, catalog_base_->generation);
    if (!status.ok()) throw QueryError(status.error());
  };
  try {
    HoldCursors();
    DropPortals(0);
    distributed_.Commit(catalog_changed ? commit_catalog : DistributedTransaction::CommitHere());
  } catch (const QueryError&) {
    Rollback();
    throw;
  }
  if (catalog_changed) {
    // Connections made as servers and mappings were until now serve nobody any more.
    if (!SameServers(*catalog_base_, *catalog_))
      SubmitRequest({RequestKind::kForget, nullptr, 0, 0});
    catalog_pending_ = false;
    catalog_base_ = nullptr;
    follower_->Forget();
  }
  catalog_saved_.clear();
  while (settings_.level() > 0) settings_.EndLevel(true);
  transaction_.End();
  if (catalog_changed) FinishViews();
}

void Session::Rollback() {
  new_views_.clear();
  DropPortals(0);
  distributed_.Rollback();
  RestoreCatalog(catalog_base_);
  catalog_saved_.clear();
  while (settings_.level() > 0) settings_.EndLevel(false);
  transaction_.End();
}

// Back to how the catalog was; nullptr: it was not changed.
void Session::RestoreCatalog(const std::shared_ptr<const Catalog>& to) {
  if (!catalog_pending_ || to == nullptr) return;
  catalog_ = to;
  catalog_->MakeCurrent();
  if (to == catalog_base_) {
    catalog_pending_ = false;
    catalog_base_ = nullptr;
    // Loading it again registers its types and collations in place of the forgotten ones.
    follower_->Forget();
  }
}

void Session::DropPortals(int level_min) {
  std::erase_if(portals_, [&](const auto& entry) { return entry.second->level >= level_min; });
}

Session::CommandResult Session::RunTransaction(const RawStatement& raw) {
  const PgQuery__TransactionStmt& command = *raw.node->transaction_stmt;
  std::span<PgQuery__Node* const> options(command.options, command.n_options);
  std::string name = QuoteText(command.savepoint_name);
  auto require_block = [&](const char* what) {
    if (!transaction_.in_block())
      Throw(sqlstate::kNoActiveSqlTransaction, "{} can only be used in transaction blocks", what);
  };
  switch (command.kind) {
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_BEGIN:
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_START:
      SetTransactionModes("transaction_", options);  // may throw: then no block was begun
      if (transaction_.in_block())
        Warn(sqlstate::kActiveSqlTransaction, "there is already a transaction in progress");
      else
        transaction_.BeginBlock();
      return {command.kind == PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_BEGIN
                  ? "BEGIN"
                  : "START TRANSACTION",
              std::nullopt};
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_COMMIT:
      return EndBlock(true, command.chain);
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK:
      return EndBlock(false, command.chain);
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_SAVEPOINT:
      require_block("SAVEPOINT");
      distributed_.Savepoint(transaction_.level() + 1);
      transaction_.Savepoint(name);
      settings_.BeginLevel();
      catalog_saved_.push_back(catalog_);
      return {"SAVEPOINT", std::nullopt};
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_RELEASE: {
      require_block("RELEASE SAVEPOINT");
      int level = transaction_.LevelOf(name);
      distributed_.Release(level);
      while (settings_.level() >= level) settings_.EndLevel(true);
      catalog_saved_.resize(static_cast<size_t>(level) - 2);
      for (auto& [key, portal] : portals_) portal->level = std::min(portal->level, level - 1);
      transaction_.Release(level);
      return {"RELEASE", std::nullopt};
    }
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK_TO: {
      require_block("ROLLBACK TO SAVEPOINT");
      int level = transaction_.LevelOf(name);
      DropPortals(level);
      distributed_.RollbackTo(level);
      while (settings_.level() >= level) settings_.EndLevel(false);
      settings_.BeginLevel();
      RestoreCatalog(catalog_saved_[static_cast<size_t>(level) - 2]);
      catalog_saved_.resize(static_cast<size_t>(level) - 1);
      transaction_.RollbackTo(level);
      return {"ROLLBACK", std::nullopt};
    }
    default:
      Refuse("{} is not supported", CommandName(raw));
  }
}

Session::CommandResult Session::EndBlock(bool commit, bool chain) {
  bool block = transaction_.in_block();
  if (chain && !block)
    Throw(sqlstate::kNoActiveSqlTransaction, "{} can only be used in transaction blocks",
          commit ? "COMMIT AND CHAIN" : "ROLLBACK AND CHAIN");
  if (!block) Warn(sqlstate::kNoActiveSqlTransaction, "there is no transaction in progress");
  if (transaction_.failed()) commit = false;
  std::vector<std::pair<std::string, std::string>> modes;
  for (const char* name :
       {"transaction_isolation", "transaction_read_only", "transaction_deferrable"})
    modes.emplace_back(name, settings_.Text(name));
  if (commit)
    Commit();
  else
    Rollback();
  if (chain) {
    StartTransaction();
    transaction_.BeginBlock();
    for (const auto& [name, value] : modes)
      settings_.Set(name, value, SettingSource::kSession, true);
  }
  return {commit ? "COMMIT" : "ROLLBACK", std::nullopt};
}

// --- prepared statements

Session::CommandResult Session::RunPrepare(const Statement& statement) {
  const PgQuery__PrepareStmt& command = *statement.raw->node->prepare_stmt;
  std::string name = command.name;
  if (statements_.contains(name))
    Throw(sqlstate::kDuplicatePreparedStatement, "prepared statement \"{}\" already exists", name);
  auto prepared = MakeStatement(statement.parsed, *statement.raw, command.query);
  if (!prepared->is_query) Refuse("PREPARE of {} is not supported", CommandName(*prepared->raw));
  prepared->declared_types = ResolveTypes(statement, {command.argtypes, command.n_argtypes});
  Analyze(prepared.get());
  statements_[name] = std::move(prepared);
  return {"PREPARE", std::nullopt};
}

namespace {

// SELECT of the given expressions, so that analysis and execution of expressions have one way only.
// The nodes are the caller's parse tree's and this object's.
class SelectOf {
 public:
  explicit SelectOf(std::span<PgQuery__Node* const> expressions) {
    select_ = PG_QUERY__SELECT_STMT__INIT;
    targets_.resize(expressions.size());
    nodes_.resize(expressions.size());
    for (size_t i = 0; i < expressions.size(); i++) {
      targets_[i] = PG_QUERY__RES_TARGET__INIT;
      targets_[i].val = expressions[i];
      nodes_[i] = PG_QUERY__NODE__INIT;
      nodes_[i].node_case = PG_QUERY__NODE__NODE_RES_TARGET;
      nodes_[i].res_target = &targets_[i];
      pointers_.push_back(&nodes_[i]);
    }
    select_.target_list = pointers_.data();
    select_.n_target_list = pointers_.size();
    select_.limit_option = PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_DEFAULT;
    select_.op = PG_QUERY__SET_OPERATION__SETOP_NONE;
    node_ = PG_QUERY__NODE__INIT;
    node_.node_case = PG_QUERY__NODE__NODE_SELECT_STMT;
    node_.select_stmt = &select_;
  }
  const PgQuery__Node* node() const { return &node_; }

 private:
  PgQuery__SelectStmt select_;
  PgQuery__Node node_;
  std::vector<PgQuery__ResTarget> targets_;
  std::vector<PgQuery__Node> nodes_;
  std::vector<PgQuery__Node*> pointers_;
};

PgQuery__Node CastNode(PgQuery__TypeCast* cast, PgQuery__Node* arg, PgQuery__TypeName* type) {
  *cast = PG_QUERY__TYPE_CAST__INIT;
  cast->arg = arg;
  cast->type_name = type;
  cast->location = -1;
  PgQuery__Node node = PG_QUERY__NODE__INIT;
  node.node_case = PG_QUERY__NODE__NODE_TYPE_CAST;
  node.type_cast = cast;
  return node;
}

}  // namespace

std::vector<Oid> Session::ResolveTypes(const Statement& statement,
                                       std::span<PgQuery__Node* const> type_names) {
  if (type_names.empty()) return {};
  PgQuery__AConst null_constant = PG_QUERY__A__CONST__INIT;
  null_constant.isnull = 1;
  PgQuery__Node null_node = PG_QUERY__NODE__INIT;
  null_node.node_case = PG_QUERY__NODE__NODE_A_CONST;
  null_node.a_const = &null_constant;
  std::vector<PgQuery__TypeCast> casts(type_names.size());
  std::vector<PgQuery__Node> nodes(type_names.size());
  std::vector<PgQuery__Node*> pointers;
  for (size_t i = 0; i < type_names.size(); i++) {
    nodes[i] = CastNode(&casts[i], &null_node, type_names[i]->type_name);
    pointers.push_back(&nodes[i]);
  }
  SelectOf select(pointers);
  auto probe = MakeStatement(statement.parsed, *statement.raw, select.node());
  Analyze(probe.get());
  std::vector<Oid> types;
  for (const ColumnDescription& column : probe->columns) types.push_back(column.type);
  return types;
}

// EXECUTE name (expressions): the prepared statement with the expressions' values bound.
std::shared_ptr<Portal> Session::MakeExecutePortal(const Statement& statement) {
  const PgQuery__ExecuteStmt& command = *statement.raw->node->execute_stmt;
  auto portal = std::make_shared<Portal>();
  portal->statement = FindStatement(command.name);
  if (portal->statement->is_query) Analyze(portal->statement.get());
  const std::vector<Oid>& types = portal->statement->param_types;
  if (command.n_params != types.size()) {
    Error error =
        MakeError(sqlstate::kSyntaxError,
                  "wrong number of parameters for prepared statement \"{}\"", command.name);
    throw QueryError(error.Detail(
        fmt::format("Expected {} parameters but got {}.", types.size(), command.n_params)));
  }
  if (types.empty()) return portal;
  // Each value is cast to its parameter's type; the type's name comes from the grammar, as in any
  // cast.
  std::string casts_sql = "SELECT ";
  for (size_t i = 0; i < types.size(); i++)
    casts_sql += (i == 0 ? "NULL::" : ", NULL::") + FormatType(types[i]);
  ParsedSql type_sql = ParseSql(casts_sql);
  const PgQuery__SelectStmt& type_select = *type_sql.statements()[0].node->select_stmt;
  std::vector<PgQuery__TypeCast> casts(types.size());
  std::vector<PgQuery__Node> nodes(types.size());
  std::vector<PgQuery__Node*> pointers;
  for (size_t i = 0; i < types.size(); i++) {
    nodes[i] = CastNode(&casts[i], command.params[i],
                        type_select.target_list[i]->res_target->val->type_cast->type_name);
    pointers.push_back(&nodes[i]);
  }
  SelectOf select(pointers);
  auto values = MakeStatement(statement.parsed, *statement.raw, select.node());
  auto rows = QueryAsText(values.get());
  for (size_t i = 0; i < types.size(); i++) {
    PlanRequest::Param param{types[i], !rows[0][i].has_value(), {}};
    if (!param.is_null)
      param.value = ParseText(types[i], -1, *rows[0][i], session_settings_, portal->arena.get());
    portal->params.push_back(param);
  }
  return portal;
}

Session::CommandResult Session::RunDeallocate(const RawStatement& raw) {
  const char* name = raw.node->deallocate_stmt->name;
  if (name == nullptr || *name == 0) {
    statements_.clear();
    return {"DEALLOCATE ALL", std::nullopt};
  }
  FindStatement(name);
  statements_.erase(name);
  return {"DEALLOCATE", std::nullopt};
}

Session::CommandResult Session::RunDiscard(const RawStatement& raw) {
  switch (raw.node->discard_stmt->target) {
    case PG_QUERY__DISCARD_MODE__DISCARD_ALL:
      if (transaction_.in_block())
        Throw(sqlstate::kActiveSqlTransaction, "DISCARD ALL cannot run inside a transaction block");
      DropPortals(-1);
      settings_.ResetAll();
      statements_.clear();
      recent_.clear();
      ForgetSequences();
      return {"DISCARD ALL", std::nullopt};
    case PG_QUERY__DISCARD_MODE__DISCARD_PLANS:
      recent_.clear();
      return {"DISCARD PLANS", std::nullopt};
    case PG_QUERY__DISCARD_MODE__DISCARD_SEQUENCES:
      ForgetSequences();
      return {"DISCARD SEQUENCES", std::nullopt};
    default:
      return {"DISCARD TEMP", std::nullopt};
  }
}

// --- EXPLAIN

ColumnDescription Session::ExplainColumn(const RawStatement& raw) {
  ColumnDescription column{"QUERY PLAN", kTextOid, -1};
  const PgQuery__ExplainStmt& command = *raw.node->explain_stmt;
  for (size_t i = 0; i < command.n_options; i++) {
    const PgQuery__DefElem& option = *command.options[i]->def_elem;
    if (std::string_view(option.defname) == "format" && option.arg != nullptr &&
        option.arg->node_case == PG_QUERY__NODE__NODE_STRING &&
        strcasecmp(option.arg->string->sval, "json") == 0)
      column.type = kJsonOid;
  }
  return column;
}

Session::CommandResult Session::RunExplain(const std::shared_ptr<Statement>& statement) {
  const PgQuery__ExplainStmt& command = *statement->raw->node->explain_stmt;
  ExplainOptions explain = ReadExplainOptions(command);
  Portal portal;
  portal.statement = MakeStatement(statement->parsed, *statement->raw, command.query);
  if (command.query->node_case == PG_QUERY__NODE__NODE_EXECUTE_STMT) {
    auto inner = MakeExecutePortal(*portal.statement);
    portal.statement = inner->statement;
    portal.arena = std::move(inner->arena);
    portal.params = std::move(inner->params);
  }
  if (!portal.statement->is_query)
    Refuse("EXPLAIN of {} is not supported", CommandName(*portal.statement->raw));
  int64_t start_us = MonotonicUs();
  portal.instrument = explain.analyze;
  StartPortal(&portal);
  double planning_ms = static_cast<double>(MonotonicUs() - start_us) / 1000;
  TextRows rows;
  rows.columns = {ExplainColumn(*statement->raw)};
  for (std::string& line : Explain(portal.running.get(), explain, planning_ms))
    rows.rows.push_back({std::move(line)});
  return {"EXPLAIN", std::move(rows)};
}

}  // namespace sluice
