// Transactions over several servers: all or nothing, locks, deadlocks. (transfer_test.cc: whatever
// is killed meanwhile.)
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
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

// The answer of a statement that must have waited for the lock until now.
class Waiting {
 public:
  Waiting(Client& client, const std::string& sql) : client_(client) {
    client_.Send(sql);
    EXPECT_FALSE(client_.Await(0.2)) << "did not wait: " << sql;
  }
  Answer Get() {
    std::optional<Answer> answer = client_.Await(20);
    return answer ? *answer : Answer{.sqlstate = "none"};
  }

 private:
  Client& client_;
};

std::string Raise(const std::string& id) {
  return "UPDATE account SET balance = balance + 1 WHERE id = " + id;
}

TEST_F(TransactionTest, ADeadlockOverTwoServersEndsTheYoungestTransaction) {
  Client elder(cluster_->Url()), younger(cluster_->Url());
  elder.Must("BEGIN");
  elder.Must(Raise(here_));
  younger.Must("BEGIN");
  younger.Must(Raise(there_));
  Waiting first(elder, Raise(there_));
  younger.Send(Raise(here_));
  std::optional<Answer> answer = younger.Await(20);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->sqlstate, "40P01");
  EXPECT_EQ(answer->message, "deadlock detected");
  EXPECT_NE(answer->detail.find("waits for ShareLock on transaction "), std::string::npos)
      << answer->detail;
  EXPECT_NE(answer->detail.find("; blocked by process "), std::string::npos);
  EXPECT_EQ(answer->hint, "See server log for query details.");
  EXPECT_EQ(first.Get().sqlstate, "");
  EXPECT_EQ(younger.Query("SELECT 1").sqlstate, "25P02");
  younger.Must("ROLLBACK");
  elder.Must("COMMIT");
  EXPECT_EQ(BalanceOf(here_), "1001");
  EXPECT_EQ(BalanceOf(there_), "1001");
}

TEST_F(TransactionTest, ADeadlockOfThreeSessionsInARingIsBroken) {
  Client third(cluster_->ShardUrl(3));
  std::string ids[] = {here_, there_, third.Value("SELECT min(id) FROM account")};
  std::vector<std::unique_ptr<Client>> clients;
  for (const std::string& id : ids) {
    clients.push_back(std::make_unique<Client>(cluster_->Url()));
    clients.back()->Must("BEGIN");
    clients.back()->Must(Raise(id));
  }
  for (int i = 0; i < 3; i++) clients[i]->Send(Raise(ids[(i + 1) % 3]));
  // The youngest fails; the one that waited for it goes on, and when that has committed the last.
  std::optional<Answer> youngest = clients[2]->Await(20);
  ASSERT_TRUE(youngest);
  EXPECT_EQ(youngest->sqlstate, "40P01");
  std::optional<Answer> second = clients[1]->Await(20);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->sqlstate, "");
  clients[1]->Must("COMMIT");
  std::optional<Answer> eldest = clients[0]->Await(20);
  ASSERT_TRUE(eldest);
  EXPECT_EQ(eldest->sqlstate, "");
  clients[0]->Must("COMMIT");
}

TEST_F(TransactionTest, WhoOnlyWaitsIsNotTakenForDeadlocked) {
  Client holder(cluster_->Url()), a(cluster_->Url()), b(cluster_->Url());
  holder.Must("BEGIN");
  holder.Must(Move(here_, there_, 1));
  a.Must("BEGIN");
  b.Must("BEGIN");
  Waiting waits_here(a, Raise(here_)), waits_there(b, Raise(there_));
  sleep(4);  // several times deadlock_timeout
  holder.Must("COMMIT");
  EXPECT_EQ(waits_here.Get().sqlstate, "");
  EXPECT_EQ(waits_there.Get().sqlstate, "");
  a.Must("COMMIT");
  b.Must("COMMIT");
}

TEST_F(TransactionTest, LockTimeoutEndsAWaitForALock) {
  Client holder(cluster_->Url()), client(cluster_->Url());
  holder.Must("BEGIN");
  holder.Must(Raise(here_));
  client.Must("SET lock_timeout = '300ms'");
  for (const char* begin : {"SELECT 1", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"}) {
    client.Must(begin);
    Answer answer = client.Query(Raise(here_));
    EXPECT_EQ(answer.sqlstate, "55P03") << begin << answer.message;
    EXPECT_EQ(answer.message, "canceling statement due to lock timeout");
    client.Query("ROLLBACK");
  }
  // In the middle of a transaction, and back.
  client.Must("SET lock_timeout = 0");
  client.Must("BEGIN");
  client.Must(Raise(there_));
  client.Must("SET LOCAL lock_timeout = '200ms'");
  EXPECT_EQ(client.Query(Raise(here_)).sqlstate, "55P03");
  client.Must("ROLLBACK");
  Waiting waits(client, Raise(here_));
  holder.Must("ROLLBACK");
  EXPECT_EQ(waits.Get().sqlstate, "");
}

TEST_F(TransactionTest, TimeoutsAreReportedAsWhatTheyAre) {
  Client holder(cluster_->Url()), client(cluster_->Url());
  holder.Must("BEGIN");
  holder.Must(Raise(here_));
  // Longer than deadlock_timeout, and no deadlock.
  client.Must("SET statement_timeout = '2500ms'");
  client.Must("BEGIN");
  client.Must(Raise(there_));
  Answer answer = client.Query(Raise(here_));
  EXPECT_EQ(answer.sqlstate, "57014");
  EXPECT_EQ(answer.message, "canceling statement due to statement timeout");
  client.Must("ROLLBACK");

  Client idler(cluster_->Url());
  idler.Must("SET idle_in_transaction_session_timeout = '300ms'");
  idler.Must("BEGIN");
  idler.Must(Raise(there_));
  sleep(1);
  // libpq may have seen the end of the connection before what was said last.
  std::string state = idler.Query("SELECT 1").sqlstate;
  EXPECT_TRUE(state == "25P03" || state == "lost connection") << state;
  holder.Must("ROLLBACK");
  // Its locks are free.
  client.Must("SET lock_timeout = '5s'");
  client.Must(Raise(there_));
}

TEST_F(TransactionTest, RowsThatWereOnlyLockedNeedNoTwoPhases) {
  Client client(cluster_->Url()), other(cluster_->Url());
  client.Must("BEGIN");
  client.Must(fmt::format("SELECT * FROM account WHERE id IN ({}, {}) FOR UPDATE", here_, there_));
  EXPECT_EQ(InTransactionOnShards(), 2);
  client.Must("COMMIT");
  EXPECT_EQ(other
                .Must(fmt::format("SELECT * FROM account WHERE id IN ({}, {}) FOR UPDATE NOWAIT",
                                  here_, there_))
                .rows.size(),
            2u);
}

TEST_F(TransactionTest, RowLocksThatCouldNotBeExactAreRefused) {
  Client client(cluster_->Url());
  for (const char* sql : {"SELECT * FROM account LIMIT 1 FOR UPDATE SKIP LOCKED",
                          "SELECT * FROM account WHERE id IN (SELECT id FROM account FOR UPDATE)"})
    EXPECT_EQ(client.Query(sql).sqlstate, "0A000") << sql;
  // On one server Postgres does it.
  EXPECT_EQ(client
                .Must(fmt::format("SELECT id FROM account WHERE id = {} LIMIT 1 FOR UPDATE SKIP "
                                  "LOCKED",
                                  here_))
                .rows.size(),
            1u);
}

TEST_F(TransactionTest, AServerLostBeforeItCarriedOutADecisionIsNotReadWithOthersUntilItHas) {
  // At different moments of the commit, until one was behind the decision.
  int decided = 0;
  for (int round = 0; round < 12 && decided == 0; round++) {
    Client writer(cluster_->Url());
    writer.Must("BEGIN");
    writer.Must(Move(here_, there_, 100));
    writer.Send("COMMIT");
    usleep(static_cast<useconds_t>(500 + 400 * round));
    cluster_->KillShard(2);
    std::optional<Answer> answer = writer.Await(40);
    ASSERT_TRUE(answer);
    cluster_->StartShard(2);
    decided += answer->sqlstate.empty();
    // Whatever came of it: whole.
    Client reader(cluster_->Url());
    ASSERT_TRUE(Eventually(
        [&] {
          return reader.Query("SELECT sum(balance) FROM account").Text(true) ==
                 fmt::format("[{}] \n", kTotal);
        },
        20));
  }
  EXPECT_TRUE(Eventually([] { return PreparedOnShards() == 0; }, 20));
}

// COMMIT PREPARED waits there for a standby that does not exist, and is not visible meanwhile; what
// SET LOCAL synchronous_commit = local is in force for does not wait.
class HeldCommits {
 public:
  HeldCommits(const Cluster& cluster, std::vector<int> shards)
      : cluster_(cluster), shards_(std::move(shards)) {
    Set("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "nobody");
  }
  ~HeldCommits() { Release(); }
  void Release() { Set("ALTER SYSTEM RESET synchronous_standby_names", ""); }

 private:
  void Set(const std::string& sql, const std::string& value) {
    for (int shard : shards_) {
      Client client(cluster_.ShardUrl(shard));
      client.Must("SET synchronous_commit = local");
      client.Must(sql);
      client.Must("SELECT pg_reload_conf()");
      EXPECT_TRUE(
          Eventually([&] { return client.Value("SHOW synchronous_standby_names") == value; }, 10));
    }
  }

  const Cluster& cluster_;
  std::vector<int> shards_;
};

TEST_F(TransactionTest, AReadDuringADecisionSeesAllOfItOrNothing) {
  const std::string sum = "SELECT sum(balance) FROM account";
  const std::string rows = fmt::format(
      "SELECT balance FROM account WHERE id IN ({}, {}) ORDER BY balance", here_, there_);
  for (bool both : {true, false}) {
    SCOPED_TRACE(both);
    Client writer(cluster_->Url()), reader(cluster_->Url()), other(cluster_->Url());
    HeldCommits held(*cluster_, both ? std::vector<int>{1, 2} : std::vector<int>{2});
    writer.Must("BEGIN");
    writer.Must(Move(here_, there_, 100));
    for (const char* server : {"shard1", "shard2"})
      writer.Must(fmt::format(
          "CALL sluice.run_on_servers('SET LOCAL synchronous_commit = local', '{}')", server));
    writer.Send("COMMIT");
    ASSERT_FALSE(writer.Await(0.3)) << "its COMMIT PREPARED was to be held";
    if (both) {  // nobody sees it yet: no reason to wait
      EXPECT_EQ(reader.Value(sum), kTotal);
      EXPECT_EQ(reader.Must(rows).Text(true), "[1000] \n[1000] \n");
    } else {  // one shard is ahead: the other's snapshot is taken anew when it has caught up
      reader.Send(rows);
      other.Send(sum);
      EXPECT_FALSE(reader.Await(0.3));
      EXPECT_EQ(BalanceOf(here_), "800");
      Client impatient(cluster_->Url());
      impatient.Must("SET statement_timeout = '300ms'");
      EXPECT_EQ(impatient.Query(sum).sqlstate, "57014");
    }
    held.Release();
    std::optional<Answer> committed = writer.Await(10);
    ASSERT_TRUE(committed);
    EXPECT_EQ(committed->sqlstate, "");
    if (!both) {
      std::optional<Answer> seen = reader.Await(10), total = other.Await(10);
      ASSERT_TRUE(seen && total);
      EXPECT_EQ(seen->Text(true), "[800] \n[1200] \n");
      EXPECT_EQ(total->Text(true), fmt::format("[{}] \n", kTotal));
    }
  }
}

TEST_F(TransactionTest, ExplainAnalyzeOfAWithQueryThatInsertsInserts) {
  Client client(cluster_->Url());
  Answer plan = client.Must(
      "EXPLAIN ANALYZE WITH a AS (INSERT INTO account VALUES (1001, 5), (1002, 6), (1003, 7) "
      "RETURNING *) SELECT * FROM a");
  EXPECT_NE(plan.Text(true).find("rows=3"), std::string::npos) << plan.Text(true);
  EXPECT_EQ(client.Value("SELECT sum(balance) FROM account WHERE id > 1000"), "18");
}

TEST_F(TransactionTest, TheViewOfTransactionsShowsWhatIsPreparedAndWhere) {
  Client client(cluster_->Url()), shard(cluster_->ShardUrl(2));
  EXPECT_EQ(client.Must("SELECT * FROM sluice.transactions").rows.size(), 0u);
  std::string gid = "sluice_" + NodeId() + "_0_78";
  shard.Must("BEGIN");
  shard.Must(Raise(there_));
  shard.Must("PREPARE TRANSACTION '" + gid + "'");
  Answer shown = client.Must("SELECT gid, state, server, server_state FROM sluice.transactions");
  // The resolver may have been faster.
  if (!shown.rows.empty())
    EXPECT_EQ(shown.Text(true), "[" + gid + "] [undecided] [shard2] [prepared] \n");
  EXPECT_TRUE(Eventually([] { return PreparedOnShards() == 0; }, 20));
  EXPECT_EQ(client.Must("SELECT * FROM sluice.transactions").rows.size(), 0u);
}

TEST(UnpreparableShards, AreWarnedOfAndWritesOverSeveralAreRefusedWithAHint) {
  Cluster cluster(
      Cluster::Options{.shards = 2, .shard_settings = {"max_prepared_transactions = 0"}});
  for (int shard = 1; shard <= 2; shard++)
    Client(cluster.ShardUrl(shard)).Must("CREATE TABLE t (id int PRIMARY KEY, v int)");
  Client client(cluster.Url());
  std::vector<std::string> notices;
  PQsetNoticeProcessor(
      client.raw(),
      [](void* to, const char* text) {
        static_cast<std::vector<std::string>*>(to)->push_back(text);
      },
      &notices);
  client.Must("CALL sluice.attach_table('t', rule => 'hash', partition_column => 'id')");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_NE(notices[0].find("WARNING:  prepared transactions are disabled on server \"shard1\""),
            std::string::npos)
      << notices[0];
  Answer answer = client.Query("INSERT INTO t SELECT g, g FROM generate_series(1, 20) g");
  EXPECT_EQ(answer.sqlstate, "55000");
  EXPECT_EQ(answer.message, "prepared transactions are disabled");
  EXPECT_EQ(answer.hint, "Set max_prepared_transactions to a nonzero value.");
  EXPECT_EQ(client.Value("SELECT count(*) FROM t"), "0");
  // One server needs none, and a setting allows the rest at its risk.
  client.Must("INSERT INTO t VALUES (1, 1)");
  client.Must("SET multi_shard_commit = 'one_phase_unsafe'");
  client.Must("INSERT INTO t SELECT g, g FROM generate_series(2, 20) g");
  EXPECT_EQ(client.Value("SELECT count(*) FROM t"), "20");
}

// A read compares its snapshots of all servers before its statement: one that is given up while a
// server's is missing must not keep the others' transactions open.
TEST_F(TransactionTest, AReadGivenUpBeforeItsStatementLeavesNoTransaction) {
  Client sluice(cluster_->Url()), second(cluster_->ShardUrl(2));
  sluice.Must("SET statement_timeout = 100");
  int given_up = 0;
  for (int round = 0; round < 5; round++) {
    // From now on, for 100 ms, reads compare.
    sluice.Must("BEGIN;" + Move(here_, there_, 1) + "; COMMIT");
    Answer backends = second.Must(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        " AND pid <> pg_backend_pid()");
    for (const auto& row : backends.rows) ASSERT_EQ(kill(std::stoi(*row[0]), SIGSTOP), 0);
    Answer sum = sluice.Query("SELECT sum(balance) FROM account");
    for (const auto& row : backends.rows) ASSERT_EQ(kill(std::stoi(*row[0]), SIGCONT), 0);
    given_up += sum.sqlstate == "57014";
    // Over a connection that was just made.
    if (sum.sqlstate != "57014") EXPECT_EQ(sum.Text(true), "[" + kTotal + "] \n") << sum.message;
  }
  EXPECT_GT(given_up, 0);
  EXPECT_TRUE(Eventually([] { return InTransactionOnShards() == 0; }, 10));
  sluice.Must("RESET statement_timeout");
  EXPECT_EQ(Sum(), kTotal);
}

}  // namespace
}  // namespace sluice::test
