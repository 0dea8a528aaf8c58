#include "executor/limit.h"

#include "common/error.h"
#include "executor/child.h"
#include "executor/column_buffer.h"
#include "executor/expression.h"
#include "types/compare.h"

namespace sluice {

Limit::Limit(const LimitPlan& plan, ExecutionState& state, std::unique_ptr<Node> child)
    : Node(plan, state), limit_plan_(plan), child_(GivenOrMade(std::move(child), plan, 0, state)) {}

void Limit::Start() {
  started_ = true;
  to_skip_ = 0;
  to_give_ = INT64_MAX;
  if (limit_plan_.offset != nullptr) {
    Column offset = EvaluateConstant(*limit_plan_.offset, state_, &arena_);
    if (!offset.IsNull(0)) to_skip_ = offset.At<int64_t>(0);
    if (to_skip_ < 0) {
      Throw(sqlstate::kInvalidRowCountInResultOffsetClause, "OFFSET must not be negative");
    }
  }
  if (limit_plan_.limit != nullptr) {
    Column limit = EvaluateConstant(*limit_plan_.limit, state_, &arena_);
    if (!limit.IsNull(0)) to_give_ = limit.At<int64_t>(0);
    if (to_give_ < 0) {
      Throw(sqlstate::kInvalidRowCountInLimitClause, "LIMIT must not be negative");
    }
  }
  done_ = to_give_ == 0;
}

void Limit::NextBatch(Batch* batch) {
  if (!started_) Start();
  batch->rows = 0;
  while (!done_) {
    Batch input;
    child_->Next(&input);
    if (input.rows == 0) {
      done_ = true;
      return;
    }
    size_t first =
        static_cast<size_t>(std::min<int64_t>(to_skip_, static_cast<int64_t>(input.rows)));
    to_skip_ -= static_cast<int64_t>(first);
    size_t rows =
        static_cast<size_t>(std::min<int64_t>(to_give_, static_cast<int64_t>(input.rows - first)));
    to_give_ -= static_cast<int64_t>(rows);
    if (to_give_ == 0) {
      if (rows > 0 && limit_plan_.with_ties) SaveKeys(input, first + rows - 1);
      ties_ = limit_plan_.with_ties;
      if (ties_) rows += CountTies(input, first + rows);
      done_ = !ties_ || first + rows < input.rows;
    }
    if (rows == 0) continue;
    *batch = rows == input.rows ? input : SliceBatch(input, first, rows, &columns_);
    return;
  }
}

void Limit::SaveKeys(const Batch& batch, size_t row) {
  last_keys_.clear();
  for (const SortKey& key : limit_plan_.keys) {
    last_keys_.push_back(CopyValue(batch.columns[static_cast<size_t>(key.target)], row, &arena_));
  }
}

size_t Limit::CountTies(const Batch& batch, size_t from) const {
  size_t row = from;
  for (; row < batch.rows; row++) {
    for (size_t k = 0; k < last_keys_.size(); k++) {
      const Column& column = batch.columns[static_cast<size_t>(limit_plan_.keys[k].target)];
      if (!NotDistinct(last_keys_[k], 0, column, row)) return row - from;
    }
  }
  return row - from;
}

void Limit::Rescan() {
  child_->Rescan();
  started_ = false;
  ties_ = false;
}

}  // namespace sluice
