// Transactions on connections that are lent to a session (postmaster/distributed_transaction.h):
// what it does there by itself, what it hands over to the io worker, and what it does when either
// side goes wrong.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class LendTransaction : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(
        Cluster::Options{.shards = 2,
                         .settings = {"connections_per_server = 3", "deadlock_timeout = 200ms"},
                         .shard_settings = {}});
    Client client(cluster_->Url());
    client.Must("CREATE TABLE purse (id int, balance int) PARTITION BY LIST ((id % 2))");
    for (int shard = 1; shard <= 2; shard++) {
      Client(cluster_->ShardUrl(shard))
          .Must("CREATE TABLE purse (id int PRIMARY KEY, balance int)");
      client.Must(fmt::format(
          "CREATE FOREIGN TABLE purse_{0} PARTITION OF purse FOR VALUES IN ({1}) SERVER "
          "shard{0} OPTIONS (table_name 'purse')",
          shard, shard % 2));
    }
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    Client client(cluster_->Url());
    client.Must("DELETE FROM purse");
    client.Must("INSERT INTO purse SELECT g, 100 FROM generate_series(1, 20) g");
  }
  void TearDown() override {
    for (int shard = 1; shard <= 2; shard++)
      EXPECT_TRUE(Eventually(
          [&] {
            return Client(cluster_->ShardUrl(shard))
                       .Value("SELECT count(*) FROM pg_prepared_xacts") == "0";
          },
          20));
  }

  static std::string Balance(Client* client, int id) {
    return client->Value(fmt::format("SELECT balance FROM purse WHERE id = {}", id));
  }
  static std::string Add(int id, int amount) {
    return fmt::format("UPDATE purse SET balance = balance + {} WHERE id = {}", amount, id);
  }
  // Connections to both servers are lent to the session.
  static void Borrow(Client* client) {
    for (int id : {1, 2, 1, 2}) {
      Balance(client, id);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  static std::string OnShard(int shard, const std::string& sql) {
    return Client(cluster_->ShardUrl(shard)).Value(sql);
  }
  // The shard's processes that have a transaction of ours open.
  static std::string Open(int shard) {
    return OnShard(shard,
                   "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE "
                   "application_name = "
                   "'sluice' AND state LIKE 'idle in transaction%'");
  }
  static void Kill(int shard, const std::string& where) {
    OnShard(shard,
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE "
            "application_name = 'sluice' AND " +
                where);
  }
  static bool WaitsForShard(const std::string& application) {
    return Client(cluster_->Url())
               .Value(fmt::format("SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
                                  "'ShardRead' AND application_name = '{}'",
                                  application)) == "1";
  }

  static Cluster* cluster_;
};
Cluster* LendTransaction::cluster_ = nullptr;

TEST_F(LendTransaction, ItsWritesRunOnTheLentConnection) {
  Client client(cluster_->Url() + " application_name=writer");
  Borrow(&client);
  Client other(cluster_->ShardUrl(1));
  other.Must("BEGIN");
  other.Must(Add(1, 0));
  client.Must("BEGIN");
  PQsendQuery(client.raw(), Add(1, 1).c_str());
  EXPECT_TRUE(Eventually([] { return WaitsForShard("writer"); }, 10));
  other.Must("COMMIT");
  PGresult* result = PQgetResult(client.raw());
  EXPECT_STREQ(PQcmdStatus(result), "UPDATE 1");
  PQclear(result);
  while (PGresult* more = PQgetResult(client.raw())) PQclear(more);
  EXPECT_EQ(Balance(&client, 1), "101");
  EXPECT_EQ(OnShard(1, "SELECT balance FROM purse WHERE id = 1"), "100");
  client.Must("COMMIT");
  EXPECT_EQ(OnShard(1, "SELECT balance FROM purse WHERE id = 1"), "101");
  EXPECT_EQ(client.Must(Add(1, 5)).command_tag, "UPDATE 1");  // by itself
  EXPECT_EQ(OnShard(1, "SELECT balance FROM purse WHERE id = 1"), "106");
  EXPECT_EQ(client.Must("DELETE FROM purse WHERE id = 1 AND balance = 0").command_tag, "DELETE 0");
}

TEST_F(LendTransaction, WhatItCannotDoTheIoWorkerGoesOnWithOnTheSameConnection) {
  Client client(cluster_->Url());
  Borrow(&client);
  for (const char* then :
       {"SELECT sum(balance) FROM purse", "SAVEPOINT s", "SET LOCAL TimeZone = 'UTC'",
        "SELECT count(*) FROM purse a JOIN purse b USING (id)"}) {
    client.Must("BEGIN");
    client.Must(Add(1, 1));
    std::string before = Open(1);
    EXPECT_EQ(before.find(' '), std::string::npos) << before;
    client.Must(then);
    client.Must(Add(3, 1));
    EXPECT_EQ(Open(1), before) << then;
    EXPECT_EQ(client.Value("SELECT sum(balance) FROM purse"), "2002") << then;
    client.Must("ROLLBACK");
    EXPECT_EQ(client.Value("SELECT sum(balance) FROM purse"), "2000") << then;
    Borrow(&client);
  }
  client.Must("BEGIN");
  client.Must(Add(1, 1));
  client.Must("SAVEPOINT s");
  client.Must(Add(1, 10));
  EXPECT_EQ(client.Query("UPDATE purse SET balance = balance / 0 WHERE id = 1").sqlstate, "22012");
  client.Must("ROLLBACK TO s");
  client.Must("COMMIT");
  EXPECT_EQ(Balance(&client, 1), "101");
}

TEST_F(LendTransaction, AnErrorFailsTheTransactionAndItsLocksAreFreeAtOnce) {
  Client client(cluster_->Url()), other(cluster_->Url());
  for (int i = 0; i < 5; i++) {
    Borrow(&client);
    client.Must("BEGIN");
    client.Must(Add(1, 1));
    client.Must(Add(2, 1));
    EXPECT_EQ(client.Query("UPDATE purse SET balance = balance / 0 WHERE id = 1").sqlstate,
              "22012");
    EXPECT_EQ(client.Query(Add(2, 1)).sqlstate, "25P02");
    EXPECT_EQ(client.Must("COMMIT").command_tag, "ROLLBACK");
    other.Must("SET lock_timeout = '3s'");
    other.Must(Add(1, 0));
    other.Must(Add(2, 0));
    EXPECT_EQ(other.Value("SELECT sum(balance) FROM purse"), "2000");
  }
}

TEST_F(LendTransaction, ACancelledStatementRollsAllBack) {
  Client client(cluster_->Url() + " application_name=cancelled"), other(cluster_->ShardUrl(1));
  Borrow(&client);
  other.Must("BEGIN");
  other.Must(Add(3, 0));
  client.Must("BEGIN");
  client.Must(Add(1, 1));
  client.Must(Add(2, 1));
  PQsendQuery(client.raw(), Add(3, 1).c_str());
  EXPECT_TRUE(Eventually([] { return WaitsForShard("cancelled"); }, 10));
  client.Cancel();
  PGresult* result = PQgetResult(client.raw());
  EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
  PQclear(result);
  while (PGresult* more = PQgetResult(client.raw())) PQclear(more);
  EXPECT_EQ(client.Query(Add(1, 1)).sqlstate, "25P02");
  EXPECT_EQ(client.Must("COMMIT").command_tag, "ROLLBACK");
  other.Must("COMMIT");
  client.Must("SET lock_timeout = '5s'");
  client.Must(Add(1, 0));
  EXPECT_EQ(client.Value("SELECT sum(balance) FROM purse"), "2000");
}

TEST_F(LendTransaction, AConnectionThatDiesInItIsAnErrorAndNothingIsKept) {
  Client client(cluster_->Url());
  Borrow(&client);
  client.Must("BEGIN");
  client.Must(Add(1, 1));
  client.Must(Add(2, 1));
  Kill(1, "state = 'idle in transaction'");
  EXPECT_EQ(client.Query(Add(3, 1)).sqlstate.substr(0, 2), "08");
  EXPECT_EQ(client.Must("COMMIT").command_tag, "ROLLBACK");
  EXPECT_EQ(client.Value("SELECT sum(balance) FROM purse"), "2000");
  // Nothing was done there yet: it begins on another.
  Borrow(&client);
  Kill(1, "true");
  client.Must("BEGIN");
  client.Must(Add(1, 1));
  client.Must("COMMIT");
  EXPECT_EQ(Balance(&client, 1), "101");
  // By itself it is sent to nobody who has gone.
  Borrow(&client);
  Kill(1, "true");
  client.Must(Add(1, 1));
  EXPECT_EQ(Balance(&client, 1), "102");
}

TEST_F(LendTransaction, ACommitWhoseConnectionHasDiedSaysSo) {
  Client client(cluster_->Url());
  Borrow(&client);
  client.Must("BEGIN");
  client.Must(Add(1, 1));
  Kill(1, "state = 'idle in transaction'");
  EXPECT_EQ(client.Query("COMMIT").sqlstate, "08007");
  EXPECT_EQ(Balance(&client, 1), "100");
  // On two servers nothing is committed before both have promised it.
  for (int dies : {1, 2}) {
    Borrow(&client);
    client.Must("BEGIN");
    client.Must(Add(1, 1));
    client.Must(Add(2, 1));
    Kill(dies, "state = 'idle in transaction'");
    EXPECT_NE(client.Query("COMMIT").sqlstate, "");
    EXPECT_EQ(client.Value("SELECT sum(balance) FROM purse"), "2000");
  }
}

TEST_F(LendTransaction, AClientThatLeavesIsRolledBack) {
  for (int i = 0; i < 3; i++) {
    Client client(cluster_->Url());
    Borrow(&client);
    client.Must("BEGIN");
    client.Must(Add(1, 1));
    client.Must(Add(2, 1));
  }
  Client other(cluster_->Url());
  other.Must("SET lock_timeout = '5s'");
  other.Must(Add(1, 0));
  EXPECT_EQ(other.Value("SELECT sum(balance) FROM purse"), "2000");
  EXPECT_TRUE(Eventually([] { return Open(1).empty() && Open(2).empty(); }, 10));
}

TEST_F(LendTransaction, SumsSeeAllOfATransferOrNothing) {
  std::atomic<bool> stop{false};
  std::atomic<int> transfers{0};
  std::thread mover([&] {
    Client client(cluster_->Url());
    Borrow(&client);
    for (int i = 0; !stop; i++, transfers++) {
      client.Must("BEGIN");
      client.Must(Add(1 + i % 20, -1));
      client.Must(Add(1 + (i + 1) % 20, 1));
      client.Must("COMMIT");
    }
  });
  Client reader(cluster_->Url());
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (int i = 0; std::chrono::steady_clock::now() < until; i++)
    ASSERT_EQ(reader.Value("SELECT sum(balance) FROM purse"), "2000") << i;
  stop = true;
  mover.join();
  EXPECT_GT(transfers, 20);
}

TEST_F(LendTransaction, ADeadlockOverTwoServersIsFound) {
  Client first(cluster_->Url()), second(cluster_->Url());
  Borrow(&first);
  Borrow(&second);
  first.Must("BEGIN");
  second.Must("BEGIN");
  first.Must(Add(1, 1));
  second.Must(Add(2, 1));
  PQsendQuery(first.raw(), Add(2, 1).c_str());
  Answer answer = second.Query(Add(1, 1));
  PGresult* result = PQgetResult(first.raw());
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  std::string of_first = state == nullptr ? "" : state;
  PQclear(result);
  while (PGresult* more = PQgetResult(first.raw())) PQclear(more);
  EXPECT_TRUE((of_first == "40P01") != (answer.sqlstate == "40P01"))
      << of_first << " " << answer.sqlstate;
  first.Must("COMMIT");
  second.Must("COMMIT");
  EXPECT_EQ(first.Value("SELECT sum(balance) FROM purse"), "2002");
}

TEST_F(LendTransaction, WhoWaitsForAConnectionGetsItWhenTheTransactionEnds) {
  std::vector<std::unique_ptr<Client>> holders;
  for (int i = 0; i < 3; i++) {
    auto& client = holders.emplace_back(std::make_unique<Client>(cluster_->Url()));
    Borrow(client.get());
    client->Must("BEGIN");
    client->Must(Add(1 + 2 * i, 1));
  }
  Client waiting(cluster_->Url());
  PQsendQuery(waiting.raw(), "SELECT balance FROM purse WHERE id = 9");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  PQconsumeInput(waiting.raw());
  EXPECT_TRUE(PQisBusy(waiting.raw()));
  holders[0]->Must("COMMIT");
  auto start = std::chrono::steady_clock::now();
  PGresult* result = PQgetResult(waiting.raw());
  EXPECT_STREQ(PQgetvalue(result, 0, 0), "100");
  PQclear(result);
  while (PGresult* more = PQgetResult(waiting.raw())) PQclear(more);
  // Sooner than a connection that nobody uses is given back.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(700));
  for (int i : {1, 2}) holders[static_cast<size_t>(i)]->Must("ROLLBACK");
}

}  // namespace
}  // namespace sluice::test
