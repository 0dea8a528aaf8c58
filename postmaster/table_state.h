// What no stream says of a shard's table: whether it is still the same one, which partitions it
// consists of, and that their rows were replaced (TRUNCATE of one partition by itself, ATTACH and
// DETACH, a rewrite by ALTER TABLE, a table that was dropped and made again). The shard's catalog
// has it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "catalog/catalog.h"
#include "postmaster/remote_query.h"

namespace sluice {

struct TableState {
  std::string oid;                           // empty: there is no such table
  std::map<std::string, std::string> files;  // of each table with rows that it consists of, by oid
  bool published = false;

  std::string Text() const;
  static TableState Parse(std::string_view text);
  // Whether it may have other rows than the changes since `before` say. `truncated`: they have a
  // TRUNCATE.
  bool HasOtherRows(const TableState& before, bool truncated) const;
};

// One row a table, in order.
std::string TableStateSql(std::span<const Relation* const> leaves, std::string_view publication);
// `lsn`: what the state shows has been committed before it.
TableState ReadTableState(const RemoteRow& row, uint64_t* lsn);

}  // namespace sluice
