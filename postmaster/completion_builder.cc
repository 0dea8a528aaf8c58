#include "postmaster/completion_builder.h"

#include <algorithm>
#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "optimizer/deparse.h"

namespace sluice {
namespace {

constexpr size_t kTablesMax = 200;

}  // namespace

TextRewrite CompletionBuilder::Rewrite(const PgQuery__Node& node, std::string_view text,
                                       int offset) {
  StatementReferences references = FindReferences(node);
  if (!references.obstacle.empty()) GiveUp();
  TextRewrite rewrite(text, offset);
  std::set<int> spliced;
  for (const TableReference& table : references.tables) {
    const std::string& name = TemporaryName(table);
    int parts = table.schema.empty() ? 1 : 2, start = 0;
    if (parts == 1 && name == table.name) continue;  // pg_temp comes first in the search path
    int end = rewrite.IdentifiersEnd(table.location, parts, 1, &start);
    if (end < 0) GiveUp();
    std::string with = "pg_temp." + QuoteIdentifier(name);
    if (name != table.name && !table.has_alias) with += " AS " + QuoteIdentifier(table.name);
    if (spliced.insert(table.location).second)
      rewrite.Replace(table.location, end - table.location, with);
  }
  for (const QualifiedColumn& column : references.qualified_columns) {
    if (!IsKnown(column.schema, column.table)) continue;  // a composite column's field, maybe
    int start = 0;
    if (rewrite.IdentifiersEnd(column.location, 2, 1, &start) < 0) GiveUp();
    if (spliced.insert(column.location).second)
      rewrite.Replace(column.location, start - column.location, "");
  }
  all_columns_ = all_columns_ || references.all_columns;
  column_names_.insert(references.column_names.begin(), references.column_names.end());
  single_names_.insert(references.single_names.begin(), references.single_names.end());
  range_names_.insert(references.range_names.begin(), references.range_names.end());
  return rewrite;
}

void CompletionBuilder::Fill(CompletionQuery* query, bool primary_keys) {
  CompletionRequest& request = query->request;
  request.server = ChooseServer();
  request.setup = {"BEGIN", "SET LOCAL search_path = " + SearchPathSql()};
  request.tables.clear();
  bool all = all_columns_ || HasWholeRows();
  for (const Source& source : sources_) {
    request.setup.push_back(CreateTableSql(source, primary_keys));
    request.tables.push_back(MakeTable(query, source, all));
  }
  request.setup.insert(request.setup.end(), views_.begin(), views_.end());
}

std::vector<CompletionBuilder::SourceColumn> CompletionBuilder::ColumnsOf(
    const Source& source) const {
  std::vector<SourceColumn> columns;
  if (source.relation != nullptr) {
    for (const ColumnInfo& c : source.relation->columns)
      columns.push_back({c.name, c.type, c.typmod, c.collation});
  } else {
    for (const VirtualColumn& c : source.view->columns)
      columns.push_back({std::string(c.name), c.type, -1, kInvalidOid});
  }
  return columns;
}

const Relation* CompletionBuilder::Find(const std::string& schema, const std::string& name) const {
  return schema.empty() ? catalog_.FindRelation(search_path_, name)
                        : catalog_.FindRelation(schema, name);
}

bool CompletionBuilder::IsKnown(const std::string& schema, const std::string& name) const {
  return FindVirtualTable(schema, name) != nullptr || Find(schema, name) != nullptr;
}

const std::string& CompletionBuilder::TemporaryName(const TableReference& table) {
  const VirtualTable* view = FindVirtualTable(table.schema, table.name);
  if (view != nullptr && !view->sql.empty()) GiveUp();
  const Relation* relation = view == nullptr ? Find(table.schema, table.name) : nullptr;
  if (view == nullptr && relation == nullptr) GiveUp();
  if (relation != nullptr && table.only && relation->kind != RelationKind::kForeignTable &&
      relation->kind != RelationKind::kView && !relation->is_distributed())
    GiveUp();
  const void* key = view != nullptr ? static_cast<const void*>(view) : relation;
  auto found = names_.find(key);
  if (found != names_.end()) return found->second;
  if (names_.size() >= kTablesMax) GiveUp();
  std::string name = table.name;
  while (!taken_.insert(name).second) name += fmt::format("_{}", taken_.size());
  std::string& kept = names_[key] = name;
  if (relation != nullptr && relation->kind == RelationKind::kView)
    AddView(*relation, name);
  else
    sources_.push_back({relation, view, name});
  return kept;
}

void CompletionBuilder::AddView(const Relation& view, const std::string& name) {
  ParsedSql parsed = ParseSql(view.view_sql);
  const RawStatement& raw = parsed.statements().at(0);
  std::string body = Rewrite(*raw.node, raw.text, raw.location).Result();
  std::string columns;
  for (const ColumnInfo& column : view.columns)
    columns += (columns.empty() ? "" : ", ") + QuoteIdentifier(column.name);
  // A view's columns are used by position: none of its tables' may be missing.
  all_columns_ = true;
  views_.push_back("CREATE TEMPORARY VIEW " + QuoteIdentifier(name) + " (" + columns + ") AS " +
                   body);
}

bool CompletionBuilder::HasWholeRows() const {
  return std::ranges::any_of(single_names_,
                             [&](const std::string& name) { return range_names_.contains(name); });
}

Oid CompletionBuilder::ChooseServer() const {
  auto usable = [&](const Server& server) {
    return server.wrapper == "postgres_fdw" &&
           catalog_.FindUserMapping(server.oid, session_.user) != nullptr;
  };
  // One that has a table of the statement has its types too.
  for (const Source& source : sources_) {
    if (source.relation == nullptr) continue;
    for (const Relation* leaf : catalog_.Leaves(*source.relation)) {
      auto server = catalog_.servers.find(leaf->server);
      if (server != catalog_.servers.end() && usable(server->second)) return server->first;
    }
  }
  for (const auto& [oid, server] : catalog_.servers)
    if (usable(server)) return oid;
  GiveUp();
}

std::string CompletionBuilder::SearchPathSql() const {
  std::string path = "pg_temp";
  for (const std::string& schema : search_path_) path += ", " + QuoteIdentifier(schema);
  return path;
}

std::string CompletionBuilder::CreateTableSql(const Source& source, bool primary_keys) const {
  Deparser types(catalog_, {});
  std::vector<SourceColumn> columns = ColumnsOf(source);
  std::string sql = "CREATE TEMPORARY TABLE " + QuoteIdentifier(source.name) + " (";
  for (size_t i = 0; i < columns.size(); i++) {
    const SourceColumn& column = columns[i];
    sql += (i == 0 ? "" : ", ") + QuoteIdentifier(column.name) + " " +
           types.TypeName(column.type, column.typmod);
    if (column.collation != kInvalidOid && column.collation != kDefaultCollationOid)
      sql += " COLLATE " + catalog_.CollationSql(column.collation);
  }
  if (primary_keys && source.relation != nullptr && !source.relation->primary_key.empty()) {
    sql += ", PRIMARY KEY (";
    for (size_t i = 0; i < source.relation->primary_key.size(); i++)
      sql += (i == 0 ? "" : ", ") +
             QuoteIdentifier(columns[static_cast<size_t>(source.relation->primary_key[i])].name);
    sql += ")";
  }
  return sql + ")";
}

CompletionTable CompletionBuilder::MakeTable(CompletionQuery* query, const Source& source,
                                             bool all) const {
  CompletionTable table;
  table.relation = source.relation;
  if (source.view != nullptr) table.virtual_name = source.view->name;
  std::vector<SourceColumn> columns = ColumnsOf(source);
  std::string list;
  for (size_t i = 0; i < columns.size(); i++) {
    const SourceColumn& column = columns[i];
    std::string_view name = query->names.emplace_back(column.name);
    table.types.push_back({name, column.type, column.typmod, column.collation});
    if (!all && !column_names_.contains(column.name)) continue;
    table.columns.push_back(static_cast<int>(i));
  }
  if (table.columns.empty()) table.columns.push_back(0);  // for the number of rows
  for (int column : table.columns)
    list += (list.empty() ? "" : ", ") + QuoteIdentifier(columns[static_cast<size_t>(column)].name);
  if (sources_.size() == 1 && views_.empty() && source.relation != nullptr)
    table.conditions = conditions_;
  table.copy_sql =
      "COPY pg_temp." + QuoteIdentifier(source.name) + " (" + list + ") FROM STDIN (FORMAT binary)";
  return table;
}

}  // namespace sluice
