#include "postmaster/ddl_remote.h"

#include <cmath>

namespace sluice {

namespace {

// Rows of a table that was never analysed: guessed from its size.
constexpr int kBytesPerRowGuess = 64;

std::string WhereTables(std::string_view schema, const std::vector<std::string>* names) {
  std::string where = "n.nspname = " + QuoteLiteral(schema);
  if (names == nullptr) return where + " AND NOT c.relispartition";
  where += " AND c.relname IN (NULL";
  for (const std::string& name : *names) where += ", " + QuoteLiteral(name);
  return where + ")";
}

std::string ColumnsSql(const std::string& where) {
  return fmt::format(
      "SELECT n.nspname, c.relname, c.relkind,"
      " CASE WHEN c.reltuples >= 0 AND c.relkind <> 'v' THEN c.reltuples::float8"
      "  WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid)::float8 / {} ELSE 1000 END,"
      " a.attname, CASE WHEN t.oid < 10000 THEN t.oid::int8 ELSE 0 END, e.oid IS NOT NULL,"
      " coalesce(en.nspname, tn.nspname), coalesce(e.typname, t.typname), a.atttypmod,"
      " format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),"
      " a.attgenerated <> '', con.nspname, co.collname, {},"
      " s.n_distinct::float8, s.null_frac::float8, s.avg_width"
      " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
      " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
      " LEFT JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_namespace tn ON tn.oid = "
      "t.typnamespace"
      " LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' AND t.typlen = -1"
      " LEFT JOIN pg_namespace en ON en.oid = e.typnamespace"
      " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
      " LEFT JOIN pg_collation co ON co.oid = a.attcollation"
      " LEFT JOIN pg_namespace con ON con.oid = co.collnamespace"
      " LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname"
      "  AND s.attname = a.attname AND s.inherited = (c.relkind = 'p')"
      " WHERE c.relkind IN ('r', 'v', 'f', 'm', 'p') AND {} ORDER BY c.relname, a.attnum",
      kBytesPerRowGuess, RemoteCollationColumns("co"), where);
}

std::string KeysSql(const std::string& where) {
  return "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
         " JOIN pg_namespace n ON n.oid = c.relnamespace"
         " CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, position)"
         " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum"
         " WHERE i.indisprimary AND " +
         where + " ORDER BY c.relname, k.position";
}

double Number(const std::optional<std::string>& text, double otherwise) {
  if (!text) return otherwise;
  double value = std::strtod(text->c_str(), nullptr);
  return std::isfinite(value) ? value : otherwise;
}

RemoteColumn ReadColumn(const RemoteRow& row) {
  RemoteColumn column;
  column.name = *row[4];
  column.builtin_type = static_cast<Oid>(std::stoul(*row[5]));
  // A build of another version may have types that this one's data lacks.
  if (column.builtin_type != kInvalidOid && FindType(column.builtin_type) == nullptr)
    column.builtin_type = kInvalidOid;
  column.is_array = *row[6] == "t";
  column.type_schema = row[7].value_or("");
  column.type_name = row[8].value_or("");
  column.typmod = std::stoi(*row[9]);
  column.type_text = *row[10];
  column.not_null = *row[11] == "t";
  column.default_sql = row[12].value_or("");
  column.generated = row[13].value_or("f") == "t";
  if (row[15]) column.collation = ReadCollation(row, 14);
  column.distinct = Number(row[20], 0);
  column.null_fraction = Number(row[21], 0);
  column.average_width_bytes = static_cast<int32_t>(Number(row[22], 8));
  return column;
}

std::vector<RemoteTable> ReadTables(const RemoteRows& columns, const RemoteRows& keys) {
  std::vector<RemoteTable> tables;
  for (const RemoteRow& row : columns.rows) {
    if (tables.empty() || tables.back().name != *row[1]) {
      RemoteTable& added = tables.emplace_back();
      added.schema = *row[0];
      added.name = *row[1];
      added.kind = row[2]->at(0);
      added.rows = Number(row[3], 1000);
    }
    if (row[4]) tables.back().columns.push_back(ReadColumn(row));
  }
  for (RemoteTable& table : tables)
    for (const RemoteRow& key : keys.rows)
      if (*key[0] == table.name) table.primary_key.push_back(*key[1]);
  return tables;
}

}  // namespace

std::vector<std::vector<RemoteTable>> ReadRemoteTables(Ddl& ddl, std::span<const Oid> servers,
                                                       std::string_view schema,
                                                       const std::vector<std::string>* names) {
  std::string where = WhereTables(schema, names);
  std::vector<RemoteQuery> queries;
  for (Oid server : servers) {
    queries.push_back({server, ColumnsSql(where)});
    queries.push_back({server, KeysSql(where)});
  }
  std::vector<RemoteRows> results = ddl.Remote(queries);
  std::vector<std::vector<RemoteTable>> tables;
  for (size_t i = 0; i < servers.size(); i++)
    tables.push_back(ReadTables(results[2 * i], results[2 * i + 1]));
  return tables;
}

ColumnInfo LocalColumn(Ddl& ddl, Oid server, const RemoteColumn& remote) {
  ColumnInfo column;
  column.name = remote.name;
  column.typmod = remote.typmod;
  column.not_null = remote.not_null;
  column.type = remote.builtin_type;
  if (column.type == kInvalidOid) {
    TypeAndMod type =
        ImportType(ddl, server, remote.type_schema, remote.type_name, remote.is_array);
    column.type = remote.is_array ? FindType(type.type)->array : type.type;
    if (column.typmod == -1) column.typmod = type.typmod;
  }
  if (remote.collation) column.collation = ImportCollation(ddl, *remote.collation);
  column.distinct = remote.distinct;
  column.null_fraction = remote.null_fraction;
  column.average_width_bytes = remote.average_width_bytes;
  return column;
}

void StoreStatistics(const RemoteTable& remote, Relation* table) {
  table->row_estimate = remote.rows;
  for (ColumnInfo& column : table->columns)
    for (const RemoteColumn& from : remote.columns) {
      if (from.name != column.remote_name()) continue;
      column.distinct = from.distinct;
      column.null_fraction = from.null_fraction;
      column.average_width_bytes = from.average_width_bytes;
    }
}

namespace {

// Distinct values of a column over all children. Values of different children may or may not be the
// same: a fraction of the rows stays one (a key), a count is taken as that of values all share.
double DistinctOf(const std::vector<const Relation*>& children, const std::string& name,
                  double rows) {
  double count_max = 0, count_sum = 0;
  bool fraction = true;
  for (const Relation* child : children) {
    int index = child->FindColumn(name);
    if (index < 0) continue;
    double distinct = child->columns[static_cast<size_t>(index)].distinct;
    fraction = fraction && distinct < 0;
    double count = distinct < 0 ? -distinct * child->row_estimate : distinct;
    count_max = std::max(count_max, count);
    count_sum += count;
  }
  return fraction && rows > 0 ? -std::min(1.0, count_sum / rows) : count_max;
}

}  // namespace

void SumStatistics(Ddl& ddl, Relation* parent) {
  std::vector<const Relation*> children;
  double rows = 0;
  for (Oid oid : parent->children) {
    children.push_back(&ddl.catalog.relations.at(oid));
    rows += children.back()->row_estimate;
  }
  if (parent->kind == RelationKind::kReplicated && !children.empty()) {
    // Every child has all rows.
    rows /= static_cast<double>(children.size());
    children.resize(1);
  }
  parent->row_estimate = rows;
  for (ColumnInfo& column : parent->columns) {
    double nulls = 0, bytes = 0;
    for (const Relation* child : children) {
      int index = child->FindColumn(column.name);
      if (index < 0) continue;
      const ColumnInfo& own = child->columns[static_cast<size_t>(index)];
      nulls += own.null_fraction * child->row_estimate;
      bytes += own.average_width_bytes * child->row_estimate;
    }
    column.distinct = DistinctOf(children, column.name, rows);
    column.null_fraction = rows > 0 ? nulls / rows : 0;
    if (rows > 0) column.average_width_bytes = std::max(1, static_cast<int32_t>(bytes / rows));
  }
  ddl.changed = true;
  if (parent->parent != kInvalidOid) SumStatistics(ddl, &ddl.GetRelation(parent->parent));
}

}  // namespace sluice
