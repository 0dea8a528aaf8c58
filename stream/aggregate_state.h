// The states of one aggregate call, one a group, from which rows can be taken out again.
//
//   invertible   count, sum, avg, bool_and/or, the variance family: state += weight · row. Sums are
//                exact, so taking a value out leaves what would be there without it; NaN, the
//                infinities and display scales are counted.
//   bags         min, max: the group's values in order in the store; the first or last is the
//                result. DISTINCT: the values with counts; a value's first row and last row change
//                the inner state. string_agg, array_agg, ORDER BY: the rows; the executor's
//                accumulator runs over them.
#pragma once

#include "executor/accumulator.h"
#include "stream/delta_operator.h"

namespace sluice {

// Rows of a batch, the group that each belongs to, by row number, and their weights.
struct WeightedRows {
  std::span<const uint32_t> rows;
  const uint32_t* groups;
  const int64_t* weights;
  // Group → its key, as the start of keys in bag tables; empty where the call has none.
  std::span<const std::string_view> prefixes;
};

class AggregateState {
 public:
  virtual ~AggregateState() = default;

  // There are `groups` groups from now on; new ones are empty.
  virtual void Grow(size_t groups) = 0;
  // The front of *bytes, which Save wrote, becomes the group's state.
  virtual void Load(size_t group, std::string_view* bytes) = 0;
  virtual void Save(size_t group, std::string* out) const = 0;
  virtual void Update(std::span<const Column> args, const WeightedRows& rows) = 0;
  // The group's result → row `row` of `out`; throws what the aggregate itself would raise.
  virtual void Finish(size_t group, std::string_view prefix, size_t row, ColumnBuffer* out,
                      Arena* arena) = 0;
  virtual void Clear() = 0;  // no groups
  // Whether the whole state is in memory until Save: nothing of it is in tables.
  virtual bool in_memory() const { return true; }
  virtual size_t group_bytes() const { return 0; }  // of memory, about
};

// `table_name`: of the call's bag in the store, if it needs one. Throws 0A000 by name.
std::unique_ptr<AggregateState> MakeAggregateState(const AggregateCall& call, int32_t node,
                                                   size_t call_index, ViewContext& context);

// aggregate_invertible.cc; nullptr for aggregates that have no inverse.
std::unique_ptr<AggregateState> MakeInvertibleState(const AggregateCall& call);

}  // namespace sluice
