#include "bench/compare/view_reads.h"

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"
#include "bench/compare/views.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

double DrainOne(const std::string& url, const std::string& sql, long rows) {
  std::vector<std::unique_ptr<RawConnection>> one;
  one.push_back(std::make_unique<RawConnection>(url));
  Drained drained = Drain(one, {sql}, false);
  if (drained.rows != static_cast<uint64_t>(rows))
    throw std::runtime_error(fmt::format("{}: {} rows, not {}", sql, drained.rows, rows));
  return drained.seconds;
}

}  // namespace

double LookUpMs(const std::string& url, const std::string& sql,
                const std::function<long(int i)>& key_of) {
  constexpr int kLookUps = 3000, kWarm = 500;
  Client client(url);
  PGresult* prepared = PQprepare(client.raw(), "p", sql.c_str(), 1, nullptr);
  bool ok = PQresultStatus(prepared) == PGRES_COMMAND_OK;
  std::string message = PQresultErrorMessage(prepared);
  PQclear(prepared);
  if (!ok) throw std::runtime_error(sql + ": " + message);
  std::vector<double> latencies;
  for (int i = 0; i < kLookUps; i++) {
    std::string key = std::to_string(key_of(i));
    const char* values[] = {key.c_str()};
    double start = Now();
    PGresult* result = PQexecPrepared(client.raw(), "p", 1, values, nullptr, nullptr, 0);
    if (i >= kWarm) latencies.push_back((Now() - start) * 1e3);
    bool one = PQntuples(result) == 1;
    message = PQresultErrorMessage(result);
    PQclear(result);
    if (!one) throw std::runtime_error(sql + " found no row for " + key + " " + message);
  }
  return Median(latencies);
}

std::vector<Measurement> MeasureViewReads(const Cluster& cluster, int rounds, long rows) {
  int shards = cluster.shards();
  // All rows on the first shard, and spread: ids from 0.
  Client(cluster.ShardUrl(1)).Must("DROP TABLE IF EXISTS bench_read_alone");
  CreateTables(cluster, "bench_read", kOrdersColumns, "id");
  auto row = [](const std::string& ids) {
    return "SELECT id, (id * 7919 % 100000)::int, (ARRAY['emea','apac','amer','latam'])[1 + id % "
           "4], (id * 37 % 100000) / 100.0, (id % 50)::int, (id % 1000) * 1.25, timestamptz "
           "'2024-01-01 00:00:00+00' + id * interval '1 second', CASE WHEN id % 10 = 0 THEN NULL "
           "ELSE 'note ' || id % 1000 END FROM " +
           ids + " AS id";
  };
  OnAllShards(shards, [&](int shard) {
    Client client(cluster.ShardUrl(shard));
    client.Must("INSERT INTO bench_read " + row(fmt::format("generate_series({}::bigint, {}, {})",
                                                            shard % shards, rows - 1, shards)));
  });
  {
    Client client(cluster.ShardUrl(1));
    client.Must(fmt::format("CREATE TABLE bench_read_alone {}", kOrdersColumns));
    client.Must("INSERT INTO bench_read_alone " +
                row(fmt::format("generate_series(0::bigint, {})", rows - 1)));
    client.Must("VACUUM ANALYZE bench_read_alone");
  }
  std::vector<double> scan_alone, scan, look_alone, look;
  {
    ScopedView view(cluster, "bench_read_view", "SELECT * FROM bench_read");
    auto key = [&](int i) { return static_cast<long>(i) * 7919 % rows; };
    for (int round = 0; round < rounds; round++) {
      scan_alone.push_back(DrainOne(cluster.ShardUrl(1), "SELECT * FROM bench_read_alone", rows));
      scan.push_back(DrainOne(cluster.Url(), "SELECT * FROM bench_read_view", rows));
      look_alone.push_back(
          LookUpMs(cluster.ShardUrl(1), "SELECT * FROM bench_read_alone WHERE id = $1", key));
      look.push_back(LookUpMs(cluster.Url(), "SELECT * FROM bench_read_view WHERE id = $1", key));
    }
  }
  DropTables(cluster, "bench_read");
  Client(cluster.ShardUrl(1)).Must("DROP TABLE bench_read_alone");
  return {{.job = fmt::format("SELECT * of a view of {} rows, one Postgres", rows),
           .unit = "s",
           .baseline = Median(scan_alone),
           .sluice = Median(scan),
           .limit = 0.7},
          {.job = "look-up by key in a view, one Postgres",
           .unit = "ms",
           .baseline = Median(look_alone),
           .sluice = Median(look),
           .limit = 1.2}};
}

}  // namespace sluice::bench
