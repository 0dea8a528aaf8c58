#include "stream/stored_relation.h"

#include "common/bytes.h"
#include "stream/view_index.h"

namespace sluice {

void AppendShard(uint32_t shard, std::string* out) {
  char bytes[kShardKeyBytes];
  StoreBig<uint32_t>(bytes, shard);
  out->append(bytes, sizeof bytes);
}

// The first prefix that a later shard's keys can have.
static std::string NextShard(const std::string& shard) {
  std::string next;
  uint32_t number = LoadBig<uint32_t>(shard.data());
  if (number == UINT32_MAX) return std::string(kShardKeyBytes + 1, '\xff');  // behind all keys
  AppendShard(number + 1, &next);
  return next;
}

std::vector<Oid> TypesOf(std::span<const StoredColumn> columns) {
  std::vector<Oid> types;
  for (const StoredColumn& column : columns) types.push_back(column.type);
  return types;
}

StoredRelation::StoredRelation(StoreTransaction* transaction, const RelationInfo& info, bool create)
    : codec_(TypesOf(info.columns)),
      keyed_(info.keyed),
      prefix_bytes_(!info.keyed && info.by_shard ? kShardKeyBytes : 0),
      table_(transaction, RowTableName(info), create) {}

std::string RowTableName(const RelationInfo& info) {
  return "r" + std::to_string(info.storage == kInvalidOid ? info.oid : info.storage);
}

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

bool StoredRelation::TryAppend(std::string_view stored_key, std::string_view value) {
  if (!last_known_) {
    LmdbCursor cursor(table_);
    last_key_ = cursor.Last() ? cursor.key() : std::string_view();
    last_known_ = true;
  }
  if (stored_key <= last_key_) return false;
  table_.Append(stored_key, value);
  last_key_ = stored_key;
  return true;
}

void StoredRelation::Write(std::string_view stored_key, std::string_view value) {
  if (!TryAppend(stored_key, value)) table_.Put(stored_key, value);
}

bool StoredRelation::Insert(std::string_view key, std::string_view row) {
  if (!IsLongKey(key)) return TryAppend(key, row) || table_.Insert(key, row);
  if (Find(key)) return false;
  Put(key, row);
  return true;
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
    if (change.weight == -1) {
      std::optional<std::string_view> old = Find(change.key);
      if (!old || *old != change.row)
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
      if (!Insert(change.key, change.row))
        Throw(sqlstate::kDataCorrupted, "two rows of a view have the same key");
    }
  }
}

StoredRelationScan::StoredRelationScan(const StoredRelation* relation,
                                       std::shared_ptr<const RelationInfo> info,
                                       std::vector<int> place, std::span<const Oid> output_types,
                                       std::unique_ptr<ViewIndex> index,
                                       std::span<const int> index_columns)
    : relation_(relation),
      info_(std::move(info)),
      place_(std::move(place)),
      output_(output_types),
      cursor_(relation->table()),
      index_(std::move(index)),
      index_columns_(index_columns.begin(), index_columns.end()) {}

StoredRelationScan::~StoredRelationScan() = default;

namespace {

// The value as one of `type`; nullopt where no value of that type equals it, or it isn't known.
std::optional<Column> AsType(const Column& value, Oid type, Arena* arena) {
  if (value.type == type) return value;
  auto text = [](Oid t) { return t == kTextOid || t == kVarcharOid; };
  if (text(type) && text(value.type)) {
    Column as = value;
    as.type = type;
    return as;
  }
  auto integer = [&]() -> std::optional<int64_t> {
    switch (value.physical) {
      case Physical::kInt2:
        return value.At<int16_t>(0);
      case Physical::kInt4:
        return value.At<int32_t>(0);
      case Physical::kInt8:
        return value.At<int64_t>(0);
      default:
        return std::nullopt;
    }
  };
  bool integers = (type == kInt2Oid || type == kInt4Oid || type == kInt8Oid) &&
                  (value.type == kInt2Oid || value.type == kInt4Oid || value.type == kInt8Oid);
  if (!integers) return std::nullopt;
  int64_t number = *integer();
  Column as{type, PhysicalOf(type), 0, nullptr, arena->Allocate(8)};
  if (type == kInt2Oid) *as.Data<int16_t>() = static_cast<int16_t>(number);
  if (type == kInt4Oid) *as.Data<int32_t>() = static_cast<int32_t>(number);
  if (type == kInt8Oid) *as.Data<int64_t>() = number;
  bool fits =
      type == kInt8Oid || number == (type == kInt2Oid ? as.At<int16_t>(0) : as.At<int32_t>(0));
  if (!fits) return std::nullopt;
  return as;
}

// The value that the column is compared to so; nullopt: none is known.
std::optional<Column> ComparedTo(std::span<const RowSource::Condition> conditions,
                                 const StoredColumn& column, RowSource::Comparison comparison,
                                 Arena* arena) {
  std::optional<Column> value;
  for (const RowSource::Condition& condition : conditions)
    if (condition.column == column.name && condition.comparison == comparison && !value)
      value = AsType(condition.value, column.type, arena);
  return value;
}

}  // namespace

void StoredRelationScan::Restrict(std::span<const Condition> conditions) {
  std::vector<Oid> types;
  std::vector<Column> values;
  Arena arena;
  for (int key : info_->key_columns) {
    const StoredColumn& column = info_->columns[static_cast<size_t>(key)];
    std::optional<Column> value = ComparedTo(conditions, column, Comparison::kEqual, &arena);
    if (!value) break;
    types.push_back(column.type);
    values.push_back(*value);
  }
  if (!values.empty())
    KeyEncoder(types).Append(values, 0, &wanted_);
  else if (index_ != nullptr)
    RestrictIndex(conditions);
}

// Equalities with the index's first columns, then a range of the next.
void StoredRelationScan::RestrictIndex(std::span<const Condition> conditions) {
  std::vector<Column> values;
  Arena arena;
  for (int c : index_columns_) {
    const StoredColumn& column = info_->columns[static_cast<size_t>(c)];
    if (std::optional<Column> value = ComparedTo(conditions, column, Comparison::kEqual, &arena)) {
      values.push_back(*value);
      continue;
    }
    prefix_ = from_ = index_->Prefix(values);
    if (EncodesOrder(column.type, column.collation)) {
      auto bound = [&](Comparison comparison, std::string* to) {
        std::optional<Column> value = ComparedTo(conditions, column, comparison, &arena);
        if (!value) return;
        values.push_back(*value);
        *to = index_->Prefix(values);
        values.pop_back();
        by_index_ = true;
      };
      bound(Comparison::kAtLeast, &from_);
      bound(Comparison::kAtMost, &to_);
    }
    by_index_ |= !values.empty();
    return;
  }
  prefix_ = from_ = index_->Prefix(values);
  by_index_ = true;
}

bool StoredRelationScan::AdvanceInIndex() {
  if (!index_cursor_) index_cursor_.emplace(index_->table());
  bool found = started_ ? index_cursor_->Next() : index_cursor_->Seek(from_);
  started_ = true;
  if (!found || !index_cursor_->key().starts_with(prefix_)) return false;
  std::string_view values = ViewIndex::ValuesOf(index_cursor_->key(), index_cursor_->value());
  if (!to_.empty() && values.substr(0, to_.size()) > to_) return false;
  std::string_view wanted = ViewIndex::StoredKeyOf(index_cursor_->key(), index_cursor_->value());
  if (!cursor_.Seek(wanted) || cursor_.key() != wanted)
    Throw(sqlstate::kDataCorrupted, "an index of a view has an entry without a row");
  return true;
}

void StoredRelationScan::Rescan() {
  started_ = done_ = false;
  repeats_ = 0;
}

bool StoredRelationScan::SeekPrefix() {
  if (!info_->by_shard || wanted_.empty()) {
    prefix_ = wanted_.substr(0, kCutKeyBytes);
    return cursor_.Seek(prefix_) && cursor_.key().starts_with(prefix_);
  }
  // The next shard that has rows at all, until one has the key.
  for (bool found = started_ ? cursor_.Seek(prefix_) : cursor_.First(); found;) {
    std::string shard(cursor_.key().substr(0, kShardKeyBytes));
    prefix_ = (shard + wanted_).substr(0, kCutKeyBytes);
    found = cursor_.Seek(prefix_);
    if (found && cursor_.key().starts_with(prefix_)) return true;
    if (found && cursor_.key().starts_with(shard)) found = cursor_.Seek(NextShard(shard));
  }
  return false;
}

bool StoredRelationScan::Advance() {
  if (by_index_) return AdvanceInIndex();
  if (!started_) {
    bool found = SeekPrefix();
    started_ = true;
    return found;
  }
  if (cursor_.Next() && cursor_.key().starts_with(prefix_)) return true;
  if (!info_->by_shard || wanted_.empty()) return false;
  prefix_ = NextShard(prefix_.substr(0, kShardKeyBytes));
  return SeekPrefix();
}

void StoredRelationScan::Next(Batch* batch) {
  output_.Clear();
  size_t rows = 0;
  while (rows < kBatchRows && !done_) {
    if (repeats_ == 0) {
      done_ = !Advance();
      if (done_) break;
      repeats_ = relation_->Unpack(cursor_.key(), cursor_.value()).count;
    }
    StoredRow row = relation_->Unpack(cursor_.key(), cursor_.value());
    for (; repeats_ > 0 && rows < kBatchRows; repeats_--)
      relation_->codec().Decode(row.row, rows++, place_, &output_);
  }
  output_.Show(rows, batch);
}

static std::vector<int> Places(const RelationInfo& info, std::span<const std::string_view> columns,
                               std::vector<Oid>* types) {
  std::vector<int> place(info.columns.size(), -1);
  for (std::string_view name : columns) {
    auto found = std::find_if(info.columns.begin(), info.columns.end(),
                              [&](const StoredColumn& column) { return column.name == name; });
    if (found == info.columns.end())
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" is not among the stored ones", name);
    place[static_cast<size_t>(found - info.columns.begin())] = static_cast<int>(types->size());
    types->push_back(found->type);
  }
  return place;
}

std::unique_ptr<RowSource> ScanStored(const StoredRelation& relation,
                                      std::shared_ptr<const RelationInfo> info,
                                      std::span<const std::string_view> columns,
                                      std::unique_ptr<ViewIndex> index,
                                      std::span<const int> index_columns) {
  std::vector<Oid> types;
  std::vector<int> place = Places(*info, columns, &types);
  return std::make_unique<StoredRelationScan>(&relation, std::move(info), std::move(place), types,
                                              std::move(index), index_columns);
}

}  // namespace sluice
