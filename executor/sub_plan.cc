#include "executor/sub_plan.h"

#include "shm/process_table.h"
#include "types/codec.h"

namespace sluice {

Column RowOf(const Column& column, size_t row) {
  Column one = column;
  one.mask = 0;
  size_t at = row & column.mask;
  one.data = static_cast<char*>(column.data) + at * WidthOf(column.physical);
  if (column.nulls != nullptr) one.nulls = column.nulls + at;
  return one;
}

void AppendParams(std::span<const int> params, const ExecutionState& state, std::string* key) {
  for (int param : params) {
    const Column& value = state.exec_params[static_cast<size_t>(param)];
    if (value.data == nullptr || value.IsNull(0)) {
      key->push_back('\1');
      continue;
    }
    key->push_back('\0');
    size_t length_at = key->size();
    key->append(sizeof(uint32_t), '\0');
    if (value.physical == Physical::kBytes)
      key->append(value.At<std::string_view>(0));
    else
      key->append(static_cast<const char*>(value.data), WidthOf(value.physical));
    auto length = static_cast<uint32_t>(key->size() - length_at - sizeof(uint32_t));
    std::memcpy(key->data() + length_at, &length, sizeof length);
  }
}

SubPlanRunner::SubPlanRunner(const SubPlan& plan, ExecutionState& state)
    : plan_(plan), state_(state) {
  if (plan.test != nullptr) test_ = CompiledExpression::Compile(*plan.test, state);
  if (plan.hash_keys.empty()) return;
  hashing_ = Hashing::kNotYet;
  hash_value_ = CompiledExpression::Compile(*plan.hash_values[0], state);
}

Column SubPlanRunner::Run(Arena* arena) {
  if (plan_.is_volatile) return Compute(arena);
  if (hashing_ == Hashing::kNotYet) BuildHash();
  if (hashing_ == Hashing::kDone) return CopyValue(Probe(), 0, arena);
  key_.clear();
  AppendParams(plan_.params, state_, &key_);
  AppendParams(plan_.depends_on, state_, &key_);
  auto found = remembered_.find(key_);
  if (found == remembered_.end()) {
    constexpr size_t kEntryBytes = 128;
    if (remembered_bytes_ + remembered_arena_.allocated_bytes() >
        static_cast<size_t>(state_.context->work_mem_bytes)) {
      remembered_.clear();
      remembered_arena_.Reset();
      remembered_bytes_ = 0;
    }
    std::string key = key_;  // key_ may change below: a sub plan may run in a sub plan
    Column value = Compute(&remembered_arena_);
    remembered_bytes_ += key.size() + kEntryBytes;
    found = remembered_.emplace(std::move(key), value).first;
  }
  return CopyValue(found->second, 0, arena);
}

Node* SubPlanRunner::Start() {
  if (node_ == nullptr)
    node_ = MakeNode(*plan_.plan, state_);
  else
    node_->Rescan();
  return node_.get();
}

Column SubPlanRunner::Boolean(int value) {
  return MakeConstantColumn(kBoolOid, std::string_view(value == 1 ? "\1" : "\0", 1), value < 0,
                            &arena_);
}

Column SubPlanRunner::Compute(Arena* arena) {
  CheckForInterrupts();
  if (plan_.test == nullptr) return SublinkResult(Start(), plan_.kind, plan_.type, arena);
  arena_.Reset();
  return CopyValue(Compare(), 0, arena);
}

// ANY is true if one comparison is, else NULL if one is; ALL is false if one comparison is, else
// NULL if one is.
Column SubPlanRunner::Compare() {
  bool any = plan_.kind == SublinkKind::kAny, null_seen = false;
  Node* node = Start();
  Arena arena;
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) {
    arena.Reset();
    const Column& results = test_->Evaluate(batch, nullptr, batch.rows, &arena);
    for (size_t row = 0; row < batch.rows; row++) {
      if (results.IsNull(row))
        null_seen = true;
      else if ((results.At<uint8_t>(row) != 0) == any)
        return Boolean(any ? 1 : 0);
    }
  }
  return Boolean(null_seen ? -1 : any ? 0 : 1);
}

void SubPlanRunner::BuildHash() {
  std::unique_ptr<CompiledExpression> key =
      CompiledExpression::Compile(*plan_.hash_keys[0], state_);
  std::vector<Oid> types = {plan_.hash_keys[0]->type};
  table_ = std::make_unique<GroupTable>(types);
  hashing_ = Hashing::kDone;
  uint32_t groups[kBatchRows];
  uint64_t hashes[kBatchRows];
  Node* node = Start();
  Arena arena;
  Batch batch;
  for (node->Next(&batch); batch.rows > 0; node->Next(&batch)) {
    CheckForInterrupts();
    arena.Reset();
    Column column = key->Evaluate(batch, nullptr, batch.rows, &arena);
    has_rows_ = true;
    for (size_t row = 0; row < batch.rows; row++) has_null_ = has_null_ || column.IsNull(row);
    table_->Find({&column, 1}, batch.rows, true, groups, hashes);
    if (table_->memory_bytes() > static_cast<size_t>(state_.context->work_mem_bytes)) {
      table_.reset();
      hashing_ = Hashing::kNo;
      return;
    }
  }
}

Column SubPlanRunner::Probe() {
  arena_.Reset();
  if (!has_rows_) return Boolean(0);
  Batch nothing;
  Column value = hash_value_->Evaluate(nothing, nullptr, 1, &arena_);
  if (value.IsNull(0)) return Boolean(-1);
  uint32_t group;
  uint64_t hash;
  table_->Find({&value, 1}, 1, false, &group, &hash);
  if (group != kNoGroup) return Boolean(1);
  return Boolean(has_null_ ? -1 : 0);
}

}  // namespace sluice
