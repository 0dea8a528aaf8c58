// The computing half of live views, without replication: rows into a table's copy and views over
// it. Times include each epoch's commit (one fdatasync).
#include <benchmark/benchmark.h>
#include <filesystem>
#include <random>
#include <unistd.h>

#include "catalog/catalog.h"
#include "common/bytes.h"
#include "parser/analyze.h"
#include "parser/raw.h"
#include "stream/view_graph.h"

namespace sluice {
namespace {

constexpr Oid kTable = 30000, kView = 30001;

// orders(id int8, customer int4, region text, amount int8), with one view over it.
class Orders {
 public:
  explicit Orders(const std::string& view_sql) {
    LoadBuiltinCatalog();
    directory_ = "/tmp/sluice_view_bench." + std::to_string(getpid());
    std::filesystem::remove_all(directory_);
    ViewStoreOptions options;
    options.writer = true;
    store_ = ViewStore::Open(directory_, options).OrThrow();
    graph_ = std::make_unique<ViewGraph>(store_.get());
    Relation relation{};
    relation.oid = kTable;
    relation.schema = "public";
    relation.name = "orders";
    relation.kind = RelationKind::kForeignTable;
    SourceDefinition source{kTable, {}, {0}};
    for (auto [name, type] : {std::pair("id", kInt8Oid), std::pair("customer", kInt4Oid),
                              std::pair("region", kTextOid), std::pair("amount", kInt8Oid)}) {
      ColumnInfo column;
      column.name = name;
      column.type = type;
      column.collation = type == kTextOid ? kCCollationOid : kInvalidOid;
      relation.columns.push_back(column);
      source.columns.push_back({name, type, -1, column.collation});
    }
    catalog_.relations[kTable] = relation;
    auto epoch = graph_->Begin();
    epoch->AddSource(source);
    epoch->SetSourceComplete(kTable, true);
    if (!view_sql.empty()) epoch->AddView(kView, Plan(view_sql), view_sql);
    epoch->Commit();
  }
  ~Orders() {
    graph_ = nullptr;
    store_ = nullptr;
    std::filesystem::remove_all(directory_);
  }

  void Load(int64_t rows, int64_t rows_an_epoch) {
    for (int64_t first = 0; first < rows; first += rows_an_epoch)
      Change(ChangeKind::kInsert, rows_an_epoch, [&](int64_t i) { return first + i; });
  }

  void Change(ChangeKind kind, int64_t count, const std::function<int64_t(int64_t)>& id_of) {
    auto epoch = graph_->Begin();
    ChangeBatch batch(4);
    std::vector<char> bytes(static_cast<size_t>(count) * 32);
    std::vector<std::array<WireValue, 4>> rows(static_cast<size_t>(count));
    static const char* regions[] = {"north", "south", "east", "west"};
    for (int64_t i = 0; i < count; i++) {
      char* at = bytes.data() + i * 32;
      int64_t id = id_of(i);
      StoreBig<int64_t>(at, id);
      StoreBig<int32_t>(at + 8, static_cast<int32_t>(id % 100000));
      StoreBig<int64_t>(at + 16, static_cast<int64_t>(random_() % 1000));
      const char* region = regions[id % 4];
      std::array<WireValue, 4>& row = rows[static_cast<size_t>(i)];
      row = {{{at, 8}, {at + 8, 4}, {region, 5 - (id % 4 > 1)}, {at + 16, 8}}};
      batch.Add(kind, {}, row);
      if (batch.size() < kBatchRows && i + 1 < count) continue;
      epoch->Apply(kTable, 0, batch);
      batch.Clear();
    }
    epoch->Commit();
  }

  std::mt19937_64& random() { return random_; }

 private:
  std::shared_ptr<const ViewPlan> Plan(const std::string& sql) {
    ParsedSql parsed = ParseSql(sql);
    Arena arena;
    std::vector<Oid> params;
    SessionSettings settings;
    AnalyzeContext context{&catalog_, &settings, {"public"}, "me", "db", &arena, &params};
    return PlanView(*AnalyzeSelect(parsed.statements().at(0), context), catalog_, settings);
  }

  std::string directory_;
  Catalog catalog_;
  std::unique_ptr<ViewStore> store_;
  std::unique_ptr<ViewGraph> graph_;
  std::mt19937_64 random_{1};
};

const char* Sql(int64_t which) {
  switch (which) {
    case 0:
      return "";
    case 1:
      return "SELECT * FROM orders";
    case 2:
      return "SELECT region, count(*) AS n, sum(amount) AS s FROM orders GROUP BY region";
    case 3:
      return "SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer";
    default:
      return "SELECT a.id, b.amount FROM orders a JOIN orders b ON a.id = b.id";
  }
}
const char* Label(int64_t which) {
  static const char* labels[] = {"table only", "copy", "by region", "by customer", "self join"};
  return labels[which];
}

void BM_Load(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto orders = std::make_unique<Orders>(Sql(state.range(0)));
    state.ResumeTiming();
    orders->Load(400000, 50000);
    state.PauseTiming();
    orders = nullptr;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * 400000);
  state.SetLabel(Label(state.range(0)));
}
BENCHMARK(BM_Load)->DenseRange(0, 4)->Iterations(1)->Unit(benchmark::kMillisecond);

void BM_RandomUpdates(benchmark::State& state) {
  constexpr int64_t kRows = 1000000, kEpoch = 20000;
  Orders orders(Sql(state.range(0)));
  orders.Load(kRows, 50000);
  for (auto _ : state)
    orders.Change(ChangeKind::kUpdate, kEpoch,
                  [&](int64_t) { return static_cast<int64_t>(orders.random()() % kRows); });
  state.SetItemsProcessed(state.iterations() * kEpoch);
  state.SetLabel(Label(state.range(0)));
}
BENCHMARK(BM_RandomUpdates)->DenseRange(0, 4)->Iterations(10)->Unit(benchmark::kMillisecond);

// One changed row an epoch, in a small and in a large table.
void BM_OneRow(benchmark::State& state) {
  Orders orders(Sql(2));
  orders.Load(state.range(0), std::min<int64_t>(state.range(0), 50000));
  for (auto _ : state)
    orders.Change(ChangeKind::kUpdate, 1, [&](int64_t) {
      return static_cast<int64_t>(orders.random()() % static_cast<uint64_t>(state.range(0)));
    });
}
BENCHMARK(BM_OneRow)->Arg(10000)->Arg(2000000)->Iterations(100)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
