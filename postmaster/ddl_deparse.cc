// Raw trees back to SQL text, by libpg_query's deparser: expressions of partition keys and
// defaults, and the queries of views.
#include <pg_query.h>

#include "postmaster/ddl_shard_sql.h"
#include "postmaster/raw_walk.h"

namespace sluice {

OwnedNode CopyNode(const RawNode* node) {
  std::vector<uint8_t> packed(pg_query__node__get_packed_size(node));
  pg_query__node__pack(node, packed.data());
  return OwnedNode(pg_query__node__unpack(nullptr, packed.size(), packed.data()));
}

std::string DeparseStatement(RawNode* statement) {
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

std::string DeparseViewQuery(const Ddl& ddl, const RawNode* query, std::vector<Oid>* uses) {
  OwnedNode copy = CopyNode(query);
  // A name that some WITH of the query defines may mean that; it keeps its meaning by staying as it
  // is.
  std::set<std::string> cte_names;
  WalkRaw(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__common_table_expr__descriptor) return;
    cte_names.insert(reinterpret_cast<PgQuery__CommonTableExpr*>(message)->ctename);
  });
  WalkRaw(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__range_var__descriptor) return;
    auto* name = reinterpret_cast<PgQuery__RangeVar*>(message);
    const Relation* relation = FindRelation(ddl, *name);
    if (relation == nullptr) return;  // a CTE or a system view
    uses->push_back(relation->oid);
    if (!Text(name->schemaname).empty() || cte_names.contains(name->relname)) return;
    SetText(&name->schemaname, relation->schema);
  });
  std::sort(uses->begin(), uses->end());
  uses->erase(std::unique(uses->begin(), uses->end()), uses->end());
  return DeparseStatement(copy.get());
}

std::string RenameInViewQuery(const Ddl& ddl, const Relation& view, const Relation& relation,
                              std::string_view to) {
  ParsedSql parsed = ParseSql(view.view_sql);
  OwnedNode copy = CopyNode(parsed.statements().at(0).node);
  bool unclear = false;
  WalkRaw(&copy->base, [&](ProtobufCMessage* message) {
    if (message->descriptor == &pg_query__column_ref__descriptor) {
      const auto& column = *reinterpret_cast<PgQuery__ColumnRef*>(message);
      unclear |= column.n_fields > 2;  // schema.table.column
    }
    if (message->descriptor != &pg_query__range_var__descriptor) return;
    auto* name = reinterpret_cast<PgQuery__RangeVar*>(message);
    if (name->relname != relation.name) return;
    if (Text(name->schemaname).empty()) unclear = true;  // that, or a CTE
    if (Text(name->schemaname) != relation.schema) return;
    if (name->alias == nullptr) {
      // Columns go on being named by what it was called.
      name->alias = static_cast<PgQuery__Alias*>(malloc(sizeof(PgQuery__Alias)));
      pg_query__alias__init(name->alias);
      SetText(&name->alias->aliasname, relation.name);
    }
    SetText(&name->relname, to);
  });
  if (unclear)
    Refuse("renaming of a relation that a view uses in this way is not supported: {} uses {}",
           Describe(ddl, view), Describe(ddl, relation));
  return DeparseStatement(copy.get());
}

}  // namespace sluice
