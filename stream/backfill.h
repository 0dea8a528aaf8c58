// One table of a source on one shard, from when it joined the publication until all its rows are in
// the source copy: which rows are read when, and which changes belong on top of them.
//
// The table is read in pieces of its key's order (or in one piece), each under a snapshot of its
// own, in the transaction of which a *mark* is written to the shard's WAL. So when the mark comes
// down the stream, everything that the snapshot sees has come before it.
//
//   cursor: the last key of the last piece that counts. A change of a key at or below it is applied
//   as it comes. One beyond it is *kept* until a snapshot sees its transaction (then every later
//   piece has it already), or until the piece with its key counts (then it goes on top of it).
//
// Proof sketch. When a piece counts, the stream stands at its mark. Transactions committed before
// the mark, as the WAL has it: those that the piece's snapshot sees are in its rows; the others
// were kept, and are put on top in commit order. Transactions behind the mark cannot be seen by the
// snapshot, as their commit records were written after it was taken. So rows + kept = the table's
// state at the mark, for the piece's range; and from then on all changes in the range are applied.
// A change that moves a row out of the range or into it counts as a delete and an insert.
//
// The next piece may be read while one waits for its mark: their marks come in order, and what the
// later snapshot sees is dropped (Seen) only when the earlier piece has counted.
//
// What is kept is not durable: the shard is told no position behind the oldest kept change
// (HoldLsn), so that after a restart it comes again.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stream/change_reader.h"
#include "stream/visibility.h"

namespace sluice {

// The order of a table's key, as the shard sorts by it.
class KeyOrder {
 public:
  struct KeyColumn {
    int column;  // of the source
    Oid type;
  };
  // Whether this process can tell the order of such a key. Collations are the caller's to check:
  // text is compared by bytes.
  static bool Knows(Oid type);
  explicit KeyOrder(std::vector<KeyColumn> columns) : columns_(std::move(columns)) {}
  const std::vector<KeyColumn>& columns() const { return columns_; }
  // `row`: the source's columns; `key`: values of the key columns.
  int Compare(std::span<const WireValue> row, const std::vector<std::string>& key) const;
  bool SameKey(std::span<const WireValue> a, std::span<const WireValue> b) const;

 private:
  std::vector<KeyColumn> columns_;
};

class LeafBackfill {
 public:
  using Apply = std::function<void(ChangeKind kind, std::span<const WireValue> old_row,
                                   std::span<const WireValue> new_row)>;

  // `ordered`: read in pieces of the key's order.
  LeafBackfill(KeyOrder order, bool ordered) : order_(std::move(order)), ordered_(ordered) {}

  const KeyOrder& order() const { return order_; }
  bool ordered() const { return ordered_; }
  bool complete() const { return complete_; }
  const std::optional<std::vector<std::string>>& cursor() const { return cursor_; }
  // What was durable: goes on from there.
  void Restore(bool complete, std::optional<std::vector<std::string>> cursor);
  // From the beginning; the copy is to be emptied.
  void Restart();

  // A change of the stream, columns as the source has them: applies it, keeps it, or both.
  // `replayed`: the copy has what it was to get; only what is to be kept is of interest.
  void Take(const RowChange& change, const ShardTransaction& transaction, bool replayed,
            const Apply& apply);
  // The caller empties the copy (unless it is replayed).
  void TakeTruncate(const ShardTransaction& transaction);

  // A snapshot was taken, and no piece before it is still to count: what it sees need not be kept.
  void Seen(const ShardSnapshot& snapshot);
  // The mark of a piece under `snapshot` has come. `last_key`: of its last row, or nullopt if it
  // reached the table's end. The piece's rows are in the copy; `apply` gets what belongs on top.
  // `memory`: keeps what `apply` got alive. False: a value that was not sent again is missing;
  // Restart().
  bool Count(const ShardSnapshot& snapshot, std::optional<std::vector<std::string>> last_key,
             const Apply& apply, std::vector<ChangeMemory>* memory);
  // Whether rows of a piece under this snapshot are there no more: a TRUNCATE that it does not see.
  // (A TRUNCATE takes rows away whose transactions any snapshot sees.)
  bool TruncatedAfter(const ShardSnapshot& snapshot) const;

  // What is kept comes again.
  void ForgetKept();
  size_t kept() const { return kept_.size(); }
  size_t kept_bytes() const { return kept_bytes_; }
  // The shard is to be told no position beyond it; none: any.
  std::optional<Lsn> HoldLsn() const;

 private:
  struct Kept {
    uint32_t xid;
    Lsn commit_lsn;
    ChangeKind kind;
    bool truncate = false;
    std::vector<WireValue> old_row, new_row;
    std::vector<ChangeMemory> memory;
    size_t bytes;
  };
  bool InRange(std::span<const WireValue> row) const;
  void Keep(ChangeKind kind, std::span<const WireValue> old_row, std::span<const WireValue> new_row,
            const ShardTransaction& transaction);
  bool ApplyKept(Kept kept, std::deque<Kept>* rest, const Apply& apply);

  KeyOrder order_;
  bool ordered_;
  bool complete_ = false;
  std::optional<std::vector<std::string>> cursor_;
  std::deque<Kept> kept_;
  size_t kept_bytes_ = 0;
};

}  // namespace sluice
