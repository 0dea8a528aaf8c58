// Faults: processes killed, shards killed, stalled and cut off, cancels at random moments. Each
// must end in a clear error (never in fewer rows), leave nothing behind on the shards, and the
// server goes on.
#include <gtest/gtest.h>
#include <random>
#include <signal.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

constexpr int kShards = 4;
constexpr long kRowsPerShard = 100'000;

class Fault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ =
        new Cluster(Cluster::Options{.shards = kShards, .settings = {}, .shard_settings = {}});
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_->ShardUrl(shard));
      client.Must("CREATE TABLE big (id bigint PRIMARY KEY, n int NOT NULL, pad text NOT NULL)");
      client.Must(fmt::format(
          "INSERT INTO big SELECT g * 4 + {}, g, repeat('x', 100) FROM generate_series(1, {}) g",
          shard - 1, kRowsPerShard));
      client.Must("ANALYZE big");
    }
    Client sluice(cluster_->Url());
    sluice.Must("CALL sluice.attach_table('big')");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  // Statements other than ours that still run on any shard.
  static int RunningOnShards() {
    int running = 0;
    for (int shard = 1; shard <= kShards; shard++) {
      Client client(cluster_->ShardUrl(shard));
      running +=
          std::stoi(client.Value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
                                 "'client backend' AND state <> 'idle' AND "
                                 "pid <> pg_backend_pid()"));
    }
    return running;
  }

  static void ExpectWorks() {
    ASSERT_TRUE(Eventually(
        [] {
          Client client(cluster_->Url());
          return client.connected() &&
                 client.Query("SELECT count(*) FROM big").Text(true) == "[400000] \n";
        },
        20));
  }

  static Cluster* cluster_;
};
Cluster* Fault::cluster_ = nullptr;

TEST_F(Fault, AShardKilledInTheMiddleOfAResultIsAnErrorNotFewerRows) {
  Client client(cluster_->Url());
  ASSERT_EQ(PQsendQuery(client.raw(), "SELECT * FROM big"), 1);
  PQsetSingleRowMode(client.raw());
  long rows = 0;
  std::string sqlstate;
  while (PGresult* result = PQgetResult(client.raw())) {
    if (PQresultStatus(result) == PGRES_SINGLE_TUPLE && ++rows == 1000)
      cluster_->StopShard(2, "immediate");
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
      const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
      sqlstate = state != nullptr ? state : "none";
    }
    PQclear(result);
  }
  EXPECT_TRUE(sqlstate == "57P02" || sqlstate == "08006" || sqlstate == "57P01") << sqlstate;
  EXPECT_LT(rows, kShards * kRowsPerShard);
  EXPECT_TRUE(client.connected());
  // Down: refused with a connection error that names the server; the other shards still answer.
  Answer down = client.Query("SELECT count(*) FROM big");
  EXPECT_EQ(down.sqlstate, "08001") << down.message;
  EXPECT_EQ(client.Query("SELECT count(*) FROM big_1").sqlstate, "");
  cluster_->StartShard(2);
  ExpectWorks();
}

TEST_F(Fault, AnErrorThatAShardSendsAfterManyRowsArrivesWithItsSqlstate) {
  Client client(cluster_->Url());
  Answer answer = client.Query("SELECT 1 / (n - 99000) FROM big");
  EXPECT_EQ(answer.sqlstate, "22012");
  ExpectWorks();
}

TEST_F(Fault, AStalledShardHoldsAQueryOnlyUntilItsTimeout) {
  int pid = cluster_->ShardPid(3);
  Client client(cluster_->Url());
  ASSERT_EQ(client.Value("SELECT count(*) FROM big"), "400000");
  // Stop every process of the shard.
  std::string stop = fmt::format("pkill -STOP -P {0}; kill -STOP {0}", pid);
  std::string go = fmt::format("kill -CONT {0}; pkill -CONT -P {0}", pid);
  ASSERT_EQ(std::system(stop.c_str()), 0);
  client.Must("SET statement_timeout = '700ms'");
  Answer answer = client.Query("SELECT count(*) FROM big");
  ASSERT_EQ(std::system(go.c_str()), 0);
  EXPECT_EQ(answer.sqlstate, "57014") << answer.message;
  EXPECT_EQ(answer.message, "canceling statement due to statement timeout");
  ExpectWorks();
  EXPECT_TRUE(Eventually([] { return RunningOnShards() == 0; }, 10));
}

TEST_F(Fault, CancelsAtRandomMomentsLeaveNothingRunning) {
  unsigned seed = static_cast<unsigned>(time(nullptr));
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const char* statements[] = {"SELECT * FROM big", "SELECT pad, count(*) FROM big GROUP BY pad",
                              "SELECT n % 1000, sum(id) FROM big GROUP BY 1 ORDER BY 2",
                              "SELECT count(*) FROM big a JOIN big b ON a.n = b.n",
                              "SELECT * FROM big ORDER BY n, id"};
  Client client(cluster_->Url());
  client.Must("SET enable_pushdown_aggregate = off");
  int cancelled = 0;
  for (int round = 0; round < 40; round++) {
    std::unique_ptr<PGcancel, void (*)(PGcancel*)> cancel(PQgetCancel(client.raw()), PQfreeCancel);
    const char* sql = statements[random() % std::size(statements)];
    useconds_t delay = random() % 120'000;
    std::thread killer([&] {
      usleep(delay);
      char message[256];
      PQcancel(cancel.get(), message, sizeof message);
    });
    Answer answer = client.Query(sql);
    killer.join();
    ASSERT_TRUE(client.connected());
    ASSERT_TRUE(answer.sqlstate.empty() || answer.sqlstate == "57014")
        << sql << ": " << answer.message;
    cancelled += answer.sqlstate == "57014";
    // The cancel may have come after the end: take it with an innocent statement.
    client.Query("SELECT 1");
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_TRUE(Eventually([] { return RunningOnShards() == 0; }, 15));
  ExpectWorks();
}

TEST_F(Fault, AClientThatDisappearsFreesEverythingOnTheShardsToo) {
  for (const char* sql :
       {"SELECT * FROM big", "SELECT count(*) FROM big a, big b WHERE a.n + b.n < 0"}) {
    Client client(cluster_->Url());
    ASSERT_EQ(PQsendQuery(client.raw(), sql), 1);
    usleep(200'000);
    shutdown(PQsocket(client.raw()), SHUT_RDWR);
    EXPECT_TRUE(Eventually([] { return RunningOnShards() == 0; }, 15)) << sql;
  }
  ExpectWorks();
}

TEST_F(Fault, EveryKindOfProcessMayBeKilledAndTheServerComesBack) {
  for (const char* kind : {"io worker", "parallel worker", "client backend"}) {
    SCOPED_TRACE(kind);
    Client client(cluster_->Url());
    Client watcher(cluster_->Url());
    std::string pid = watcher
                          .Must(fmt::format("SELECT pid FROM pg_stat_activity WHERE backend_type = "
                                            "'{}' AND pid <> pg_backend_pid() LIMIT 1",
                                            kind))
                          .rows.at(0)
                          .at(0)
                          .value();
    ASSERT_EQ(PQsendQuery(client.raw(), "SELECT * FROM big"), 1);
    usleep(50'000);
    ASSERT_EQ(kill(std::stoi(pid), SIGKILL), 0);
    while (PGresult* result = PQgetResult(client.raw())) PQclear(result);
    Answer after = watcher.Query("SELECT 1");
    EXPECT_TRUE(after.sqlstate == "57P02" || after.sqlstate == "lost connection" ||
                after.sqlstate == "08006")
        << after.sqlstate << after.message;
    ExpectWorks();
    EXPECT_TRUE(Eventually([] { return RunningOnShards() == 0; }, 15));
  }
}

TEST_F(Fault, ARowOf200MegabytesPasses) {
  Client shard(cluster_->ShardUrl(1));
  Client client(cluster_->Url());
  for (const char* value : {"repeat('y', 200000000)", "repeat(left(pad, 1), 200000000)"}) {
    Answer answer = client.Query(fmt::format("SELECT id, {} FROM big WHERE id = 4", value));
    ASSERT_EQ(answer.sqlstate, "") << answer.message;
    ASSERT_EQ(answer.rows.size(), 1u);
    EXPECT_EQ(answer.rows[0][1]->size(), 200'000'000u);
  }
  ExpectWorks();
}

TEST_F(Fault, FiveThousandInValues) {
  std::string list;
  for (int i = 1; i <= 5000; i++) list += (i > 1 ? "," : "") + std::to_string(i * 4);
  Client client(cluster_->Url());
  EXPECT_EQ(client.Value("SELECT count(*) FROM big WHERE id IN (" + list + ")"), "5000");
}

TEST_F(Fault, SqlThatWouldExhaustTheParsersStackIsRefused) {
  Client client(cluster_->Url());
  std::string terms = "SELECT 1",
              parens = "SELECT " + std::string(100'000, '(') + "1" + std::string(100'000, ')');
  for (int i = 0; i < 100'000; i++) terms += "+1";
  EXPECT_EQ(client.Query(terms).sqlstate, "54001");
  EXPECT_EQ(client.Query(parens).sqlstate, "54001");
  ExpectWorks();
}

TEST_F(Fault, SystemColumnsAreRefusedBecauseTheCopiesThatCompleteAStatementHaveOthers) {
  Client client(cluster_->Url());
  for (const char* column : {"ctid", "xmin", "tableoid"})
    EXPECT_EQ(client.Query(fmt::format("SELECT {} FROM big LIMIT 1", column)).sqlstate, "0A000");
}

TEST_F(Fault, AServerThatCannotBeReachedIsReportedAsSuch) {
  Client client(cluster_->Url());
  client.Must(
      "CREATE SERVER wrong FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1', "
      "dbname 'x')");
  client.Must("CREATE USER MAPPING FOR PUBLIC SERVER wrong OPTIONS (user 'nobody')");
  client.Must("CREATE FOREIGN TABLE at_wrong (id int) SERVER wrong");
  EXPECT_EQ(client.Query("SELECT * FROM at_wrong").sqlstate, "08001");
  client.Must("DROP SERVER wrong CASCADE");
}

}  // namespace
}  // namespace sluice::test
