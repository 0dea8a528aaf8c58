// An index on a view: which rows have which values, in order.
//
//   encoded columns (cut) + the row's stored key → length of the former, [stored key, where both
//   are too long together: the key ends in its digest]
//
// Built behind the view's back, in the order of its keys: changes of rows at or below the cursor
// are taken in as they come. What is found is a superset where values are cut: whoever asks
// compares.
#pragma once

#include "stream/stored_relation.h"

namespace sluice {

class ViewIndex {
 public:
  ViewIndex(StoreTransaction* transaction, const RelationInfo& view, const StoredIndex& index,
            bool create);
  static std::string TableName(Oid index) { return "i" + std::to_string(index); }

  const LmdbTable& table() const { return table_; }
  // Of the index's first `values.size()` columns: how entries with such values begin.
  std::string Prefix(std::span<const Column> values) const;
  // Takes in changes, which the view has already, of rows that it covers.
  void Apply(const StoredRelation& view, const StoredIndex& index,
             std::span<const DeltaBuffer::Entry> changes);
  // Further rows, from the cursor on.
  void Build(const StoredRelation& view, size_t rows_max, StoredIndex* index);
  // Where the entry's row is, in the view's table.
  static std::string_view StoredKeyOf(std::string_view key, std::string_view value);
  // The encoded columns.
  static std::string_view ValuesOf(std::string_view key, std::string_view value);

 private:
  void Put(std::string_view stored_key, std::string_view row);
  void Delete(std::string_view stored_key, std::string_view row);
  void MakeEntry(std::string_view stored_key, std::string_view row);

  KeyEncoder encoder_;
  std::vector<int> place_;  // stored column → index column
  RowCodec codec_;
  BatchBuffer values_;
  LmdbTable table_;
  std::string key_, value_, buffer_;  // the entry being made
};

}  // namespace sluice
