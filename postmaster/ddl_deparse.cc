// Raw trees back to SQL text, by libpg_query's deparser: expressions of partition keys and
// defaults, and the queries of views.
#include <cstdlib>
#include <pg_query.h>

#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

struct FreeNode {
  void operator()(PgQuery__Node* node) const { pg_query__node__free_unpacked(node, nullptr); }
};
using OwnedNode = std::unique_ptr<PgQuery__Node, FreeNode>;

OwnedNode CopyNode(const RawNode* node) {
  std::vector<uint8_t> packed(pg_query__node__get_packed_size(node));
  pg_query__node__pack(node, packed.data());
  return OwnedNode(pg_query__node__unpack(nullptr, packed.size(), packed.data()));
}

// The SQL text of one statement.
std::string Deparse(PgQuery__Node* statement) {
  PgQuery__RawStmt raw = PG_QUERY__RAW_STMT__INIT;
  raw.stmt = statement;
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
  if (!failure.empty()) Throw(sqlstate::kInternalError, "could not deparse: {}", failure);
  return text;
}

// Calls `visit` for every message of a tree, children after parents.
template <typename Visit>
void Walk(ProtobufCMessage* message, Visit&& visit) {
  visit(message);
  const ProtobufCMessageDescriptor& descriptor = *message->descriptor;
  for (unsigned i = 0; i < descriptor.n_fields; i++) {
    const ProtobufCFieldDescriptor& field = descriptor.fields[i];
    if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
    char* at = reinterpret_cast<char*>(message) + field.offset;
    char* count_at = reinterpret_cast<char*>(message) + field.quantifier_offset;
    if (field.label == PROTOBUF_C_LABEL_REPEATED) {
      size_t count = *reinterpret_cast<size_t*>(count_at);
      auto** children = *reinterpret_cast<ProtobufCMessage***>(at);
      for (size_t k = 0; k < count; k++) Walk(children[k], visit);
      continue;
    }
    // Of a oneof only the member whose number is stored is there.
    bool oneof = (field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (oneof && *reinterpret_cast<uint32_t*>(count_at) != field.id) continue;
    auto* child = *reinterpret_cast<ProtobufCMessage**>(at);
    if (child != nullptr) Walk(child, visit);
  }
}

}  // namespace

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
  std::string text = Deparse(&select_node);
  constexpr std::string_view kSelect = "SELECT ";
  SLUICE_ASSERT(text.starts_with(kSelect));
  return text.substr(kSelect.size());
}

std::string DeparseViewQuery(const Ddl& ddl, const RawNode* query, std::vector<Oid>* uses) {
  OwnedNode copy = CopyNode(query);
  // A name that some WITH of the query defines may mean that; it keeps its meaning by staying as it
  // is.
  std::set<std::string> cte_names;
  Walk(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__common_table_expr__descriptor) return;
    cte_names.insert(reinterpret_cast<PgQuery__CommonTableExpr*>(message)->ctename);
  });
  Walk(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__range_var__descriptor) return;
    auto* name = reinterpret_cast<PgQuery__RangeVar*>(message);
    const Relation* relation = FindRelation(ddl, *name);
    if (relation == nullptr) return;  // a CTE or a system view
    uses->push_back(relation->oid);
    if (!Text(name->schemaname).empty() || cte_names.contains(name->relname)) return;
    // Freed with the copy, by free().
    if (name->schemaname != nullptr && name->schemaname != protobuf_c_empty_string)
      std::free(name->schemaname);
    name->schemaname = strdup(relation->schema.c_str());
  });
  std::sort(uses->begin(), uses->end());
  uses->erase(std::unique(uses->begin(), uses->end()), uses->end());
  return Deparse(copy.get());
}

}  // namespace sluice
