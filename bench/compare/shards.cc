#include "bench/compare/shards.h"

#include <exception>
#include <fstream>
#include <thread>

#include "bench/compare/drain.h"

namespace sluice::bench {

using test::Client;
using test::Cluster;

const char* const kOrdersColumns =
    "(id bigint PRIMARY KEY, customer int NOT NULL, region text NOT NULL, amount numeric(12,2) NOT "
    "NULL, qty int NOT NULL, price float8 NOT NULL, created timestamptz NOT NULL, note text)";

void CreateTables(const Cluster& cluster, const std::string& name, const std::string& columns,
                  const std::string& key) {
  DropTables(cluster, name);
  OnShards(cluster, "CREATE TABLE " + name + " " + columns);
  RegisterTables(cluster.Url(), cluster.shards(), name, columns, key);
}

void RegisterTables(const std::string& url, int shards, const std::string& name,
                    const std::string& columns, const std::string& key) {
  Client sluice(url);
  std::string plain = columns;
  constexpr std::string_view kKey = " PRIMARY KEY";
  if (size_t at = plain.find(kKey); at != std::string::npos) plain.erase(at, kKey.size());
  sluice.Must(
      fmt::format("CREATE TABLE {} {} PARTITION BY LIST (({} % {}))", name, plain, key, shards));
  for (int shard = 1; shard <= shards; shard++)
    sluice.Must(
        fmt::format("CREATE FOREIGN TABLE {0}_{1} PARTITION OF {0} FOR VALUES IN ({2}) "
                    "SERVER shard{1} OPTIONS (table_name '{0}')",
                    name, shard, shard % shards));
}

void DropTables(const Cluster& cluster, const std::string& name) {
  Client sluice(cluster.Url());
  for (int shard = 1; shard <= cluster.shards(); shard++)
    sluice.Query(fmt::format("DROP FOREIGN TABLE IF EXISTS {}_{}", name, shard));
  sluice.Query("DROP TABLE IF EXISTS " + name);
  OnShards(cluster, "DROP TABLE IF EXISTS " + name);
}

void Truncate(const Cluster& cluster, const std::string& name) {
  OnShards(cluster, "TRUNCATE " + name);
}

double OnAllShards(int shards, const std::function<void(int shard)>& run) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(shards));
  double start = Now();
  std::vector<std::thread> threads;
  for (int shard = 1; shard <= shards; shard++)
    threads.emplace_back([&, shard] {
      try {
        run(shard);
      } catch (...) {
        errors[static_cast<size_t>(shard - 1)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return Now() - start;
}

void OnShards(const Cluster& cluster, const std::string& sql) {
  for (int shard = 1; shard <= cluster.shards(); shard++) Client(cluster.ShardUrl(shard)).Must(sql);
}

std::string PortOf(const std::string& url) {
  std::string port = url.substr(url.find("port=") + 5);
  return port.substr(0, port.find(' '));
}

std::vector<int> ProcessTree(int root) {
  std::vector<int> pids = {root};
  for (size_t i = 0; i < pids.size(); i++) {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", pids[i]));
    for (int child; file >> child;) pids.push_back(child);
  }
  return pids;
}

uint64_t MemoryOf(int pid, const std::string& what) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(what + ":")) return std::stoull(line.substr(what.size() + 1)) * 1024;
  return 0;
}

}  // namespace sluice::bench
