#include "executor/aggregate.h"

#include "common/error.h"
#include "executor/child.h"
#include "shm/process_table.h"
#include "types/codec.h"
#include "types/compare.h"

namespace sluice {
namespace {

constexpr size_t kStateBlockBytes = 32 * 1024;

std::vector<Oid> EvaluatedTypes(const AggregatePlan& plan) {
  std::vector<Oid> types;
  for (const Expr* key : plan.group_by) types.push_back(key->type);
  if (!plan.grouping_sets.empty()) types.push_back(kInt4Oid);
  for (const AggregateCall& call : plan.calls) {
    if (plan.mode == AggregateMode::kFinal) {
      types.push_back(kByteaOid);
      continue;
    }
    for (Oid type : ArgumentTypes(call)) types.push_back(type);
    if (call.filter != nullptr) types.push_back(kBoolOid);
  }
  return types;
}

}  // namespace

Aggregate::Aggregate(const AggregatePlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state),
      aggregate_plan_(plan),
      child_(GivenOrMade(std::move(child), plan, 0, state)),
      key_count_(plan.group_by.size() + (plan.grouping_sets.empty() ? 0 : 1)),
      grouped_(key_count_ > 0),
      state_arena_(HeapBlocks(), kStateBlockBytes),
      spill_layout_(EvaluatedTypes(plan), 0) {
  std::vector<Oid> output_types;
  for (const Expr* key : plan.group_by) {
    if (!CanHash(key->type)) Refuse("grouping by type OID {} is not supported here", key->type);
    AddColumn(*key);
    output_types.push_back(key->type);
  }
  if (!plan.grouping_sets.empty()) {  // the set's number is a key like the others
    Expr number{.kind = ExprKind::kConst, .type = kInt4Oid, .is_null = true};
    AddColumn(number);
    output_types.push_back(kInt4Oid);
  }
  if (grouped_) table_ = std::make_unique<GroupTable>(types_);
  for (const AggregateCall& call : plan.calls) {
    AddCall(call);
    output_types.push_back(plan.mode == AggregateMode::kPartial ? kByteaOid : call.result_type);
  }
  evaluated_.resize(types_.size());
  output_ = std::make_unique<BatchBuffer>(output_types);
}

size_t Aggregate::AddColumn(const Expr& expr) {
  types_.push_back(expr.type);
  expressions_.push_back(CompiledExpression::Compile(expr, state_));
  return types_.size() - 1;
}

void Aggregate::AddCall(const AggregateCall& call) {
  const ExecutorContext& context = *state_.context;
  Call added;
  added.accumulator =
      MakeAccumulator(call, {&state_arena_, context.settings, context.temp_directory,
                             static_cast<size_t>(context.work_mem_bytes)});
  added.first_argument = types_.size();
  if (aggregate_plan_.mode == AggregateMode::kFinal) {
    Expr state_column{.kind = ExprKind::kColumn, .type = kByteaOid};
    state_column.rel = kInput;
    state_column.column = call.state_column;
    added.argument_count = 1;
    AddColumn(state_column);
  } else {
    for (const Expr* arg : call.args) AddColumn(*arg);
    for (const SortKey& key : call.order_by) AddColumn(*key.expr);
    added.argument_count = types_.size() - added.first_argument;
    if (call.filter != nullptr) added.filter = static_cast<int>(AddColumn(*call.filter));
  }
  calls_.push_back(std::move(added));
}

void Aggregate::NextBatch(Batch* batch) {
  batch->rows = 0;
  while (phase_ != Phase::kDone) {
    if (phase_ == Phase::kReading) {
      input_done_ = ReadInput();
      FinishInput();
    }
    if (emitted_ < group_count_) {
      Emit(batch);
      return;
    }
    if (!input_done_) {
      ClearGroups();
      phase_ = Phase::kReading;
    } else if (!ReadPartition()) {
      ClearGroups();
      phase_ = Phase::kDone;
    }
  }
}

bool Aggregate::ReadInput() {
  if (!grouped_ && group_count_ == 0) {
    group_count_ = 1;
    std::memset(groups_, 0, sizeof groups_);
    for (Call& call : calls_) call.accumulator->Grow(1);
  }
  Batch input;
  for (;;) {
    CheckForInterrupts();
    child_->Next(&input);
    if (input.rows == 0) {
      if (!any_input_) AdmitEmptySets();
      return true;
    }
    Evaluate(input);
    any_input_ = true;
    if (aggregate_plan_.grouping_sets.empty())
      Consume(evaluated_, input.rows, 0);
    else
      ConsumeSets(input.rows);
    if (full_ && aggregate_plan_.mode == AggregateMode::kPartial) return false;
  }
}

void Aggregate::ConsumeSets(size_t rows) {
  size_t number = key_count_ - 1;
  std::vector<Column> columns;
  for (size_t s = 0; s < aggregate_plan_.grouping_sets.size(); s++) {
    set_arena_.Reset();
    columns = evaluated_;
    for (size_t k = 0; k < number; k++) {
      std::span<const int> members = aggregate_plan_.grouping_sets[s];
      if (std::find(members.begin(), members.end(), static_cast<int>(k)) == members.end())
        columns[k] = MakeConstantColumn(types_[k], {}, true, &set_arena_);
    }
    auto* value = set_arena_.New<int32_t>(static_cast<int32_t>(s));
    columns[number].nulls = nullptr;
    columns[number].data = value;
    columns[number].mask = 0;
    Consume(columns, rows, 0);
  }
}

void Aggregate::AdmitEmptySets() {
  for (size_t s = 0; s < aggregate_plan_.grouping_sets.size(); s++) {
    if (!aggregate_plan_.grouping_sets[s].empty()) continue;
    std::vector<Column> keys;
    for (size_t k = 0; k + 1 < key_count_; k++)
      keys.push_back(MakeConstantColumn(types_[k], {}, true, &set_arena_));
    auto* number = set_arena_.New<int32_t>(static_cast<int32_t>(s));
    keys.push_back({.type = kInt4Oid, .physical = Physical::kInt4, .mask = 0, .data = number});
    uint64_t hash;
    table_->Find(keys, 1, true, groups_, &hash);
    group_count_ = table_->group_count();
    for (Call& call : calls_) call.accumulator->Grow(group_count_);
  }
}

bool Aggregate::ReadPartition() {
  if (partitions_.empty()) return false;
  Partition partition = std::move(partitions_.back());
  partitions_.pop_back();
  ClearGroups();
  if (spilled_rows_ == nullptr) spilled_rows_ = std::make_unique<BatchBuffer>(types_);
  partition.file->StartReading();
  char* rows[kBatchRows];
  uint64_t tags[kBatchRows];
  while (size_t count = partition.file->Read(kBatchRows, rows, tags)) {
    CheckForInterrupts();
    for (size_t c = 0; c < types_.size(); c++)
      spill_layout_.Load(rows, count, c, &(*spilled_rows_)[c]);
    Batch batch;
    spilled_rows_->Show(count, &batch);
    Consume(batch.columns, count, partition.level);
  }
  FinishInput();
  return true;
}

void Aggregate::Evaluate(const Batch& input) {
  expression_arena_.Reset();
  for (size_t c = 0; c < expressions_.size(); c++) {
    evaluated_[c] = expressions_[c]->Evaluate(input, nullptr, input.rows, &expression_arena_);
  }
}

void Aggregate::Consume(std::span<const Column> columns, size_t rows, int level) {
  if (!grouped_) {
    UpdateCalls(columns, nullptr, rows);
    return;
  }
  bool admit = !full_ || level >= SpillPartitions::kLevelsMax;
  uint64_t hashes[kBatchRows];
  table_->Find(columns, rows, admit, groups_, hashes);
  group_count_ = table_->group_count();
  for (Call& call : calls_) call.accumulator->Grow(group_count_);
  if (admit) {
    UpdateCalls(columns, nullptr, rows);
  } else {
    SpillUnknown(columns, rows, hashes, level);
  }
  size_t memory = memory_bytes();
  full_ = full_ || memory > static_cast<size_t>(state_.context->work_mem_bytes);
  Statistics().memory_bytes_max = std::max<uint64_t>(Statistics().memory_bytes_max, memory);
}

void Aggregate::SpillUnknown(std::span<const Column> columns, size_t rows, const uint64_t* hashes,
                             int level) {
  uint32_t unknown[kBatchRows];
  size_t known_count = 0, unknown_count = 0;
  for (size_t i = 0; i < rows; i++) {
    if (groups_[i] == kNoGroup) {
      unknown[unknown_count++] = static_cast<uint32_t>(i);
    } else {
      known_[known_count++] = static_cast<uint32_t>(i);
    }
  }
  if (unknown_count > 0) {
    if (spilling_ == nullptr) {
      spilling_ =
          std::make_unique<SpillPartitions>(&spill_layout_, state_.context->temp_directory, level);
    }
    spilling_->Append(columns, unknown, unknown_count, hashes);
  }
  UpdateCalls(columns, known_, known_count);
}

// `list` null: all of 0..count.
void Aggregate::UpdateCalls(std::span<const Column> columns, const uint32_t* list, size_t count) {
  bool merge = aggregate_plan_.mode == AggregateMode::kFinal;
  for (Call& call : calls_) {
    GroupedRows rows{list, count, groups_};
    if (call.filter >= 0) {
      const Column& filter = columns[static_cast<size_t>(call.filter)];
      size_t kept = 0;
      for (size_t i = 0; i < count; i++) {
        uint32_t row = list == nullptr ? static_cast<uint32_t>(i) : list[i];
        if (!filter.IsNull(row) && filter.At<uint8_t>(row) != 0) filtered_[kept++] = row;
      }
      rows = {filtered_, kept, groups_};
    }
    if (merge) {
      call.accumulator->Merge(columns[call.first_argument], rows);
    } else {
      call.accumulator->Update(columns.subspan(call.first_argument, call.argument_count), rows);
    }
  }
}

void Aggregate::FinishInput() {
  if (spilling_ != nullptr) {
    Statistics().spilled_bytes += spilling_->bytes();
    int level = spilling_->level() + 1;
    for (std::unique_ptr<SpillFile>& file : spilling_->TakeFiles()) {
      if (file->row_count() > 0) partitions_.push_back({std::move(file), level});
    }
    spilling_ = nullptr;
  }
  for (Call& call : calls_) {
    uint64_t before = call.accumulator->spilled_bytes();
    call.accumulator->Complete();
    Statistics().spilled_bytes += call.accumulator->spilled_bytes() - before;
  }
  emitted_ = 0;
  phase_ = Phase::kEmitting;
}

void Aggregate::Emit(Batch* batch) {
  output_arena_.Reset();
  size_t count = std::min(kBatchRows, group_count_ - emitted_);
  for (size_t c = 0; c < key_count_; c++) table_->LoadKeys(emitted_, count, c, &(*output_)[c]);
  std::string bytes;
  for (size_t i = 0; i < calls_.size(); i++) {
    ColumnBuffer& out = (*output_)[key_count_ + i];
    if (aggregate_plan_.mode != AggregateMode::kPartial) {
      calls_[i].accumulator->Finish(emitted_, count, &out, &output_arena_);
      continue;
    }
    out.Clear();
    for (size_t g = 0; g < count; g++) {
      bytes.clear();
      calls_[i].accumulator->Serialize(emitted_ + g, &bytes);
      out.column.Data<std::string_view>()[g] = output_arena_.CopyString(bytes);
    }
  }
  emitted_ += count;
  output_->Show(count, batch);
}

void Aggregate::ClearGroups() {
  for (Call& call : calls_) call.accumulator->Clear();
  state_arena_.Reset();
  if (table_ != nullptr) table_->Clear();
  group_count_ = 0;
  emitted_ = 0;
  full_ = false;
}

size_t Aggregate::memory_bytes() const {
  size_t bytes = state_arena_.allocated_bytes() + table_->memory_bytes();
  for (const Call& call : calls_) bytes += call.accumulator->memory_bytes();
  return bytes;
}

void Aggregate::Rescan() {
  child_->Rescan();
  ClearGroups();
  spilling_ = nullptr;
  partitions_.clear();
  input_done_ = any_input_ = false;
  phase_ = Phase::kReading;
}

}  // namespace sluice
