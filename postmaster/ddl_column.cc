// Column definitions of foreign tables and of parents.
#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

std::string_view WrapperOf(const Ddl& ddl, Oid server) {
  return server == kInvalidOid ? "" : std::string_view(ddl.catalog.servers.at(server).wrapper);
}

// A parent has no server; its types are looked up on the first that may know.
Oid ServerToAsk(const Ddl& ddl, Oid server) {
  if (server != kInvalidOid) return server;
  for (const auto& [oid, candidate] : ddl.catalog.servers)
    if (candidate.wrapper == kPostgresWrapper) return oid;
  return kInvalidOid;
}

[[noreturn]] void RefuseOnForeignTable(Ddl& ddl, const char* what, int location) {
  ddl.ThrowAt(MakeError(sqlstate::kFeatureNotSupported,
                        "{} constraints are not supported on foreign tables", what),
              location);
}

}  // namespace

ColumnInfo InheritedColumn(const ColumnInfo& column) {
  ColumnInfo inherited;
  inherited.name = column.name;
  inherited.type = column.type;
  inherited.typmod = column.typmod;
  inherited.collation = column.collation;
  inherited.not_null = column.not_null;
  inherited.default_sql = column.default_sql;
  return inherited;
}

bool ApplyColumnDefinition(Ddl& ddl, const PgQuery__ColumnDef& def, Oid server,
                           ColumnInfo* column) {
  bool foreign = server != kInvalidOid, primary = false;
  for (size_t i = 0; i < def.n_constraints; i++) {
    const PgQuery__Constraint& constraint = *def.constraints[i]->constraint;
    switch (constraint.contype) {
      case PG_QUERY__CONSTR_TYPE__CONSTR_NULL:
        column->not_null = false;
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_NOTNULL:
        column->not_null = true;
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_DEFAULT:
        column->default_sql = DeparseExpression(constraint.raw_expr);
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY:
        if (foreign) RefuseOnForeignTable(ddl, "primary key", constraint.location);
        column->not_null = primary = true;
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_UNIQUE:
        if (foreign) RefuseOnForeignTable(ddl, "unique", constraint.location);
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_FOREIGN:
        if (foreign) RefuseOnForeignTable(ddl, "foreign key", constraint.location);
        break;
      case PG_QUERY__CONSTR_TYPE__CONSTR_IDENTITY:
        column->not_null = true;
        break;
      default:
        break;  // CHECK, GENERATED: the shards compute and check
    }
  }
  if (def.n_fdwoptions > 0 && !foreign)
    Throw(sqlstate::kWrongObjectType, "column options are for foreign tables only");
  ChangeOptions(ddl, def.fdwoptions, def.n_fdwoptions, &column->options);
  if (foreign) CheckOptions(WrapperOf(ddl, server), OptionContext::kColumn, column->options);
  return primary;
}

ColumnInfo MakeColumn(Ddl& ddl, const PgQuery__ColumnDef& def, Oid server) {
  ColumnInfo column;
  column.name = def.colname;
  Oid ask = ServerToAsk(ddl, server);
  TypeAndMod type = ResolveType(ddl, *def.type_name, ask);
  column.type = type.type;
  column.typmod = type.typmod;
  column.collation = FindType(type.type)->collation;
  if (def.coll_clause != nullptr) {
    if (column.collation == kInvalidOid)
      ddl.ThrowAt(MakeError(sqlstate::kDatatypeMismatch, "collations are not supported by type {}",
                            FormatTypeName(type.type)),
                  def.coll_clause->location);
    column.collation = ResolveCollation(ddl, *def.coll_clause, ask);
  }
  return column;
}

void SetPrimaryKey(Relation* relation, const std::vector<std::string>& names) {
  if (!relation->primary_key.empty())
    Throw(sqlstate::kInvalidTableDefinition,
          "multiple primary keys for table \"{}\" are not allowed", relation->name);
  for (const std::string& name : names) {
    int column = relation->FindColumn(name);
    if (column < 0)
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" named in key does not exist", name);
    relation->columns[static_cast<size_t>(column)].not_null = true;
    relation->primary_key.push_back(column);
  }
}

}  // namespace sluice
