// A table as the source of live views: what its shard must say of it, and the SQL by which it is
// published and read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "postmaster/remote_query.h"

namespace sluice {

// What identifies a row of the table, on its shard.
struct LeafDescription {
  std::vector<std::string> key_columns;  // the shard's names; none: the whole row
  // Rows can be read in the key's order in pieces, and this process can tell that order.
  bool ordered = false;
  uint64_t rows_estimated = 0;  // as the shard's statistics have it
};

// A query about one foreign table, for its server; and what its answer means. `server` and `leaf`
// are for messages. Throws 55000 with the statement to run, or the setting to change, where the
// table's changes cannot be followed.
std::string LeafDescriptionSql(const Relation& leaf);
LeafDescription ReadLeafDescription(const Server& server, const Relation& leaf,
                                    const std::vector<RemoteRow>& rows);

// Throws 0A000 for a table whose columns cannot be kept in a copy, or that is no table of shards.
void CheckSourceTable(const Catalog& catalog, const Relation& table);

// "schema"."table" on the shard.
std::string RemoteName(const Relation& leaf);
// The next `rows` rows behind the parameters $1… (one a key column), or from the beginning.
std::string PieceSql(const Relation& leaf, const std::vector<std::string>& columns,
                     const std::vector<std::string>& key_columns, bool after_key, uint64_t rows);
std::string WholeTableSql(const Relation& leaf, const std::vector<std::string>& columns);
// The shard's names of the table's columns, in the table's order.
std::vector<std::string> RemoteColumns(const Relation& table, const Relation& leaf);
// 1 for a column that comes in the binary format.
std::vector<int16_t> PieceFormats(const Catalog& catalog, const Relation& table);

}  // namespace sluice
