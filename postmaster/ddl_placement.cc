// What the shards can enforce alone: a constraint between rows holds over all rows only where the
// rows that it compares always lie on one server.
#include "postmaster/ddl_distributed.h"

namespace sluice {

std::vector<std::string> KeyColumns(const Relation& table) {
  std::vector<std::string> columns;
  for (const std::string& expression : table.key.expressions)
    for (const ColumnInfo& column : table.columns)
      if (QuoteIdentifier(column.name) == expression) columns.push_back(column.name);
  if (columns.size() != table.key.expressions.size()) return {};
  return columns;
}

void CheckUniqueColumns(const Ddl&, const Relation& table, std::string_view kind,
                        const std::vector<std::string>& columns) {
  if (table.distribution == Distribution::kReplicated) return;
  if (table.distribution == Distribution::kEven)
    throw QueryError(MakeError(sqlstate::kFeatureNotSupported,
                               "{} constraint on table \"{}\" cannot be enforced", kind, table.name)
                         .Detail("The table's rows are spread evenly: equal values may lie on "
                                 "different servers.")
                         .Hint("Spread the table by hash of one of the columns: PARTITION BY HASH "
                               "(column)."));
  std::vector<std::string> key = KeyColumns(table);
  if (key.empty())
    throw QueryError(
        MakeError(sqlstate::kFeatureNotSupported,
                  "unsupported {} constraint with partition key definition", kind)
            .Detail(fmt::format("{} constraints cannot be used when partition keys include "
                                "expressions.",
                                kind)));
  for (const std::string& column : key)
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      throw QueryError(
          MakeError(sqlstate::kFeatureNotSupported,
                    "unique constraint on partitioned table must include all partitioning columns")
              .Detail(fmt::format("{} constraint on table \"{}\" lacks column \"{}\" which is part "
                                  "of the partition key.",
                                  kind, table.name, column)));
}

namespace {

[[noreturn]] void RefuseForeignKey(const Relation& table, const Relation& other,
                                   const std::string& why) {
  throw QueryError(MakeError(sqlstate::kFeatureNotSupported,
                             "foreign key from table \"{}\" to table \"{}\" cannot be enforced",
                             table.name, other.name)
                       .Detail(why));
}

bool ChangesRows(std::string_view action, bool also_cascade) {
  return action == "n" || action == "d" || (also_cascade && action == "c");
}

std::vector<std::string> ReferencedColumns(const Relation& other,
                                           const PgQuery__Constraint& constraint) {
  std::vector<std::string> columns = StringList(constraint.pk_attrs, constraint.n_pk_attrs);
  if (columns.empty())
    for (int column : other.primary_key)
      columns.push_back(other.columns[static_cast<size_t>(column)].name);
  return columns;
}

}  // namespace

void CheckForeignKey(Ddl& ddl, const Relation& table, const PgQuery__Constraint& constraint,
                     const std::vector<std::string>& columns) {
  const Relation& other = GetRelation(ddl, *constraint.pktable);
  if (!other.is_distributed()) {
    if (other.kind == RelationKind::kView)
      Throw(sqlstate::kWrongObjectType, "referenced relation \"{}\" is not a table", other.name);
    RefuseForeignKey(table, other, "The referenced table was not made by CREATE TABLE here.");
  }
  std::vector<std::string> referenced = ReferencedColumns(other, constraint);
  for (const std::string& name : referenced)
    if (other.FindColumn(name) < 0)
      Throw(sqlstate::kUndefinedColumn,
            "column \"{}\" referenced in foreign key constraint does not exist", name);
  std::vector<Oid> servers = ServersOf(ddl, table), others = ServersOf(ddl, other);
  if (other.distribution == Distribution::kReplicated) {
    for (Oid server : servers)
      if (std::find(others.begin(), others.end(), server) == others.end())
        RefuseForeignKey(table, other, "The referenced table is not on every server of the table.");
    return;
  }
  if (table.distribution != Distribution::kHash || other.distribution != Distribution::kHash)
    RefuseForeignKey(table, other,
                     "A row and the row that it references may lie on different servers: only a "
                     "replicated table, or one that is spread by the referenced columns alike, can "
                     "be referenced.");
  std::vector<std::string> key = KeyColumns(table), other_key = KeyColumns(other);
  bool alike = servers == others && table.key.types == other.key.types && !key.empty() &&
               key.size() == other_key.size();
  for (size_t i = 0; alike && i < key.size(); i++) {
    size_t at =
        static_cast<size_t>(std::find(columns.begin(), columns.end(), key[i]) - columns.begin());
    alike = at < columns.size() && at < referenced.size() && referenced[at] == other_key[i];
  }
  if (!alike)
    RefuseForeignKey(table, other,
                     "A row and the row that it references may lie on different servers: the two "
                     "tables' partition keys must be referencing and referenced columns.");
  if (ChangesRows(Text(constraint.fk_del_action), false) ||
      ChangesRows(Text(constraint.fk_upd_action), true))
    RefuseForeignKey(table, other,
                     "Its action would change the partition key of rows, which then would have to "
                     "move to another server.");
}

void CheckConstraint(Ddl& ddl, const Relation& table, const PgQuery__Constraint& constraint,
                     const std::string& column) {
  std::vector<std::string> columns;
  if (!column.empty()) columns.push_back(column);
  auto keys = [&] {
    std::vector<std::string> named = StringList(constraint.keys, constraint.n_keys);
    return named.empty() ? columns : named;
  };
  switch (constraint.contype) {
    case PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY:
      return CheckUniqueColumns(ddl, table, "PRIMARY KEY", keys());
    case PG_QUERY__CONSTR_TYPE__CONSTR_UNIQUE:
      return CheckUniqueColumns(ddl, table, "UNIQUE", keys());
    case PG_QUERY__CONSTR_TYPE__CONSTR_EXCLUSION:
      if (table.distribution != Distribution::kReplicated)
        Refuse("an exclusion constraint on a table that is spread over servers is not supported");
      return;
    case PG_QUERY__CONSTR_TYPE__CONSTR_FOREIGN: {
      std::vector<std::string> named = StringList(constraint.fk_attrs, constraint.n_fk_attrs);
      return CheckForeignKey(ddl, table, constraint, named.empty() ? columns : named);
    }
    default:
      return;
  }
}

}  // namespace sluice
