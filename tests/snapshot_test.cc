// One statement reads one snapshot of each shard, however many parts it has, while money moves
// between accounts on different shards.
#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

constexpr int kAccounts = 40;

class SnapshotTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 2,
                                            .settings = {"max_parallel_workers = 2"},
                                            .shard_settings = {"max_prepared_transactions = 20"}});
    Client client(cluster_->Url());
    client.Must("CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)");
    client.Must(
        fmt::format("INSERT INTO account SELECT g, 1000 FROM generate_series(1, {}) g", kAccounts));
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  // Runs the query over and over while balances change; how often. It must always give "0".
  static int CountZeros(const std::string& sql, const std::vector<std::string>& settings = {}) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> movers;
    for (unsigned seed = 1; seed <= 2; seed++)
      movers.emplace_back([&, seed] { Move(&stop, seed); });
    Client client(cluster_->Url());
    for (const auto& setting : settings) client.Must(setting);
    int count = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    while (std::chrono::steady_clock::now() < end) {
      Answer answer = client.Query(sql);
      EXPECT_EQ(answer.sqlstate, "") << answer.message << " " << answer.detail;
      if (!answer.sqlstate.empty() || answer.rows.size() != 1) break;
      EXPECT_EQ(answer.rows[0][0].value_or("NULL"), "0") << sql;
      if (answer.rows[0][0] != "0") break;
      count++;
    }
    stop = true;
    for (auto& mover : movers) mover.join();
    return count;
  }

  // One row a transaction, so that every snapshot a moment later has another sum; and transfers.
  static void Move(const std::atomic<bool>* stop, unsigned seed) {
    std::mt19937 random(seed);
    Client client(cluster_->Url());
    while (!*stop) {
      int first = static_cast<int>(random() % (kAccounts / 2)) * 2 + static_cast<int>(seed % 2) + 1;
      client.Query(fmt::format("UPDATE account SET balance = balance + 1 WHERE id = {}", first));
      client.Query(
          fmt::format("UPDATE account SET balance = balance + CASE WHEN id = {0} THEN 5 "
                      "ELSE -5 END WHERE id IN ({0}, {1})",
                      first, (first + 1) % kAccounts + 1));
    }
  }

  static Cluster* cluster_;
};
Cluster* SnapshotTest::cluster_ = nullptr;

TEST_F(SnapshotTest, TwoInitPlansSeeTheSame) {
  EXPECT_GT(CountZeros("SELECT (SELECT sum(balance) FROM account) - (SELECT sum(balance) FROM "
                       "account)"),
            10);
}

TEST_F(SnapshotTest, AnInitPlanAndTheRestSeeTheSame) {
  EXPECT_GT(CountZeros("SELECT sum(balance) - (SELECT sum(balance) FROM account) FROM account"),
            10);
  EXPECT_GT(CountZeros("SELECT sum(balance - (SELECT avg(balance) FROM account))::int FROM account "
                       "WHERE (SELECT count(*) FROM account) > 0",
                       {"SET enable_pushdown_aggregate = off"}),
            10);
}

TEST_F(SnapshotTest, ASelfJoinBesideAnInitPlanSeesTheSame) {
  // The join does not lie on one shard: two streams on each.
  const char* sql =
      "SELECT (SELECT sum(balance) FROM account) - sum(b.balance) FROM account a JOIN account b "
      "ON a.id = b.id % 40 + 1";
  EXPECT_GT(CountZeros(sql), 10);
  EXPECT_GT(CountZeros(sql, {"SET enable_pushdown_join = off"}), 10);
}

TEST_F(SnapshotTest, TheBranchesOfAUnionSeeTheSame) {
  EXPECT_GT(CountZeros("SELECT sum(s) FROM (SELECT sum(balance) s FROM account UNION ALL SELECT "
                       "-sum(balance) FROM account) x"),
            10);
  EXPECT_GT(CountZeros("SELECT sum(s) FROM (SELECT balance s FROM account UNION ALL SELECT "
                       "-balance FROM account) x WHERE (SELECT count(*) FROM account) = 40",
                       {"SET enable_pushdown_aggregate = off"}),
            10);
}

// A row that moves to another block is read once, though its ranges are read by different
// connections.
TEST_F(SnapshotTest, BlockRangesOfOneScanSeeTheSame) {
  EXPECT_GT(CountZeros("SELECT count(id) - 40 FROM account",
                       {"SET connections_per_scan = 3", "SET enable_pushdown_aggregate = off"}),
            10);
  EXPECT_GT(
      CountZeros("SELECT count(*) FROM (SELECT id FROM account GROUP BY id HAVING count(*) <> "
                 "1) twice",
                 {"SET connections_per_scan = 3", "SET enable_pushdown_aggregate = off"}),
      10);
}

TEST_F(SnapshotTest, InATransactionBlockToo) {
  Client client(cluster_->Url());
  client.Must("BEGIN");
  EXPECT_EQ(client.Value("SELECT (SELECT sum(balance) FROM account) - (SELECT sum(balance) FROM "
                         "account)"),
            "0");
  client.Must("UPDATE account SET balance = balance + 1 WHERE id = 1");
  EXPECT_EQ(client.Value("SELECT (SELECT sum(balance) FROM account) - (SELECT sum(balance) FROM "
                         "account)"),
            "0");
  client.Must("ROLLBACK");
}

// A statement that is left early, or fails, leaves nothing open on the shards.
// The statement that exported the snapshot fails before the other has taken it: that is the error.
TEST_F(SnapshotTest, AnErrorOfOnePartIsTold) {
  Client client(cluster_->Url());
  client.Must("SET enable_pushdown_join = off");
  for (int i = 0; i < 40; i++) {
    Answer answer = client.Query(
        "SELECT count(*) FROM (SELECT acosd(2 + id) AS z FROM account) a, account b WHERE a.z = "
        "b.id");
    ASSERT_EQ(answer.sqlstate, "22003") << answer.message;
    answer = client.Query(
        "SELECT id FROM account UNION ALL SELECT (balance / (id - id))::int FROM account");
    ASSERT_EQ(answer.sqlstate, "22012") << answer.message;
  }
}

TEST_F(SnapshotTest, NothingStaysOpenOnTheShards) {
  {
    Client client(cluster_->Url());
    client.Must(
        "SELECT * FROM account WHERE balance > (SELECT min(balance) - 1 FROM account) LIMIT 1");
    EXPECT_EQ(
        client.Query("SELECT 1 / (SELECT count(*) - 40 FROM account), id FROM account").sqlstate,
        "22012");
    EXPECT_EQ(client
                  .Query("SELECT 1 / (balance - balance) FROM account WHERE (SELECT count(*) "
                         "FROM account) > 0")
                  .sqlstate,
              "22012");
    client.Must("BEGIN");
    client.Must(
        "DECLARE c CURSOR FOR SELECT * FROM account WHERE balance > (SELECT min(balance) - "
        "1 FROM account)");
    client.Must("FETCH 3 FROM c");
    client.Must("COMMIT");
  }
  EXPECT_TRUE(Eventually(
      [] {
        for (int shard = 1; shard <= cluster_->shards(); shard++)
          if (Client(cluster_->ShardUrl(shard))
                  .Value("SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> "
                         "pg_backend_pid() AND backend_type = 'client backend'") != "0")
            return false;
        return true;
      },
      10));
}

// What a test run that is killed leaves behind is cleaned up.
TEST(HarnessTest, TheClusterOfAKilledTestIsEnded) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    Cluster cluster(Cluster::Options{.shards = 1, .settings = {}, .shard_settings = {}});
    int pids[2] = {cluster.ServerPid(), cluster.ShardPid(1)};
    if (write(ends[1], pids, sizeof pids) == sizeof pids) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int pids[2] = {};
  ASSERT_EQ(read(ends[0], pids, sizeof pids), ssize_t{sizeof pids});
  for (int pid : pids) EXPECT_GT(pid, 0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Eventually([&] { return kill(pids[0], 0) != 0 && kill(pids[1], 0) != 0; }, 15));
}

}  // namespace
}  // namespace sluice::test
