// Inside stream/: the tables of the store, and how its own records lie in them.
//
//   m   generation, epoch; R + oid → RelationInfo; E + view + input → Edge;
//       L + view → ChangeLogMark
//   f   the feeding half's records
//   x   view + digest → errors of rows
//   i…  indexes of views
//   c…  a subscribed view's changes: epoch, number → time, weights and rows
//   r…  stored rows; o… operators' state
#pragma once

#include <map>
#include <memory>

#include "stream/lmdb_table.h"
#include "stream/view_store.h"

namespace sluice {

inline constexpr char kMetaTable[] = "m", kFeedTable[] = "f", kErrorTable[] = "x";
inline constexpr char kEpochKey[] = "epoch", kGenerationKey[] = "generation";

struct ViewStore::Impl {
  MDB_env* env = nullptr;
  ViewStoreOptions options;
  size_t map_bytes = 0;
  int snapshots = 0;        // alive in this process
  uint64_t generation = 0;  // of the set of relations whose tables are open here
  // A read transaction that is over: renewed it costs nothing, a new one clears room for all
  // tables.
  MDB_txn* idle = nullptr;
  // Relations' records as they were read last.
  struct KnownRelation {
    std::string bytes;
    std::shared_ptr<const RelationInfo> info;
  };
  std::map<Oid, KnownRelation> known;

  ~Impl();
  int Open(const std::string& directory);
  int BeginTransaction(unsigned flags, MDB_txn** txn);
  void EndRead(MDB_txn* txn);
  void DropIdle();
  void OpenTables();
  void GrowMap();
};

// An edge's place in its input: all rows whose stored key is ≤ cursor were delivered.
struct Edge {
  bool at_end = false;
  uint64_t rows_delivered = 0;
  std::string cursor;

  bool Covers(std::string_view stored_key) const { return at_end || stored_key <= cursor; }
};

// Of a view whose changes are kept for subscribers.
struct ChangeLogMark {
  uint64_t begin_epoch = 0;  // later epochs' changes are there
  int64_t wanted_at_us = 0;  // when somebody last subscribed
};
std::string ChangeLogMarkKey(Oid view);
std::string ChangeLogName(Oid view);
std::string ChangeLogKey(uint64_t epoch, uint32_t number);
std::pair<uint64_t, uint32_t> ParseChangeLogKey(std::string_view key);
std::string StoreMark(const ChangeLogMark& mark);
ChangeLogMark LoadMark(std::string_view bytes);

std::string RelationKey(Oid relation);
std::string EdgeKey(Oid view, Oid input);
std::string StoreInfo(const RelationInfo& info, uint64_t sequence);
RelationInfo LoadInfo(std::string_view bytes, uint64_t* sequence);
std::string StoreEdge(const Edge& edge);
Edge LoadEdge(std::string_view bytes);
uint64_t LoadNumber(const LmdbTable& meta, std::string_view key);
void StoreNumber(const LmdbTable& meta, std::string_view key, uint64_t number);

// Calls `fn` for each entry whose key begins with `prefix`.
template <typename Fn>
void ForEachEntry(const LmdbTable& table, std::string_view prefix, Fn&& fn) {
  LmdbCursor cursor(table);
  for (bool found = cursor.Seek(prefix); found && cursor.key().starts_with(prefix);
       found = cursor.Next())
    fn(cursor.key(), cursor.value());
}

}  // namespace sluice
