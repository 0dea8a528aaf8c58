// CREATE [OR REPLACE] VIEW.
#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

ColumnInfo ColumnOf(const Target& target) {
  ColumnInfo column;
  column.name = target.name;
  column.type = target.expr->type;
  column.typmod = target.expr->typmod;
  column.collation = target.expr->collation;
  return column;
}

void ApplyAliases(const PgQuery__ViewStmt& create, std::vector<ColumnInfo>* columns) {
  std::vector<std::string> aliases = StringList(create.aliases, create.n_aliases);
  if (aliases.size() > columns->size())
    Throw(sqlstate::kSyntaxError, "CREATE VIEW specifies more column names than columns");
  for (size_t i = 0; i < aliases.size(); i++) (*columns)[i].name = aliases[i];
  std::set<std::string_view> seen;
  for (const ColumnInfo& column : *columns)
    if (!seen.insert(column.name).second)
      Throw(sqlstate::kDuplicateColumn, "column \"{}\" specified more than once", column.name);
}

// A view that is replaced keeps its columns; new ones may follow.
void CheckReplaceable(const Relation& old, const std::vector<ColumnInfo>& columns) {
  if (old.kind != RelationKind::kView)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a view", old.name);
  if (columns.size() < old.columns.size())
    Throw(sqlstate::kInvalidTableDefinition, "cannot drop columns from view");
  for (size_t i = 0; i < old.columns.size(); i++) {
    const ColumnInfo& was = old.columns[i];
    const ColumnInfo& is = columns[i];
    if (was.name != is.name)
      throw QueryError(
          MakeError(sqlstate::kInvalidTableDefinition,
                    "cannot change name of view column \"{}\" to \"{}\"", was.name, is.name)
              .Hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
    if (was.type != is.type || was.typmod != is.typmod)
      Throw(sqlstate::kInvalidTableDefinition,
            "cannot change data type of view column \"{}\" from {} to {}", was.name,
            FormatType(was.type, was.typmod), FormatType(is.type, is.typmod));
  }
}

// Whether `view` reads `relation`, itself or through other views.
bool Reads(const Ddl& ddl, Oid view, Oid relation) {
  if (view == relation) return true;
  for (Oid used : ddl.catalog.relations.at(view).view_uses)
    if (Reads(ddl, used, relation)) return true;
  return false;
}

}  // namespace

std::vector<ColumnInfo> AnalyzedColumns(Ddl& ddl, const RawStatement& statement) {
  std::vector<Oid> params;
  const Query* query = AnalyzeSelect(statement, ddl.MakeAnalyzeContext(&params));
  if (!params.empty()) Throw(sqlstate::kUndefinedParameter, "there is no parameter $1");
  std::vector<ColumnInfo> columns;
  for (const Target& target : query->targets)
    if (!target.junk) columns.push_back(ColumnOf(target));
  return columns;
}

std::vector<ColumnInfo> ViewColumns(Ddl& ddl, const std::string& sql) {
  ParsedSql parsed = ParseSql(sql);
  SLUICE_ASSERT(parsed.statements().size() == 1);
  return AnalyzedColumns(ddl, parsed.statements()[0]);
}

void CreateView(Ddl& ddl, const PgQuery__ViewStmt& create) {
  if (Text(create.view->relpersistence) == "t") Refuse("temporary views are not supported");
  if (create.with_check_option != PG_QUERY__VIEW_CHECK_OPTION__NO_CHECK_OPTION &&
      create.with_check_option != PG_QUERY__VIEW_CHECK_OPTION__VIEW_CHECK_OPTION_UNDEFINED)
    Refuse("WITH CHECK OPTION is not supported");
  if (create.n_options > 0) Refuse("options of a view are not supported");
  std::string schema = CreationSchema(ddl, Text(create.view->schemaname));

  // Analysed as written first, so that errors have positions in the client's text.
  RawStatement query{create.query, ddl.statement.text, ddl.statement.location};
  std::vector<ColumnInfo> columns = AnalyzedColumns(ddl, query);
  ApplyAliases(create, &columns);

  std::vector<Oid> uses;
  std::string sql = DeparseViewQuery(ddl, create.query, &uses);
  std::vector<ColumnInfo> kept = ViewColumns(ddl, sql);
  bool same = kept.size() == columns.size();
  for (size_t i = 0; same && i < kept.size(); i++)
    same = kept[i].type == columns[i].type && kept[i].typmod == columns[i].typmod;
  if (!same) Refuse("the query of view \"{}\" cannot be kept as text", create.view->relname);

  const Relation* old = ddl.catalog.FindRelation(schema, create.view->relname);
  if (old != nullptr) {
    if (!create.replace)
      Throw(sqlstate::kDuplicateTable, "relation \"{}\" already exists", create.view->relname);
    CheckReplaceable(*old, columns);
    for (Oid used : uses)
      if (Reads(ddl, used, old->oid))
        Throw(sqlstate::kInvalidObjectDefinition, "infinite recursion detected in view \"{}\"",
              old->name);
  }
  Oid oid = old != nullptr ? old->oid : ddl.NewOid();
  Relation& view = ddl.catalog.relations[oid];
  view.oid = oid;
  view.schema = schema;
  view.name = create.view->relname;
  view.kind = RelationKind::kView;
  if (old == nullptr) view.owner = ddl.context.user;
  view.columns = std::move(columns);
  view.view_sql = std::move(sql);
  view.view_uses = std::move(uses);
  ddl.changed = true;
  if (old != nullptr) CheckViewsOf(ddl, view);
}

}  // namespace sluice
