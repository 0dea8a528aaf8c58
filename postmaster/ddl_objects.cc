// Types, extensions and schemas on all servers; comments; VACUUM and ANALYZE.
#include "catalog/quote.h"
#include "postmaster/attach.h"
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

std::string TypeName(const std::string& schema, const std::string& name) {
  return QuoteQualified(schema, name);
}

UserType* FindUserType(Ddl& ddl, const QualifiedName& name) {
  UserType* found = nullptr;
  for (auto& [oid, type] : ddl.catalog.types) {
    if (type.name != name.name) continue;
    if (!name.schema.empty() && type.schema != name.schema) continue;
    if (found == nullptr || type.schema == "public") found = &type;
  }
  return found;
}

void ReadLabels(Ddl& ddl, Oid server, UserType* type) {
  RemoteQuery query{server,
                    fmt::format("SELECT e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = "
                                "e.enumtypid JOIN pg_namespace n ON n.oid = t.typnamespace WHERE "
                                "n.nspname = {} AND t.typname = {} ORDER BY e.enumsortorder",
                                QuoteLiteral(type->schema), QuoteLiteral(type->name))};
  RemoteRows result = std::move(ddl.Remote({&query, 1})[0]);
  type->enum_labels.clear();
  for (const RemoteRow& row : result.rows) type->enum_labels.push_back(*row[0]);
  ddl.changed = true;
}

std::string SchemaSql(const std::string& schema) {
  return "CREATE SCHEMA IF NOT EXISTS " + QuoteIdentifier(schema);
}

}  // namespace

void CreateEnum(Ddl& ddl, const PgQuery__CreateEnumStmt& create) {
  QualifiedName name = NameOfList(ddl, create.type_name, create.n_type_name);
  name.schema = CreationSchema(ddl, name.schema);
  if (ddl.catalog.FindTypeByName(name.schema, name.name) != nullptr)
    Throw(sqlstate::kDuplicateObject, "type \"{}\" already exists", name.name);
  std::vector<Oid> servers = AllShardServers(ddl);
  std::vector<std::string> labels = StringList(create.vals, create.n_vals);
  for (std::string& label : labels) label = QuoteLiteral(label);
  std::vector<std::string> statements;
  if (name.schema != "public") statements.push_back(SchemaSql(name.schema));
  statements.push_back(fmt::format("CREATE TYPE {} AS ENUM ({})", TypeName(name.schema, name.name),
                                   JoinNames(labels)));
  ddl.OnServers(servers, statements);
  ImportType(ddl, servers[0], name.schema, name.name, false);
}

void AlterEnum(Ddl& ddl, const PgQuery__AlterEnumStmt& alter) {
  QualifiedName name = NameOfList(ddl, alter.type_name, alter.n_type_name);
  UserType* type = FindUserType(ddl, name);
  if (type == nullptr) Throw(sqlstate::kUndefinedObject, "type \"{}\" does not exist", name.name);
  if (type->info.kind != 'e') Throw(sqlstate::kWrongObjectType, "\"{}\" is not an enum", name.name);
  OwnedNode copy = CopyNode(ddl.statement.node);
  std::vector<Oid> servers = AllShardServers(ddl);
  ddl.OnServers(servers, {DeparseStatement(copy.get())});
  ReadLabels(ddl, servers[0], type);
}

void DropType(Ddl& ddl, Oid oid) {
  const UserType& type = ddl.catalog.types.at(oid);
  std::string name = type.name;
  Oid array = type.info.array;
  for (const auto& [table, relation] : ddl.catalog.relations)
    for (const ColumnInfo& column : relation.columns)
      if (!relation.hidden && (column.type == oid || (array != 0 && column.type == array)))
        throw QueryError(
            MakeError(sqlstate::kDependentObjectsStillExist,
                      "cannot drop type {} because other objects depend on it", name)
                .Detail(fmt::format("column {} of {} depends on type {}",
                                    QuoteIdentifier(column.name), Describe(ddl, relation), name))
                .Hint("Use DROP ... CASCADE to drop the dependent objects too."));
  ddl.OnServers(AllShardServers(ddl), {"DROP TYPE IF EXISTS " + TypeName(type.schema, type.name)});
  ddl.catalog.types.erase(array);
  ddl.catalog.types.erase(oid);
  ddl.catalog.comments.erase(oid);
  ddl.changed = true;
}

void DropTypes(Ddl& ddl, const PgQuery__DropStmt& drop) {
  for (size_t i = 0; i < drop.n_objects; i++) {
    const PgQuery__TypeName& type_name = *drop.objects[i]->type_name;
    QualifiedName name = NameOfList(ddl, type_name.names, type_name.n_names);
    UserType* type = FindUserType(ddl, name);
    if (type == nullptr) {
      if (!drop.missing_ok)
        Throw(sqlstate::kUndefinedObject, "type \"{}\" does not exist", name.name);
      ddl.Notice(MakeError(sqlstate::kSuccess, "type \"{}\" does not exist, skipping", name.name));
      continue;
    }
    DropType(ddl, type->info.oid);
  }
}

void CreateExtension(Ddl& ddl, const PgQuery__CreateExtensionStmt& create) {
  std::string name = create.extname;
  // What a set-up of postgres_fdw brings is built in.
  if (name == "postgres_fdw" || name == "file_fdw" || name == "plpgsql") return;
  if (ddl.catalog.extensions.contains(name)) {
    if (!create.if_not_exists)
      Throw(sqlstate::kDuplicateObject, "extension \"{}\" already exists", name);
    return ddl.Notice(
        MakeError(sqlstate::kDuplicateObject, "extension \"{}\" already exists, skipping", name));
  }
  OwnedNode copy = CopyNode(ddl.statement.node);
  copy->create_extension_stmt->if_not_exists = 1;  // a server may have it already
  ddl.OnServers(AllShardServers(ddl), {DeparseStatement(copy.get())});
  Oid oid = ddl.NewOid();
  ddl.catalog.extensions[name] = oid;
}

void DropExtensions(Ddl& ddl, const PgQuery__DropStmt& drop) {
  bool cascade = drop.behavior == PG_QUERY__DROP_BEHAVIOR__DROP_CASCADE;
  for (size_t i = 0; i < drop.n_objects; i++) {
    std::string name(StringOf(drop.objects[i]));
    // Built in: there is nothing to drop, and nothing that fails without it.
    if (name == "postgres_fdw" || name == "file_fdw" || name == "plpgsql") continue;
    if (!ddl.catalog.extensions.contains(name)) {
      if (!drop.missing_ok)
        Throw(sqlstate::kUndefinedObject, "extension \"{}\" does not exist", name);
      ddl.Notice(MakeError(sqlstate::kSuccess, "extension \"{}\" does not exist, skipping", name));
      continue;
    }
    if (cascade) Refuse("DROP EXTENSION … CASCADE is not supported");
    ddl.OnServers(AllShardServers(ddl), {"DROP EXTENSION IF EXISTS " + QuoteIdentifier(name)});
    ddl.catalog.extensions.erase(name);
    ddl.changed = true;
  }
}

// --- comments

namespace {

void SetComment(Ddl& ddl, Oid oid, std::string_view text) {
  if (text.empty())
    ddl.catalog.comments.erase(oid);
  else
    ddl.catalog.comments[oid] = text;
  ddl.changed = true;
}

const Relation& RelationOfList(Ddl& ddl, const PgQuery__List& list, size_t count) {
  QualifiedName name = NameOfList(ddl, list.items, count);
  const Relation* found = name.schema.empty()
                              ? ddl.catalog.FindRelation(ddl.context.search_path, name.name)
                              : ddl.catalog.FindRelation(name.schema, name.name);
  if (found == nullptr)
    Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name.name);
  RequireOwner(ddl, *found);
  return *found;
}

void CommentOnColumn(Ddl& ddl, const PgQuery__List& list, std::string_view text) {
  Relation& table = ddl.GetRelation(RelationOfList(ddl, list, list.n_items - 1).oid);
  std::string_view column = StringOf(list.items[list.n_items - 1]);
  int index = table.FindColumn(column);
  if (index < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of relation \"{}\" does not exist", column,
          table.name);
  table.columns[static_cast<size_t>(index)].comment = text;
  ddl.changed = true;
}

void CommentOnConstraint(Ddl& ddl, const PgQuery__List& list, std::string_view text) {
  const Relation& table = RelationOfList(ddl, list, list.n_items - 1);
  std::string_view name = StringOf(list.items[list.n_items - 1]);
  for (const Constraint& constraint : table.constraints)
    if (constraint.name == name) return SetComment(ddl, constraint.oid, text);
  Throw(sqlstate::kUndefinedObject, "constraint \"{}\" for table \"{}\" does not exist", name,
        table.name);
}

Oid OidOfSchemaObject(Ddl& ddl, PgQuery__ObjectType type, const QualifiedName& name) {
  std::vector<std::string> path = {name.schema};
  if (name.schema.empty()) path = ddl.context.search_path;
  for (const std::string& schema : path) {
    if (type == PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE) {
      if (const Sequence* found = ddl.catalog.FindSequence(schema, name.name)) return found->oid;
    } else if (auto found = ddl.catalog.FindIndex(schema, name.name)) {
      return found.index->oid;
    }
  }
  Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name.name);
}

}  // namespace

// Kept here only: the servers' objects have none.
void CommentOn(Ddl& ddl, const PgQuery__CommentStmt& comment) {
  std::string_view text = Text(comment.comment);
  const RawNode* object = comment.object;
  switch (comment.objtype) {
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABLE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_VIEW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE:
      return SetComment(ddl, RelationOfList(ddl, *object->list, object->list->n_items).oid, text);
    case PG_QUERY__OBJECT_TYPE__OBJECT_COLUMN:
      return CommentOnColumn(ddl, *object->list, text);
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABCONSTRAINT:
      return CommentOnConstraint(ddl, *object->list, text);
    case PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_INDEX: {
      QualifiedName name = NameOfList(ddl, object->list->items, object->list->n_items);
      return SetComment(ddl, OidOfSchemaObject(ddl, comment.objtype, name), text);
    }
    case PG_QUERY__OBJECT_TYPE__OBJECT_TYPE: {
      const PgQuery__TypeName& type = *object->type_name;
      QualifiedName name = NameOfList(ddl, type.names, type.n_names);
      UserType* found = FindUserType(ddl, name);
      if (found == nullptr)
        Throw(sqlstate::kUndefinedObject, "type \"{}\" does not exist", name.name);
      return SetComment(ddl, found->info.oid, text);
    }
    case PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA: {
      auto found = ddl.catalog.schemas.find(std::string(StringOf(object)));
      if (found == ddl.catalog.schemas.end())
        Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", StringOf(object));
      return SetComment(ddl, found->second.oid, text);
    }
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_SERVER:
      return SetComment(ddl, GetServer(ddl, StringOf(object)).oid, text);
    // Dumps comment on what is built in: said and done.
    case PG_QUERY__OBJECT_TYPE__OBJECT_DATABASE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_EXTENSION:
    case PG_QUERY__OBJECT_TYPE__OBJECT_FDW:
      return;
    default:
      Refuse("this form of COMMENT is not supported");
  }
}

// --- VACUUM and ANALYZE

namespace {

bool HasOption(const PgQuery__VacuumStmt& statement, std::string_view name) {
  for (size_t i = 0; i < statement.n_options; i++)
    if (Text(statement.options[i]->def_elem->defname) == name) return true;
  return false;
}

// "VACUUM (…) " or "ANALYZE (…) ": the statement without its tables.
std::string CommandHead(const Ddl& ddl) {
  OwnedNode copy = CopyNode(ddl.statement.node);
  PgQuery__VacuumStmt* statement = copy->vacuum_stmt;
  RemoveNodes(statement->rels, &statement->n_rels, [](const RawNode&) { return true; });
  return DeparseStatement(copy.get());
}

std::string ColumnList(const PgQuery__VacuumRelation& relation) {
  if (relation.n_va_cols == 0) return "";
  std::vector<std::string> columns = StringList(relation.va_cols, relation.n_va_cols);
  for (std::string& column : columns) column = QuoteIdentifier(column);
  return "(" + JoinNames(columns) + ")";
}

// What each server is told. Tables that were attached are looked after by who made them: ANALYZE
// reads what their servers know, VACUUM of them is carried out.
std::vector<RemoteQuery> MaintenanceQueries(Ddl& ddl, const PgQuery__VacuumStmt& statement) {
  std::map<Oid, std::vector<std::string>> names;  // by server
  auto add = [&](const Relation& table, const std::string& columns) {
    for (const Relation* leaf : ddl.catalog.Leaves(table)) {
      if (ddl.catalog.servers.at(leaf->server).wrapper != kPostgresWrapper) continue;
      if (!leaf->hidden && !statement.is_vacuumcmd) continue;
      names[leaf->server].push_back(QuoteQualified(leaf->remote_schema(), leaf->remote_table()) +
                                    columns);
    }
  };
  for (size_t i = 0; i < statement.n_rels; i++) {
    const PgQuery__VacuumRelation& relation = *statement.rels[i]->vacuum_relation;
    add(GetRelation(ddl, *relation.relation), ColumnList(relation));
  }
  if (statement.n_rels == 0)
    for (const auto& [oid, relation] : ddl.catalog.relations)
      if (relation.is_distributed()) add(relation, "");
  std::vector<RemoteQuery> queries;
  std::string head = CommandHead(ddl);
  for (const auto& [server, list] : names)
    queries.push_back({server, head + " " + JoinNames(list)});
  return queries;
}

}  // namespace

void Maintain(Ddl& ddl, const PgQuery__VacuumStmt& statement) {
  if (statement.is_vacuumcmd && ddl.context.in_block)
    Throw(sqlstate::kActiveSqlTransaction, "VACUUM cannot run inside a transaction block");
  std::vector<RemoteQuery> queries = MaintenanceQueries(ddl, statement);
  if (statement.is_vacuumcmd) {
    if (!queries.empty()) ddl.Remote(queries);
  } else {
    OnEach(ddl, queries);
  }
  if (!statement.is_vacuumcmd || HasOption(statement, "analyze")) Analyze(ddl, statement);
}

}  // namespace sluice
