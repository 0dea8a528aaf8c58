// Hash aggregate per core: rows as a shard sends them (DataRow messages in memory), decoded and
// grouped. items_per_second is rows per second of one core.
#include <benchmark/benchmark.h>

#include "bench/replay_rows.h"
#include "executor/aggregate.h"

namespace sluice {
namespace {

constexpr size_t kRows = 1'000'000;
constexpr Oid kCountStar = 2803, kSumNumeric = 2114, kCountAny = 2147;

struct Fixture {
  // (region text, customer int4, amount numeric(12,2)) as in the standard workload.
  Fixture() : scan(s.Scan({kTextOid, kInt4Oid, kNumericOid})) {
    const char* regions[] = {"emea", "apac", "amer", "latam"};
    for (size_t g = 0; g < kRows; g++) {
      messages.Start(3);
      messages.Value(regions[g % 4]);
      messages.Integer(static_cast<int32_t>(g * 7919 % 100000));
      messages.Numeric(g * 37 % 100000);
      messages.End();
    }
  }
  AggregatePlan* Plan(int key, Oid key_type, std::vector<AggregateCall> calls) {
    auto* plan = s.arena.New<AggregatePlan>();
    plan->kind = PlanKind::kAggregate;
    plan->id = 1;
    plan->mode = AggregateMode::kPartial;
    plan->group_by = s.List({s.Input(key, key_type)});
    plan->calls = s.arena.CopyArray(calls);
    std::vector<Oid> output(calls.size() + 1, kByteaOid);
    output[0] = key_type;
    plan->output = s.Columns(output);
    return plan;
  }
  AggregateCall Call(Oid function, int column, Oid input, Oid result, bool distinct = false) {
    AggregateCall call{};
    call.function = function;
    if (column >= 0) call.args = s.List({s.Input(column, input)});
    call.star = column < 0;
    call.input_type = column < 0 ? kInvalidOid : input;
    call.result_type = result;
    call.distinct = distinct;
    return call;
  }
  void Run(benchmark::State& state, const AggregatePlan& plan) {
    for (auto _ : state) {
      Aggregate node(plan, s.state, std::make_unique<ReplayNode>(*scan, s.state, messages.bytes()));
      Batch batch;
      size_t groups = 0;
      for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) groups += batch.rows;
      state.counters["groups"] = static_cast<double>(groups);
    }
    state.SetItemsProcessed(static_cast<int64_t>(kRows) * state.iterations());
  }

  Surroundings s;
  Messages messages;
  ForeignScanPlan* scan;
};

Fixture& TheFixture() {
  static Fixture fixture;
  return fixture;
}

void DecodeOnly(benchmark::State& state) {
  Fixture& f = TheFixture();
  for (auto _ : state) {
    ReplayNode node(*f.scan, f.s.state, f.messages.bytes());
    Batch batch;
    for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) benchmark::DoNotOptimize(batch);
  }
  state.SetItemsProcessed(static_cast<int64_t>(kRows) * state.iterations());
}
BENCHMARK(DecodeOnly)->Unit(benchmark::kMillisecond);

void FewGroups(benchmark::State& state) {
  Fixture& f = TheFixture();
  f.Run(state, *f.Plan(0, kTextOid,
                       {f.Call(kCountStar, -1, 0, kInt8Oid),
                        f.Call(kSumNumeric, 2, kNumericOid, kNumericOid)}));
}
BENCHMARK(FewGroups)->Unit(benchmark::kMillisecond);

void ManyGroups(benchmark::State& state) {
  Fixture& f = TheFixture();
  f.Run(state, *f.Plan(1, kInt4Oid, {f.Call(kSumNumeric, 2, kNumericOid, kNumericOid)}));
}
BENCHMARK(ManyGroups)->Unit(benchmark::kMillisecond);

void DistinctInGroups(benchmark::State& state) {
  Fixture& f = TheFixture();
  AggregatePlan* plan = f.Plan(0, kTextOid, {f.Call(kCountAny, 1, kInt4Oid, kInt8Oid, true)});
  plan->mode = AggregateMode::kSingle;
  plan->output = f.s.Columns({kTextOid, kInt8Oid});
  f.Run(state, *plan);
}
BENCHMARK(DistinctInGroups)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
