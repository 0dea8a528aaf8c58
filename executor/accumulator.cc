#include "executor/accumulator.h"

#include "executor/accumulator_internal.h"
#include "types/collation.h"
#include "types/compare.h"

namespace sluice {
namespace {

class CountAccumulator final : public RawAccumulator<int64_t> {
 public:
  explicit CountAccumulator(bool star) : star_(star) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    auto count = [this](size_t, uint32_t group) { states_[group]++; };
    if (star_) {
      rows.ForEach(count);
    } else {
      rows.ForEachValue(args[0], count);
    }
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    out->Clear();
    std::memcpy(out->column.data, states_.data() + first, sizeof(int64_t) * count);
  }

 protected:
  void MergeState(int64_t* state, const int64_t& other) override { *state += other; }

 private:
  bool star_;
};

struct BoolState {
  uint8_t seen = 0;
  uint8_t value = 0;
};

class BoolAccumulator final : public RawAccumulator<BoolState> {
 public:
  explicit BoolAccumulator(bool all) : all_(all) {}

  void Update(std::span<const Column> args, const GroupedRows& rows) override {
    rows.ForEachValue(args[0], [&](size_t row, uint32_t group) {
      MergeState(&states_[group], {1, static_cast<uint8_t>(args[0].At<uint8_t>(row) != 0)});
    });
  }
  void Finish(size_t first, size_t count, ColumnBuffer* out, Arena*) override {
    FinishEach<uint8_t>(first, count, out, [this](uint8_t* value, size_t group) {
      *value = states_[group].value;
      return states_[group].seen != 0;
    });
  }

 protected:
  void MergeState(BoolState* state, const BoolState& other) override {
    if (!other.seen) return;
    if (!state->seen) {
      *state = other;
    } else if (all_) {
      state->value &= other.value;
    } else {
      state->value |= other.value;
    }
  }

 private:
  bool all_;
};

bool IsOrderSensitive(AggregateKind kind) {
  return kind == AggregateKind::kStringAgg || kind == AggregateKind::kArrayAgg;
}

std::unique_ptr<Accumulator> MakePlain(const AggregateCall& call, const AggregateInfo& info,
                                       Arena* arena) {
  switch (info.kind) {
    case AggregateKind::kCount:
      return std::make_unique<CountAccumulator>(call.star);
    case AggregateKind::kCountStar:
      return std::make_unique<CountAccumulator>(true);
    case AggregateKind::kSum:
    case AggregateKind::kAvg:
    case AggregateKind::kSumInt8ToInt8:
      return MakeSumAccumulator(info, arena);
    case AggregateKind::kMin:
      return MakeExtremeAccumulator(call, false, arena);
    case AggregateKind::kMax:
      return MakeExtremeAccumulator(call, true, arena);
    case AggregateKind::kBoolAnd:
      return std::make_unique<BoolAccumulator>(true);
    case AggregateKind::kBoolOr:
      return std::make_unique<BoolAccumulator>(false);
    case AggregateKind::kStddevPop:
    case AggregateKind::kStddevSamp:
    case AggregateKind::kVarPop:
    case AggregateKind::kVarSamp:
      return MakeVarianceAccumulator(info, arena);
    case AggregateKind::kStringAgg:
    case AggregateKind::kArrayAgg:
      return MakeListAccumulator(call, info.kind, arena);
  }
  Refuse("aggregate with OID {} is not supported here", call.function);
}

}  // namespace

std::vector<Oid> ArgumentTypes(const AggregateCall& call) {
  std::vector<Oid> types;
  for (const Expr* arg : call.args) types.push_back(arg->type);
  for (const SortKey& key : call.order_by) types.push_back(key.expr->type);
  return types;
}

std::unique_ptr<Accumulator> MakeAccumulator(const AggregateCall& call,
                                             const AccumulatorContext& context) {
  const AggregateInfo* info = FindAggregate(call.function);
  if (info == nullptr) Refuse("aggregate with OID {} is not supported here", call.function);
  std::unique_ptr<Accumulator> accumulator = MakePlain(call, *info, context.state_arena);
  // Postgres removes duplicates by sorting, so array_agg(DISTINCT x) comes sorted there; so it does
  // here.
  bool by_arguments = call.distinct && call.order_by.empty() && IsOrderSensitive(info->kind);
  if ((!call.order_by.empty() && IsOrderSensitive(info->kind)) || by_arguments) {
    accumulator =
        MakeOrderedAccumulator(call, by_arguments, std::move(accumulator), context.state_arena);
  }
  if (call.distinct) accumulator = MakeDistinctAccumulator(call, std::move(accumulator), context);
  return accumulator;
}

}  // namespace sluice
