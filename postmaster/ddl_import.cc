// IMPORT FOREIGN SCHEMA.
#include "postmaster/ddl_remote.h"

namespace sluice {

namespace {

struct ImportOptions {
  bool collate = true, defaults = false, generated = true, not_null = true;
};

ImportOptions ReadOptions(Ddl& ddl, const PgQuery__ImportForeignSchemaStmt& import) {
  ImportOptions options;
  for (const auto& [name, value] : NewOptions(ddl, import.options, import.n_options)) {
    bool* option = name == "import_collate"     ? &options.collate
                   : name == "import_default"   ? &options.defaults
                   : name == "import_generated" ? &options.generated
                   : name == "import_not_null"  ? &options.not_null
                                                : nullptr;
    if (option == nullptr) Throw(sqlstate::kFdwInvalidOptionName, "invalid option \"{}\"", name);
    *option = ParseBooleanOption(name, value);
  }
  return options;
}

std::vector<std::string> TableNames(const PgQuery__ImportForeignSchemaStmt& import) {
  std::vector<std::string> names;
  for (size_t i = 0; i < import.n_table_list; i++)
    names.emplace_back(import.table_list[i]->range_var->relname);
  return names;
}

void ImportTable(Ddl& ddl, const Server& server, const RemoteTable& remote, std::string_view schema,
                 const ImportOptions& options) {
  CheckNameFree(ddl, schema, remote.name, false);
  Relation table;
  table.oid = ddl.NewOid();
  table.schema = schema;
  table.name = remote.name;
  table.kind = RelationKind::kForeignTable;
  table.owner = ddl.context.user;
  table.server = server.oid;
  table.options = {{"schema_name", remote.schema}, {"table_name", remote.name}};
  for (const RemoteColumn& column : remote.columns) {
    ColumnInfo local = LocalColumn(ddl, server.oid, column);
    local.not_null = options.not_null && column.not_null;
    if (!options.collate) local.collation = FindType(local.type)->collation;
    if (column.generated ? options.generated : options.defaults)
      local.default_sql = column.default_sql;
    local.options = {{"column_name", column.name}};
    table.columns.push_back(std::move(local));
  }
  SetPrimaryKey(&table, remote.primary_key);
  StoreStatistics(remote, &table);
  Oid oid = table.oid;
  ddl.catalog.relations.emplace(oid, std::move(table));
}

}  // namespace

void ImportForeignSchema(Ddl& ddl, const PgQuery__ImportForeignSchemaStmt& import) {
  const Server& server = GetServer(ddl, import.server_name);
  if (server.wrapper != kPostgresWrapper)
    throw QueryError(MakeError(MakeSqlState("HV00P"),
                               "foreign-data wrapper \"{}\" does not support "
                               "IMPORT FOREIGN SCHEMA",
                               server.wrapper));
  std::string schema = CreationSchema(ddl, import.local_schema);
  ImportOptions options = ReadOptions(ddl, import);
  std::vector<std::string> names = TableNames(import);
  bool only = import.list_type == PG_QUERY__IMPORT_FOREIGN_SCHEMA_TYPE__FDW_IMPORT_SCHEMA_LIMIT_TO;
  bool except = import.list_type == PG_QUERY__IMPORT_FOREIGN_SCHEMA_TYPE__FDW_IMPORT_SCHEMA_EXCEPT;

  const RemoteQuery exists{server.oid, "SELECT 1 FROM pg_namespace WHERE nspname = " +
                                           QuoteLiteral(import.remote_schema)};
  if (ddl.Remote(std::span(&exists, 1))[0].rows.empty())
    Throw(MakeSqlState("HV00Q"), "schema \"{}\" is not present on foreign server \"{}\"",
          import.remote_schema, server.name);
  std::vector<RemoteTable> tables = ReadRemoteTables(
      ddl, std::span(&server.oid, 1), import.remote_schema, only ? &names : nullptr)[0];
  for (const RemoteTable& table : tables) {
    bool named = std::find(names.begin(), names.end(), table.name) != names.end();
    if (except && named) continue;
    ImportTable(ddl, server, table, schema, options);
  }
  ReadDefaultCollations(ddl, std::span(&server.oid, 1), true);
}

}  // namespace sluice
