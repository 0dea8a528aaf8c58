// Hash join per core: 1M outer rows as shards send them, joined with 100k inner rows on an int4
// key, as in SELECT … FROM orders JOIN customers USING (customer). items_per_second is outer rows
// per second.
#include <benchmark/benchmark.h>

#include "bench/replay_rows.h"
#include "executor/hash_join.h"

namespace sluice {
namespace {

constexpr size_t kOuterRows = 1'000'000, kInnerRows = 100'000;

struct Fixture {
  Fixture()
      : outer_scan(s.Scan({kInt4Oid, kNumericOid})), inner_scan(s.Scan({kInt4Oid, kTextOid})) {
    for (size_t g = 0; g < kOuterRows; g++) {
      outer.Start(2);
      outer.Integer(static_cast<int32_t>(g * 7919 % kInnerRows));
      outer.Numeric(g * 37 % 100000);
      outer.End();
    }
    for (size_t g = 0; g < kInnerRows; g++) {
      inner.Start(2);
      inner.Integer(static_cast<int32_t>(g));
      inner.Value(fmt::format("segment {}", g % 10));
      inner.End();
    }
  }
  Surroundings s;
  ForeignScanPlan* outer_scan;
  ForeignScanPlan* inner_scan;
  Messages outer, inner;
};

void Join(benchmark::State& state, JoinType type) {
  static Fixture f;
  auto* plan = f.s.arena.New<HashJoinPlan>();
  plan->kind = PlanKind::kHashJoin;
  plan->id = 1;
  plan->type = type;
  plan->outer_keys = f.s.List({f.s.Input(0, kInt4Oid)});
  plan->inner_keys = f.s.List({f.s.Input(0, kInt4Oid, kInner)});
  std::vector<Oid> output = {kInt4Oid, kNumericOid};
  if (type != JoinType::kSemi) output.insert(output.end(), {kInt4Oid, kTextOid});
  plan->output = f.s.Columns(output);
  std::vector<const Plan*> children = {f.outer_scan, f.inner_scan};
  plan->children = children;
  for (auto _ : state) {
    HashJoin node(*plan, f.s.state,
                  std::make_unique<ReplayNode>(*f.outer_scan, f.s.state, f.outer.bytes()),
                  std::make_unique<ReplayNode>(*f.inner_scan, f.s.state, f.inner.bytes()));
    Batch batch;
    size_t rows = 0;
    for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) rows += batch.rows;
    if (rows != kOuterRows) state.SkipWithError("wrong number of rows");
  }
  state.SetItemsProcessed(static_cast<int64_t>(kOuterRows) * state.iterations());
}
BENCHMARK_CAPTURE(Join, Inner, JoinType::kInner)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Join, Semi, JoinType::kSemi)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
