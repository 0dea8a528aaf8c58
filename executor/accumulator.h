// The states of one aggregate call, one a group, and how rows change them.
#pragma once

#include "executor/column_buffer.h"
#include "optimizer/plan.h"
#include "types/kernel.h"

namespace sluice {

// Rows of a batch and the group that each belongs to.
struct GroupedRows {
  const uint32_t* rows;  // nullptr: 0..count
  size_t count;
  const uint32_t* groups;  // by row number

  template <typename Fn>
  void ForEach(Fn&& fn) const {
    if (rows == nullptr) {
      for (size_t i = 0; i < count; i++) fn(i, groups[i]);
    } else {
      for (size_t i = 0; i < count; i++) fn(size_t{rows[i]}, groups[rows[i]]);
    }
  }
  // Only where `column` is not NULL.
  template <typename Fn>
  void ForEachValue(const Column& column, Fn&& fn) const {
    if (column.nulls == nullptr) {
      ForEach(fn);
    } else {
      ForEach([&](size_t row, uint32_t group) {
        if (!column.IsNull(row)) fn(row, group);
      });
    }
  }
};

class Accumulator {
 public:
  virtual ~Accumulator() = default;

  // There are `groups` groups from now on; new ones are empty.
  virtual void Grow(size_t groups) = 0;
  virtual void Update(std::span<const Column> args, const GroupedRows& rows) = 0;
  // `states` is a bytea column of what Serialize wrote.
  virtual void Merge(const Column& states, const GroupedRows& rows) = 0;
  virtual void Serialize(size_t group, std::string* out) = 0;
  // All rows are in: called once before Finish or Serialize are.
  virtual void Complete() {}
  // out row i = result of group first + i; `arena` holds values.
  virtual void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) = 0;
  // Beyond what lies in the state arena.
  virtual size_t memory_bytes() const = 0;
  virtual uint64_t spilled_bytes() const { return 0; }
  // No groups. The state arena is reset by its owner.
  virtual void Clear() = 0;
};

struct AccumulatorContext {
  Arena* state_arena;  // what states point to
  const SessionSettings* settings;
  std::string_view temp_directory;
  size_t distinct_memory_bytes;  // for the sets of one DISTINCT aggregate
};

// Types of the columns that Update wants: the arguments, then the ORDER BY expressions.
std::vector<Oid> ArgumentTypes(const AggregateCall& call);

// With DISTINCT and ORDER BY around it, if the call has them. Throws 0A000 by name.
std::unique_ptr<Accumulator> MakeAccumulator(const AggregateCall& call,
                                             const AccumulatorContext& context);

}  // namespace sluice
