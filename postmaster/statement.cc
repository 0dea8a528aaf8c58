#include "postmaster/statement.h"

#include <pg_query/pg_query.pb-c.h>

namespace sluice {
namespace {

std::string_view TransactionName(const PgQuery__TransactionStmt& statement) {
  switch (statement.kind) {
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_BEGIN:
      return "BEGIN";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_START:
      return "START TRANSACTION";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_COMMIT:
      return "COMMIT";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK:
      return "ROLLBACK";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_SAVEPOINT:
      return "SAVEPOINT";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_RELEASE:
      return "RELEASE";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK_TO:
      return "ROLLBACK TO";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_PREPARE:
      return "PREPARE TRANSACTION";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_COMMIT_PREPARED:
      return "COMMIT PREPARED";
    case PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK_PREPARED:
      return "ROLLBACK PREPARED";
    default:
      return "TRANSACTION";
  }
}

// "create_foreign_table_stmt" → "CREATE FOREIGN TABLE".
std::string NameFromNode(std::string_view node) {
  if (node.ends_with("_stmt")) node.remove_suffix(5);
  std::string name;
  for (char c : node) {
    if (c == '_') c = ' ';
    name += static_cast<char>(toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

std::shared_ptr<Statement> MakeStatement(const std::shared_ptr<const ParsedSql>& parsed,
                                         const RawStatement& raw, const PgQuery__Node* node) {
  auto statement = std::make_shared<Statement>();
  statement->parsed = parsed;
  statement->raw = RawStatement{node, raw.text, raw.location};
  statement->modifies = node != nullptr && (node->node_case == PG_QUERY__NODE__NODE_INSERT_STMT ||
                                            node->node_case == PG_QUERY__NODE__NODE_UPDATE_STMT ||
                                            node->node_case == PG_QUERY__NODE__NODE_DELETE_STMT);
  statement->is_query = statement->modifies ||
                        (node != nullptr && node->node_case == PG_QUERY__NODE__NODE_SELECT_STMT &&
                         node->select_stmt->into_clause == nullptr);
  return statement;
}

std::string_view CommandName(const RawStatement& raw) {
  const PgQuery__Node& node = *raw.node;
  switch (node.node_case) {
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
      return TransactionName(*node.transaction_stmt);
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT:
      return node.variable_set_stmt->kind >= PG_QUERY__VARIABLE_SET_KIND__VAR_RESET ? "RESET"
                                                                                    : "SET";
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
      return "SHOW";
    case PG_QUERY__NODE__NODE_SELECT_STMT:
      return node.select_stmt->into_clause != nullptr ? "SELECT INTO" : "SELECT";
    case PG_QUERY__NODE__NODE_FETCH_STMT:
      return node.fetch_stmt->ismove ? "MOVE" : "FETCH";
    case PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT:
      return "CLOSE CURSOR";
    case PG_QUERY__NODE__NODE_CREATE_STMT:
      return "CREATE TABLE";
    case PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT:
      return "CREATE TABLE AS";
    case PG_QUERY__NODE__NODE_INDEX_STMT:
      return "CREATE INDEX";
    case PG_QUERY__NODE__NODE_VIEW_STMT:
      return "CREATE VIEW";
    default:
      break;
  }
  // Kept for good: there are as many as kinds of statements.
  static auto* names = new std::map<int, std::string>;
  auto [found, fresh] = names->try_emplace(node.node_case);
  if (fresh) {
    const ProtobufCFieldDescriptor* field = protobuf_c_message_descriptor_get_field(
        &pg_query__node__descriptor, static_cast<unsigned>(node.node_case));
    found->second = field != nullptr ? NameFromNode(field->name) : "statement";
  }
  return found->second;
}

}  // namespace sluice
