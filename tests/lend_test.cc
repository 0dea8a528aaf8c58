// Connections to shards that are lent to a session (shm/lease.h): the session uses them, gives them
// back when others want them, and never leaves one behind in a state that the next would meet.
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class Lend : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{
        .shards = 2, .settings = {"connections_per_server = 3"}, .shard_settings = {}});
    for (int shard = 1; shard <= 2; shard++) {
      Client direct(cluster_->ShardUrl(shard));
      direct.Must("CREATE TABLE accounts (id int PRIMARY KEY, balance int, note text)");
      direct.Must(fmt::format(
          "INSERT INTO accounts SELECT g, g * 10, 'note ' || g FROM generate_series(1, 20000) g "
          "WHERE g % 2 = {}",
          shard % 2));
    }
    Client client(cluster_->Url());
    client.Must(
        "CREATE TABLE accounts (id int, balance int, note text) PARTITION BY LIST ((id % 2))");
    client.Must(
        "CREATE FOREIGN TABLE accounts_1 PARTITION OF accounts FOR VALUES IN (1) SERVER "
        "shard1 OPTIONS (table_name 'accounts')");
    client.Must(
        "CREATE FOREIGN TABLE accounts_2 PARTITION OF accounts FOR VALUES IN (0) SERVER "
        "shard2 OPTIONS (table_name 'accounts')");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  static std::string Balance(Client* client, int id) {
    return client->Value(fmt::format("SELECT balance FROM accounts WHERE id = {}", id));
  }
  // Lets the shard lend: the first statement goes through the io worker, later ones do not.
  static void Borrow(Client* client, int id) {
    for (int i = 0; i < 3; i++) {
      Balance(client, id);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // What a session waits for while it runs a statement that takes a while on the shard.
  static std::string WaitOf(const std::string& application) {
    Client other(cluster_->Url());
    Answer answer = other.Query(
        fmt::format("SELECT wait_event FROM pg_stat_activity WHERE application_name = '{}' AND "
                    "state = 'active'",
                    application));
    return answer.rows.empty() || !answer.rows[0][0] ? "" : *answer.rows[0][0];
  }
  // Statements of ours that run on a shard now.
  static int Running(int shard) {
    Client direct(cluster_->ShardUrl(shard));
    return std::stoi(
        direct.Value("SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                     "'sluice' AND state = 'active'"));
  }
  static int Connections(int shard) {
    Client direct(cluster_->ShardUrl(shard));
    return std::stoi(
        direct.Value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice'"));
  }
  static constexpr const char* kSlow =
      "SELECT count(*) FROM accounts a, generate_series(1, 100000000) g WHERE a.id = 1 AND "
      "a.balance + g > 0";

  static Cluster* cluster_;
};
Cluster* Lend::cluster_ = nullptr;

TEST_F(Lend, AStatementRunsOnABorrowedConnectionAfterTheFirst) {
  Client client(cluster_->Url() + " application_name=borrower");
  Borrow(&client, 1);
  PQsendQuery(client.raw(), kSlow);
  EXPECT_TRUE(Eventually([] { return WaitOf("borrower") == "ShardRead"; }, 10));
  client.Cancel();
  PGresult* result = PQgetResult(client.raw());
  EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
  PQclear(result);
  while (PGresult* more = PQgetResult(client.raw())) PQclear(more);
  EXPECT_TRUE(Eventually([] { return Running(1) == 0; }, 10));
  EXPECT_EQ(Balance(&client, 1), "10");
}

TEST_F(Lend, SettingOffMeansTheIoWorker) {
  Client client(cluster_->Url() + " application_name=user");
  client.Must("SET lend_connections = off");
  Borrow(&client, 1);
  client.Must("SET statement_timeout = '500ms'");
  PQsendQuery(client.raw(), kSlow);
  EXPECT_TRUE(Eventually([] { return WaitOf("user") == "AppendReady"; }, 10));
  while (PGresult* more = PQgetResult(client.raw())) PQclear(more);
}

TEST_F(Lend, AStatementTimeoutEndsTheStatementOnTheShard) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  client.Must("SET statement_timeout = '200ms'");
  EXPECT_EQ(client.Query(kSlow).sqlstate, "57014");
  EXPECT_TRUE(Eventually([] { return Running(1) == 0; }, 10));
  client.Must("RESET statement_timeout");
  for (int id = 1; id <= 4; id++) EXPECT_EQ(Balance(&client, id), std::to_string(id * 10));
}

TEST_F(Lend, AClientThatLeavesEndsTheStatementAndTheConnectionIsUsableAgain) {
  {
    Client client(cluster_->Url());
    Borrow(&client, 1);
    PQsendQuery(client.raw(), kSlow);
    ASSERT_TRUE(Eventually([] { return Running(1) == 1; }, 10));
  }
  EXPECT_TRUE(Eventually([] { return Running(1) == 0; }, 10));
  Client client(cluster_->Url());
  EXPECT_EQ(Balance(&client, 1), "10");
}

TEST_F(Lend, AnErrorOfTheShardLeavesTheConnectionUsable) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  for (int i = 0; i < 3; i++) {
    Answer answer = client.Query("SELECT 1 / (balance - 10) FROM accounts WHERE id = 1");
    EXPECT_EQ(answer.sqlstate, "22012");
    EXPECT_EQ(answer.position, "");
    EXPECT_EQ(Balance(&client, 1), "10");
  }
}

TEST_F(Lend, AConnectionThatDiedWhileItWasIdleIsReplaced) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  Client direct(cluster_->ShardUrl(1));
  for (int i = 0; i < 3; i++) {
    direct.Must(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
        "'sluice'");
    EXPECT_TRUE(Eventually([] { return Connections(1) == 0; }, 10));
    EXPECT_EQ(Balance(&client, 1), "10");
    Borrow(&client, 1);
  }
}

TEST_F(Lend, AConnectionThatDiesInTheMiddleIsAnError) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  PQsendQuery(client.raw(), kSlow);
  ASSERT_TRUE(Eventually([] { return Running(1) == 1; }, 10));
  Client direct(cluster_->ShardUrl(1));
  direct.Must(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
      "'sluice' AND state = 'active'");
  PGresult* result = PQgetResult(client.raw());
  EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "08006");
  PQclear(result);
  while (PGresult* more = PQgetResult(client.raw())) PQclear(more);
  EXPECT_EQ(Balance(&client, 1), "10");
}

// Each of more sessions than there are connections keeps one for a while; all go on, and so does a
// statement that needs every shard.
TEST_F(Lend, WhatIsLentComesBackWhenOthersWantIt) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; i++) clients.push_back(std::make_unique<Client>(cluster_->Url()));
  for (int round = 0; round < 20; round++) {
    for (size_t i = 0; i < clients.size(); i++) {
      int id = round * 10 + static_cast<int>(i) + 1;
      EXPECT_EQ(Balance(clients[i].get(), id), std::to_string(id * 10));
    }
    EXPECT_EQ(clients[static_cast<size_t>(round) % 8]->Value("SELECT count(*) FROM accounts"),
              "20000");
  }
  EXPECT_LE(Connections(1), 3);
  EXPECT_LE(Connections(2), 3);
}

TEST_F(Lend, ManySessionsAtOnceGetRightAnswers) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; t++)
    threads.emplace_back([t, &wrong] {
      Client client(cluster_->Url());
      for (int i = 0; i < 200; i++) {
        int id = (t * 200 + i * 7) % 20000 + 1;
        Answer answer =
            i % 3 == 0
                ? client.QueryParams("SELECT balance FROM accounts WHERE id = $1",
                                     {std::to_string(id)}, false)
                : client.Query(fmt::format("SELECT balance FROM accounts WHERE id = {}", id));
        if (answer.rows.size() != 1 || answer.rows[0][0] != std::to_string(id * 10)) wrong++;
        if (i % 50 == 49 && client.Value("SELECT count(*) FROM accounts") != "20000") wrong++;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Lend, SettingsOfTheSessionHold) {
  Client direct(cluster_->ShardUrl(1));
  direct.Must("CREATE TABLE times (id int, at timestamptz)");
  direct.Must("INSERT INTO times VALUES (1, '2024-06-01 12:00:00+00')");
  Client client(cluster_->Url());
  client.Must("CREATE FOREIGN TABLE times (id int, at timestamptz) SERVER shard1");
  const char* sql = "SELECT at FROM times";
  client.Must("SET TimeZone = 'UTC'");
  for (int i = 0; i < 3; i++) EXPECT_EQ(client.Value(sql), "2024-06-01 12:00:00+00");
  client.Must("SET TimeZone = 'Europe/Berlin'");
  for (int i = 0; i < 3; i++) EXPECT_EQ(client.Value(sql), "2024-06-01 14:00:00+02");
  client.Must("SET DateStyle = 'German'");
  for (int i = 0; i < 3; i++) EXPECT_EQ(client.Value(sql), "01.06.2024 14:00:00 CEST");
  Client other(cluster_->Url());
  other.Must("SET TimeZone = 'UTC'");
  EXPECT_EQ(other.Value(sql), "2024-06-01 12:00:00+00");
}

// Prepared there by the session, and then made invalid behind its back.
TEST_F(Lend, AChangedTableMakesItPrepareAgain) {
  Client direct(cluster_->ShardUrl(1));
  direct.Must("CREATE TABLE changing (id int, v int)");
  direct.Must("INSERT INTO changing VALUES (1, 7)");
  Client client(cluster_->Url());
  client.Must("CREATE FOREIGN TABLE changing (id int, v int) SERVER shard1");
  for (int i = 0; i < 6; i++) {
    Answer answer = client.QueryParams("SELECT v FROM changing WHERE id = $1", {"1"}, false);
    ASSERT_EQ(answer.rows.size(), 1u) << answer.message;
    EXPECT_EQ(*answer.rows[0][0], "7");
    if (i % 2 == 1)
      direct.Must(fmt::format("ALTER TABLE changing ALTER v TYPE {}", i == 1 ? "bigint" : "int"));
  }
}

TEST_F(Lend, ManyPreparedStatementsStayBounded) {
  Client(cluster_->ShardUrl(1))
      .Must("CREATE VIEW prepared AS SELECT name FROM pg_prepared_statements");
  Client client(cluster_->Url());
  client.Must("CREATE FOREIGN TABLE prepared (name text) SERVER shard1");
  Borrow(&client, 1);
  for (int i = 0; i < 200; i++) {
    Answer answer = client.QueryParams(
        fmt::format("SELECT balance + {} FROM accounts WHERE id = $1", i % 100), {"1"}, false);
    ASSERT_EQ(answer.rows.size(), 1u) << answer.message;
    EXPECT_EQ(*answer.rows[0][0], std::to_string(10 + i % 100));
  }
  EXPECT_EQ(client.Value("SELECT count(*) FROM prepared WHERE name LIKE 'lent%'"), "64");
}

TEST_F(Lend, LargeAnswersPassThroughWhole) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  Answer rows = client.Must("SELECT id, note FROM accounts_1");
  EXPECT_EQ(rows.rows.size(), 10000u);
  EXPECT_EQ(rows.command_tag, "SELECT 10000");
  Answer wide = client.Must("SELECT id, repeat(note, 100000) FROM accounts WHERE id = 3");
  ASSERT_EQ(wide.rows.size(), 1u);
  EXPECT_EQ(wide.rows[0][1]->size(), 600'000u);
  EXPECT_EQ(Balance(&client, 1), "10");
}

TEST_F(Lend, RowLimitsOfTheProtocolStillWork) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  client.Must("BEGIN");
  client.Must("DECLARE c CURSOR FOR SELECT id FROM accounts_1 ORDER BY id");
  EXPECT_EQ(client.Must("FETCH 3 FROM c").rows.size(), 3u);
  EXPECT_EQ(Balance(&client, 1), "10");
  EXPECT_EQ(*client.Must("FETCH 1 FROM c").rows[0][0], "7");
  client.Must("COMMIT");
}

// sluice.streams, for operators.
TEST_F(Lend, StreamsShowWhatRunsAndWhatIsLent) {
  Client client(cluster_->Url());
  Borrow(&client, 1);
  std::string pid = std::to_string(PQbackendPID(client.raw()));
  auto shown = [&](const std::string& what) {
    Client other(cluster_->Url());
    return other.Must("SELECT server, kind, state, wait, query FROM sluice.streams WHERE pid = " +
                      pid + " AND " + what);
  };
  Answer lent = shown("state = 'lent'");
  ASSERT_EQ(lent.rows.size(), 1u);
  EXPECT_EQ(*lent.rows[0][0], "shard1");
  // Two streams that the session does not read: both are held back at last.
  client.Must("BEGIN");
  client.Must("DECLARE c CURSOR FOR SELECT a.id, repeat(a.note, 1000) FROM accounts a");
  client.Must("FETCH 1 FROM c");
  EXPECT_TRUE(Eventually([&] { return shown("wait = 'consumer'").rows.size() == 2; }, 20));
  Answer streams = shown("state <> 'lent'");
  ASSERT_EQ(streams.rows.size(), 2u);
  for (const auto& row : streams.rows) {
    EXPECT_EQ(*row[1], "query");
    EXPECT_NE(row[4]->find("repeat"), std::string::npos);
  }
  client.Must("COMMIT");
  EXPECT_EQ(shown("state <> 'lent'").rows.size(), 0u);
  // Idle for a second: given back.
  EXPECT_TRUE(Eventually([&] { return shown("true").rows.empty(); }, 10));
}

TEST_F(Lend, AChangedServerIsForgotten) {
  Client client(cluster_->Url());
  Borrow(&client, 2);
  Client other(cluster_->Url());
  other.Must("ALTER SERVER shard2 OPTIONS (ADD connect_timeout '7')");
  for (int i = 0; i < 3; i++) EXPECT_EQ(Balance(&client, 2), "20");
}

}  // namespace
}  // namespace sluice::test
