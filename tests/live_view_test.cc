// Live views over real shards: created, fed, read, waited for, dropped.
#include <gtest/gtest.h>
#include <random>
#include <signal.h>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

class LiveView : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Cluster::Options options;
    options.shards = 2;
    options.shard_settings = {"wal_sender_timeout = 10s"};
    cluster_ = new Cluster(options);
  }
  static void TearDownTestSuite() { delete cluster_; }

  void SetUp() override {
    client_.emplace(cluster_->Url());
    ASSERT_TRUE(client_->connected());
  }
  // Whatever a test made is gone, on the shards too.
  void TearDown() override {
    Client client(cluster_->Url());
    for (const std::string& view : views_)
      client.Query("DROP MATERIALIZED VIEW IF EXISTS " + view + " CASCADE");
    EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
    for (const std::string& table : tables_) {
      client.Query(fmt::format("CALL sluice.detach_table('{}')", table));
      OnShards("DROP TABLE IF EXISTS " + table);
    }
  }

  Client Shard(int shard) { return Client(cluster_->ShardUrl(shard)); }
  void OnShards(const std::string& sql) {
    for (int shard = 1; shard <= cluster_->shards(); shard++) Shard(shard).Must(sql);
  }
  // Replication slots and publications on all shards.
  std::string Slots() {
    int slots = 0, publications = 0;
    for (int shard = 1; shard <= cluster_->shards(); shard++) {
      slots += std::stoi(Shard(shard).Value("SELECT count(*) FROM pg_replication_slots"));
      publications += std::stoi(Shard(shard).Value("SELECT count(*) FROM pg_publication"));
    }
    return fmt::format("{} {}", slots, publications);
  }
  // A table on every shard, attached as one; each shard's ids are its own.
  void MakeTable(const std::string& name, const std::string& columns, int rows,
                 const std::string& select) {
    tables_.push_back(name);
    OnShards(fmt::format("DROP TABLE IF EXISTS {0}; CREATE TABLE {0} ({1})", name, columns));
    for (int shard = 1; shard <= cluster_->shards(); shard++)
      Shard(shard).Must(fmt::format("INSERT INTO {} SELECT {} FROM generate_series({}, {}) i", name,
                                    select, shard * 1000000, shard * 1000000 + rows - 1));
    client_->Must(fmt::format("CALL sluice.attach_table('{}')", name));
  }
  void MakeView(const std::string& name, const std::string& query) {
    views_.push_back(name);
    client_->Must(fmt::format("CREATE MATERIALIZED VIEW {} AS {}", name, query));
  }
  void ExpectSame(const std::string& view, const std::string& query) {
    client_->Must("FLUSH");
    Answer stored = client_->Must("SELECT * FROM " + view);
    Answer computed = client_->Must(query);
    EXPECT_EQ(stored.rows.size(), computed.rows.size()) << view;
    EXPECT_TRUE(stored.Text(false) == computed.Text(false)) << view << " differs from " << query;
  }
  pid_t ViewWorker() {
    return std::stoi(
        client_->Value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'view worker'"));
  }
  // And with it, by the crash rule, every session; until all is there again.
  void KillViewWorker() {
    pid_t killed = ViewWorker();
    kill(killed, SIGKILL);
    ASSERT_TRUE(Eventually(
        [&] {
          client_.emplace(cluster_->Url());
          if (!client_->connected()) return false;
          Answer answer =
              client_->Query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'view worker'");
          return answer.rows.size() == 1 && answer.rows[0][0] != std::to_string(killed);
        },
        30));
  }

  static inline Cluster* cluster_ = nullptr;
  std::optional<Client> client_;
  std::vector<std::string> views_, tables_;
};

TEST_F(LiveView, ACopyOfATableFollowsItsChanges) {
  MakeTable("a", "id int PRIMARY KEY, v text", 5000, "i, 'row ' || i");
  MakeView("m", "SELECT * FROM a");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m"), "10000");
  Shard(1).Must("INSERT INTO a VALUES (7, 'new'); UPDATE a SET v = NULL WHERE id % 3 = 0");
  Shard(2).Must("DELETE FROM a WHERE id % 2 = 0; UPDATE a SET id = id + 5000000 WHERE id % 5 = 1");
  ExpectSame("m", "SELECT * FROM a");
  OnShards("TRUNCATE a");
  ExpectSame("m", "SELECT * FROM a");
  Shard(2).Must("INSERT INTO a VALUES (1, 'x')");
  ExpectSame("m", "SELECT * FROM a");
}

TEST_F(LiveView, AnUnchangedLargeValueStays) {
  MakeTable("a", "id int PRIMARY KEY, n int, v text", 0, "i, i, ''");
  MakeView("m", "SELECT * FROM a");
  Shard(1).Must(
      "ALTER TABLE a ALTER v SET STORAGE EXTERNAL; INSERT INTO a VALUES (1, 1, repeat('x', "
      "20000))");
  Shard(1).Must("UPDATE a SET n = 2");
  ExpectSame("m", "SELECT * FROM a");
  EXPECT_EQ(client_->Value("SELECT n || ' ' || length(v) FROM m"), "2 20000");
}

TEST_F(LiveView, AKeylessTableNeedsFullReplicaIdentity) {
  MakeTable("a", "v int", 100, "i");
  views_.push_back("m");
  Answer refused = client_->Query("CREATE MATERIALIZED VIEW m AS SELECT * FROM a");
  EXPECT_EQ(refused.sqlstate, "55000");
  EXPECT_EQ(Slots(), "0 0");
  OnShards("ALTER TABLE a REPLICA IDENTITY FULL");
  MakeView("m", "SELECT * FROM a");
  Shard(1).Must("INSERT INTO a VALUES (5), (5), (5); UPDATE a SET v = v + 1 WHERE v < 1000020");
  Shard(2).Must("DELETE FROM a WHERE v % 2 = 0");
  ExpectSame("m", "SELECT * FROM a");
}

TEST_F(LiveView, AViewOnAViewIsCreatedWhileThatIsCreating) {
  MakeTable("a", "id int PRIMARY KEY, v text", 20000, "i, 'row ' || i");
  client_->Must("SET background_ddl = on");
  MakeView("m1", "SELECT * FROM a");
  MakeView("m2", "SELECT id FROM m1 WHERE id % 2 = 0");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m2"), "20000");  // waits
  client_->Must("WAIT");
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 0u);
  Answer kept = client_->Query("DROP MATERIALIZED VIEW m1");
  EXPECT_EQ(kept.sqlstate, "2BP01");
  Shard(1).Must("DELETE FROM a WHERE id % 4 = 0");
  ExpectSame("m2", "SELECT id FROM a WHERE id % 2 = 0");
  client_->Must("DROP MATERIALIZED VIEW m1 CASCADE");
  EXPECT_EQ(client_->Query("SELECT * FROM m2").sqlstate, "42P01");
}

TEST_F(LiveView, APausedBackfillWaitsAndCanBeCancelled) {
  MakeTable("a", "id int PRIMARY KEY, v text", 5000, "i, 'row ' || i");
  client_->Must("SET background_ddl = on");
  views_ = {"m1"};
  client_->Must("CREATE MATERIALIZED VIEW m1 WITH (backfill_rate_limit = 0) AS SELECT * FROM a");
  Answer jobs = client_->Must("SELECT id, state FROM sluice.jobs");
  ASSERT_EQ(jobs.rows.size(), 1u);
  EXPECT_EQ(jobs.rows[0][1], "creating");
  client_->Must("SET statement_timeout = '300ms'");
  EXPECT_EQ(client_->Query("SELECT * FROM m1").sqlstate, "57014");
  EXPECT_EQ(client_->Query("WAIT MATERIALIZED VIEW m1").sqlstate, "57014");
  client_->Must("RESET statement_timeout; SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Query("SELECT * FROM m1").sqlstate, "55000");
  client_->Must("ALTER MATERIALIZED VIEW m1 SET (backfill_rate_limit = 20000)");
  client_->Must("WAIT MATERIALIZED VIEW m1");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m1"), "10000");
  client_->Must("CREATE MATERIALIZED VIEW m2 WITH (backfill_rate_limit = 0) AS SELECT * FROM m1");
  client_->Must("CANCEL JOBS " + client_->Value("SELECT id FROM sluice.jobs"));
  EXPECT_EQ(client_->Query("SELECT * FROM m2").sqlstate, "42P01");
}

TEST_F(LiveView, AKilledViewWorkerGoesOnFromWhereItWasDurable) {
  MakeTable("a", "id int PRIMARY KEY, v text", 30000, "i, 'row ' || i");
  client_->Must("SET background_ddl = on");
  views_ = {"m"};
  client_->Must("CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = 40000) AS SELECT * FROM a");
  for (int i = 0; i < 3; i++) {
    std::this_thread::sleep_for(300ms);
    Shard(1).Must("UPDATE a SET v = v || '!' WHERE id % 7 = 0; DELETE FROM a WHERE id % 101 = 0");
    KillViewWorker();
    Shard(2).Must(fmt::format("INSERT INTO a VALUES ({}, 'late')", i));
  }
  client_->Must("WAIT");
  ExpectSame("m", "SELECT * FROM a");
  KillViewWorker();
  Shard(1).Must("INSERT INTO a VALUES (3, 'after')");
  ExpectSame("m", "SELECT * FROM a");
}

// A transaction whose commit record is in the WAL, so that the stream has it, but which no snapshot
// sees yet: it waits for a standby. Positions in the WAL alone would lose it or take it in twice.
TEST_F(LiveView, ACommitThatIsNotVisibleYetIsTakenInOnce) {
  MakeTable("a", "id int PRIMARY KEY, v text", 2000, "i, 'row ' || i");
  Client shard = Shard(1);
  shard.Must("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  shard.Must("SELECT pg_reload_conf()");
  std::this_thread::sleep_for(200ms);
  Client writer = Shard(1);
  PQsendQuery(writer.raw(),
              "SET synchronous_commit = on; BEGIN; UPDATE a SET v = 'x' WHERE id % 2 = 0; "
              "DELETE FROM a WHERE id % 5 = 0; INSERT INTO a VALUES (1, 'new'); COMMIT");
  std::this_thread::sleep_for(300ms);
  client_->Must("SET background_ddl = on");
  MakeView("m", "SELECT * FROM a");
  std::this_thread::sleep_for(1500ms);
  shard.Must("ALTER SYSTEM RESET synchronous_standby_names");
  shard.Must("SELECT pg_reload_conf()");
  while (PGresult* result = PQgetResult(writer.raw())) PQclear(result);
  client_->Must("WAIT");
  ExpectSame("m", "SELECT * FROM a");
}

// Transfers over both shards, through Sluice: at every read the view has both halves or none.
TEST_F(LiveView, ATransactionOverSeveralShardsIsSeenWhole) {
  MakeTable("a", "id int PRIMARY KEY, n int", 10, "i, 100");
  MakeView("m", "SELECT id, n FROM a");
  std::atomic<bool> stop = false;
  std::atomic<int> transfers = 0;
  std::thread writer([&] {
    Client client(cluster_->Url());
    for (int i = 0; !stop; i++) {
      client.Query(
          fmt::format("BEGIN; UPDATE a SET n = n - 1 WHERE id = {}; UPDATE a SET n = n + 1 "
                      "WHERE id = {}; COMMIT",
                      1000000 + i % 10, 2000000 + i % 7));
      transfers++;
    }
  });
  EXPECT_TRUE(Eventually(
      [&] {
        EXPECT_EQ(client_->Value("SELECT sum(n) FROM m"), "2000");
        return transfers > 200 || HasFailure();
      },
      60));
  stop = true;
  writer.join();
  ExpectSame("m", "SELECT id, n FROM a");
  EXPECT_NE(client_->Value("SELECT min(n) FROM m"), "100");
}

// Random changes from several clients while views are created, dropped and the view worker is
// killed; in the end every view equals its recomputation.
TEST_F(LiveView, RandomChangesWhileViewsComeAndGo) {
  unsigned seed = std::random_device()();
  if (const char* given = std::getenv("SLUICE_SEED")) seed = static_cast<unsigned>(atoi(given));
  SCOPED_TRACE(fmt::format("SLUICE_SEED={}", seed));
  MakeTable("a", "id int PRIMARY KEY, g int, v text", 20000, "i, i % 10, 'row ' || i");
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; w++)
    writers.emplace_back([&, w] {
      std::mt19937 random(seed + static_cast<unsigned>(w));
      int shard = w % cluster_->shards() + 1;
      Client client = Shard(shard);
      auto id = [&] { return shard * 1000000 + static_cast<int>(random() % 25000); };
      while (!stop) {
        std::string sql = "BEGIN;";
        for (unsigned n = random() % 4; n > 0; n--) {
          switch (random() % 4) {
            case 0:
              sql += fmt::format(
                  "INSERT INTO a VALUES ({}, {}, 'n') ON CONFLICT (id) DO UPDATE SET "
                  "v = a.v || '+';",
                  id(), random() % 10);
              break;
            case 1:
              sql += fmt::format("UPDATE a SET g = {}, v = NULL WHERE id BETWEEN {} AND {};",
                                 random() % 10, id(), id());
              break;
            case 2:
              sql += fmt::format("DELETE FROM a WHERE id = {};", id());
              break;
            default:
              sql += fmt::format(
                  "UPDATE a SET id = {} WHERE id = {} AND NOT EXISTS (SELECT FROM a "
                  "WHERE id = {});",
                  id(), id(), id());
          }
        }
        client.Query(sql + (random() % 5 == 0 ? "ROLLBACK" : "COMMIT"));
        client.Query("ROLLBACK");
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
      }
    });
  std::mt19937 random(seed);
  views_ = {"m1", "m2", "m3"};
  const std::string m1 = "SELECT id, g, v FROM a", m2 = "SELECT id, v FROM m1 WHERE g < 5";
  auto create = [&](const std::string& name, const std::string& query) {
    client_->Query("SET background_ddl = on");
    client_->Query(
        fmt::format("CREATE MATERIALIZED VIEW IF NOT EXISTS {} WITH "
                    "(backfill_rate_limit = 30000) AS {}",
                    name, query));
  };
  for (int round = 0; round < 8; round++) {
    create("m1", m1);
    create("m2", m2);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 500));
    if (random() % 2 == 0) KillViewWorker();
    if (random() % 3 == 0)
      client_->Query(
          fmt::format("DROP MATERIALIZED VIEW {} CASCADE", random() % 2 == 0 ? "m1" : "m2"));
  }
  create("m1", m1);
  create("m2", m2);
  stop = true;
  for (std::thread& writer : writers) writer.join();
  client_->Must("WAIT");
  ExpectSame("m1", m1);
  ExpectSame("m2", "SELECT id, v FROM a WHERE g < 5");
}

}  // namespace
}  // namespace sluice::test
