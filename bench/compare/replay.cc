#include "bench/compare/replay.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/fake_shard.h"

namespace sluice::bench {
namespace {

using test::Client;
using test::Cluster;

constexpr int kFakes = 4;

// utime + stime of a process, seconds.
double CpuSecondsOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  size_t at = text.rfind(')');
  if (at == std::string::npos) return 0;
  std::istringstream words(text.substr(at + 2));
  std::string word;
  double ticks = 0;
  for (int field = 3; words >> word; field++)
    if (field == 14 || field == 15) ticks += std::stod(word);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

class Fakes {
 public:
  Fakes(Client* client, const std::vector<FakeShardOptions>& options) : client_(client) {
    // A parent of foreign tables, not a table of Sluice's own.
    client->Must("SET sluice.default_distribution = none");
    client->Must("CREATE TABLE fake (region text, amount numeric, qty int)");
    for (size_t i = 0; i < options.size(); i++) {
      shards_.push_back(std::make_unique<FakeShard>(options[i]));
      client->Must(fmt::format(
          "CREATE SERVER fake{} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', "
          "port '{}', dbname 'fake', sslmode 'disable')",
          i, options[i].port));
      client->Must(
          fmt::format("CREATE USER MAPPING FOR PUBLIC SERVER fake{} OPTIONS (user 'fake')", i));
      client->Must(fmt::format(
          "CREATE FOREIGN TABLE fake_{0} () INHERITS (fake) SERVER fake{0} OPTIONS (table_name "
          "'fake')",
          i));
    }
  }
  ~Fakes() {
    for (size_t i = 0; i < shards_.size(); i++)
      client_->Query(fmt::format("DROP SERVER fake{} CASCADE", i));
    client_->Query("DROP TABLE fake");
  }
  const FakeShard& operator[](size_t i) const { return *shards_[i]; }

 private:
  Client* client_;
  std::vector<std::unique_ptr<FakeShard>> shards_;
};

constexpr const char* kQuery =
    "SELECT region, count(*), sum(amount), sum(qty) FROM fake GROUP BY region";

struct ProcessTime {
  std::string kind;
  pid_t pid;
  double cpu_seconds;
};
std::vector<ProcessTime> Processes(Client* client) {
  std::vector<ProcessTime> processes;
  for (const auto& row :
       client->Must("SELECT backend_type, pid FROM pg_stat_activity WHERE pid IS NOT NULL").rows) {
    pid_t pid = std::stoi(row[1].value_or("0"));
    processes.push_back({row[0].value_or(""), pid, CpuSecondsOf(pid)});
  }
  return processes;
}

using Json = nlohmann::json;

// The plan's node that claims; null: there is none.
const Json* FindClaims(const Json& node) {
  if (node.contains("Idle While Ready Times")) return &node;
  if (!node.contains("Plans")) return nullptr;
  for (const Json& child : node["Plans"])
    if (const Json* found = FindClaims(child)) return found;
  return nullptr;
}

}  // namespace

Measurement MeasureReplay(const Cluster& cluster, int rounds) {
  constexpr uint64_t kRows = 5'000'000;
  Client client(cluster.Url());
  int port = test::FreePorts(kFakes);
  std::vector<FakeShardOptions> options;
  for (int i = 0; i < kFakes; i++) options.push_back({port + i, kRows});
  Fakes fakes(&client, options);
  client.Must("SET enable_pushdown_aggregate = off");
  std::vector<double> rates;
  for (int round = 0; round < rounds; round++) {
    auto before = Processes(&client);
    double start = Now();
    auto answer = client.Must(kQuery);
    double seconds = Now() - start, chewing = 0;
    uint64_t counted = 0;
    for (const auto& row : answer.rows) counted += std::stoull(row[1].value_or("0"));
    if (answer.rows.size() != 4 || counted != kFakes * kRows)
      throw std::runtime_error(fmt::format("replay: {} rows counted", counted));
    auto after = Processes(&client);
    fmt::print("replay: {} rows in {:.2f} s;", kFakes * kRows, seconds);
    for (const auto& process : after)
      for (const auto& old : before)
        if (old.pid == process.pid && process.cpu_seconds - old.cpu_seconds > 0.005) {
          double used = process.cpu_seconds - old.cpu_seconds;
          fmt::print(" {} {:.2f} s;", process.kind, used);
          if (process.kind != "io worker") chewing += used;
        }
    rates.push_back(static_cast<double>(kFakes * kRows) / chewing);
    fmt::print(" {:.1f}M rows/s a core\n", rates.back() / 1e6);
  }
  return {.job = "replay: 3 columns decoded and grouped",
          .unit = "rows/s per core",
          .baseline = 8e6,
          .sluice = Median(rates),
          .limit = 1.0,
          .at_least = true};
}

Measurement MeasureUnevenRates(const Cluster& cluster, int rounds) {
  constexpr uint64_t kRows = 1'000'000;
  constexpr double kRate = 1'000'000;
  Client client(cluster.Url());
  int port = test::FreePorts(kFakes);
  std::vector<FakeShardOptions> options;
  // The slow one first: a worker that claims whole plans gets stuck on it.
  options.push_back({port, kRows / 2, kRate / 10});
  for (int i = 1; i < kFakes; i++) options.push_back({port + i, kRows, kRate});
  Fakes fakes(&client, options);
  client.Must("SET enable_pushdown_aggregate = off");
  client.Must("SET max_parallel_workers_per_gather = 2");
  auto rate_of_fast_ones = [&](const char* claim) {
    client.Must(fmt::format("SET parallel_append_claim = '{}'", claim));
    double start = Now(), finished = start;
    client.Must(kQuery);
    for (size_t i = 1; i < kFakes; i++) finished = std::max(finished, fakes[i].state().finished);
    return static_cast<double>((kFakes - 1) * kRows) / (finished - start);
  };
  std::vector<double> by_chunk, by_plan;
  for (int round = 0; round < rounds; round++) {
    by_chunk.push_back(rate_of_fast_ones("chunk"));
    by_plan.push_back(rate_of_fast_ones("plan"));
  }
  return {.job = "uneven shards: claims by chunk vs plan",
          .unit = "rows/s",
          .baseline = Median(by_plan),
          .sluice = Median(by_chunk),
          .limit = 1.5,
          .at_least = true};
}

Measurement MeasureIdleWorkers(const Cluster& cluster, int rounds) {
  constexpr uint64_t kRows = 2'000'000;
  constexpr double kRate = 4'000'000;
  Client client(cluster.Url());
  int port = test::FreePorts(kFakes);
  std::vector<FakeShardOptions> options;
  options.push_back({port, kRows / 10, kRate / 10});
  for (int i = 1; i < kFakes; i++) options.push_back({port + i, kRows, kRate});
  Fakes fakes(&client, options);
  client.Must("SET enable_pushdown_aggregate = off");
  client.Must("SET max_parallel_workers_per_gather = 2");
  std::vector<double> ready_ms, idle_ms;
  for (int round = 0; round < rounds; round++) {
    std::string text = client.Value(
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT region, amount, qty, avg(amount), "
        "stddev_samp(amount), "
        "var_pop(amount), min(amount), max(amount), avg(qty), stddev_samp(qty), var_pop(qty) "
        "FROM fake GROUP BY region, amount, qty");
    Json plan = Json::parse(text)[0]["Plan"];
    const Json* append = FindClaims(plan);
    if (append == nullptr) throw std::runtime_error("no claims in " + text);
    ready_ms.push_back((*append)["Ready Time"]);
    std::vector<double> idle = (*append)["Idle While Ready Times"];
    idle_ms.push_back(*std::max_element(idle.begin() + 1, idle.end()));  // the leader is the first
    fmt::print("idle workers: {:.0f} ms ready, the laziest slept for {:.1f} ms of it\n",
               ready_ms.back(), idle_ms.back());
  }
  return {.job = "uneven shards: worker idle while ready",
          .unit = "ms",
          .baseline = Median(ready_ms),
          .sluice = Median(idle_ms),
          .limit = 0.05};
}

}  // namespace sluice::bench
