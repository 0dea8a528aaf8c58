// One side's rows of a join, by join key, in the store.
//
//   key prefix + row → multiplicity     (what does not fit a key of LMDB's follows in the value)
//   key prefix alone → number of rows   (where the join asks for it)
#pragma once

#include "stream/key_encoding.h"
#include "stream/lmdb_table.h"
#include "stream/row_codec.h"

namespace sluice {

struct JoinSideRow {
  std::string row;  // RowCodec's
  int64_t count;
};

class JoinSide {
 public:
  JoinSide(LmdbTable table, std::span<const Oid> types, bool counted)
      : table_(std::move(table)), codec_(types), counted_(counted) {}

  const RowCodec& codec() const { return codec_; }
  void Add(std::string_view join_key, std::string_view row, int64_t weight);
  // How many rows have the key.
  int64_t Count(std::string_view join_key) const;
  // Appends up to `rows_max` rows of the key, from *place on (empty: from the start), which moves
  // on. False: these were the last.
  bool Read(std::string_view join_key, size_t rows_max, std::string* place,
            std::vector<JoinSideRow>* rows) const;

 private:
  static void AppendPrefix(std::string_view join_key, std::string* out);
  // False: another join key with the same digest, or a count.
  bool Unpack(std::string_view prefix, std::string_view join_key, std::string_view stored,
              std::string_view value, JoinSideRow* row) const;
  void AddCount(const std::string& prefix, int64_t weight);

  LmdbTable table_;
  RowCodec codec_;
  bool counted_;
  std::string key_buffer_, cut_buffer_, value_buffer_;
};

}  // namespace sluice
