// LMDB with errors as QueryErrors: a table of the environment in the current transaction.
#pragma once

#include <lmdb.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace sluice {

Error LmdbError(int code, std::string_view what);
// Whether a write met a full map since this was last asked.
bool TakeMapFull();
inline void CheckLmdb(int code, std::string_view what) {
  if (code != 0) throw QueryError(LmdbError(code, what));
}

// The transaction of the epoch that runs, or of a snapshot; tables refer to it.
struct StoreTransaction {
  MDB_txn* txn = nullptr;
  // Of one that writes: a cursor a table, kept until it ends (LMDB closes them then). Keys that
  // come in order find their page where the last one was, without a way down the tree.
  bool keeps_cursors = false;
  std::vector<MDB_cursor*> cursors;  // by dbi
};

// Values and keys returned are views of the map (or of a page being written): valid until the next
// write in the same transaction.
class LmdbTable {
 public:
  LmdbTable() = default;
  // Opens it; makes it where `create`. Without it and missing: exists() is false, and it is empty.
  LmdbTable(StoreTransaction* transaction, const std::string& name, bool create);

  bool exists() const { return exists_; }
  std::optional<std::string_view> Get(std::string_view key) const;
  void Put(std::string_view key, std::string_view value) const;
  bool Insert(std::string_view key, std::string_view value) const;  // false: the key is there
  // REQUIRES: key is greater than all others. Fills pages instead of halving them.
  void Append(std::string_view key, std::string_view value) const;
  bool Delete(std::string_view key) const;  // false: it wasn't there
  // The table is gone when the transaction commits.
  void Drop() const;
  void Clear() const;
  uint64_t entries() const;

 private:
  friend class LmdbCursor;
  MDB_cursor* KeptCursor() const;  // null: none is kept
  int Write(std::string_view key, std::string_view value, unsigned flags) const;
  StoreTransaction* transaction_ = nullptr;
  MDB_dbi dbi_ = 0;
  bool exists_ = false;
};

// A place in a table. Writes to the table by others than this cursor make it invalid: Seek again.
class LmdbCursor {
 public:
  explicit LmdbCursor(const LmdbTable& table);
  ~LmdbCursor();
  LmdbCursor(const LmdbCursor&) = delete;
  LmdbCursor& operator=(const LmdbCursor&) = delete;

  // At the first entry whose key is ≥ `key`; the very first or last entry. False: there is none.
  bool Seek(std::string_view key);
  bool First();
  bool Last();
  bool Next();
  bool Previous();
  std::string_view key() const;
  std::string_view value() const;

 private:
  bool Move(MDB_cursor_op operation);
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{}, value_{};
};

}  // namespace sluice
