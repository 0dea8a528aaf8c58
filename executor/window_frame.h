// Which rows of its partition a row's window frame holds.
#pragma once

#include "executor/node.h"
#include "executor/row_comparator.h"
#include "executor/row_layout.h"

namespace sluice {

struct RowRange {
  size_t begin, end;
  bool operator==(const RowRange&) const = default;
};

class WindowFrame {
 public:
  // `range_key` … : columns of the layout that RANGE offsets compare.
  WindowFrame(const WindowAggPlan& plan, const RowLayout* layout, ExecutionState& state,
              size_t range_key, size_t range_start, size_t range_end);

  // The partition's rows, sorted; they must outlive its use.
  void Start(std::span<const char* const> rows);

  // Peers of a row: its group, and where it begins and ends. Cheapest for rows in order.
  size_t GroupOf(size_t row);
  size_t GroupBegin(size_t group) const { return group_begins_[group]; }
  size_t GroupEnd(size_t group) const { return group_begins_[group + 1]; }

  // The rows of `row`'s frame in order, as at most three ranges, none of them empty.
  void Of(size_t row, std::vector<RowRange>* ranges);
  bool excludes() const { return (options_ & kExclusion) != 0; }

 private:
  // Postgres's FRAMEOPTION_ bits.
  enum Option : int {
    kRange = 0x2,
    kRows = 0x4,
    kGroups = 0x8,
    kStartUnbounded = 0x20,
    kEndUnbounded = 0x100,
    kStartCurrent = 0x200,
    kEndCurrent = 0x400,
    kStartPreceding = 0x800,
    kEndPreceding = 0x1000,
    kStartFollowing = 0x2000,
    kEndFollowing = 0x4000,
    kExcludeCurrent = 0x8000,
    kExcludeGroup = 0x10000,
    kExcludeTies = 0x20000,
    kExclusion = kExcludeCurrent | kExcludeGroup | kExcludeTies,
    kStartOffset = kStartPreceding | kStartFollowing,
    kEndOffset = kEndPreceding | kEndFollowing,
  };

  int64_t Offset(const Expr* expr, const char* which) const;
  void CheckRangeOffset(const Column& value) const;
  void ReadOffsets();
  size_t Begin(size_t row, size_t group);
  size_t End(size_t row, size_t group);
  size_t RangeBound(size_t row, bool start);

  const WindowAggPlan& plan_;
  const RowLayout* layout_;
  ExecutionState& state_;
  int options_;
  RowComparator order_;
  size_t range_key_, range_start_, range_end_;
  CompareFn range_compare_ = nullptr;
  bool offsets_read_ = false;
  int64_t start_offset_ = 0, end_offset_ = 0;

  std::span<const char* const> rows_;
  std::vector<size_t> group_begins_;  // and the partition's end
  size_t group_ = 0;
  size_t values_begin_ = 0, values_end_ = 0;  // RANGE offsets: rows whose key is not NULL
};

}  // namespace sluice
