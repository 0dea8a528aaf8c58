// One table of a source on its server: described, published, read in pieces, then followed. The
// rule is stream/backfill.h's; here is who asks the server what, and when.
//
//   kDescribe ─► kJoin ─► kSettle ─► kRead ─► kCount ─► kComplete
//   kJoin: adds the table to the publication. kSettle: waits until every transaction that ran then
//   has ended: their changes are decoded without the table. kRead: reads piece after piece; while
//   one waits for its mark the next is read. kCount: all are read, and the last waits.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "postmaster/remote_task.h"
#include "postmaster/view_feed.h"
#include "postmaster/view_source.h"
#include "stream/backfill.h"

namespace sluice {

class ViewLeaf {
 public:
  enum class Phase { kDescribe, kJoin, kSettle, kRead, kCount, kComplete, kFailed };

  // `table`: the source, of which `leaf` is a part (or the same). A copy of what the catalog says:
  // the table is followed as it was described.
  ViewLeaf(const Catalog& catalog, const Relation& table, const Relation& leaf, ShardFeed* feed);
  ~ViewLeaf();

  // What the store keeps; Restore: the description is known.
  std::string Record() const;
  // False: it is of another table, and nothing was restored.
  bool Restore(std::string_view record);

  // Goes on; never waits. `rows_max`: of the next piece; 0: not now.
  bool Poll(int64_t now_us, uint64_t rows_max);
  // How many rows a piece has at most: a small share of the table, and of memory.
  uint64_t PieceRows() const;
  // Whether Poll would begin a piece.
  bool WantsPiece(int64_t now_us) const;
  int64_t wake_at_us() const { return wake_at_us_; }

  Phase phase() const { return phase_; }
  bool reading() const { return reading_; }
  bool described() const { return backfill_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  const LeafDescription& description() const { return description_; }
  // Of the source. REQUIRES: described.
  std::vector<int> KeyColumns() const;
  // The shard's table when it was last looked at (TableState::Text()); none before it is read.
  const std::optional<std::string>& state() const { return state_; }
  void SetState(std::string state);
  // Its changes since then have a TRUNCATE.
  bool truncated() const { return truncated_; }
  void Truncated() { truncated_ = true; }
  // Whether it follows what the catalog says now: that table, those columns of it.
  bool IsStill(const Relation& leaf, const Relation& table) const;
  Oid oid() const { return relation_.oid; }
  const Relation& relation() const { return relation_; }
  ShardFeed* feed() const { return feed_; }
  LeafBackfill& backfill() { return *backfill_; }

  // Whether this is the table that a Relation message describes.
  bool Is(const PublishedTable& table) const;
  // The values of a row as the stream has it, in the source's order; -1 where a column is missing
  // or has another type. Throws where rows could not be told apart without it.
  std::vector<int> MapColumns(const PublishedTable& table) const;
  // Columns of the source that changes do not have any more: the copy's values are of no use.
  const std::set<int>& dropped_columns() const { return dropped_columns_; }
  void DropColumn(int column) { dropped_columns_.insert(column); }
  Error NoSuchColumn(int column) const;

  struct Piece {
    std::string mark;
    ShardSnapshot snapshot;
    bool has_snapshot = false;
    uint64_t rows_max = 0, row_count = 0;
    std::string rows;                             // DataRow messages
    std::optional<std::vector<std::string>> end;  // LeafBackfill::Count's last_key
  };
  // Whether the mark is of a piece whose rows have not all come: it must not be taken yet.
  bool Awaits(const std::string& mark) const { return reading_ && piece_.mark == mark; }
  // It was, nevertheless: the piece will not count.
  void MarkPassed() { mark_passed_ = true; }
  // The piece whose mark is the next to come; null: none has been read.
  Piece* oldest_piece() { return read_.empty() ? nullptr : &read_.front(); }
  // Rows of a table that is read whole, which go into the copy at any time.
  std::string TakeRows();
  bool HasRowsToInsert() const { return !backfill_->ordered() && !piece_.rows.empty(); }
  // The oldest piece counted; or it did not: all are read again, from the cursor.
  void Counted();
  void ReadAgain();
  // From the beginning; `join`: the publication too.
  void Restart(bool join);
  // Its changes cannot be followed any more.
  void Stop(const Error& error);
  uint64_t rows_read() const { return rows_read_; }
  // Rows of a table that is read whole may be in the copy already: it is to be emptied first.
  bool dirty() const { return dirty_; }
  void Cleaned() { dirty_ = false; }
  // The copy may have rows of a table that this one takes the place of.
  void MakeDirty() { dirty_ = true; }

 private:
  void Run(std::vector<RemoteStatement> statements);
  void OnTaskEnded(int64_t now_us);
  bool ReadsAhead() const;
  void StartPiece(uint64_t rows_max);
  const std::optional<std::vector<std::string>>& ReadFrom() const;
  void TakePiece(size_t index, const char* data, size_t size_bytes);
  void OnPieceRead();
  void Fail(Error error, int64_t now_us);

  const Relation relation_;
  const Server server_;
  const std::vector<std::string> remote_columns_;
  const std::vector<Oid> column_types_;
  const std::vector<int16_t> formats_;
  ShardFeed* const feed_;
  const uint64_t pin_;

  Phase phase_ = Phase::kDescribe;
  LeafDescription description_;
  std::set<int> dropped_columns_;
  std::optional<LeafBackfill> backfill_;
  std::unique_ptr<RemoteTask> task_;
  std::vector<std::vector<RemoteRow>> text_rows_;
  std::optional<Error> error_;
  int64_t wake_at_us_ = 0, look_at_us_ = 0;
  uint64_t join_xmax_ = 0;
  std::optional<std::string> state_;
  bool truncated_ = false;

  bool reading_ = false;  // the statements of piece_ run
  bool mark_passed_ = false;
  Piece piece_;
  std::string last_row_;
  std::deque<Piece> read_;  // these wait for their marks
  uint64_t row_bytes_ = 0;  // of the last piece, on average
  uint64_t rows_read_ = 0;  // that count
  bool dirty_ = false;
};

}  // namespace sluice
