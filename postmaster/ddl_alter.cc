// ALTER TABLE, FOREIGN TABLE, VIEW, SCHEMA and SERVER.
#include <cctype>

#include "postmaster/ddl_distributed.h"

namespace sluice {

bool KeyNames(const Relation& relation, std::string_view column) {
  auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '"';
  };
  std::string quoted = QuoteIdentifier(column);
  for (const std::string& expression : relation.key.expressions) {
    for (size_t at = expression.find(quoted); at != std::string::npos;
         at = expression.find(quoted, at + 1)) {
      size_t end = at + quoted.size();
      bool starts = at == 0 || !in_word(expression[at - 1]);
      bool ends = end == expression.size() || !in_word(expression[end]);
      if (starts && ends) return true;
    }
  }
  return false;
}

void RefuseIfViewUses(const Ddl& ddl, const Relation& relation, const char* what) {
  for (const auto& [oid, other] : ddl.catalog.relations)
    if (std::find(other.view_uses.begin(), other.view_uses.end(), relation.oid) !=
        other.view_uses.end())
      Refuse("{} of a relation that a view uses is not supported: {} uses {}", what,
             Describe(ddl, other), Describe(ddl, relation));
}

namespace {

ColumnInfo& GetColumn(Relation* relation, std::string_view name) {
  int index = relation->FindColumn(name);
  if (index < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of relation \"{}\" does not exist", name,
          relation->name);
  return relation->columns[static_cast<size_t>(index)];
}

bool IsInherited(const Ddl& ddl, const Relation& relation, std::string_view column) {
  const Relation* parent = ddl.catalog.FindRelation(relation.parent);
  return parent != nullptr && parent->FindColumn(column) >= 0;
}

// The relation and everything below it.
std::vector<Relation*> Tree(Ddl& ddl, Relation* root) {
  std::vector<Relation*> tree = {root};
  for (size_t i = 0; i < tree.size(); i++)
    for (Oid child : std::vector<Oid>(tree[i]->children)) tree.push_back(&ddl.GetRelation(child));
  return tree;
}

void AddColumn(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  const PgQuery__ColumnDef& def = *command.def->column_def;
  if (relation->parent != kInvalidOid &&
      ddl.GetRelation(relation->parent).kind == RelationKind::kPartitioned)
    Throw(sqlstate::kWrongObjectType, "cannot add column to a partition");
  if (relation->FindColumn(def.colname) >= 0) {
    if (!command.missing_ok)
      Throw(sqlstate::kDuplicateColumn, "column \"{}\" of relation \"{}\" already exists",
            def.colname, relation->name);
    ddl.Notice(MakeError(sqlstate::kDuplicateColumn,
                         "column \"{}\" of relation \"{}\" already exists, skipping", def.colname,
                         relation->name));
    return;
  }
  ColumnInfo column = MakeColumn(ddl, def, relation->server);
  if (ApplyColumnDefinition(ddl, def, relation->server, &column))
    Refuse("adding a primary key column is not supported");
  for (Relation* each : Tree(ddl, relation)) {
    if (each->FindColumn(column.name) < 0)
      each->columns.push_back(each == relation ? column : InheritedColumn(column));
    else
      ddl.Notice(MakeError(sqlstate::kSuccess,
                           "merging definition of column \"{}\" for child \"{}\"", column.name,
                           each->name));
  }
}

void DropColumn(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  std::string name = command.name;
  if (relation->FindColumn(name) < 0 && command.missing_ok) {
    ddl.Notice(MakeError(sqlstate::kSuccess,
                         "column \"{}\" of relation \"{}\" does not exist, skipping", name,
                         relation->name));
    return;
  }
  GetColumn(relation, name);
  if (IsInherited(ddl, *relation, name))
    Throw(sqlstate::kInvalidTableDefinition, "cannot drop inherited column \"{}\"", name);
  for (Relation* each : Tree(ddl, relation)) {
    int index = each->FindColumn(name);
    if (index < 0) continue;
    if (KeyNames(*each, name))
      Throw(sqlstate::kInvalidTableDefinition,
            "cannot drop column \"{}\" because it is part of the partition key of relation \"{}\"",
            name, each->name);
    each->columns.erase(each->columns.begin() + index);
    auto& key = each->primary_key;
    if (std::find(key.begin(), key.end(), index) != key.end()) key.clear();
    for (int& column : key) column -= column > index;
  }
}

void ChangeColumnType(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  const PgQuery__ColumnDef& def = *command.def->column_def;
  GetColumn(relation, command.name);
  if (IsInherited(ddl, *relation, command.name))
    Throw(sqlstate::kInvalidTableDefinition, "cannot alter inherited column \"{}\"", command.name);
  TypeAndMod type = ResolveType(ddl, *def.type_name, relation->server);
  for (Relation* each : Tree(ddl, relation)) {
    if (KeyNames(*each, command.name))
      Throw(sqlstate::kInvalidTableDefinition,
            "cannot alter column \"{}\" because it is part of the partition key of relation \"{}\"",
            command.name, each->name);
    ColumnInfo& column = GetColumn(each, command.name);
    column.type = type.type;
    column.typmod = type.typmod;
    column.collation = FindType(type.type)->collation;
    if (def.coll_clause != nullptr)
      column.collation = ResolveCollation(ddl, *def.coll_clause, relation->server);
  }
}

void ChangeTableOptions(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  if (relation->kind != RelationKind::kForeignTable)
    throw QueryError(MakeError(sqlstate::kWrongObjectType,
                               "ALTER action OPTIONS cannot be performed on relation \"{}\"",
                               relation->name)
                         .Detail(fmt::format("This operation is not supported for {}s.",
                                             KindName(relation->kind))));
  const PgQuery__List& list = *command.def->list;
  ChangeOptions(ddl, list.items, list.n_items, &relation->options);
  CheckOptions(ddl.catalog.servers.at(relation->server).wrapper, OptionContext::kTable,
               relation->options);
}

void ChangeColumnOptions(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  ColumnInfo& column = GetColumn(relation, command.name);
  if (relation->kind != RelationKind::kForeignTable)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a foreign table", relation->name);
  const PgQuery__List& list = *command.def->list;
  ChangeOptions(ddl, list.items, list.n_items, &column.options);
  CheckOptions(ddl.catalog.servers.at(relation->server).wrapper, OptionContext::kColumn,
               column.options);
}

void AddConstraint(Ddl&, Relation* relation, const PgQuery__AlterTableCmd& command) {
  const PgQuery__Constraint& constraint = *command.def->constraint;
  bool primary = constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY;
  if (relation->kind == RelationKind::kForeignTable &&
      constraint.contype != PG_QUERY__CONSTR_TYPE__CONSTR_CHECK)
    Refuse("{} constraints are not supported on foreign tables", primary ? "primary key" : "such");
  // The shards check everything else.
  if (primary) SetPrimaryKey(relation, StringList(constraint.keys, constraint.n_keys));
}

void SetNotNull(Ddl& ddl, Relation* relation, std::string_view name, bool not_null) {
  GetColumn(relation, name);
  for (Relation* each : Tree(ddl, relation)) GetColumn(each, name).not_null = not_null;
}

void RunAlter(Ddl& ddl, Relation* relation, const PgQuery__AlterTableCmd& command) {
  switch (command.subtype) {
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddColumn:
      return AddColumn(ddl, relation, command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropColumn:
      return DropColumn(ddl, relation, command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AlterColumnType:
      return ChangeColumnType(ddl, relation, command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ColumnDefault:
      GetColumn(relation, command.name).default_sql =
          command.def == nullptr ? "" : DeparseExpression(command.def);
      return;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetNotNull:
      return SetNotNull(ddl, relation, command.name, true);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropNotNull:
      return SetNotNull(ddl, relation, command.name, false);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_GenericOptions:
      return ChangeTableOptions(ddl, relation, command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AlterColumnGenericOptions:
      return ChangeColumnOptions(ddl, relation, command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ChangeOwner:
      relation->owner = RoleName(ddl, *command.newowner);
      return;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AttachPartition:
      return AttachPartition(ddl, relation, *command.def->partition_cmd);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DetachPartition:
      return DetachPartition(ddl, relation, *command.def->partition_cmd);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddInherit: {
      Relation& parent = GetRelation(ddl, *command.def->range_var);
      CheckInheritable(ddl, parent, *relation);
      return LinkChild(ddl, &parent, relation);
    }
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropInherit: {
      Relation& parent = GetRelation(ddl, *command.def->range_var);
      if (relation->parent != parent.oid || parent.kind == RelationKind::kPartitioned)
        Throw(sqlstate::kUndefinedTable, "relation \"{}\" is not a parent of relation \"{}\"",
              parent.name, relation->name);
      return Unlink(ddl, relation);
    }
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddConstraint:
      return AddConstraint(ddl, relation, command);
    // What guides local storage or statistics only.
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetStatistics:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetStorage:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ValidateConstraint:
      return;
    default:
      Refuse("this form of ALTER {} is not supported (action {})", KindName(relation->kind),
             static_cast<int>(command.subtype));
  }
}

// ALTER VIEW of a table, ALTER FOREIGN TABLE of a view and so on; ALTER TABLE takes all.
void CheckKind(const Relation& relation, PgQuery__ObjectType wanted) {
  bool foreign = relation.kind == RelationKind::kForeignTable,
       view = relation.kind == RelationKind::kView;
  if (wanted == PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE && !foreign)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a foreign table", relation.name);
  if (wanted == PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW &&
      relation.kind != RelationKind::kMaterializedView)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a materialized view", relation.name);
  if (wanted == PG_QUERY__OBJECT_TYPE__OBJECT_VIEW && !view)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a view", relation.name);
}

void RenameColumn(Ddl& ddl, Relation* relation, std::string_view from, std::string_view to) {
  if (relation->kind == RelationKind::kMaterializedView)
    Refuse("renaming a column of a materialized view is not supported");
  if (relation->FindColumn(from) < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", from);
  if (IsInherited(ddl, *relation, from))
    Throw(sqlstate::kInvalidTableDefinition, "cannot rename inherited column \"{}\"", from);
  for (Relation* each : Tree(ddl, relation)) {
    RefuseIfViewUses(ddl, *each, "renaming a column");
    if (each->FindColumn(to) >= 0)
      Throw(sqlstate::kDuplicateColumn, "column \"{}\" of relation \"{}\" already exists", to,
            each->name);
    if (KeyNames(*each, from)) Refuse("renaming a column of a partition key is not supported");
    GetColumn(each, from).name = to;
  }
}

void RenameRelation(Ddl& ddl, Relation* relation, std::string_view to) {
  CheckNameFree(ddl, relation->schema, to, false);
  for (auto& [oid, view] : ddl.catalog.relations) {
    const std::vector<Oid>& uses = view.view_uses;
    if (std::find(uses.begin(), uses.end(), relation->oid) == uses.end()) continue;
    std::string sql = RenameInViewQuery(ddl, view, *relation, to);
    // A live view is the same as before: its rows stay.
    if (view.kind == RelationKind::kMaterializedView)
      view.options.try_emplace("built_as", view.view_sql);
    view.view_sql = std::move(sql);
  }
  relation->name = to;
  if (relation->kind == RelationKind::kMaterializedView) RenewIndexDefinitions(relation);
}

void RenameSchema(Ddl& ddl, std::string_view from, std::string_view to) {
  auto found = ddl.catalog.schemas.find(std::string(from));
  if (from == "public" || found == ddl.catalog.schemas.end()) {
    if (ddl.catalog.HasSchema(from)) Refuse("renaming schema {} is not supported", from);
    Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", from);
  }
  if (ddl.catalog.HasSchema(to))
    Throw(sqlstate::kDuplicateSchema, "schema \"{}\" already exists", to);
  for (auto& [oid, relation] : ddl.catalog.relations) {
    if (relation.schema != from) continue;
    RefuseIfViewUses(ddl, relation, "renaming the schema");
    relation.schema = to;
    if (relation.kind == RelationKind::kMaterializedView) RenewIndexDefinitions(&relation);
  }
  Schema renamed = std::move(found->second);
  ddl.catalog.schemas.erase(found);
  ddl.catalog.schemas.emplace(to, std::move(renamed));
}

}  // namespace

void CheckViewsOf(Ddl& ddl, const Relation& changed) {
  for (const auto& [oid, view] : ddl.catalog.relations) {
    const auto& uses = view.view_uses;
    if (std::find(uses.begin(), uses.end(), changed.oid) == uses.end()) continue;
    std::vector<ColumnInfo> columns;
    std::string why = "its columns would change";
    try {
      columns = ViewColumns(ddl, view.view_sql);
    } catch (const QueryError& failure) {
      why = failure.error.message;
    }
    bool same = columns.size() == view.columns.size();
    for (size_t i = 0; same && i < columns.size(); i++)
      same = columns[i].type == view.columns[i].type && columns[i].typmod == view.columns[i].typmod;
    if (!same)
      throw QueryError(MakeError(sqlstate::kDependentObjectsStillExist,
                                 "cannot change {} because other objects depend on it",
                                 Describe(ddl, changed))
                           .Detail(fmt::format("{} depends on {}: {}", Describe(ddl, view),
                                               Describe(ddl, changed), why)));
  }
}

// ALTER TABLE takes a sequence's owner, too: so do dumps say it.
bool AlterSequenceOwner(Ddl& ddl, const PgQuery__AlterTableStmt& alter) {
  std::string_view schema = Text(alter.relation->schemaname), name = Text(alter.relation->relname);
  const Sequence* found = schema.empty() ? ddl.catalog.FindSequence(ddl.context.search_path, name)
                                         : ddl.catalog.FindSequence(schema, name);
  if (found == nullptr || ::sluice::FindRelation(std::as_const(ddl), *alter.relation) != nullptr)
    return false;
  for (size_t i = 0; i < alter.n_cmds; i++) {
    const PgQuery__AlterTableCmd& command = *alter.cmds[i]->alter_table_cmd;
    if (command.subtype != PG_QUERY__ALTER_TABLE_TYPE__AT_ChangeOwner)
      Refuse("this form of ALTER SEQUENCE is not supported (action {})",
             static_cast<int>(command.subtype));
    if (found->owner != ddl.context.user) RequireSuperuser(ddl, "change a sequence's owner");
    ddl.catalog.sequences.at(found->oid).owner = RoleName(ddl, *command.newowner);
    ddl.changed = true;
  }
  return true;
}

void AlterTable(Ddl& ddl, const PgQuery__AlterTableStmt& alter) {
  if (AlterSequenceOwner(ddl, alter)) return;
  Relation* relation = FindRelation(ddl, *alter.relation, alter.missing_ok);
  if (relation == nullptr) return;
  CheckKind(*relation, alter.objtype);
  if (relation->is_distributed()) return AlterDistributed(ddl, relation, alter);
  for (size_t i = 0; i < alter.n_cmds; i++) {
    ddl.changed = true;
    if (relation->kind == RelationKind::kMaterializedView) {
      AlterMaterializedView(ddl, relation, *alter.cmds[i]->alter_table_cmd);
      continue;
    }
    RunAlter(ddl, relation, *alter.cmds[i]->alter_table_cmd);
  }
  for (Relation* each : Tree(ddl, relation)) CheckViewsOf(ddl, *each);
}

void Rename(Ddl& ddl, const PgQuery__RenameStmt& rename) {
  switch (rename.rename_type) {
    case PG_QUERY__OBJECT_TYPE__OBJECT_COLUMN: {
      Relation* relation = FindRelation(ddl, *rename.relation, rename.missing_ok);
      if (relation == nullptr) break;
      if (relation->is_distributed())
        RenameDistributedColumn(ddl, relation, rename.subname, rename.newname);
      else
        RenameColumn(ddl, relation, rename.subname, rename.newname);
      break;
    }
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABLE:
    case PG_QUERY__OBJECT_TYPE__OBJECT_VIEW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_MATVIEW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_TABLE: {
      Relation* relation = FindRelation(ddl, *rename.relation, rename.missing_ok);
      if (relation == nullptr) break;
      CheckKind(*relation, rename.rename_type);
      if (relation->is_distributed())
        RenameDistributed(ddl, relation, rename.newname);
      else
        RenameRelation(ddl, relation, rename.newname);
      break;
    }
    case PG_QUERY__OBJECT_TYPE__OBJECT_ROLE:
      RenameRole(ddl, rename.subname, rename.newname);
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_TABCONSTRAINT:
      RenameConstraint(ddl, rename);
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_INDEX:
      RenameIndex(ddl, rename);
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE:
      RenameSequence(ddl, rename);
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA:
      RequireSchemaOwner(ddl, rename.subname);
      RenameSchema(ddl, rename.subname, rename.newname);
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_SERVER: {
      Server& server = GetServer(ddl, StringOf(rename.object));
      if (ddl.catalog.FindServer(rename.newname) != nullptr)
        Throw(sqlstate::kDuplicateObject, "server \"{}\" already exists", rename.newname);
      server.name = rename.newname;
      break;
    }
    default:
      Refuse("this form of ALTER … RENAME is not supported");
  }
  ddl.changed = true;
}

void AlterOwner(Ddl& ddl, const PgQuery__AlterOwnerStmt& alter) {
  std::string owner = RoleName(ddl, *alter.newowner);
  switch (alter.object_type) {
    case PG_QUERY__OBJECT_TYPE__OBJECT_FOREIGN_SERVER:
      GetServer(ddl, StringOf(alter.object)).owner = owner;
      ddl.changed = true;
      break;
    case PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA:
      if (!ddl.catalog.HasSchema(StringOf(alter.object)))
        Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", StringOf(alter.object));
      break;  // schemas have no owner here
    case PG_QUERY__OBJECT_TYPE__OBJECT_FDW:
    case PG_QUERY__OBJECT_TYPE__OBJECT_TYPE:  // they have no owner here
      break;
    default:
      Refuse("this form of ALTER … OWNER TO is not supported");
  }
}

void AlterSchema(Ddl& ddl, const PgQuery__AlterObjectSchemaStmt& alter) {
  if (alter.relation == nullptr) Refuse("this form of ALTER … SET SCHEMA is not supported");
  Relation* relation = FindRelation(ddl, *alter.relation, alter.missing_ok);
  if (relation == nullptr) return;
  CheckKind(*relation, alter.object_type);
  std::string schema = CreationSchema(ddl, alter.newschema);
  if (schema == relation->schema) return;
  CheckNameFree(ddl, schema, relation->name, false);
  if (relation->is_distributed()) return MoveDistributed(ddl, relation, schema);
  RefuseIfViewUses(ddl, *relation, "moving");
  relation->schema = schema;
  if (relation->kind == RelationKind::kMaterializedView) RenewIndexDefinitions(relation);
  ddl.changed = true;
}

}  // namespace sluice
