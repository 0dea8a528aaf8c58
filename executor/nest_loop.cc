#include "executor/nest_loop.h"

#include "executor/child.h"
#include "shm/process_table.h"

namespace sluice {
namespace {

uint32_t* AllRows() {
  static uint32_t* rows = [] {
    static uint32_t numbers[kBatchRows];
    for (size_t i = 0; i < kBatchRows; i++) numbers[i] = static_cast<uint32_t>(i);
    return numbers;
  }();
  return rows;
}

}  // namespace

NestLoop::NestLoop(const NestLoopPlan& plan, ExecutionState& state, std::unique_ptr<Node> outer,
                   std::unique_ptr<Node> inner)
    : Node(plan, state),
      nest_plan_(plan),
      outer_(GivenOrMade(std::move(outer), plan, 0, state)),
      inner_(GivenOrMade(std::move(inner), plan, 1, state)),
      condition_(plan.condition == nullptr ? nullptr
                                           : CompiledExpression::Compile(*plan.condition, state)),
      outer_columns_(plan.children[0]->output.size()),
      inner_columns_(plan.children[1]->output.size()),
      store_(plan.children[1]->output, state.context->work_mem_bytes,
             state.context->temp_directory),
      output_(plan.output) {}

void NestLoop::NextBatch(Batch* batch) {
  batch->rows = 0;
  output_rows_ = 0;
  output_.Clear();
  for (;;) {
    CheckForInterrupts();
    switch (phase_) {
      case Phase::kStart:
        ReadInner();
        phase_ = Phase::kOuter;
        break;
      case Phase::kOuter:
        StartOuter();
        break;
      case Phase::kChunk:
        // Values of a chunk read from a file die with the next one.
        if (store_.spilled_bytes() > 0 && Show(batch)) return;
        StartChunk();
        break;
      case Phase::kPairs:
        if (!JoinOne() && Show(batch)) return;
        break;
      case Phase::kUnmatchedOuter:
        if (Show(batch)) return;
        EmitUnmatchedOuter();
        phase_ = Phase::kOuter;
        // The rows are views of the outer batch, which dies with the next one.
        if (Show(batch)) return;
        break;
      case Phase::kUnmatchedInner:
        EmitUnmatchedInner();
        if (Show(batch)) return;
        break;
      case Phase::kDone:
        return;
    }
  }
}

void NestLoop::ReadInner() {
  Batch input;
  uint64_t row_count = 0;
  for (inner_->Next(&input); input.rows > 0; inner_->Next(&input)) {
    CheckForInterrupts();
    row_count += input.rows;
    store_.Append(input);
  }
  Statistics().memory_bytes_max = std::max(Statistics().memory_bytes_max, store_.memory_bytes());
  Statistics().spilled_bytes += store_.spilled_bytes();
  if (nest_plan_.type == JoinType::kRight || nest_plan_.type == JoinType::kFull) {
    inner_matched_.assign(row_count, 0);
  }
}

void NestLoop::StartOuter() {
  outer_->Next(&outer_batch_);
  store_.Rewind();
  chunk_first_ = 0;
  chunk_.rows = 0;
  if (outer_batch_.rows == 0) {
    phase_ = inner_matched_.empty() ? Phase::kDone : Phase::kUnmatchedInner;
    return;
  }
  outer_batch_columns_.assign(outer_batch_.columns.begin(), outer_batch_.columns.end());
  outer_batch_.columns = outer_batch_columns_;
  std::memset(outer_matched_, 0, outer_batch_.rows);
  phase_ = Phase::kChunk;
}

void NestLoop::StartChunk() {
  chunk_first_ += chunk_.rows;
  pair_at_ = 0;
  store_.Next(&chunk_);
  phase_ = chunk_.rows > 0 ? Phase::kPairs : Phase::kUnmatchedOuter;
}

// The shorter side is gone through row by row. False: the pairs do not fit behind those gathered so
// far; nothing was done.
bool NestLoop::JoinOne() {
  bool outer_constant = outer_batch_.rows <= chunk_.rows;
  if (pair_at_ == (outer_constant ? outer_batch_.rows : chunk_.rows)) {
    phase_ = Phase::kChunk;
    return true;
  }
  size_t at = pair_at_;
  if (outer_constant && outer_only() && outer_matched_[at]) {
    pair_at_++;
    return true;
  }
  const Batch& wide = outer_constant ? chunk_ : outer_batch_;
  const Batch single = ConstantRow(outer_constant ? outer_batch_ : chunk_, at, &constant_columns_);
  const Batch& outer = outer_constant ? single : wide;
  const Batch& inner = outer_constant ? wide : single;
  const uint32_t* selected = AllRows();
  size_t count = wide.rows;
  if (condition_ != nullptr) {
    arena_.Reset();
    count = SelectRows(*condition_, outer, &inner, wide.rows, &arena_, selected_);
    selected = selected_;
  }
  if (!outer_only() && output_rows_ + count > kBatchRows) return false;
  pair_at_++;
  for (size_t i = 0; i < count; i++) {
    Match(outer_constant ? at : selected[i], outer_constant ? selected[i] : at);
  }
  if (!outer_only()) {
    AppendSide(outer, selected, count, 0);
    AppendSide(inner, selected, count, outer_columns_);
    output_rows_ += count;
  }
  return true;
}

void NestLoop::Match(size_t outer_row, size_t inner_row) {
  outer_matched_[outer_row] = 1;
  if (!inner_matched_.empty()) inner_matched_[chunk_first_ + inner_row] = 1;
}

void NestLoop::EmitUnmatchedOuter() {
  JoinType type = nest_plan_.type;
  if (type == JoinType::kInner || type == JoinType::kRight) return;
  uint8_t wanted = type == JoinType::kSemi;
  size_t count = 0;
  for (size_t i = 0; i < outer_batch_.rows; i++) {
    if (outer_matched_[i] == wanted) selected_[count++] = static_cast<uint32_t>(i);
  }
  AppendSide(outer_batch_, selected_, count, 0);
  if (!outer_only()) AppendNullSide(inner_columns_, count, outer_columns_);
  output_rows_ += count;
}

void NestLoop::EmitUnmatchedInner() {
  store_.Next(&chunk_);
  if (chunk_.rows == 0) {
    phase_ = Phase::kDone;
    return;
  }
  size_t count = 0;
  for (size_t i = 0; i < chunk_.rows; i++) {
    if (!inner_matched_[chunk_first_ + i]) selected_[count++] = static_cast<uint32_t>(i);
  }
  chunk_first_ += chunk_.rows;
  AppendNullSide(outer_columns_, count, 0);
  AppendSide(chunk_, selected_, count, outer_columns_);
  output_rows_ += count;
}

void NestLoop::AppendSide(const Batch& from, const uint32_t* rows, size_t count,
                          size_t first_column) {
  for (size_t c = 0; c < from.columns.size(); c++) {
    AppendRows(from.columns[c], rows, count, output_rows_, &output_[first_column + c]);
  }
}

void NestLoop::AppendNullSide(size_t columns, size_t count, size_t first_column) {
  for (size_t c = 0; c < columns; c++) AppendNulls(count, output_rows_, &output_[first_column + c]);
}

bool NestLoop::Show(Batch* batch) {
  if (output_rows_ == 0) return false;
  output_.Show(output_rows_, batch);
  return true;
}

void NestLoop::Rescan() {
  outer_->Rescan();
  inner_->Rescan();
  store_.Clear();
  inner_matched_.clear();
  phase_ = Phase::kStart;
}

}  // namespace sluice
