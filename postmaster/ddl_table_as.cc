// CREATE TABLE AS and SELECT INTO: the table first; its rows are an INSERT … SELECT that the
// session runs afterwards, in the same transaction.
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

std::string ColumnSql(const Ddl& ddl, const ColumnInfo& column) {
  std::string type;
  if (const UserType* user = ddl.catalog.FindUserType(column.type))
    type = QuoteQualified(user->schema, user->name);
  else
    type = FormatType(column.type, column.typmod);
  // An array of a user's type is "_name" to the catalog; SQL says name[].
  const TypeInfo* info = FindType(column.type);
  if (info != nullptr && info->element != kInvalidOid)
    if (const UserType* element = ddl.catalog.FindUserType(info->element))
      type = QuoteQualified(element->schema, element->name) + "[]";
  std::string sql = QuoteIdentifier(column.name) + " " + type;
  if (column.collation != kInvalidOid && info != nullptr && column.collation != info->collation)
    sql += " COLLATE " + ddl.catalog.CollationSql(column.collation);
  return sql;
}

void ApplyNames(const PgQuery__IntoClause& into, std::vector<ColumnInfo>* columns) {
  std::vector<std::string> names = StringList(into.col_names, into.n_col_names);
  if (names.size() > columns->size())
    Throw(sqlstate::kSyntaxError, "too many column names were specified");
  for (size_t i = 0; i < names.size(); i++) (*columns)[i].name = names[i];
}

std::string CreateAs(Ddl& ddl, const RawNode* query, const PgQuery__IntoClause& into,
                     bool if_not_exists) {
  if (query->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
    Refuse("CREATE TABLE AS EXECUTE is not supported");
  std::string schema = CreationSchema(ddl, Text(into.rel->schemaname));
  if (!CheckNameFree(ddl, schema, into.rel->relname, if_not_exists)) return "CREATE TABLE AS";
  std::vector<ColumnInfo> columns =
      AnalyzedColumns(ddl, {query, ddl.statement.text, ddl.statement.location});
  ApplyNames(into, &columns);
  std::vector<std::string> definitions;
  for (const ColumnInfo& column : columns) definitions.push_back(ColumnSql(ddl, column));
  std::string table = QuoteQualified(schema, into.rel->relname);
  bool unlogged = Text(into.rel->relpersistence) == "u";
  ParsedSql parsed = ParseSql(fmt::format("CREATE {}TABLE {} ({})", unlogged ? "UNLOGGED " : "",
                                          table, JoinNames(definitions)));
  PgQuery__CreateStmt create = *parsed.statements()[0].node->create_stmt;
  create.options = into.options;
  create.n_options = into.n_options;
  if (Text(into.rel->relpersistence) == "t") Refuse("temporary tables are not supported");
  if (!MakesDistributed(ddl, create))
    Refuse("CREATE TABLE AS of a table that is on no server is not supported");
  CreateDistributed(ddl, create);
  if (into.skip_data) return "CREATE TABLE AS";
  std::vector<Oid> uses;
  ddl.context.then_insert =
      fmt::format("INSERT INTO {} {}", table, DeparseViewQuery(ddl, query, &uses));
  return "SELECT";
}

}  // namespace

std::string CreateTableAs(Ddl& ddl, const PgQuery__CreateTableAsStmt& create) {
  return CreateAs(ddl, create.query, *create.into, create.if_not_exists);
}

std::string SelectInto(Ddl& ddl) {
  const RawNode* statement = ddl.statement.node;
  OwnedNode query = CopyNode(statement);
  pg_query__into_clause__free_unpacked(query->select_stmt->into_clause, nullptr);
  query->select_stmt->into_clause = nullptr;
  return CreateAs(ddl, query.get(), *statement->select_stmt->into_clause, false);
}

}  // namespace sluice
