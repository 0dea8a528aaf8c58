// The build side: columns, reading, spilling, partitions. The table built together:
// hash_join_parallel.cc.
#include "common/error.h"
#include "executor/child.h"
#include "executor/hash_join.h"
#include "shm/parallel_query.h"
#include "shm/process_table.h"
#include "types/compare.h"

namespace sluice {
namespace {

constexpr Oid kInt2ToInt4 = 313, kInt2ToInt8 = 754, kInt4ToInt8 = 481, kFloat4ToFloat8 = 311;

bool IsText(Oid type) {
  return type == kTextOid || type == kVarcharOid;
}

// The type in which two keys are compared.
Oid CommonKeyType(Oid a, Oid b) {
  if (a == b) return a;
  auto rank = [](Oid type) {
    return type == kInt2Oid ? 1 : type == kInt4Oid ? 2 : type == kInt8Oid ? 3 : 0;
  };
  if (rank(a) > 0 && rank(b) > 0) return rank(a) > rank(b) ? a : b;
  if (IsText(a) && IsText(b)) return kTextOid;
  auto is_float = [](Oid type) { return type == kFloat4Oid || type == kFloat8Oid; };
  if (is_float(a) && is_float(b)) return kFloat8Oid;
  Refuse("hash join of types with OIDs {} and {} is not supported here", a, b);
}

std::unique_ptr<CompiledExpression> CompileKey(const Expr& key, Oid type, ExecutionState& state) {
  if (key.type == type) return CompiledExpression::Compile(key, state);
  const Expr* args[] = {&key};
  Expr cast{.kind = ExprKind::kCall, .type = type};
  cast.args = args;
  if (type == kTextOid) {
    cast.kind = ExprKind::kRelabel;
  } else if (type == kFloat8Oid) {
    cast.function = kFloat4ToFloat8;
  } else if (type == kInt4Oid) {
    cast.function = kInt2ToInt4;
  } else {
    cast.function = key.type == kInt2Oid ? kInt2ToInt8 : kInt4ToInt8;
  }
  return CompiledExpression::Compile(cast, state);
}

}  // namespace

HashJoin::HashJoin(const HashJoinPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer,
                   std::unique_ptr<Node> inner)
    : Node(plan, state),
      join_plan_(plan),
      outer_(GivenOrMade(std::move(outer), plan, 0, state)),
      inner_(GivenOrMade(std::move(inner), plan, 1, state)),
      outer_columns_(plan.children[0]->output.size()),
      output_(plan.output) {
  SLUICE_ASSERT(plan.outer_keys.size() == plan.inner_keys.size() && !plan.outer_keys.empty());
  if (plan.null_aware &&
      (plan.type != JoinType::kAnti || plan.condition != nullptr || plan.outer_keys.size() != 1)) {
    Refuse("NOT IN over several columns or with further conditions is not supported here");
  }
  if (plan.shared_build && state.shared_states != nullptr) {
    shared_ = static_cast<SharedBuildState*>(state.shared_states[plan.id]);
  }
  SLUICE_ASSERT(shared_ == nullptr || !keeps_inner());
  // Without it each participant would build from its share of the inner rows only.
  SLUICE_ASSERT(shared_ != nullptr || !plan.shared_build || state.parallel == nullptr);
  PlanColumns();
  if (plan.condition != nullptr) {
    condition_ = CompiledExpression::Compile(*plan.condition, state);
    condition_outer_ = std::make_unique<BatchBuffer>(plan.children[0]->output);
    condition_inner_ = std::make_unique<BatchBuffer>(plan.children[1]->output);
  }
  if (shared_ != nullptr) {
    shared_blocks_ = std::make_unique<SharedListBlocks>(&state.parallel->extents);
    rows_ = std::make_unique<JoinRows>(layout_.get(), *shared_blocks_, kExtentBytes);
  } else {
    rows_ = MakePrivateRows();
  }
}

// Keys that are plain columns of the inner side are stored once and serve as both.
void HashJoin::PlanColumns() {
  std::span<const OutputColumn> inner = join_plan_.children[1]->output;
  bool keys_only = outer_only() && join_plan_.condition == nullptr;
  inner_stored_.assign(keys_only ? 0 : inner.size(), SIZE_MAX);
  for (size_t k = 0; k < join_plan_.inner_keys.size(); k++) {
    const Expr& outer_key = *join_plan_.outer_keys[k];
    const Expr& inner_key = *join_plan_.inner_keys[k];
    Oid type = CommonKeyType(outer_key.type, inner_key.type);
    if (!CanHash(type)) Refuse("hash join on type OID {} is not supported here", type);
    key_types_.push_back(type);
    outer_keys_.push_back(CompileKey(outer_key, type, state_));
    inner_keys_.push_back(CompileKey(inner_key, type, state_));
    bool is_column = inner_key.kind == ExprKind::kColumn && inner_key.type == type;
    size_t column = static_cast<size_t>(inner_key.column);
    if (is_column && column < inner_stored_.size()) inner_stored_[column] = k;
  }
  stored_types_ = key_types_;
  for (size_t c = 0; c < inner_stored_.size(); c++) {
    if (inner_stored_[c] != SIZE_MAX) continue;
    inner_stored_[c] = stored_types_.size();
    stored_types_.push_back(inner[c].type);
    stored_from_.push_back(c);
  }
  layout_ = std::make_unique<RowLayout>(stored_types_, sizeof(JoinRow));
  equality_ = std::make_unique<KeyEquality>(layout_.get(), key_types_.size());
  outer_layout_ = std::make_unique<RowLayout>(ColumnTypes(join_plan_.children[0]->output), 0);
  outer_key_columns_.resize(key_types_.size());
  stored_columns_.resize(stored_types_.size());
}

void HashJoin::Build() {
  if (shared_ != nullptr) {
    BuildShared();
  } else {
    Batch input;
    for (;;) {
      CheckForInterrupts();
      inner_->Next(&input);
      if (input.rows == 0) break;
      AddInner(input);
      if (spilling_inner_ == nullptr && memory_bytes() > work_mem_bytes()) {
        SpillInner(
            std::make_unique<SpillPartitions>(layout_.get(), state_.context->temp_directory, 0));
      }
    }
    if (spilling_inner_ == nullptr) MakeBuckets();
  }
  bool nothing = join_plan_.null_aware && inner_null_key_;
  nothing |= inner_rows_ == 0 && !keeps_outer();
  if (nothing) {
    phase_ = Phase::kDone;
  } else if (spilling_inner_ != nullptr || shared_spilled_) {
    inner_spilled_ = true;
    outer_rows_ = std::make_unique<BatchBuffer>(join_plan_.children[0]->output);
    if (!shared_spilled_) PartitionOuter();
    phase_ = Phase::kPartition;
  } else {
    phase_ = Phase::kOuter;
  }
}

// Stores the rows of a batch, or spills them if that has begun. Rows with a NULL key match nothing:
// only joins that keep the inner side need them.
void HashJoin::AddInner(const Batch& input) {
  inner_rows_ += input.rows;
  key_arena_.Reset();
  std::memset(hashes_, 0, sizeof(uint64_t) * input.rows);
  bool nulls = false;
  for (size_t k = 0; k < inner_keys_.size(); k++) {
    // Keys may name the inner side either way.
    stored_columns_[k] = inner_keys_[k]->Evaluate(input, &input, input.rows, &key_arena_);
    HashColumn(stored_columns_[k], input.rows, hashes_);
    nulls |= stored_columns_[k].nulls != nullptr;
  }
  for (size_t c = 0; c < stored_from_.size(); c++) {
    stored_columns_[key_types_.size() + c] = input.columns[stored_from_[c]];
  }
  const uint32_t* rows = nullptr;
  size_t count = input.rows;
  if (nulls) {
    count = SelectNonNullKeys(stored_columns_, input.rows, selected_);
    inner_null_key_ |= count < input.rows;
    if (keeps_inner()) {
      count = input.rows;
    } else {
      rows = selected_;
    }
  }
  if (spilling_inner_ != nullptr) {
    spilling_inner_->Append(stored_columns_, rows, count, hashes_);
  } else {
    rows_->Add(stored_columns_, rows, count, hashes_);
  }
}

size_t HashJoin::SelectNonNullKeys(std::span<const Column> keys, size_t rows,
                                   uint32_t* list) const {
  size_t count = 0;
  for (size_t i = 0; i < rows; i++) {
    bool null = false;
    for (size_t k = 0; k < key_types_.size(); k++) null |= keys[k].IsNull(i);
    list[count] = static_cast<uint32_t>(i);
    count += !null;
  }
  return count;
}

// From memory, and from now on, into `partitions`.
void HashJoin::SpillInner(std::unique_ptr<SpillPartitions> partitions) {
  NoteMemory();
  spilling_inner_ = std::move(partitions);
  for (char* row : rows_->rows()) spilling_inner_->Append(row, HeaderOf(row)->hash);
  rows_->Clear();
}

void HashJoin::MakeBuckets() {
  std::span<char* const> rows = rows_->rows();
  bucket_memory_.assign(JoinBuckets::CountFor(rows.size()), 0);
  buckets_ = JoinBuckets(bucket_memory_.data(), bucket_memory_.size());
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < rows.size(); i++) {
    if (i + kAhead < rows.size()) buckets_.Prefetch(HeaderOf(rows[i + kAhead])->hash);
    bool null = false;
    for (size_t k = 0; k < key_types_.size(); k++) null |= layout_->IsNull(rows[i], k);
    if (!null) buckets_.Insert(rows[i]);
  }
  NoteMemory();
}

void HashJoin::PartitionOuter() {
  SpillPartitions outer(outer_layout_.get(), state_.context->temp_directory, 0);
  SpillOuter(&outer);
  AddPartitions(spilling_inner_.get(), &outer, 1);
  spilling_inner_ = nullptr;
}

// All that the outer child still gives.
void HashJoin::SpillOuter(SpillPartitions* outer) {
  for (;;) {
    CheckForInterrupts();
    outer_->Next(&outer_batch_);
    if (outer_batch_.rows == 0) break;
    HashOuter();
    outer->Append(outer_batch_.columns, nullptr, outer_batch_.rows, hashes_);
  }
}

void HashJoin::AddPartitions(SpillPartitions* inner, SpillPartitions* outer, int level) {
  Statistics().spilled_bytes += inner->bytes() + outer->bytes();
  auto inner_files = inner->TakeFiles();
  auto outer_files = outer->TakeFiles();
  for (size_t i = 0; i < inner_files.size(); i++) {
    Partition partition{{}, {}, level};
    if (inner_files[i]->row_count() > 0) partition.inner.push_back(std::move(inner_files[i]));
    if (outer_files[i]->row_count() > 0) partition.outer.push_back(std::move(outer_files[i]));
    AddPartition(std::move(partition));
  }
}

void HashJoin::AddPartition(Partition partition) {
  bool inner_empty = partition.inner.empty(), outer_empty = partition.outer.empty();
  if (inner_empty && (outer_empty || !keeps_outer())) return;
  if (outer_empty && !keeps_inner()) return;
  partitions_.push_back(std::move(partition));
}

bool HashJoin::BuildPartition() {
  outer_files_.clear();
  while (!partitions_.empty() || (shared_spilled_ && ClaimSharedPartition())) {
    if (partitions_.empty()) continue;  // the one claimed has nothing to join
    Partition partition = std::move(partitions_.back());
    partitions_.pop_back();
    rows_->Clear();
    if (!LoadPartition(&partition)) {
      SplitPartition(&partition);
      continue;
    }
    MakeBuckets();
    outer_files_ = std::move(partition.outer);
    for (auto& file : outer_files_) file->StartReading();
    return true;
  }
  return false;
}

// False: it does not fit into work_mem, and can be split further.
bool HashJoin::LoadPartition(Partition* partition) {
  char* rows[kBatchRows];
  uint64_t tags[kBatchRows];
  for (auto& file : partition->inner) {
    file->StartReading();
    while (size_t count = file->Read(kBatchRows, rows, tags)) {
      CheckForInterrupts();
      for (size_t i = 0; i < count; i++) rows_->AddStored(rows[i], tags[i]);
      if (memory_bytes() > work_mem_bytes() && partition->level < SpillPartitions::kLevelsMax) {
        return false;
      }
    }
  }
  return true;
}

// A partition that is too large itself: by the next bits of the hash.
void HashJoin::SplitPartition(Partition* partition) {
  rows_->Clear();
  auto split = [&](std::vector<std::unique_ptr<SpillFile>>* files, SpillPartitions* into) {
    char* rows[kBatchRows];
    uint64_t tags[kBatchRows];
    for (auto& file : *files) {
      file->StartReading();
      while (size_t count = file->Read(kBatchRows, rows, tags)) {
        CheckForInterrupts();
        for (size_t i = 0; i < count; i++) into->Append(rows[i], tags[i]);
      }
      file = nullptr;
    }
  };
  std::string_view directory = state_.context->temp_directory;
  SpillPartitions inner(layout_.get(), directory, partition->level);
  SpillPartitions outer(outer_layout_.get(), directory, partition->level);
  split(&partition->inner, &inner);
  split(&partition->outer, &outer);
  AddPartitions(&inner, &outer, partition->level + 1);
}

// Blocks that are small against work_mem: a block is counted as soon as it is begun.
std::unique_ptr<JoinRows> HashJoin::MakePrivateRows() {
  size_t block_bytes = std::clamp<size_t>(work_mem_bytes() / 16, 4 * 1024, 256 * 1024);
  return std::make_unique<JoinRows>(layout_.get(), HeapBlocks(), block_bytes);
}

size_t HashJoin::memory_bytes() const {
  return rows_->memory_bytes() + sizeof(uint64_t) * JoinBuckets::CountFor(rows_->rows().size());
}

size_t HashJoin::work_mem_bytes() const {
  return static_cast<size_t>(state_.context->work_mem_bytes);
}

void HashJoin::NoteMemory() {
  Statistics().memory_bytes_max = std::max<uint64_t>(Statistics().memory_bytes_max, memory_bytes());
}

void HashJoin::Rescan() {
  SLUICE_ASSERT(shared_ == nullptr);
  outer_->Rescan();
  bool kept = phase_ != Phase::kBuild && !inner_spilled_ && inner_rows_ > 0 &&
              join_plan_.children[1]->depends_on.empty() && !join_plan_.null_aware &&
              join_plan_.type != JoinType::kRight && join_plan_.type != JoinType::kFull;
  if (kept) {  // the table is still right
    phase_ = Phase::kOuter;
    return;
  }
  inner_->Rescan();
  rows_->Clear();
  buckets_ = {};
  spilling_inner_ = nullptr;
  partitions_.clear();
  outer_files_.clear();
  inner_spilled_ = false;
  inner_rows_ = 0;
  inner_null_key_ = false;
  phase_ = Phase::kBuild;
}

}  // namespace sluice
