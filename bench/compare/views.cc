#include "bench/compare/views.h"

#include <algorithm>
#include <random>
#include <unistd.h>

#include "bench/compare/drain.h"

namespace sluice::bench {

using test::Client;
using test::Cluster;

ScopedView::ScopedView(const Cluster& cluster, std::string name, const std::string& query)
    : cluster_(cluster), name_(std::move(name)) {
  Client(cluster.Url()).Must(fmt::format("CREATE MATERIALIZED VIEW {} AS {}", name_, query));
}

ScopedView::~ScopedView() {
  DropViews(cluster_, {name_});
}

void DropViews(const Cluster& cluster, const std::vector<std::string>& names) {
  {
    Client client(cluster.Url());
    for (const std::string& name : names)
      client.Query("DROP MATERIALIZED VIEW IF EXISTS " + name + " CASCADE");
  }
  bool gone = test::Eventually(
      [&] {
        for (int shard = 1; shard <= cluster.shards(); shard++)
          if (Client(cluster.ShardUrl(shard))
                  .Value("SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE "
                         "'sluice%'") != "0")
            return false;
        return true;
      },
      60);
  if (!gone) fmt::print("replication slots are left behind\n");
}

int ViewWorkerPid(const std::string& url) {
  return std::stoi(
      Client(url).Value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'view worker'"));
}

double Percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  auto at = static_cast<size_t>(percent / 100 * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

std::vector<double> VisibilityMs(const Cluster& cluster, const std::string& table,
                                 const std::string& column, const std::string& view, long ids,
                                 int samples) {
  constexpr double kTimeoutSeconds = 30;
  static int next_value = 1'000'000;  // no value comes twice
  int shards = cluster.shards();
  std::vector<std::unique_ptr<Client>> writers;
  for (int shard = 1; shard <= shards; shard++)
    writers.push_back(std::make_unique<Client>(cluster.ShardUrl(shard)));
  Client reader(cluster.Url());
  std::string sql = fmt::format("SELECT {} FROM {} WHERE id = $1", column, view);
  PQclear(PQprepare(reader.raw(), "look", sql.c_str(), 1, nullptr));
  std::mt19937_64 random(7);
  std::vector<double> ms;
  for (int i = 0; i < samples; i++) {
    long id = static_cast<long>(random() % static_cast<uint64_t>(ids));
    std::string key = std::to_string(id), value = std::to_string(next_value++);
    size_t shard = static_cast<size_t>((id + shards - 1) % shards);
    auto written = writers[shard]->Must(
        fmt::format("UPDATE {} SET {} = {} WHERE id = {}", table, column, value, key));
    double committed = Now();
    if (written.command_tag != "UPDATE 1")
      throw std::runtime_error(table + " has no row of id " + key);
    for (bool visible = false; !visible;) {
      const char* values[] = {key.c_str()};
      PGresult* result = PQexecPrepared(reader.raw(), "look", 1, values, nullptr, nullptr, 0);
      bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
      visible = good && PQntuples(result) == 1 && value == PQgetvalue(result, 0, 0);
      std::string message = good ? "it does not become visible" : PQresultErrorMessage(result);
      PQclear(result);
      if (!good || (!visible && Now() - committed > kTimeoutSeconds))
        throw std::runtime_error(view + ": " + message);
      if (!visible) usleep(200);
    }
    ms.push_back((Now() - committed) * 1e3);
    usleep(static_cast<useconds_t>(3000 + random() % 10000));
  }
  return ms;
}

}  // namespace sluice::bench
