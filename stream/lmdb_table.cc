#include "stream/lmdb_table.h"

#include <cerrno>
#include <utility>

#include "common/assert.h"

namespace sluice {
namespace {

MDB_val ToVal(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
std::string_view FromVal(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

}  // namespace

// A process writes one store at most.
static bool map_full = false;

bool TakeMapFull() {
  return std::exchange(map_full, false);
}

Error LmdbError(int code, std::string_view what) {
  if (code == MDB_MAP_FULL) map_full = true;
  SqlState state = sqlstate::kIoError;
  if (code == ENOSPC || code == EDQUOT || code == MDB_MAP_FULL) state = sqlstate::kDiskFull;
  if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
    state = sqlstate::kDataCorrupted;
  if (code == ENOENT) state = sqlstate::kObjectNotInPrerequisiteState;
  if (code == MDB_READERS_FULL) state = sqlstate::kConfigurationLimitExceeded;
  Error error = MakeError(state, "could not {} the view store: {}", what, mdb_strerror(code));
  if (code == MDB_READERS_FULL)
    error.Hint("Too many processes read materialized views; end some sessions.");
  if (code == MDB_MAP_RESIZED)
    error.Hint(
        "The store has grown while an earlier query of this session is open; end that and try "
        "again.");
  return error;
}

LmdbTable::LmdbTable(StoreTransaction* transaction, const std::string& name, bool create)
    : transaction_(transaction) {
  int code = mdb_dbi_open(transaction->txn, name.c_str(), create ? MDB_CREATE : 0, &dbi_);
  if (code == MDB_NOTFOUND) return;
  CheckLmdb(code, "open a table of");
  exists_ = true;
}

std::optional<std::string_view> LmdbTable::Get(std::string_view key) const {
  if (!exists_) return std::nullopt;
  MDB_val k = ToVal(key), value;
  MDB_cursor* kept = KeptCursor();
  int code = kept != nullptr ? mdb_cursor_get(kept, &k, &value, MDB_SET)
                             : mdb_get(transaction_->txn, dbi_, &k, &value);
  if (code == MDB_NOTFOUND) return std::nullopt;
  CheckLmdb(code, "read");
  return FromVal(value);
}

MDB_cursor* LmdbTable::KeptCursor() const {
  if (!transaction_->keeps_cursors) return nullptr;
  std::vector<MDB_cursor*>& cursors = transaction_->cursors;
  if (cursors.size() <= dbi_) cursors.resize(dbi_ + 1);
  if (cursors[dbi_] == nullptr)
    CheckLmdb(mdb_cursor_open(transaction_->txn, dbi_, &cursors[dbi_]), "read");
  return cursors[dbi_];
}

int LmdbTable::Write(std::string_view key, std::string_view value, unsigned flags) const {
  SLUICE_ASSERT(exists_);
  MDB_val k = ToVal(key), v = ToVal(value);
  if (MDB_cursor* kept = KeptCursor()) return mdb_cursor_put(kept, &k, &v, flags);
  return mdb_put(transaction_->txn, dbi_, &k, &v, flags);
}

void LmdbTable::Put(std::string_view key, std::string_view value) const {
  CheckLmdb(Write(key, value, 0), "write");
}

bool LmdbTable::Insert(std::string_view key, std::string_view value) const {
  int code = Write(key, value, MDB_NOOVERWRITE);
  if (code == MDB_KEYEXIST) return false;
  CheckLmdb(code, "write");
  return true;
}

void LmdbTable::Append(std::string_view key, std::string_view value) const {
  CheckLmdb(Write(key, value, MDB_APPEND), "write");
}

bool LmdbTable::Delete(std::string_view key) const {
  if (!exists_) return false;
  MDB_val k = ToVal(key);
  int code = mdb_del(transaction_->txn, dbi_, &k, nullptr);
  if (code == MDB_NOTFOUND) return false;
  CheckLmdb(code, "write");
  return true;
}

void LmdbTable::Drop() const {
  if (!exists_) return;
  // Its number may be another table's in the same transaction.
  if (dbi_ < transaction_->cursors.size())
    if (MDB_cursor* kept = std::exchange(transaction_->cursors[dbi_], nullptr))
      mdb_cursor_close(kept);
  CheckLmdb(mdb_drop(transaction_->txn, dbi_, 1), "drop a table of");
}

void LmdbTable::Clear() const {
  if (exists_) CheckLmdb(mdb_drop(transaction_->txn, dbi_, 0), "empty a table of");
}

uint64_t LmdbTable::entries() const {
  if (!exists_) return 0;
  MDB_stat stat;
  CheckLmdb(mdb_stat(transaction_->txn, dbi_, &stat), "read");
  return stat.ms_entries;
}

LmdbCursor::LmdbCursor(const LmdbTable& table) {
  if (table.exists_)
    CheckLmdb(mdb_cursor_open(table.transaction_->txn, table.dbi_, &cursor_), "read");
}

LmdbCursor::~LmdbCursor() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

bool LmdbCursor::Move(MDB_cursor_op operation) {
  if (cursor_ == nullptr) return false;
  int code = mdb_cursor_get(cursor_, &key_, &value_, operation);
  if (code == MDB_NOTFOUND) return false;
  CheckLmdb(code, "read");
  return true;
}

bool LmdbCursor::Seek(std::string_view key) {
  if (key.empty()) return First();  // LMDB has no empty key
  key_ = ToVal(key);
  return Move(MDB_SET_RANGE);
}
bool LmdbCursor::First() {
  return Move(MDB_FIRST);
}
bool LmdbCursor::Last() {
  return Move(MDB_LAST);
}
bool LmdbCursor::Next() {
  return Move(MDB_NEXT);
}
bool LmdbCursor::Previous() {
  return Move(MDB_PREV);
}
std::string_view LmdbCursor::key() const {
  return FromVal(key_);
}
std::string_view LmdbCursor::value() const {
  return FromVal(value_);
}

}  // namespace sluice
