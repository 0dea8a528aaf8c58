// Faults that users of other systems met, one test each; and how the state survives kill -9.
#include "stream/delta_operator.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stream/testing.h"

namespace sluice::testing {
namespace {

constexpr std::nullopt_t kNull = std::nullopt;

TEST(DeltaAggregateTest, AGroupThatLosesItsValuesSumsToNull) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "g int4", "v int4"}, {0});
  h.CreateView("m", "SELECT g, sum(v) AS s, count(v) AS c, count(*) AS n FROM t GROUP BY g");
  h.Insert("t", {{"1", "1", "5"}, {"2", "1", kNull}, {"3", "1", "6"}});
  h.Commit();
  h.Expect("m", {{"1", "11", "2", "3"}});
  h.Delete("t", {"1", "1", "5"});
  h.Delete("t", {"3", "1", "6"});
  h.Commit();
  h.Expect("m", {{"1", kNull, "0", "1"}});
  h.Delete("t", {"2", "1", kNull});
  h.Commit();
  h.Expect("m", {});
}

TEST(DeltaAggregateTest, AGlobalAggregateHasARowOverNothing) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT count(*) AS n, sum(v) AS s, max(v) AS x FROM t");
  h.Expect("m", {{"0", kNull, kNull}});
  h.Insert("t", {{"1", "3"}, {"2", "9"}});
  h.Commit();
  h.Expect("m", {{"2", "12", "9"}});
  h.Delete("t", {"2", "9"});
  h.Commit();
  h.Expect("m", {{"1", "3", "3"}});
  h.Truncate("t");
  h.Commit();
  h.Expect("m", {{"0", kNull, kNull}});
}

TEST(DeltaJoinTest, AFullJoinOfTwoGlobalAggregates) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m",
               "SELECT a.n AS an, b.n AS bn FROM (SELECT count(*) AS n FROM t) a FULL JOIN "
               "(SELECT count(*) AS n FROM u) b ON a.n = b.n");
  h.Expect("m", {{"0", "0"}});
  h.Insert("t", {{"1", "1"}});
  h.Commit();
  h.Expect("m", {{"1", kNull}, {kNull, "0"}});
  h.Insert("u", {{"1", "1"}});
  h.Commit();
  h.Expect("m", {{"1", "1"}});
}

TEST(DeltaJoinTest, ARightRowThatCameAndWentBeforeTheLeft) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT t.id AS a, u.id AS b FROM t FULL JOIN u ON t.v = u.v");
  h.Insert("u", {{"1", "7"}});
  h.Delete("u", {"1", "7"});
  h.Insert("t", {{"1", "7"}});
  h.Commit();
  h.Expect("m", {{"1", kNull}});
  h.Insert("u", {{"2", "7"}});
  h.Commit();
  h.Delete("u", {"2", "7"});
  h.Commit();
  h.Expect("m", {{"1", kNull}});
}

TEST(DeltaJoinTest, BothSidesOfALeftJoinChangeInOneTransaction) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT t.id AS a, u.id AS b FROM t LEFT JOIN u ON t.v = u.v");
  h.Insert("t", {{"1", "7"}, {"2", kNull}});
  h.Insert("u", {{"1", "7"}, {"2", "8"}});
  h.Commit();
  h.Expect("m", {{"1", "1"}, {"2", kNull}});
  h.Update("t", {"1", "7"}, {"1", "8"});
  h.Update("u", {"2", "8"}, {"2", "9"});
  h.Commit();
  h.Expect("m", {{"1", kNull}, {"2", kNull}});
  h.Update("u", {"2", "9"}, {"2", "8"});
  h.Delete("u", {"1", "7"});
  h.Update("t", {"2", kNull}, {"2", "8"});
  h.Commit();
  h.Expect("m", {{"1", "2"}, {"2", "2"}});
  h.Check();
}

TEST(DeltaJoinTest, ACorrelatedCountIsZeroForANullKey) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT id, (SELECT count(*) FROM u WHERE u.v = t.v) AS n FROM t");
  h.Insert("t", {{"1", kNull}, {"2", "5"}});
  h.Insert("u", {{"1", kNull}, {"2", "5"}, {"3", "5"}});
  h.Commit();
  h.Expect("m", {{"1", "0"}, {"2", "2"}});
  h.Delete("u", {"2", "5"});
  h.Delete("u", {"3", "5"});
  h.Commit();
  h.Expect("m", {{"1", "0"}, {"2", "0"}});
}

TEST(DeltaJoinTest, ExistsOverALeftJoinWithANullCorrelation) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.AddTable("w", {"id int4", "v int4"}, {0});
  h.CreateView("m",
               "SELECT t.id FROM t LEFT JOIN w ON w.id = t.v WHERE EXISTS (SELECT 1 FROM u WHERE "
               "u.v = w.v)");
  h.CreateView("no",
               "SELECT t.id FROM t LEFT JOIN w ON w.id = t.v WHERE NOT EXISTS (SELECT 1 FROM u "
               "WHERE u.v = w.v)");
  h.Insert("t", {{"1", "1"}, {"2", "2"}, {"3", kNull}});
  h.Insert("w", {{"1", "10"}, {"2", kNull}});
  h.Insert("u", {{"1", "10"}, {"2", kNull}});
  h.Commit();
  h.Expect("m", {{"1"}});
  h.Expect("no", {{"2"}, {"3"}});
  h.Delete("w", {"1", "10"});
  h.Commit();
  h.Expect("m", {});
  h.Expect("no", {{"1"}, {"2"}, {"3"}});
}

TEST(DeltaJoinTest, NotInKnowsNulls) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT id FROM t WHERE v NOT IN (SELECT v FROM u)");
  h.Insert("t", {{"1", "1"}, {"2", "2"}, {"3", kNull}});
  h.Commit();
  h.Expect("m", {{"1"}, {"2"}, {"3"}});
  h.Insert("u", {{"1", "1"}});
  h.Commit();
  h.Expect("m", {{"2"}});
  h.Insert("u", {{"2", kNull}});
  h.Commit();
  h.Expect("m", {});
  h.Delete("u", {"1", "1"});
  h.Commit();
  h.Expect("m", {});
  h.Delete("u", {"2", kNull});
  h.Commit();
  h.Expect("m", {{"1"}, {"2"}, {"3"}});
  h.Insert("u", {{"3", "2"}});
  h.Update("t", {"1", "1"}, {"1", "2"});
  h.Commit();
  h.Expect("m", {});
  h.Check();
}

TEST(DeltaAggregateTest, AUnionAboveAnotherViewSeesTheInsertBeforeTheDelete) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("a", "SELECT v FROM t UNION SELECT v FROM u");
  h.CreateView("b", "SELECT v FROM a UNION SELECT id FROM t");
  h.Insert("t", {{"1", "5"}});
  h.Commit();
  h.Insert("u", {{"1", "5"}});
  h.Delete("t", {"1", "5"});
  h.Commit();
  h.Expect("a", {{"5"}});
  h.Expect("b", {{"5"}});
  h.Delete("u", {"1", "5"});
  h.Commit();
  h.Expect("b", {});
}

TEST(DeltaAggregateTest, AMaxFeedsAView) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "g int4", "v int4"}, {0});
  h.CreateView("a", "SELECT g, max(v) AS x FROM t GROUP BY g");
  h.CreateView("b", "SELECT sum(x) AS s, count(*) AS n FROM a");
  h.Insert("t", {{"1", "1", "5"}, {"2", "1", "9"}, {"3", "2", "4"}});
  h.Commit();
  h.Expect("b", {{"13", "2"}});
  h.Delete("t", {"2", "1", "9"});
  h.Commit();
  h.Expect("b", {{"9", "2"}});
  h.Insert("t", {{"4", "1", kNull}});
  h.Delete("t", {"1", "1", "5"});
  h.Commit();
  h.Expect("b", {{"4", "2"}});
}

TEST(DeltaJoinTest, RowsThatEqualTheMaximumWhenItMoves) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT id, v FROM t WHERE v = (SELECT max(v) FROM t)");
  h.CreateView("over", "SELECT id FROM t WHERE v > (SELECT sum(v) FROM t)");
  h.Insert("t", {{"1", "5"}, {"2", "7"}, {"3", "7"}});
  h.Commit();
  h.Expect("m", {{"2", "7"}, {"3", "7"}});
  h.Insert("t", {{"4", "8"}});
  h.Commit();
  h.Expect("m", {{"4", "8"}});
  h.Delete("t", {"4", "8"});
  h.Delete("t", {"2", "7"});
  h.Commit();
  h.Expect("m", {{"3", "7"}});
  h.Insert("t", {{"5", "-100"}});
  h.Commit();
  h.Expect("over", {{"1"}, {"3"}});
  h.Truncate("t");
  h.Commit();
  h.Expect("m", {});
  h.Expect("over", {});
}

TEST(DeltaAggregateTest, FloatSumsLoseNaNAndInfinityAgain) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "f float8", "n numeric"}, {0});
  h.CreateView("m",
               "SELECT sum(f) AS s, avg(f) AS a, stddev(f) AS d, sum(n) AS sn, "
               "variance(n) AS vn FROM t");
  h.Insert("t", {{"1", "1.5", "1.5"}, {"2", "NaN", "NaN"}, {"3", "Infinity", "2.250"}});
  h.Commit();
  h.Check();
  h.Delete("t", {"2", "NaN", "NaN"});
  h.Commit();
  h.Check();
  h.Update("t", {"3", "Infinity", "2.250"}, {"3", "1e300", "2.5"});
  h.Commit();
  h.Check();
  h.Update("t", {"3", "1e300", "2.5"}, {"3", "2", "3"});
  h.Commit();
  h.Check();
  EXPECT_EQ(h.Stored("m")[0][0], "3.5");
}

TEST(DeltaTopNTest, TiesAtTheEdgeAndRowsThatMoveIn) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.CreateView("top", "SELECT id, v FROM t ORDER BY v DESC NULLS LAST, id LIMIT 2 OFFSET 1");
  h.CreateView("ties", "SELECT id, v FROM t ORDER BY v FETCH FIRST 2 ROWS WITH TIES");
  h.Insert("t", {{"1", "5"}, {"2", "7"}, {"3", "7"}, {"4", kNull}, {"5", "5"}});
  h.Commit();
  h.Expect("top", {{"3", "7"}, {"1", "5"}});
  h.Expect("ties", {{"1", "5"}, {"5", "5"}});
  h.Delete("t", {"2", "7"});
  h.Insert("t", {{"6", "5"}});
  h.Commit();
  h.Expect("top", {{"1", "5"}, {"5", "5"}});
  h.Expect("ties", {{"1", "5"}, {"5", "5"}, {"6", "5"}});
  h.Check();
}

TEST(DeltaTopNTest, DistinctOnTakesTheFirstOfEachGroup) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "g int4", "v int4"}, {0});
  h.CreateView("m", "SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v, id");
  h.Insert("t", {{"1", "1", "5"}, {"2", "1", "4"}, {"3", kNull, "1"}, {"4", "2", kNull}});
  h.Commit();
  h.Expect("m", {{"1", "4", "2"}, {kNull, "1", "3"}, {"2", kNull, "4"}});
  h.Delete("t", {"2", "1", "4"});
  h.Delete("t", {"4", "2", kNull});
  h.Commit();
  h.Expect("m", {{"1", "5", "1"}, {kNull, "1", "3"}});
  h.Check();
}

TEST(DeltaJoinTest, AnErrorInAJoinConditionIsKeptUntilThePairIsGone) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "v int4"}, {0});
  h.AddTable("u", {"id int4", "v int4"}, {0});
  h.CreateView("m", "SELECT t.id AS a, u.id AS b FROM t LEFT JOIN u ON t.v / u.v > 1");
  h.Insert("t", {{"1", "6"}, {"2", "1"}});
  h.Insert("u", {{"1", "2"}});
  h.Commit();
  h.Expect("m", {{"1", "1"}, {"2", kNull}});
  h.Insert("u", {{"2", "0"}});
  h.Commit();
  EXPECT_THROW(h.Stored("m"), QueryError);
  h.Delete("t", {"2", "1"});
  h.Commit();
  EXPECT_THROW(h.Stored("m"), QueryError);
  h.Update("u", {"2", "0"}, {"2", "1"});
  h.Commit();
  h.Expect("m", {{"1", "1"}, {"1", "2"}});
}

TEST(ViewStoreTest, AKillInTheMiddleOfEpochsLeavesAnEpochsEnd) {
  ViewHarness h;
  h.AddTable("t", {"id int4", "g int4"}, {0});
  h.CreateView("m", "SELECT g, count(*) AS n, max(id) AS x FROM t GROUP BY g");
  h.CreateView("j", "SELECT a.id FROM t a JOIN t b ON a.id = b.g");
  h.Reopen();
  int next = 0;
  for (int round = 0; round < 6; round++) {
    h.Close();
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      h.Reopen();
      for (int i = next;; i++) {
        h.Insert("t", {{std::to_string(i), std::to_string(i % 5)}});
        if (i % 3 == 2) h.Delete("t", {std::to_string(i - 1), std::to_string((i - 1) % 5)});
        h.epoch().Put("next", std::to_string(i + 1));
        h.Commit();
      }
    }
    usleep(60000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    h.Reopen();
    h.Check("round " + std::to_string(round));
    auto stored = h.store().Snapshot()->Get("next");
    next = stored ? std::stoi(*stored) : 0;
    int removed = next / 3;
    EXPECT_EQ(h.Stored("t").size(), static_cast<size_t>(next - removed));
  }
  EXPECT_GT(next, 0);
}

}  // namespace
}  // namespace sluice::testing
