// The rows of a source copy or of a view: one table of the store.
//
//   keyed:    key → row            (a long key: cut; value = whole key, row)
//   keyless:  key ending in the row → multiplicity      (long: value = multiplicity, whole key)
//
// A source's keys begin with the shard's number, big-endian.
#pragma once

#include <vector>

#include "stream/delta_buffer.h"
#include "stream/key_encoding.h"
#include "stream/lmdb_table.h"
#include "stream/row_codec.h"
#include "stream/view_store.h"

namespace sluice {

inline constexpr size_t kShardKeyBytes = 4;
void AppendShard(uint32_t shard, std::string* out);

struct StoredRow {
  std::string_view key;  // whole
  std::string_view row;
  uint64_t count = 1;
};

class ViewIndex;  // stream/view_index.h

class StoredRelation {
 public:
  StoredRelation(StoreTransaction* transaction, const RelationInfo& info, bool create);

  const RowCodec& codec() const { return codec_; }
  const LmdbTable& table() const { return table_; }
  bool keyed() const { return keyed_; }
  std::vector<Oid> key_types() const;

  // The row at a key, if there is one. Valid until the next write.
  std::optional<std::string_view> Find(std::string_view key) const;
  // Takes in a settled net change. Throws XX001 where a row goes that isn't there.
  void Apply(std::span<const DeltaBuffer::Entry> changes);
  // Writes one change at once. Keyed relations: old rows are not looked at.
  void Put(std::string_view key, std::string_view row);
  // REQUIRES: keyed. False: there is a row with that key.
  bool Insert(std::string_view key, std::string_view row);
  void Delete(std::string_view key);
  void AddCount(std::string_view key, std::string_view row, int64_t weight);

  StoredRow Unpack(std::string_view stored_key, std::string_view value) const;

 private:
  void Write(std::string_view stored_key, std::string_view value);
  // False: the key is not behind all others.
  bool TryAppend(std::string_view stored_key, std::string_view value);

  RowCodec codec_;
  bool keyed_;
  size_t prefix_bytes_;  // of a keyless key, before the row
  LmdbTable table_;
  std::string key_buffer_, value_buffer_;
  // The greatest key of the table, where it is known: later keys are appended.
  std::string last_key_;
  bool last_known_ = false;
};

std::vector<Oid> TypesOf(std::span<const StoredColumn> columns);
// The table that has the relation's rows.
std::string RowTableName(const RelationInfo& info);
// `columns`: by name, in output order.
// `index`: one of the relation's, complete; null: none.
std::unique_ptr<RowSource> ScanStored(const StoredRelation& relation,
                                      std::shared_ptr<const RelationInfo> info,
                                      std::span<const std::string_view> columns,
                                      std::unique_ptr<ViewIndex> index = nullptr,
                                      std::span<const int> index_columns = {});

// Reads stored rows in key order into batches, a row of multiplicity n n times.
class StoredRelationScan : public RowSource {
 public:
  // place: stored column → output column or -1.
  StoredRelationScan(const StoredRelation* relation, std::shared_ptr<const RelationInfo> info,
                     std::vector<int> place, std::span<const Oid> output_types,
                     std::unique_ptr<ViewIndex> index, std::span<const int> index_columns);
  ~StoredRelationScan() override;
  void Restrict(std::span<const Condition> conditions) override;
  void Next(Batch* batch) override;
  void Rescan() override;

 private:
  // To the next entry that is wanted; false: there is none.
  bool Advance();
  bool SeekPrefix();
  void RestrictIndex(std::span<const Condition> conditions);
  bool AdvanceInIndex();

  const StoredRelation* relation_;
  std::shared_ptr<const RelationInfo> info_;
  std::vector<int> place_;
  // Restricted: how wanted keys go on behind the shard's number; looked for on each shard in turn.
  std::string wanted_;
  std::string prefix_;  // of the keys being read
  BatchBuffer output_;
  LmdbCursor cursor_;
  // By an index: its entries from `from_` on that begin with prefix_, up to `to_` (empty: no end).
  std::unique_ptr<ViewIndex> index_;
  std::vector<int> index_columns_;
  bool by_index_ = false;
  std::string from_, to_;
  std::optional<LmdbCursor> index_cursor_;
  bool started_ = false, done_ = false;
  uint64_t repeats_ = 0;  // of the row at the cursor, still to come
};

}  // namespace sluice
