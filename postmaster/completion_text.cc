#include "postmaster/completion_text.h"

#include <algorithm>
#include <utility>

#include "postmaster/raw_deparse.h"
#include "postmaster/raw_walk.h"

namespace sluice {
namespace {

// Functions that act on the session or the server, or whose answer is Sluice's to give.
constexpr std::string_view kForbiddenFunctions[] = {"nextval",
                                                    "setval",
                                                    "currval",
                                                    "lastval",
                                                    "set_config",
                                                    "current_setting",
                                                    "pg_terminate_backend",
                                                    "pg_cancel_backend",
                                                    "pg_reload_conf",
                                                    "pg_rotate_logfile",
                                                    "pg_notify",
                                                    "pg_backend_pid",
                                                    "current_database",
                                                    "current_schema",
                                                    "current_schemas",
                                                    "current_query",
                                                    "version",
                                                    "inet_server_addr",
                                                    "inet_server_port",
                                                    "inet_client_addr",
                                                    "inet_client_port",
                                                    "pg_postmaster_start_time",
                                                    "pg_conf_load_time",
                                                    "txid_current",
                                                    "pg_current_xact_id",
                                                    "pg_export_snapshot",
                                                    "pg_is_in_recovery",
                                                    "pg_read_file",
                                                    "pg_read_binary_file",
                                                    "pg_ls_dir",
                                                    "pg_stat_file",
                                                    "pg_switch_wal",
                                                    "pg_create_restore_point",
                                                    "pg_promote",
                                                    "query_to_xml",
                                                    "table_to_xml",
                                                    "schema_to_xml",
                                                    "database_to_xml",
                                                    "cursor_to_xml",
                                                    "dblink",
                                                    "dblink_exec",
                                                    "dblink_connect",
                                                    "pg_logical_emit_message"};

bool IsForbidden(std::string_view name) {
  if (name.starts_with("pg_advisory") || name.starts_with("pg_try_advisory") ||
      name.starts_with("lo_") || name.starts_with("has_") || name.starts_with("pg_relation_") ||
      name.starts_with("pg_total_") || name.starts_with("pg_table_") ||
      name.starts_with("pg_stat_") || name.starts_with("pg_replication") ||
      name.starts_with("pg_create_") || name.starts_with("pg_drop_"))
    return true;
  return std::ranges::find(kForbiddenFunctions, name) != std::end(kForbiddenFunctions);
}

std::string_view Text(const char* text) {
  return text == nullptr ? std::string_view() : text;
}

std::string_view StringOf(const PgQuery__Node* node) {
  return node->node_case == PG_QUERY__NODE__NODE_STRING ? Text(node->string->sval)
                                                        : std::string_view();
}

bool IsSystemColumn(std::string_view name) {
  static constexpr std::string_view kNames[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

class ReferenceFinder {
 public:
  explicit ReferenceFinder(StatementReferences* to) : to_(*to) {}

  void Visit(const ProtobufCMessage* message) {
    if (message == nullptr) return;
    const ProtobufCMessageDescriptor* kind = message->descriptor;
    if (kind == &pg_query__select_stmt__descriptor) return VisitSelect(message);
    if (kind == &pg_query__range_var__descriptor) AddTable(As<PgQuery__RangeVar>(message));
    if (kind == &pg_query__column_ref__descriptor) AddColumn(As<PgQuery__ColumnRef>(message));
    if (kind == &pg_query__a__indirection__descriptor) to_.all_columns = true;  // (row).field
    if (kind == &pg_query__func_call__descriptor) AddFunction(As<PgQuery__FuncCall>(message));
    if (kind == &pg_query__join_expr__descriptor) {
      const auto& join = As<PgQuery__JoinExpr>(message);
      to_.all_columns = to_.all_columns || join.is_natural;
      for (size_t i = 0; i < join.n_using_clause; i++)
        to_.column_names.emplace_back(StringOf(join.using_clause[i]));
    }
    if (kind == &pg_query__alias__descriptor) {
      to_.range_names.emplace_back(Text(As<PgQuery__Alias>(message).aliasname));
      if (As<PgQuery__Alias>(message).n_colnames > 0)
        to_.all_columns = true;  // renamed: by position
    }
    CheckObstacle(kind, message);
    VisitChildren(message);
  }

 private:
  template <typename T>
  static const T& As(const ProtobufCMessage* message) {
    return *reinterpret_cast<const T*>(message);
  }

  void CheckObstacle(const ProtobufCMessageDescriptor* kind, const ProtobufCMessage* message) {
    auto refuse = [&](std::string_view what) {
      if (to_.obstacle.empty()) to_.obstacle = what;
    };
    if (kind == &pg_query__insert_stmt__descriptor || kind == &pg_query__update_stmt__descriptor ||
        kind == &pg_query__delete_stmt__descriptor || kind == &pg_query__merge_stmt__descriptor)
      refuse("a data-modifying statement in WITH");
    if (kind == &pg_query__into_clause__descriptor) refuse("SELECT INTO");
    if (kind == &pg_query__locking_clause__descriptor) refuse("FOR UPDATE");
    if (kind == &pg_query__current_of_expr__descriptor) refuse("WHERE CURRENT OF");
    if (kind == &pg_query__sqlvalue_function__descriptor &&
        As<PgQuery__SQLValueFunction>(message).op >=
            PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE)
      refuse("CURRENT_USER and the like");
  }

  void VisitChildren(const ProtobufCMessage* message) {
    ForEachRawChild(message, [this](const ProtobufCMessage* child) { Visit(child); });
  }

  // WITH's names hide tables in the query and in the WITH queries behind them (in all, if
  // recursive).
  void VisitSelect(const ProtobufCMessage* message) {
    const auto& select = As<PgQuery__SelectStmt>(message);
    size_t visible = cte_names_.size();
    const PgQuery__WithClause* with = select.with_clause;
    if (with != nullptr) {
      for (size_t i = 0; with->recursive && i < with->n_ctes; i++) AddCteName(*with->ctes[i]);
      for (size_t i = 0; i < with->n_ctes; i++) {
        Visit(&with->ctes[i]->base);
        if (!with->recursive) AddCteName(*with->ctes[i]);
      }
    }
    CheckObstacle(message->descriptor, message);
    VisitExceptWith(message);
    cte_names_.resize(visible);
  }

  void VisitExceptWith(const ProtobufCMessage* message) {
    auto* select = const_cast<PgQuery__SelectStmt*>(&As<PgQuery__SelectStmt>(message));
    PgQuery__WithClause* with = std::exchange(select->with_clause, nullptr);
    VisitChildren(message);
    select->with_clause = with;
  }

  void AddCteName(const PgQuery__Node& node) {
    if (node.node_case == PG_QUERY__NODE__NODE_COMMON_TABLE_EXPR)
      cte_names_.emplace_back(Text(node.common_table_expr->ctename));
  }

  void AddTable(const PgQuery__RangeVar& var) {
    TableReference table;
    table.schema = Text(var.schemaname);
    table.name = Text(var.relname);
    if (table.schema.empty() && std::ranges::find(cte_names_, table.name) != cte_names_.end())
      return;
    if (!Text(var.catalogname).empty() && to_.obstacle.empty())
      to_.obstacle = "a database-qualified name";
    table.only = !var.inh;
    table.has_alias = var.alias != nullptr;
    table.location = var.location;
    to_.range_names.push_back(table.name);
    to_.tables.push_back(std::move(table));
  }

  void AddColumn(const PgQuery__ColumnRef& column) {
    std::vector<std::string> names;
    bool star = false;
    for (size_t i = 0; i < column.n_fields; i++) {
      if (column.fields[i]->node_case == PG_QUERY__NODE__NODE_A_STAR)
        star = true;
      else
        names.emplace_back(StringOf(column.fields[i]));
    }
    if (star) to_.all_columns = true;
    if (names.empty()) return;
    // The copies have other values in them than the rows on the shards.
    if (IsSystemColumn(names.back()) && to_.obstacle.empty())
      to_.obstacle = "system column " + names.back();
    size_t parts = names.size() + (star ? 1 : 0);
    if (parts == 1) to_.single_names.push_back(names[0]);
    if (parts >= 3) to_.qualified_columns.push_back({names[0], names[1], column.location});
    to_.column_names.push_back(names.back());
  }

  void AddFunction(const PgQuery__FuncCall& call) {
    if (call.n_funcname == 0) return;
    std::string_view name = StringOf(call.funcname[call.n_funcname - 1]);
    if (IsForbidden(name) && to_.obstacle.empty()) to_.obstacle = "function " + std::string(name);
  }

  StatementReferences& to_;
  std::vector<std::string> cte_names_;
};

}  // namespace

StatementReferences FindReferences(const PgQuery__Node& statement) {
  StatementReferences references;
  ReferenceFinder(&references).Visit(&statement.base);
  return references;
}

namespace {

bool Contains(const ProtobufCMessage* message, const ProtobufCMessageDescriptor* kind) {
  bool found = false;
  WalkRaw(message, [&](const ProtobufCMessage* m) { found = found || m->descriptor == kind; });
  return found;
}

// Columns `table`.x become x.
std::string ConditionText(const PgQuery__Node& condition, std::string_view table) {
  OwnedNode copy = CopyNode(&condition);
  WalkRaw(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__column_ref__descriptor) return;
    auto* column = reinterpret_cast<PgQuery__ColumnRef*>(message);
    if (column->n_fields != 2 || StringOf(column->fields[0]) != table) return;
    std::swap(column->fields[0], column->fields[1]);
    pg_query__node__free_unpacked(column->fields[1], nullptr);
    column->n_fields = 1;
  });
  return DeparseExpression(copy.get());
}

}  // namespace

std::vector<std::string> ConditionsOnOnlyTable(const PgQuery__Node& statement) {
  std::vector<std::string> conditions;
  if (statement.node_case != PG_QUERY__NODE__NODE_SELECT_STMT) return conditions;
  const PgQuery__SelectStmt& select = *statement.select_stmt;
  // With WITH the name may be a query's.
  if (select.op != PG_QUERY__SET_OPERATION__SETOP_NONE || select.with_clause != nullptr ||
      select.n_from_clause != 1 ||
      select.from_clause[0]->node_case != PG_QUERY__NODE__NODE_RANGE_VAR ||
      select.where_clause == nullptr)
    return conditions;
  const PgQuery__RangeVar& var = *select.from_clause[0]->range_var;
  if (var.alias != nullptr && var.alias->n_colnames > 0) return conditions;
  std::string_view table = var.alias != nullptr ? Text(var.alias->aliasname) : Text(var.relname);
  std::vector<const PgQuery__Node*> parts = {select.where_clause};
  while (!parts.empty()) {
    const PgQuery__Node* part = parts.back();
    parts.pop_back();
    bool is_and = part->node_case == PG_QUERY__NODE__NODE_BOOL_EXPR &&
                  part->bool_expr->boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR;
    if (is_and) {
      for (size_t i = 0; i < part->bool_expr->n_args; i++)
        parts.push_back(part->bool_expr->args[i]);
    } else if (!Contains(&part->base, &pg_query__sub_link__descriptor)) {
      conditions.push_back(ConditionText(*part, table));
    }
  }
  return conditions;
}

}  // namespace sluice
