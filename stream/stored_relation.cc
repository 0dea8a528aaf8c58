#include "stream/stored_relation.h"

#include "common/bytes.h"

namespace sluice {

void AppendShard(uint32_t shard, std::string* out) {
  char bytes[kShardKeyBytes];
  StoreBig<uint32_t>(bytes, shard);
  out->append(bytes, sizeof bytes);
}

std::vector<Oid> TypesOf(std::span<const StoredColumn> columns) {
  std::vector<Oid> types;
  for (const StoredColumn& column : columns) types.push_back(column.type);
  return types;
}

StoredRelation::StoredRelation(StoreTransaction* transaction, const RelationInfo& info, bool create)
    : codec_(TypesOf(info.columns)),
      keyed_(info.keyed),
      prefix_bytes_(info.kind == StoredRelationKind::kSource ? kShardKeyBytes : 0),
      table_(transaction, "r" + std::to_string(info.oid), create) {}

std::optional<std::string_view> StoredRelation::Find(std::string_view key) const {
  std::string buffer;
  std::string_view stored = StoredKey(key, &buffer);
  std::optional<std::string_view> value = table_.Get(stored);
  if (!value) return std::nullopt;
  StoredRow row = Unpack(stored, *value);
  if (row.key != key) Throw(sqlstate::kInternalError, "two keys of a view have the same digest");
  return row.row;
}

StoredRow StoredRelation::Unpack(std::string_view stored_key, std::string_view value) const {
  StoredRow row{stored_key, {}, 1};
  if (!keyed_) row.count = TakeVarint(&value);
  if (IsLongKey(stored_key)) row.key = TakeBytes(TakeVarint(&value), &value);
  row.row = keyed_ ? value : row.key.substr(prefix_bytes_);
  return row;
}

void StoredRelation::Write(std::string_view stored_key, std::string_view value) {
  if (!last_known_) {
    LmdbCursor cursor(table_);
    last_key_ = cursor.Last() ? cursor.key() : std::string_view();
    last_known_ = true;
  }
  if (stored_key > last_key_) {
    table_.Append(stored_key, value);
    last_key_ = stored_key;
  } else {
    table_.Put(stored_key, value);
  }
}

void StoredRelation::Put(std::string_view key, std::string_view row) {
  std::string_view stored = StoredKey(key, &key_buffer_);
  if (!IsLongKey(key)) return Write(stored, row);
  value_buffer_.clear();
  AppendVarint(key.size(), &value_buffer_);
  value_buffer_.append(key).append(row);
  Write(stored, value_buffer_);
}

void StoredRelation::Delete(std::string_view key) {
  std::string_view stored = StoredKey(key, &key_buffer_);
  if (!table_.Delete(stored))
    Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in the view store");
  if (stored == last_key_) last_known_ = false;
}

void StoredRelation::AddCount(std::string_view key, std::string_view row, int64_t weight) {
  std::string_view stored = StoredKey(key, &key_buffer_);
  std::optional<std::string_view> value = table_.Get(stored);
  int64_t count = weight;
  if (value) {
    StoredRow old = Unpack(stored, *value);
    if (old.row != row) Throw(sqlstate::kInternalError, "two rows of a view have the same digest");
    count += static_cast<int64_t>(old.count);
  }
  if (count < 0)
    Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in the view store");
  if (count == 0) {
    table_.Delete(stored);
    if (stored == last_key_) last_known_ = false;
    return;
  }
  value_buffer_.clear();
  AppendVarint(static_cast<uint64_t>(count), &value_buffer_);
  if (IsLongKey(key)) {
    AppendVarint(key.size(), &value_buffer_);
    value_buffer_.append(key);
  }
  Write(stored, value_buffer_);
}

void StoredRelation::Apply(std::span<const DeltaBuffer::Entry> changes) {
  for (size_t i = 0; i < changes.size(); i++) {
    const DeltaBuffer::Entry& change = changes[i];
    if (!keyed_) {
      AddCount(change.key, change.row, change.weight);
      continue;
    }
    if (change.weight != 1 && change.weight != -1)
      Throw(sqlstate::kDataCorrupted, "a row of a view with a key comes {} times", change.weight);
    // A key's old row comes right before its new one.
    std::optional<std::string_view> old = Find(change.key);
    bool known = old.has_value();
    if (change.weight == -1) {
      if (!known || *old != change.row)
        Throw(sqlstate::kDataCorrupted, "a row is to be removed that is not in the view store");
      if (i + 1 < changes.size() && changes[i + 1].key == change.key) {
        i++;
        if (changes[i].weight != 1)
          Throw(sqlstate::kDataCorrupted, "two rows of a view have the same key");
        Put(changes[i].key, changes[i].row);
      } else {
        Delete(change.key);
      }
    } else {
      if (known) Throw(sqlstate::kDataCorrupted, "two rows of a view have the same key");
      Put(change.key, change.row);
    }
  }
}

StoredRelationScan::StoredRelationScan(const StoredRelation* relation, std::vector<int> place,
                                       std::span<const Oid> output_types, std::string prefix)
    : relation_(relation),
      place_(std::move(place)),
      prefix_(std::move(prefix)),
      output_(output_types),
      cursor_(relation->table()) {}

void StoredRelationScan::Rescan() {
  started_ = done_ = false;
  repeats_ = 0;
}

void StoredRelationScan::Next(Batch* batch) {
  output_.Clear();
  size_t rows = 0;
  while (rows < kBatchRows && !done_) {
    if (repeats_ == 0) {
      bool found = started_ ? cursor_.Next() : cursor_.Seek(prefix_);
      started_ = true;
      done_ = !found || !cursor_.key().starts_with(prefix_);
      if (done_) break;
      repeats_ = relation_->Unpack(cursor_.key(), cursor_.value()).count;
    }
    StoredRow row = relation_->Unpack(cursor_.key(), cursor_.value());
    for (; repeats_ > 0 && rows < kBatchRows; repeats_--)
      relation_->codec().Decode(row.row, rows++, place_, &output_);
  }
  output_.Show(rows, batch);
}

}  // namespace sluice
