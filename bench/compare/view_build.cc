#include "bench/compare/view_build.h"

#include <atomic>
#include <signal.h>
#include <thread>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"
#include "bench/compare/views.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

double DrainShards(const Cluster& cluster, const std::string& sql) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int shard = 1; shard <= cluster.shards(); shard++)
    connections.push_back(std::make_unique<RawConnection>(cluster.ShardUrl(shard)));
  return Drain(connections, {sql}, true).seconds;
}

// The peak of a process's own memory while this lives, in MiB.
class MemoryWatch {
 public:
  explicit MemoryWatch(int pid)
      : thread_([this, pid] {
          for (; !done_; usleep(50'000)) peak_ = std::max(peak_.load(), MemoryOf(pid, "Anonymous"));
        }) {}
  double Stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    return static_cast<double>(peak_.load()) / (1 << 20);
  }
  ~MemoryWatch() { Stop(); }

 private:
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> peak_{0};
  std::thread thread_;
};

Measurement BackfillLine(const std::string& job, const std::vector<double>& raw,
                         const std::vector<double>& sluice, double limit) {
  Measurement m{
      .job = job, .unit = "s", .baseline = Median(raw), .sluice = Median(sluice), .limit = limit};
  fmt::print("{:<44} raw {:.3f} s, sluice {:.3f} s, ratio {:.2f}\n", m.job, m.baseline, m.sluice,
             m.ratio());
  std::fflush(stdout);
  return m;
}

// The same view over a table of 10,000 rows.
std::vector<double> SmallViewMs(const Cluster& cluster, int samples) {
  constexpr long kRows = 10'000;
  CreateTables(cluster, "bench_small", kOrdersColumns, "id");
  for (int shard = 1; shard <= cluster.shards(); shard++)
    Client(cluster.ShardUrl(shard))
        .Must(fmt::format("INSERT INTO bench_small SELECT * FROM orders WHERE id < {}", kRows));
  std::vector<double> ms;
  {
    ScopedView view(cluster, "bench_small_copy", "SELECT * FROM bench_small");
    ms = VisibilityMs(cluster, "bench_small", "qty", "bench_small_copy", kRows / 2, samples);
  }
  DropTables(cluster, "bench_small");
  return ms;
}

// Rows that the shards have read of a table. A process tells what it read when it ends, at the
// latest; so the pooled connections are ended.
double RowsRead(const Cluster& cluster, const std::string& table) {
  OnShards(cluster,
           "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = "
           "'sluice' AND backend_type = 'client backend' AND state = 'idle'");
  double rows = 0;
  for (int shard = 1; shard <= cluster.shards(); shard++)
    rows += std::stod(Client(cluster.ShardUrl(shard))
                          .Value(fmt::format("SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) "
                                             "FROM pg_stat_user_tables WHERE relname = '{}'",
                                             table)));
  return rows;
}

constexpr const char* kTable = "bench_source";
const std::vector<std::string> kChainNames = {"bench_a", "bench_b", "bench_c"};
const std::vector<std::string> kChain = {
    "CREATE MATERIALIZED VIEW bench_a AS SELECT id, customer, region, amount FROM bench_source",
    "CREATE MATERIALIZED VIEW bench_b AS SELECT id, region, amount FROM bench_a WHERE amount >= "
    "100",
    "CREATE MATERIALIZED VIEW bench_c AS SELECT region, count(*), sum(amount) FROM bench_b GROUP "
    "BY region"};
const std::vector<std::string> kDiamond = {
    "CREATE MATERIALIZED VIEW bench_a AS SELECT id, customer, region, amount FROM bench_source",
    "CREATE MATERIALIZED VIEW bench_b AS SELECT id, region FROM bench_source WHERE amount >= 100",
    "CREATE MATERIALIZED VIEW bench_c AS SELECT b.region, count(*), sum(a.amount) FROM bench_a a "
    "JOIN bench_b b ON a.id = b.id GROUP BY b.region"};

// Seconds until all of them are created; they are dropped again.
double BuildViews(const Cluster& cluster, const std::vector<std::string>& views,
                  const std::vector<std::string>& before, const std::vector<std::string>& after) {
  Client client(cluster.Url());
  double start = Now();
  for (const auto& list : {before, views, after})
    for (const std::string& sql : list) client.Must(sql);
  client.Must("SELECT * FROM bench_c");
  double seconds = Now() - start;
  DropViews(cluster, kChainNames);
  return seconds;
}

// Rows that the shards read for a backfill whose process is killed ten times on its way, evenly in
// the time that it takes undisturbed.
double KilledReads(const Cluster& cluster) {
  constexpr int kKills = 10;
  double start = Now();
  { ScopedView undisturbed(cluster, "bench_a", "SELECT * FROM orders"); }
  double piece_us = (Now() - start) * 1e6 / (kKills + 3);
  double before = RowsRead(cluster, "orders");
  {
    Client client(cluster.Url());
    client.Must("SET background_ddl = on");
    client.Must("CREATE MATERIALIZED VIEW bench_a AS SELECT * FROM orders");
  }
  for (int kills = 0; kills < kKills; kills++) {
    usleep(static_cast<useconds_t>(piece_us));
    auto jobs = Client(cluster.Url()).Must("SELECT id FROM sluice.jobs");
    if (jobs.rows.empty())
      throw std::runtime_error(fmt::format("the backfill was over after {} kills", kills));
    int killed = ViewWorkerPid(cluster.Url());
    kill(killed, SIGKILL);
    test::Eventually(
        [&] {
          Client client(cluster.Url());
          if (!client.connected()) return false;
          auto worker =
              client.Query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'view worker'");
          return worker.rows.size() == 1 && worker.rows[0][0] != std::to_string(killed);
        },
        30);
  }
  Client(cluster.Url()).Must("SELECT count(*) FROM bench_a");
  double read = RowsRead(cluster, "orders") - before;
  DropViews(cluster, {"bench_a"});
  return read;
}

}  // namespace

std::vector<Measurement> MeasureBackfills(const Cluster& cluster, int rounds, long rows) {
  constexpr int kSamples = 200;
  std::vector<Measurement> measurements;
  std::vector<double> raw_copy, copy, raw_group, group, small, large;
  double small_memory = 0, large_memory = 0;
  for (int round = 0; round < rounds; round++) {
    raw_copy.push_back(DrainShards(cluster, "SELECT * FROM orders"));
    MemoryWatch memory(ViewWorkerPid(cluster.Url()));
    double start = Now();
    ScopedView view(cluster, "bench_orders_copy", "SELECT * FROM orders");
    copy.push_back(Now() - start);
    large_memory = std::max(large_memory, memory.Stop());
    if (round + 1 == rounds)
      large = VisibilityMs(cluster, "orders", "qty", "bench_orders_copy", rows * 4, kSamples);
  }
  measurements.push_back(
      BackfillLine(fmt::format("backfill of {} rows, copy", rows * 4), raw_copy, copy, 2.0));
  for (int round = 0; round < rounds; round++) {
    raw_group.push_back(DrainShards(cluster, "SELECT customer, amount FROM orders"));
    double start = Now();
    ScopedView view(cluster, "bench_by_customer",
                    "SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer");
    group.push_back(Now() - start);
  }
  measurements.push_back(BackfillLine(
      fmt::format("backfill of {} rows, GROUP BY customer", rows * 4), raw_group, group, 1.4));
  {
    MemoryWatch memory(ViewWorkerPid(cluster.Url()));
    small = SmallViewMs(cluster, kSamples);
    small_memory = memory.Stop();
  }
  fmt::print("view worker's own memory: {:.0f} MiB at most with {} rows, {:.0f} MiB with 10000\n",
             large_memory, rows * 4, small_memory);
  measurements.push_back({.job = fmt::format("one row: view of {} against 10k", rows * 4),
                          .unit = "ms",
                          .baseline = Percentile(small, 50),
                          .sluice = Percentile(large, 50),
                          .limit = 1.5});
  measurements.push_back({.job = "memory of the view worker (MiB)",
                          .unit = "MiB",
                          .baseline = 256,
                          .sluice = large_memory,
                          .limit = 1});
  return measurements;
}

Measurement MeasureKilledBackfill(const Cluster& cluster, long rows) {
  return {.job = "rows read by a view killed 10 times, table",
          .unit = "rows",
          .baseline = static_cast<double>(rows * cluster.shards()),
          .sluice = KilledReads(cluster),
          .limit = 1.1};
}

std::vector<Measurement> MeasureChains(const Cluster& cluster, int rounds, long rows) {
  int shards = cluster.shards();
  CreateTables(cluster, kTable, kOrdersColumns, "id");
  OnAllShards(shards, [&](int shard) {
    Client client(cluster.ShardUrl(shard));
    client.Must(fmt::format("INSERT INTO {} SELECT * FROM orders LIMIT {}", kTable, rows));
    client.Must(fmt::format("VACUUM ANALYZE {}", kTable));
  });
  double all = static_cast<double>(rows * shards);
  std::vector<double> waited, at_once, in_one;
  double chain_reads = 0, diamond_reads = 0;
  const std::vector<std::string> background = {"SET background_ddl = on"};
  for (int round = 0; round < rounds; round++) {
    waited.push_back(BuildViews(cluster, kChain, {}, {}));
    double before = RowsRead(cluster, kTable);
    at_once.push_back(BuildViews(cluster, kChain, background, {"WAIT"}));
    chain_reads = RowsRead(cluster, kTable) - before;
    in_one.push_back(
        BuildViews(cluster, kChain, {"SET background_ddl = on", "BEGIN"}, {"COMMIT", "WAIT"}));
    before = RowsRead(cluster, kTable);
    BuildViews(cluster, kDiamond, background, {"WAIT"});
    diamond_reads = RowsRead(cluster, kTable) - before;
  }
  DropTables(cluster, kTable);
  auto line = [](const std::string& job, const std::string& unit, double baseline, double sluice,
                 double limit) {
    return Measurement{
        .job = job, .unit = unit, .baseline = baseline, .sluice = sluice, .limit = limit};
  };
  return {
      line("chain built while creating, WAIT between", "s", Median(waited), Median(at_once), 0.6),
      line("chain built in one transaction, WAIT between", "s", Median(waited), Median(in_one),
           0.5),
      // A few rows are read to see whether there are any, or for a piece that was read again.
      line("rows read for a chain of views, table", "rows", all, chain_reads, 1.01),
      line("rows read for a diamond of views, table", "rows", all, diamond_reads, 1.01)};
}

}  // namespace sluice::bench
