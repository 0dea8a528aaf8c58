// Names in the queries of views: qualified, and changed when what they mean is renamed.
#include "postmaster/ddl_shard_sql.h"
#include "postmaster/raw_walk.h"

namespace sluice {

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
