// Aggregates whose states rows can be subtracted from.
#include <vector>

#include "common/bytes.h"
#include "common/error.h"
#include "stream/aggregate_state.h"
#include "stream/row_codec.h"
#include "types/aggregate_list.h"
#include "types/float_sum.h"
#include "types/numeric.h"
#include "types/numeric_sum.h"

namespace sluice {
namespace {

constexpr size_t kStatesKept = 4096;

// States of a plain struct each.
template <typename State>
class StateOf : public AggregateState {
 public:
  void Grow(size_t groups) override {
    if (groups > states_.size()) states_.resize(groups);
  }
  void Clear() override {
    if (states_.size() > kStatesKept) states_ = {};
    states_.clear();
    arena_.Reset();
  }
  size_t group_bytes() const override { return sizeof(State); }

 protected:
  // Where the first argument is not NULL.
  template <typename Fn>
  void ForEachValue(std::span<const Column> args, const WeightedRows& rows, Fn&& fn) {
    constexpr size_t kAhead = 8;  // states are all over the memory
    for (size_t i = 0; i < rows.rows.size(); i++) {
      if (i + kAhead < rows.rows.size())
        __builtin_prefetch(&states_[rows.groups[rows.rows[i + kAhead]]]);
      uint32_t row = rows.rows[i];
      if (!args[0].IsNull(row)) fn(row, &states_[rows.groups[row]], rows.weights[row]);
    }
  }

  std::vector<State> states_;
  Arena arena_;
};

template <typename State>
class PlainState : public StateOf<State> {
 public:
  void Load(size_t group, std::string_view* bytes) override {
    std::memcpy(static_cast<void*>(&this->states_[group]), TakeBytes(sizeof(State), bytes).data(),
                sizeof(State));
  }
  void Save(size_t group, std::string* out) const override {
    static_assert(std::is_trivially_copyable_v<State>);
    out->append(reinterpret_cast<const char*>(&this->states_[group]), sizeof(State));
  }
};

struct CountOf {
  int64_t count = 0;
};

class Count final : public PlainState<CountOf> {
 public:
  explicit Count(bool star) : star_(star) {}
  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    if (!star_) {
      ForEachValue(args, rows,
                   [](uint32_t, CountOf* state, int64_t weight) { state->count += weight; });
      return;
    }
    for (uint32_t row : rows.rows) states_[rows.groups[row]].count += rows.weights[row];
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out, Arena*) override {
    out->column.Data<int64_t>()[row] = states_[group].count;
  }

 private:
  bool star_;
};

struct IntegerSumOf {
  __int128 sum = 0;
  int64_t count = 0;
};

template <typename T>
class IntegerSum final : public PlainState<IntegerSumOf> {
 public:
  IntegerSum(bool average, Oid result) : average_(average), to_int8_(result == kInt8Oid) {}
  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    const Column& arg = args[0];
    ForEachValue(args, rows, [&](uint32_t row, IntegerSumOf* state, int64_t weight) {
      state->sum += static_cast<__int128>(arg.At<T>(row)) * weight;
      state->count += weight;
    });
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    const IntegerSumOf& state = states_[group];
    if (state.count == 0) {
      out->Nulls()[row] = 1;
    } else if (to_int8_) {
      if (state.sum != static_cast<int64_t>(state.sum))
        Throw(sqlstate::kNumericValueOutOfRange, "bigint out of range");
      out->column.Data<int64_t>()[row] = static_cast<int64_t>(state.sum);
    } else {
      Numeric sum = NumericFromInt128(state.sum);
      out->column.Data<std::string_view>()[row] =
          NumericToWire(average_ ? NumericDivide(sum, NumericFromInt(state.count)) : sum, arena);
    }
  }

 private:
  bool average_, to_int8_;
};

struct BoolsOf {
  int64_t trues = 0, falses = 0;
};

class Bools final : public PlainState<BoolsOf> {
 public:
  explicit Bools(bool all) : all_(all) {}
  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    ForEachValue(args, rows, [&](uint32_t row, BoolsOf* state, int64_t weight) {
      (args[0].At<uint8_t>(row) != 0 ? state->trues : state->falses) += weight;
    });
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out, Arena*) override {
    const BoolsOf& state = states_[group];
    if (state.trues + state.falses == 0) out->Nulls()[row] = 1;
    out->column.Data<uint8_t>()[row] = all_ ? state.falses == 0 : state.trues > 0;
  }

 private:
  bool all_;
};

struct IntervalSumOf {
  __int128 microseconds = 0;
  int64_t days = 0, months = 0, count = 0;
};

class IntervalSum final : public PlainState<IntervalSumOf> {
 public:
  explicit IntervalSum(bool average) : average_(average) {}
  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    ForEachValue(args, rows, [&](uint32_t row, IntervalSumOf* state, int64_t weight) {
      const Interval& value = args[0].At<Interval>(row);
      state->microseconds += static_cast<__int128>(value.microseconds) * weight;
      state->days += value.days * weight;
      state->months += value.months * weight;
      state->count += weight;
    });
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    const IntervalSumOf& state = states_[group];
    Interval* value = &out->column.Data<Interval>()[row];
    if (state.count == 0) {
      out->Nulls()[row] = 1;
      return;
    }
    if (state.microseconds != static_cast<int64_t>(state.microseconds) ||
        state.days != static_cast<int32_t>(state.days) ||
        state.months != static_cast<int32_t>(state.months))
      Throw(sqlstate::kDatetimeFieldOverflow, "interval out of range");
    *value = {static_cast<int64_t>(state.microseconds), static_cast<int32_t>(state.days),
              static_cast<int32_t>(state.months)};
    if (!average_) return;
    constexpr Oid kIntervalDiv = 1326;
    auto count = static_cast<double>(state.count);
    Interval sum = *value;
    Column dividend{kIntervalOid, Physical::kInterval, 0, nullptr, &sum};
    Column divisor{kFloat8Oid, Physical::kFloat8, 0, nullptr, &count};
    Column quotient{kIntervalOid, Physical::kInterval, ~size_t{0}, nullptr, value};
    const Column* args[] = {&dividend, &divisor};
    EvalContext context{arena, nullptr};
    FindKernel(kIntervalDiv)->fn(KernelCall{args, &quotient, nullptr, 1, nullptr, &context});
  }

 private:
  bool average_;
};

// What a sum of finite values cannot give back.
struct Specials {
  int64_t count = 0, nan = 0, positive = 0, negative = 0;

  template <typename Sum>
  void Show(Sum* sum) const {
    sum->count = count;
    sum->seen_nan = nan > 0;
    sum->seen_positive_infinity = positive > 0;
    sum->seen_negative_infinity = negative > 0;
  }
};

template <typename Moments>
struct MomentsOf {
  Moments moments;  // of the finite values
  Specials specials;
  std::vector<std::pair<int32_t, int64_t>> scales;  // display scale, how many values have it

  int32_t Scale() const {
    int32_t scale = 0;
    for (auto [dscale, count] : scales)
      if (count > 0) scale = std::max(scale, dscale);
    return scale;
  }
};

enum class Wanted : uint8_t {
  kSum,
  kAverage,
  kVariancePop,
  kVarianceSamp,
  kStddevPop,
  kStddevSamp
};
bool WantsSquares(Wanted wanted) {
  return wanted != Wanted::kSum && wanted != Wanted::kAverage;
}

template <typename Moments>
class MomentsState : public StateOf<MomentsOf<Moments>> {
 public:
  explicit MomentsState(Wanted wanted) : wanted_(wanted) {}

  void Load(size_t group, std::string_view* bytes) override {
    auto& state = this->states_[group];
    std::memcpy(&state.specials, TakeBytes(sizeof(Specials), bytes).data(), sizeof(Specials));
    for (uint64_t n = TakeVarint(bytes); n > 0; n--) {
      auto dscale = static_cast<int32_t>(TakeVarint(bytes));
      state.scales.emplace_back(dscale, static_cast<int64_t>(TakeVarint(bytes)));
    }
    std::string_view sums = TakeBytes(TakeVarint(bytes), bytes);
    state.moments.sum = decltype(state.moments.sum)::Deserialize(&sums, &this->arena_);
    if (WantsSquares(wanted_))
      state.moments.squares = decltype(state.moments.sum)::Deserialize(&sums, &this->arena_);
  }
  void Save(size_t group, std::string* out) const override {
    const auto& state = this->states_[group];
    out->append(reinterpret_cast<const char*>(&state.specials), sizeof(Specials));
    AppendVarint(state.scales.size(), out);
    for (auto [dscale, count] : state.scales) {
      AppendVarint(static_cast<uint64_t>(dscale), out);
      AppendVarint(static_cast<uint64_t>(count), out);
    }
    std::string sums;
    state.moments.sum.Serialize(&sums);
    if (WantsSquares(wanted_)) state.moments.squares.Serialize(&sums);
    AppendVarint(sums.size(), out);
    out->append(sums);
  }

 protected:
  Wanted wanted_;
};

// numeric and integers.
template <typename T>
class NumericAggregate final : public MomentsState<NumericMoments> {
 public:
  using MomentsState::MomentsState;

  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    ForEachValue(args, rows, [&](uint32_t row, auto* state, int64_t weight) {
      state->specials.count += weight;
      if constexpr (std::is_integral_v<T>) {
        AddInt(&state->moments, args[0].At<T>(row), weight);
      } else {
        Add(state, args[0].At<std::string_view>(row), weight);
      }
    });
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out,
              Arena* arena) override {
    const auto& state = states_[group];
    NumericMoments moments = state.moments;
    state.specials.Show(&moments.sum);
    state.specials.Show(&moments.squares);
    moments.sum.dscale = state.Scale();
    moments.squares.dscale = 2 * state.Scale();
    std::string_view* value = &out->column.template Data<std::string_view>()[row];
    bool known = state.specials.count > 0;
    switch (wanted_) {
      case Wanted::kSum:
        if (known) *value = moments.sum.Sum(arena);
        break;
      case Wanted::kAverage:
        if (known) *value = moments.sum.Average(arena);
        break;
      case Wanted::kVariancePop:
      case Wanted::kVarianceSamp:
        known = moments.Variance(wanted_ == Wanted::kVarianceSamp, arena, value);
        break;
      case Wanted::kStddevPop:
      case Wanted::kStddevSamp:
        known = moments.Stddev(wanted_ == Wanted::kStddevSamp, arena, value);
        break;
    }
    if (!known) out->Nulls()[row] = 1;
  }

 private:
  void AddInt(NumericMoments* moments, int64_t value, int64_t weight) {
    NumericMoments one;
    one.sum.AddInt(value, &arena_);
    if (WantsSquares(wanted_)) one.squares.AddSquareOfInt(value, &arena_);
    MergeTimes(moments, &one, weight);
  }
  void Add(MomentsOf<NumericMoments>* state, std::string_view wire, int64_t weight) {
    auto sign = static_cast<NumericSign>(LoadBig<uint16_t>(wire.data() + 4));
    Specials& specials = state->specials;
    if (sign == NumericSign::kNan) specials.nan += weight;
    if (sign == NumericSign::kPositiveInfinity) specials.positive += weight;
    if (sign == NumericSign::kNegativeInfinity) specials.negative += weight;
    if (sign != NumericSign::kPositive && sign != NumericSign::kNegative) return;
    CountScale(state, LoadBig<uint16_t>(wire.data() + 6), weight);
    NumericMoments one;
    one.sum.Add(wire, &arena_);
    if (WantsSquares(wanted_)) one.squares.AddSquare(wire, &arena_);
    MergeTimes(&state->moments, &one, weight);
  }
  void CountScale(MomentsOf<NumericMoments>* state, int32_t dscale, int64_t weight) {
    for (size_t i = 0; i < state->scales.size(); i++) {
      if (state->scales[i].first != dscale) continue;
      state->scales[i].second += weight;
      if (state->scales[i].second == 0)
        state->scales.erase(state->scales.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    state->scales.emplace_back(dscale, weight);
  }
  void MergeTimes(NumericMoments* moments, NumericMoments* one, int64_t weight) {
    if (weight < 0) {
      one->sum.Negate();
      one->squares.Negate();
    }
    for (int64_t i = 0; i < std::abs(weight); i++) {
      moments->sum.Merge(one->sum, &arena_);
      if (WantsSquares(wanted_)) moments->squares.Merge(one->squares, &arena_);
    }
  }
};

template <typename T>
class FloatAggregate final : public MomentsState<FloatMoments> {
 public:
  using MomentsState::MomentsState;

  void Update(std::span<const Column> args, const WeightedRows& rows) override {
    ForEachValue(args, rows, [&](uint32_t row, auto* state, int64_t weight) {
      Specials& specials = state->specials;
      auto value = static_cast<double>(args[0].At<T>(row));
      specials.count += weight;
      if (std::isnan(value)) {
        specials.nan += weight;
      } else if (std::isinf(value)) {
        (value > 0 ? specials.positive : specials.negative) += weight;
      } else {
        Add(&state->moments, value, weight);
      }
    });
  }
  void Finish(size_t group, std::string_view, size_t row, ColumnBuffer* out, Arena*) override {
    const auto& state = states_[group];
    FloatMoments moments = state.moments;
    state.specials.Show(&moments.sum);
    state.specials.Show(&moments.squares);
    bool known = state.specials.count > 0;
    double value = 0;
    switch (wanted_) {
      case Wanted::kSum:
        if (known && out->column.physical == Physical::kFloat4) {
          out->column.template Data<float>()[row] = moments.sum.SumFloat4();
          return;
        }
        if (known) value = moments.sum.Sum();
        break;
      case Wanted::kAverage:
        if (known) value = moments.sum.Average();
        break;
      case Wanted::kVariancePop:
      case Wanted::kVarianceSamp:
        known = moments.Variance(wanted_ == Wanted::kVarianceSamp, &value);
        break;
      case Wanted::kStddevPop:
      case Wanted::kStddevSamp:
        known = moments.Stddev(wanted_ == Wanted::kStddevSamp, &value);
        break;
    }
    if (!known) {
      out->Nulls()[row] = 1;
      return;
    }
    out->column.template Data<double>()[row] = value;
  }

 private:
  void Add(FloatMoments* moments, double value, int64_t weight) {
    for (int64_t i = 0; i < std::abs(weight); i++)
      moments->sum.Add(weight < 0 ? -value : value, &arena_);
    if (!WantsSquares(wanted_)) return;
    FloatSum square;
    square.AddSquare(value, &arena_);
    if (weight < 0) square.Negate();
    for (int64_t i = 0; i < std::abs(weight); i++) moments->squares.Merge(square, &arena_);
  }
};

Wanted WantedOf(AggregateKind kind) {
  switch (kind) {
    case AggregateKind::kAvg:
      return Wanted::kAverage;
    case AggregateKind::kVarPop:
      return Wanted::kVariancePop;
    case AggregateKind::kVarSamp:
      return Wanted::kVarianceSamp;
    case AggregateKind::kStddevPop:
      return Wanted::kStddevPop;
    case AggregateKind::kStddevSamp:
      return Wanted::kStddevSamp;
    default:
      return Wanted::kSum;
  }
}

std::unique_ptr<AggregateState> MakeMoments(const AggregateInfo& info) {
  Wanted wanted = WantedOf(info.kind);
  bool plain = !WantsSquares(wanted), average = wanted == Wanted::kAverage;
  switch (info.input) {
    case kInt2Oid:
      if (plain) return std::make_unique<IntegerSum<int16_t>>(average, info.result);
      return std::make_unique<NumericAggregate<int16_t>>(wanted);
    case kInt4Oid:
      if (plain) return std::make_unique<IntegerSum<int32_t>>(average, info.result);
      return std::make_unique<NumericAggregate<int32_t>>(wanted);
    case kInt8Oid:
      if (plain) return std::make_unique<IntegerSum<int64_t>>(average, info.result);
      return std::make_unique<NumericAggregate<int64_t>>(wanted);
    case kNumericOid:
      return std::make_unique<NumericAggregate<std::string_view>>(wanted);
    case kFloat4Oid:
      return std::make_unique<FloatAggregate<float>>(wanted);
    case kFloat8Oid:
      return std::make_unique<FloatAggregate<double>>(wanted);
    case kIntervalOid:
      if (plain) return std::make_unique<IntervalSum>(average);
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<AggregateState> MakeInvertibleState(const AggregateCall& call) {
  const AggregateInfo* info = FindAggregate(call.function);
  if (info == nullptr) Refuse("aggregate with OID {} is not supported here", call.function);
  switch (info->kind) {
    case AggregateKind::kCount:
      return std::make_unique<Count>(false);
    case AggregateKind::kCountStar:
      return std::make_unique<Count>(true);
    case AggregateKind::kBoolAnd:
      return std::make_unique<Bools>(true);
    case AggregateKind::kBoolOr:
      return std::make_unique<Bools>(false);
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
    case AggregateKind::kVarPop:
    case AggregateKind::kVarSamp:
    case AggregateKind::kStddevPop:
    case AggregateKind::kStddevSamp:
      return MakeMoments(*info);
    default:
      return nullptr;
  }
}

}  // namespace sluice
