#include "postmaster/raw_deparse.h"

#include <pg_query.h>
#include <string_view>
#include <vector>

#include "common/assert.h"
#include "common/error.h"

namespace sluice {

OwnedNode CopyNode(const RawNode* node) {
  std::vector<uint8_t> packed(pg_query__node__get_packed_size(node));
  pg_query__node__pack(node, packed.data());
  return OwnedNode(pg_query__node__unpack(nullptr, packed.size(), packed.data()));
}

std::string DeparseStatement(const RawNode* statement) {
  PgQuery__RawStmt raw = PG_QUERY__RAW_STMT__INIT;
  raw.stmt = const_cast<RawNode*>(statement);  // only read
  PgQuery__RawStmt* statements[] = {&raw};
  PgQuery__ParseResult tree = PG_QUERY__PARSE_RESULT__INIT;
  tree.version = PG_VERSION_NUM;
  tree.n_stmts = 1;
  tree.stmts = statements;
  std::vector<char> packed(pg_query__parse_result__get_packed_size(&tree));
  pg_query__parse_result__pack(&tree, reinterpret_cast<uint8_t*>(packed.data()));
  PgQueryProtobuf protobuf{packed.size(), packed.data()};
  PgQueryDeparseResult result = pg_query_deparse_protobuf(protobuf);
  std::string text = result.query == nullptr ? "" : result.query;
  std::string failure = result.error == nullptr ? "" : result.error->message;
  pg_query_free_deparse_result(result);
  if (!failure.empty()) Refuse("this statement cannot be written as SQL again: {}", failure);
  return text;
}

std::string DeparseExpression(const RawNode* expression) {
  OwnedNode copy = CopyNode(expression);
  PgQuery__ResTarget target = PG_QUERY__RES_TARGET__INIT;
  target.val = copy.get();
  PgQuery__Node target_node = PG_QUERY__NODE__INIT;
  target_node.node_case = PG_QUERY__NODE__NODE_RES_TARGET;
  target_node.res_target = &target;
  PgQuery__Node* targets[] = {&target_node};
  PgQuery__SelectStmt select = PG_QUERY__SELECT_STMT__INIT;
  select.n_target_list = 1;
  select.target_list = targets;
  select.limit_option = PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_DEFAULT;
  select.op = PG_QUERY__SET_OPERATION__SETOP_NONE;
  PgQuery__Node select_node = PG_QUERY__NODE__INIT;
  select_node.node_case = PG_QUERY__NODE__NODE_SELECT_STMT;
  select_node.select_stmt = &select;
  std::string text = DeparseStatement(&select_node);
  constexpr std::string_view kSelect = "SELECT ";
  SLUICE_ASSERT(text.starts_with(kSelect));
  return text.substr(kSelect.size());
}

}  // namespace sluice
