// Live views over real shards: created, fed, read, waited for, dropped.
#include <gtest/gtest.h>

#include "tests/live_view_for_test.h"

namespace sluice::test {
namespace {

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

}  // namespace
}  // namespace sluice::test
