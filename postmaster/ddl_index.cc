// CREATE INDEX and DROP INDEX.
#include "postmaster/ddl_distributed.h"
#include "stream/key_encoding.h"

namespace sluice {

namespace {

void CheckUnique(Ddl& ddl, const PgQuery__IndexStmt& create, const Relation& table) {
  if (!create.unique) return;
  std::vector<std::string> columns;
  for (size_t i = 0; i < create.n_index_params; i++)
    columns.emplace_back(Text(create.index_params[i]->index_elem->name));
  CheckUniqueColumns(ddl, table, "UNIQUE", columns);
}

void RefuseInBlock(const Ddl& ddl, const char* what) {
  if (ddl.context.in_block)
    Throw(sqlstate::kActiveSqlTransaction, "{} cannot run inside a transaction block", what);
}

// On each server by itself: no transaction can hold these commands. The servers where it failed.
std::vector<Oid> RunOnEach(Ddl& ddl, std::span<const Oid> servers, const std::string& sql,
                           std::optional<Error>* first) {
  std::vector<Oid> failed;
  for (Oid server : servers) {
    try {
      RemoteQuery query{server, sql};
      ddl.Remote({&query, 1});
    } catch (const QueryError& failure) {
      if (!*first) *first = failure.error;
      failed.push_back(server);
    }
  }
  return failed;
}

std::string ServerNames(const Ddl& ddl, const std::vector<Oid>& servers) {
  std::string names;
  for (Oid server : servers)
    names += (names.empty() ? "\"" : ", \"") + ddl.catalog.servers.at(server).name + "\"";
  return names;
}

// An index that could not be made everywhere is taken away again; what cannot be taken away is
// told.
void CreateConcurrently(Ddl& ddl, const Relation& table, const std::string& sql,
                        const std::string& index) {
  std::vector<Oid> servers = ServersOf(ddl, table);
  std::optional<Error> first, ignored;
  std::vector<Oid> failed = RunOnEach(ddl, servers, sql, &first);
  if (failed.empty()) return;
  std::string drop = "DROP INDEX CONCURRENTLY IF EXISTS " + index;
  std::vector<Oid> left = RunOnEach(ddl, servers, drop, &ignored);
  first->position = 0;
  std::string told =
      fmt::format("The index could not be built on server {}; ", ServerNames(ddl, failed));
  told += left.empty() ? "nothing of it is left."
                       : fmt::format("it may be left on server {}.", ServerNames(ddl, left));
  first->detail += (first->detail.empty() ? "" : " ") + told;
  if (!left.empty()) first->hint = fmt::format("Say there: {}", drop);
  throw QueryError(*first);
}

// Where it failed it is still there, and known here.
void DropConcurrently(Ddl& ddl, const Relation& table, const std::string& index) {
  std::optional<Error> first;
  std::vector<Oid> left =
      RunOnEach(ddl, ServersOf(ddl, table), "DROP INDEX CONCURRENTLY IF EXISTS " + index, &first);
  if (left.empty()) return;
  first->position = 0;
  first->detail += (first->detail.empty() ? "" : " ") +
                   fmt::format("The index is left on server {}.", ServerNames(ddl, left));
  first->hint = "Say the same command again.";
  throw QueryError(*first);
}

std::string ChooseIndexName(const Ddl& ddl, const PgQuery__IndexStmt& create,
                            const Relation& table) {
  std::string columns;
  for (size_t i = 0; i < create.n_index_params; i++) {
    const PgQuery__IndexElem& element = *create.index_params[i]->index_elem;
    columns += "_" + (Text(element.name).empty() ? std::string("expr") : std::string(element.name));
  }
  return ChooseObjectName(ddl, table.schema, table.name, columns.substr(1), "idx");
}

Relation& TableOfIndex(Ddl& ddl, const Catalog::IndexOfTable& found) {
  return ddl.GetRelation(found.table->oid);
}

Catalog::IndexOfTable FindIndex(const Ddl& ddl, const std::string& schema,
                                const std::string& name) {
  if (!schema.empty()) return ddl.catalog.FindIndex(schema, name);
  for (const std::string& candidate : ddl.context.search_path)
    if (auto found = ddl.catalog.FindIndex(candidate, name)) return found;
  return {};
}

}  // namespace

// As pg_get_indexdef() prints it.
static std::string ViewIndexDefinition(const Relation& view, const Index& index) {
  std::string columns;
  for (int column : index.columns)
    columns += (columns.empty() ? "" : ", ") +
               QuoteIdentifier(view.columns[static_cast<size_t>(column)].name);
  return fmt::format("CREATE INDEX {} ON {} USING btree ({})", QuoteIdentifier(index.name),
                     QuoteQualified(view.schema, view.name), columns);
}

void RenewIndexDefinitions(Relation* view) {
  for (Index& index : view->indexes) index.definition = ViewIndexDefinition(*view, index);
}

// A change of the catalog only: the view worker builds the index behind the view's back; until then
// queries do without.
static void CreateViewIndex(Ddl& ddl, const PgQuery__IndexStmt& create, Relation* view) {
  RequireOwner(ddl, *view);
  if (create.unique) Refuse("unique indexes on live views are not supported");
  if (create.where_clause != nullptr) Refuse("partial indexes on live views are not supported");
  if (create.n_index_including_params > 0)
    Refuse("INCLUDE in indexes on live views is not supported");
  std::string_view method = Text(create.access_method);
  if (!method.empty() && method != "btree")
    Refuse("access method \"{}\" for indexes on live views is not supported", method);
  Index index;
  index.method = "btree";
  for (size_t i = 0; i < create.n_index_params; i++) {
    const PgQuery__IndexElem& element = *create.index_params[i]->index_elem;
    if (Text(element.name).empty())
      Refuse("indexes on expressions of live views are not supported");
    int column = view->FindColumn(element.name);
    if (column < 0) Throw(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", element.name);
    if (element.n_collation > 0 || element.n_opclass > 0)
      Refuse("COLLATE and operator classes in indexes on live views are not supported");
    if (!CanEncodeKey(view->columns[static_cast<size_t>(column)].type))
      Refuse("an index of a live view on type {} is not supported",
             FormatType(view->columns[static_cast<size_t>(column)].type));
    index.columns.push_back(column);
  }
  index.key_columns = static_cast<int>(index.columns.size());
  index.name = Text(create.idxname);
  if (index.name.empty()) index.name = ChooseIndexName(ddl, create, *view);
  if (!CheckNameFree(ddl, view->schema, index.name, create.if_not_exists)) return;
  index.definition = ViewIndexDefinition(*view, index);
  index.oid = ddl.NewOid();
  view->indexes.push_back(std::move(index));
  ddl.changed = true;
}

void CreateIndex(Ddl& ddl, const PgQuery__IndexStmt& create) {
  Relation& table = GetRelation(ddl, *create.relation);
  if (table.kind == RelationKind::kMaterializedView) return CreateViewIndex(ddl, create, &table);
  if (table.kind == RelationKind::kForeignTable)
    Throw(sqlstate::kWrongObjectType, "cannot create index on foreign table \"{}\"", table.name);
  if (table.kind == RelationKind::kView)
    Throw(sqlstate::kWrongObjectType, "cannot create index on view \"{}\"", table.name);
  if (!table.is_distributed())
    throw QueryError(
        MakeError(sqlstate::kFeatureNotSupported, "cannot create index on table \"{}\"", table.name)
            .Detail("It was not made by CREATE TABLE here.")
            .Hint("Create the index on its servers."));
  if (create.concurrent) RefuseInBlock(ddl, "CREATE INDEX CONCURRENTLY");
  if (!Text(create.table_space).empty()) Refuse("tablespaces of the servers are not supported");
  CheckUnique(ddl, create, table);
  OwnedNode copy = CopyNode(ddl.statement.node);
  PgQuery__IndexStmt* statement = copy->index_stmt;
  std::string name(Text(create.idxname));
  if (name.empty()) name = ChooseIndexName(ddl, create, table);
  if (!CheckNameFree(ddl, table.schema, name, create.if_not_exists)) return;
  SetText(&statement->idxname, name);
  QualifyNames(ddl, copy.get());
  std::string sql = DeparseStatement(copy.get());
  if (create.concurrent)
    CreateConcurrently(ddl, table, sql, QuoteQualified(table.schema, name));
  else
    ddl.OnServers(ServersOf(ddl, table), {sql});
  ReadBack(ddl, &table);
}

void DropIndexes(Ddl& ddl, const PgQuery__DropStmt& drop) {
  if (drop.concurrent) RefuseInBlock(ddl, "DROP INDEX CONCURRENTLY");
  for (size_t i = 0; i < drop.n_objects; i++) {
    const PgQuery__List& list = *drop.objects[i]->list;
    QualifiedName name = NameOfList(ddl, list.items, list.n_items);
    Catalog::IndexOfTable found = FindIndex(ddl, name.schema, name.name);
    if (!found && !drop.missing_ok)
      Throw(sqlstate::kUndefinedObject, "index \"{}\" does not exist", name.name);
    if (!found) {
      ddl.Notice(MakeError(sqlstate::kSuccess, "index \"{}\" does not exist, skipping", name.name));
      continue;
    }
    Relation& table = TableOfIndex(ddl, found);
    RequireOwner(ddl, table);
    if (table.kind == RelationKind::kMaterializedView) {
      std::erase_if(table.indexes, [&](const Index& index) { return index.name == name.name; });
      ddl.changed = true;
      continue;
    }
    std::string index = QuoteQualified(table.schema, name.name);
    const char* cascade = drop.behavior == PG_QUERY__DROP_BEHAVIOR__DROP_CASCADE ? " CASCADE" : "";
    if (drop.concurrent)
      DropConcurrently(ddl, table, index);
    else
      ddl.OnServers(ServersOf(ddl, table), {"DROP INDEX " + index + cascade});
    ReadBack(ddl, &table);
    if (*cascade != '\0') ReadBackReferencing(ddl, table.oid);
  }
}

void RenameIndex(Ddl& ddl, const PgQuery__RenameStmt& rename) {
  std::string schema(Text(rename.relation->schemaname)), name = rename.relation->relname;
  Catalog::IndexOfTable found = FindIndex(ddl, schema, name);
  if (!found && rename.missing_ok)
    return ddl.Notice(
        MakeError(sqlstate::kSuccess, "relation \"{}\" does not exist, skipping", name));
  if (!found) Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name);
  Relation& table = TableOfIndex(ddl, found);
  RequireOwner(ddl, table);
  CheckNameFree(ddl, table.schema, rename.newname, false);
  if (table.kind == RelationKind::kMaterializedView) {
    for (Index& index : table.indexes)
      if (index.name == name) index.name = rename.newname;
    RenewIndexDefinitions(&table);
    ddl.changed = true;
    return;
  }
  ddl.OnServers(ServersOf(ddl, table),
                {fmt::format("ALTER INDEX {} RENAME TO {}", QuoteQualified(table.schema, name),
                             QuoteIdentifier(rename.newname))});
  for (Index& index : table.indexes)
    if (index.name == name) index.name = rename.newname;
  for (Constraint& constraint : table.constraints)
    if (constraint.name == name) constraint.name = rename.newname;
  ReadBack(ddl, &table);
}

}  // namespace sluice
