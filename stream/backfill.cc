#include "stream/backfill.h"

#include <algorithm>
#include <cstring>

#include "types/codec.h"
#include "types/compare.h"

namespace sluice {
namespace {

bool IsText(Oid type) {
  return type == kTextOid || type == kVarcharOid;
}

std::string_view Bytes(const WireValue& value) {
  return {value.data, static_cast<size_t>(std::max(value.length, 0))};
}

// Values of fixed types fit into 16 bytes; the others are views.
struct OneValue {
  alignas(16) char data[16];
  Column column;
  OneValue(Oid type, std::string_view bytes) {
    column.type = type;
    column.physical = PhysicalOf(type);
    column.data = data;
    DecodeBinaryValue(type, bytes, &column, 0);
  }
};

int CompareValues(Oid type, std::string_view a, std::string_view b) {
  if (IsText(type)) return a.compare(b);
  OneValue left(type, a), right(type, b);
  return FindCompare(type)(left.column, 0, right.column, 0, nullptr);
}

bool HasUnchanged(std::span<const WireValue> row) {
  return std::any_of(row.begin(), row.end(),
                     [](const WireValue& value) { return value.length == WireValue::kUnchanged; });
}

}  // namespace

bool KeyOrder::Knows(Oid type) {
  switch (type) {
    case kBoolOid:
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kUuidOid:
    case kNumericOid:
    case kTextOid:
    case kVarcharOid:
      return true;
    default:
      return false;
  }
}

int KeyOrder::Compare(std::span<const WireValue> row, const std::vector<std::string>& key) const {
  for (size_t i = 0; i < columns_.size(); i++) {
    const WireValue& value = row[static_cast<size_t>(columns_[i].column)];
    int order = CompareValues(columns_[i].type, Bytes(value), key[i]);
    if (order != 0) return order;
  }
  return 0;
}

bool KeyOrder::SameKey(std::span<const WireValue> a, std::span<const WireValue> b) const {
  return std::all_of(columns_.begin(), columns_.end(), [&](const KeyColumn& key) {
    auto at = static_cast<size_t>(key.column);
    return Bytes(a[at]) == Bytes(b[at]);
  });
}

void LeafBackfill::Restore(bool complete, std::optional<std::vector<std::string>> cursor) {
  complete_ = complete;
  cursor_ = std::move(cursor);
}

void LeafBackfill::Restart() {
  complete_ = false;
  cursor_.reset();
}

bool LeafBackfill::InRange(std::span<const WireValue> row) const {
  if (complete_) return true;
  return ordered_ && cursor_ && order_.Compare(row, *cursor_) <= 0;
}

void LeafBackfill::Take(const RowChange& change, const ShardTransaction& transaction, bool replayed,
                        const Apply& apply) {
  auto kind = static_cast<ChangeKind>(change.kind);
  std::span<const WireValue> from = change.old_row, to = change.new_row;
  if (complete_) {
    if (!replayed) apply(kind, from, to);
    return;
  }
  if (kind == ChangeKind::kUpdate && !from.empty() && ordered_ && !order_.SameKey(from, to)) {
    bool from_here = InRange(from), to_here = InRange(to);
    if (from_here != to_here) {
      auto part = [&](bool here, ChangeKind as, std::span<const WireValue> old_row,
                      std::span<const WireValue> new_row) {
        if (!here) return Keep(as, old_row, new_row, transaction);
        if (!replayed) apply(as, old_row, new_row);
      };
      part(from_here, ChangeKind::kDelete, from, {});
      return part(to_here, ChangeKind::kInsert, {}, to);
    }
  }
  if (!InRange(to.empty() ? from : to)) return Keep(kind, from, to, transaction);
  if (!replayed) apply(kind, from, to);
}

// What was kept before it is gone with the rows.
void LeafBackfill::TakeTruncate(const ShardTransaction& transaction) {
  if (complete_) return;
  ForgetKept();
  Keep(ChangeKind::kDelete, {}, {}, transaction);
  kept_.back().truncate = true;
}

void LeafBackfill::Keep(ChangeKind kind, std::span<const WireValue> old_row,
                        std::span<const WireValue> new_row, const ShardTransaction& transaction) {
  Kept& kept = kept_.emplace_back();
  kept.xid = transaction.xid;
  kept.commit_lsn = transaction.commit_lsn;
  kept.kind = kind;
  kept.old_row.assign(old_row.begin(), old_row.end());
  kept.new_row.assign(new_row.begin(), new_row.end());
  kept.bytes = sizeof(Kept) + (old_row.size() + new_row.size()) * sizeof(WireValue);
  for (auto row : {old_row, new_row})
    for (const WireValue& value : row) kept.bytes += Bytes(value).size();
  kept.memory = transaction.memory;
  kept_bytes_ += kept.bytes;
}

void LeafBackfill::Seen(const ShardSnapshot& snapshot) {
  std::erase_if(kept_, [&](const Kept& kept) {
    if (!snapshot.Sees(kept.xid)) return false;
    kept_bytes_ -= kept.bytes;
    return true;
  });
}

void LeafBackfill::ForgetKept() {
  kept_.clear();
  kept_bytes_ = 0;
}

bool LeafBackfill::TruncatedAfter(const ShardSnapshot& snapshot) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const Kept& kept) { return kept.truncate && !snapshot.Sees(kept.xid); });
}

bool LeafBackfill::Count(const ShardSnapshot& snapshot,
                         std::optional<std::vector<std::string>> last_key, const Apply& apply,
                         std::vector<ChangeMemory>* memory) {
  complete_ = !last_key;
  cursor_ = std::move(last_key);
  std::deque<Kept> kept = std::exchange(kept_, {});
  kept_bytes_ = 0;
  std::deque<Kept> rest;
  for (Kept& change : kept) {
    if (change.truncate || snapshot.Sees(change.xid)) continue;
    memory->insert(memory->end(), change.memory.begin(), change.memory.end());
    if (!ApplyKept(std::move(change), &rest, apply)) return false;
  }
  for (const Kept& change : rest) kept_bytes_ += change.bytes;
  kept_ = std::move(rest);
  return true;
}

// Into the range that counts now, or on to `rest`.
bool LeafBackfill::ApplyKept(Kept kept, std::deque<Kept>* rest, const Apply& apply) {
  bool both = kept.kind == ChangeKind::kUpdate && !kept.old_row.empty();
  bool to_here = !kept.new_row.empty() && InRange(kept.new_row);
  bool from_here = both                   ? InRange(kept.old_row)
                   : kept.new_row.empty() ? InRange(kept.old_row)
                                          : to_here;
  if (kept.new_row.empty()) to_here = from_here;
  if (from_here == to_here) {
    if (!from_here) {
      rest->push_back(std::move(kept));
      return true;
    }
    // A value that did not travel is in the row that is replaced; an insert (the second half of a
    // row that moved) has none.
    if (kept.kind == ChangeKind::kInsert && HasUnchanged(kept.new_row)) return false;
    apply(kept.kind, kept.old_row, kept.new_row);
    return true;
  }
  Kept other = kept;
  if (from_here) {
    apply(ChangeKind::kDelete, kept.old_row, {});
    other.kind = ChangeKind::kInsert;
    other.old_row.clear();
  } else {
    if (HasUnchanged(kept.new_row)) return false;
    apply(ChangeKind::kInsert, {}, kept.new_row);
    other.kind = ChangeKind::kDelete;
    other.new_row.clear();
  }
  rest->push_back(std::move(other));
  return true;
}

std::optional<Lsn> LeafBackfill::HoldLsn() const {
  if (kept_.empty()) return std::nullopt;
  return kept_.front().commit_lsn;
}

}  // namespace sluice
