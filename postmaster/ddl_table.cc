// CREATE FOREIGN TABLE, and CREATE TABLE for parents: partitioned tables, and plain ones that
// foreign tables inherit from.
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

void AddColumn(Relation* relation, ColumnInfo column) {
  if (relation->FindColumn(column.name) >= 0)
    Throw(sqlstate::kDuplicateColumn, "column \"{}\" specified more than once", column.name);
  relation->columns.push_back(std::move(column));
}

// A column of the statement that an inherited one has the name of.
void MergeInherited(Ddl& ddl, const ColumnInfo& own, bool moved, ColumnInfo* inherited) {
  if (own.type != inherited->type || own.typmod != inherited->typmod)
    throw QueryError(
        MakeError(sqlstate::kDatatypeMismatch, "column \"{}\" has a type conflict", own.name)
            .Detail(fmt::format("{} versus {}", FormatType(inherited->type, inherited->typmod),
                                FormatType(own.type, own.typmod))));
  if (own.collation != inherited->collation)
    Throw(sqlstate::kCollationMismatch, "column \"{}\" has a collation conflict", own.name);
  if (moved)
    ddl.Notice(MakeError(sqlstate::kSuccess,
                         "moving and merging column \"{}\" with inherited definition", own.name)
                   .Detail("User-specified column moved to the position of the inherited column."));
  else
    ddl.Notice(
        MakeError(sqlstate::kSuccess, "merging column \"{}\" with inherited definition", own.name));
  inherited->not_null = inherited->not_null || own.not_null;
  if (!own.default_sql.empty()) inherited->default_sql = own.default_sql;
  inherited->options = own.options;
}

// `position`: of the definition in the statement.
void AddDefinition(Ddl& ddl, const PgQuery__ColumnDef& def, int position, size_t inherited_count,
                   Relation* relation) {
  int existing = relation->FindColumn(def.colname);
  bool primary;
  if (def.type_name == nullptr) {  // PARTITION OF p (column NOT NULL)
    if (existing < 0)
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", def.colname);
    primary = ApplyColumnDefinition(ddl, def, relation->server,
                                    &relation->columns[static_cast<size_t>(existing)]);
  } else {
    ColumnInfo column = MakeColumn(ddl, def, relation->server);
    primary = ApplyColumnDefinition(ddl, def, relation->server, &column);
    if (existing >= 0 && static_cast<size_t>(existing) < inherited_count)
      MergeInherited(ddl, column, existing != position,
                     &relation->columns[static_cast<size_t>(existing)]);
    else
      AddColumn(relation, std::move(column));
  }
  if (primary) SetPrimaryKey(relation, {def.colname});
}

void AddTableConstraint(Ddl& ddl, const PgQuery__Constraint& constraint, Relation* relation) {
  bool foreign = relation->kind == RelationKind::kForeignTable;
  const char* what = nullptr;
  switch (constraint.contype) {
    case PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY:
      what = "primary key";
      break;
    case PG_QUERY__CONSTR_TYPE__CONSTR_UNIQUE:
      what = "unique";
      break;
    case PG_QUERY__CONSTR_TYPE__CONSTR_FOREIGN:
      what = "foreign key";
      break;
    case PG_QUERY__CONSTR_TYPE__CONSTR_EXCLUSION:
      what = "exclusion";
      break;
    default:
      break;
  }
  if (foreign && what != nullptr)
    ddl.ThrowAt(MakeError(sqlstate::kFeatureNotSupported,
                          "{} constraints are not supported on foreign tables", what),
                constraint.location);
  if (constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY)
    SetPrimaryKey(relation, StringList(constraint.keys, constraint.n_keys));
}

void AddLike(Ddl& ddl, const PgQuery__TableLikeClause& like, Relation* relation) {
  const Relation& from = GetRelation(ddl, *like.relation);
  for (const ColumnInfo& column : from.columns) {
    ColumnInfo copy = InheritedColumn(column);
    copy.default_sql.clear();
    AddColumn(relation, std::move(copy));
  }
  constexpr uint32_t kIndexes = 1 << 6;  // TableLikeOption
  if ((like.options & kIndexes) == 0 || !from.is_distributed()) return;
  for (int column : from.primary_key)
    relation->primary_key.push_back(
        relation->FindColumn(from.columns[static_cast<size_t>(column)].name));
}

// Columns and constraints of the statement, after those of the parent.
void AddElements(Ddl& ddl, const PgQuery__CreateStmt& create, Relation* relation) {
  size_t inherited_count = relation->columns.size();
  for (size_t i = 0; i < create.n_table_elts; i++) {
    const RawNode& node = *create.table_elts[i];
    if (node.node_case == PG_QUERY__NODE__NODE_COLUMN_DEF)
      AddDefinition(ddl, *node.column_def, static_cast<int>(i), inherited_count, relation);
    else if (node.node_case == PG_QUERY__NODE__NODE_TABLE_LIKE_CLAUSE)
      AddLike(ddl, *node.table_like_clause, relation);
  }
  // Constraints may name columns that come later.
  for (size_t i = 0; i < create.n_table_elts; i++)
    if (create.table_elts[i]->node_case == PG_QUERY__NODE__NODE_CONSTRAINT)
      AddTableConstraint(ddl, *create.table_elts[i]->constraint, relation);
  for (size_t i = 0; i < create.n_constraints; i++)
    AddTableConstraint(ddl, *create.constraints[i]->constraint, relation);
}

Relation* ParentOf(Ddl& ddl, const PgQuery__CreateStmt& create) {
  if (create.n_inh_relations == 0) return nullptr;
  if (create.n_inh_relations > 1) Refuse("a table with several parents is not supported");
  Relation& parent = GetRelation(ddl, *create.inh_relations[0]->range_var);
  bool partition = create.partbound != nullptr;
  CheckParent(ddl, parent);
  if (parent.kind == RelationKind::kView)
    Throw(sqlstate::kWrongObjectType, "inherited relation \"{}\" is not a table or foreign table",
          parent.name);
  if (partition && parent.kind != RelationKind::kPartitioned)
    Throw(sqlstate::kInvalidObjectDefinition, "\"{}\" is not partitioned", parent.name);
  if (!partition && parent.kind == RelationKind::kPartitioned)
    Throw(sqlstate::kWrongObjectType, "cannot inherit from partitioned table \"{}\"", parent.name);
  if (parent.kind == RelationKind::kForeignTable)
    Refuse("a foreign table as a parent is not supported");
  return &parent;
}

}  // namespace

Relation* CreateRelation(Ddl& ddl, const PgQuery__CreateStmt& create, RelationKind kind,
                         Oid server) {
  if (Text(create.relation->relpersistence) == "t") Refuse("temporary tables are not supported");
  std::string schema = CreationSchema(ddl, Text(create.relation->schemaname));
  if (!CheckNameFree(ddl, schema, create.relation->relname, create.if_not_exists)) return nullptr;
  Relation* parent = ParentOf(ddl, create);
  Relation relation;
  relation.oid = ddl.NewOid();
  relation.schema = schema;
  relation.name = create.relation->relname;
  relation.kind = kind;
  relation.server = server;
  relation.owner = ddl.context.user;
  if (parent != nullptr) {
    for (const ColumnInfo& column : parent->columns)
      relation.columns.push_back(InheritedColumn(column));
    relation.primary_key = parent->primary_key;
  }
  AddElements(ddl, create, &relation);
  Oid oid = relation.oid;
  Relation& added = ddl.catalog.relations.emplace(oid, std::move(relation)).first->second;
  if (parent == nullptr) return &added;
  if (create.partbound != nullptr) {
    PartitionBound bound = MakeBound(ddl, *parent, *create.partbound);
    LinkPartition(ddl, parent, &added, std::move(bound), BoundLocation(*create.partbound));
  } else {
    LinkChild(ddl, parent, &added);
  }
  return &added;
}

void CreateForeignTable(Ddl& ddl, const PgQuery__CreateForeignTableStmt& create) {
  const Server& server = GetServer(ddl, create.servername);
  Options options = NewOptions(ddl, create.options, create.n_options);
  CheckOptions(server.wrapper, OptionContext::kTable, options);
  Relation* relation =
      CreateRelation(ddl, *create.base_stmt, RelationKind::kForeignTable, server.oid);
  if (relation == nullptr) return;
  relation->options = std::move(options);
  ReadDefaultCollations(ddl, std::span(&server.oid, 1), false);
}

void CreateTable(Ddl& ddl, const PgQuery__CreateStmt& create) {
  if (MakesDistributed(ddl, create)) return CreateDistributed(ddl, create);
  bool partitioned = create.partspec != nullptr;
  if (create.of_typename != nullptr) Refuse("typed tables are not supported");
  if (create.partbound != nullptr && !partitioned)
    Refuse("a partition that holds rows here is not supported: partitions are foreign tables");
  if (partitioned && create.n_inh_relations > 0 && create.partbound == nullptr)
    Throw(sqlstate::kInvalidTableDefinition,
          "cannot create partitioned table as inheritance child");
  Relation* relation = CreateRelation(
      ddl, create, partitioned ? RelationKind::kPartitioned : RelationKind::kInheritsParent,
      kInvalidOid);
  if (relation == nullptr) return;
  if (partitioned) {
    SetPartitionKey(ddl, *create.partspec, relation);
  } else {
    relation->row_estimate = 0;
    ddl.Notice(
        MakeError(sqlstate::kSuccess, "table \"{}\" holds no rows of its own", relation->name)
            .Hint("It can be the parent of foreign tables that inherit from it."));
  }
}

}  // namespace sluice
