#include "catalog/store.h"

#include <cerrno>
#include <cstring>
#include <lmdb.h>
#include <sys/stat.h>

#include "catalog/catalog_json.h"
#include "common/log.h"
#include "shm/shared_memory.h"

namespace sluice {

namespace {

constexpr size_t kMapBytesMax = size_t{1}
                                << 30;  // reserved address range; the file is as large as its data
constexpr unsigned kReadersMax = 1024;

Error StoreError(int code, std::string_view what) {
  SqlState state = sqlstate::kIoError;
  if (code == ENOSPC || code == EDQUOT || code == MDB_MAP_FULL) state = sqlstate::kDiskFull;
  if (code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND || code == MDB_INVALID)
    state = sqlstate::kDataCorrupted;
  return MakeError(state, "could not {} the catalog: {}", what, mdb_strerror(code));
}

// A transaction that is aborted unless committed.
class Transaction {
 public:
  ~Transaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  int Begin(MDB_env* env, unsigned flags) { return mdb_txn_begin(env, nullptr, flags, &txn_); }
  int Commit() { return mdb_txn_commit(std::exchange(txn_, nullptr)); }
  MDB_txn* get() { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

MDB_val ToVal(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
std::string FromVal(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

int ReadRecords(MDB_txn* txn, MDB_dbi dbi, std::map<std::string, std::string>* records) {
  MDB_cursor* cursor = nullptr;
  int code = mdb_cursor_open(txn, dbi, &cursor);
  MDB_val key, value;
  while (code == 0 && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
    records->emplace(FromVal(key), FromVal(value));
  if (cursor != nullptr) mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

// M1: commits may finish in another order than they tell of it, so the number only rises.
void RaiseGeneration(uint64_t generation) {
  if (shared_memory == nullptr) return;  // unit tests, `sluice init`
  auto& shared = shared_memory->catalog_generation;
  uint64_t seen = shared.load(std::memory_order_relaxed);
  while (seen < generation &&
         !shared.compare_exchange_weak(seen, generation, std::memory_order_release)) {
  }
}

}  // namespace

struct CatalogStore::Impl {
  MDB_env* env = nullptr;
  MDB_dbi dbi = 0;
  ~Impl() {
    if (env != nullptr) mdb_env_close(env);
  }

  int Open(const std::string& directory, bool create);
  int WriteChanges(MDB_txn* txn, const std::map<std::string, std::string>& before,
                   const std::map<std::string, std::string>& after);
};

int CatalogStore::Impl::Open(const std::string& directory, bool create) {
  if (create && mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  int code = mdb_env_create(&env);
  if (code == 0) code = mdb_env_set_mapsize(env, kMapBytesMax);
  if (code == 0) code = mdb_env_set_maxreaders(env, kReadersMax);
  // NOTLS: a reader's slot belongs to its transaction, not to its thread.
  if (code == 0) code = mdb_env_open(env, directory.c_str(), MDB_NOTLS, 0600);
  int dead_readers = 0;  // of processes that were killed
  if (code == 0) code = mdb_reader_check(env, &dead_readers);
  Transaction txn;
  if (code == 0) code = txn.Begin(env, 0);
  if (code == 0) code = mdb_dbi_open(txn.get(), nullptr, 0, &dbi);
  MDB_stat stat;
  if (code == 0) code = mdb_stat(txn.get(), dbi, &stat);
  if (code == 0 && stat.ms_entries == 0) {
    if (!create) return ENOENT;
    code = WriteChanges(txn.get(), {}, CatalogToRecords(Catalog()));
  }
  return code == 0 ? txn.Commit() : code;
}

int CatalogStore::Impl::WriteChanges(MDB_txn* txn, const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& after) {
  for (const auto& [name, text] : before) {
    if (after.contains(name)) continue;
    MDB_val key = ToVal(name);
    if (int code = mdb_del(txn, dbi, &key, nullptr); code != 0) return code;
  }
  for (const auto& [name, text] : after) {
    auto old = before.find(name);
    if (old != before.end() && old->second == text) continue;
    MDB_val key = ToVal(name), value = ToVal(text);
    if (int code = mdb_put(txn, dbi, &key, &value, 0); code != 0) return code;
  }
  return 0;
}

CatalogStore::CatalogStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CatalogStore::~CatalogStore() = default;

Result<std::unique_ptr<CatalogStore>> CatalogStore::Open(const std::string& directory,
                                                         bool create) {
  LoadBuiltinCatalog();
  auto impl = std::make_unique<Impl>();
  if (int code = impl->Open(directory, create); code != 0) return StoreError(code, "open");
  return std::unique_ptr<CatalogStore>(new CatalogStore(std::move(impl)));
}

std::shared_ptr<const Catalog> CatalogStore::Load() {
  std::map<std::string, std::string> records;
  {
    Transaction txn;
    int code = txn.Begin(impl_->env, MDB_RDONLY);
    if (code == 0) code = ReadRecords(txn.get(), impl_->dbi, &records);
    if (code != 0) throw QueryError(StoreError(code, "read"));
  }
  auto catalog = std::make_shared<Catalog>(CatalogFromRecords(records));
  RaiseGeneration(catalog->generation);
  return catalog;
}

Status CatalogStore::Commit(const Catalog& changed, uint64_t base_generation) try {
  Catalog committed = changed;
  committed.generation = base_generation + 1;
  std::map<std::string, std::string> before, after = CatalogToRecords(committed);
  Transaction txn;
  int code = txn.Begin(impl_->env, 0);
  if (code == 0) code = ReadRecords(txn.get(), impl_->dbi, &before);
  if (code != 0) return StoreError(code, "read");
  Catalog durable = CatalogFromRecords({{"meta", before["meta"]}});
  if (durable.generation != base_generation) {
    RaiseGeneration(durable.generation);
    return MakeError(sqlstate::kSerializationFailure,
                     "could not serialize access due to concurrent change of the catalog");
  }
  code = impl_->WriteChanges(txn.get(), before, after);
  if (code == 0) code = txn.Commit();
  if (code != 0) return StoreError(code, "write");
  RaiseGeneration(committed.generation);
  return Ok{};
} catch (const QueryError& failure) {
  return failure.error;
}

}  // namespace sluice
