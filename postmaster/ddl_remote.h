// What a shard's own catalog says of its tables: for IMPORT FOREIGN SCHEMA, attach_table and
// analyze.
#pragma once

#include "postmaster/ddl_internal.h"

namespace sluice {

struct RemoteColumn {
  std::string name;
  Oid builtin_type = kInvalidOid;      // of Postgres's own, or:
  std::string type_schema, type_name;  // the type, or the element's of an array
  bool is_array = false;
  int32_t typmod = -1;
  std::string type_text;  // format_type()
  bool not_null = false;
  std::string default_sql;
  bool generated = false;
  std::optional<RemoteCollation> collation;  // none: the type has none
  double distinct = 0, null_fraction = 0;
  int32_t average_width_bytes = 8;
};

struct RemoteTable {
  std::string schema, name;
  char kind = 'r';  // relkind
  double rows = 0;
  std::vector<RemoteColumn> columns;
  std::vector<std::string> primary_key;
};

// Tables, views, foreign and partitioned tables of one schema: by name, or all (`names` null). All
// servers at once; one list a server, by name. A missing schema gives an empty list.
std::vector<std::vector<RemoteTable>> ReadRemoteTables(Ddl& ddl, std::span<const Oid> servers,
                                                       std::string_view schema,
                                                       const std::vector<std::string>* names);

// The column here; types and collations that are not Postgres's own are registered.
ColumnInfo LocalColumn(Ddl& ddl, Oid server, const RemoteColumn& remote);

// Rows and column statistics into a foreign table, by remote column names.
void StoreStatistics(const RemoteTable& remote, Relation* table);
// Sums and averages of the children into a parent, up to the root.
void SumStatistics(Ddl& ddl, Relation* parent);

}  // namespace sluice
