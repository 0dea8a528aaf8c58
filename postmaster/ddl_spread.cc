// ADD PRIMARY KEY (or UNIQUE) to a table whose rows are spread evenly: it becomes one that is
// spread by hash, and its rows move to their places. A new table is made beside it, the session
// copies the rows, and the new one takes the old one's place, all in the statement's transaction.
#include "catalog/partition.h"
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

struct Spread {
  Oid table, copy;
  std::vector<std::string> foreign_keys, indexes;  // to be made again on the new table
};

// The new table takes the old one's place and name; to users it is the same table.
void TakePlace(Ddl& ddl, const Spread& spread) {
  Relation& table = ddl.GetRelation(spread.table);
  Relation copy = ddl.GetRelation(spread.copy);
  std::vector<std::string> statements = {
      "DROP TABLE " + Qualified(table),
      fmt::format("ALTER TABLE {} RENAME TO {}", Qualified(copy), QuoteIdentifier(table.name))};
  statements.insert(statements.end(), spread.foreign_keys.begin(), spread.foreign_keys.end());
  statements.insert(statements.end(), spread.indexes.begin(), spread.indexes.end());
  ddl.OnServers(ServersOf(ddl, copy), statements);
  for (Oid leaf : std::vector<Oid>(table.children)) ddl.catalog.relations.erase(leaf);
  table.children = copy.children;
  for (size_t i = 0; i < table.children.size(); i++) {
    Relation& leaf = ddl.GetRelation(table.children[i]);
    leaf.parent = table.oid;
    leaf.name = fmt::format("{}_{}", table.name, i + 1);
  }
  table.kind = copy.kind;
  table.distribution = copy.distribution;
  table.key = copy.key;
  ddl.catalog.relations.erase(spread.copy);
  ReadBack(ddl, &table);
}

std::string WritableColumns(const Relation& table) {
  std::vector<std::string> columns;
  for (const ColumnInfo& column : table.columns)
    if (!column.generated) columns.push_back(QuoteIdentifier(column.name));
  return JoinNames(columns);
}

}  // namespace

const PgQuery__Constraint* AddedKey(const Relation& table, const PgQuery__AlterTableStmt& alter) {
  if (table.distribution != Distribution::kEven || alter.n_cmds != 1) return nullptr;
  const PgQuery__AlterTableCmd& command = *alter.cmds[0]->alter_table_cmd;
  if (command.subtype != PG_QUERY__ALTER_TABLE_TYPE__AT_AddConstraint) return nullptr;
  const PgQuery__Constraint& constraint = *command.def->constraint;
  bool key = constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY ||
             constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_UNIQUE;
  return key && Text(constraint.indexname).empty() ? &constraint : nullptr;
}

void SpreadByKey(Ddl& ddl, Relation* table, const PgQuery__Constraint& constraint) {
  bool primary = constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY;
  std::vector<std::string> columns = StringList(constraint.keys, constraint.n_keys), quoted;
  std::string key;
  for (const std::string& name : columns) {
    int column = table->FindColumn(name);
    if (column < 0)
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" named in key does not exist", name);
    if (key.empty() && HasKnownHash(table->columns[static_cast<size_t>(column)].type)) key = name;
    quoted.push_back(QuoteIdentifier(name));
  }
  if (key.empty()) key = columns[0];  // refused with its type by what follows
  Spread spread;
  spread.table = table->oid;
  std::string name(Text(constraint.conname));
  if (name.empty() && primary) name = table->name + "_pkey";
  if (name.empty()) name = ChooseObjectName(ddl, table->schema, table->name, columns[0], "key");
  CheckNameFree(ddl, table->schema, name, false);
  for (const Constraint& other : table->constraints)
    if (other.kind == ConstraintKind::kForeignKey)
      spread.foreign_keys.push_back(fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}",
                                                Qualified(*table), QuoteIdentifier(other.name),
                                                other.definition));
  for (const Index& index : table->indexes) spread.indexes.push_back(index.definition);

  // Nobody writes what is being copied.
  ddl.OnServers(ServersOf(ddl, *table),
                {"LOCK TABLE " + Qualified(*table) + " IN ACCESS EXCLUSIVE MODE"});
  std::string copy = ChooseObjectName(ddl, table->schema, table->name, "rows", "new");
  ParsedSql parsed = ParseSql(fmt::format(
      "CREATE TABLE {} (LIKE {} INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY, CONSTRAINT {} "
      "{} ({})) PARTITION BY HASH ({})",
      QuoteQualified(table->schema, copy), Qualified(*table), QuoteIdentifier(name),
      primary ? "PRIMARY KEY" : "UNIQUE", JoinNames(quoted), QuoteIdentifier(key)));
  std::string target = QuoteQualified(table->schema, copy), source = Qualified(*table);
  std::string list = WritableColumns(*table), schema = table->schema;
  CreateDistributed(ddl, *parsed.statements()[0].node->create_stmt);
  spread.copy = ddl.catalog.FindRelation(schema, copy)->oid;
  ddl.context.then_insert =
      fmt::format("INSERT INTO {} ({}) SELECT {} FROM {}", target, list, list, source);
  ddl.context.finish = [spread](Ddl& later) { TakePlace(later, spread); };
}

}  // namespace sluice
