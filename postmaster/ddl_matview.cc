// CREATE, REFRESH and ALTER of MATERIALIZED VIEWs. All are changes of the catalog only: the view
// worker sees them and does the work.
#include <charconv>

#include "postmaster/ddl_internal.h"
#include "postmaster/view_definition.h"
#include "postmaster/view_source.h"

namespace sluice {

namespace {

constexpr std::string_view kRateLimit = "backfill_rate_limit";

// WITH (…) or SET (…): an empty text resets.
void ApplyOption(const PgQuery__DefElem& option, bool reset, Relation* view) {
  std::string_view name = option.defname;
  if (name != kRateLimit)
    Throw(sqlstate::kInvalidParameterValue, "unrecognized parameter \"{}\"", name);
  if (reset) {
    view->options.erase(std::string(name));
    return;
  }
  int value = -1;
  if (option.arg != nullptr && option.arg->node_case == PG_QUERY__NODE__NODE_INTEGER) {
    value = option.arg->integer->ival;
  } else if (option.arg != nullptr) {
    std::string_view text = StringOf(option.arg);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) value = -1;
  }
  if (value < 0)
    Throw(sqlstate::kInvalidParameterValue,
          "invalid value for \"{}\": rows a second are wanted, 0 to pause", name);
  view->options[std::string(name)] = std::to_string(value);
}

// What the servers say of the tables that the view reads: refused at once, not by a job.
void CheckSources(Ddl& ddl, const std::vector<Oid>& inputs) {
  std::vector<RemoteQuery> queries;
  std::vector<const Relation*> leaves;
  for (Oid input : inputs) {
    const Relation& table = ddl.GetRelation(input);
    if (table.kind == RelationKind::kMaterializedView) continue;
    CheckSourceTable(ddl.catalog, table);
    for (const Relation* leaf : ddl.catalog.Leaves(table)) {
      queries.push_back({leaf->server, LeafDescriptionSql(*leaf)});
      leaves.push_back(leaf);
    }
  }
  if (queries.empty()) return;
  std::vector<RemoteRows> answers = ddl.Remote(queries);
  for (size_t i = 0; i < leaves.size(); i++)
    ReadLeafDescription(ddl.catalog.servers.at(leaves[i]->server), *leaves[i], answers[i].rows);
}

// Columns and text. Column names of the command become part of the text.
void SetQuery(Ddl& ddl, const PgQuery__CreateTableAsStmt& create, Relation* view) {
  const PgQuery__IntoClause& into = *create.into;
  RawStatement query{create.query, ddl.statement.text, ddl.statement.location};
  view->columns = AnalyzedColumns(ddl, query);
  std::vector<std::string> aliases = StringList(into.col_names, into.n_col_names);
  if (aliases.size() > view->columns.size())
    Throw(sqlstate::kSyntaxError, "too many column names were specified");
  for (size_t i = 0; i < aliases.size(); i++) view->columns[i].name = aliases[i];
  std::set<std::string_view> seen;
  std::string names;
  for (const ColumnInfo& column : view->columns) {
    if (!seen.insert(column.name).second)
      Throw(sqlstate::kDuplicateColumn, "column \"{}\" specified more than once", column.name);
    names += (names.empty() ? "" : ", ") + QuoteIdentifier(column.name);
  }
  view->view_sql = DeparseViewQuery(ddl, create.query, &view->view_uses);
  if (!aliases.empty())
    view->view_sql = fmt::format("SELECT * FROM ({}) AS {}({})", view->view_sql,
                                 QuoteIdentifier(view->name), names);
}

// Which of the views that it reads are not created yet, for the NOTICE.
void NoticeOfUpstreams(Ddl& ddl, const Relation& view, const std::vector<Oid>& inputs) {
  std::string names;
  for (Oid input : inputs) {
    const Relation& relation = ddl.GetRelation(input);
    if (relation.kind != RelationKind::kMaterializedView) continue;
    if (ddl.context.is_created && ddl.context.is_created(relation)) continue;
    names += (names.empty() ? "" : ", ") + QuoteIdentifier(relation.name);
  }
  if (names.empty()) return;
  ddl.Notice(
      MakeError(sqlstate::kSuccess, "materialized view {} is still being created", names)
          .Detail(fmt::format("{} is built from its rows while they come, and is created when both "
                              "are complete. Queries of {} wait until then.",
                              QuoteIdentifier(view.name), QuoteIdentifier(view.name)))
          .Hint(fmt::format("WAIT MATERIALIZED VIEW {} waits; SHOW JOBS shows the progress.",
                            QuoteIdentifier(view.name))));
}

}  // namespace

void CreateMaterializedView(Ddl& ddl, const PgQuery__CreateTableAsStmt& create) {
  const PgQuery__IntoClause& into = *create.into;
  if (into.skip_data)
    Refuse("CREATE MATERIALIZED VIEW … WITH NO DATA is not supported: views are live");
  if (Text(into.table_space_name) != "") Refuse("tablespaces are not supported");
  if (ddl.context.configuration == nullptr) Refuse("materialized views are not supported here");
  std::string schema = CreationSchema(ddl, Text(into.rel->schemaname));
  if (!CheckNameFree(ddl, schema, into.rel->relname, create.if_not_exists)) return;
  Relation view;
  view.kind = RelationKind::kMaterializedView;
  view.schema = schema;
  view.name = into.rel->relname;
  view.owner = ddl.context.user;
  view.view_settings = ViewSettings(*ddl.context.configuration);
  view.view_command = ddl.statement.text;
  for (size_t i = 0; i < into.n_options; i++) ApplyOption(*into.options[i]->def_elem, false, &view);
  SetQuery(ddl, create, &view);
  auto catalog = std::make_shared<const Catalog>(ddl.catalog);
  std::vector<Oid> inputs = PlanViewRelation(catalog, view, *ddl.context.configuration)->inputs;
  if (inputs.empty()) Refuse("a materialized view that reads no table is not supported");
  CheckSources(ddl, inputs);
  NoticeOfUpstreams(ddl, view, inputs);
  view.oid = ddl.NewOid();
  ddl.context.created_views.push_back(view.oid);
  Oid oid = view.oid;
  ddl.catalog.relations[oid] = std::move(view);
}

// Built again from nothing, as after a change that it could not follow.
void RefreshMaterializedView(Ddl& ddl, const PgQuery__RefreshMatViewStmt& refresh) {
  if (refresh.skip_data) Refuse("REFRESH MATERIALIZED VIEW … WITH NO DATA is not supported");
  Relation& view = GetRelation(ddl, *refresh.relation);
  if (view.kind != RelationKind::kMaterializedView)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a materialized view", view.name);
  int count = 0;
  std::string& option = view.options["refresh"];
  std::from_chars(option.data(), option.data() + option.size(), count);
  option = std::to_string(count + 1);
  view.options.erase("built_as");
  ddl.context.created_views.push_back(view.oid);
  ddl.changed = true;
}

void AlterMaterializedView(Ddl& ddl, Relation* view, const PgQuery__AlterTableCmd& command) {
  bool reset = command.subtype == PG_QUERY__ALTER_TABLE_TYPE__AT_ResetRelOptions;
  if (!reset && command.subtype != PG_QUERY__ALTER_TABLE_TYPE__AT_SetRelOptions)
    Refuse("this form of ALTER MATERIALIZED VIEW is not supported");
  const PgQuery__List& options = *command.def->list;
  for (size_t i = 0; i < options.n_items; i++)
    ApplyOption(*options.items[i]->def_elem, reset, view);
}

}  // namespace sluice
