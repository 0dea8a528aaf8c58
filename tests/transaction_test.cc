// Transactions over several servers: all or nothing, whatever is killed meanwhile, and no read that
// sees half of one.
#include <atomic>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
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

class TransactionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = kShards});
    Client sluice(cluster_->Url());
    sluice.Must("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    Client sluice(cluster_->Url());
    sluice.Must("DELETE FROM account");
    sluice.Must(fmt::format("INSERT INTO account SELECT g, {} FROM generate_series(1, {}) g",
                            kBalance, kAccounts));
    // The lowest accounts that lie on different shards.
    Client first(cluster_->ShardUrl(1)), second(cluster_->ShardUrl(2));
    here_ = first.Value("SELECT min(id) FROM account");
    there_ = second.Value("SELECT min(id) FROM account");
  }

  static std::string Move(const std::string& from, const std::string& to, int amount) {
    return fmt::format(
        "UPDATE account SET balance = balance - {0} WHERE id = {1};"
        "UPDATE account SET balance = balance + {0} WHERE id = {2}",
        amount, from, to);
  }
  static std::string Sum() {
    return Client(cluster_->Url()).Value("SELECT sum(balance) FROM account");
  }
  static std::string BalanceOf(const std::string& id) {
    return Client(cluster_->Url()).Value("SELECT balance FROM account WHERE id = " + id);
  }
  static int PreparedOnShards() {
    int prepared = 0;
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_->ShardUrl(shard));
      if (!client.connected()) return -1;
      prepared += std::stoi(client.Value("SELECT count(*) FROM pg_prepared_xacts"));
    }
    return prepared;
  }
  static int InTransactionOnShards() {
    int open = 0;
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_->ShardUrl(shard));
      open += std::stoi(client.Value(
          "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"));
    }
    return open;
  }
  static std::string NodeId() {
    std::string node = ReadFile(cluster_->directory() + "/sluice/transactions/node");
    return node.substr(0, node.find(' '));
  }

  static Cluster* cluster_;
  std::string here_, there_;
};

Cluster* TransactionTest::cluster_ = nullptr;

TEST_F(TransactionTest, ABlockOverSeveralServersIsAllOrNothing) {
  Client client(cluster_->Url());
  client.Must("BEGIN");
  client.Must(Move(here_, there_, 10));
  EXPECT_EQ(client.Value("SELECT balance FROM account WHERE id = " + here_), "990");
  EXPECT_EQ(BalanceOf(here_), "1000") << "others must not see it yet";
  EXPECT_EQ(client.Must("COMMIT").command_tag, "COMMIT");
  EXPECT_EQ(BalanceOf(here_), "990");
  EXPECT_EQ(BalanceOf(there_), "1010");

  client.Must("BEGIN");
  client.Must(Move(here_, there_, 10));
  client.Must("ROLLBACK");
  EXPECT_EQ(BalanceOf(here_), "990");
  EXPECT_EQ(PreparedOnShards(), 0);
}

TEST_F(TransactionTest, StatementsOfOneStringAreOneTransaction) {
  Client client(cluster_->Url());
  EXPECT_EQ(client.Query(Move(here_, there_, 10) + "; SELECT 1 / 0").sqlstate, "22012");
  EXPECT_EQ(BalanceOf(here_), "1000");
  client.Must(Move(here_, there_, 10));
  EXPECT_EQ(BalanceOf(here_), "990");
  EXPECT_EQ(BalanceOf(there_), "1010");
}

TEST_F(TransactionTest, AnErrorAbortsTheBlockOnAllServersAndASavepointSavesIt) {
  Client client(cluster_->Url());
  client.Must("BEGIN");
  client.Must(Move(here_, there_, 10));
  EXPECT_EQ(client.Query(fmt::format("INSERT INTO account VALUES ({}, 0)", here_)).sqlstate,
            "23505");
  EXPECT_EQ(client.Query("SELECT 1").sqlstate, "25P02");
  EXPECT_EQ(client.Must("COMMIT").command_tag, "ROLLBACK");
  EXPECT_EQ(BalanceOf(there_), "1000");

  client.Must("BEGIN");
  client.Must(fmt::format("UPDATE account SET balance = 1 WHERE id = {}", here_));
  client.Must("SAVEPOINT s");
  client.Must(fmt::format("UPDATE account SET balance = 2 WHERE id IN ({}, {})", here_, there_));
  EXPECT_EQ(client.Query(fmt::format("INSERT INTO account VALUES ({}, 0)", there_)).sqlstate,
            "23505");
  client.Must("ROLLBACK TO s");
  client.Must("SAVEPOINT s");
  client.Must(fmt::format("UPDATE account SET balance = 3 WHERE id = {}", there_));
  client.Must("RELEASE s");
  client.Must("COMMIT");
  EXPECT_EQ(BalanceOf(here_), "1");
  EXPECT_EQ(BalanceOf(there_), "3");
}

TEST_F(TransactionTest, RepeatableReadSeesOneMomentOnAllServers) {
  Client reader(cluster_->Url()), writer(cluster_->Url());
  reader.Must("BEGIN ISOLATION LEVEL REPEATABLE READ");
  reader.Must("SELECT 1");
  writer.Must(Move(here_, there_, 100));
  EXPECT_EQ(reader.Value("SELECT balance FROM account WHERE id = " + here_), "1000");
  EXPECT_EQ(reader.Value("SELECT balance FROM account WHERE id = " + there_), "1000");
  EXPECT_EQ(
      reader.Query(fmt::format("UPDATE account SET balance = 0 WHERE id = {}", here_)).sqlstate,
      "40001");
  reader.Must("ROLLBACK");
  EXPECT_EQ(reader.Value("SELECT balance FROM account WHERE id = " + here_), "900");
}

TEST_F(TransactionTest, ALostClientLeavesNothingOpen) {
  {
    Client client(cluster_->Url());
    client.Must("BEGIN");
    client.Must(Move(here_, there_, 10));
    EXPECT_EQ(InTransactionOnShards(), 2);
  }
  EXPECT_TRUE(Eventually([] { return InTransactionOnShards() == 0; }, 10));
  EXPECT_EQ(BalanceOf(here_), "1000");
}

// What a crash between PREPARE and the decision leaves on a shard.
TEST_F(TransactionTest, WhatWasPreparedAndNotDecidedIsRolledBackByTheResolver) {
  {
    Client shard(cluster_->ShardUrl(1));
    shard.Must("BEGIN");
    shard.Must("UPDATE account SET balance = 0 WHERE id = " + here_);
    shard.Must("PREPARE TRANSACTION 'sluice_" + NodeId() + "_0_77'");
    shard.Must("BEGIN");
    shard.Must("PREPARE TRANSACTION 'sluice_of_another_node_0_77'");
  }
  EXPECT_TRUE(Eventually([] { return PreparedOnShards() == 1; }, 20));
  EXPECT_EQ(BalanceOf(here_), "1000");
  Client(cluster_->ShardUrl(1)).Must("ROLLBACK PREPARED 'sluice_of_another_node_0_77'");
}

TEST_F(TransactionTest, AServerThatCannotPrepareRollsBackAll) {
  Client client(cluster_->Url());
  client.Must("BEGIN");
  client.Must(Move(here_, there_, 10));
  // A listening session cannot be prepared.
  client.Must("CALL sluice.run_on_servers('LISTEN something', 'shard2')");
  EXPECT_EQ(client.Query("COMMIT").sqlstate, "0A000");
  EXPECT_EQ(BalanceOf(here_), "1000");
  EXPECT_EQ(BalanceOf(there_), "1000");
  EXPECT_EQ(PreparedOnShards(), 0);
}

TEST_F(TransactionTest, WhereNoDecisionCanBeWrittenAllIsRolledBack) {
  // A file that is always full in place of each that the log may write next.
  std::string log = cluster_->directory() + "/sluice/transactions/decisions.";
  Client client(cluster_->Url());
  std::string path = fmt::format("{}{:010}", log, 0);
  ASSERT_EQ(cluster_->RunAsOwner({"/bin/mv", path, path + ".kept"}), 0);
  ASSERT_EQ(cluster_->RunAsOwner({"/bin/ln", "-s", "/dev/full", path}), 0);
  client.Must("BEGIN");
  client.Must(Move(here_, there_, 10));
  EXPECT_EQ(client.Query("COMMIT").sqlstate, "53100");
  ASSERT_EQ(cluster_->RunAsOwner({"/bin/rm", path}), 0);
  ASSERT_EQ(cluster_->RunAsOwner({"/bin/mv", path + ".kept", path}), 0);
  EXPECT_EQ(Sum(), kTotal);
  EXPECT_EQ(BalanceOf(here_), "1000");
  EXPECT_EQ(PreparedOnShards(), 0);
}

// Clients move money between accounts, others sum them all; the sum is right at every read, while
// processes of Sluice and shards are killed and started again.
class Transfers {
 public:
  Transfers(const Cluster& cluster, unsigned seed) : cluster_(cluster) {
    for (unsigned i = 0; i < 3; i++) threads_.emplace_back([=, this] { MoveMoney(seed + i); });
    threads_.emplace_back([this] { ReadSums(false); });
    threads_.emplace_back([this] { ReadSums(true); });
  }
  ~Transfers() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int moved() const { return moved_; }
  int sums() const { return sums_; }
  std::vector<std::string> wrong() const { return wrong_; }

 private:
  void MoveMoney(unsigned seed) {
    std::mt19937 random(seed);
    while (!stop_) {
      Client client(cluster_.Url());
      while (!stop_ && client.connected()) {
        int from = static_cast<int>(random() % kAccounts) + 1;
        int to = static_cast<int>(random() % kAccounts) + 1;
        // The lower first, so that no two wait for each other.
        int amount = static_cast<int>(random() % 100);
        if (from > to) std::swap(from, to), amount = -amount;
        Answer answer =
            client.Query(fmt::format("UPDATE account SET balance = balance - {0} WHERE id = {1};"
                                     "UPDATE account SET balance = balance + {0} WHERE id = {2}",
                                     amount, from, to));
        if (answer.sqlstate.empty()) moved_++;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  void ReadSums(bool repeatable) {
    while (!stop_) {
      Client client(cluster_.Url());
      while (!stop_ && client.connected()) {
        if (repeatable) client.Query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        Answer answer = client.Query("SELECT sum(balance) FROM account");
        if (repeatable) client.Query("COMMIT");
        if (!answer.sqlstate.empty() || answer.rows.empty()) continue;
        sums_++;
        if (*answer.rows[0][0] == kTotal) continue;
        std::lock_guard<std::mutex> lock(mutex_);
        wrong_.push_back(*answer.rows[0][0] + (repeatable ? " in REPEATABLE READ" : ""));
        stop_ = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  const Cluster& cluster_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> moved_ = 0, sums_ = 0;
  std::mutex mutex_;
  std::vector<std::string> wrong_;
  std::vector<std::thread> threads_;
};

TEST_F(TransactionTest, TheSumIsRightAtEveryRead) {
  Transfers transfers(*cluster_, 1);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  transfers.Stop();
  EXPECT_EQ(transfers.wrong(), std::vector<std::string>());
  EXPECT_GT(transfers.moved(), 10);
  EXPECT_GT(transfers.sums(), 10);
  EXPECT_EQ(PreparedOnShards(), 0);
}

TEST_F(TransactionTest, TheSumIsRightAtEveryReadWhileProcessesAndShardsAreKilled) {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  unsigned seed =
      given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device()();
  const char* wanted = std::getenv("SLUICE_TRANSFER_SECONDS");
  int seconds = wanted != nullptr ? std::atoi(wanted) : 12;
  fmt::print("SLUICE_TEST_SEED={}\n", seed);
  std::mt19937 random(seed);
  int moved = 0;
  {
    Transfers transfers(*cluster_, seed);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (int turn = 0; std::chrono::steady_clock::now() < end; turn++) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300 + random() % 700));
      if (turn % 2 == 0) {
        // A process of Sluice: whichever kind comes.
        Client client(cluster_->Url());
        Answer pids = client.Query(
            "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'postmaster' ORDER BY pid");
        if (pids.rows.empty()) continue;
        kill(std::stoi(*pids.rows[random() % pids.rows.size()][0]), SIGKILL);
      } else {
        int shard = static_cast<int>(random() % kShards) + 1;
        cluster_->StopShard(shard, "immediate");
        cluster_->StartShard(shard);
      }
    }
    transfers.Stop();
    EXPECT_EQ(transfers.wrong(), std::vector<std::string>());
    moved = transfers.moved();
  }
  EXPECT_GT(moved, 0);
  EXPECT_TRUE(Eventually([] { return PreparedOnShards() == 0; }, 30)) << PreparedOnShards();
  EXPECT_TRUE(Eventually([] { return Client(cluster_->Url()).connected(); }, 20));
  EXPECT_EQ(Sum(), kTotal);
}

}  // namespace
}  // namespace sluice::test
