// ALTER TABLE, RENAME and TRUNCATE of tables on the servers: what is Sluice's own of a command
// (sequences, defaults that use them, the owner) is done here, the rest is the servers' work.
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

ColumnInfo* FindColumn(Relation* table, std::string_view name) {
  int column = table->FindColumn(name);
  return column < 0 ? nullptr : &table->columns[static_cast<size_t>(column)];
}

ColumnInfo& GetColumn(Relation* table, std::string_view name) {
  ColumnInfo* column = FindColumn(table, name);
  if (column == nullptr)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of relation \"{}\" does not exist", name,
          table->name);
  return *column;
}

// A command on its way to the servers. Each step says whether they get it.
class Alteration {
 public:
  Alteration(Ddl& ddl, Oid table) : ddl_(ddl), oid_(table) {}

  bool Prepare(PgQuery__AlterTableCmd* command);
  // After the servers have done theirs.
  void Finish();

 private:
  Relation& table() { return ddl_.GetRelation(oid_); }
  bool AddColumn(PgQuery__AlterTableCmd* command);
  void FillLater(PgQuery__ColumnDef* def);
  bool DropColumn(const PgQuery__AlterTableCmd& command);
  bool SetDefault(PgQuery__AlterTableCmd* command);
  bool AddConstraint(const PgQuery__AlterTableCmd& command);
  void AddIdentity(const PgQuery__AlterTableCmd& command);
  void SetIdentity(const PgQuery__AlterTableCmd& command);
  bool DropIdentity(const PgQuery__AlterTableCmd& command);

  Ddl& ddl_;
  Oid oid_;
  std::vector<SequenceColumn> sequences_;
  std::map<std::string, std::string> defaults_;
  std::vector<std::string> filled_, not_null_;  // new columns with values of sequences
};

bool Alteration::AddColumn(PgQuery__AlterTableCmd* command) {
  PgQuery__ColumnDef* def = command->def->column_def;
  if (FindColumn(&table(), def->colname) != nullptr && command->missing_ok) {
    ddl_.Notice(MakeError(sqlstate::kDuplicateColumn,
                          "column \"{}\" of relation \"{}\" already exists, skipping", def->colname,
                          table().name));
    return false;
  }
  std::string default_sql;
  auto sequence = TakeSequence(ddl_, table().name, def, &default_sql);
  if (sequence || !default_sql.empty()) FillLater(def);
  if (sequence) sequences_.push_back(std::move(*sequence));
  if (!default_sql.empty()) defaults_[def->colname] = default_sql;
  MakeColumn(ddl_, *def, kInvalidOid);  // its type is known here
  for (size_t i = 0; i < def->n_constraints; i++) {
    const PgQuery__Constraint& constraint = *def->constraints[i]->constraint;
    CheckConstraint(ddl_, table(), constraint, def->colname);
  }
  return true;
}

// The rows that are there get their values of the sequence afterwards, and then only may the column
// be NOT NULL.
void Alteration::FillLater(PgQuery__ColumnDef* def) {
  if (table().kind == RelationKind::kReplicated)
    Refuse("adding a column with values of a sequence to replicated table \"{}\"", table().name);
  bool not_null = false;
  for (size_t i = 0; i < def->n_constraints; i++) {
    const PgQuery__Constraint& constraint = *def->constraints[i]->constraint;
    not_null |= constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_NOTNULL;
    if (constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY) not_null = false;
  }
  RemoveNodes(def->constraints, &def->n_constraints, [](const RawNode& node) {
    return node.constraint->contype == PG_QUERY__CONSTR_TYPE__CONSTR_NOTNULL;
  });
  filled_.push_back(def->colname);
  if (not_null) not_null_.push_back(def->colname);
}

bool Alteration::DropColumn(const PgQuery__AlterTableCmd& command) {
  if (FindColumn(&table(), command.name) == nullptr && command.missing_ok) {
    ddl_.Notice(MakeError(sqlstate::kSuccess,
                          "column \"{}\" of relation \"{}\" does not exist, skipping", command.name,
                          table().name));
    return false;
  }
  GetColumn(&table(), command.name);
  if (KeyNames(table(), command.name))
    Throw(sqlstate::kInvalidTableDefinition,
          "cannot drop column \"{}\" because it is part of the partition key of relation \"{}\"",
          command.name, table().name);
  std::string name = command.name;
  DropOwnedSequences(ddl_, oid_, &name);
  return true;
}

bool Alteration::SetDefault(PgQuery__AlterTableCmd* command) {
  ColumnInfo& column = GetColumn(&table(), command->name);
  if (column.identity != '\0')
    throw QueryError(
        MakeError(sqlstate::kSyntaxError, "column \"{}\" of relation \"{}\" is an identity column",
                  command->name, table().name)
            .Hint(command->def == nullptr ? "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY "
                                            "instead."
                                          : ""));
  column.default_sql.clear();  // the servers' is read back
  if (command->def == nullptr || !UsesSequence(command->def)) return true;
  defaults_[command->name] = DeparseExpression(command->def);
  FreeNode()(command->def);
  command->def = nullptr;  // the servers drop theirs
  return true;
}

bool Alteration::AddConstraint(const PgQuery__AlterTableCmd& command) {
  const PgQuery__Constraint& constraint = *command.def->constraint;
  if (Text(constraint.indexname).empty()) {
    CheckConstraint(ddl_, table(), constraint, "");
    return true;
  }
  // USING INDEX: its columns.
  for (const Index& index : table().indexes) {
    if (index.name != constraint.indexname) continue;
    std::vector<std::string> columns;
    for (int column : index.columns)
      if (column >= 0) columns.push_back(table().columns[static_cast<size_t>(column)].name);
    CheckUniqueColumns(ddl_, table(), "UNIQUE", columns);
  }
  return true;
}

void Alteration::AddIdentity(const PgQuery__AlterTableCmd& command) {
  ColumnInfo& column = GetColumn(&table(), command.name);
  if (column.identity != '\0' || !column.default_sql.empty())
    Throw(
        sqlstate::kObjectNotInPrerequisiteState, "column \"{}\" of relation \"{}\" {}",
        command.name, table().name,
        column.identity != '\0' ? "is already an identity column" : "already has a default value");
  if (!column.not_null)
    Throw(sqlstate::kObjectNotInPrerequisiteState,
          "column \"{}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
          command.name, table().name);
  SequenceColumn sequence;
  sequence.column = command.name;
  sequence.identity = Text(command.def->constraint->generated_when) == "a" ? 'a' : 'd';
  sequence.type = column.type;
  sequence.definition = CopyNode(command.def);
  sequences_.push_back(std::move(sequence));
}

void Alteration::SetIdentity(const PgQuery__AlterTableCmd& command) {
  ColumnInfo& column = GetColumn(&table(), command.name);
  if (column.identity == '\0')
    Throw(sqlstate::kObjectNotInPrerequisiteState,
          "column \"{}\" of relation \"{}\" is not an identity column", command.name, table().name);
  const PgQuery__List& list = *command.def->list;
  std::vector<RawNode*> options;
  for (size_t i = 0; i < list.n_items; i++) {
    const PgQuery__DefElem& option = *list.items[i]->def_elem;
    if (Text(option.defname) != "generated")
      options.push_back(list.items[i]);
    else
      column.identity = static_cast<char>(option.arg->integer->ival);
  }
  SetSequenceOptions(ddl_, options.data(), options.size(), false,
                     &ddl_.catalog.sequences.at(column.sequence));
}

bool Alteration::DropIdentity(const PgQuery__AlterTableCmd& command) {
  ColumnInfo& column = GetColumn(&table(), command.name);
  if (column.identity == '\0') {
    Error error = MakeError(sqlstate::kObjectNotInPrerequisiteState,
                            "column \"{}\" of relation \"{}\" is not an identity column",
                            command.name, table().name);
    if (!command.missing_ok) throw QueryError(error);
    error.message += ", skipping";
    ddl_.Notice(error);
    return false;
  }
  column.identity = '\0';
  column.sequence = kInvalidOid;
  std::string name = command.name;
  DropOwnedSequences(ddl_, oid_, &name);
  return false;
}

bool Alteration::Prepare(PgQuery__AlterTableCmd* command) {
  switch (command->subtype) {
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddColumn:
      return AddColumn(command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropColumn:
      return DropColumn(*command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AlterColumnType:
      GetColumn(&table(), command->name);
      if (KeyNames(table(), command->name))
        Throw(sqlstate::kInvalidTableDefinition,
              "cannot alter column \"{}\" because it is part of the partition key of relation "
              "\"{}\"",
              command->name, table().name);
      return true;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ColumnDefault:
      return SetDefault(command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropExpression:
      GetColumn(&table(), command->name).default_sql.clear();
      return true;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddConstraint:
      return AddConstraint(*command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddIdentity:
      AddIdentity(*command);
      return false;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetIdentity:
      SetIdentity(*command);
      return false;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropIdentity:
      return DropIdentity(*command);
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropNotNull:
      if (GetColumn(&table(), command->name).identity != '\0')
        Throw(sqlstate::kSyntaxError, "column \"{}\" of relation \"{}\" is an identity column",
              command->name, table().name);
      return true;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ChangeOwner:
      table().owner = RoleName(ddl_, *command->newowner);
      return false;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetNotNull:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropConstraint:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ValidateConstraint:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AlterConstraint:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetStatistics:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetStorage:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetCompression:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetOptions:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ResetOptions:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetRelOptions:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ResetRelOptions:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ReplicaIdentity:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ClusterOn:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropCluster:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetLogged:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_SetUnLogged:
      return true;
    case PG_QUERY__ALTER_TABLE_TYPE__AT_EnableRowSecurity:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_ForceRowSecurity:
      Refuse("row-level security is not supported");
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AttachPartition:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DetachPartition:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_AddInherit:
    case PG_QUERY__ALTER_TABLE_TYPE__AT_DropInherit:
      Refuse("partitions and children of a table that lies on the servers are not supported");
    default:
      Refuse("this form of ALTER TABLE is not supported (action {})",
             static_cast<int>(command->subtype));
  }
}

void Alteration::Finish() {
  for (const auto& [name, sql] : defaults_) GetColumn(&table(), name).default_sql = sql;
  for (const SequenceColumn& column : sequences_) {
    const PgQuery__Constraint* definition =
        column.definition == nullptr ? nullptr : column.definition->constraint;
    Sequence& sequence = CreateColumnSequence(ddl_, table(), column.column, column.type,
                                              definition == nullptr ? nullptr : definition->options,
                                              definition == nullptr ? 0 : definition->n_options,
                                              column.identity != '\0');
    ColumnInfo& info = GetColumn(&table(), column.column);
    info.identity = column.identity;
    if (column.identity != '\0')
      info.sequence = sequence.oid;
    else
      info.default_sql = NextvalOf(sequence);
  }
  if (filled_.empty()) return;
  std::string set;
  for (const std::string& name : filled_)
    set += (set.empty() ? "" : ", ") + QuoteIdentifier(name) + " = DEFAULT";
  ddl_.context.then_insert = fmt::format("UPDATE {} SET {}", Qualified(table()), set);
  ddl_.context.finish = [oid = oid_, columns = not_null_](Ddl& later) {
    Relation& table = later.GetRelation(oid);
    std::string changes;
    for (const std::string& name : columns)
      changes += (changes.empty() ? "" : ", ") +
                 fmt::format("ALTER COLUMN {} SET NOT NULL", QuoteIdentifier(name));
    if (changes.empty()) return;
    later.OnServers(ServersOf(later, table),
                    {fmt::format("ALTER TABLE {} {}", Qualified(table), changes)});
    ReadBack(later, &table);
    later.changed = true;
  };
}

// Changes of rows must reach live views with the old rows' key, or else whole.
void SetReplicaIdentity(Ddl& ddl, const Relation& table, bool had_key) {
  bool has_key = !table.primary_key.empty();
  if (has_key == had_key) return;
  ddl.OnServers(ServersOf(ddl, table),
                {fmt::format("ALTER TABLE {} REPLICA IDENTITY {}", Qualified(table),
                             has_key ? "DEFAULT" : "FULL")});
}

// Sends a changed copy of the statement at work.
void Send(Ddl& ddl, const Relation& table, RawNode* copy) {
  QualifyNames(ddl, copy);
  ddl.OnServers(ServersOf(ddl, table), {DeparseStatement(copy)});
}

void RenameKey(Relation* table, const std::string& from, const std::string& to) {
  if (!KeyNames(*table, from)) return;
  if (KeyColumns(*table).empty())
    Refuse("renaming a column of an expression that rows are spread by is not supported");
  for (std::string& expression : table->key.expressions)
    if (expression == QuoteIdentifier(from)) expression = QuoteIdentifier(to);
}

}  // namespace

void AlterDistributed(Ddl& ddl, Relation* table, const PgQuery__AlterTableStmt& alter) {
  if (const PgQuery__Constraint* key = AddedKey(*table, alter))
    return SpreadByKey(ddl, table, *key);
  Oid oid = table->oid;
  OwnedNode copy = CopyNode(ddl.statement.node);
  PgQuery__AlterTableStmt* statement = copy->alter_table_stmt;
  Alteration alteration(ddl, oid);
  RemoveNodes(statement->cmds, &statement->n_cmds,
              [&](const RawNode& node) { return !alteration.Prepare(node.alter_table_cmd); });
  bool had_key = !table->primary_key.empty();
  if (statement->n_cmds > 0) {
    statement->missing_ok = 0;
    Send(ddl, ddl.GetRelation(oid), copy.get());
    ReadBack(ddl, &ddl.GetRelation(oid));
    SetReplicaIdentity(ddl, ddl.GetRelation(oid), had_key);
  }
  alteration.Finish();
  ddl.changed = true;
  CheckViewsOf(ddl, ddl.GetRelation(oid));
}

void RenameDistributedColumn(Ddl& ddl, Relation* table, const std::string& from,
                             const std::string& to) {
  RefuseIfViewUses(ddl, *table, "renaming a column");
  ColumnInfo* column = FindColumn(table, from);
  if (column == nullptr) Throw(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", from);
  OwnedNode copy = CopyNode(ddl.statement.node);
  Send(ddl, *table, copy.get());
  RenameKey(table, from, to);
  column->name = to;
  for (auto& [oid, sequence] : ddl.catalog.sequences)
    if (sequence.owned_by == table->oid && sequence.owned_column == from)
      sequence.owned_column = to;
  ReadBack(ddl, table);
  ReadBackReferencing(ddl, table->oid);
}

void RenameDistributed(Ddl& ddl, Relation* table, const std::string& to) {
  CheckNameFree(ddl, table->schema, to, false);
  RefuseIfViewUses(ddl, *table, "renaming");
  OwnedNode copy = CopyNode(ddl.statement.node);
  Send(ddl, *table, copy.get());
  table->name = to;
  for (size_t i = 0; i < table->children.size(); i++)
    ddl.GetRelation(table->children[i]).name = fmt::format("{}_{}", to, i + 1);
  ReadBack(ddl, table);
  ReadBackReferencing(ddl, table->oid);
}

void RenameConstraint(Ddl& ddl, const PgQuery__RenameStmt& rename) {
  Relation* table = FindRelation(ddl, *rename.relation, rename.missing_ok);
  if (table == nullptr) return;
  if (!table->is_distributed())
    Refuse("renaming a constraint of {} is not supported", Describe(ddl, *table));
  OwnedNode copy = CopyNode(ddl.statement.node);
  Send(ddl, *table, copy.get());
  for (Constraint& constraint : table->constraints)
    if (constraint.name == rename.subname) constraint.name = rename.newname;
  for (Index& index : table->indexes)
    if (index.name == rename.subname) index.name = rename.newname;
  ReadBack(ddl, table);
}

void MoveDistributed(Ddl& ddl, Relation* table, const std::string& schema) {
  RefuseIfViewUses(ddl, *table, "moving");
  OwnedNode copy = CopyNode(ddl.statement.node);
  QualifyNames(ddl, copy.get());
  std::vector<std::string> statements;
  if (schema != "public")
    statements.push_back("CREATE SCHEMA IF NOT EXISTS " + QuoteIdentifier(schema));
  statements.push_back(DeparseStatement(copy.get()));
  ddl.OnServers(ServersOf(ddl, *table), statements);
  table->schema = schema;
  for (auto& [oid, sequence] : ddl.catalog.sequences) {
    if (sequence.owned_by != table->oid) continue;
    sequence.schema = schema;
    ColumnInfo* column = FindColumn(table, sequence.owned_column);
    if (column != nullptr && column->identity == '\0') column->default_sql = NextvalOf(sequence);
  }
  ReadBack(ddl, table);
  ReadBackReferencing(ddl, table->oid);
}

void Truncate(Ddl& ddl, const PgQuery__TruncateStmt& truncate) {
  std::map<Oid, std::vector<std::string>> names;  // by server
  std::vector<Oid> tables;
  for (size_t i = 0; i < truncate.n_relations; i++) {
    const Relation& table = GetRelation(ddl, *truncate.relations[i]->range_var);
    if (table.kind == RelationKind::kView || table.kind == RelationKind::kMaterializedView)
      Throw(sqlstate::kWrongObjectType, "\"{}\" is not a table", table.name);
    tables.push_back(table.oid);
    for (const Relation* leaf : ddl.catalog.Leaves(table)) {
      if (ddl.catalog.servers.at(leaf->server).wrapper != kPostgresWrapper)
        Throw(sqlstate::kFeatureNotSupported, "cannot truncate foreign table \"{}\"", leaf->name);
      std::vector<std::string>& list = names[leaf->server];
      std::string name = QuoteQualified(leaf->remote_schema(), leaf->remote_table());
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    }
  }
  bool cascade = truncate.behavior == PG_QUERY__DROP_BEHAVIOR__DROP_CASCADE;
  std::vector<RemoteQuery> queries;
  for (const auto& [server, list] : names)
    queries.push_back({server, "TRUNCATE " + JoinNames(list) + (cascade ? " CASCADE" : "")});
  OnEach(ddl, queries);
  for (Oid table : tables) {
    if (truncate.restart_seqs) RestartOwnedSequences(ddl, table);
  }
}

void LockTables(Ddl& ddl, const PgQuery__LockStmt& lock) {
  static constexpr const char* kModes[] = {
      "",      "ACCESS SHARE",        "ROW SHARE", "ROW EXCLUSIVE",   "SHARE UPDATE EXCLUSIVE",
      "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"};
  if (!ddl.context.in_block)
    Throw(sqlstate::kNoActiveSqlTransaction, "LOCK TABLE can only be used in transaction blocks");
  for (size_t i = 0; i < lock.n_relations; i++) {
    const Relation& table = GetRelation(ddl, *lock.relations[i]->range_var);
    if (table.kind == RelationKind::kMaterializedView)
      throw QueryError(
          MakeError(sqlstate::kWrongObjectType, "cannot lock relation \"{}\"", table.name)
              .Detail("This operation is not supported for materialized views."));
    // Servers in their order, one after the other: two sessions that lock the same table wait for
    // each other on the first, and never in a circle.
    for (const Relation* leaf : ddl.catalog.Leaves(table)) {
      Oid server = leaf->server;
      ddl.OnServers(
          std::span(&server, 1),
          {fmt::format("LOCK TABLE {} IN {} MODE{}",
                       QuoteQualified(leaf->remote_schema(), leaf->remote_table()),
                       kModes[static_cast<size_t>(lock.mode)], lock.nowait ? " NOWAIT" : "")});
    }
  }
}

}  // namespace sluice
