#include "postmaster/attach.h"

#include <cctype>

#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

// --- arguments of CALL

struct Arguments {
  std::map<std::string, const RawNode*> by_name;

  const RawNode* Find(const char* name) const {
    auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
};

// Positional ones first, in the order of `names`; then by name.
Arguments ReadArguments(Ddl& ddl, const PgQuery__FuncCall& call,
                        std::span<const char* const> names) {
  Arguments arguments;
  for (size_t i = 0; i < call.n_args; i++) {
    const RawNode* node = call.args[i];
    std::string name;
    if (node->node_case == PG_QUERY__NODE__NODE_NAMED_ARG_EXPR) {
      name = node->named_arg_expr->name;
      node = node->named_arg_expr->arg;
    } else if (i < names.size()) {
      name = names[i];
    }
    auto known =
        std::find_if(names.begin(), names.end(), [&](const char* each) { return name == each; });
    if (known == names.end() || !arguments.by_name.emplace(name, node).second)
      ddl.ThrowAt(
          MakeError(sqlstate::kUndefinedFunction, "procedure {} does not take argument \"{}\"",
                    StringOf(call.funcname[call.n_funcname - 1]), name),
          call.location);
  }
  return arguments;
}

// A text constant; nullopt: not given, or NULL.
std::optional<std::string> TextArgument(const Arguments& arguments, const char* name) {
  const RawNode* node = arguments.Find(name);
  while (node != nullptr && node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST)
    node = node->type_cast->arg;
  if (node == nullptr) return std::nullopt;
  if (node->node_case == PG_QUERY__NODE__NODE_A_CONST) {
    if (node->a_const->isnull) return std::nullopt;
    if (node->a_const->val_case == PG_QUERY__A__CONST__VAL_SVAL) return std::string(StringOf(node));
  }
  Throw(sqlstate::kInvalidParameterValue, "argument \"{}\" must be a text constant", name);
}

std::vector<std::string> SplitTrimmed(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (!part.empty() && std::isspace(static_cast<unsigned char>(part.front())))
      part.remove_prefix(1);
    while (!part.empty() && std::isspace(static_cast<unsigned char>(part.back())))
      part.remove_suffix(1);
    parts.emplace_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// 'a, b', '{a,b}' or ARRAY['a', 'b'].
std::vector<std::string> ListArgument(const Arguments& arguments, const char* name) {
  const RawNode* node = arguments.Find(name);
  if (node != nullptr && node->node_case == PG_QUERY__NODE__NODE_A_ARRAY_EXPR)
    return StringList(node->a_array_expr->elements, node->a_array_expr->n_elements);
  std::optional<std::string> text = TextArgument(arguments, name);
  if (!text) return {};
  if (text->starts_with("{") && text->ends_with("}")) text = text->substr(1, text->size() - 2);
  return SplitTrimmed(*text, ',');
}

std::vector<Oid> NamedServers(Ddl& ddl, const std::vector<std::string>& names) {
  std::vector<Oid> servers;
  for (const std::string& name : names) servers.push_back(GetServer(ddl, name).oid);
  if (names.empty()) return AllShardServers(ddl);
  for (Oid oid : servers)
    if (ddl.catalog.servers.at(oid).wrapper != kPostgresWrapper)
      Throw(sqlstate::kWrongObjectType, "server \"{}\" is not a server of postgres_fdw",
            ddl.catalog.servers.at(oid).name);
  return servers;
}

void ReadRule(const std::string& rule, AttachRequest* request) {
  size_t end = rule.find(' ');
  std::string word = rule.substr(0, end);
  request->values = end == rule.npos ? "" : rule.substr(end + 1);
  if (word == "hash")
    request->strategy = PartitionStrategy::kHash;
  else if (word == "list")
    request->strategy = PartitionStrategy::kList;
  else if (word == "range")
    request->strategy = PartitionStrategy::kRange;
  else
    throw QueryError(MakeError(sqlstate::kInvalidParameterValue, "unrecognized rule \"{}\"", rule)
                         .Hint("Rules are hash, list and range."));
}

// Whether the first parenthesis is closed by the last character: "(a % 4)", not "(a) + (b)".
bool Enclosed(std::string_view sql) {
  int depth = 0;
  for (size_t i = 0; i < sql.size(); i++) {
    if (sql[i] == '\'' || sql[i] == '"')
      return false;  // not worth a scanner: one pair more does no harm
    depth += (sql[i] == '(') - (sql[i] == ')');
    if (depth == 0 && i + 1 < sql.size()) return false;
  }
  return !sql.empty() && sql[0] == '(' && depth == 0;
}

AttachRequest ReadRequest(Ddl& ddl, const PgQuery__FuncCall& call) {
  static constexpr const char* kNames[] = {"name",       "schema", "servers", "partition_column",
                                           "expression", "rule"};
  Arguments arguments = ReadArguments(ddl, call, kNames);
  AttachRequest request;
  std::optional<std::string> name = TextArgument(arguments, "name");
  if (!name) Throw(sqlstate::kInvalidParameterValue, "attach_table needs the name of a table");
  request.name = *name;
  request.schema = TextArgument(arguments, "schema").value_or("public");
  request.servers = NamedServers(ddl, ListArgument(arguments, "servers"));
  for (const std::string& column : ListArgument(arguments, "partition_column"))
    request.expressions.push_back(QuoteIdentifier(column));
  if (auto expression = TextArgument(arguments, "expression"))
    request.expressions.push_back(Enclosed(*expression) ? *expression : "(" + *expression + ")");
  std::optional<std::string> rule = TextArgument(arguments, "rule");
  if (rule) ReadRule(*rule, &request);
  if (rule.has_value() == request.expressions.empty())
    Throw(sqlstate::kInvalidParameterValue,
          "a rule needs a column or an expression, and these need a rule");
  if (request.strategy == PartitionStrategy::kList && request.expressions.size() > 1)
    Throw(sqlstate::kInvalidParameterValue, "rule list is by one column or expression");
  return request;
}

// --- attach

Relation& AddChild(Ddl& ddl, const AttachRequest& request, size_t index, const RemoteTable& remote,
                   const Relation& parent) {
  Relation child;
  child.oid = ddl.NewOid();
  child.schema = parent.schema;
  child.name = fmt::format("{}_{}", request.name, index + 1);
  CheckNameFree(ddl, child.schema, child.name, false);
  child.kind = RelationKind::kForeignTable;
  child.owner = ddl.context.user;
  child.server = request.servers[index];
  child.options = {{"schema_name", remote.schema}, {"table_name", remote.name}};
  for (const ColumnInfo& column : parent.columns) child.columns.push_back(InheritedColumn(column));
  child.primary_key = parent.primary_key;
  StoreStatistics(remote, &child);
  Oid oid = child.oid;
  return ddl.catalog.relations.emplace(oid, std::move(child)).first->second;
}

void AttachTable(Ddl& ddl, const PgQuery__FuncCall& call) {
  AttachRequest request = ReadRequest(ddl, call);
  if (!ddl.catalog.HasSchema(request.schema)) {
    Oid oid = ddl.NewOid();
    ddl.catalog.schemas[request.schema] = {oid, ddl.context.user, {}};
  }
  std::string schema = CreationSchema(ddl, request.schema);
  CheckNameFree(ddl, schema, request.name, false);
  std::vector<RemoteTable> tables = ReadSameTables(ddl, request);

  Relation new_parent;
  new_parent.oid = ddl.NewOid();
  new_parent.schema = schema;
  new_parent.name = request.name;
  new_parent.kind = RelationKind::kInheritsParent;
  new_parent.owner = ddl.context.user;
  for (const RemoteColumn& column : tables[0].columns)
    new_parent.columns.push_back(LocalColumn(ddl, request.servers[0], column));
  // Types by name may still differ in their labels: every server's are looked at.
  for (size_t i = 1; i < tables.size(); i++)
    for (const RemoteColumn& column : tables[i].columns)
      LocalColumn(ddl, request.servers[i], column);
  for (const RemoteTable& table : tables)
    for (const RemoteColumn& column : table.columns)
      if (!column.not_null)
        new_parent.columns[static_cast<size_t>(new_parent.FindColumn(column.name))].not_null =
            false;
  SetPrimaryKey(&new_parent, tables[0].primary_key);
  Oid oid = new_parent.oid;
  Relation& parent = ddl.catalog.relations.emplace(oid, std::move(new_parent)).first->second;

  std::vector<PartitionBound> bounds(tables.size());
  if (request.strategy != PartitionStrategy::kNone) {
    SetPartitionExpressions(ddl, request.strategy, request.expressions, &parent);
    bounds = AttachBounds(ddl, request, parent);
  }
  for (size_t i = 0; i < tables.size(); i++) {
    Relation& child = AddChild(ddl, request, i, tables[i], parent);
    if (request.strategy == PartitionStrategy::kNone)
      LinkChild(ddl, &parent, &child);
    else
      LinkPartition(ddl, &parent, &child, std::move(bounds[i]), -1);
  }
  SumStatistics(ddl, &parent);
  ReadDefaultCollations(ddl, request.servers, true);
}

// --- detach, analyze

Relation& NamedTable(Ddl& ddl, const std::string& schema, const std::string& name) {
  const Relation* found = ddl.catalog.FindRelation(schema, name);
  if (found == nullptr)
    Throw(sqlstate::kUndefinedTable, "relation \"{}.{}\" does not exist", schema, name);
  return ddl.GetRelation(found->oid);
}

void DetachTable(Ddl& ddl, const PgQuery__FuncCall& call) {
  static constexpr const char* kNames[] = {"name", "schema"};
  Arguments arguments = ReadArguments(ddl, call, kNames);
  std::optional<std::string> name = TextArgument(arguments, "name");
  if (!name) Throw(sqlstate::kInvalidParameterValue, "detach_table needs the name of a table");
  Relation& relation = NamedTable(ddl, TextArgument(arguments, "schema").value_or("public"), *name);
  if (relation.kind == RelationKind::kView)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a table", relation.name);
  if (relation.is_distributed())
    throw QueryError(MakeError(sqlstate::kWrongObjectType,
                               "table \"{}\" was made by CREATE TABLE here", relation.name)
                         .Hint("Use DROP TABLE."));
  DropRelationTree(ddl, relation.oid);
}

// Foreign tables of postgres_fdw at or below the relations.
std::vector<Relation*> LeavesOf(Ddl& ddl, std::span<const Oid> relations) {
  std::set<Oid> seen;
  std::vector<Relation*> leaves;
  for (Oid oid : relations)
    for (const Relation* leaf : ddl.catalog.Leaves(ddl.catalog.relations.at(oid)))
      if (ddl.catalog.servers.at(leaf->server).wrapper == kPostgresWrapper &&
          seen.insert(leaf->oid).second)
        leaves.push_back(&ddl.GetRelation(leaf->oid));
  return leaves;
}

void Refresh(Ddl& ddl, std::span<const Oid> relations) {
  std::vector<Relation*> leaves = LeavesOf(ddl, relations);
  std::map<std::string, std::vector<Relation*>> by_schema;  // of the shards
  std::set<Oid> servers, parents;
  for (Relation* leaf : leaves) {
    by_schema[leaf->remote_schema()].push_back(leaf);
    servers.insert(leaf->server);
    if (leaf->parent != kInvalidOid) parents.insert(leaf->parent);
  }
  for (auto& [schema, tables] : by_schema) {
    std::set<std::string> names;
    std::set<Oid> asked;
    for (const Relation* table : tables) {
      names.insert(table->remote_table());
      asked.insert(table->server);
    }
    std::vector<std::string> name_list(names.begin(), names.end());
    std::vector<Oid> server_list(asked.begin(), asked.end());
    auto remote = ReadRemoteTables(ddl, server_list, schema, &name_list);
    for (Relation* table : tables) {
      size_t server = static_cast<size_t>(
          std::find(server_list.begin(), server_list.end(), table->server) - server_list.begin());
      for (const RemoteTable& from : remote[server])
        if (from.name == table->remote_table()) StoreStatistics(from, table);
    }
  }
  for (Oid parent : parents) SumStatistics(ddl, &ddl.GetRelation(parent));
  std::vector<Oid> server_list(servers.begin(), servers.end());
  ReadDefaultCollations(ddl, server_list, true);
  ddl.changed = true;
}

std::vector<Oid> AllRelations(const Ddl& ddl) {
  std::vector<Oid> all;
  for (const auto& [oid, relation] : ddl.catalog.relations) all.push_back(oid);
  return all;
}

void CallAnalyze(Ddl& ddl, const PgQuery__FuncCall& call) {
  static constexpr const char* kNames[] = {"name", "schema"};
  Arguments arguments = ReadArguments(ddl, call, kNames);
  std::optional<std::string> name = TextArgument(arguments, "name");
  if (!name) return Refresh(ddl, AllRelations(ddl));
  Oid oid = NamedTable(ddl, TextArgument(arguments, "schema").value_or("public"), *name).oid;
  Refresh(ddl, std::span(&oid, 1));
}

// The escape hatch: SQL of the caller's own, as a part of the running transaction.
void RunOnServers(Ddl& ddl, const PgQuery__FuncCall& call) {
  static constexpr const char* kNames[] = {"sql", "servers"};
  Arguments arguments = ReadArguments(ddl, call, kNames);
  std::optional<std::string> sql = TextArgument(arguments, "sql");
  if (!sql) Throw(sqlstate::kInvalidParameterValue, "argument \"sql\" is required");
  ddl.context.run_on_servers(NamedServers(ddl, ListArgument(arguments, "servers")), *sql);
}

}  // namespace

bool Call(Ddl& ddl, const PgQuery__CallStmt& statement) {
  const PgQuery__FuncCall& call = *statement.funccall;
  if (call.n_funcname != 2 || StringOf(call.funcname[0]) != "sluice") return false;
  std::string_view name = StringOf(call.funcname[1]);
  if (name == "attach_table")
    AttachTable(ddl, call);
  else if (name == "detach_table")
    DetachTable(ddl, call);
  else if (name == "analyze")
    CallAnalyze(ddl, call);
  else if (name == "run_on_servers")
    RunOnServers(ddl, call);
  else
    ddl.ThrowAt(MakeError(sqlstate::kUndefinedFunction, "procedure sluice.{} does not exist", name),
                call.location);
  return true;
}

void Analyze(Ddl& ddl, const PgQuery__VacuumStmt& analyze) {
  if (analyze.n_rels == 0) return Refresh(ddl, AllRelations(ddl));
  std::vector<Oid> relations;
  for (size_t i = 0; i < analyze.n_rels; i++)
    relations.push_back(GetRelation(ddl, *analyze.rels[i]->vacuum_relation->relation).oid);
  Refresh(ddl, relations);
}

}  // namespace sluice
