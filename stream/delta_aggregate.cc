#include "stream/delta_aggregate.h"

#include <algorithm>
#include <numeric>

#include "common/error.h"
#include "types/codec.h"
#include "types/hash.h"

namespace sluice {
namespace {

// Before each group's key: LMDB has no empty keys.
constexpr char kGroup = 'g';
// The key of the only group where there is no GROUP BY.
constexpr std::string_view kOnlyGroup = "g";
constexpr size_t kSlotsKept = 4096;
// So many lie in the processor's cache.
constexpr size_t kGroupsCached = 1000;

std::vector<Oid> TypesOf(std::span<const Expr* const> exprs) {
  std::vector<Oid> types;
  for (const Expr* expr : exprs) types.push_back(expr->type);
  return types;
}

// What groups are told apart by: with grouping sets also the set's number.
std::vector<Oid> KeyTypes(const AggregatePlan& plan) {
  std::vector<Oid> types = TypesOf(plan.group_by);
  if (!plan.grouping_sets.empty()) types.push_back(kInt4Oid);
  return types;
}

void AppendError(const Error& error, std::string* out) {
  out->assign(SqlStateText(error.state)).append(error.message);
}

Error ToError(std::string_view stored) {
  Error error;
  error.state = MakeSqlState(stored.substr(0, 5));
  error.message = stored.substr(5);
  return error;
}

}  // namespace

const AggregatePlan* DeltaAggregate::AsAggregate(const DistinctPlan& plan, Arena* arena) {
  auto* aggregate = arena->New<AggregatePlan>();
  static_cast<Plan&>(*aggregate) = plan;
  aggregate->kind = PlanKind::kAggregate;
  aggregate->mode = AggregateMode::kSingle;
  std::vector<const Expr*> columns;
  for (size_t i = 0; i < plan.output.size(); i++) {
    Expr* column = arena->New<Expr>();
    column->kind = ExprKind::kColumn;
    column->rel = kInput;
    column->column = static_cast<int>(i);
    column->type = plan.output[i].type;
    columns.push_back(column);
  }
  aggregate->group_by = arena->CopyArray(columns);
  return aggregate;
}

// Group columns, then each call's arguments (and its ORDER BY) and its filter.
std::vector<const Expr*> DeltaAggregate::Expressions(const AggregatePlan& plan) {
  std::vector<const Expr*> exprs(plan.group_by.begin(), plan.group_by.end());
  for (const AggregateCall& call : plan.calls) {
    exprs.insert(exprs.end(), call.args.begin(), call.args.end());
    for (const SortKey& key : call.order_by) exprs.push_back(key.expr);
    if (call.filter != nullptr) exprs.push_back(call.filter);
  }
  return exprs;
}

DeltaAggregate::DeltaAggregate(const AggregatePlan& plan, ViewContext& context)
    : DeltaOperator(context),
      plan_(plan),
      key_count_(plan.group_by.size() + (plan.grouping_sets.empty() ? 0 : 1)),
      expressions_(Expressions(plan), plan.children[0]->output, context),
      key_encoder_(KeyTypes(plan)),
      key_codec_(KeyTypes(plan)),
      output_codec_(ColumnTypes(plan.output)),
      table_(context.StateTable(plan.id, "")),
      scratch_(plan.output),
      output_(ColumnTypes(plan.output)) {
  if (plan.mode != AggregateMode::kSingle)
    Throw(sqlstate::kInternalError, "a live view's plan aggregates in two steps");
  size_t column = plan.group_by.size();
  for (const AggregateCall& call : plan.calls) {
    Call& made = calls_.emplace_back();
    made.state = MakeAggregateState(call, plan.id, calls_.size() - 1, context);
    made.first_argument = column;
    made.argument_count = call.args.size() + call.order_by.size();
    column += made.argument_count;
    if (call.filter != nullptr) made.filter = static_cast<int>(column++);
    has_bags_ |= !made.state->in_memory();
  }
}

bool DeltaAggregate::in_memory() const {
  return !has_bags_;
}

size_t DeltaAggregate::memory_bytes() const {
  size_t group_bytes = sizeof(Group) + sizeof(std::string_view);
  for (const Call& call : calls_) group_bytes += call.state->group_bytes();
  return group_arena_.allocated_bytes() + slots_.size() * sizeof(uint32_t) +
         groups_.capacity() * group_bytes;
}

std::vector<int> DeltaAggregate::key_columns() const {
  std::vector<int> columns;
  for (size_t i = 0; i < key_count_; i++) columns.push_back(static_cast<int>(i));
  return columns;
}

void DeltaAggregate::Start() {
  if (key_count_ == 0) Touch(kOnlyGroup, HashOf(kOnlyGroup), {}, 0);
  for (size_t set = 0; set < plan_.grouping_sets.size(); set++) {
    if (!plan_.grouping_sets[set].empty()) continue;
    std::string key;
    std::vector<Column> keys = KeysOfSet(set, {});
    key_encoder_.Append(keys, 0, &key);
    groups_[Touch(key, HashOf(key), keys, 0)].stays = true;
  }
}

uint32_t DeltaAggregate::HashOf(std::string_view key) {
  uint64_t hash = HashBytes(key);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

uint32_t DeltaAggregate::Touch(std::string_view key, uint32_t hash, std::span<const Column> columns,
                               size_t row) {
  if ((groups_.size() + 1) * 2 > slots_.size()) GrowSlots();
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const Group& group = groups_[slots_[slot] - 1];
    if (group.hash == hash && group.key == key) return slots_[slot] - 1;
  }
  auto index = static_cast<uint32_t>(groups_.size());
  slots_[slot] = index + 1;
  Group& group = groups_.emplace_back();
  group.key = group_arena_.CopyString(key);
  group.hash = hash;
  prefixes_.emplace_back();
  if (has_bags_) {
    std::string prefix(1, kGroup);
    AppendKeyPrefix(key, &prefix);
    prefixes_.back() = group_arena_.CopyString(prefix);
  }
  for (Call& call : calls_) call.state->Grow(groups_.size());
  LoadGroup(&group, index);
  if (!group.stored && key_count_ > 0) {
    value_buffer_.clear();
    key_codec_.Append(columns, row, &value_buffer_);
    group.key_row = group_arena_.CopyString(value_buffer_);
  }
  return index;
}

void DeltaAggregate::GrowSlots() {
  slots_.assign(std::max<size_t>(64, slots_.size() * 2), 0);
  for (size_t i = 0; i < groups_.size(); i++) {
    size_t slot = groups_[i].hash & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void DeltaAggregate::LoadGroup(Group* group, size_t index) {
  if (table_.entries() == 0) return;
  std::string key(1, kGroup);
  key += group->key;
  std::optional<std::string_view> value = table_.Get(StoredKey(key, &key_buffer_));
  if (!value) return;
  std::string_view rest = *value;
  if (IsLongKey(key) && TakeBytes(TakeVarint(&rest), &rest) != group->key)
    Throw(sqlstate::kInternalError, "two groups of a view have the same digest");
  group->stored = true;
  group->rows = static_cast<int64_t>(TakeVarint(&rest));
  group->key_row = group_arena_.CopyString(TakeBytes(TakeVarint(&rest), &rest));
  group->emitted = static_cast<Emitted>(TakeVarint(&rest));
  group->output = group_arena_.CopyString(TakeBytes(TakeVarint(&rest), &rest));
  for (Call& call : calls_) call.state->Load(index, &rest);
}

void DeltaAggregate::SaveGroup(const Group& group, size_t index) {
  std::string key(1, kGroup);
  key += group.key;
  std::string_view stored = StoredKey(key, &key_buffer_);
  if (group.rows == 0 && key_count_ > 0 && !group.stays) {
    if (group.stored) table_.Delete(stored);
    return;
  }
  value_buffer_.clear();
  auto append = [this](std::string_view bytes) {
    AppendVarint(bytes.size(), &value_buffer_);
    value_buffer_.append(bytes);
  };
  if (IsLongKey(key)) append(group.key);
  AppendVarint(static_cast<uint64_t>(group.rows), &value_buffer_);
  append(group.key_row);
  AppendVarint(static_cast<uint64_t>(group.emitted), &value_buffer_);
  append(group.output);
  for (const Call& call : calls_) call.state->Save(index, &value_buffer_);
  table_.Put(stored, value_buffer_);
}

void DeltaAggregate::Push(size_t, const DeltaBatch& batch) {
  DeltaBatch good = expressions_.Evaluate(batch);
  size_t rows = good.rows.rows;
  if (rows == 0) return;
  std::span<const Column> columns = expressions_.columns();
  if (plan_.grouping_sets.empty()) return PushSet(columns, columns, good, false);
  for (size_t set = 0; set < plan_.grouping_sets.size(); set++)
    PushSet(KeysOfSet(set, columns), columns, good, plan_.grouping_sets[set].empty());
}

// The keys of a grouping set's groups: NULL for what is not in the set, then the set's number.
std::vector<Column> DeltaAggregate::KeysOfSet(size_t set, std::span<const Column> columns) {
  set_arena_.Reset();
  std::vector<Column> keys;
  std::span<const int> members = plan_.grouping_sets[set];
  for (size_t k = 0; k < plan_.group_by.size(); k++) {
    bool member = std::find(members.begin(), members.end(), static_cast<int>(k)) != members.end();
    keys.push_back(member ? columns[k]
                          : MakeConstantColumn(plan_.group_by[k]->type, {}, true, &set_arena_));
  }
  auto* number = set_arena_.New<int32_t>(static_cast<int32_t>(set));
  keys.push_back({.type = kInt4Oid, .physical = Physical::kInt4, .mask = 0, .data = number});
  return keys;
}

// Also asks for the memory of their groups, all at once: where there are many groups, waiting for
// it one after the other is most of the work.
void DeltaAggregate::EncodeKeys(std::span<const Column> keys, size_t rows) {
  batch_keys_.clear();
  batch_key_ends_.resize(rows);
  batch_hashes_.resize(rows);
  for (size_t row = 0, begin = 0; row < rows; row++) {
    if (key_count_ == 0) batch_keys_.append(kOnlyGroup);
    key_encoder_.Append(keys, row, &batch_keys_);
    batch_key_ends_[row] = static_cast<uint32_t>(batch_keys_.size());
    batch_hashes_[row] = HashOf(std::string_view(batch_keys_).substr(begin));
    begin = batch_keys_.size();
  }
  if (groups_.size() < kGroupsCached) return;
  size_t mask = slots_.size() - 1;
  for (uint32_t hash : batch_hashes_) __builtin_prefetch(&slots_[hash & mask]);
  auto group = [&](uint32_t hash) -> const Group* {
    uint32_t number = slots_[hash & mask];
    return number == 0 ? nullptr : &groups_[number - 1];
  };
  for (uint32_t hash : batch_hashes_)
    if (const Group* at = group(hash)) __builtin_prefetch(at);
  for (uint32_t hash : batch_hashes_)
    if (const Group* at = group(hash)) __builtin_prefetch(at->key.data());
}

// `stays`: its only group is there without rows, too.
void DeltaAggregate::PushSet(std::span<const Column> keys, std::span<const Column> columns,
                             const DeltaBatch& good, bool stays) {
  size_t rows = good.rows.rows;
  uint32_t groups[kBatchRows], all[kBatchRows], kept[kBatchRows];
  EncodeKeys(keys, rows);
  for (size_t row = 0; row < rows; row++) {
    size_t begin = row == 0 ? 0 : batch_key_ends_[row - 1];
    std::string_view key =
        std::string_view(batch_keys_).substr(begin, batch_key_ends_[row] - begin);
    groups[row] = Touch(key, batch_hashes_[row], keys, row);
    groups_[groups[row]].stays = stays;
    groups_[groups[row]].rows += good.weights[row];
    all[row] = static_cast<uint32_t>(row);
  }
  for (Call& call : calls_) {
    std::span<const uint32_t> listed(all, rows);
    if (call.filter >= 0) {
      const Column& filter = columns[static_cast<size_t>(call.filter)];
      size_t count = 0;
      for (uint32_t row : listed)
        if (!filter.IsNull(row) && filter.At<uint8_t>(row) != 0) kept[count++] = row;
      listed = {kept, count};
    }
    if (!listed.empty())
      call.state->Update(columns.subspan(call.first_argument, call.argument_count),
                         {listed, groups, good.weights, prefixes_});
  }
}

// What the group puts out now: a row in `output`, an error there, or nothing.
DeltaAggregate::Emitted DeltaAggregate::Compute(const Group& group, size_t index,
                                                std::string* output) {
  if (group.rows < 0)
    Throw(sqlstate::kDataCorrupted, "a row is to be removed from a group that doesn't have it");
  if (group.rows == 0 && key_count_ > 0 && !group.stays) return Emitted::kNothing;
  scratch_.Clear();
  result_arena_.Reset();
  if (key_count_ > 0) key_codec_.Decode(group.key_row, 0, &scratch_);
  try {
    for (size_t i = 0; i < calls_.size(); i++)
      calls_[i].state->Finish(index, prefixes_[index], 0, &scratch_[key_count_ + i],
                              &result_arena_);
  } catch (const QueryError& e) {
    if (!IsRowError(e.error)) throw;
    AppendError(e.error, output);
    return Emitted::kError;
  }
  Batch batch;
  scratch_.Show(1, &batch);
  output_codec_.Append(batch.columns, 0, output);
  return Emitted::kRow;
}

void DeltaAggregate::EmitRow(const Group& group, std::string_view row, int64_t weight) {
  if (output_.full()) Flush();
  size_t at = output_.Add(weight);
  output_codec_.Decode(output_arena_.CopyString(row), at, &output_.buffer());
  output_keys_.push_back(group.key);
}

void DeltaAggregate::Flush() {
  DeltaBatch batch = output_.Show();
  batch.keys = output_keys_.data();
  Emit(batch);
  output_.Clear();
  output_keys_.clear();
  output_arena_.Reset();
}

void DeltaAggregate::FinishGroup(Group* group, size_t index) {
  std::string output;
  Emitted emitted = Compute(*group, index, &output);
  if (emitted != group->emitted || output != group->output) {
    if (group->emitted == Emitted::kRow) EmitRow(*group, group->output, -1);
    if (group->emitted == Emitted::kError) context_.errors.Add(ToError(group->output), -1);
    if (emitted == Emitted::kRow) EmitRow(*group, output, 1);
    if (emitted == Emitted::kError) context_.errors.Add(ToError(output), 1);
    group->emitted = emitted;
    group->output = group_arena_.CopyString(output);
  }
  SaveGroup(*group, index);
}

void DeltaAggregate::Finish() {
  // In the order of the store's keys: what is written and put out comes in order.
  std::vector<uint32_t> order(groups_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return groups_[a].key < groups_[b].key; });
  for (uint32_t i : order) FinishGroup(&groups_[i], i);
  if (output_.rows() > 0) Flush();
  groups_.clear();
  prefixes_.clear();
  std::fill(slots_.begin(), slots_.end(), 0);
  if (slots_.size() > kSlotsKept) {
    // Many at once are an exception: when the view was built.
    groups_ = {};
    prefixes_ = {};
    slots_ = {};
  }
  group_arena_.Reset();
  for (Call& call : calls_) call.state->Clear();
}

}  // namespace sluice
