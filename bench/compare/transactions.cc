#include "bench/compare/transactions.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fcntl.h>
#include <random>
#include <thread>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "bench/compare/shards.h"
#include "common/fd.h"

namespace sluice::bench {
namespace {

using test::Answer;
using test::Client;
using test::Cluster;

constexpr const char* kTable = "bench_purse";
constexpr const char* kColumns = "(id int PRIMARY KEY, balance int NOT NULL)";
constexpr int kPurses = 1000;  // a shard

void MakePurses(const Cluster& cluster) {
  int shards = cluster.shards();
  CreateTables(cluster, kTable, kColumns, "id");
  for (int shard = 1; shard <= shards; shard++)
    Client(cluster.ShardUrl(shard))
        .Must(fmt::format("INSERT INTO {} SELECT g * {} + {}, 1000 FROM generate_series(0, {}) g",
                          kTable, shards, shard % shards, kPurses - 1));
}

// A purse of that shard.
int PurseOf(int shard, int shards, unsigned random) {
  return static_cast<int>(random % kPurses) * shards + shard % shards;
}

std::string Update(int id, int amount) {
  return fmt::format("UPDATE {} SET balance = balance + {} WHERE id = {}", kTable, amount, id);
}

void Transfer(Client* client, int from, int to) {
  client->Must("BEGIN");
  client->Must(Update(from, -1));
  client->Must(Update(to, 1));
  client->Must("COMMIT");
}

// The same by hand.
class HandMadeTransfer {
 public:
  HandMadeTransfer(const Cluster& cluster, bool logged)
      : logged_(logged),
        log_(open((cluster.directory() + "/decisions").c_str(), O_CREAT | O_WRONLY | O_APPEND,
                  0644)) {
    for (int shard = 1; shard <= 2; shard++)
      connections_.push_back(std::make_unique<RawConnection>(cluster.ShardUrl(shard)));
  }
  void Run(int from, int to) {
    connections_[0]->Execute("BEGIN;" + Update(from, -1));
    connections_[1]->Execute("BEGIN;" + Update(to, 1));
    std::string gid = fmt::format("'bench_{}'", ++number_);
    OnBoth("PREPARE TRANSACTION " + gid);
    if (logged_ && (write(log_.get(), gid.data(), gid.size()) < 0 || fdatasync(log_.get()) != 0))
      throw std::runtime_error("cannot write a decision");
    OnBoth("COMMIT PREPARED " + gid);
  }

 private:
  void OnBoth(const std::string& sql) { Drain(connections_, {sql}, false); }

  const bool logged_;
  UniqueFd log_;
  int number_ = 0;
  std::vector<std::unique_ptr<RawConnection>> connections_;
};

double MedianMs(const std::function<void(int from, int to)>& transfer, int shards) {
  constexpr int kTransfers = 150, kWarm = 10;
  std::mt19937 random(1);
  std::vector<double> ms;
  for (int i = 0; i < kTransfers; i++) {
    int from = PurseOf(1, shards, static_cast<unsigned>(random())),
        to = PurseOf(2, shards, static_cast<unsigned>(random()));
    double start = Now();
    transfer(from, to);
    if (i >= kWarm) ms.push_back((Now() - start) * 1e3);
  }
  return Median(ms);
}

struct Mix {
  double transfers = 0, sums = 0;  // a second
};

// Clients of both kinds for some seconds.
Mix RunMix(const std::string& transfers_url, const std::string& sums_url, int shards) {
  constexpr int kTransferClients = 4, kSumClients = 2;
  constexpr double kSeconds = 4;
  std::atomic<bool> stop{false};
  std::atomic<long> transfers{0}, sums{0};
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  auto guarded = [&](auto&& run) {
    try {
      run();
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  const std::string expected = std::to_string(1000L * kPurses * shards);
  std::vector<std::thread> threads;
  for (int i = 0; i < kTransferClients; i++)
    threads.emplace_back([&, i] {
      guarded([&] {
        Client client(transfers_url);
        std::mt19937 random(static_cast<unsigned>(i));
        while (!stop) {
          // Each client has purses of its own, and takes the shards in order: no deadlocks.
          int from = 1 + static_cast<int>(random() % static_cast<unsigned>(shards - 1));
          int to = from + 1 + static_cast<int>(random() % static_cast<unsigned>(shards - from));
          auto pick = [&] {
            return static_cast<unsigned>(random()) / 8 * 8 + static_cast<unsigned>(i);
          };
          Transfer(&client, PurseOf(from, shards, pick()), PurseOf(to, shards, pick()));
          transfers++;
        }
      });
    });
  for (int i = 0; i < kSumClients; i++)
    threads.emplace_back([&] {
      guarded([&] {
        Client client(sums_url);
        bool one_server = transfers_url == sums_url;
        while (!stop) {
          std::string sum = client.Value(fmt::format("SELECT sum(balance) FROM {}", kTable));
          // Through another server a transfer may well be seen half: it knows no gate.
          if (one_server && sum != expected)
            throw std::runtime_error("a sum saw half of a transfer: " + sum);
          sums++;
        }
      });
    });
  double start = Now();
  usleep(static_cast<useconds_t>(kSeconds * 1e6));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  double seconds = Now() - start;
  return {static_cast<double>(transfers) / seconds, static_cast<double>(sums) / seconds};
}

}  // namespace

std::vector<Measurement> MeasureTransfer(const Cluster& cluster, int rounds) {
  MakePurses(cluster);
  std::vector<double> logged, unlogged, sluice;
  for (int round = 0; round < rounds; round++) {
    HandMadeTransfer with(cluster, true), without(cluster, false);
    Client client(cluster.Url());
    logged.push_back(MedianMs([&](int from, int to) { with.Run(from, to); }, cluster.shards()));
    unlogged.push_back(
        MedianMs([&](int from, int to) { without.Run(from, to); }, cluster.shards()));
    sluice.push_back(
        MedianMs([&](int from, int to) { Transfer(&client, from, to); }, cluster.shards()));
  }
  DropTables(cluster, kTable);
  return {{.job = "transfer by 2PC, by hand with decision",
           .unit = "ms",
           .baseline = Median(logged),
           .sluice = Median(sluice),
           .limit = 1.3},
          {.job = "transfer by 2PC, by hand without decision",
           .unit = "ms",
           .baseline = Median(unlogged),
           .sluice = Median(sluice),
           .limit = 0}};
}

std::vector<Measurement> MeasureTransfersAndSums(Cluster* cluster, int rounds) {
  MakePurses(*cluster);
  std::string other = cluster->StartServer("ungated", {});
  RegisterTables(other, cluster->shards(), kTable, kColumns, "id");
  std::vector<double> transfers, sums, transfers_alone, sums_alone;
  for (int round = 0; round < rounds; round++) {
    Mix apart = RunMix(cluster->Url(), other, cluster->shards());
    Mix together = RunMix(cluster->Url(), cluster->Url(), cluster->shards());
    transfers_alone.push_back(apart.transfers);
    sums_alone.push_back(apart.sums);
    transfers.push_back(together.transfers);
    sums.push_back(together.sums);
  }
  DropTables(*cluster, kTable);
  return {{.job = "transfers while sums run",
           .unit = "1/s",
           .baseline = Median(transfers_alone),
           .sluice = Median(transfers),
           .limit = 0.8,
           .at_least = true},
          {.job = "sums while transfers run",
           .unit = "1/s",
           .baseline = Median(sums_alone),
           .sluice = Median(sums),
           .limit = 0.8,
           .at_least = true}};
}

std::vector<Measurement> MeasureIdleClients(const Cluster& cluster) {
  constexpr int kIdle = 1000, kThreads = 16;
  constexpr double kMib = 1 << 20;
  MakePurses(cluster);
  std::vector<std::unique_ptr<Client>> clients(kIdle);
  std::atomic<bool> done{false};
  std::atomic<int> most{0};
  std::thread watcher([&] {
    std::vector<std::unique_ptr<Client>> shards;
    for (int shard = 1; shard <= cluster.shards(); shard++)
      shards.push_back(std::make_unique<Client>(cluster.ShardUrl(shard)));
    for (; !done; usleep(20'000))
      for (auto& shard : shards) {
        Answer answer = shard->Query(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice' AND "
            "backend_type = 'client backend'");
        if (answer.rows.size() == 1) most = std::max(most.load(), std::stoi(*answer.rows[0][0]));
      }
  });
  auto stop = [&] {
    done = true;
    watcher.join();
  };
  try {
    OnAllShards(kThreads, [&](int thread) {
      for (int i = thread - 1; i < kIdle; i += kThreads) {
        auto& client = clients[static_cast<size_t>(i)];
        client = std::make_unique<Client>(cluster.Url());
        if (!client->connected()) throw std::runtime_error(PQerrorMessage(client->raw()));
        client->Must(fmt::format("SELECT sum(balance), count(*) FROM {}", kTable));
        client->Must(fmt::format("SELECT * FROM {} WHERE id = {}", kTable, i));
        client->Must(Update(i, 0));
      }
    });
  } catch (...) {
    stop();
    throw;
  }
  stop();
  std::vector<double> mib;
  for (auto& client : clients) {
    int pid = PQbackendPID(client->raw());
    mib.push_back(
        static_cast<double>(MemoryOf(pid, "Private_Clean") + MemoryOf(pid, "Private_Dirty")) /
        kMib);
  }
  int limit = std::stoi(Client(cluster.Url()).Value("SHOW connections_per_server"));
  double largest = *std::max_element(mib.begin(), mib.end());
  fmt::print(
      "{} idle clients: private memory of a backend: median {:.2f} MiB, largest {:.2f} MiB\n",
      kIdle, Median(mib), largest);
  clients.clear();
  DropTables(cluster, kTable);
  return {{.job = "private memory of 1,000 idle backends, each",
           .unit = "MiB",
           .baseline = 2,
           .sluice = largest,
           .limit = 1},
          {.job = "connections to a shard, 1,000 clients",
           .unit = "",
           .baseline = static_cast<double>(limit),
           .sluice = static_cast<double>(most.load()),
           .limit = 1}};
}

}  // namespace sluice::bench
