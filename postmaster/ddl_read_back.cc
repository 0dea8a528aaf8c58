// What the servers made of a command, from the catalog of the first of them.
#include <nlohmann/json.hpp>

#include "postmaster/ddl_distributed.h"
#include "postmaster/ddl_remote.h"

namespace sluice {

namespace {

using Json = nlohmann::json;

std::string NamesOf(const char* numbers, const char* relation) {
  return fmt::format(
      "(SELECT json_agg(a.attname ORDER BY k.n) FROM unnest({}) WITH ORDINALITY k(num, n)"
      " LEFT JOIN pg_attribute a ON a.attrelid = {} AND a.attnum = k.num AND k.num > 0)",
      numbers, relation);
}

// One row, one document.
std::string ObjectsSql(const Relation& table) {
  return fmt::format(
      "SELECT json_build_object('constraints', (SELECT json_agg(json_build_object("
      "'name', c.conname, 'kind', c.contype, 'columns', {}, 'definition',"
      " pg_get_constraintdef(c.oid), 'index', CASE WHEN c.contype IN ('p', 'u', 'x') THEN"
      " (SELECT x.relname FROM pg_class x WHERE x.oid = c.conindid) END, 'validated',"
      " c.convalidated, 'deferrable', c.condeferrable, 'deferred', c.condeferred,"
      " 'referenced_schema', fn.nspname, 'referenced', f.relname, 'referenced_columns', {},"
      " 'on_update', c.confupdtype, 'on_delete', c.confdeltype, 'match', c.confmatchtype)"
      " ORDER BY c.conname) FROM pg_constraint c LEFT JOIN pg_class f ON f.oid = c.confrelid"
      " LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace WHERE c.conrelid = t.oid AND"
      " c.contype IN ('c', 'f', 'p', 'u', 'x')), 'indexes', (SELECT json_agg(json_build_object("
      "'name', x.relname, 'method', m.amname, 'columns', {}, 'key_columns', i.indnkeyatts,"
      " 'unique', i.indisunique, 'primary', i.indisprimary, 'valid', i.indisvalid,"
      " 'replica_identity', i.indisreplident, 'definition', pg_get_indexdef(i.indexrelid),"
      " 'predicate', pg_get_expr(i.indpred, i.indrelid)) ORDER BY x.relname) FROM pg_index i"
      " JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam"
      " WHERE i.indrelid = t.oid)) FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace"
      " WHERE n.nspname = {} AND t.relname = {}",
      NamesOf("c.conkey", "c.conrelid"), NamesOf("c.confkey", "c.confrelid"),
      NamesOf("i.indkey::int2[]", "i.indrelid"), QuoteLiteral(table.schema),
      QuoteLiteral(table.name));
}

std::string TextOf(const Json& from, const char* field) {
  const Json& value = from.at(field);
  return value.is_null() ? "" : value.get<std::string>();
}

// An index's expression has no name.
std::vector<int> ColumnsOf(const Relation& table, const Json& names) {
  std::vector<int> columns;
  if (names.is_null()) return columns;
  for (const Json& name : names)
    columns.push_back(name.is_null() ? -1 : table.FindColumn(name.get<std::string>()));
  return columns;
}

// Objects that were there before keep their oids.
template <typename T>
Oid OidOf(Ddl& ddl, const std::vector<T>& before, const std::string& name) {
  for (const T& object : before)
    if (object.name == name) return object.oid;
  return ddl.NewOid();
}

Index ReadIndex(Ddl& ddl, const Relation& table, const Json& json) {
  Index index;
  index.name = TextOf(json, "name");
  index.oid = OidOf(ddl, table.indexes, index.name);
  index.method = TextOf(json, "method");
  index.columns = ColumnsOf(table, json.at("columns"));
  index.key_columns = json.at("key_columns");
  index.unique = json.at("unique");
  index.primary = json.at("primary");
  index.valid = json.at("valid");
  index.replica_identity = json.at("replica_identity");
  index.definition = TextOf(json, "definition");
  index.predicate = TextOf(json, "predicate");
  return index;
}

Constraint ReadConstraint(Ddl& ddl, const Relation& table, const std::vector<Index>& indexes,
                          const Json& json) {
  Constraint constraint;
  constraint.name = TextOf(json, "name");
  constraint.oid = OidOf(ddl, table.constraints, constraint.name);
  constraint.kind = static_cast<ConstraintKind>(TextOf(json, "kind").at(0));
  constraint.columns = ColumnsOf(table, json.at("columns"));
  constraint.definition = TextOf(json, "definition");
  std::string index_name = TextOf(json, "index");
  for (const Index& index : indexes)
    if (index.name == index_name) constraint.index = index.oid;
  constraint.validated = json.at("validated");
  constraint.deferrable = json.at("deferrable");
  constraint.deferred = json.at("deferred");
  if (constraint.kind != ConstraintKind::kForeignKey) return constraint;
  // The shards' connections have a search path of their own; here names of public are plain.
  constexpr std::string_view kPublic = " REFERENCES public.";
  if (size_t at = constraint.definition.find(kPublic); at != std::string::npos)
    constraint.definition.replace(at, kPublic.size(), " REFERENCES ");
  const Relation* referenced =
      ddl.catalog.FindRelation(TextOf(json, "referenced_schema"), TextOf(json, "referenced"));
  if (referenced != nullptr) {
    constraint.referenced_table = referenced->oid;
    constraint.referenced_columns = ColumnsOf(*referenced, json.at("referenced_columns"));
  }
  constraint.on_update = TextOf(json, "on_update").at(0);
  constraint.on_delete = TextOf(json, "on_delete").at(0);
  constraint.match = TextOf(json, "match").at(0);
  return constraint;
}

// Whatever way it came (LIKE, USING INDEX): a unique index holds over all servers.
void CheckEnforced(const Ddl& ddl, const Relation& table, const Index& index) {
  if (!index.unique) return;
  std::vector<std::string> columns;
  for (int i = 0; i < index.key_columns; i++)
    if (int column = index.columns[static_cast<size_t>(i)]; column >= 0)
      columns.push_back(table.columns[static_cast<size_t>(column)].name);
  CheckUniqueColumns(ddl, table, index.primary ? "PRIMARY KEY" : "UNIQUE", columns);
}

void ReadObjects(Ddl& ddl, Oid server, Relation* table) {
  RemoteQuery query{server, ObjectsSql(*table)};
  RemoteRows result = std::move(ddl.Remote({&query, 1})[0]);
  if (result.rows.empty() || !result.rows[0][0])
    Throw(sqlstate::kUndefinedTable, "relation \"{}.{}\" does not exist on server \"{}\"",
          table->schema, table->name, ddl.catalog.servers.at(server).name);
  Json json = Json::parse(*result.rows[0][0]);
  std::vector<Index> indexes;
  for (const Json& index : json.at("indexes")) indexes.push_back(ReadIndex(ddl, *table, index));
  std::vector<Constraint> constraints;
  for (const Json& constraint : json.at("constraints"))
    constraints.push_back(ReadConstraint(ddl, *table, indexes, constraint));
  for (const Index& index : indexes) CheckEnforced(ddl, *table, index);
  table->indexes = std::move(indexes);
  table->constraints = std::move(constraints);
  table->primary_key.clear();
  for (const Constraint& constraint : table->constraints)
    if (constraint.kind == ConstraintKind::kPrimaryKey) table->primary_key = constraint.columns;
}

// What the catalog alone knows of a column stays.
ColumnInfo Merged(ColumnInfo column, const RemoteColumn& remote, const Relation& before) {
  column.default_sql = remote.default_sql;
  column.generated = remote.generated;
  int index = before.FindColumn(column.name);
  if (index < 0) return column;
  const ColumnInfo& was = before.columns[static_cast<size_t>(index)];
  if (column.default_sql.empty()) column.default_sql = was.default_sql;
  column.identity = was.identity;
  column.sequence = was.sequence;
  column.comment = was.comment;
  return column;
}

}  // namespace

void ReadBack(Ddl& ddl, Relation* table) {
  Oid server = ServersOf(ddl, *table)[0];
  std::vector<std::string> names = {table->name};
  std::vector<RemoteTable> found =
      std::move(ReadRemoteTables(ddl, std::span(&server, 1), table->schema, &names)[0]);
  if (found.empty())
    Throw(sqlstate::kUndefinedTable, "relation \"{}.{}\" does not exist on server \"{}\"",
          table->schema, table->name, ddl.catalog.servers.at(server).name);
  std::vector<ColumnInfo> columns;
  for (const RemoteColumn& remote : found[0].columns)
    columns.push_back(Merged(LocalColumn(ddl, server, remote), remote, *table));
  table->columns = std::move(columns);
  ReadObjects(ddl, server, table);
  for (Oid oid : table->children) {
    Relation& leaf = ddl.GetRelation(oid);
    leaf.columns.clear();
    for (const ColumnInfo& column : table->columns) leaf.columns.push_back(InheritedColumn(column));
    leaf.primary_key = table->primary_key;
    leaf.schema = table->schema;
    leaf.options = {{"schema_name", table->schema}, {"table_name", table->name}};
  }
  ddl.changed = true;
}

void ReadBackReferencing(Ddl& ddl, Oid table) {
  for (auto& [oid, relation] : ddl.catalog.relations) {
    bool references = false;
    for (const Constraint& constraint : relation.constraints)
      references |= constraint.referenced_table == table;
    if (references && oid != table) ReadObjects(ddl, ServersOf(ddl, relation)[0], &relation);
  }
}

}  // namespace sluice
