// Hash aggregate per core: rows as a shard sends them (DataRow messages in memory), decoded and grouped.
// items_per_second is rows per second of one core.
#include <benchmark/benchmark.h>

#include "common/bytes.h"
#include "executor/aggregate.h"
#include "executor/row_decoder.h"
#include "types/codec.h"

namespace sluice {
namespace {

constexpr size_t kRows = 1'000'000;
constexpr Oid kCountStar = 2803, kSumNumeric = 2114, kSumInt4 = 2108, kCountAny = 2147;

struct Surroundings {
  Surroundings() {
    context.shared_arena = &arena;
    context.settings = &settings;
    context.temp_directory = "/tmp";
    context.work_mem_bytes = 256 << 20;
    state.statement = nullptr;
    state.context = &context;
    statistics.resize(8);
    state.statistics = &statistics;
  }
  std::span<const OutputColumn> Columns(std::vector<Oid> types) {
    std::vector<OutputColumn> columns;
    for (Oid type : types) columns.push_back({"c", type, -1, kInvalidOid});
    return arena.CopyArray(columns);
  }
  const Expr* Input(int column, Oid type) {
    Expr* expr = arena.New<Expr>();
    expr->kind = ExprKind::kColumn;
    expr->type = type;
    expr->rel = kInput;
    expr->column = column;
    return expr;
  }

  Arena arena;
  SessionSettings settings;
  ExecutorContext context;
  ExecutionState state;
  std::vector<NodeStatistics> statistics;
};

// (region text, customer int4, amount numeric(12,2)) as in the standard workload.
class Messages {
 public:
  explicit Messages(Surroundings& s) {
    const char* regions[] = {"emea", "apac", "amer", "latam"};
    for (size_t g = 0; g < kRows; g++) {
      size_t head = bytes_.size();
      bytes_ += 'D';
      bytes_.append(4, 0);
      Append16(3);
      std::string_view region = regions[g % 4];
      Append32(static_cast<int32_t>(region.size()));
      bytes_ += region;
      Append32(4);
      Append32(static_cast<int32_t>(g * 7919 % 100000));
      size_t cents = g * 37 % 100000;
      std::string amount = fmt::format("{}.{:02}", cents / 100, cents % 100);
      Arena arena;
      std::string_view wire = ParseText(kNumericOid, -1, amount, s.settings, &arena);
      Append32(static_cast<int32_t>(wire.size()));
      bytes_ += wire;
      StoreBig(bytes_.data() + head + 1, static_cast<int32_t>(bytes_.size() - head - 1));
    }
  }
  std::string_view bytes() const { return bytes_; }

 private:
  void Append16(int16_t value) {
    char raw[2];
    StoreBig(raw, value);
    bytes_.append(raw, 2);
  }
  void Append32(int32_t value) {
    char raw[4];
    StoreBig(raw, value);
    bytes_.append(raw, 4);
  }
  std::string bytes_;
};

class ReplayNode : public Node {
 public:
  ReplayNode(const ForeignScanPlan& plan, ExecutionState& state, std::string_view bytes)
      : Node(plan, state), scan_(plan), decoder_(plan.output, *state.context->settings), bytes_(bytes),
        at_(bytes.data()) {}
  void Rescan() override { at_ = bytes_.data(); }

 protected:
  void NextBatch(Batch* batch) override {
    batch->rows = 0;
    const char* end = bytes_.data() + bytes_.size();
    if (at_ < end) decoder_.Decode(scan_, &at_, end, batch);
  }

 private:
  const ForeignScanPlan& scan_;
  RowDecoder decoder_;
  std::string_view bytes_;
  const char* at_;
};

struct Fixture {
  Fixture() : messages(s) {
    scan.kind = PlanKind::kForeignScan;
    scan.id = 0;
    scan.output = s.Columns({kTextOid, kInt4Oid, kNumericOid});
    static const bool binary[] = {true, true, true};
    scan.binary = binary;
  }
  AggregatePlan* Plan(int key, Oid key_type, std::vector<AggregateCall> calls) {
    auto* plan = s.arena.New<AggregatePlan>();
    plan->kind = PlanKind::kAggregate;
    plan->id = 1;
    plan->mode = AggregateMode::kPartial;
    plan->group_by = s.arena.CopyArray(std::vector<const Expr*>{s.Input(key, key_type)});
    plan->calls = s.arena.CopyArray(calls);
    std::vector<Oid> output(calls.size() + 1, kByteaOid);
    output[0] = key_type;
    plan->output = s.Columns(output);
    return plan;
  }
  AggregateCall Call(Oid function, int column, Oid input, Oid result, bool distinct = false) {
    AggregateCall call{};
    call.function = function;
    if (column >= 0) call.args = s.arena.CopyArray(std::vector<const Expr*>{s.Input(column, input)});
    call.star = column < 0;
    call.input_type = column < 0 ? kInvalidOid : input;
    call.result_type = result;
    call.distinct = distinct;
    return call;
  }
  void Run(benchmark::State& state, const AggregatePlan& plan) {
    for (auto _ : state) {
      Aggregate node(plan, s.state, std::make_unique<ReplayNode>(scan, s.state, messages.bytes()));
      Batch batch;
      size_t groups = 0;
      for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) groups += batch.rows;
      state.counters["groups"] = static_cast<double>(groups);
    }
    state.SetItemsProcessed(static_cast<int64_t>(kRows) * state.iterations());
  }

  Surroundings s;
  Messages messages;
  ForeignScanPlan scan{};
};

Fixture& TheFixture() {
  static Fixture fixture;
  return fixture;
}

void DecodeOnly(benchmark::State& state) {
  Fixture& f = TheFixture();
  for (auto _ : state) {
    ReplayNode node(f.scan, f.s.state, f.messages.bytes());
    Batch batch;
    for (node.Next(&batch); batch.rows > 0; node.Next(&batch)) benchmark::DoNotOptimize(batch);
  }
  state.SetItemsProcessed(static_cast<int64_t>(kRows) * state.iterations());
}
BENCHMARK(DecodeOnly)->Unit(benchmark::kMillisecond);

void FewGroups(benchmark::State& state) {
  Fixture& f = TheFixture();
  f.Run(state, *f.Plan(0, kTextOid, {f.Call(kCountStar, -1, 0, kInt8Oid),
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
  AggregatePlan* plan =
      f.Plan(0, kTextOid, {f.Call(kCountAny, 1, kInt4Oid, kInt8Oid, true)});
  plan->mode = AggregateMode::kSingle;
  plan->output = f.s.Columns({kTextOid, kInt8Oid});
  f.Run(state, *plan);
}
BENCHMARK(DistinctInGroups)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
