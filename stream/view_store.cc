#include "stream/view_store.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

#include "common/assert.h"
#include "stream/change_log.h"
#include "stream/delta_operator.h"
#include "stream/store_record.h"
#include "stream/stored_relation.h"
#include "stream/view_index.h"

namespace sluice {
namespace {

constexpr unsigned kTablesMax = 8192;

}  // namespace

ViewStore::Impl::~Impl() {
  SLUICE_ASSERT(snapshots == 0);
  DropIdle();
  if (env != nullptr) mdb_env_close(env);
}

int ViewStore::Impl::Open(const std::string& directory) {
  if (options.writer && mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  int code = mdb_env_create(&env);
  if (code == 0) code = mdb_env_set_maxdbs(env, kTablesMax);
  if (code == 0) code = mdb_env_set_maxreaders(env, options.readers_max);
  if (code == 0) code = mdb_env_set_mapsize(env, options.map_bytes);
  // NOTLS: a snapshot belongs to a statement, not to a thread. NOMETASYNC: after a power loss the
  // last epoch may be gone, and the shards still have its changes.
  unsigned flags = MDB_NOMETASYNC | MDB_NOTLS | (options.writer ? 0u : unsigned{MDB_RDONLY});
  if (code == 0) code = mdb_env_open(env, directory.c_str(), flags, 0600);
  MDB_envinfo info;
  if (code == 0) code = mdb_env_info(env, &info);
  if (code == 0) map_bytes = info.me_mapsize;
  return code;
}

void ViewStore::Impl::DropIdle() {
  if (idle != nullptr) mdb_txn_abort(std::exchange(idle, nullptr));
}

void ViewStore::Impl::EndRead(MDB_txn* txn) {
  if (idle != nullptr) return mdb_txn_abort(txn);
  mdb_txn_reset(txn);
  idle = txn;
}

int ViewStore::Impl::BeginTransaction(unsigned flags, MDB_txn** txn) {
  if ((flags & MDB_RDONLY) != 0 && idle != nullptr) {
    *txn = std::exchange(idle, nullptr);
    if (mdb_txn_renew(*txn) == 0) return 0;
    mdb_txn_abort(std::exchange(*txn, nullptr));
  }
  int code = mdb_txn_begin(env, nullptr, flags, txn);
  if (code == MDB_READERS_FULL) {
    int dead = 0;
    mdb_reader_check(env, &dead);
    code = mdb_txn_begin(env, nullptr, flags, txn);
  }
  if (code == MDB_MAP_RESIZED && snapshots == 0) {  // the writer has made it larger
    DropIdle();
    code = mdb_env_set_mapsize(env, 0);
    if (code == 0) code = mdb_txn_begin(env, nullptr, flags, txn);
  }
  return code;
}

void ViewStore::Impl::GrowMap() {
  MDB_envinfo info;
  MDB_stat stat;
  CheckLmdb(mdb_env_info(env, &info), "look at");
  CheckLmdb(mdb_env_stat(env, &stat), "look at");
  size_t used = (info.me_last_pgno + 1) * stat.ms_psize;
  // Whatever of the epoch met the full map, the next one has a larger one.
  if (snapshots > 0 || (!TakeMapFull() && used < map_bytes / 2)) return;
  DropIdle();
  CheckLmdb(mdb_env_set_mapsize(env, map_bytes * 2), "enlarge");
  map_bytes *= 2;
}

// Tables can only be opened in a transaction that ends before others use them.
void ViewStore::Impl::OpenTables() {
  StoreTransaction transaction;
  CheckLmdb(BeginTransaction(MDB_RDONLY, &transaction.txn), "read");
  try {
    LmdbTable meta(&transaction, kMetaTable, false);
    for (const char* name : {kFeedTable, kErrorTable}) LmdbTable(&transaction, name, false);
    ForEachEntry(meta, "R", [&](std::string_view, std::string_view value) {
      uint64_t sequence;
      RelationInfo info = LoadInfo(value, &sequence);
      StoredRelation(&transaction, info, false);
      for (const StoredIndex& index : info.indexes)
        LmdbTable(&transaction, ViewIndex::TableName(index.oid), false);
      if (meta.Get(ChangeLogMarkKey(info.oid)))
        LmdbTable(&transaction, ChangeLogName(info.oid), false);
    });
    generation = LoadNumber(meta, kGenerationKey);
  } catch (...) {
    mdb_txn_abort(transaction.txn);
    throw;
  }
  CheckLmdb(mdb_txn_commit(transaction.txn), "read");
}

ViewStore::ViewStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ViewStore::~ViewStore() = default;

Result<std::unique_ptr<ViewStore>> ViewStore::Open(const std::string& directory,
                                                   const ViewStoreOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (int code = impl->Open(directory); code != 0) return LmdbError(code, "open");
  return std::unique_ptr<ViewStore>(new ViewStore(std::move(impl)));
}

struct ViewSnapshot::Impl {
  ViewStore::Impl* store;
  StoreTransaction transaction;
  LmdbTable meta, feed, errors;
  mutable std::map<Oid, std::unique_ptr<StoredRelation>> opened;

  ~Impl() {
    opened.clear();
    if (transaction.txn == nullptr) return;
    store->EndRead(transaction.txn);
    store->snapshots--;
  }

  std::shared_ptr<const RelationInfo> Known(Oid relation) const {
    std::optional<std::string_view> value = meta.Get(RelationKey(relation));
    if (!value) Throw(sqlstate::kUndefinedTable, "relation with OID {} has no rows here", relation);
    ViewStore::Impl::KnownRelation& known = store->known[relation];
    if (known.info == nullptr || known.bytes != *value) {
      uint64_t sequence;
      known.info = std::make_shared<const RelationInfo>(LoadInfo(*value, &sequence));
      known.bytes = *value;
    }
    return known.info;
  }

  const StoredRelation& Stored(const RelationInfo& info) const {
    auto& relation = opened[info.oid];
    if (relation == nullptr)
      relation = std::make_unique<StoredRelation>(const_cast<StoreTransaction*>(&transaction), info,
                                                  false);
    return *relation;
  }
};

std::unique_ptr<ViewSnapshot> ViewStore::Snapshot() {
  for (;;) {
    auto impl = std::make_unique<ViewSnapshot::Impl>();
    impl->store = impl_.get();
    CheckLmdb(impl_->BeginTransaction(MDB_RDONLY, &impl->transaction.txn), "read");
    impl_->snapshots++;
    if (impl_->generation > 0) {
      impl->meta = LmdbTable(&impl->transaction, kMetaTable, false);
      if (LoadNumber(impl->meta, kGenerationKey) == impl_->generation) {
        impl->feed = LmdbTable(&impl->transaction, kFeedTable, false);
        impl->errors = LmdbTable(&impl->transaction, kErrorTable, false);
        return std::unique_ptr<ViewSnapshot>(new ViewSnapshot(std::move(impl)));
      }
    }
    impl = nullptr;
    impl_->OpenTables();
    if (impl_->generation == 0)
      Throw(sqlstate::kObjectNotInPrerequisiteState, "the view store is empty");
  }
}

ViewSnapshot::ViewSnapshot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ViewSnapshot::~ViewSnapshot() = default;

uint64_t ViewSnapshot::epoch() const {
  return LoadNumber(impl_->meta, kEpochKey);
}

std::vector<EdgeInfo> ViewSnapshot::Edges(const RelationInfo& view) const {
  std::vector<EdgeInfo> edges;
  for (Oid input : view.inputs)
    if (std::optional<std::string_view> value = impl_->meta.Get(EdgeKey(view.oid, input))) {
      Edge edge = LoadEdge(*value);
      edges.push_back({view.oid, input, edge.at_end, edge.rows_delivered});
    }
  return edges;
}

std::optional<RelationInfo> ViewSnapshot::Relation(Oid relation) const {
  if (!impl_->meta.Get(RelationKey(relation))) return std::nullopt;
  RelationInfo info = *impl_->Known(relation);
  info.rows = impl_->Stored(info).table().entries();
  return info;
}

std::vector<RelationInfo> ViewSnapshot::Relations() const {
  std::vector<RelationInfo> relations;
  ForEachEntry(impl_->meta, "R", [&](std::string_view, std::string_view value) {
    uint64_t sequence;
    RelationInfo info = LoadInfo(value, &sequence);
    info.rows = impl_->Stored(info).table().entries();
    relations.push_back(std::move(info));
  });
  return relations;
}

void ViewSnapshot::CheckReadable(Oid relation) const {
  std::shared_ptr<const RelationInfo> known = impl_->Known(relation);
  const RelationInfo& info = *known;
  if (info.failure) throw QueryError(*info.failure);
  for (Oid input : info.inputs) CheckReadable(input);
  if (info.state != RelationState::kCreated)
    Throw(sqlstate::kObjectNotInPrerequisiteState, "relation with OID {} is still being created",
          relation);
  ForEachEntry(
      impl_->errors, ErrorKeyPrefix(relation),
      [](std::string_view, std::string_view value) { throw QueryError(LoadTalliedError(value)); });
}

std::unique_ptr<RowSource> ViewSnapshot::Scan(Oid relation,
                                              std::span<const std::string_view> columns,
                                              Oid index) const {
  std::shared_ptr<const RelationInfo> known = impl_->Known(relation);
  const RelationInfo& info = *known;
  for (const StoredIndex& stored : info.indexes) {
    if (stored.oid != index || !stored.complete) continue;
    auto opened = std::make_unique<ViewIndex>(const_cast<StoreTransaction*>(&impl_->transaction),
                                              info, stored, false);
    return ScanStored(impl_->Stored(info), known, columns, std::move(opened), stored.columns);
  }
  return ScanStored(impl_->Stored(info), known, columns);
}

std::optional<uint64_t> ViewSnapshot::ChangesKeptAfter(Oid view) const {
  std::optional<std::string_view> mark = impl_->meta.Get(ChangeLogMarkKey(view));
  if (!mark) return std::nullopt;
  return LoadMark(*mark).begin_epoch;
}

bool ViewSnapshot::ReadChanges(
    Oid view, size_t bytes_max, ChangePlace* place,
    const std::function<void(uint64_t, int64_t, std::string_view)>& fn) const {
  LmdbTable log(const_cast<StoreTransaction*>(&impl_->transaction), ChangeLogName(view), false);
  LmdbCursor cursor(log);
  size_t bytes = 0;
  for (bool found = cursor.Seek(ChangeLogKey(place->epoch, place->number)); found;
       found = cursor.Next()) {
    if (bytes >= bytes_max) return true;
    auto [epoch, number] = ParseChangeLogKey(cursor.key());
    *place = {epoch, number + 1};
    bytes += cursor.value().size();
    ForEachLoggedChange(cursor.value(), [&, at = epoch](int64_t weight, std::string_view row) {
      fn(at, weight, row);
    });
  }
  return false;
}

std::optional<std::string> ViewSnapshot::Get(std::string_view key) const {
  std::optional<std::string_view> value = impl_->feed.Get(key);
  if (!value) return std::nullopt;
  return std::string(*value);
}

void ViewSnapshot::ForEach(
    std::string_view prefix,
    const std::function<void(std::string_view, std::string_view)>& fn) const {
  ForEachEntry(impl_->feed, prefix, fn);
}

}  // namespace sluice
