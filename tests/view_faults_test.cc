// Kinds of faults that users of other systems have reported of their live views, as scripts: after
// each step every view is what its query gives.
#include "tests/live_view_for_test.h"

namespace sluice::test {
namespace {

class ViewFaults : public LiveView {
 protected:
  // Empty tables a and b on both shards.
  void SetUp() override {
    LiveView::SetUp();
    MakeTable("a", "id int PRIMARY KEY, k int, v int, s text", 0, "i, i, i, ''");
    MakeTable("b", "id int PRIMARY KEY, k int, v int, s text", 0, "i, i, i, ''");
  }
  // Each on shard 1, or on the one that it begins with ("2: …").
  void Steps(const std::vector<std::string>& steps) {
    for (std::string step : steps) {
      SCOPED_TRACE(step);
      int shard = 1;
      if (step.starts_with("2: ")) {
        shard = 2;
        step = step.substr(3);
      }
      Shard(shard).Must(step);
      for (const std::string& view : views_) ExpectVerified(view);
      if (HasFailure()) return;
    }
  }
};

TEST_F(ViewFaults, AGroupThatLosesItsValuesSumsToNull) {
  MakeView("m", "SELECT k, sum(v) AS s, avg(v) AS a, min(v), max(v), count(v) FROM a GROUP BY k");
  Steps({"INSERT INTO a VALUES (1, 1, 5), (2, 1, NULL), (3, 1, 6)",
         "DELETE FROM a WHERE v IS NOT NULL"});
  EXPECT_EQ(client_->Must("SELECT * FROM m").Text(true), "[1] NULL NULL NULL NULL [0] \n");
  Steps({"DELETE FROM a"});
  EXPECT_EQ(client_->Value("SELECT count(*) FROM m"), "0");
}

TEST_F(ViewFaults, AFullJoinOfTwoGlobalAggregates) {
  MakeView("m",
           "SELECT x.n, y.n AS o, y.v FROM (SELECT count(*) AS n FROM a) x FULL JOIN "
           "(SELECT count(*) AS n, max(v) AS v FROM b) y ON x.n = y.n");
  Steps({"INSERT INTO a VALUES (1)", "2: INSERT INTO b VALUES (1, 1, 7)",
         "2: INSERT INTO b VALUES (2, 1, 9)", "INSERT INTO a VALUES (2)", "DELETE FROM a",
         "2: DELETE FROM b"});
}

TEST_F(ViewFaults, ARightRowThatCameAndWentBeforeTheLeft) {
  MakeView("m", "SELECT a.id, b.id AS other, a.k FROM a FULL JOIN b ON a.k = b.k");
  Steps({"INSERT INTO b VALUES (1, 1)", "DELETE FROM b", "INSERT INTO a VALUES (1, 1)",
         "INSERT INTO b VALUES (2, 1); DELETE FROM b", "2: INSERT INTO b VALUES (3, 1)",
         "DELETE FROM a"});
}

TEST_F(ViewFaults, TiesForTheFirstRankComeTogether) {
  MakeView("m",
           "SELECT id, v FROM (SELECT id, v, rank() OVER (PARTITION BY k ORDER BY v DESC) "
           "AS r FROM a) x WHERE r <= 1");
  Steps({"INSERT INTO a VALUES (1, 1, 5), (2, 1, 5), (3, 1, 4)",
         "2: INSERT INTO a VALUES (4, 1, 5)", "DELETE FROM a WHERE id = 1",
         "UPDATE a SET v = 6 WHERE id = 3", "DELETE FROM a WHERE v = 6"});
}

TEST_F(ViewFaults, AFilterIsNotPushedBelowLag) {
  MakeView("m",
           "SELECT * FROM (SELECT id, k, v, lag(v) OVER (PARTITION BY k ORDER BY id) AS l "
           "FROM a) x WHERE v > 3 AND l < 3");
  Steps({"INSERT INTO a VALUES (1, 1, 1), (2, 1, 5), (3, 1, 9)", "UPDATE a SET v = 2 WHERE id = 2",
         "2: INSERT INTO a VALUES (4, 1, 4)", "DELETE FROM a WHERE id = 3"});
}

TEST_F(ViewFaults, DeletingAllRowsThatAreComparedWithTheirSum) {
  MakeView("m", "SELECT id, v FROM a WHERE v > (SELECT sum(v) / 3 FROM a)");
  Steps({"INSERT INTO a SELECT i, 1, i FROM generate_series(1, 9) i",
         "2: INSERT INTO a SELECT i, 1, i FROM generate_series(10, 19) i",
         "UPDATE a SET v = v * 10 WHERE id < 5", "DELETE FROM a", "2: DELETE FROM a",
         "INSERT INTO a VALUES (1, 1, -5)"});
}

TEST_F(ViewFaults, ACorrelatedCountOfANullKey) {
  MakeView("m", "SELECT a.id, (SELECT count(*) FROM b WHERE b.k = a.k) AS n FROM a");
  Steps({"INSERT INTO a VALUES (1, NULL), (2, 1)", "2: INSERT INTO b VALUES (1, NULL), (2, 1)",
         "UPDATE a SET k = 1 - k WHERE id = 2", "UPDATE a SET k = 1", "2: DELETE FROM b"});
}

TEST_F(ViewFaults, ExistsOverALeftJoinWithANullCorrelation) {
  MakeView("m",
           "SELECT a.id FROM a WHERE EXISTS (SELECT FROM b LEFT JOIN a x ON x.k = b.v "
           "WHERE b.k = a.v AND x.id IS NULL)");
  Steps({"INSERT INTO a VALUES (1, 1, NULL), (2, 2, 2)",
         "2: INSERT INTO b VALUES (1, 2, 9), "
         "(2, NULL, 1)",
         "INSERT INTO a VALUES (3, 9, 2)", "UPDATE a SET v = NULL WHERE id = 2",
         "2: UPDATE b SET v = NULL"});
}

TEST_F(ViewFaults, AUnionWhoseReaderSeesTheInsertBeforeTheDelete) {
  MakeView("u", "SELECT k, v FROM a UNION SELECT k, v FROM b");
  MakeView("m", "SELECT k, count(*) AS n, sum(v) AS s FROM u GROUP BY k");
  views_ = {"m", "u"};
  Steps({"INSERT INTO a VALUES (1, 1, 1)",
         "BEGIN; INSERT INTO b VALUES (1, 1, 1); DELETE FROM a; COMMIT",
         "BEGIN; INSERT INTO a VALUES (2, 1, 1); DELETE FROM b; COMMIT",
         "2: INSERT INTO b VALUES (9, 1, 1)", "DELETE FROM a", "2: DELETE FROM b"});
}

TEST_F(ViewFaults, AMaximumThatFeedsAView) {
  MakeView("top", "SELECT k, max(v) AS v FROM a GROUP BY k");
  MakeView("m", "SELECT v, count(*) AS n FROM top GROUP BY v");
  views_ = {"m", "top"};
  Steps({"INSERT INTO a VALUES (1, 1, 5), (2, 1, 7), (3, 2, 7)", "DELETE FROM a WHERE id = 2",
         "2: INSERT INTO a VALUES (4, 2, 9)", "UPDATE a SET v = NULL",
         "DELETE FROM a WHERE k = 1"});
}

TEST_F(ViewFaults, ASelfJoinBuiltRowByRow) {
  Shard(1).Must("INSERT INTO a SELECT i, i % 2, i FROM generate_series(1, 3) i");
  Shard(2).Must("INSERT INTO a SELECT i, i % 2, i FROM generate_series(11, 13) i");
  client_->Must("SET background_ddl = on");
  MakeView("copy", "SELECT id, k, v FROM a");
  views_ = {"m", "copy"};
  client_->Must(
      "CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = 1) AS SELECT x.id, y.id AS "
      "other, x.v + y.v AS v FROM copy x JOIN copy y ON x.k = y.k AND x.id <= y.id");
  for (int i = 0; i < 8; i++) {
    std::this_thread::sleep_for(300ms);
    Shard(i % 2 + 1).Must(fmt::format(
        "UPDATE a SET k = 1 - k, v = {0} WHERE id % 3 = {0} % 3; INSERT INTO a VALUES ({1}, 1, 0)",
        i, i - 100));
  }
  client_->Must("ALTER MATERIALIZED VIEW m SET (backfill_rate_limit = 1000)");
  client_->Must("WAIT");
  Steps({"DELETE FROM a WHERE k = 0"});
}

TEST_F(ViewFaults, FloatSumsWithNaNAndInfinity) {
  MakeTable("f", "id int PRIMARY KEY, k int, x float8, y float4", 0, "i, i, i, i");
  MakeView("m",
           "SELECT k, sum(x) AS x, sum(y) AS y, avg(x) AS a, max(x), min(y) FROM f GROUP BY k");
  Steps({"INSERT INTO f VALUES (1, 1, 0.1, 0.1), (2, 1, 1e300, 3), (3, 1, -1e300, 4)",
         "INSERT INTO f VALUES (4, 1, 'NaN', 'Infinity')",
         "2: INSERT INTO f VALUES (5, 1, 'Infinity', '-Infinity'), (6, 1, 0.2, 0.7)",
         "DELETE FROM f WHERE id = 4", "2: DELETE FROM f WHERE id = 5",
         "UPDATE f SET x = 0.3 WHERE id = 2", "DELETE FROM f WHERE id IN (1, 3)"});
}

TEST_F(ViewFaults, ANullDoesNotBlankLaterColumns) {
  MakeView("m", "SELECT * FROM a");
  MakeView("g", "SELECT k, v, s, count(*) AS n FROM a GROUP BY k, v, s");
  Steps({"INSERT INTO a VALUES (1, NULL, 5, 'five'), (2, 2, NULL, 'x'), (3, NULL, NULL, 'y')",
         "UPDATE a SET s = s || '!'", "UPDATE a SET k = NULL, v = 7",
         "DELETE FROM a WHERE id = 1"});
  EXPECT_EQ(client_->Must("SELECT * FROM m ORDER BY id").Text(true),
            "[2] NULL [7] [x!] \n[3] NULL [7] [y!] \n");
}

TEST_F(ViewFaults, ARowWithNullsIsUpdated) {
  OnShards("ALTER TABLE a REPLICA IDENTITY FULL");
  MakeView("m", "SELECT id, v FROM a WHERE s IS NULL");
  MakeView("n", "SELECT v, count(*) AS n FROM a GROUP BY v");
  Steps({"INSERT INTO a VALUES (1, NULL, NULL), (2, 1, NULL), (3, NULL, 3)",
         "UPDATE a SET v = 4 WHERE v IS NULL", "UPDATE a SET s = 'x' WHERE id = 1",
         "UPDATE a SET s = NULL, v = NULL WHERE id = 1", "DELETE FROM a WHERE v IS NULL"});
}

TEST_F(ViewFaults, BothSidesOfALeftJoinChangeInOneTransaction) {
  MakeView("m", "SELECT a.id, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k");
  Steps({"BEGIN; INSERT INTO a VALUES (1, 1, 1); INSERT INTO b VALUES (1, 1, 2); COMMIT",
         "BEGIN; UPDATE a SET k = 2; UPDATE b SET k = 2; COMMIT",
         "BEGIN; DELETE FROM b; UPDATE a SET v = 9; COMMIT",
         "BEGIN; INSERT INTO b VALUES (5, 2, 5); DELETE FROM a; INSERT INTO a VALUES (8, 2, 8); "
         "COMMIT"});
}

TEST_F(ViewFaults, RowsThatEqualTheMaximumWhenItMoves) {
  MakeView("m", "SELECT id, v FROM a WHERE v = (SELECT max(v) FROM a)");
  MakeView("n", "SELECT id FROM a WHERE v = (SELECT max(v) FROM b)");
  Steps({"INSERT INTO a VALUES (1, 1, 5), (2, 1, 5), (3, 1, 4)",
         "2: INSERT INTO b VALUES (1, 1, 4)", "DELETE FROM a WHERE v = 5",
         "2: INSERT INTO a VALUES (9, 1, 100)", "2: DELETE FROM b", "2: DELETE FROM a",
         "DELETE FROM a"});
}

}  // namespace
}  // namespace sluice::test
