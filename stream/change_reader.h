// A shard's replication stream → its transactions, in the order in which they were committed there.
//
// pgoutput (proto_version 1) sends a transaction when it has committed, whole and one after the
// other, so what is read is never rolled back. Rows are kept as they travelled, until an epoch has
// taken them in.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/arena.h"
#include "stream/change_batch.h"
#include "stream/pgoutput.h"

namespace sluice {

// The prefix of the logical messages that a transaction over several shards carries (content: its
// global id, the number of participants, their system identifiers, separated by blanks), and of the
// marks by which a Sluice finds a moment in the streams again (content: the instance, the mark).
inline constexpr std::string_view kTransactionMessagePrefix = "sluice";
inline constexpr std::string_view kMarkMessagePrefix = "sluice_mark";

// A table as a Relation message described it.
struct PublishedTable {
  struct Column {
    std::string name;
    Oid type;
    bool is_key;
  };
  Oid oid;  // the shard's
  std::string schema, name;
  char replica_identity;
  std::vector<Column> columns;
};

// Values of rows; columns as in the table, absent rows empty.
struct RowChange {
  const PublishedTable* table;
  enum Kind : uint8_t { kInsert, kUpdate, kDelete, kTruncate } kind;
  // Only the key columns of `old_row` are there (the others are kUnchanged).
  bool old_is_key = false;
  std::span<const WireValue> old_row, new_row;
};

// Memory of some transactions' changes; goes with the last of them.
using ChangeMemory = std::shared_ptr<Arena>;

// A transaction's changes, in memory that never moves: its own, or the arena's that is given.
class ChangeList {
 public:
  class Iterator {
   public:
    Iterator(const ChangeList* list, size_t chunk) : list_(list), chunk_(chunk) {}
    const RowChange& operator*() const { return list_->chunks_[chunk_][at_]; }
    bool operator==(const Iterator& other) const = default;
    Iterator& operator++() {
      if (++at_ < list_->chunks_[chunk_].size()) return *this;
      at_ = 0;
      chunk_++;
      return *this;
    }

   private:
    const ChangeList* list_;
    size_t chunk_, at_ = 0;
  };

  void push_back(const RowChange& change, Arena* arena = nullptr);
  bool empty() const { return chunks_.empty(); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, chunks_.size()}; }

 private:
  std::vector<std::span<RowChange>> chunks_;  // of as many changes as they have
  size_t room_ = 0;                           // behind the last chunk's
  ChangeMemory own_;
};

struct ShardTransaction {
  uint32_t xid = 0;
  Lsn commit_lsn = 0;  // START_REPLICATION from here, or earlier, sends it again
  Lsn end_lsn = 0;     // from here, no more
  int64_t commit_time_us = 0;
  ChangeList changes;
  std::vector<ChangeMemory> memory;
  size_t bytes = 0;
  // Of a transaction over several shards.
  std::string gid;
  std::vector<uint64_t> participants;  // system identifiers
  std::vector<std::string> marks;      // of this instance
};

class ChangeReader {
 public:
  explicit ChangeReader(std::string instance) : instance_(std::move(instance)) {}
  // A transaction of more bytes goes on in `blocks`, which must outlive the changes.
  void SetSpill(size_t bytes_max, BlockSource* blocks) {
    spill_bytes_ = bytes_max;
    spill_blocks_ = blocks;
  }

  // Takes in a slice's bytes (CopyData messages); they may go afterwards. Throws 08P01.
  void Take(const char* data, size_t size_bytes);
  // A new connection: what was begun comes again.
  void Reset();

  // Transactions that are whole and not taken yet.
  std::deque<ShardTransaction>& ready() { return ready_; }
  size_t ready_bytes() const { return ready_bytes_; }
  void PopReady(size_t count);
  bool in_transaction() const { return open_.has_value(); }
  // Everything before it has come; past the last transaction where the shard said so while idle.
  Lsn received_lsn() const { return received_lsn_; }
  Lsn server_lsn() const { return server_lsn_; }
  int64_t server_time_us() const { return server_time_us_; }
  // The shard wants to know how far we are (it shuts down, or hears nothing); asked once.
  bool TakeReplyRequest() { return std::exchange(reply_requested_, false); }

 private:
  void TakeMessage(std::string_view bytes);
  void TakeRelation();
  void TakeRow();
  void TakeTruncate();
  void TakeLogicalMessage();
  void EndTransaction();
  ShardTransaction& Open();
  Arena& MemoryOf(ShardTransaction* transaction);
  std::span<const WireValue> Keep(const Tuple& tuple, const PublishedTable& table, bool key_only);

  const std::string instance_;
  PgOutputMessage message_;
  std::map<Oid, const PublishedTable*> tables_;
  std::deque<PublishedTable> described_;  // every description that came: changes point at them
  ChangeMemory memory_;
  size_t memory_bytes_max_ = 0;  // of memory_, before there is another
  size_t spill_bytes_ = ~size_t{0};
  BlockSource* spill_blocks_ = nullptr;
  bool spilling_ = false;  // memory_ is of spill_blocks_
  std::optional<ShardTransaction> open_;
  std::deque<ShardTransaction> ready_;
  size_t ready_bytes_ = 0;
  Lsn received_lsn_ = 0, server_lsn_ = 0;
  int64_t server_time_us_ = 0;
  bool reply_requested_ = false;
};

}  // namespace sluice
