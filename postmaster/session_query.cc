// Simple queries, and what both protocols share: analysis, portals, sending rows.
#include <pg_query/pg_query.pb-c.h>

#include "parser/analyze.h"
#include "parser/extra_commands.h"
#include "postmaster/query_privileges.h"
#include "postmaster/session.h"
#include "postmaster/session_functions.h"
#include "types/codec.h"
#include "types/utf8.h"

namespace sluice {
namespace {

int16_t LengthOf(Oid type) {
  const TypeInfo* info = FindType(type);
  return info == nullptr ? -1 : info->length;
}

std::vector<ColumnDescription> ColumnsOf(const CompletionQuery& completion) {
  std::vector<ColumnDescription> columns;
  for (const OutputColumn& column : completion.request.columns)
    columns.push_back({std::string(column.name), column.type, column.typmod});
  return columns;
}

std::string QueryTag(RunningQuery* running, uint64_t rows_sent) {
  switch (running->plan().command) {
    case QueryCommand::kSelect:
      break;
    case QueryCommand::kInsert:
      return fmt::format("INSERT 0 {}", running->rows_modified());
    case QueryCommand::kUpdate:
      return fmt::format("UPDATE {}", running->rows_modified());
    case QueryCommand::kDelete:
      return fmt::format("DELETE {}", running->rows_modified());
  }
  return fmt::format("SELECT {}", rows_sent);
}

bool SameColumns(const std::vector<ColumnDescription>& a, const std::vector<ColumnDescription>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.type == y.type && x.typmod == y.typmod && x.name == y.name;
  });
}

// Through subqueries, but not into views: their columns are theirs.
void SetOrigin(const Query& query, const Expr& expr, ColumnDescription* column) {
  if (expr.kind != ExprKind::kColumn || expr.levels_up != 0 || expr.rel < 0) return;
  const QueryRel& rel = query.rels[static_cast<size_t>(expr.rel)];
  const Relation* relation = rel.view != nullptr ? rel.view : rel.table;
  if (relation != nullptr) {
    column->relation = relation->oid;
    column->attribute = static_cast<int16_t>(expr.column + 1);
  } else if (rel.kind == RelKind::kSubquery) {
    const auto& targets = rel.subquery->targets;
    SetOrigin(*rel.subquery, *targets[static_cast<size_t>(expr.column)].expr, column);
  }
}

ColumnDescription DescriptionOf(const Query& query, const Target& target) {
  ColumnDescription column{std::string(target.name), target.expr->type, target.expr->typmod};
  SetOrigin(query, *target.expr, &column);
  return column;
}

}  // namespace

void Session::SimpleQuery(std::string_view text) {
  CheckUtf8(text);
  BeginStatement(text);
  std::optional<std::string> call = TranslateExtraCommand(text);
  auto parsed = std::make_shared<const ParsedSql>(ParseSql(call ? *call : text));
  if (parsed->statements().empty()) {
    MessageWriter message(client_.out());
    message.Begin('I');
    message.End();
  }
  bool first = true;
  for (const RawStatement& raw : parsed->statements()) {
    // All statements of one string are one transaction, unless they say otherwise.
    if (!first) BeginStatement(text);
    first = false;
    auto statement = MakeStatement(parsed, raw, raw.node);
    RequireNotFailed(*statement);
    BeginRemote(parsed->statements().size() == 1);
    ends_message_ = &raw == &parsed->statements().back();
    RunSimpleStatement(statement);
    if (&raw != &parsed->statements().back()) EndStatement("statement");
  }
  if (transaction_.state() == TransactionState::kImplicit) Commit();
  EndStatement("statement");
}

void Session::RunSimpleStatement(const std::shared_ptr<Statement>& statement) {
  auto portal = std::make_shared<Portal>();
  portal->statement = statement;
  portal->level = transaction_.level();
  RunPortal(portal, 0, true);
}

const Query* Session::AnalyzeIn(Arena* arena, const Statement& statement, std::vector<Oid>* types) {
  AnalyzeContext context{catalog_.get(), &session_settings_, SearchPath(settings_, current_user()),
                         current_user(), database_,          arena,
                         types};
  return AnalyzeSelect(*statement.raw, context);
}

// A prepared statement is analysed once: what its literals mean does not follow DateStyle or
// TimeZone. Its plans do.
bool Session::IsAnalysed(Statement* statement) const {
  if (!statement->analysed() || statement->catalog != catalog_) return false;
  if (statement->settings_version == settings_.version()) return true;
  if (statement->completion != nullptr ||
      statement->search_path != SearchPath(settings_, current_user()))
    return false;
  if (statement->plans != nullptr) statement->plans = std::make_shared<PlanCache>();
  statement->settings_version = settings_.version();
  return true;
}

void Session::Analyze(Statement* statement) {
  if (IsAnalysed(statement)) return;
  bool again = statement->analysed();
  auto arena = std::make_unique<Arena>();
  std::vector<Oid> types = again ? statement->param_types : statement->declared_types;
  const Query* query = nullptr;
  std::shared_ptr<const CompletionQuery> completion;
  std::vector<ColumnDescription> columns;
  try {
    query = AnalyzeIn(arena.get(), *statement, &types);
    for (const Target& target : query->targets)
      if (!target.junk) columns.push_back(DescriptionOf(*query, target));
  } catch (const QueryError& e) {
    completion = CompleteOrThrow(*statement, types, e.error);
    types = completion->request.param_types;
    columns = ColumnsOf(*completion);
  }
  if (again && !SameColumns(columns, statement->columns))
    Refuse("cached plan must not change result type");
  statement->catalog = catalog_;
  statement->settings_version = statement->analysed_version = settings_.version();
  statement->search_path = SearchPath(settings_, current_user());
  statement->arena = std::move(arena);
  statement->query = query;
  statement->completion = std::move(completion);
  statement->has_session_functions = query != nullptr && HasSessionFunctions(*query);
  statement->plans = query != nullptr && !statement->has_session_functions
                         ? std::make_shared<PlanCache>()
                         : nullptr;
  statement->param_types = std::move(types);
  statement->columns = std::move(columns);
}

// What cannot be analysed or planned here may still run on a shard; if not, `error` is thrown.
std::shared_ptr<const CompletionQuery> Session::CompleteOrThrow(const Statement& statement,
                                                                const std::vector<Oid>& types,
                                                                const Error& error) {
  // A shard may know functions and types that are not known here. What else is wrong is wrong there
  // too.
  bool unknown_here = error.state == sqlstate::kFeatureNotSupported ||
                      error.state == sqlstate::kUndefinedFunction ||
                      error.state == sqlstate::kUndefinedObject;
  if (!unknown_here || !settings_.Boolean("enable_completion") || statement.modifies ||
      DependsOnSession(statement.text()))
    throw QueryError(error);
  return PrepareCompletion(*statement.raw, MakeQuerySession(),
                           SearchPath(settings_, current_user()), types, error);
}

// The query to run now: the statement's, or where it calls the session's functions a copy with
// their answers.
const Query* Session::QueryToRun(Statement* statement, Arena* arena) {
  if (!statement->has_session_functions) return statement->query;
  std::vector<Oid> types = statement->param_types;
  const Query* query = AnalyzeIn(arena, *statement, &types);
  SessionFunctionContext functions{&settings_,     SearchPath(settings_, current_user()),
                                   current_user(), session_user(),
                                   database_,      arena};
  functions.in_transaction = transaction_.in_block();
  FoldSessionFunctions(const_cast<Query*>(query), functions);
  return query;
}

// Plans the statement here, or where the planner refuses it lets a shard complete it.
std::unique_ptr<RunningQuery> Session::MakeRunning(Statement* statement, Arena* arena,
                                                   const QueryOptions& options) {
  Analyze(statement);
  QuerySession session = MakeQuerySession();
  if (statement->completion == nullptr) {
    const Query* query = QueryToRun(statement, arena);
    RequireMayRun(*catalog_, CurrentRole(), *query);
    WaitForViewsOf(*query);
    try {
      return std::make_unique<RunningQuery>(session, *query, options);
    } catch (const QueryError& e) {
      // A parameter's or a constant's error is the planner's answer; only what it cannot do goes
      // on.
      if (e.error.state != sqlstate::kFeatureNotSupported || statement->has_session_functions)
        throw;
      auto completion = CompleteOrThrow(*statement, statement->param_types, e.error);
      if (!SameColumns(ColumnsOf(*completion), statement->columns)) throw;
      statement->completion = std::move(completion);  // the next execution need not try again
    }
  }
  RequireMayRun(*catalog_, CurrentRole(), statement->completion->request);
  WaitForViewsOf(statement->completion->request);
  return RunCompletion(session, *statement->completion, options);
}

void Session::StartPortal(Portal* portal) {
  if (portal->running != nullptr) return;
  MakeRoom();
  Statement* statement = portal->statement.get();
  Analyze(statement);
  if (portal->params.size() < statement->param_types.size())
    Throw(sqlstate::kUndefinedParameter, "there is no parameter ${}", portal->params.size() + 1);
  QueryOptions options;
  options.params = portal->params;
  options.formats = portal->formats;
  options.allow_pass_through = !portal->cursor;  // each FETCH has formats of its own
  options.instrument = portal->instrument;
  options.copy_options = portal->copy_options;
  options.text = statement->text();
  options.plans = statement->plans;
  portal->running = MakeRunning(statement, portal->arena.get(), options);
  // What passes through needs no codec here.
  const PlannedStatement& plan = portal->running->plan();
  if (!plan.pass_through) CheckFormats(plan.columns, portal->formats);
  if (plan.writes && settings_.Boolean("transaction_read_only"))
    Throw(sqlstate::kReadOnlySqlTransaction, "cannot execute {} in a read-only transaction",
          CommandName(*statement->raw));
}

uint64_t Session::SendQueryRows(Portal* portal, std::span<const int16_t> formats,
                                uint64_t rows_max) {
  DataRowSink sink(&client_, portal->running->plan().columns, formats, session_settings_);
  return portal->running->Run(&sink, rows_max);
}

bool Session::RunPortal(const std::shared_ptr<Portal>& portal, uint64_t rows_max, bool simple) {
  if (!portal->statement->raw) {
    MessageWriter message(client_.out());
    message.Begin('I');
    message.End();
    return true;
  }
  auto node_case = portal->statement->raw->node->node_case;
  if (node_case == PG_QUERY__NODE__NODE_EXECUTE_STMT) {
    auto inner = MakeExecutePortal(*portal->statement);
    portal->statement = inner->statement;
    portal->arena = std::move(inner->arena);
    portal->params = std::move(inner->params);
    CheckResultFormats(*portal, DescribeStatement(*portal->statement).size());
  }
  if (portal->statement->is_query) {
    StartPortal(portal.get());
    if (simple && portal->statement->returns_rows())
      SendRowDescription(portal->statement->columns, portal->formats);
    uint64_t rows = SendQueryRows(portal.get(), portal->formats, rows_max);
    if (rows_max != 0 && rows == rows_max) return false;
    std::string tag = QueryTag(portal->running.get(), rows);
    if (!portal->cursor) portal->running->Finish();
    SendCommandComplete(tag);
    return true;
  }
  if (node_case == PG_QUERY__NODE__NODE_FETCH_STMT) {
    SendCommandComplete(RunFetch(*portal->statement->raw, portal->formats, simple));
    return true;
  }
  if (!portal->started) {
    if (node_case == PG_QUERY__NODE__NODE_COPY_STMT) {
      portal->tag = RunCopy(*portal->statement);
    } else {
      CommandResult result = RunCommand(portal->statement);
      portal->tag = std::move(result.tag);
      portal->rows = std::move(result.rows);
    }
    portal->started = true;
    if (simple && portal->rows) SendRowDescription(portal->rows->columns, portal->formats);
  } else if (!portal->rows) {
    Throw(sqlstate::kObjectNotInPrerequisiteState, "portal \"{}\" cannot be run", portal->name);
  }
  if (portal->rows) {
    uint64_t sent = SendTextRows(*portal->rows, portal->rows_sent, rows_max);
    portal->rows_sent += sent;
    if (rows_max != 0 && sent == rows_max) return false;
  }
  SendCommandComplete(portal->tag);
  return true;
}

void Session::SendRowDescription(std::span<const ColumnDescription> columns,
                                 std::span<const int16_t> formats) {
  MessageWriter message(client_.out());
  message.Begin('T');
  message.Int<int16_t>(static_cast<int16_t>(columns.size()));
  for (size_t i = 0; i < columns.size(); i++) {
    message.CString(columns[i].name);
    message.Int<uint32_t>(columns[i].relation);
    message.Int<int16_t>(columns[i].attribute);
    message.Int<uint32_t>(columns[i].type);
    message.Int<int16_t>(LengthOf(columns[i].type));
    message.Int<int32_t>(columns[i].typmod);
    message.Int<int16_t>(FormatOf(formats, i));
  }
  message.End();
}

// The commands' columns are text-like: both formats are the same bytes.
uint64_t Session::SendTextRows(const TextRows& rows, size_t from, uint64_t rows_max) {
  uint64_t sent = 0;
  for (size_t i = from; i < rows.rows.size() && (rows_max == 0 || sent < rows_max); i++, sent++) {
    MessageWriter message(client_.out());
    message.Begin('D');
    message.Int<int16_t>(static_cast<int16_t>(rows.columns.size()));
    for (const auto& value : rows.rows[i]) {
      message.Int<int32_t>(value ? static_cast<int32_t>(value->size()) : -1);
      if (value) message.Bytes(*value);
    }
    message.End();
    client_.FlushIfLarge();
  }
  return sent;
}

std::vector<std::vector<std::optional<std::string>>> Session::QueryAsText(Statement* statement) {
  QueryOptions options;
  options.allow_pass_through = false;
  options.text = statement->text();
  Arena arena;
  auto running = MakeRunning(statement, &arena, options);
  TextSink sink(statement->columns.size(), session_settings_);
  running->Run(&sink, 0);
  return std::move(sink.rows);
}

}  // namespace sluice
