#include "postmaster/completion_text.h"

#include <pg_query/pg_query.pb-c.h>

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

// Functions that act on the session or the server, or whose answer is Sluice's to give.
constexpr std::string_view kForbiddenFunctions[] = {
    "nextval", "setval", "currval", "lastval", "set_config", "current_setting", "pg_terminate_backend",
    "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile", "pg_notify", "pg_backend_pid",
    "current_database", "current_schema", "current_schemas", "current_query", "version",
    "inet_server_addr", "inet_server_port", "inet_client_addr", "inet_client_port",
    "pg_postmaster_start_time", "pg_conf_load_time", "txid_current", "pg_current_xact_id",
    "pg_export_snapshot", "pg_is_in_recovery", "pg_read_file", "pg_read_binary_file", "pg_ls_dir",
    "pg_stat_file", "pg_switch_wal", "pg_create_restore_point", "pg_promote", "query_to_xml",
    "table_to_xml", "schema_to_xml", "database_to_xml", "cursor_to_xml", "dblink", "dblink_exec",
    "dblink_connect", "pg_logical_emit_message"};

bool IsForbidden(std::string_view name) {
  if (name.starts_with("pg_advisory") || name.starts_with("pg_try_advisory") || name.starts_with("lo_") ||
      name.starts_with("has_") || name.starts_with("pg_relation_") || name.starts_with("pg_total_") ||
      name.starts_with("pg_table_") || name.starts_with("pg_stat_") || name.starts_with("pg_replication") ||
      name.starts_with("pg_create_") || name.starts_with("pg_drop_"))
    return true;
  return std::ranges::find(kForbiddenFunctions, name) != std::end(kForbiddenFunctions);
}

std::string_view Text(const char* text) { return text == nullptr ? std::string_view() : text; }

std::string_view StringOf(const PgQuery__Node* node) {
  return node->node_case == PG_QUERY__NODE__NODE_STRING ? Text(node->string->sval) : std::string_view();
}

// Walks the tree by protobuf's own description of it, so that no node kind can be forgotten.
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
      if (As<PgQuery__Alias>(message).n_colnames > 0) to_.all_columns = true;  // renamed: by position
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
        As<PgQuery__SQLValueFunction>(message).op >= PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE)
      refuse("CURRENT_USER and the like");
  }

  void VisitChildren(const ProtobufCMessage* message) {
    const ProtobufCMessageDescriptor* kind = message->descriptor;
    const char* base = reinterpret_cast<const char*>(message);
    for (unsigned i = 0; i < kind->n_fields; i++) {
      const ProtobufCFieldDescriptor& field = kind->fields[i];
      if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
      if (field.label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *reinterpret_cast<const size_t*>(base + field.quantifier_offset);
        auto items = *reinterpret_cast<ProtobufCMessage* const* const*>(base + field.offset);
        for (size_t j = 0; j < count; j++) Visit(items[j]);
        continue;
      }
      if ((field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
          *reinterpret_cast<const uint32_t*>(base + field.quantifier_offset) != field.id)
        continue;
      Visit(*reinterpret_cast<ProtobufCMessage* const*>(base + field.offset));
    }
  }

  // WITH's names hide tables in the query and in the WITH queries behind them (in all, if recursive).
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
    if (table.schema.empty() && std::ranges::find(cte_names_, table.name) != cte_names_.end()) return;
    if (!Text(var.catalogname).empty() && to_.obstacle.empty()) to_.obstacle = "a database-qualified name";
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
      if (column.fields[i]->node_case == PG_QUERY__NODE__NODE_A_STAR) star = true;
      else names.emplace_back(StringOf(column.fields[i]));
    }
    if (star) to_.all_columns = true;
    if (names.empty()) return;
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

bool IsIdentifierStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

bool IsIdentifierPart(char c) { return IsIdentifierStart(c) || (c >= '0' && c <= '9') || c == '$'; }

}  // namespace

StatementReferences FindReferences(const PgQuery__Node& statement) {
  StatementReferences references;
  ReferenceFinder(&references).Visit(&statement.base);
  return references;
}

void TextRewrite::Replace(int location, int length, std::string with) {
  Piece piece{location, length, std::move(with)};
  auto at = std::lower_bound(pieces_.begin(), pieces_.end(), piece,
                             [](const Piece& a, const Piece& b) { return a.location < b.location; });
  pieces_.insert(at, std::move(piece));
}

std::string TextRewrite::Result() const {
  std::string result;
  int at = offset_;
  for (const Piece& piece : pieces_) {
    result += original_.substr(static_cast<size_t>(at - offset_), static_cast<size_t>(piece.location - at));
    result += piece.with;
    at = piece.location + piece.length;
  }
  return result + std::string(original_.substr(static_cast<size_t>(at - offset_)));
}

void TextRewrite::Shift(int by) {
  offset_ += by;
  for (Piece& piece : pieces_) piece.location += by;
}

int TextRewrite::OriginalOffset(int result_offset) const {
  int original = offset_ + result_offset;  // as if nothing had changed before it
  for (const Piece& piece : pieces_) {
    if (original <= piece.location) break;
    int with = static_cast<int>(piece.with.size());
    if (original < piece.location + with) return piece.location;  // inside the new text
    original += piece.length - with;
  }
  return original;
}

int TextRewrite::IdentifiersEnd(int location, int parts, int keep, int* kept_start) const {
  size_t at = static_cast<size_t>(location - offset_);
  auto skip_space = [&] {
    while (at < original_.size() && strchr(" \t\r\n\f\v", original_[at]) != nullptr) at++;
  };
  for (int part = 0; part < parts; part++) {
    if (part > 0) {
      skip_space();
      if (at >= original_.size() || original_[at] != '.') return -1;
      at++;
      skip_space();
    }
    if (part == parts - keep) *kept_start = offset_ + static_cast<int>(at);
    if (at >= original_.size()) return -1;
    if (original_[at] == '"') {
      for (at++;; at++) {
        if (at >= original_.size()) return -1;
        if (original_[at] != '"') continue;
        if (at + 1 < original_.size() && original_[at + 1] == '"') at++;
        else break;
      }
      at++;
      continue;
    }
    if (original_[at] == '*') {
      at++;
      continue;
    }
    if (!IsIdentifierStart(original_[at])) return -1;
    // U&"…" may hide anything.
    if (at + 2 < original_.size() && original_[at + 1] == '&' && original_[at + 2] == '"') return -1;
    while (at < original_.size() && IsIdentifierPart(original_[at])) at++;
  }
  return offset_ + static_cast<int>(at);
}

}  // namespace sluice
