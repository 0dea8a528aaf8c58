// Changes of a shard's table → its copy in the store, and the copy's net change.
#include <algorithm>
#include <numeric>

#include "common/error.h"
#include "stream/graph_node.h"
#include "types/codec.h"

namespace sluice {
namespace {

// Wire values of some rows as columns. Values that are not there are NULL.
class WireRows {
 public:
  // `places`: of each column in a row; none: as they come.
  explicit WireRows(std::span<const Oid> types, std::span<const int> places = {})
      : types_(types.begin(), types.end()),
        places_(places.begin(), places.end()),
        buffer_(types),
        nulls_(types.size() * kBatchRows) {}

  void Decode(std::span<const WireValue* const> rows) {
    buffer_.Clear();
    const char* at[kBatchRows];
    int32_t lengths[kBatchRows];
    for (size_t c = 0; c < types_.size(); c++) {
      size_t place = places_.empty() ? c : static_cast<size_t>(places_[c]);
      for (size_t i = 0; i < rows.size(); i++) {
        const WireValue value = rows[i] == nullptr ? WireValue{} : rows[i][place];
        at[i] = value.data;
        lengths[i] = std::max(value.length, WireValue::kNull);
      }
      Column& column = buffer_[c].column;
      uint8_t* nulls = nulls_.data() + c * kBatchRows;
      std::memset(nulls, 0, kBatchRows);
      if (HasBinaryCodec(types_[c])) {
        DecodeBinaryColumn(types_[c], at, lengths, rows.size(), nulls, &column);
      } else {
        for (size_t i = 0; i < rows.size(); i++) {
          nulls[i] = lengths[i] < 0;
          column.Data<std::string_view>()[i] =
              lengths[i] < 0 ? std::string_view()
                             : std::string_view(at[i], static_cast<size_t>(lengths[i]));
        }
        column.nulls = nulls;
      }
    }
    buffer_.Show(rows.size(), &batch_);
  }
  std::span<Column> columns() { return batch_.columns; }

 private:
  std::vector<Oid> types_;
  std::vector<int> places_;
  BatchBuffer buffer_;
  std::vector<uint8_t> nulls_;
  Batch batch_;
};

std::vector<Oid> KeyTypes(const RelationInfo& info) {
  std::vector<Oid> types;
  for (int column : info.key_columns)
    types.push_back(info.columns[static_cast<size_t>(column)].type);
  return types;
}

// One batch of changes of one shard's table.
class SourceWriter {
 public:
  // `with_delta`: somebody takes its net change.
  SourceWriter(GraphNode* node, uint32_t shard, bool with_delta)
      : node_(node), with_delta_(with_delta), types_(TypesOf(node->info.columns)) {
    AppendShard(shard, &prefix_);
    if (node_->key_encoder == nullptr && node_->info.keyed)
      node_->key_encoder = std::make_unique<KeyEncoder>(KeyTypes(node_->info));
  }

  void Apply(const ChangeBatch& changes) {
    rows_.emplace(types_);
    old_rows_.emplace(types_);
    std::vector<uint32_t> order = OrderByKey(changes);
    for (size_t first = 0; first < order.size(); first += kBatchRows)
      Apply(changes, std::span(order).subspan(first, std::min(kBatchRows, order.size() - first)));
  }

  void Apply(const ChangeBatch& changes, std::span<const uint32_t> which) {
    size_t count = which.size();
    std::vector<const WireValue*> new_rows(count), old_rows(count);
    bool any_old = false;
    for (size_t i = 0; i < count; i++) {
      if (changes.has_new(which[i])) new_rows[i] = changes.new_row(which[i]);
      if (changes.has_old(which[i])) old_rows[i] = changes.old_row(which[i]);
      any_old |= old_rows[i] != nullptr;
    }
    rows_->Decode(new_rows);
    if (any_old) old_rows_->Decode(old_rows);
    for (size_t i = 0; i < count; i++) {
      ChangeKind kind = changes.kind(which[i]);
      bool has_old = old_rows[i] != nullptr;
      if (node_->info.keyed)
        ApplyKeyed(kind, has_old, new_rows[i], i);
      else
        ApplyKeyless(kind, has_old, new_rows[i], i);
    }
  }

  // `with_keys`: keys() is to be asked for afterwards.
  void Insert(std::span<const Column> columns, size_t rows, bool with_keys) {
    if (with_keys) keys_.resize(rows);
    for (size_t row = 0; row < rows; row++) {
      if (node_->info.keyed) {
        InsertKeyed(columns, row);
        if (with_keys) keys_[row] = key_;
      } else {
        SetKeylessKey(columns, row, &key_);
        Count(1);
      }
    }
  }
  // Of the rows inserted last, where they have keys.
  const std::string_view* keys() {
    if (!node_->info.keyed) return nullptr;
    key_views_.assign(keys_.begin(), keys_.end());
    return key_views_.data();
  }

 private:
  [[noreturn]] void Contradiction(std::string_view what) {
    Throw(sqlstate::kDataCorrupted, "the copy of the table with OID {} contradicts its stream: {}",
          node_->info.oid, what);
  }

  // The changes in the order of their keys, those of one key as they came: what lies together in
  // the store is changed together. Unchanged where there is no key, or one changes.
  std::vector<uint32_t> OrderByKey(const ChangeBatch& changes) {
    std::vector<uint32_t> order(changes.size());
    std::iota(order.begin(), order.end(), 0u);
    const std::vector<int>& places = node_->info.key_columns;
    if (!node_->info.keyed || changes.size() < 2) return order;
    std::vector<const WireValue*> rows(changes.size());
    for (size_t i = 0; i < rows.size(); i++) {
      rows[i] = changes.has_old(i) ? changes.old_row(i) : changes.new_row(i);
      if (!changes.has_old(i) || !changes.has_new(i)) continue;
      for (int place : places)
        if (Bytes(changes.new_row(i)[place]) != Bytes(rows[i][place])) return order;
    }
    WireRows key_rows(KeyTypes(node_->info), places);
    std::vector<std::string> keys(rows.size());
    for (size_t first = 0; first < rows.size(); first += kBatchRows) {
      size_t count = std::min(kBatchRows, rows.size() - first);
      key_rows.Decode(std::span(rows).subspan(first, count));
      for (size_t i = 0; i < count; i++)
        node_->key_encoder->Append(key_rows.columns(), i, &keys[first + i]);
    }
    auto before = [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; };
    if (!std::is_sorted(order.begin(), order.end(), before))
      std::stable_sort(order.begin(), order.end(), before);
    return order;
  }
  static std::string_view Bytes(const WireValue& value) {
    return {value.data, static_cast<size_t>(std::max(value.length, 0))};
  }

  void SetKey(std::span<const Column> columns, size_t row, std::string* key) {
    *key = prefix_;
    for (size_t i = 0; i < node_->info.key_columns.size(); i++)
      node_->key_encoder->AppendColumn(i, columns[static_cast<size_t>(node_->info.key_columns[i])],
                                       row, key);
  }
  void SetRow(std::span<const Column> columns, size_t row) {
    row_.clear();
    node_->stored->codec().Append(columns, row, &row_);
  }
  // The row is the key's end.
  void SetKeylessKey(std::span<const Column> columns, size_t row, std::string* key) {
    *key = prefix_;
    node_->stored->codec().Append(columns, row, key);
  }

  void AddDelta(std::string_view key, std::string_view row, int64_t weight) {
    if (with_delta_) node_->source_delta.Add(key, row, weight);
  }
  void Put() {
    node_->stored->Put(key_, row_);
    AddDelta(key_, row_, 1);
  }
  void Count(int64_t weight) {
    std::string_view row = std::string_view(key_).substr(kShardKeyBytes);
    node_->stored->AddCount(key_, row, weight);
    AddDelta(key_, row, weight);
  }

  void InsertKeyed(std::span<const Column> columns, size_t row) {
    SetKey(columns, row, &key_);
    SetRow(columns, row);
    if (!node_->stored->Insert(key_, row_)) Contradiction("a row was inserted twice");
    AddDelta(key_, row_, 1);
  }

  void ApplyKeyed(ChangeKind kind, bool has_old, const WireValue* new_row, size_t i) {
    if (kind == ChangeKind::kInsert) return InsertKeyed(rows_->columns(), i);
    SetKey(has_old ? old_rows_->columns() : rows_->columns(), i, &old_key_);
    std::optional<std::string_view> found = node_->stored->Find(old_key_);
    if (!found) Contradiction("a row was changed that is not there");
    old_row_ = *found;
    if (kind == ChangeKind::kDelete) {
      node_->stored->Delete(old_key_);
      AddDelta(old_key_, old_row_, -1);
      return;
    }
    std::span<const Column> columns = rows_->columns();
    size_t row = i;
    if (HasUnchanged(new_row)) {
      columns = OneRow(columns, i);
      row = 0;
      FillUnchanged(new_row, &columns);
    }
    SetKey(columns, row, &key_);
    SetRow(columns, row);
    if (key_ != old_key_) {
      if (node_->stored->Find(key_)) Contradiction("a key was changed to one that is there");
      node_->stored->Delete(old_key_);
    } else if (row_ == old_row_) {
      return;
    }
    AddDelta(old_key_, old_row_, -1);
    Put();
  }

  void ApplyKeyless(ChangeKind kind, bool has_old, const WireValue* new_row, size_t i) {
    if (kind != ChangeKind::kInsert) {
      if (!has_old) Contradiction("a keyless table's change came without its old row");
      SetKeylessKey(old_rows_->columns(), i, &key_);
      old_row_ = key_.substr(kShardKeyBytes);
      Count(-1);
    }
    if (kind == ChangeKind::kDelete) return;
    std::span<const Column> columns = OneRow(rows_->columns(), i);
    if (kind == ChangeKind::kUpdate) FillUnchanged(new_row, &columns);
    SetKeylessKey(columns, 0, &key_);
    Count(1);
  }

  // Row i of the columns, as row 0.
  std::span<const Column> OneRow(std::span<const Column> columns, size_t i) {
    Batch all{kBatchRows, {const_cast<Column*>(columns.data()), columns.size()}};
    SliceBatch(all, i, 1, &one_row_);
    return one_row_;
  }

  bool HasUnchanged(const WireValue* new_row) const {
    return std::any_of(new_row, new_row + types_.size(), [](const WireValue& value) {
      return value.length == WireValue::kUnchanged;
    });
  }

  // Values that the stream left out are the old row's.
  void FillUnchanged(const WireValue* new_row, std::span<const Column>* columns) {
    bool decoded = false;
    for (size_t c = 0; c < types_.size(); c++) {
      if (new_row[c].length != WireValue::kUnchanged) continue;
      if (!decoded) {
        if (unchanged_ == nullptr) unchanged_ = std::make_unique<BatchBuffer>(types_);
        unchanged_->Clear();
        node_->stored->codec().Decode(old_row_, 0, unchanged_.get());
        decoded = true;
      }
      one_row_[c] = (*unchanged_)[c].column;
    }
    *columns = one_row_;
  }

  GraphNode* node_;
  bool with_delta_;
  std::vector<Oid> types_;
  std::optional<WireRows> rows_, old_rows_;  // of an Apply
  std::string prefix_, key_, row_, old_key_, old_row_;
  std::vector<Column> one_row_;
  std::unique_ptr<BatchBuffer> unchanged_;
  std::vector<std::string> keys_;  // of the rows of an Insert
  std::vector<std::string_view> key_views_;
};

}  // namespace

void ViewGraph::Impl::Apply(Oid source, uint32_t shard, const ChangeBatch& changes) {
  GraphNode& node = Known(source);
  AsFailureOf(source, [&] {
    SLUICE_ASSERT(changes.column_count() == node.info.columns.size());
    RowReaders readers = ReadersOf(node);
    bool with_delta = readers.need_delta || !readers.direct.empty();
    SourceWriter(&node, shard, with_delta).Apply(changes);
  });
  PropagateIfLarge(node);
}

void ViewGraph::Impl::Insert(Oid source, uint32_t shard, const Batch& rows) {
  GraphNode& node = Known(source);
  RowReaders readers = ReadersOf(node);
  SourceWriter writer(&node, shard, readers.need_delta);
  bool direct = !readers.need_delta && !readers.direct.empty();
  AsFailureOf(source, [&] { writer.Insert(rows.columns, rows.rows, direct); });
  if (readers.need_delta) return PropagateIfLarge(node);
  if (!direct) return;
  if (!node.source_delta.empty()) Propagate();  // what goes, goes before what comes
  PushInserted(readers, rows, writer.keys());
}

void ViewGraph::Impl::Truncate(Oid source, uint32_t shard) {
  GraphNode& node = Known(source);
  std::string prefix;
  AppendShard(shard, &prefix);
  for (bool more = true; more;) {
    std::vector<std::pair<std::string, std::string>> rows;
    std::vector<uint64_t> counts;
    LmdbCursor cursor(node.stored->table());
    bool found = cursor.Seek(prefix);
    for (; found && cursor.key().starts_with(prefix) && rows.size() < kBatchRows;
         found = cursor.Next()) {
      StoredRow row = node.stored->Unpack(cursor.key(), cursor.value());
      rows.emplace_back(row.key, row.row);
      counts.push_back(row.count);
    }
    more = !rows.empty();
    for (size_t i = 0; i < rows.size(); i++) {
      node.stored->Delete(rows[i].first);
      node.source_delta.Add(rows[i].first, rows[i].second, -static_cast<int64_t>(counts[i]));
    }
    PropagateIfLarge(node);
  }
}

}  // namespace sluice
