// The transfer test: clients move money between accounts on different shards, others sum all
// accounts all the time, in one statement and in REPEATABLE READ. The sum is right at every read,
// while every kind of process of Sluice, its postmaster, and each shard are killed and started
// again in turn.
//
//   TRANSFER_SECONDS=60 SEED=7 tests/transfer_test
#include <atomic>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <random>
#include <signal.h>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {
namespace {

constexpr int kShards = 3;
constexpr int kAccounts = 300;
constexpr int kBalance = 1000;
const std::string kTotal = std::to_string(kAccounts * kBalance);

int FromEnvironment(const char* name, int otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::atoi(given) : otherwise;
}

class Transfers {
 public:
  Transfers(const Cluster& cluster, unsigned seed) : cluster_(cluster) {
    for (unsigned i = 0; i < 4; i++) threads_.emplace_back([=, this] { MoveMoney(seed + i); });
    for (bool repeatable : {false, false, true})
      threads_.emplace_back([=, this] { ReadSums(repeatable); });
  }
  ~Transfers() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int moved() const { return moved_; }
  int sums(bool repeatable) const { return sums_[repeatable]; }
  bool stopped() const { return stop_; }
  std::vector<std::string> wrong() {
    std::lock_guard<std::mutex> lock(mutex_);
    return wrong_;
  }
  std::string ErrorCounts() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string text;
    for (const auto& [state, count] : errors_) text += fmt::format(" {}×{}", state, count);
    return text;
  }

 private:
  // Whether it went well.
  bool Ran(const Answer& answer) {
    if (answer.sqlstate.empty()) return true;
    std::lock_guard<std::mutex> lock(mutex_);
    errors_[answer.sqlstate]++;
    return false;
  }

  // With `fn` over connections until the end.
  template <typename Fn>
  void WithConnections(const Fn& fn) {
    while (!stop_) {
      Client client(cluster_.Url());
      while (!stop_ && client.connected()) fn(client);
      if (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  void MoveMoney(unsigned seed) {
    std::mt19937 random(seed);
    WithConnections([&](Client& client) {
      int from = static_cast<int>(random() % kAccounts) + 1;
      int to = static_cast<int>(random() % kAccounts) + 1;
      int amount = static_cast<int>(random() % 100);
      // In a block or in one message, and now and then with a savepoint or taken back.
      std::string first =
          fmt::format("UPDATE account SET balance = balance - {} WHERE id = {}", amount, from);
      std::string second =
          fmt::format("UPDATE account SET balance = balance + {} WHERE id = {}", amount, to);
      switch (random() % 4) {
        case 0:
          if (Ran(client.Query("BEGIN")) && Ran(client.Query(first)) && Ran(client.Query(second)))
            moved_ += Ran(client.Query("COMMIT"));
          else
            client.Query("ROLLBACK");
          break;
        case 1:
          if (Ran(client.Query("BEGIN")) && Ran(client.Query(first)) &&
              Ran(client.Query("SAVEPOINT s")) && Ran(client.Query(first)) &&
              Ran(client.Query("ROLLBACK TO s")) && Ran(client.Query(second)))
            moved_ += Ran(client.Query("COMMIT"));
          else
            client.Query("ROLLBACK");
          break;
        default:
          moved_ += Ran(client.Query(first + ";" + second));
      }
    });
  }

  void ReadSums(bool repeatable) {
    WithConnections([&](Client& client) {
      if (repeatable) client.Query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      // Twice in REPEATABLE READ: by one statement, and row by row.
      Check(client.Query("SELECT sum(balance) FROM account"), repeatable);
      if (!repeatable) return;
      Answer rows = client.Query("SELECT balance FROM account");
      if (rows.sqlstate.empty()) {
        long sum = 0;
        for (const auto& row : rows.rows) sum += std::stol(*row[0]);
        rows.rows = {{std::to_string(sum)}};
      }
      Check(rows, repeatable);
      client.Query("COMMIT");
    });
  }

  void Check(const Answer& answer, bool repeatable) {
    if (!Ran(answer)) return;
    sums_[repeatable]++;
    std::string sum = answer.rows.empty() ? "no row" : answer.rows[0][0].value_or("NULL");
    if (sum == kTotal) return;
    std::lock_guard<std::mutex> lock(mutex_);
    wrong_.push_back(sum + (repeatable ? " in REPEATABLE READ" : ""));
    stop_ = true;
  }

  const Cluster& cluster_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> moved_ = 0, sums_[2] = {0, 0};
  std::mutex mutex_;
  std::vector<std::string> wrong_;
  std::map<std::string, int> errors_;
  std::vector<std::thread> threads_;
};

class TransferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Client sluice(cluster_.Url());
    sluice.Must("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)");
    sluice.Must(fmt::format("INSERT INTO account SELECT g, {} FROM generate_series(1, {}) g",
                            kBalance, kAccounts));
    // So that the view worker has work, and its part in commits is in the test.
    sluice.Must("CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM account");
  }

  int OnShards(const std::string& sql) const {
    int sum = 0;
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_.ShardUrl(shard));
      if (!client.connected()) return -1;
      Answer answer = client.Query(sql);
      if (answer.rows.empty()) return -1;
      sum += std::stoi(*answer.rows[0][0]);
    }
    return sum;
  }

  // What runs on the shards, for a message.
  std::string Activity() const {
    std::string text;
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_.ShardUrl(shard));
      text += fmt::format("shard {}:\n", shard);
      if (client.connected())
        text += client
                    .Query(
                        "SELECT state, now() - state_change, wait_event, query FROM "
                        "pg_stat_activity WHERE backend_type = 'client backend'")
                    .Text(true);
    }
    return text;
  }

  // Each kind in turn, in random order; then again. Returns what was killed.
  std::string KillOne(std::mt19937& random) {
    if (todo_.empty()) {
      todo_ = {
          "io worker",  "parallel worker", "client backend", "view worker",  "transaction resolver",
          "postmaster", "shard process",   "shard",          "shard stopped"};
      std::shuffle(todo_.begin(), todo_.end(), random);
    }
    std::string kind = todo_.back();
    todo_.pop_back();
    int shard = static_cast<int>(random() % kShards) + 1;
    if (kind == "shard") {
      cluster_.KillShard(shard);
    } else if (kind == "shard stopped") {
      cluster_.StopShard(shard, "immediate");
    } else if (kind == "shard process") {
      KillPid(Client(cluster_.ShardUrl(shard)),
              "backend_type = 'client backend' AND pid <> pg_backend_pid()");
      return fmt::format("a process of shard {}", shard);
    } else if (kind == "postmaster") {
      cluster_.KillServer();
      return kind;
    } else {
      KillPid(Client(cluster_.Url()),
              fmt::format("backend_type = '{}' AND pid <> pg_backend_pid()", kind));
      return kind;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1500));
    cluster_.StartShard(shard);
    return fmt::format("{} {}", kind, shard);
  }

  static void KillPid(Client client, const std::string& which) {
    Answer pids = client.Query("SELECT pid FROM pg_stat_activity WHERE " + which);
    if (pids.sqlstate.empty() && !pids.rows.empty()) kill(std::stoi(*pids.rows[0][0]), SIGKILL);
  }

  Cluster cluster_{Cluster::Options{.shards = kShards}};
  std::vector<std::string> todo_;
};

TEST_F(TransferTest, TheSumIsRightAtEveryReadWhateverIsKilled) {
  auto seed = static_cast<unsigned>(
      FromEnvironment("SEED", static_cast<int>(std::random_device()() % 1'000'000)));
  int seconds = FromEnvironment("TRANSFER_SECONDS", 20);
  fmt::print("SEED={} TRANSFER_SECONDS={}\n", seed, seconds);
  std::mt19937 random(seed);
  Transfers transfers(cluster_, seed);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::string killed;
  while (!transfers.stopped() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + random() % 900));
    killed += (killed.empty() ? "" : ", ") + KillOne(random);
  }
  transfers.Stop();
  fmt::print("killed: {}\n{} transfers, {} sums, {} sums in REPEATABLE READ; errors:{}\n", killed,
             transfers.moved(), transfers.sums(false), transfers.sums(true),
             transfers.ErrorCounts());
  ASSERT_EQ(transfers.wrong(), std::vector<std::string>()) << "SEED=" << seed;
  EXPECT_GT(transfers.moved(), 20);
  EXPECT_GT(transfers.sums(false), 20);
  EXPECT_GT(transfers.sums(true), 20);
  ASSERT_TRUE(Eventually([&] { return Client(cluster_.Url()).connected(); }, 20));
  // Nothing is left behind: no prepared transaction, no statement, no open transaction.
  EXPECT_TRUE(
      Eventually([&] { return OnShards("SELECT count(*) FROM pg_prepared_xacts") == 0; }, 30));
  EXPECT_TRUE(Eventually(
      [&] {
        return OnShards(
                   "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client "
                   "backend' AND state <> 'idle' AND pid <> pg_backend_pid()") == 0;
      },
      15))
      << Activity();
  EXPECT_TRUE(Eventually(
      [&] {
        return Client(cluster_.Url()).Query("SELECT sum(balance) FROM account").Text(true) ==
               fmt::format("[{}] \n", kTotal);
      },
      20));
}

// Tables are made, changed and dropped while processes are killed: what the catalog knows is what
// every shard has.
TEST_F(TransferTest, DdlIsOnAllServersAndInTheCatalogOrNowhereWhateverIsKilled) {
  auto seed = static_cast<unsigned>(
      FromEnvironment("SEED", static_cast<int>(std::random_device()() % 1'000'000)));
  int seconds = std::max(4, FromEnvironment("TRANSFER_SECONDS", 20) / 3);
  fmt::print("SEED={} TRANSFER_SECONDS={}\n", seed, seconds * 3);
  std::atomic<bool> stop = false;
  std::atomic<int> done = 0;
  std::thread worker([&] {
    std::mt19937 random(seed);
    int made = 0;
    while (!stop) {
      Client client(cluster_.Url());
      while (!stop && client.connected()) {
        int which = made == 0 ? 0 : static_cast<int>(random() % 4);
        std::string old = fmt::format("ddl_{}", made == 0 ? 0 : random() % made);
        std::string sql =
            which < 2    ? fmt::format("CREATE TABLE ddl_{} (id int PRIMARY KEY)", made++)
            : which == 2 ? fmt::format("ALTER TABLE {} ADD COLUMN c_{} int", old, done)
                         : fmt::format("DROP TABLE {}", old);
        done += client.Query(sql).sqlstate.empty();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  std::mt19937 random(seed);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 400));
    Client watcher(cluster_.Url());
    Answer pids = watcher.Query(
        "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('client backend', 'io worker', "
        "'postmaster') AND pid <> pg_backend_pid() ORDER BY pid");
    if (pids.rows.empty()) continue;
    int pid = std::stoi(*pids.rows[random() % pids.rows.size()][0]);
    if (pid == cluster_.ServerPid())
      cluster_.KillServer();
    else
      kill(pid, SIGKILL);
  }
  stop = true;
  worker.join();
  ASSERT_TRUE(Eventually([&] { return Client(cluster_.Url()).connected(); }, 20));
  EXPECT_TRUE(
      Eventually([&] { return OnShards("SELECT count(*) FROM pg_prepared_xacts") == 0; }, 30));
  std::string known;
  ASSERT_TRUE(Eventually(
      [&] {
        Answer answer = Client(cluster_.Url())
                            .Query(
                                "SELECT name, columns FROM sluice.tables WHERE name LIKE "
                                "'ddl\\_%' AND parent IS NULL ORDER BY name");
        known = answer.Text(false);
        return answer.sqlstate.empty();
      },
      20));
  for (int shard = 1; shard <= kShards; shard++)
    EXPECT_EQ(Client(cluster_.ShardUrl(shard))
                  .Must("SELECT relname, count(*) FROM pg_class c JOIN pg_attribute a ON c.oid = "
                        "a.attrelid WHERE relname LIKE 'ddl\\_%' AND relkind = 'r' AND attnum > 0 "
                        "AND NOT attisdropped GROUP BY relname")
                  .Text(false),
              known)
        << "shard " << shard << ", SEED=" << seed;
  fmt::print("{} commands\n", done.load());
  EXPECT_GT(done, 5);
}

}  // namespace
}  // namespace sluice::test
