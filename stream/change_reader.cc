#include "stream/change_reader.h"

#include <charconv>

#include "common/error.h"

namespace sluice {
namespace {

// Transactions share memory up to this; large ones have their own.
constexpr size_t kSharedMemoryBytes = 256 * 1024;
constexpr size_t kSpilledMemoryBytes = 64 << 20, kSpilledBlockBytes = 1 << 20;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void ChangeList::push_back(const RowChange& change, Arena* arena) {
  constexpr size_t kFirst = 4, kMost = 1024;
  if (room_ == 0) {
    if (arena == nullptr) {
      if (own_ == nullptr) own_ = std::make_shared<Arena>();
      arena = own_.get();
    }
    room_ = chunks_.empty() ? kFirst : std::min(kMost, chunks_.back().size() * 2);
    chunks_.emplace_back(arena->NewRaw<RowChange>(room_), 0);
  }
  std::span<RowChange>& last = chunks_.back();
  last = {last.data(), last.size() + 1};
  new (&last.back()) RowChange(change);
  room_--;
}

void ChangeReader::Take(const char* data, size_t size_bytes) {
  CopyDataReader reader(data, size_bytes);
  for (std::string_view body; reader.Next(&body);) {
    ReplicationFrame frame = DecodeReplicationFrame(body);
    server_lsn_ = std::max(server_lsn_, frame.wal_end);
    server_time_us_ = frame.sent_at_us;
    if (frame.keepalive) {
      // Sent between transactions: what is before it and has not come, is not for us.
      if (!open_) received_lsn_ = std::max(received_lsn_, frame.wal_end);
      reply_requested_ |= frame.reply_requested;
    } else {
      TakeMessage(frame.payload);
    }
  }
}

void ChangeReader::Reset() {
  open_.reset();
  ready_.clear();
  ready_bytes_ = 0;
  tables_.clear();
  received_lsn_ = 0;
}

void ChangeReader::PopReady(size_t count) {
  for (; count > 0; count--) {
    ready_bytes_ -= ready_.front().bytes;
    ready_.pop_front();
  }
}

ShardTransaction& ChangeReader::Open() {
  if (!open_)
    Throw(sqlstate::kProtocolViolation,
          "a change outside of a transaction in a replication stream");
  return *open_;
}

void ChangeReader::TakeMessage(std::string_view bytes) {
  DecodePgOutput(bytes, &message_);
  switch (message_.kind) {
    case PgOutputKind::kBegin:
      if (open_)
        Throw(sqlstate::kProtocolViolation, "a transaction in another in a replication stream");
      open_.emplace();
      open_->xid = message_.xid;
      open_->commit_lsn = message_.lsn;
      open_->commit_time_us = message_.commit_time_us;
      break;
    case PgOutputKind::kCommit:
      EndTransaction();
      break;
    case PgOutputKind::kRelation:
      TakeRelation();
      break;
    case PgOutputKind::kInsert:
    case PgOutputKind::kUpdate:
    case PgOutputKind::kDelete:
      TakeRow();
      break;
    case PgOutputKind::kTruncate:
      TakeTruncate();
      break;
    case PgOutputKind::kMessage:
      // Others than those in transactions are none of ours.
      if (message_.transactional) TakeLogicalMessage();
      break;
    case PgOutputKind::kOrigin:
    case PgOutputKind::kType:
      break;
  }
}

void ChangeReader::EndTransaction() {
  ShardTransaction& transaction = Open();
  transaction.end_lsn = message_.end_lsn;
  received_lsn_ = std::max(received_lsn_, message_.end_lsn);
  ready_bytes_ += transaction.bytes;
  ready_.push_back(std::move(transaction));
  open_.reset();
}

void ChangeReader::TakeRelation() {
  PublishedTable& table = described_.emplace_back();
  table.oid = message_.relation;
  table.schema = message_.schema;
  table.name = message_.name;
  table.replica_identity = message_.replica_identity;
  for (const PublishedColumn& column : message_.columns)
    table.columns.push_back({std::string(column.name), column.type, column.is_key});
  tables_[table.oid] = &table;
}

void ChangeReader::TakeRow() {
  ShardTransaction& transaction = Open();
  auto table = tables_.find(message_.relation);
  if (table == tables_.end())
    Throw(sqlstate::kProtocolViolation, "a row of an unknown table in a replication stream");
  RowChange change{table->second, RowChange::kInsert};
  if (message_.kind == PgOutputKind::kUpdate) change.kind = RowChange::kUpdate;
  if (message_.kind == PgOutputKind::kDelete) change.kind = RowChange::kDelete;
  change.old_is_key = message_.old_kind == OldTuple::kKey;
  if (message_.old_kind != OldTuple::kNone)
    change.old_row = Keep(message_.old_tuple, *table->second, change.old_is_key);
  if (change.kind != RowChange::kDelete)
    change.new_row = Keep(message_.new_tuple, *table->second, false);
  transaction.changes.push_back(change, &MemoryOf(&transaction));
}

// Lives as long as the transaction's changes.
Arena& ChangeReader::MemoryOf(ShardTransaction* transaction) {
  bool spill = spill_blocks_ != nullptr && transaction->bytes > spill_bytes_;
  if (memory_ == nullptr || spill != spilling_ || memory_->allocated_bytes() > memory_bytes_max_) {
    memory_ = spill ? std::make_shared<Arena>(*spill_blocks_, kSpilledBlockBytes)
                    : std::make_shared<Arena>();
    memory_bytes_max_ = spill ? kSpilledMemoryBytes : kSharedMemoryBytes;
    spilling_ = spill;
  }
  if (transaction->memory.empty() || transaction->memory.back() != memory_)
    transaction->memory.push_back(memory_);
  return *memory_;
}

std::span<const WireValue> ChangeReader::Keep(const Tuple& tuple, const PublishedTable& table,
                                              bool key_only) {
  ShardTransaction& transaction = *open_;
  if (tuple.size() != table.columns.size())
    Throw(sqlstate::kProtocolViolation,
          "a row of {} columns of a table of {} in a replication "
          "stream",
          tuple.size(), table.columns.size());
  Arena& memory = MemoryOf(&transaction);
  size_t bytes = sizeof(RowChange) + tuple.size() * sizeof(WireValue);
  for (const TupleValue& value : tuple) bytes += value.bytes.size();
  transaction.bytes += bytes;
  auto* values = memory.NewRaw<WireValue>(tuple.size());
  for (size_t i = 0; i < tuple.size(); i++) {
    const TupleValue& value = tuple[i];
    values[i] = WireValue{};
    if (value.kind == 'u' || (key_only && !table.columns[i].is_key)) {
      values[i].length = WireValue::kUnchanged;
    } else if (value.kind != 'n') {
      values[i].data = memory.CopyString(value.bytes).data();
      values[i].length = static_cast<int32_t>(value.bytes.size());
    }
  }
  return {values, tuple.size()};
}

void ChangeReader::TakeTruncate() {
  ShardTransaction& transaction = Open();
  for (Oid oid : message_.relations) {
    auto table = tables_.find(oid);
    if (table == tables_.end())
      Throw(sqlstate::kProtocolViolation, "TRUNCATE of an unknown table in a replication stream");
    transaction.changes.push_back({table->second, RowChange::kTruncate}, &MemoryOf(&transaction));
  }
}

void ChangeReader::TakeLogicalMessage() {
  ShardTransaction& transaction = Open();
  std::vector<std::string_view> words = Words(message_.content);
  if (message_.prefix == kMarkMessagePrefix) {
    if (words.size() == 2 && words[0] == instance_) transaction.marks.emplace_back(words[1]);
    return;
  }
  if (message_.prefix != kTransactionMessagePrefix || words.size() < 2) return;
  size_t count = 0;
  if (!ParseNumber(words[1], &count) || count != words.size() - 2) return;
  transaction.gid = words[0];
  transaction.participants.assign(count, 0);
  for (size_t i = 0; i < count; i++) ParseNumber(words[i + 2], &transaction.participants[i]);
}

}  // namespace sluice
