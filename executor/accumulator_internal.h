// Inside executor/accumulator*.cc.
#pragma once

#include "common/error.h"
#include "executor/accumulator.h"
#include "types/aggregate_list.h"

namespace sluice {

// States of one plain type in an array.
template <typename State>
class StateArray {
 public:
  void Grow(size_t groups) {
    if (groups > states_.size()) states_.resize(groups);
  }
  State& operator[](size_t group) { return states_[group]; }
  const State& operator[](size_t group) const { return states_[group]; }
  State* data() { return states_.data(); }
  size_t memory_bytes() const { return states_.capacity() * sizeof(State); }
  void Clear() { std::vector<State>().swap(states_); }

 private:
  std::vector<State> states_;
};

// An accumulator whose states are independent plain structs; the rest is Derived's.
template <typename State>
class StateAccumulator : public Accumulator {
 public:
  void Grow(size_t groups) override { states_.Grow(groups); }
  size_t memory_bytes() const override { return states_.memory_bytes(); }
  void Clear() override { states_.Clear(); }

 protected:
  StateArray<State> states_;
};

// States that travel as their own bytes.
template <typename State>
class RawAccumulator : public StateAccumulator<State> {
 public:
  void Serialize(size_t group, std::string* out) override {
    static_assert(std::is_trivially_copyable_v<State>);
    out->append(reinterpret_cast<const char*>(&this->states_[group]), sizeof(State));
  }
  void Merge(const Column& states, const GroupedRows& rows) override {
    rows.ForEachValue(states, [&](size_t row, uint32_t group) {
      std::string_view bytes = states.At<std::string_view>(row);
      SLUICE_ASSERT(bytes.size() == sizeof(State));
      State other;
      std::memcpy(static_cast<void*>(&other), bytes.data(), sizeof other);
      MergeState(&this->states_[group], other);
    });
  }

 protected:
  virtual void MergeState(State* state, const State& other) = 0;
};

// out[i] = NULL unless fn(i, group) stored a value and returned true.
template <typename T, typename Fn>
void FinishEach(size_t first, size_t count, ColumnBuffer* out, Fn&& fn) {
  out->Clear();
  T* values = out->column.Data<T>();
  for (size_t i = 0; i < count; i++) {
    if (!fn(&values[i], first + i)) {
      out->Nulls()[i] = 1;
      values[i] = T{};
    }
  }
}

std::unique_ptr<Accumulator> MakeSumAccumulator(const AggregateInfo& info,
                                                Arena* arena);  // sum, avg
std::unique_ptr<Accumulator> MakeVarianceAccumulator(const AggregateInfo& info, Arena* arena);
std::unique_ptr<Accumulator> MakeExtremeAccumulator(const AggregateCall& call, bool maximum,
                                                    Arena* arena);
std::unique_ptr<Accumulator> MakeListAccumulator(const AggregateCall& call, AggregateKind kind,
                                                 Arena* arena);  // string_agg, array_agg
std::unique_ptr<Accumulator> MakeOrderedAccumulator(const AggregateCall& call, bool by_arguments,
                                                    std::unique_ptr<Accumulator> inner,
                                                    Arena* arena);
std::unique_ptr<Accumulator> MakeDistinctAccumulator(const AggregateCall& call,
                                                     std::unique_ptr<Accumulator> inner,
                                                     const AccumulatorContext& context);

}  // namespace sluice
