// Live views as a session meets them: waiting for them, FLUSH, jobs.
#include <charconv>
#include <pg_query/pg_query.pb-c.h>
#include <set>

#include "catalog/quote.h"
#include "common/log.h"
#include "parser/analyze.h"
#include "parser/walk.h"
#include "postmaster/remote_query.h"
#include "postmaster/session.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_reader.h"
#include "postmaster/view_verify.h"
#include "shm/live_views.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr std::string_view kDocumentation = "docs/live_views.md";

// The views that a query reads, and those that it verifies.
class ReadViews {
 public:
  ReadViews(const Catalog& catalog, std::vector<std::string> search_path)
      : catalog_(catalog), search_path_(std::move(search_path)) {}

  void Collect(const Query& query) {
    for (const QueryRel& rel : query.rels) {
      if (rel.table != nullptr) Add(*rel.table);
      AddVerified(rel.virtual_name);
    }
    ForEachQueryExpr(query, [&](const Expr& expr) { Collect(expr); });
    ForEachSubquery(query, [&](const Query& below) { Collect(below); });
  }
  void Collect(const CompletionRequest& completion) {
    for (const CompletionTable& table : completion.tables) {
      if (table.relation != nullptr) Add(*table.relation);
      AddVerified(table.virtual_name);
    }
  }
  const std::vector<const Relation*>& views() const { return views_; }
  bool verifies() const { return verifies_; }

 private:
  void Collect(const Expr& expr) {
    if (expr.subquery != nullptr) Collect(*expr.subquery);
    ForEachChild(expr, [&](const Expr& child) { Collect(child); });
  }
  void Add(const Relation& relation) {
    if (relation.kind == RelationKind::kMaterializedView) views_.push_back(&relation);
  }
  void AddVerified(std::string_view virtual_name) {
    std::string_view view = VerifiedView(virtual_name);
    if (view.empty()) return;
    views_.push_back(&FindViewByText(catalog_, search_path_, view));
    verifies_ = true;
  }

  const Catalog& catalog_;
  const std::vector<std::string> search_path_;
  std::vector<const Relation*> views_;
  bool verifies_ = false;
};

int64_t IntegerOf(const PgQuery__Node& node) {
  if (node.node_case == PG_QUERY__NODE__NODE_A_CONST &&
      node.a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL)
    return node.a_const->ival->ival;
  if (node.node_case == PG_QUERY__NODE__NODE_A_CONST && !node.a_const->isnull &&
      node.a_const->val_case == PG_QUERY__A__CONST__VAL__NOT_SET)
    return 0;
  Throw(sqlstate::kInvalidParameterValue, "a job's number is wanted");
}

}  // namespace

// Of the newest catalog, or in a transaction with changes, of what it began with.
std::shared_ptr<const Catalog> Session::CommittedCatalog() {
  if (catalog_pending_) return catalog_base_;
  catalog_ = follower_->Refresh();
  return catalog_;
}

bool Session::IsViewCreated(const Relation& view) {
  std::unique_ptr<ViewSnapshot> snapshot = LookAtViews(config_.directory);
  return StatusOfView(snapshot.get(), view).state == ViewState::kCreated;
}

// Those that this transaction has made itself are built when it commits.
void Session::RefuseOwnViews(std::span<const Oid> views) {
  if (!catalog_pending_) return;
  for (Oid oid : views) {
    const Relation* now = catalog_->FindRelation(oid);
    const Relation* before = catalog_base_->FindRelation(oid);
    bool same = now != nullptr && before != nullptr &&
                ViewDefinitionText(*now) == ViewDefinitionText(*before);
    if (!same)
      throw QueryError(
          MakeError(sqlstate::kObjectNotInPrerequisiteState,
                    "materialized view \"{}\" has not been populated",
                    now == nullptr ? "?" : now->name)
              .Detail("It was created or refreshed in this transaction, and is built when the "
                      "transaction commits."));
  }
}

void Session::WaitForViewsOf(const Query& query) {
  ReadViews read(*catalog_, SearchPath(settings_, current_user()));
  read.Collect(query);
  WaitUntilReadable(read.views(), read.verifies());
}

void Session::WaitForViewsOf(const CompletionRequest& completion) {
  ReadViews read(*catalog_, SearchPath(settings_, current_user()));
  read.Collect(completion);
  WaitUntilReadable(read.views(), read.verifies());
}

void Session::WaitUntilReadable(std::span<const Relation* const> views, bool verifies) {
  if (views.empty()) return;
  std::vector<Oid> oids;
  for (const Relation* view : views) oids.push_back(view->oid);
  RefuseOwnViews(oids);
  bool error = settings_.Text("creating_view_read") == "error";
  for (const Relation* view : views) {
    if (!error) break;
    ViewStatus status = StatusOfView(LookAtViews(config_.directory).get(), *view);
    if (status.state == ViewState::kFailed) throw QueryError(*status.error);
    if (status.state == ViewState::kCreated) continue;
    throw QueryError(MakeError(sqlstate::kObjectNotInPrerequisiteState,
                               "materialized view \"{}\" is still being created", view->name)
                         .Hint("WAIT MATERIALIZED VIEW waits for it, as a query does with "
                               "creating_view_read = 'wait'."));
  }
  if (settings_.Boolean("fresh_reads"))
    FlushViews();
  else if (verifies)
    WaitForViewWorker(CommittedCatalog()->generation);
  WaitUntilCreated(oids);
}

// What others drop meanwhile ends it, also in a transaction that has changed the catalog.
void Session::WaitUntilCreated(std::span<const Oid> views) {
  WaitForViews(
      config_.directory,
      [this] { return catalog_pending_ ? follower_->Newest() : CommittedCatalog(); }, views);
}

// CREATE TABLE AS: before the catalog is changed, for others may change it meanwhile.
void Session::WaitForViewsOf(const RawStatement& raw) {
  if (catalog_pending_ || raw.node->node_case != PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT) return;
  const PgQuery__CreateTableAsStmt& create = *raw.node->create_table_as_stmt;
  if (create.objtype != PG_QUERY__OBJECT_TYPE__OBJECT_TABLE ||
      create.query->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    return;
  Arena arena;
  std::vector<Oid> types;
  AnalyzeContext context{catalog_.get(), &session_settings_, SearchPath(settings_, current_user()),
                         current_user(), database_,          &arena,
                         &types};
  const Query* query;
  try {
    query = AnalyzeSelect({create.query, raw.text, raw.location}, context);
  } catch (const QueryError&) {
    return;  // the command itself will say it
  }
  WaitForViewsOf(*query);
}

void Session::FlushViews() {
  std::shared_ptr<const Catalog> catalog = CommittedCatalog();
  WaitForViewWorker(catalog->generation);
  std::vector<Oid> servers;
  for (const ReplicatedServer& entry : shared_memory->live_views.servers) {
    Oid server = entry.server.load(std::memory_order_acquire);  // W1
    if (server == 0) break;
    bool dropped = entry.applied_lsn.load(std::memory_order_acquire) == ~uint64_t{0};  // W2
    if (!dropped && catalog->servers.contains(server)) servers.push_back(server);
  }
  QuerySession session = MakeQuerySession();
  FlushServers(*catalog, RemoteSessionOf(session), servers);
}

// After COMMIT: jobs of this transaction's views are durable.
void Session::FinishViews() {
  std::vector<Oid> views = std::exchange(new_views_, {});
  WakeViewWorker();
  if (views.empty()) return;
  catalog_ = follower_->Refresh();
  std::erase_if(views, [&](Oid view) { return catalog_->FindRelation(view) == nullptr; });
  if (settings_.Boolean("background_ddl")) return;
  try {
    WaitUntilCreated(views);
  } catch (...) {
    // One that was refreshed stays, failed or not.
    std::erase_if(views, [&](Oid oid) {
      const Relation* view = catalog_->FindRelation(oid);
      return view == nullptr || view->options.contains("refresh");
    });
    RemoveViews(views);
    throw;
  }
}

// Views of a statement that did not get what it waited for, and what reads them.
void Session::RemoveViews(std::vector<Oid> views) {
  HoldInterrupts hold;
  for (;;) {
    std::shared_ptr<const Catalog> now = follower_->Refresh();
    Catalog changed = *now;
    for (size_t i = 0; i < views.size(); i++)
      for (const auto& [oid, relation] : changed.relations) {
        const auto& uses = relation.view_uses;
        bool reads = std::find(uses.begin(), uses.end(), views[i]) != uses.end();
        if (reads && std::find(views.begin(), views.end(), oid) == views.end())
          views.push_back(oid);
      }
    for (Oid view : views) changed.relations.erase(view);
    Status status = follower_->store()->Commit(changed, now->generation);
    follower_->Forget();
    if (status.ok()) break;
    if (status.error().state != sqlstate::kSerializationFailure) {
      LogError(LogLevel::kWarning, status.error());
      break;
    }
  }
  WakeViewWorker();
}

std::optional<Session::CommandResult> Session::RunViewCommand(const RawStatement& raw) {
  const PgQuery__FuncCall& call = *raw.node->call_stmt->funccall;
  if (call.n_funcname != 2 || std::string_view(call.funcname[0]->string->sval) != "sluice")
    return std::nullopt;
  std::string_view name = call.funcname[1]->string->sval;
  if (name == "flush") {
    FlushViews();
    return CommandResult{"FLUSH", std::nullopt};
  }
  if (name == "wait") {
    RunWait(call);
    return CommandResult{"WAIT", std::nullopt};
  }
  if (name == "cancel_jobs") {
    CancelJobs(call);
    return CommandResult{"CANCEL JOBS", std::nullopt};
  }
  if (name == "subscribe") RunSubscribe(call);
  return std::nullopt;
}

void Session::RunWait(const PgQuery__FuncCall& call) {
  std::vector<Oid> views;
  if (call.n_args == 0) {
    for (const auto& [oid, relation] : catalog_->relations)
      if (relation.kind == RelationKind::kMaterializedView) views.push_back(oid);
  } else {
    views.push_back(
        FindViewByText(*catalog_, SearchPath(settings_, user_), call.args[0]->a_const->sval->sval)
            .oid);
  }
  RefuseOwnViews(views);
  // WAIT for all is not ended by one that failed before.
  if (call.n_args == 0)
    std::erase_if(views, [&, snapshot = LookAtViews(config_.directory)](Oid oid) {
      return StatusOfView(snapshot.get(), catalog_->relations.at(oid)).state == ViewState::kFailed;
    });
  WaitUntilCreated(views);
}

// A job's number is its view's: cancelling it is dropping a view that is not created. All at once,
// for they may read each other.
void Session::CancelJobs(const PgQuery__FuncCall& call) {
  std::set<std::string> names;
  for (size_t i = 0; i < call.n_args; i++) {
    Oid job = static_cast<Oid>(IntegerOf(*call.args[i]));
    const Relation* view = catalog_->FindRelation(job);
    if (view == nullptr || view->kind != RelationKind::kMaterializedView || IsViewCreated(*view))
      Throw(sqlstate::kUndefinedObject, "job {} does not exist", job);
    names.insert(QuoteQualified(view->schema, view->name));
  }
  std::string sql = "DROP MATERIALIZED VIEW ";
  for (const std::string& name : names) sql += (name == *names.begin() ? "" : ", ") + name;
  ParsedSql drop = ParseSql(sql);
  RunDdlCommand(drop.statements()[0]);
}

void Session::NoticeBackgroundDdl() {
  if (!settings_.Boolean("background_ddl")) return;
  SendNotice(
      MakeError(sqlstate::kSuccess, "CREATE MATERIALIZED VIEW returns before the view is complete")
          .Detail("The view is built in the background. Views on it can be created at once; "
                  "queries of it wait until it is complete.")
          .Hint(fmt::format("WAIT waits for all views, SHOW JOBS shows the progress; see {}.",
                            kDocumentation)),
      "NOTICE");
}

}  // namespace sluice
