#include "postmaster/view_source.h"

#include <algorithm>
#include <charconv>

#include "catalog/quote.h"
#include "stream/backfill.h"
#include "types/codec.h"

namespace sluice {
namespace {

// Columns of the answer.
enum {
  kKind,
  kPersistence,
  kIdentity,
  kWalLevel,
  kGenerated,
  kKeyName,
  kOrdered,
  kRows,
  kColumnCount
};

bool IsEnum(const Catalog& catalog, Oid type) {
  const UserType* user_type = catalog.FindUserType(type);
  return user_type != nullptr && !user_type->enum_labels.empty();
}

bool Yes(const std::optional<std::string>& value) {
  return value && *value == "t";
}

[[noreturn]] void ThrowCannotFollow(const Server& server, const Relation& leaf, std::string detail,
                                    std::string hint) {
  Error error = MakeError(sqlstate::kObjectNotInPrerequisiteState,
                          "changes of table \"{}\" on server \"{}\" cannot be followed",
                          leaf.remote_table(), server.name);
  error.detail = std::move(detail);
  error.hint = std::move(hint);
  throw QueryError(std::move(error));
}

std::string NameList(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + QuoteIdentifier(name);
  return list;
}

}  // namespace

std::string RemoteName(const Relation& leaf) {
  return QuoteIdentifier(leaf.remote_schema()) + "." + QuoteIdentifier(leaf.remote_table());
}

std::string LeafDescriptionSql(const Relation& leaf) {
  // The key is the index that identifies rows in the stream; of a table with FULL, its primary key.
  return fmt::format(
      "SELECT c.relkind, c.relpersistence, c.relreplident, "
      "pg_catalog.current_setting('wal_level'), "
      "(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(g.attname), ', ') "
      "FROM pg_catalog.pg_attribute g WHERE g.attrelid = c.oid AND g.attgenerated <> '' AND NOT "
      "g.attisdropped), a.attname, a.attcollation = 0 OR l.collname IN ('C', 'POSIX') OR "
      "l.collname = 'default' AND COALESCE(pg_catalog.to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' "
      "AND "
      "d.datcollate IN ('C', 'POSIX', 'C.UTF-8', 'C.utf8'), "
      "(SELECT pg_catalog.sum(GREATEST(r.reltuples, pg_catalog.pg_stat_get_live_tuples(r.oid), "
      "0))::int8 FROM pg_catalog.pg_class r WHERE r.oid = c.oid OR r.oid IN "
      "(SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))) "
      "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
      "JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() "
      "LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND "
      "CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END "
      "LEFT JOIN LATERAL pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY "
      "AS k(number, place) ON k.place <= i.indnkeyatts "
      "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number "
      "LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation "
      "WHERE n.nspname = {} AND c.relname = {} ORDER BY k.place",
      QuoteLiteral(leaf.remote_schema()), QuoteLiteral(leaf.remote_table()));
}

LeafDescription ReadLeafDescription(const Server& server, const Relation& leaf,
                                    const std::vector<RemoteRow>& rows) {
  if (rows.empty())
    Throw(sqlstate::kUndefinedTable, "relation \"{}.{}\" does not exist on server \"{}\"",
          leaf.remote_schema(), leaf.remote_table(), server.name);
  const RemoteRow& first = rows[0];
  if (first.size() != kColumnCount || !first[kKind] || !first[kPersistence] || !first[kIdentity])
    Throw(sqlstate::kProtocolViolation, "malformed description of a table from server \"{}\"",
          server.name);
  if (first[kWalLevel].value_or("") != "logical")
    ThrowCannotFollow(server, leaf,
                      fmt::format("Its wal_level is \"{}\".", first[kWalLevel].value_or("")),
                      "Set wal_level = logical on the server and restart it.");
  if (*first[kKind] != "r" && *first[kKind] != "p")
    ThrowCannotFollow(server, leaf, "It is not a table.", "Attach the tables that it reads.");
  if (*first[kPersistence] != "p")
    ThrowCannotFollow(server, leaf, "It is an unlogged or temporary table.",
                      fmt::format("ALTER TABLE {} SET LOGGED;", RemoteName(leaf)));
  if (first[kGenerated])
    ThrowCannotFollow(
        server, leaf,
        fmt::format("Changes of generated columns ({}) are not sent.", *first[kGenerated]),
        "Attach the table without them.");
  LeafDescription description;
  const std::string rows_text = first[kRows].value_or("0");
  std::from_chars(rows_text.data(), rows_text.data() + rows_text.size(),
                  description.rows_estimated);
  bool ordered = true;
  for (const RemoteRow& row : rows) {
    if (row.size() != kColumnCount || !row[kKeyName]) continue;
    description.key_columns.push_back(*row[kKeyName]);
    auto column = std::find_if(leaf.columns.begin(), leaf.columns.end(), [&](const ColumnInfo& c) {
      return c.remote_name() == *row[kKeyName];
    });
    // Without the key's columns rows can still be told apart, if all of each row travels.
    if (column == leaf.columns.end()) {
      if (*first[kIdentity] != "f")
        ThrowCannotFollow(
            server, leaf,
            fmt::format("Its key column \"{}\" is not a column here.", *row[kKeyName]),
            fmt::format("Attach the table with it, or ALTER TABLE {} REPLICA IDENTITY FULL;",
                        RemoteName(leaf)));
      description.key_columns.clear();
      return description;
    }
    ordered = ordered && Yes(row[kOrdered]) && KeyOrder::Knows(column->type);
  }
  bool keyless = description.key_columns.empty();
  if (*first[kIdentity] == "n" || (keyless && *first[kIdentity] != "f"))
    ThrowCannotFollow(server, leaf,
                      keyless ? "It has no primary key, and its replica identity is not FULL."
                              : "Its replica identity is NOTHING.",
                      fmt::format("Run on the server: ALTER TABLE {} REPLICA IDENTITY {};",
                                  RemoteName(leaf), keyless ? "FULL" : "DEFAULT"));
  description.ordered = !keyless && ordered;
  return description;
}

void CheckSourceTable(const Catalog& catalog, const Relation& table) {
  std::vector<const Relation*> leaves = catalog.Leaves(table);
  if (leaves.empty())
    Refuse("a materialized view over \"{}\", which has no tables on servers, is not supported",
           table.name);
  for (const Relation* leaf : leaves) {
    auto server = catalog.servers.find(leaf->server);
    if (server == catalog.servers.end() || server->second.wrapper != "postgres_fdw")
      Refuse(
          "a materialized view over \"{}\", which is not a table of a Postgres server, is not "
          "supported",
          leaf->name);
  }
  for (const ColumnInfo& column : table.columns)
    if (!HasBinaryCodec(column.type) && !IsEnum(catalog, column.type))
      Refuse("a materialized view over a table with a column of type {} is not supported",
             FormatType(column.type));
}

std::vector<std::string> RemoteColumns(const Relation& table, const Relation& leaf) {
  std::vector<std::string> names;
  for (const ColumnInfo& column : table.columns) {
    int at = leaf.FindColumn(column.name);
    // One that was dropped, of a copy made before.
    names.push_back(at < 0 ? column.name : leaf.columns[static_cast<size_t>(at)].remote_name());
  }
  return names;
}

std::string PieceSql(const Relation& leaf, const std::vector<std::string>& columns,
                     const std::vector<std::string>& key_columns, bool after_key, uint64_t rows) {
  std::string sql = WholeTableSql(leaf, columns);
  if (after_key) {
    std::string params;
    for (size_t i = 0; i < key_columns.size(); i++)
      params += fmt::format("{}${}", i == 0 ? "" : ", ", i + 1);
    sql += fmt::format(" WHERE ({}) > ({})", NameList(key_columns), params);
  }
  return sql + fmt::format(" ORDER BY {} LIMIT {}", NameList(key_columns), rows);
}

std::string WholeTableSql(const Relation& leaf, const std::vector<std::string>& columns) {
  return fmt::format("SELECT {} FROM {}", NameList(columns), RemoteName(leaf));
}

std::vector<int16_t> PieceFormats(const Catalog& catalog, const Relation& table) {
  std::vector<int16_t> formats;
  for (const ColumnInfo& column : table.columns)
    formats.push_back(HasBinaryCodec(column.type) && !IsEnum(catalog, column.type) ? 1 : 0);
  return formats;
}

}  // namespace sluice
