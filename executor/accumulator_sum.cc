// sum, avg and the variance family. All exact: the order of rows never shows in a result.
#include <cmath>

#include "executor/accumulator_internal.h"
#include "types/float_sum.h"
#include "types/numeric.h"
#include "types/numeric_sum.h"

namespace sluice {
namespace {

// sum(int2), sum(int4) → int8; the sum of counts → int8, 0 over no rows.
struct SmallSumState {
  int64_t sum = 0;
  int64_t count = 0;
};

template <typename T>
class SmallSum final : public RawAccumulator<SmallSumState> {
 public:
  explicit SmallSum(bool zero_if_empty) : zero_if_empty_(zero_if_empty) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      MergeState(&states_[group], {arg.At<T>(row), 1});
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    FinishEach<int64_t>(first, count, out, [this](int64_t* value, size_t group) {
      *value = states_[group].sum;
      return zero_if_empty_ || states_[group].count > 0;
    });
  }

 protected:
  void MergeState(SmallSumState* state, const SmallSumState& other) override { Add(state, other); }

 private:
  static void Add(SmallSumState* state, const SmallSumState& other) {
    if (__builtin_add_overflow(state->sum, other.sum, &state->sum)) {
      Throw(sqlstate::kNumericValueOutOfRange, "bigint out of range");
    }
    state->count += other.count;
  }
  bool zero_if_empty_;
};

// sum(int8), avg(int2, int4, int8) → numeric.
struct WideSumState {
  __int128 sum = 0;
  int64_t count = 0;
};

template <typename T>
class WideSum final : public RawAccumulator<WideSumState> {
 public:
  explicit WideSum(bool average) : average_(average) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      WideSumState& state = states_[group];
      state.sum += arg.At<T>(row);
      state.count++;
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    FinishEach<std::string_view>(first, count, out, [&](std::string_view* value, size_t group) {
      const WideSumState& state = states_[group];
      if (state.count == 0) return false;
      Numeric sum = NumericFromInt128(state.sum);
      *value =
          NumericToWire(average_ ? NumericDivide(sum, NumericFromInt(state.count)) : sum, arena);
      return true;
    });
  }

 protected:
  void MergeState(WideSumState* state, const WideSumState& other) override {
    state->sum += other.sum;
    state->count += other.count;
  }

 private:
  bool average_;
};

// States of types/ that keep parts of themselves in an arena.
template <typename State>
class ArenaAccumulator : public StateAccumulator<State> {
 public:
  explicit ArenaAccumulator(Arena* arena) : arena_(arena) {}
  void Serialize(size_t group, std::string* out) override { this->states_[group].Serialize(out); }
  void Merge(const Column& states, const GroupedRows& rows) override {
    rows.ForEachValue(states, [&](size_t row, uint32_t group) {
      std::string_view bytes = states.At<std::string_view>(row);
      this->states_[group].Merge(State::Deserialize(&bytes, arena_), arena_);
    });
  }

 protected:
  Arena* arena_;
};

class NumericSumAccumulator final : public ArenaAccumulator<NumericSum> {
 public:
  NumericSumAccumulator(bool average, Arena* arena) : ArenaAccumulator(arena), average_(average) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      states_[group].Add(arg.At<std::string_view>(row), arena_);
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    FinishEach<std::string_view>(first, count, out, [&](std::string_view* value, size_t group) {
      const NumericSum& state = states_[group];
      if (state.count == 0) return false;
      *value = average_ ? state.Average(arena) : state.Sum(arena);
      return true;
    });
  }

 private:
  bool average_;
};

template <typename T>
class FloatSumAccumulator final : public ArenaAccumulator<FloatSum> {
 public:
  FloatSumAccumulator(bool average, Arena* arena) : ArenaAccumulator(arena), average_(average) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      states_[group].Add(static_cast<double>(arg.At<T>(row)), arena_);
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    if (out->column.physical == Physical::kFloat4) {
      FinishEach<float>(first, count, out, [this](float* value, size_t group) {
        if (states_[group].count > 0) *value = states_[group].SumFloat4();
        return states_[group].count > 0;
      });
    } else {
      FinishEach<double>(first, count, out, [this](double* value, size_t group) {
        const FloatSum& state = states_[group];
        if (state.count > 0) *value = average_ ? state.Average() : state.Sum();
        return state.count > 0;
      });
    }
  }

 private:
  bool average_;
};

// Field by field, as Postgres adds intervals; avg divides each field and hands fractions down.
struct IntervalState {
  __int128 microseconds = 0;
  int64_t days = 0, months = 0, count = 0;
};

class IntervalSum final : public RawAccumulator<IntervalState> {
 public:
  explicit IntervalSum(bool average) : average_(average) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      const Interval& value = arg.At<Interval>(row);
      MergeState(&states_[group], {value.microseconds, value.days, value.months, 1});
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    FinishEach<Interval>(first, count, out, [this](Interval* value, size_t group) {
      const IntervalState& state = states_[group];
      if (state.count == 0) return false;
      if (state.microseconds != static_cast<int64_t>(state.microseconds) ||
          state.days != static_cast<int32_t>(state.days) ||
          state.months != static_cast<int32_t>(state.months)) {
        Throw(sqlstate::kDatetimeFieldOverflow, "interval out of range");
      }
      *value = {static_cast<int64_t>(state.microseconds), static_cast<int32_t>(state.days),
                static_cast<int32_t>(state.months)};
      return true;
    });
    if (average_) Divide(first, count, out, arena);
  }

 protected:
  void MergeState(IntervalState* state, const IntervalState& other) override {
    state->microseconds += other.microseconds;
    state->days += other.days;
    state->months += other.months;
    state->count += other.count;
  }

 private:
  void Divide(size_t first, size_t count, ColumnBuffer* out, Arena* arena) {
    constexpr Oid kIntervalDiv = 1326;
    const Kernel* divide = FindKernel(kIntervalDiv);
    if (divide == nullptr) Refuse("avg(interval) is not supported here");
    std::vector<double> counts(count);
    std::vector<uint32_t> rows;
    for (size_t i = 0; i < count; i++) {
      counts[i] = static_cast<double>(states_[first + i].count);
      if (counts[i] > 0) rows.push_back(static_cast<uint32_t>(i));
    }
    ColumnBuffer quotient(kIntervalOid);
    quotient.Nulls();
    Column divisor{kFloat8Oid, Physical::kFloat8, ~size_t{0}, nullptr, counts.data()};
    const Column* args[] = {&out->column, &divisor};
    EvalContext context{arena, nullptr};
    divide->fn(KernelCall{args, &quotient.column, rows.data(), rows.size(), nullptr, &context});
    CopyRows(quotient.column, rows.data(), rows.size(), out);
  }

  bool average_;
};

struct VarianceKind {
  bool sample, root;
};

// stddev and variance of integers and numeric → numeric.
template <typename T>
class NumericVariance final : public ArenaAccumulator<NumericMoments> {
 public:
  NumericVariance(VarianceKind kind, Arena* arena) : ArenaAccumulator(arena), kind_(kind) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      if constexpr (std::is_integral_v<T>) {
        states_[group].AddInt(arg.At<T>(row), arena_);
      } else {
        states_[group].Add(arg.At<T>(row), arena_);
      }
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena* arena) override {
    FinishEach<std::string_view>(first, count, out, [&](std::string_view* value, size_t group) {
      const NumericMoments& state = states_[group];
      return kind_.root ? state.Stddev(kind_.sample, arena, value)
                        : state.Variance(kind_.sample, arena, value);
    });
  }

 private:
  VarianceKind kind_;
};

template <typename T>
class FloatVariance final : public ArenaAccumulator<FloatMoments> {
 public:
  FloatVariance(VarianceKind kind, Arena* arena) : ArenaAccumulator(arena), kind_(kind) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    const Column& arg = args[0];
    rows.ForEachValue(arg, [&](size_t row, uint32_t group) {
      states_[group].Add(static_cast<double>(arg.At<T>(row)), arena_);
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    FinishEach<double>(first, count, out, [this](double* value, size_t group) {
      const FloatMoments& state = states_[group];
      return kind_.root ? state.Stddev(kind_.sample, value) : state.Variance(kind_.sample, value);
    });
  }

 private:
  VarianceKind kind_;
};

}  // namespace

std::unique_ptr<Accumulator> MakeSumAccumulator(const AggregateInfo& info, Arena* arena) {
  bool average = info.kind == AggregateKind::kAvg;
  if (info.kind == AggregateKind::kSumInt8ToInt8) return std::make_unique<SmallSum<int64_t>>(true);
  switch (info.input) {
    case kInt2Oid:
      if (average) return std::make_unique<WideSum<int16_t>>(true);
      return std::make_unique<SmallSum<int16_t>>(false);
    case kInt4Oid:
      if (average) return std::make_unique<WideSum<int32_t>>(true);
      return std::make_unique<SmallSum<int32_t>>(false);
    case kInt8Oid:
      return std::make_unique<WideSum<int64_t>>(average);
    case kNumericOid:
      return std::make_unique<NumericSumAccumulator>(average, arena);
    case kFloat4Oid:
      return std::make_unique<FloatSumAccumulator<float>>(average, arena);
    case kFloat8Oid:
      return std::make_unique<FloatSumAccumulator<double>>(average, arena);
    case kIntervalOid:
      return std::make_unique<IntervalSum>(average);
    default:
      Refuse("aggregate with OID {} is not supported here", info.function);
  }
}

std::unique_ptr<Accumulator> MakeVarianceAccumulator(const AggregateInfo& info, Arena* arena) {
  VarianceKind kind{
      info.kind == AggregateKind::kVarSamp || info.kind == AggregateKind::kStddevSamp,
      info.kind == AggregateKind::kStddevPop || info.kind == AggregateKind::kStddevSamp};
  switch (info.input) {
    case kInt2Oid:
      return std::make_unique<NumericVariance<int16_t>>(kind, arena);
    case kInt4Oid:
      return std::make_unique<NumericVariance<int32_t>>(kind, arena);
    case kInt8Oid:
      return std::make_unique<NumericVariance<int64_t>>(kind, arena);
    case kNumericOid:
      return std::make_unique<NumericVariance<std::string_view>>(kind, arena);
    case kFloat4Oid:
      return std::make_unique<FloatVariance<float>>(kind, arena);
    case kFloat8Oid:
      return std::make_unique<FloatVariance<double>>(kind, arena);
    default:
      Refuse("aggregate with OID {} is not supported here", info.function);
  }
}

}  // namespace sluice
