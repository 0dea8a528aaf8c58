#include "executor/set_op.h"

#include "common/error.h"
#include "executor/child.h"
#include "shm/process_table.h"
#include "types/compare.h"

namespace sluice {

SetOp::SetOp(const SetOpPlan& plan, ExecutionState& state, std::unique_ptr<Node> left,
             std::unique_ptr<Node> right)
    : Node(plan, state),
      set_op_plan_(plan),
      left_(GivenOrMade(std::move(left), plan, 0, state)),
      right_(GivenOrMade(std::move(right), plan, 1, state)),
      layout_(ColumnTypes(plan.output), 0),
      table_(ColumnTypes(plan.output)),
      rows_(plan.output),
      output_(plan.output) {
  SLUICE_ASSERT(plan.op != SetOpKind::kUnion);
  for (const OutputColumn& column : plan.output) {
    if (!CanHash(column.type)) {
      Refuse("set operations over type OID {} are not supported here", column.type);
    }
  }
}

void SetOp::ReadInput() {
  started_ = true;
  Batch input;
  for (left_->Next(&input); input.rows > 0; left_->Next(&input)) Count(input, true, 0);
  for (right_->Next(&input); input.rows > 0; right_->Next(&input)) Count(input, false, 0);
  FinishInput(0);
}

bool SetOp::ReadPartition() {
  if (partitions_.empty()) return false;
  Partition partition = std::move(partitions_.back());
  partitions_.pop_back();
  Clear();
  ReadFile(*partition.left, true, partition.level);
  if (partition.right != nullptr) ReadFile(*partition.right, false, partition.level);
  FinishInput(partition.level);
  return true;
}

void SetOp::ReadFile(SpillFile& file, bool left, int level) {
  file.StartReading();
  char* rows[kBatchRows];
  uint64_t tags[kBatchRows];
  while (size_t count = file.Read(kBatchRows, rows, tags)) {
    for (size_t c = 0; c < rows_.size(); c++) layout_.Load(rows, count, c, &rows_[c]);
    Batch batch;
    rows_.Show(count, &batch);
    Count(batch, left, level);
  }
}

void SetOp::Count(const Batch& input, bool left, int level) {
  CheckForInterrupts();
  uint32_t groups[kBatchRows];
  uint64_t hashes[kBatchRows];
  uint32_t unknown[kBatchRows];
  size_t unknown_count = 0;
  // A right row without a left one never matters, unless its left one may have been spilled.
  bool admit = left && (!full_ || level >= SpillPartitions::kLevelsMax);
  table_.Find(input.columns, input.rows, admit, groups, hashes);
  counts_.resize(table_.group_count());
  for (size_t i = 0; i < input.rows; i++) {
    if (groups[i] == kNoGroup) {
      unknown[unknown_count++] = static_cast<uint32_t>(i);
    } else if (left) {
      counts_[groups[i]].left++;
    } else {
      counts_[groups[i]].right++;
    }
  }
  if (unknown_count > 0 && (left || spilling_left_ != nullptr)) {
    std::unique_ptr<SpillPartitions>& spilling = left ? spilling_left_ : spilling_right_;
    if (spilling == nullptr) {
      spilling = std::make_unique<SpillPartitions>(&layout_, state_.context->temp_directory, level);
    }
    spilling->Append(input.columns, unknown, unknown_count, hashes);
  }
  size_t memory = table_.memory_bytes() + counts_.capacity() * sizeof(Counts);
  full_ = full_ || memory > static_cast<size_t>(state_.context->work_mem_bytes);
  Statistics().memory_bytes_max = std::max<uint64_t>(Statistics().memory_bytes_max, memory);
}

void SetOp::FinishInput(int level) {
  group_at_ = 0;
  given_of_group_ = 0;
  if (spilling_left_ == nullptr) return;
  Statistics().spilled_bytes += spilling_left_->bytes();
  auto left = spilling_left_->TakeFiles();
  std::vector<std::unique_ptr<SpillFile>> right(left.size());
  if (spilling_right_ != nullptr) {
    Statistics().spilled_bytes += spilling_right_->bytes();
    right = spilling_right_->TakeFiles();
  }
  for (size_t i = 0; i < left.size(); i++) {
    if (left[i]->row_count() == 0) continue;
    partitions_.push_back({std::move(left[i]), std::move(right[i]), level + 1});
  }
  spilling_left_ = nullptr;
  spilling_right_ = nullptr;
}

uint64_t SetOp::Wanted(const Counts& counts) const {
  if (set_op_plan_.op == SetOpKind::kIntersect) {
    uint64_t both = std::min(counts.left, counts.right);
    return set_op_plan_.all ? both : both > 0;
  }
  if (set_op_plan_.all) return counts.left > counts.right ? counts.left - counts.right : 0;
  return counts.right == 0;
}

void SetOp::NextBatch(Batch* batch) {
  if (!started_) ReadInput();
  batch->rows = 0;
  for (;;) {
    // Each group as often as it is wanted; the key columns of a run of groups are loaded at once.
    uint32_t picked[kBatchRows];
    size_t count = 0, first = group_at_;
    while (group_at_ < counts_.size() && count < kBatchRows && group_at_ - first < kBatchRows) {
      uint64_t wanted = Wanted(counts_[group_at_]);
      while (given_of_group_ < wanted && count < kBatchRows) {
        picked[count++] = static_cast<uint32_t>(group_at_ - first);
        given_of_group_++;
      }
      if (given_of_group_ < wanted) break;
      group_at_++;
      given_of_group_ = 0;
    }
    if (count > 0) {
      size_t loaded = std::min(kBatchRows, counts_.size() - first);
      for (size_t c = 0; c < output_.size(); c++) {
        table_.LoadKeys(first, loaded, c, &rows_[c]);
        GatherColumn(rows_[c].column, picked, count, &output_[c]);
      }
      output_.Show(count, batch);
      return;
    }
    if (group_at_ >= counts_.size() && !ReadPartition()) return;
  }
}

void SetOp::Clear() {
  table_.Clear();
  counts_.clear();
  full_ = false;
  group_at_ = 0;
  given_of_group_ = 0;
}

void SetOp::Rescan() {
  left_->Rescan();
  right_->Rescan();
  Clear();
  partitions_.clear();
  started_ = false;
}

}  // namespace sluice
