// Aggregates that need a group's values: a bag a call in the store, keyed by group and value.
#include "common/error.h"
#include "stream/aggregate_state.h"
#include "stream/key_encoding.h"
#include "stream/row_codec.h"
#include "types/aggregate_list.h"

namespace sluice {
namespace {

struct BagEntry {
  uint64_t count;
  std::string_view row;  // RowCodec's
  std::string_view key;  // of the value, whole
};

// group prefix + value key → count, value key's length and the value key (where it is cut), row.
class GroupBags {
 public:
  GroupBags(LmdbTable table, std::span<const Oid> types)
      : table_(std::move(table)), codec_(types) {}

  const RowCodec& codec() const { return codec_; }

  // Returns the count before. `value_key` says which values are the same.
  uint64_t Add(std::string_view prefix, std::string_view value_key, std::string_view row,
               int64_t weight) {
    key_.assign(prefix);
    key_.append(value_key);
    std::string_view stored = StoredKey(key_, &cut_);
    uint64_t before = 0;
    std::string old_row;
    if (std::optional<std::string_view> value = table_.Get(stored)) {
      BagEntry entry = Unpack(stored, prefix.size(), *value);
      if (entry.key != value_key)
        Throw(sqlstate::kInternalError, "two values of a group have the same digest");
      before = entry.count;
      old_row = entry.row;  // the first of equal values stays
    }
    int64_t count = static_cast<int64_t>(before) + weight;
    if (count < 0)
      Throw(sqlstate::kDataCorrupted, "a value is to be removed that is not in its group");
    if (count == 0) {
      table_.Delete(stored);
      return before;
    }
    value_.clear();
    AppendVarint(static_cast<uint64_t>(count), &value_);
    if (IsLongKey(key_)) {
      AppendVarint(value_key.size(), &value_);
      value_.append(value_key);
    }
    value_.append(before > 0 ? std::string_view(old_row) : row);
    table_.Put(stored, value_);
    return before;
  }

  // In key order until `fn` returns false.
  template <typename Fn>
  void ForEach(std::string_view prefix, Fn&& fn) const {
    LmdbCursor cursor(table_);
    for (bool found = cursor.Seek(prefix); found && cursor.key().starts_with(prefix);
         found = cursor.Next())
      if (!fn(Unpack(cursor.key(), prefix.size(), cursor.value()))) return;
  }

  // The values with the smallest or greatest keys: of long keys only the first bytes are in order.
  std::optional<std::string> Extreme(std::string_view prefix, bool greatest) const {
    LmdbCursor cursor(table_);
    bool found;
    if (greatest) {
      std::string after(prefix);
      for (after.back()++; after.back() == 0 && after.size() > 1; after.back()++) after.pop_back();
      found = cursor.Seek(after) ? cursor.Previous() : cursor.Last();
    } else {
      found = cursor.Seek(prefix);
    }
    if (!found || !cursor.key().starts_with(prefix)) return std::nullopt;
    BagEntry best = Unpack(cursor.key(), prefix.size(), cursor.value());
    if (!IsLongKey(cursor.key())) return std::string(best.row);
    std::string_view common = cursor.key().substr(0, kCutKeyBytes);
    for (found = greatest ? cursor.Previous() : cursor.Next();
         found && cursor.key().starts_with(common);
         found = greatest ? cursor.Previous() : cursor.Next()) {
      BagEntry entry = Unpack(cursor.key(), prefix.size(), cursor.value());
      if (greatest ? entry.key > best.key : entry.key < best.key) best = entry;
    }
    return std::string(best.row);
  }

 private:
  static BagEntry Unpack(std::string_view stored, size_t prefix_bytes, std::string_view value) {
    BagEntry entry;
    entry.count = TakeVarint(&value);
    entry.key =
        IsLongKey(stored) ? TakeBytes(TakeVarint(&value), &value) : stored.substr(prefix_bytes);
    entry.row = value;
    return entry;
  }

  LmdbTable table_;
  RowCodec codec_;
  std::string key_, cut_, value_;
};

class BagState : public AggregateState {
 public:
  BagState(LmdbTable table, std::span<const Oid> types) : bags_(std::move(table), types) {}
  void Grow(size_t) override {}
  void Load(size_t, std::string_view*) override {}
  void Save(size_t, std::string*) const override {}
  void Clear() override {}
  bool in_memory() const override { return false; }

 protected:
  GroupBags bags_;
  std::string key_, row_;
};

class Extreme final : public BagState {
 public:
  Extreme(Oid type, Oid collation, bool greatest, LmdbTable table)
      : BagState(std::move(table), {&type, 1}),
        encoder_(std::vector<KeyColumn>{{type, false, false, collation}}),
        greatest_(greatest),
        decoded_(std::span<const Oid>(&type, 1)) {}

  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    for (uint32_t row : rows.rows) {
      if (args[0].IsNull(row)) continue;
      row_.clear();
      bags_.codec().Append(args, row, &row_);
      key_.clear();
      encoder_.Append(args, row, &key_);
      key_ += row_;  // 1.0 and 1.00 are equal but not the same
      bags_.Add(rows.prefixes[rows.groups[row]], key_, row_, rows.weights[row]);
    }
  }
  void Finish(size_t, std::string_view prefix, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    std::optional<std::string> found = bags_.Extreme(prefix, greatest_);
    if (!found) {
      out->Nulls()[row] = 1;
      return;
    }
    decoded_.Clear();
    bags_.codec().Decode(arena->CopyString(*found), 0, &decoded_);
    AppendRows(decoded_[0].column, nullptr, 1, row, out);
  }

 private:
  KeyEncoder encoder_;
  bool greatest_;
  BatchBuffer decoded_;
};

// DISTINCT over an invertible aggregate.
class Distinct final : public BagState {
 public:
  Distinct(Oid type, std::unique_ptr<AggregateState> inner, LmdbTable table)
      : BagState(std::move(table), {&type, 1}),
        encoder_(std::span<const Oid>(&type, 1)),
        inner_(std::move(inner)) {}

  void Grow(size_t groups) override { inner_->Grow(groups); }
  void Load(size_t group, std::string_view* bytes) override { inner_->Load(group, bytes); }
  void Save(size_t group, std::string* out) const override { inner_->Save(group, out); }
  void Clear() override { inner_->Clear(); }
  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    std::vector<uint32_t> changed;
    std::vector<int64_t> weights(kBatchRows);
    for (uint32_t row : rows.rows) {
      if (args[0].IsNull(row)) continue;
      row_.clear();
      bags_.codec().Append(args, row, &row_);
      key_.clear();
      encoder_.Append(args, row, &key_);
      uint64_t before = bags_.Add(rows.prefixes[rows.groups[row]], key_, row_, rows.weights[row]);
      int64_t after = static_cast<int64_t>(before) + rows.weights[row];
      weights[row] = (after > 0) - (before > 0);
      if (weights[row] != 0) changed.push_back(row);
    }
    if (!changed.empty())
      inner_->Update(args, {changed, rows.groups, weights.data(), rows.prefixes});
  }
  void Finish(size_t group, std::string_view prefix, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    inner_->Finish(group, prefix, row, out, arena);
  }

 private:
  KeyEncoder encoder_;
  std::unique_ptr<AggregateState> inner_;
};

// The executor's accumulator over all rows of a group that changed.
class Recomputed final : public BagState {
 public:
  Recomputed(const AggregateCall& call, LmdbTable table, const ExecutorContext* context)
      : BagState(std::move(table), ArgumentTypes(call)),
        call_(call),
        context_(context),
        types_(ArgumentTypes(call)) {}

  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    for (uint32_t row : rows.rows) {
      row_.clear();
      bags_.codec().Append(args, row, &row_);
      bags_.Add(rows.prefixes[rows.groups[row]], row_, row_, rows.weights[row]);
    }
  }
  void Finish(size_t, std::string_view prefix, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    Arena states;
    constexpr size_t kDistinctBytes = 16 << 20;
    std::unique_ptr<Accumulator> accumulator = MakeAccumulator(
        call_, {&states, context_->settings, context_->temp_directory, kDistinctBytes});
    accumulator->Grow(1);
    BatchBuffer buffer(types_);
    size_t count = 0;
    std::vector<uint32_t> groups(kBatchRows);
    auto feed = [&] {
      Batch batch;
      buffer.Show(count, &batch);
      accumulator->Update(batch.columns, {nullptr, count, groups.data()});
      buffer.Clear();
      count = 0;
    };
    bags_.ForEach(prefix, [&](const BagEntry& entry) {
      for (uint64_t i = 0; i < entry.count; i++) {
        bags_.codec().Decode(entry.row, count++, &buffer);
        if (count == kBatchRows) feed();
      }
      return true;
    });
    if (count > 0) feed();
    accumulator->Complete();
    ColumnBuffer result(out->column.type);
    accumulator->Finish(0, 1, &result, arena);
    Column value = CopyValue(result.column, 0, arena);
    AppendRows(value, nullptr, 1, row, out);
  }

 private:
  const AggregateCall& call_;
  const ExecutorContext* context_;
  std::vector<Oid> types_;
};

}  // namespace

std::unique_ptr<AggregateState> MakeAggregateState(const AggregateCall& call, int32_t node,
                                                   size_t call_index, ViewContext& context) {
  const AggregateInfo* info = FindAggregate(call.function);
  if (info == nullptr) Refuse("aggregate with OID {} is not supported here", call.function);
  bool extreme = info->kind == AggregateKind::kMin || info->kind == AggregateKind::kMax;
  std::unique_ptr<AggregateState> invertible = MakeInvertibleState(call);
  if (invertible != nullptr && !call.distinct) return invertible;  // ORDER BY says nothing there
  LmdbTable table = context.StateTable(node, "b" + std::to_string(call_index));
  if (extreme && EncodesOrder(call.input_type, call.collation))
    return std::make_unique<Extreme>(call.input_type, call.collation,
                                     info->kind == AggregateKind::kMax, std::move(table));
  if (invertible != nullptr && call.args.size() == 1 && CanEncodeKey(call.input_type))
    return std::make_unique<Distinct>(call.input_type, std::move(invertible), std::move(table));
  return std::make_unique<Recomputed>(call, std::move(table), context.state->context);
}

}  // namespace sluice
