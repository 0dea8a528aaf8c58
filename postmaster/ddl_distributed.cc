// CREATE TABLE that makes a table on the servers.
#include "postmaster/ddl_distributed.h"

#include "catalog/partition.h"

namespace sluice {

namespace {

// shard2 before shard10.
bool NaturalLess(std::string_view a, std::string_view b) {
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t end_a = i, end_b = j;
      while (end_a < a.size() && digit(a[end_a])) end_a++;
      while (end_b < b.size() && digit(b[end_b])) end_b++;
      std::string_view left = a.substr(i, end_a - i), right = b.substr(j, end_b - j);
      while (left.size() > 1 && left[0] == '0') left.remove_prefix(1);
      while (right.size() > 1 && right[0] == '0') right.remove_prefix(1);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      i = end_a, j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      i++, j++;
    }
  }
  return a.size() - i < b.size() - j;
}

// What WITH (…) says of the placement; those options are Sluice's, the others the shards'.
struct PlacementOptions {
  std::string distribution, colocate_with;
};

bool IsPlacementOption(const PgQuery__DefElem& option) {
  std::string_view name = Text(option.defname);
  return Text(option.defnamespace).empty() && (name == "distribution" || name == "colocate_with");
}

PlacementOptions ReadOptions(Ddl& ddl, const PgQuery__CreateStmt& create) {
  PlacementOptions options;
  for (size_t i = 0; i < create.n_options; i++) {
    const PgQuery__DefElem& option = *create.options[i]->def_elem;
    if (!IsPlacementOption(option)) continue;
    std::string value;
    if (option.arg != nullptr && option.arg->node_case == PG_QUERY__NODE__NODE_TYPE_NAME) {
      const PgQuery__TypeName& word = *option.arg->type_name;  // distribution = hash
      value = StringOf(word.names[word.n_names - 1]);
    } else {
      value = StringOf(option.arg);
    }
    if (Text(option.defname) == "colocate_with") {
      options.colocate_with = value;
      continue;
    }
    if (value != "hash" && value != "even" && value != "replicated" && value != "none")
      throw QueryError(MakeError(sqlstate::kInvalidParameterValue,
                                 "invalid value for option \"distribution\": \"{}\"", value)
                           .Hint("Available values: hash, even, replicated, none."));
    options.distribution = value;
  }
  if (options.distribution.empty() && ddl.context.default_distribution != "auto" &&
      create.partspec == nullptr)
    options.distribution = ddl.context.default_distribution;
  return options;
}

bool IsHash(const PgQuery__PartitionSpec* spec) {
  return spec != nullptr && strcasecmp(spec->strategy, "hash") == 0;
}

// The columns that the first constraint of the kind names.
std::vector<std::string> KeyOf(const PgQuery__CreateStmt& create, PgQuery__ConstrType type) {
  for (size_t i = 0; i < create.n_table_elts; i++) {
    const RawNode& node = *create.table_elts[i];
    if (node.node_case == PG_QUERY__NODE__NODE_CONSTRAINT && node.constraint->contype == type)
      return StringList(node.constraint->keys, node.constraint->n_keys);
    if (node.node_case != PG_QUERY__NODE__NODE_COLUMN_DEF) continue;
    for (size_t k = 0; k < node.column_def->n_constraints; k++)
      if (node.column_def->constraints[k]->constraint->contype == type)
        return {node.column_def->colname};
  }
  return {};
}

bool CanBeKey(const Ddl& ddl, const ColumnInfo& column) {
  if (!HasKnownHash(column.type)) return false;
  auto collation = ddl.catalog.collations.find(column.collation);
  return collation == ddl.catalog.collations.end() || collation->second.deterministic;
}

// The first column of the primary key (else of a UNIQUE constraint) by whose hash rows can be
// spread: the tables of an application mostly have what they belong to in front, so that a parent
// and its children lie together. Empty: no key.
std::string DefaultKey(const Ddl& ddl, const PgQuery__CreateStmt& create, const Relation& table) {
  for (auto type : {PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY, PG_QUERY__CONSTR_TYPE__CONSTR_UNIQUE}) {
    std::vector<std::string> columns = KeyOf(create, type);
    if (columns.empty() && type == PG_QUERY__CONSTR_TYPE__CONSTR_PRIMARY)
      for (int column : table.primary_key)  // LIKE … INCLUDING INDEXES
        columns.push_back(table.columns[static_cast<size_t>(column)].name);
    for (const std::string& name : columns) {
      int column = table.FindColumn(name);
      if (column < 0)
        Throw(sqlstate::kUndefinedColumn, "column \"{}\" named in key does not exist", name);
      if (CanBeKey(ddl, table.columns[static_cast<size_t>(column)])) return name;
    }
    if (!columns.empty())
      Refuse("a table that is spread by hash of type {} is not supported",
             FormatTypeName(table.columns[static_cast<size_t>(table.FindColumn(columns[0]))].type));
  }
  return "";
}

void CheckKeyTypes(const Ddl& ddl, const Relation& table) {
  for (size_t i = 0; i < table.key.types.size(); i++) {
    ColumnInfo probe;
    probe.type = table.key.types[i];
    probe.collation = table.key.collations[i];
    if (!CanBeKey(ddl, probe))
      Refuse("a table that is spread by hash of type {}{} is not supported",
             FormatTypeName(probe.type),
             HasKnownHash(probe.type) ? " under a nondeterministic collation" : "");
  }
}

void SetDistribution(Ddl& ddl, const PgQuery__CreateStmt& create, const PlacementOptions& options,
                     Relation* table) {
  std::string key = DefaultKey(ddl, create, *table);
  bool hash = create.partspec != nullptr || options.distribution == "hash" ||
              !options.colocate_with.empty() || (options.distribution.empty() && !key.empty());
  if (create.partspec != nullptr && !options.distribution.empty() && options.distribution != "hash")
    Throw(sqlstate::kInvalidTableDefinition, "a table partitioned by hash cannot be {}",
          options.distribution);
  if (options.distribution == "replicated") {
    table->kind = RelationKind::kReplicated;
    table->distribution = Distribution::kReplicated;
  } else if (!hash || options.distribution == "even") {
    table->distribution = Distribution::kEven;
  } else {
    table->distribution = Distribution::kHash;
    if (create.partspec != nullptr) {
      SetPartitionKey(ddl, *create.partspec, table);
    } else if (key.empty()) {
      throw QueryError(MakeError(sqlstate::kInvalidTableDefinition,
                                 "table \"{}\" has no key to spread it by", table->name)
                           .Hint("Say PARTITION BY HASH (column)."));
    } else {
      SetPartitionExpressions(ddl, PartitionStrategy::kHash, {QuoteIdentifier(key)}, table);
    }
    CheckKeyTypes(ddl, *table);
  }
}

// colocate_with: the servers, and the rule, of another table.
std::vector<Oid> PlacementServers(Ddl& ddl, const PlacementOptions& options,
                                  const Relation& table) {
  if (options.colocate_with.empty()) return AllShardServers(ddl);
  std::string_view name = options.colocate_with;
  size_t dot = name.find('.');
  const Relation* other = dot == name.npos
                              ? ddl.catalog.FindRelation(ddl.context.search_path, name)
                              : ddl.catalog.FindRelation(name.substr(0, dot), name.substr(dot + 1));
  if (other == nullptr) Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name);
  if (other->distribution != Distribution::kHash || table.distribution != Distribution::kHash)
    Throw(sqlstate::kInvalidParameterValue,
          "only tables that are spread by hash can be colocated: \"{}\" is not",
          other->distribution != Distribution::kHash ? other->name : table.name);
  if (other->key.types != table.key.types)
    throw QueryError(MakeError(sqlstate::kDatatypeMismatch,
                               "table \"{}\" cannot be colocated with table \"{}\"", table.name,
                               other->name)
                         .Detail("Their partition keys have different types."));
  return ServersOf(ddl, *other);
}

void AddLeaves(Ddl& ddl, const std::vector<Oid>& servers, Oid table_oid) {
  for (size_t i = 0; i < servers.size(); i++) {
    Relation& table = ddl.GetRelation(table_oid);
    Relation leaf;
    leaf.oid = ddl.NewOid();
    leaf.schema = table.schema;
    leaf.name = fmt::format("{}_{}", table.name, i + 1);
    leaf.kind = RelationKind::kForeignTable;
    leaf.hidden = true;
    leaf.owner = table.owner;
    leaf.server = servers[i];
    leaf.parent = table_oid;
    leaf.row_estimate = 0;
    if (table.distribution == Distribution::kHash) {
      leaf.bound.modulus = static_cast<int>(servers.size());
      leaf.bound.remainder = static_cast<int>(i);
    }
    table.children.push_back(leaf.oid);
    Oid oid = leaf.oid;
    ddl.catalog.relations.emplace(oid, std::move(leaf));
  }
}

void CheckConstraints(Ddl& ddl, const PgQuery__CreateStmt& create, const Relation& table) {
  for (size_t i = 0; i < create.n_table_elts; i++) {
    const RawNode& node = *create.table_elts[i];
    if (node.node_case == PG_QUERY__NODE__NODE_CONSTRAINT)
      CheckConstraint(ddl, table, *node.constraint, "");
    if (node.node_case != PG_QUERY__NODE__NODE_COLUMN_DEF) continue;
    for (size_t k = 0; k < node.column_def->n_constraints; k++)
      CheckConstraint(ddl, table, *node.column_def->constraints[k]->constraint,
                      node.column_def->colname);
  }
}

// A table of the shards that Sluice does not know has the name.
[[noreturn]] void ThrowWithHint(QueryError failure, const Relation& table) {
  if (failure.error.state == sqlstate::kDuplicateTable && failure.error.hint.empty())
    failure.error.hint = fmt::format(
        "A server has a relation of this name. CALL sluice.attach_table('{}') makes a table that "
        "is on all servers known here; WITH (distribution = none) makes a parent of foreign "
        "tables.",
        table.name);
  failure.error.position = 0;
  throw QueryError(std::move(failure.error));
}

// Sequences and defaults that use them, out of the statement for the shards.
struct Sequences {
  std::vector<SequenceColumn> columns;
  std::map<std::string, std::string> defaults;  // by column
};

Sequences TakeSequences(Ddl& ddl, PgQuery__CreateStmt* create) {
  Sequences taken;
  for (size_t i = 0; i < create->n_table_elts; i++) {
    if (create->table_elts[i]->node_case != PG_QUERY__NODE__NODE_COLUMN_DEF) continue;
    PgQuery__ColumnDef* def = create->table_elts[i]->column_def;
    std::string default_sql;
    if (auto column = TakeSequence(ddl, create->relation->relname, def, &default_sql))
      taken.columns.push_back(std::move(*column));
    if (!default_sql.empty()) taken.defaults[def->colname] = default_sql;
  }
  return taken;
}

// LIKE takes defaults and identity from the catalog here: the shards' columns lack them.
void ApplyLike(Ddl& ddl, const PgQuery__CreateStmt& create, Sequences* taken) {
  constexpr uint32_t kDefaults = 1 << 3, kIdentity = 1 << 5;  // TableLikeOption
  for (size_t i = 0; i < create.n_table_elts; i++) {
    if (create.table_elts[i]->node_case != PG_QUERY__NODE__NODE_TABLE_LIKE_CLAUSE) continue;
    const PgQuery__TableLikeClause& like = *create.table_elts[i]->table_like_clause;
    const Relation& from = GetRelation(ddl, *like.relation);
    if (!from.is_distributed())
      Refuse("LIKE of {}, which was not made by CREATE TABLE here, is not supported",
             Describe(ddl, from));
    for (const ColumnInfo& column : from.columns) {
      bool uses_sequence = column.default_sql.find("nextval(") != std::string::npos;
      if ((like.options & kDefaults) != 0 && uses_sequence)
        taken->defaults[column.name] = column.default_sql;
      if ((like.options & kIdentity) != 0 && column.identity != '\0')
        taken->columns.push_back({column.name, column.identity, column.type, nullptr});
    }
  }
}

void AddSequences(Ddl& ddl, const Sequences& taken, Oid table_oid) {
  for (const auto& [name, sql] : taken.defaults) {
    Relation& table = ddl.GetRelation(table_oid);
    table.columns.at(static_cast<size_t>(table.FindColumn(name))).default_sql = sql;
  }
  for (const SequenceColumn& column : taken.columns) {
    Relation& table = ddl.GetRelation(table_oid);
    const PgQuery__Constraint* definition =
        column.definition == nullptr ? nullptr : column.definition->constraint;
    Sequence& sequence = CreateColumnSequence(ddl, table, column.column, column.type,
                                              definition == nullptr ? nullptr : definition->options,
                                              definition == nullptr ? 0 : definition->n_options,
                                              column.identity != '\0');
    ColumnInfo& info = table.columns.at(static_cast<size_t>(table.FindColumn(column.column)));
    info.identity = column.identity;
    if (column.identity != '\0')
      info.sequence = sequence.oid;
    else
      info.default_sql = NextvalOf(sequence);
  }
}

}  // namespace

bool MakesDistributed(const Ddl& ddl, const PgQuery__CreateStmt& create) {
  if (create.n_inh_relations > 0 || create.partbound != nullptr) return false;
  if (create.partspec != nullptr && !IsHash(create.partspec)) return false;
  bool none = ddl.context.default_distribution == "none";
  for (size_t i = 0; i < create.n_options; i++) {
    const PgQuery__DefElem& option = *create.options[i]->def_elem;
    if (!IsPlacementOption(option)) continue;
    none = false;
    if (Text(option.defname) == "colocate_with" || option.arg == nullptr) continue;
    if (option.arg->node_case == PG_QUERY__NODE__NODE_TYPE_NAME)
      none = StringOf(option.arg->type_name->names[0]) == "none";
    else
      none = StringOf(option.arg) == "none";
  }
  return !none;
}

std::vector<Oid> ShardServersIfAny(const Ddl& ddl) {
  std::vector<Oid> servers;
  for (const auto& [oid, server] : ddl.catalog.servers)
    if (server.wrapper == kPostgresWrapper) servers.push_back(oid);
  std::sort(servers.begin(), servers.end(), [&](Oid a, Oid b) {
    return NaturalLess(ddl.catalog.servers.at(a).name, ddl.catalog.servers.at(b).name);
  });
  return servers;
}

std::vector<Oid> AllShardServers(const Ddl& ddl) {
  std::vector<Oid> servers = ShardServersIfAny(ddl);
  if (servers.empty())
    throw QueryError(MakeError(sqlstate::kUndefinedObject, "there is no server of postgres_fdw")
                         .Hint("CREATE SERVER and CREATE USER MAPPING first."));
  return servers;
}

std::vector<Oid> ServersOf(const Ddl& ddl, const Relation& table) {
  std::vector<Oid> servers;
  for (Oid oid : table.children) servers.push_back(ddl.catalog.relations.at(oid).server);
  return servers;
}

void CreateDistributed(Ddl& ddl, const PgQuery__CreateStmt& create) {
  PlacementOptions options = ReadOptions(ddl, create);
  RawNode original = PG_QUERY__NODE__INIT;
  original.node_case = PG_QUERY__NODE__NODE_CREATE_STMT;
  original.create_stmt = const_cast<PgQuery__CreateStmt*>(&create);
  OwnedNode copy = CopyNode(&original);
  PgQuery__CreateStmt* statement = copy->create_stmt;
  if (!Text(create.tablespacename).empty()) Refuse("tablespaces of the servers are not supported");
  if (create.of_typename != nullptr) Refuse("typed tables are not supported");
  Sequences taken = TakeSequences(ddl, statement);
  ApplyLike(ddl, *statement, &taken);
  AllShardServers(ddl);  // before anything else is said

  Relation* table = CreateRelation(ddl, *statement, RelationKind::kInheritsParent, kInvalidOid);
  if (table == nullptr) return;
  Oid oid = table->oid;
  table->row_estimate = 0;
  SetDistribution(ddl, *statement, options, table);
  std::vector<Oid> servers = PlacementServers(ddl, options, *table);
  AddLeaves(ddl, servers, oid);
  CheckConstraints(ddl, *statement, ddl.GetRelation(oid));

  table = &ddl.GetRelation(oid);
  QualifyNames(ddl, copy.get());
  SetText(&statement->relation->schemaname, table->schema);
  statement->if_not_exists = 0;
  RemoveNodes(statement->options, &statement->n_options,
              [](const RawNode& node) { return IsPlacementOption(*node.def_elem); });
  if (statement->partspec != nullptr) {
    pg_query__partition_spec__free_unpacked(statement->partspec, nullptr);
    statement->partspec = nullptr;
  }
  std::vector<std::string> statements;
  if (table->schema != "public")
    statements.push_back("CREATE SCHEMA IF NOT EXISTS " + QuoteIdentifier(table->schema));
  statements.push_back(DeparseStatement(copy.get()));
  try {
    ddl.OnServers(servers, statements);
  } catch (const QueryError& failure) {
    ThrowWithHint(failure, *table);
  }
  ReadBack(ddl, table);
  // Without a key, changes of rows would reach a live view without the old rows.
  if (table->primary_key.empty()) {
    std::string full = "ALTER TABLE " + Qualified(*table) + " REPLICA IDENTITY FULL";
    ddl.OnServers(servers, {full});
  }
  AddSequences(ddl, taken, oid);
  ReadDefaultCollations(ddl, servers, true);
}

void OnEach(Ddl& ddl, const std::vector<RemoteQuery>& queries) {
  std::map<std::string, std::vector<Oid>> by_sql;
  for (const RemoteQuery& query : queries) by_sql[query.sql].push_back(query.server);
  for (const auto& [sql, servers] : by_sql) ddl.OnServers(servers, {sql});
}

void Ddl::OnServers(std::span<const Oid> servers,
                    const std::vector<std::string>& statements) const {
  std::vector<std::string> path;
  for (const std::string& schema : context.search_path) path.push_back(QuoteIdentifier(schema));
  std::string sql = "SET LOCAL search_path = " + (path.empty() ? "pg_catalog" : JoinNames(path));
  for (const std::string& statement : statements) sql += "; " + statement;
  context.run_on_servers(servers, sql + "; SET LOCAL search_path = pg_catalog");
}

}  // namespace sluice
