#include "executor/window_frame.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/sqlstate_query.h"
#include "executor/expression.h"
#include "types/codec.h"

namespace sluice {
namespace {

std::vector<RowSortKey> OrderOf(const WindowAggPlan& plan) {
  std::vector<RowSortKey> keys;
  for (const SortKey& key : plan.order_by)
    keys.push_back(
        {static_cast<size_t>(key.target), key.descending, key.nulls_first, key.collation});
  return keys;
}

}  // namespace

WindowFrame::WindowFrame(const WindowAggPlan& plan, const RowLayout* layout, ExecutionState& state,
                         size_t range_key, size_t range_start, size_t range_end)
    : plan_(plan),
      layout_(layout),
      state_(state),
      options_(plan.frame_options),
      order_(layout, OrderOf(plan)),
      range_key_(range_key),
      range_start_(range_start),
      range_end_(range_end) {
  if (plan.range_key != nullptr) range_compare_ = FindCompare(plan.range_key->type);
}

int64_t WindowFrame::Offset(const Expr* expr, const char* which) const {
  Arena arena;
  Column value = EvaluateConstant(*expr, state_, &arena);
  if (value.IsNull(0))
    Throw(sqlstate::kNullValueNotAllowed, "frame {} offset must not be null", which);
  if ((options_ & kRange) != 0) {
    CheckRangeOffset(value);
    return 0;
  }
  if (value.At<int64_t>(0) < 0)
    Throw(sqlstate::kInvalidPrecedingOrFollowingSize, "frame {} offset must not be negative",
          which);
  return value.At<int64_t>(0);
}

void WindowFrame::CheckRangeOffset(const Column& value) const {
  Arena arena;
  Column zero = MakeConstantColumn(
      value.type, ParseText(value.type, -1, "0", *state_.context->settings, &arena), false, &arena);
  if (FindCompare(value.type)(value, 0, zero, 0, nullptr) < 0)
    Throw(sqlstate::kInvalidPrecedingOrFollowingSize,
          "invalid preceding or following size in window function");
  // Postgres has rules of its own for ∞ - ∞.
  if (value.type == kFloat8Oid && !std::isfinite(value.At<double>(0)))
    Refuse("an infinite or NaN offset in RANGE is not supported");
}

// RANGE offsets are in the rows' range_start and range_end; here they are only checked.
void WindowFrame::ReadOffsets() {
  offsets_read_ = true;
  if ((options_ & kStartOffset) != 0) start_offset_ = Offset(plan_.start_offset, "starting");
  if ((options_ & kEndOffset) != 0) end_offset_ = Offset(plan_.end_offset, "ending");
}

void WindowFrame::Start(std::span<const char* const> rows) {
  rows_ = rows;
  group_ = 0;
  group_begins_.assign(1, 0);
  if (!plan_.order_by.empty())
    for (size_t row = 1; row < rows.size(); row++)
      if (order_.Compare(rows[row - 1], rows[row]) != 0) group_begins_.push_back(row);
  group_begins_.push_back(rows.size());
  if (!offsets_read_) ReadOffsets();
  if (range_compare_ == nullptr) return;
  auto is_null = [&](size_t row) { return layout_->IsNull(rows[row], range_key_); };
  values_begin_ = 0;
  values_end_ = rows.size();
  while (values_begin_ < values_end_ && is_null(values_begin_)) values_begin_++;
  while (values_end_ > values_begin_ && is_null(values_end_ - 1)) values_end_--;
}

size_t WindowFrame::GroupOf(size_t row) {
  if (row < group_begins_[group_]) {
    auto after = std::upper_bound(group_begins_.begin(), group_begins_.end(), row);
    group_ = static_cast<size_t>(after - group_begins_.begin()) - 1;
  }
  while (group_begins_[group_ + 1] <= row) group_++;
  return group_;
}

// The first row at or behind the frame's start value, or the first one behind its end value. A NULL
// key is only among NULLs.
size_t WindowFrame::RangeBound(size_t row, bool start) {
  if (layout_->IsNull(rows_[row], range_key_)) {
    size_t group = GroupOf(row);
    return start ? GroupBegin(group) : GroupEnd(group);
  }
  bool descending = plan_.order_by[0].descending;
  Column bound = layout_->View(rows_[row], start ? range_start_ : range_end_);
  Column key = layout_->View(rows_[row], range_key_);
  size_t low = values_begin_, high = values_end_;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    layout_->Point(rows_[middle], range_key_, &key);
    int order = range_compare_(key, 0, bound, 0, nullptr);
    if (descending) order = -order;
    bool before = start ? order < 0 : order <= 0;
    if (before)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

size_t WindowFrame::Begin(size_t row, size_t group) {
  if ((options_ & kStartUnbounded) != 0) return 0;
  bool rows = (options_ & kRows) != 0;
  if ((options_ & kStartCurrent) != 0) return rows ? row : GroupBegin(group);
  if ((options_ & kRange) != 0) return RangeBound(row, true);
  auto offset = static_cast<uint64_t>(start_offset_);
  size_t at = rows ? row : group, count = rows ? rows_.size() : group_begins_.size() - 1;
  if ((options_ & kStartPreceding) != 0)
    at = offset > at ? 0 : at - offset;
  else
    at = offset > count - at ? count : at + offset;
  return rows ? at : group_begins_[at];
}

size_t WindowFrame::End(size_t row, size_t group) {
  if ((options_ & kEndUnbounded) != 0) return rows_.size();
  bool rows = (options_ & kRows) != 0;
  if ((options_ & kEndCurrent) != 0) return rows ? row + 1 : GroupEnd(group);
  if ((options_ & kRange) != 0) return RangeBound(row, false);
  auto offset = static_cast<uint64_t>(end_offset_);
  size_t at = rows ? row : group, count = rows ? rows_.size() : group_begins_.size() - 1;
  if ((options_ & kEndPreceding) != 0)
    at = offset > at ? 0 : at - offset + 1;
  else
    at = offset >= count - at ? count : at + offset + 1;
  return rows ? at : group_begins_[at];
}

void WindowFrame::Of(size_t row, std::vector<RowRange>* ranges) {
  ranges->clear();
  size_t group = GroupOf(row);
  size_t begin = Begin(row, group), end = End(row, group);
  auto add = [&](size_t from, size_t to) {
    from = std::max(from, begin);
    to = std::min(to, end);
    if (from < to) ranges->push_back({from, to});
  };
  if (!excludes()) return add(begin, end);
  size_t without_begin = row, without_end = row + 1;
  if ((options_ & kExcludeCurrent) == 0) {
    without_begin = GroupBegin(group);
    without_end = GroupEnd(group);
  }
  add(begin, without_begin);
  if ((options_ & kExcludeTies) != 0) add(row, row + 1);
  add(without_end, end);
}

}  // namespace sluice
