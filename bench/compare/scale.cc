#include "bench/compare/scale.h"

#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

// Chunks in use and query arenas, as the server counts them.
uint64_t SharedBytesInUse(Client* client) {
  uint64_t chunks = 0, chunk_bytes = 0, arena_bytes = 0;
  for (const auto& row : client->Must("SELECT name, value FROM sluice.status").rows) {
    if (row[0] == "chunks_in_use") chunks = std::stoull(*row[1]);
    if (row[0] == "chunk_size_bytes") chunk_bytes = std::stoull(*row[1]);
    if (row[0] == "arena_bytes") arena_bytes = std::stoull(*row[1]);
  }
  return chunks * chunk_bytes + arena_bytes;
}

double PeakMemoryMib(const Cluster& cluster, const std::string& sql) {
  std::vector<std::unique_ptr<RawConnection>> one;
  one.push_back(std::make_unique<RawConnection>(cluster.Url()));
  bool done = false;
  uint64_t peak = 0;
  Client watcher(cluster.Url());
  std::thread sampler([&] {
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
      uint64_t bytes = SharedBytesInUse(&watcher);
      for (int pid : ProcessTree(cluster.ServerPid())) bytes += MemoryOf(pid, "Pss_Anon");
      peak = std::max(peak, bytes);
      usleep(20'000);
    }
  });
  Drain(one, {sql}, false);
  __atomic_store_n(&done, true, __ATOMIC_RELEASE);
  sampler.join();
  if (peak == 0) throw std::runtime_error("could not read the memory of Sluice's processes");
  return static_cast<double>(peak) / (1 << 20);
}

constexpr int kShards = 4, kDatabasesPerShard = 16;

void LoadDatabases(const Cluster& cluster, int shard, long rows) {
  for (int i = 0; i < kDatabasesPerShard; i++) {
    std::string name = fmt::format("wide{}", i);
    Client(cluster.ShardUrl(shard)).Must("CREATE DATABASE " + name);
    std::ostringstream command;
    command << "psql -q -X -v ON_ERROR_STOP=1 -v s=" << shard << " -v rows=" << rows << " -f "
            << test::SourceDirectory() << "/tests/workloads/orders.sql '"
            << cluster.ShardUrl(shard, name) << "' 2>/dev/null";
    if (std::system(command.str().c_str()) != 0)
      throw std::runtime_error("loading " + name + " failed");
    Client(cluster.ShardUrl(shard, name)).Must("VACUUM orders");
  }
}

}  // namespace

std::vector<Measurement> MeasureMemory(const Cluster& cluster) {
  std::vector<Measurement> measurements;
  for (auto [name, sql] : {std::pair{"memory, SELECT * of 1M rows (MiB)",
                                     "SELECT * FROM orders WHERE customer % 4 = 0"},
                           {"memory, SELECT * of 4M rows (MiB)", "SELECT * FROM orders"}})
    measurements.push_back({.job = name,
                            .unit = "MiB",
                            .baseline = 128,
                            .sluice = PeakMemoryMib(cluster, sql),
                            .limit = 1.0});
  return measurements;
}

Measurement MeasureManyStreams(const Cluster& cluster, long rows_per_shard, int rounds) {
  for (int shard = 1; shard <= kShards; shard++) {
    if (fork() != 0) continue;
    int status = 0;
    try {
      LoadDatabases(cluster, shard, rows_per_shard / kDatabasesPerShard);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      status = 1;
    }
    _exit(status);
  }
  bool failed = false;
  for (int i = 0; i < kShards; i++) {
    int status = 0;
    wait(&status);
    failed |= status != 0;
  }
  if (failed) throw std::runtime_error("loading the 64 databases failed");

  Client client(cluster.Url());
  client.Must("SET sluice.default_distribution = none");
  client.Must(
      "CREATE TABLE wide (id bigint, customer int, region text, amount numeric(12,2), qty int, "
      "price float8, "
      "created timestamptz, note text)");
  std::vector<std::string> urls;
  for (int shard = 1; shard <= kShards; shard++)
    for (int i = 0; i < kDatabasesPerShard; i++) {
      urls.push_back(cluster.ShardUrl(shard, fmt::format("wide{}", i)));
      std::string server = fmt::format("wide_{}_{}", shard, i);
      client.Must(fmt::format(
          "CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port "
          "'{}', dbname 'wide{}')",
          server, PortOf(urls.back()), i));
      client.Must(fmt::format("CREATE USER MAPPING FOR PUBLIC SERVER {} OPTIONS (user 'postgres')",
                              server));
      client.Must(fmt::format(
          "CREATE FOREIGN TABLE {0} () INHERITS (wide) SERVER {0} OPTIONS (table_name 'orders')",
          server));
    }
  auto drain = [&](const std::vector<std::string>& targets, const std::string& sql) {
    std::vector<std::unique_ptr<RawConnection>> connections;
    for (const auto& url : targets) connections.push_back(std::make_unique<RawConnection>(url));
    return Drain(connections, {sql}, false).seconds;
  };
  std::vector<std::string> four;
  for (int shard = 1; shard <= kShards; shard++) four.push_back(cluster.ShardUrl(shard));
  std::vector<double> wide, narrow;
  for (int round = 0; round < rounds; round++) {
    wide.push_back(drain({cluster.Url()}, "SELECT * FROM wide") /
                   drain(urls, "SELECT * FROM orders"));
    narrow.push_back(drain({cluster.Url()}, "SELECT * FROM orders") /
                     drain(four, "SELECT * FROM orders"));
  }
  return {.job = "64 streams against 4 (ratio of ratios)",
          .unit = "× raw drain",
          .baseline = Median(narrow),
          .sluice = Median(wide),
          .limit = 1.15};
}

}  // namespace sluice::bench
