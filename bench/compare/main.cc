// `./dev bench`: the standard workload over four shards, three ways side by side in one run: raw
// drain (plain sockets, the same statements), Sluice, and postgres_fdw. Rounds are interleaved;
// medians are reported.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/pgbench.h"
#include "bench/compare/replay.h"
#include "bench/compare/report.h"
#include "bench/compare/scale.h"
#include "bench/compare/shards.h"
#include "bench/compare/transactions.h"
#include "bench/compare/view_build.h"
#include "bench/compare/view_changes.h"
#include "bench/compare/view_reads.h"
#include "bench/compare/writes.h"
#include "tests/harness.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;
using Connections = std::vector<std::unique_ptr<RawConnection>>;

constexpr int kShards = 4;

struct Settings {
  long rows = 1'000'000;  // a shard
  int rounds = 5;
  int fdw_rounds = 1;
  std::string only;
  std::string out = ".";
};

struct Job {
  std::string name;
  double limit;
  std::vector<std::string> raw;            // on every shard, one after the other
  bool binary;                             // raw results in binary
  std::string sql;                         // on Sluice and postgres_fdw
  std::vector<std::string> settings = {};  // on Sluice, before
  double fdw_factor_min = 0;
  std::string fdw_sql = {};  // where postgres_fdw needs other words
};

std::vector<Job> Jobs() {
  return {
      {"SELECT *", 1.20, {"SELECT * FROM orders"}, false, "SELECT * FROM orders", {}, 4},
      {"COPY TO STDOUT",
       1.20,
       {"COPY orders TO STDOUT"},
       false,
       "COPY orders TO STDOUT",
       {},
       4,
       "COPY (SELECT * FROM orders) TO STDOUT"},
      {"sum, count GROUP BY region, pushed",
       1.10,
       {"SELECT region, sum(amount), count(*) FROM orders GROUP BY region"},
       true,
       "SELECT region, sum(amount), count(*) FROM orders GROUP BY region"},
      {"sum, count GROUP BY region, here",
       1.20,
       {"SELECT region, amount FROM orders"},
       true,
       "SELECT region, sum(amount), count(*) FROM orders GROUP BY region",
       {"SET enable_pushdown_aggregate = off"}},
      {"sum GROUP BY customer (100k), here",
       1.30,
       {"SELECT customer, amount FROM orders"},
       true,
       "SELECT customer, sum(amount) FROM orders GROUP BY customer",
       {"SET enable_pushdown_aggregate = off"}},
      {"join 4M x 400k, GROUP BY",
       1.60,
       {"SELECT customer, amount FROM orders", "SELECT id, segment FROM customers"},
       true,
       "SELECT c.segment, sum(o.amount), count(*) FROM orders o JOIN customers c ON o.customer = "
       "c.id "
       "GROUP BY c.segment",
       {},
       3},
      {"ORDER BY amount DESC, id LIMIT 100",
       1.10,
       {"SELECT * FROM orders ORDER BY amount DESC, id LIMIT 100"},
       false,
       "SELECT * FROM orders ORDER BY amount DESC, id LIMIT 100"},
      {"count(distinct customer) GROUP BY region",
       1.50,
       {"SELECT region, customer FROM orders"},
       true,
       "SELECT region, count(DISTINCT customer) FROM orders GROUP BY region"},
  };
}

std::string Psql() {
  return "/usr/bin/psql";
}

// Loads every shard at once.
void LoadShards(const Cluster& cluster, const Settings& settings) {
  std::vector<pid_t> running;
  std::string customers = fmt::format(
      "DROP TABLE IF EXISTS customers; CREATE TABLE customers (id int PRIMARY KEY, segment text "
      "NOT NULL, "
      "name text); INSERT INTO customers SELECT g * 4 + :s - 1, 'segment ' || g % 20, 'customer ' "
      "|| g FROM "
      "generate_series(0, {}) g; ANALYZE customers; CHECKPOINT;",
      settings.rows / 10 - 1);
  std::string script = cluster.directory() + "/customers.sql";
  std::ofstream(script) << customers;
  for (int shard = 1; shard <= kShards; shard++) {
    pid_t pid = fork();
    if (pid == 0) {
      std::string url = cluster.ShardUrl(shard), s = fmt::format("s={}", shard),
                  rows = fmt::format("rows={}", settings.rows),
                  file = test::SourceDirectory() + "/tests/workloads/orders.sql";
      execl(Psql().c_str(), "psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-v", s.c_str(), "-v",
            rows.c_str(), "-f", file.c_str(), "-f", script.c_str(), url.c_str(), nullptr);
      _exit(127);
    }
    running.push_back(pid);
  }
  for (pid_t pid : running) {
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) throw std::runtime_error("loading a shard failed");
  }
  // Hint bits and the visibility map, so that every contender meets the same pages.
  for (int shard = 1; shard <= kShards; shard++) Client(cluster.ShardUrl(shard)).Must("VACUUM");
}

std::vector<std::string> AttachStatements() {
  std::vector<std::string> statements = {
      "CREATE TABLE orders (id bigint NOT NULL, customer int NOT NULL, region text NOT NULL, "
      "amount numeric(12,2) "
      "NOT NULL, qty int NOT NULL, price float8 NOT NULL, created timestamptz NOT NULL, note text) "
      "PARTITION BY LIST ((id % 4))",
      "CREATE TABLE customers (id int NOT NULL, segment text NOT NULL, name text) PARTITION BY "
      "LIST ((id % 4))"};
  for (int shard = 1; shard <= kShards; shard++) {
    statements.push_back(
        fmt::format("CREATE FOREIGN TABLE orders_{0} PARTITION OF orders FOR VALUES IN ({1}) "
                    "SERVER shard{0} OPTIONS (table_name 'orders')",
                    shard, shard % 4));
    statements.push_back(
        fmt::format("CREATE FOREIGN TABLE customers_{0} PARTITION OF customers FOR VALUES IN "
                    "({1}) SERVER shard{0} OPTIONS (table_name 'customers')",
                    shard, shard - 1));
  }
  return statements;
}

// postgres_fdw's coordinator is a database of the first shard's server; it reaches all four by
// loopback.
void SetUpFdw(const Cluster& cluster, const std::string& database, int fetch_size) {
  Client(cluster.ShardUrl(1)).Must("CREATE DATABASE " + database);
  Client fdw(cluster.ShardUrl(1, database));
  fdw.Must("CREATE EXTENSION postgres_fdw");
  for (int shard = 1; shard <= kShards; shard++) {
    std::string url = cluster.ShardUrl(shard);
    fdw.Must(fmt::format(
        "CREATE SERVER shard{} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port "
        "'{}', dbname 'postgres', async_capable 'true', fetch_size '{}')",
        shard, PortOf(url), fetch_size));
    fdw.Must(fmt::format("CREATE USER MAPPING FOR PUBLIC SERVER shard{} OPTIONS (user 'postgres')",
                         shard));
  }
  for (const auto& sql : AttachStatements()) fdw.Must(sql);
  fdw.Must("ANALYZE orders, customers");
  fdw.Must(fmt::format("ALTER DATABASE {} SET enable_partitionwise_aggregate = on", database));
  fdw.Must(fmt::format("ALTER DATABASE {} SET enable_partitionwise_join = on", database));
}

Connections OpenShards(const Cluster& cluster) {
  Connections connections;
  for (int shard = 1; shard <= kShards; shard++)
    connections.push_back(std::make_unique<RawConnection>(cluster.ShardUrl(shard)));
  return connections;
}

double TimeOne(const std::string& url, const std::vector<std::string>& settings,
               const std::string& sql, uint64_t* rows) {
  Connections one;
  one.push_back(std::make_unique<RawConnection>(url));
  for (const auto& setting : settings) one[0]->Execute(setting);
  Drained drained = Drain(one, {sql}, false);
  *rows = drained.rows;
  return drained.seconds;
}

Measurement RunJob(const Cluster& cluster, const Job& job, const Settings& settings) {
  std::vector<double> raw, sluice, fdw_10000, fdw_100;
  for (int round = 0; round < settings.rounds; round++) {
    uint64_t rows = 0;
    Connections shards = OpenShards(cluster);
    raw.push_back(Drain(shards, job.raw, job.binary).seconds);
    sluice.push_back(TimeOne(cluster.Url(), job.settings, job.sql, &rows));
    if (round < settings.fdw_rounds) {
      uint64_t fdw_rows = 0;
      const std::string& sql = job.fdw_sql.empty() ? job.sql : job.fdw_sql;
      fdw_10000.push_back(TimeOne(cluster.ShardUrl(1, "fdw_10000"), {}, sql, &fdw_rows));
      if (rows != fdw_rows)
        throw std::runtime_error(
            fmt::format("{}: Sluice gave {} rows, postgres_fdw {}", job.name, rows, fdw_rows));
      fdw_100.push_back(TimeOne(cluster.ShardUrl(1, "fdw_100"), {}, sql, &fdw_rows));
    }
  }
  Measurement m{.job = job.name,
                .unit = "s",
                .baseline = Median(raw),
                .sluice = Median(sluice),
                .limit = job.limit,
                .fdw_10000 = Median(fdw_10000),
                .fdw_100 = Median(fdw_100),
                .fdw_factor_min = settings.fdw_rounds > 0 ? job.fdw_factor_min : 0};
  fmt::print("{:<44} raw {:.3f} s, sluice {:.3f} s, ratio {:.2f}\n", m.job, m.baseline, m.sluice,
             m.ratio());
  std::fflush(stdout);
  return m;
}

Measurement RunPoint(const Cluster& cluster, const Settings& settings) {
  std::vector<double> direct, sluice;
  for (int round = 0; round < settings.rounds; round++) {
    // Keys of the first shard: id = 4g + 1.
    auto key = [&](int i) { return (static_cast<long>(i) * 7919 % settings.rows + 1) * 4 + 1; };
    const std::string sql = "SELECT * FROM orders WHERE id = $1";
    direct.push_back(LookUpMs(cluster.ShardUrl(1), sql, key));
    sluice.push_back(LookUpMs(cluster.Url(), sql, key));
  }
  return {.job = "point query by key, 1 client",
          .unit = "ms",
          .baseline = Median(direct),
          .sluice = Median(sluice),
          .limit = 1.8};
}

// The limit is raw drain's time and 5 ms, written as a ratio.
Measurement RunFirstRow(const Cluster& cluster, const Settings& settings) {
  std::vector<double> raw, sluice;
  for (int round = 0; round < settings.rounds; round++) {
    Connections shards = OpenShards(cluster);
    raw.push_back(Drain(shards, {"SELECT * FROM orders"}, false).first_row_seconds * 1e3);
    Connections one;
    one.push_back(std::make_unique<RawConnection>(cluster.Url()));
    sluice.push_back(Drain(one, {"SELECT * FROM orders"}, false).first_row_seconds * 1e3);
  }
  double baseline = Median(raw);
  return {.job = "first row of SELECT * (≤ 5 ms later)",
          .unit = "ms",
          .baseline = baseline,
          .sluice = Median(sluice),
          .limit = (baseline + 5) / baseline};
}

int Run(const Settings& settings) {
  fmt::print("starting {} shards and Sluice, loading {} rows a shard …\n", kShards, settings.rows);
  std::fflush(stdout);
  Cluster cluster(Cluster::Options{
      .shards = kShards, .settings = {"max_connections = 1100"}, .shard_settings = {}});
  LoadShards(cluster, settings);
  {
    Client sluice(cluster.Url());
    for (const auto& sql : AttachStatements()) sluice.Must(sql);
    sluice.Must("CALL sluice.analyze('orders')");
    sluice.Must("CALL sluice.analyze('customers')");
  }
  if (settings.fdw_rounds > 0) {
    SetUpFdw(cluster, "fdw_10000", 10000);
    SetUpFdw(cluster, "fdw_100", 100);
  }
  std::vector<Measurement> measurements;
  auto wanted = [&](const std::string& name) {
    return settings.only.empty() || name.find(settings.only) != std::string::npos;
  };
  bool failed = false;
  auto guarded = [&](const std::string& name, auto&& run) {
    if (!wanted(name)) return;
    try {
      if constexpr (std::is_same_v<decltype(run()), Measurement>)
        measurements.push_back(run());
      else
        for (const Measurement& m : run()) measurements.push_back(m);
    } catch (const std::exception& error) {
      fmt::print("{:<44} FAILED: {}\n", name, error.what());
      failed = true;
    }
  };
  for (const auto& job : Jobs()) guarded(job.name, [&] { return RunJob(cluster, job, settings); });
  guarded("point query", [&] { return RunPoint(cluster, settings); });
  guarded("first row", [&] { return RunFirstRow(cluster, settings); });
  guarded("COPY FROM", [&] { return MeasureCopyFrom(cluster, settings.rounds, settings.rows); });
  guarded("INSERT SELECT",
          [&] { return MeasureInsertSelect(cluster, settings.rounds, settings.rows); });
  guarded("replay", [&] { return MeasureReplay(cluster, settings.rounds); });
  guarded("uneven shards", [&] { return MeasureUnevenRates(cluster, settings.rounds); });
  guarded("idle workers", [&] { return MeasureIdleWorkers(cluster, settings.rounds); });
  guarded("memory", [&] { return MeasureMemory(cluster); });
  guarded("64 streams",
          [&] { return MeasureManyStreams(cluster, settings.rows, settings.rounds); });
  guarded("transactions: pgbench", [&] { return MeasurePgbench(cluster, settings.rounds); });
  guarded("transactions: transfer", [&] { return MeasureTransfer(cluster, settings.rounds); });
  guarded("transactions: idle clients", [&] { return MeasureIdleClients(cluster); });
  guarded("transactions: transfers and sums",
          [&] { return MeasureTransfersAndSums(&cluster, settings.rounds); });
  // Of the views' measurements a round is long; a quarter of the rows will do for some.
  int view_rounds = std::min(settings.rounds, 3);
  long fewer_rows = std::max(settings.rows / 4, 1L);
  guarded("view: changes", [&] { return MeasureChangeRates(cluster, view_rounds, settings.rows); });
  guarded("view: visibility", [&] { return MeasureVisibility(cluster); });
  guarded("view: reads", [&] { return MeasureViewReads(cluster, view_rounds, settings.rows); });
  guarded("view: backfills", [&] { return MeasureBackfills(cluster, view_rounds, settings.rows); });
  guarded("view: killed", [&] { return MeasureKilledBackfill(cluster, settings.rows); });
  guarded("view: chains", [&] { return MeasureChains(cluster, view_rounds, fewer_rows); });
  PrintTable(measurements);
  WriteJson(measurements, settings.out + "/bench.json");
  WriteSvg(measurements, settings.out + "/bench.svg");
  fmt::print("\nwritten: {0}/bench.json, {0}/bench.svg\n", settings.out);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i], value = argv[i + 1];
    if (name == "--rows")
      settings.rows = std::stol(value);
    else if (name == "--rounds")
      settings.rounds = std::stoi(value);
    else if (name == "--fdw-rounds")
      settings.fdw_rounds = std::stoi(value);
    else if (name == "--only")
      settings.only = value;
    else if (name == "--out")
      settings.out = value;
    else {
      fmt::print(stderr, "unknown option {}\n", name);
      return 2;
    }
  }
  try {
    return sluice::bench::Run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 1;
  }
}
