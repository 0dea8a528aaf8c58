#include "bench/compare/writes.h"

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

std::string OrderLine(long id) {
  static constexpr const char* kRegions[] = {"emea", "apac", "amer", "latam"};
  return fmt::format("{}\t{}\t{}\t{}.{:02}\t{}\t{}\t2024-01-01 00:00:{:02}+00\tnote {}\n", id,
                     id * 7919 % 100'000, kRegions[id % 4], id % 10'000, id % 100, id % 50,
                     static_cast<double>(id % 1000) * 1.25, id % 60, id % 1000);
}

void SendCopy(const std::string& url, const std::string& sql, const std::string& data) {
  constexpr size_t kPiece = 8192;  // psql's
  Client client(url);
  PGconn* connection = client.raw();
  PQclear(PQexec(connection, sql.c_str()));
  for (size_t at = 0; at < data.size(); at += kPiece)
    if (PQputCopyData(connection, data.data() + at,
                      static_cast<int>(std::min(kPiece, data.size() - at))) != 1)
      throw std::runtime_error(PQerrorMessage(connection));
  PQputCopyEnd(connection, nullptr);
  PGresult* result = PQgetResult(connection);
  bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
  PQclear(result);
  if (!good) throw std::runtime_error(PQerrorMessage(connection));
  PQclear(PQgetResult(connection));
}

void CheckCount(const Cluster& cluster, const std::string& table, long rows) {
  std::string count = Client(cluster.Url()).Value("SELECT count(*) FROM " + table);
  if (count != std::to_string(rows))
    throw std::runtime_error(fmt::format("{} holds {} rows, not {}", table, count, rows));
}

}  // namespace

Measurement MeasureCopyFrom(const Cluster& cluster, int rounds, long rows) {
  int shards = cluster.shards();
  CreateTables(cluster, "bench_copied", kOrdersColumns, "id");
  std::string all;
  std::vector<std::string> split(static_cast<size_t>(shards));
  for (long id = 1; id <= rows; id++) {
    std::string line = OrderLine(id);
    all += line;
    // A shard's number is the remainder, the last one's is 0.
    split[static_cast<size_t>((id + shards - 1) % shards)] += line;
  }
  const std::string sql = "COPY bench_copied FROM STDIN";
  std::vector<double> raw, sluice;
  for (int round = 0; round < rounds; round++) {
    Truncate(cluster, "bench_copied");
    raw.push_back(OnAllShards(shards, [&](int shard) {
      SendCopy(cluster.ShardUrl(shard), sql, split[static_cast<size_t>(shard - 1)]);
    }));
    Truncate(cluster, "bench_copied");
    double start = Now();
    SendCopy(cluster.Url(), sql, all);
    sluice.push_back(Now() - start);
    CheckCount(cluster, "bench_copied", rows);
  }
  return {.job = fmt::format("COPY FROM STDIN, {} rows", rows),
          .unit = "s",
          .baseline = Median(raw),
          .sluice = Median(sluice),
          .limit = 1.25};
}

Measurement MeasureInsertSelect(const Cluster& cluster, int rounds, long rows) {
  int shards = cluster.shards();
  CreateTables(cluster, "bench_numbers", "(v1 int)", "v1");
  std::vector<double> raw, sluice;
  for (int round = 0; round < rounds; round++) {
    Truncate(cluster, "bench_numbers");
    raw.push_back(OnAllShards(shards, [&](int shard) {
      Client(cluster.ShardUrl(shard))
          .Must(fmt::format("INSERT INTO bench_numbers SELECT * FROM generate_series({}, {}, {})",
                            shard, rows, shards));
    }));
    Truncate(cluster, "bench_numbers");
    Client client(cluster.Url());
    double start = Now();
    client.Must(
        fmt::format("INSERT INTO bench_numbers SELECT * FROM generate_series(1, {})", rows));
    sluice.push_back(Now() - start);
    CheckCount(cluster, "bench_numbers", rows);
  }
  return {.job = fmt::format("INSERT … SELECT, {} rows", rows),
          .unit = "s",
          .baseline = Median(raw),
          .sluice = Median(sluice),
          .limit = 1.5};
}

}  // namespace sluice::bench
