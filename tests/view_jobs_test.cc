// Creating live views: what the commands say, what is visible meanwhile, and how jobs end. The
// numbers are those of the list that the commands were made by.
#include <fstream>

#include "tests/live_view_for_test.h"

namespace sluice::test {
namespace {

class ViewJobs : public LiveView {
 protected:
  void SetUp() override {
    LiveView::SetUp();
    ListenTo(&*client_);
  }
  void ListenTo(Client* client) {
    PQsetNoticeProcessor(
        client->raw(), [](void* to, const char* text) { *static_cast<std::string*>(to) += text; },
        &notices_);
  }
  std::string TakeNotices() { return std::exchange(notices_, {}); }
  void MakePaused(const std::string& name, const std::string& query) {
    views_.push_back(name);
    client_->Must("SET background_ddl = on");
    client_->Must(fmt::format("CREATE MATERIALIZED VIEW {} WITH (backfill_rate_limit = 0) AS {}",
                              name, query));
  }
  std::string State(const std::string& view) {
    Answer answer =
        client_->Must("SELECT state FROM sluice.jobs WHERE view = 'public." + view + "'");
    return answer.rows.empty() ? "created" : answer.rows[0][0].value_or("");
  }
  void ExpectState(const std::string& view, const std::string& state) {
    EXPECT_TRUE(Eventually([&] { return State(view) == state; }, 20)) << view << " " << State(view);
  }
  void Restart() {
    std::string directory = cluster_->directory() + "/sluice";
    ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "stop", "-D", directory}), 0);
    ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "start", "-D", directory}), 0);
    client_.emplace(cluster_->Url());
    ListenTo(&*client_);
  }
  // Rows of the table that scans of any kind have read on all shards, as far as these have told.
  int64_t RowsRead(const std::string& table) {
    int64_t rows = 0;
    for (int shard = 1; shard <= cluster_->shards(); shard++)
      rows += std::stoll(Shard(shard).Value(
          fmt::format("SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int8 "
                      "FROM pg_stat_user_tables WHERE relname = '{}'",
                      table)));
    return rows;
  }
  // Statistics come late: those of a connection that idles, within ten seconds.
  void ExpectReadOnce(const std::string& table, int64_t rows, double times) {
    EXPECT_TRUE(Eventually([&] { return RowsRead(table) >= rows; }, 20)) << RowsRead(table);
    std::this_thread::sleep_for(500ms);
    EXPECT_LE(static_cast<double>(RowsRead(table)), times * static_cast<double>(rows));
  }

  std::string notices_;
};

// The session that the feature is for, as it stands.
TEST_F(ViewJobs, TheSessionRunsAsItStands) {
  client_->Must("SET BACKGROUND_DDL=true;");
  std::string notice = TakeNotices();
  EXPECT_NE(notice.find("returns before the view is complete"), std::string::npos) << notice;
  EXPECT_NE(notice.find("docs/live_views.md"), std::string::npos) << notice;
  client_->Must("CREATE TABLE t (v1 int);");
  client_->Must("INSERT INTO t select * from generate_series(1, 300000);");
  client_->Must("FLUSH;");
  views_ = {"m1"};
  client_->Must("CREATE MATERIALIZED VIEW m1 as SELECT * FROM t;");
  TakeNotices();
  client_->Must("CREATE MATERIALIZED VIEW m2 as SELECT * FROM m1;");
  notice = TakeNotices();
  EXPECT_EQ(State("m2"), "creating");  // 300000 rows take longer than two statements
  EXPECT_NE(notice.find("materialized view m1 is still being created"), std::string::npos);
  EXPECT_NE(notice.find("Queries of m2 wait until then"), std::string::npos) << notice;
  EXPECT_NE(notice.find("WAIT MATERIALIZED VIEW m2"), std::string::npos) << notice;
  client_->Must("WAIT MATERIALIZED VIEW m2");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m2"), "300000");
  ExpectVerified("m2");
  client_->Must("DROP MATERIALIZED VIEW m1 CASCADE");
  client_->Must("DROP TABLE t");
}

// 1
TEST_F(ViewJobs, InTheForegroundEveryObjectIsCompleteWhenItsStatementReturns) {
  MakeTable("a", "id int PRIMARY KEY, g int", 20000, "i, i % 100");
  views_ = {"m3", "m1"};
  client_->Must("CREATE MATERIALIZED VIEW m1 AS SELECT g, count(*) AS n FROM a GROUP BY g");
  client_->Must("CREATE TABLE t2 AS SELECT g, n FROM m1 WHERE n > 0");
  EXPECT_EQ(client_->Value("SELECT sum(n) FROM t2"), "40000");
  client_->Must("CREATE MATERIALIZED VIEW m3 AS SELECT m1.g, t2.n FROM m1 JOIN t2 USING (g)");
  client_->Must("SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m3"), "100");
  client_->Must("DROP MATERIALIZED VIEW m3");
  client_->Must("DROP TABLE t2");
}

// 1: in the foreground it waits for a creating upstream too; and TABLE AS for complete rows.
TEST_F(ViewJobs, TheForegroundWaitsForACreatingUpstream) {
  MakeTable("a", "id int PRIMARY KEY", 3000, "i");
  MakePaused("m1", "SELECT * FROM a");
  views_.push_back("m2");
  Client other(cluster_->Url());
  PQsendQuery(other.raw(), "CREATE MATERIALIZED VIEW m2 AS SELECT id FROM m1");
  ExpectState("m2", "caught up");
  Client third(cluster_->Url());
  PQsendQuery(third.raw(), "CREATE TABLE t2 AS SELECT * FROM m1");
  std::this_thread::sleep_for(200ms);
  PQconsumeInput(other.raw());
  PQconsumeInput(third.raw());
  EXPECT_TRUE(PQisBusy(other.raw()));
  EXPECT_TRUE(PQisBusy(third.raw()));
  EXPECT_EQ(client_->Value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
                           "'ViewProgress'"),
            "2");
  client_->Must("ALTER MATERIALIZED VIEW m1 RESET (backfill_rate_limit)");
  while (PGresult* result = PQgetResult(other.raw())) PQclear(result);
  while (PGresult* result = PQgetResult(third.raw())) PQclear(result);
  client_->Must("SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m2"), "6000");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM t2"), "6000");
  client_->Must("DROP TABLE t2");
}

// 2
TEST_F(ViewJobs, ACreatingViewIsVisibleEverywhereAlsoAfterARestart) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  MakePaused("m1", "SELECT * FROM a");
  auto look = [&](Client* client) {
    EXPECT_EQ(client->Value("SELECT state FROM sluice.jobs"), "creating");
    EXPECT_EQ(client->Must("SELECT matviewname, ispopulated FROM pg_matviews").Text(true),
              "[m1] [f] \n");
    EXPECT_EQ(client->Value("SELECT relkind FROM pg_class WHERE relname = 'm1'"), "m");
    EXPECT_EQ(client->Value("SELECT count(*) FROM pg_attribute WHERE attrelid = 'm1'::regclass "
                            "AND attnum > 0"),
              "1");
  };
  look(&*client_);
  Client other(cluster_->Url());
  look(&other);
  Restart();
  look(&*client_);
  client_->Must("SET background_ddl = on");
  client_->Must("CREATE MATERIALIZED VIEW m2 AS SELECT id + 1 AS id FROM m1");
  views_ = {"m2", "m1"};
  client_->Must("ALTER MATERIALIZED VIEW m1 RESET (backfill_rate_limit)");
  client_->Must("WAIT");
  ExpectVerified("m2");
}

// 3
TEST_F(ViewJobs, AQueryOfACreatingViewCanBeCancelled) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  MakePaused("m1", "SELECT * FROM a");
  for (const char* sql : {"SELECT * FROM m1", "WAIT", "WAIT MATERIALIZED VIEW m1",
                          "CREATE TABLE t9 AS SELECT * FROM m1"}) {
    PQsendQuery(client_->raw(), sql);
    std::this_thread::sleep_for(100ms);
    client_->Cancel();
    PGresult* result = PQgetResult(client_->raw());
    EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014") << sql;
    PQclear(result);
    while (PGresult* more = PQgetResult(client_->raw())) PQclear(more);
  }
}

// 4, 5
TEST_F(ViewJobs, AnyShapeOfCreatingViewsIsBuiltTogether) {
  MakeTable("a", "id int PRIMARY KEY, g int, n int", 6000, "i, i % 20, i % 7");
  MakeTable("b", "g int PRIMARY KEY, name text", 10, "i % 1000000, 'group ' || i");
  MakePaused("m1", "SELECT id, g, n FROM a WHERE n > 0");
  client_->Must("SET background_ddl = on");
  auto create = [&](const std::string& name, const std::string& query) {
    views_.insert(views_.begin(), name);
    client_->Must(fmt::format("CREATE MATERIALIZED VIEW {} AS {}", name, query));
  };
  create("left_side", "SELECT g, count(*) AS n FROM m1 GROUP BY g");
  create("right_side", "SELECT g, sum(n) AS s FROM m1 GROUP BY g");
  create("diamond", "SELECT l.g, l.n, r.s FROM left_side l JOIN right_side r ON l.g = r.g");
  create("mixed",
         "SELECT d.g, b.name, a.id FROM diamond d JOIN b ON d.g = b.g JOIN a ON a.id = "
         "1000000 + d.g");
  create("lonely", "SELECT count(*) AS n FROM b");
  ExpectState("lonely", "created");  // nothing that it reads is waited for
  ExpectState("left_side", "caught up");
  ExpectState("diamond", "caught up");
  EXPECT_EQ(State("m1"), "creating");
  EXPECT_EQ(client_->Value("SELECT waits_for FROM sluice.jobs WHERE view = 'public.diamond'"),
            "public.left_side, public.right_side");
  client_->Must("ALTER MATERIALIZED VIEW m1 SET (backfill_rate_limit = 3000)");
  std::this_thread::sleep_for(300ms);
  // Writers go on, on both sides.
  Shard(1).Must("DELETE FROM a WHERE id % 11 = 0; UPDATE a SET n = 6 - n WHERE id % 3 = 0");
  Shard(2).Must("UPDATE a SET g = g + 1 WHERE id % 5 = 0; INSERT INTO b VALUES (20, 'twenty')");
  client_->Must("ALTER MATERIALIZED VIEW m1 RESET (backfill_rate_limit)");
  client_->Must("WAIT");
  for (const std::string& view : views_) ExpectVerified(view);
}

// 5: an upstream becomes created though a downstream still works.
TEST_F(ViewJobs, AnUpstreamDoesNotWaitForItsDownstream) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  MakeView("m1", "SELECT * FROM a");
  MakePaused("m2", "SELECT * FROM m1");
  ExpectState("m2", "creating");
  EXPECT_EQ(State("m1"), "created");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m1"), "200");
  client_->Must("DROP MATERIALIZED VIEW m2");
}

// 6, 11
TEST_F(ViewJobs, ATransactionCannotWaitForItsOwnViews) {
  MakeTable("a", "id int PRIMARY KEY", 10, "i");
  for (const char* sql :
       {"SELECT * FROM mine", "WAIT", "WAIT MATERIALIZED VIEW mine",
        "SELECT * FROM sluice.verify('mine')", "CREATE TABLE other AS SELECT * FROM mine",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM mine"}) {
    client_->Must("BEGIN");
    client_->Must("CREATE MATERIALIZED VIEW mine AS SELECT * FROM a");
    EXPECT_EQ(client_->Query(sql).sqlstate, "55000") << sql;
    client_->Must("ROLLBACK");
  }
  EXPECT_EQ(client_->Query("SELECT * FROM mine").sqlstate, "42P01");
  EXPECT_EQ(Slots(), "0 0");
}

// 3: whatever it is that reads the view; and for nothing that another session drops meanwhile.
TEST_F(ViewJobs, EverythingThatReadsACreatingViewWaits) {
  MakeTable("a", "id int PRIMARY KEY", 10, "i");
  client_->Must("SET creating_view_read = 'error'");
  MakePaused("m1", "SELECT * FROM a");
  for (const char* sql :
       {"SELECT * FROM m1", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM m1",
        "SELECT * FROM sluice.verify('m1')", "COPY m1 TO STDOUT", "EXPLAIN ANALYZE TABLE m1",
        "SELECT (SELECT count(*) FROM m1)", "CREATE TABLE other AS SELECT * FROM m1",
        "INSERT INTO a SELECT id + 100 FROM m1", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM m1"})
    EXPECT_EQ(client_->Query(sql).message, "materialized view \"m1\" is still being created")
        << sql;
  Client waiting(cluster_->Url());
  waiting.Must("BEGIN");
  waiting.Must("CREATE ROLE nobody");  // its catalog is its own
  waiting.Send("SELECT count(*) FROM m1");
  EXPECT_FALSE(waiting.Await(0.5));
  client_->Must("DROP MATERIALIZED VIEW m1");
  std::optional<Answer> answer = waiting.Await(10);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->sqlstate, "42P01");
  waiting.Must("ROLLBACK");
}

// 6
TEST_F(ViewJobs, FlushReturnsWhenAllThatWasCommittedIsThere) {
  MakeTable("a", "id int PRIMARY KEY, n int", 0, "i, i");
  MakeView("m", "SELECT count(*) AS n FROM a");
  MakeView("m2", "SELECT n + 0 AS n FROM m");
  for (int i = 1; i <= 20; i++) {
    Shard(i % 2 + 1).Must(fmt::format("INSERT INTO a VALUES ({})", i));
    if (i % 2 == 0) {
      client_->Must("FLUSH");
    } else {
      client_->Must("SET fresh_reads = on");
    }
    EXPECT_EQ(client_->Value("SELECT n FROM m2"), std::to_string(i));
    client_->Must("RESET fresh_reads");
  }
}

// 7
TEST_F(ViewJobs, JobsTellHowFarTheyAre) {
  MakeTable("a", "id int PRIMARY KEY, v text", 20000, "i, 'row ' || i");
  OnShards("ANALYZE a");
  views_ = {"m1"};
  client_->Must("SET background_ddl = on");
  const std::string create =
      "CREATE MATERIALIZED VIEW m1 WITH (backfill_rate_limit = 4000) AS SELECT * FROM a";
  client_->Must(create);
  auto job = [&] {
    return client_->Must(
        "SELECT id, statement, rows_done, rows_estimated, shards, percent, rows_per_second, eta, "
        "started_at <= now() AND started_at > now() - interval '1 min', state, error "
        "FROM sluice.jobs");
  };
  Answer answer;
  EXPECT_TRUE(Eventually(
      [&] {
        answer = job();
        return answer.rows.size() != 1 || std::stoi(answer.rows[0][2].value_or("0")) >= 8000;
      },
      20));
  ASSERT_EQ(answer.rows.size(), 1u);
  const auto& row = answer.rows[0];
  EXPECT_EQ(row[0], Job("m1"));
  EXPECT_EQ(row[1], create);
  EXPECT_LT(std::stoi(*row[2]), 40000);
  EXPECT_EQ(row[3], "40000");
  EXPECT_NE(row[4]->find("/20000, shard2 "), std::string::npos) << *row[4];
  EXPECT_NEAR(std::stod(*row[5]), std::stod(*row[2]) / 400, 0.1);
  EXPECT_GT(std::stod(row[6].value_or("0")), 0);
  EXPECT_TRUE(row[7]->starts_with("00:00:")) << *row[7];
  EXPECT_EQ(row[8], "t");
  EXPECT_EQ(row[9], "creating");
  EXPECT_EQ(row[10], std::nullopt);
  EXPECT_EQ(client_->Must("SHOW JOBS").names.size(), 13u);
  client_->Must("ALTER MATERIALIZED VIEW m1 RESET (backfill_rate_limit)");
  client_->Must("WAIT");
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 0u);
}

// 7, 8
TEST_F(ViewJobs, CancelledJobsNeverComeBack) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  for (const char* name : {"m1", "m2", "m3"}) MakePaused(name, "SELECT * FROM a");
  // In any order, though one reads the other; all or none.
  MakePaused("m4", "SELECT * FROM m1");
  EXPECT_EQ(client_->Query("CANCEL JOBS " + Job("m2") + ", 1").sqlstate, "42704");
  EXPECT_EQ(client_->Query("CANCEL JOBS " + Job("m1")).sqlstate, "2BP01");
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 4u);
  std::string m3 = Job("m3");
  client_->Must(
      fmt::format("CANCEL JOBS {}, {}, {}, {}", Job("m1"), Job("m2"), Job("m4"), Job("m2")));
  EXPECT_EQ(client_->Value("SELECT view FROM sluice.jobs"), "public.m3");
  client_->Must("CANCEL JOB " + m3);
  EXPECT_EQ(client_->Query("CANCEL JOBS " + m3).sqlstate, "42704");
  EXPECT_EQ(client_->Query("SELECT * FROM m1").sqlstate, "42P01");
  KillViewWorker();
  Restart();
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 0u);
  EXPECT_EQ(client_->Value("SELECT count(*) FROM pg_matviews"), "0");
  EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
}

// 8
TEST_F(ViewJobs, DropInEveryState) {
  MakeTable("a", "id int PRIMARY KEY, v int", 100, "i, i");
  MakePaused("creating", "SELECT * FROM a");
  client_->Must("CREATE MATERIALIZED VIEW caught_up AS SELECT id FROM creating");
  MakeView("created", "SELECT v FROM a");
  client_->Must("WAIT MATERIALIZED VIEW created");
  client_->Must("CREATE MATERIALIZED VIEW on_created AS SELECT v FROM created");
  client_->Must("WAIT MATERIALIZED VIEW on_created");
  MakePaused("fails", "SELECT id, v FROM a WHERE v > 5");
  client_->Must("CREATE MATERIALIZED VIEW on_fails AS SELECT id FROM fails");
  ExpectState("caught_up", "caught up");
  for (const auto& [name, reader] : std::vector<std::pair<std::string, std::string>>{
           {"creating", "caught_up"}, {"created", "on_created"}, {"fails", "on_fails"}}) {
    Answer refused = client_->Query("DROP MATERIALIZED VIEW " + name);
    EXPECT_EQ(refused.sqlstate, "2BP01");
    EXPECT_NE(refused.detail.find("materialized view " + reader + " depends on"), std::string::npos)
        << refused.detail;
    client_->Must("DROP MATERIALIZED VIEW " + name + " CASCADE");
    EXPECT_EQ(client_->Query("SELECT * FROM " + reader).sqlstate, "42P01");
  }
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 0u);
  EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
}

// 8
TEST_F(ViewJobs, AForegroundCreateThatIsInterruptedLeavesNothing) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  const std::string create =
      "CREATE MATERIALIZED VIEW m1 WITH (backfill_rate_limit = 0) AS SELECT * FROM a";
  auto begun = [&] { return client_->Must("SELECT FROM sluice.jobs").rows.size() == 1; };
  {
    Client leaving(cluster_->Url());
    PQsendQuery(leaving.raw(), create.c_str());
    EXPECT_TRUE(Eventually(begun, 20));
  }
  EXPECT_TRUE(Eventually([&] { return client_->Must("SHOW JOBS").rows.empty(); }, 20));
  Client other(cluster_->Url());
  PQsendQuery(other.raw(), create.c_str());
  EXPECT_TRUE(Eventually(begun, 20));
  other.Cancel();
  PGresult* result = PQgetResult(other.raw());
  EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
  PQclear(result);
  EXPECT_EQ(client_->Must("SHOW JOBS").rows.size(), 0u);
  EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
}

// 9
TEST_F(ViewJobs, ABackfillKilledTenTimesReadsTheTableOnce) {
  // A kill loses a piece a shard, of at most a second's rows: 10 of them at most 30,000.
  MakeTable("a", "id int PRIMARY KEY, v text", 150'000, "i, 'row ' || i");
  client_->Must("SET background_ddl = on");
  views_ = {"m"};
  client_->Must("CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = 1500) AS SELECT * FROM a");
  for (int i = 0; i < 10; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + 70 * i));
    KillViewWorker();
  }
  EXPECT_EQ(State("m"), "creating");
  client_->Must("ALTER MATERIALIZED VIEW m RESET (backfill_rate_limit)");
  client_->Must("WAIT");
  ExpectReadOnce("a", 300'000, 1.1);
  ExpectVerified("m");
}

// 9
TEST_F(ViewJobs, AFailedJobLeavesNothingBehind) {
  MakeTable("a", "id int PRIMARY KEY, v int", 100, "i, i");
  MakePaused("m1", "SELECT * FROM a");
  ExpectState("m1", "creating");
  EXPECT_TRUE(Eventually(
      [&] { return Shard(1).Value("SELECT count(*) FROM pg_publication_tables") == "1"; }, 20));
  OnShards("ALTER TABLE a DROP COLUMN v");
  client_->Must("ALTER MATERIALIZED VIEW m1 RESET (backfill_rate_limit)");
  ExpectState("m1", "failed");
  Answer job = client_->Must("SELECT error FROM sluice.jobs");
  EXPECT_NE(job.rows[0][0].value_or("").find("column \"v\""), std::string::npos);
  EXPECT_EQ(client_->Query("SELECT * FROM m1").sqlstate, "42703");
  EXPECT_TRUE(Eventually([&] { return Slots() == "0 0"; }, 20)) << Slots();
  // Once it can be built, REFRESH builds it.
  OnShards("ALTER TABLE a ADD COLUMN v int");
  client_->Must("SET background_ddl = off");
  client_->Must("REFRESH MATERIALIZED VIEW m1");
  ExpectVerified("m1");
}

// 10
TEST_F(ViewJobs, ABackfillYieldsToLiveChanges) {
  MakeTable("a", "id int PRIMARY KEY, n int, t text", 250000, "i, i % 1000, 'row ' || i");
  MakeTable("live", "id int PRIMARY KEY", 1, "i");
  MakeView("now", "SELECT count(*) AS n FROM live");
  client_->Must("SET background_ddl = on");
  MakeView("m1", "SELECT n, count(*) AS c, max(t) AS t FROM a GROUP BY n");
  MakeView("m2", "SELECT x.id, y.t FROM a x JOIN a y ON x.id = y.id + 1");
  Client shard = Shard(1);
  int seen = 0;
  double longest = 0;
  while (State("m2") != "created") {
    shard.Must(fmt::format("INSERT INTO live VALUES ({})", ++seen));
    auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(Eventually(
        [&] { return client_->Value("SELECT n FROM now") == std::to_string(seen + 2); }, 20));
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    longest = std::max(longest, took.count());
  }
  EXPECT_GT(seen, 5);
  EXPECT_LT(longest, 2.0);
  printf("%d changes were seen during the backfill, each within %.0f ms\n", seen, longest * 1000);
}

// 10
TEST_F(ViewJobs, ALimitOfRowsASecondIsKept) {
  MakeTable("a", "id int PRIMARY KEY", 2000, "i");
  MakePaused("m1", "SELECT * FROM a");
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(client_->Value("SELECT rows_done FROM sluice.jobs"), "0");
  EXPECT_EQ(client_->Value("SELECT waits_for FROM sluice.jobs"), "backfill_rate_limit");
  auto begin = std::chrono::steady_clock::now();
  client_->Must("ALTER MATERIALIZED VIEW m1 SET (backfill_rate_limit = 1000)");
  client_->Must("WAIT");
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 1500ms);
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m1"), "4000");
}

// 10
TEST_F(ViewJobs, ViewsBeyondTheLimitAreQueuedInTheOrderOfCreation) {
  std::string file = cluster_->directory() + "/sluice/sluice.conf", before = ReadFile(file);
  std::ofstream(file, std::ios::app) << "\nmax_backfills = 1\n";
  ASSERT_EQ(
      cluster_->RunAsOwner({SluiceBinary(), "reload", "-D", cluster_->directory() + "/sluice"}), 0);
  MakeTable("a", "id int PRIMARY KEY", 3000, "i");
  client_.emplace(cluster_->Url());
  client_->Must("SET background_ddl = on");
  views_ = {"m3", "m2", "m1"};
  client_->Must("CREATE MATERIALIZED VIEW m1 WITH (backfill_rate_limit = 1500) AS SELECT * FROM a");
  client_->Must("CREATE MATERIALIZED VIEW m2 AS SELECT id FROM m1");
  client_->Must("CREATE MATERIALIZED VIEW m3 AS SELECT id FROM a");
  EXPECT_TRUE(Eventually(
      [&] {
        return client_->Value("SELECT waits_for FROM sluice.jobs WHERE view = 'public.m3'") ==
               "max_backfills";
      },
      20));
  EXPECT_EQ(client_->Value("SELECT rows_done FROM sluice.jobs WHERE view = 'public.m3'"), "0");
  EXPECT_EQ(client_->Value("SELECT started_at IS NULL FROM sluice.jobs WHERE view = 'public.m2'"),
            "t");
  client_->Must("WAIT");
  for (const std::string& view : views_) ExpectVerified(view);
  std::ofstream(file) << before;
  ASSERT_EQ(
      cluster_->RunAsOwner({SluiceBinary(), "reload", "-D", cluster_->directory() + "/sluice"}), 0);
}

// 11
TEST_F(ViewJobs, AWholePipelineInOneTransactionReadsTheTableOnce) {
  MakeTable("a", "id int PRIMARY KEY, g int", 20000, "i, i % 10");
  client_->Must("BEGIN");
  client_->Must("CREATE MATERIALIZED VIEW pa AS SELECT id, g FROM a WHERE g < 9");
  client_->Must("CREATE MATERIALIZED VIEW pb AS SELECT g, count(*) AS n FROM pa GROUP BY g");
  EXPECT_EQ(client_->Query("CREATE MATERIALIZED VIEW pc AS SELECT nothing FROM pb").sqlstate,
            "42703");
  client_->Must("ROLLBACK");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM pg_matviews"), "0");
  EXPECT_EQ(Slots(), "0 0");
  views_ = {"pd", "pc", "pb", "pa"};
  client_->Must("BEGIN");
  client_->Must("CREATE MATERIALIZED VIEW pa AS SELECT id, g FROM a WHERE g < 9");
  client_->Must("CREATE MATERIALIZED VIEW pb AS SELECT g, count(*) AS n FROM pa GROUP BY g");
  client_->Must("CREATE MATERIALIZED VIEW pc AS SELECT g, max(id) AS m FROM pa GROUP BY g");
  client_->Must(
      "CREATE MATERIALIZED VIEW pd AS SELECT pb.g, n, m, a.id FROM pb JOIN pc USING (g) "
      "JOIN a ON a.id = m");
  client_->Must("COMMIT");  // in the foreground: when all are created
  client_->Must("SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM pd"), "9");
  ExpectReadOnce("a", 40000, 1.05);
  for (const std::string& view : views_) ExpectVerified(view);
}

// 12
TEST_F(ViewJobs, RefreshRenameAndPrivileges) {
  MakeTable("a", "id int PRIMARY KEY", 100, "i");
  MakeView("m1", "SELECT * FROM a");
  TakeNotices();
  client_->Must("CREATE MATERIALIZED VIEW IF NOT EXISTS m1 AS SELECT 1");
  EXPECT_NE(TakeNotices().find("relation \"m1\" already exists, skipping"), std::string::npos);
  EXPECT_EQ(client_->Query("CREATE MATERIALIZED VIEW m1 AS SELECT * FROM a").sqlstate, "42P07");
  client_->Must("REFRESH MATERIALIZED VIEW m1");
  ExpectVerified("m1");
  client_->Must("REFRESH MATERIALIZED VIEW CONCURRENTLY m1");
  ExpectVerified("m1");
  client_->Must("ALTER MATERIALIZED VIEW m1 RENAME TO renamed");
  views_ = {"renamed"};
  EXPECT_EQ(client_->Query("SELECT * FROM m1").sqlstate, "42P01");
  Shard(1).Must("INSERT INTO a VALUES (5)");
  ExpectSame("renamed", "SELECT * FROM a");
  // Also where another reads it: that is not built again.
  MakeView("reader", "SELECT renamed.id, r.id AS other FROM renamed JOIN renamed r USING (id)");
  client_->Must("ALTER MATERIALIZED VIEW renamed RENAME TO again");
  client_->Must("ALTER MATERIALIZED VIEW again RENAME TO renamed_twice");
  client_->Must("SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM reader"), "201");
  Shard(2).Must("INSERT INTO a VALUES (6)");
  ExpectVerified("reader");
  client_->Must("CREATE MATERIALIZED VIEW renamed AS SELECT 1 AS id FROM a");
  KillViewWorker();
  client_->Must("SET creating_view_read = 'error'");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM reader"), "202");
  client_->Must("DROP MATERIALIZED VIEW reader");
  client_->Must("DROP MATERIALIZED VIEW renamed");
  client_->Must("ALTER MATERIALIZED VIEW renamed_twice RENAME TO renamed");
  Shard(2).Must("DELETE FROM a WHERE id = 6");
  client_->Must("FLUSH");
  client_->Must("CREATE ROLE view_reader");
  client_->Must("SET ROLE view_reader");
  Answer refused = client_->Query("SELECT * FROM renamed");
  EXPECT_EQ(refused.sqlstate, "42501");
  EXPECT_EQ(refused.message, "permission denied for materialized view renamed");
  client_->Must("RESET ROLE");
  client_->Must("GRANT SELECT ON renamed TO view_reader");
  client_->Must("SET ROLE view_reader");
  EXPECT_EQ(client_->Value("SELECT count(*) FROM renamed"), "201");
  EXPECT_EQ(client_->Query("DROP MATERIALIZED VIEW renamed").sqlstate, "42501");
  EXPECT_EQ(client_->Query("REFRESH MATERIALIZED VIEW renamed").sqlstate, "42501");
  client_->Must("RESET ROLE");
  client_->Must("REVOKE ALL ON renamed FROM view_reader");
  client_->Must("DROP ROLE view_reader");
}

}  // namespace
}  // namespace sluice::test
