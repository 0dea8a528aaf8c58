// What a live view keeps is what its query answers, asked right afterwards: rows, or the error.
// Here for the queries that are planned otherwise for a view (subqueries, LATERAL, grouping sets)
// and the kinds of fault that live views are known for.
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <thread>

#include "tests/harness.h"

namespace sluice::test {
namespace {

const std::vector<std::string>& Queries() {
  static const std::vector<std::string> queries = {
      // Subqueries: one value for all, one for a key, and what only Apply can.
      "SELECT id, (SELECT v FROM u WHERE u.id = t.id) AS x FROM t",
      "SELECT id, (SELECT v FROM u WHERE u.k = t.k) AS x FROM t WHERE id % 3 = 0",
      "SELECT id, (SELECT s FROM u WHERE u.k = t.k ORDER BY v, id LIMIT 1) AS x FROM t",
      "SELECT id, (SELECT v FROM u WHERE u.k = t.k ORDER BY id DESC LIMIT 1) AS x FROM t",
      "SELECT id FROM t WHERE v = (SELECT v FROM u WHERE k = 1)",
      "SELECT id, v - (SELECT avg(v) FROM u) AS x FROM t",
      "SELECT id FROM t WHERE v = (SELECT max(v) FROM t)",
      "SELECT id FROM t WHERE v > (SELECT sum(v) FROM u WHERE k = 2)",
      "SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k) AS c FROM t",
      "SELECT id, (SELECT count(*) FROM u WHERE u.v < t.v) AS c FROM t",
      "SELECT id, (SELECT 100 / (max(u.v) - t.v) FROM u WHERE u.k = t.k) AS x FROM t",
      "SELECT id, CASE WHEN v > 6 THEN (SELECT u.v FROM u WHERE u.k = t.k) ELSE 0 END AS x FROM t",
      "SELECT id FROM t WHERE v > 4 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
      "SELECT id, EXISTS (SELECT 1 FROM u WHERE v = 7) AS e FROM t",
      "SELECT id, NOT EXISTS (SELECT 1 FROM u WHERE u.v < t.v) AS e FROM t",
      "SELECT id, v IN (SELECT v FROM u) AS e, v NOT IN (SELECT v FROM u WHERE k > t.k) AS f FROM "
      "t",
      "SELECT id FROM t WHERE v NOT IN (SELECT v FROM u)",
      "SELECT id FROM t WHERE v NOT IN (SELECT v FROM u WHERE k = 9)",
      "SELECT id FROM t WHERE (k, v) NOT IN (SELECT k, v FROM u WHERE v > 1)",
      "SELECT id FROM t WHERE v > ALL (SELECT v FROM u WHERE u.k = t.k)",
      "SELECT id FROM t WHERE v < ANY (SELECT v FROM u WHERE u.k = t.k) OR k IS NULL",
      "SELECT id, ARRAY(SELECT v FROM u WHERE u.k = t.k ORDER BY id) AS a FROM t",
      "SELECT (SELECT v FROM u WHERE id = 3) AS x",
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u LEFT JOIN t z ON z.k = u.k WHERE u.v = t.v "
      "AND z.v IS NULL)",
      // Over groups.
      "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM u)",
      "SELECT k, count(*) AS n, (SELECT max(v) FROM u WHERE u.k = t.k) AS hi FROM t GROUP BY k "
      "HAVING EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
      "SELECT count(*) AS n, (SELECT count(*) FROM u) AS m FROM t",
      "SELECT sum(v) + (SELECT sum(v) FROM u) AS n FROM t WHERE false",
      "SELECT sum((SELECT max(u.v) FROM u WHERE u.k = t.k)) AS s FROM t",
      "SELECT id, s, (SELECT count(*) FROM u WHERE u.k = t.id) AS c FROM t GROUP BY id",
      "SELECT k, s, count(*) AS n, sum(v) AS sv, grouping(k, s) AS gr FROM t GROUP BY ROLLUP (k, "
      "s)",
      "SELECT k, s, count(*) AS n, max(v) AS hi FROM t WHERE v > 3 GROUP BY GROUPING SETS ((k), "
      "(s), "
      "())",
      "SELECT k, count(*) AS n FROM t GROUP BY CUBE (k) HAVING count(*) > 1",
      // LATERAL.
      "SELECT t.id, x.v, x.uid FROM t, LATERAL (SELECT v, id AS uid FROM u WHERE u.k = t.k ORDER "
      "BY "
      "v, id LIMIT 2) x",
      "SELECT t.id, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.v > t.v "
      "HAVING "
      "count(*) > 1) x ON x.n > t.k",
      "SELECT t.id, x FROM t, generate_series(1, t.v) x WHERE t.id % 4 = 0",
      // Windows.
      "SELECT id, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t",
      "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t) x "
      "WHERE "
      "r <= 1",
      "SELECT id, p FROM (SELECT id, lag(v) OVER (ORDER BY id) AS p FROM t) x WHERE p > 2 AND id % "
      "2 "
      "= 0",
      "SELECT k, sum(count(*)) OVER (ORDER BY k) AS c FROM t GROUP BY k",
      "SELECT id, avg(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 "
      "FOLLOWING) "
      "AS a, lead(s) OVER (PARTITION BY k ORDER BY id) AS l FROM t",
      // The others.
      "SELECT DISTINCT ON (k) k, v, id FROM t ORDER BY k, v DESC, id",
      "SELECT id, v FROM t ORDER BY v DESC NULLS LAST, id LIMIT 5 OFFSET 1",
      "SELECT t.id, u.id AS uid FROM t FULL JOIN u ON t.k = u.k AND t.v < u.v",
      "SELECT a.n, b.n AS m FROM (SELECT count(*) AS n, max(k) AS k FROM t) a FULL JOIN (SELECT "
      "count(*) AS n, max(k) AS k FROM u) b ON a.k = b.k",
      "SELECT k, string_agg(DISTINCT s, ',') AS x, array_agg(v ORDER BY id DESC) AS a, count(*) "
      "FILTER (WHERE v > 3) AS c, sum(DISTINCT v) FILTER (WHERE v < 6) AS d FROM t GROUP BY k",
      "SELECT k, bool_and(v > 1) AS b, every(v < 9) AS e, stddev_pop(v) AS d, var_samp(v) AS w, "
      "min(s) AS lo FROM t GROUP BY k",
      "SELECT sum(f) AS s, avg(f) AS a FROM t",
      "SELECT k, 100 / (v - 3) AS q FROM t",
      "SELECT k FROM t UNION SELECT v FROM u",
      "SELECT k, v FROM t EXCEPT ALL SELECT k, v FROM u",
      "SELECT k, v FROM t INTERSECT ALL SELECT k, v FROM u",
      "WITH x AS (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT a.k, b.k AS bk FROM x a JOIN x b "
      "ON a.s >= b.s",
  };
  return queries;
}

class ViewOperators : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Cluster::Options options;
    options.shards = 2;
    cluster_ = new Cluster(options);
  }
  static void TearDownTestSuite() { delete cluster_; }
  static inline Cluster* cluster_ = nullptr;
};

// One random statement on t or u.
std::string Change(std::mt19937_64* engine) {
  auto below = [&](int bound) {
    return static_cast<int>((*engine)() % static_cast<uint64_t>(bound));
  };
  auto number = [&](int bound) { return below(8) == 0 ? "NULL" : std::to_string(below(bound)); };
  std::string table = below(2) == 0 ? "t" : "u";
  int id = below(30);
  if (below(3) == 0) return fmt::format("DELETE FROM {} WHERE id = {}", table, id);
  static const char* floats[] = {"0.5", "'NaN'", "'Infinity'", "-2", "NULL"};
  return fmt::format(
      "INSERT INTO {0} VALUES ({1}, {2}, {3}, '{4}', {5}) ON CONFLICT (id) DO UPDATE SET k = "
      "EXCLUDED.k, v = EXCLUDED.v, s = EXCLUDED.s, f = EXCLUDED.f",
      table, id, number(4), number(8), std::string(1, static_cast<char>('a' + below(3))),
      floats[below(5)]);
}

TEST_F(ViewOperators, EveryQueryIsAnsweredFromItsViewAsFromTheTables) {
  const char* given = std::getenv("SLUICE_TEST_SEED");
  uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 engine(seed);
  Client client(cluster_->Url());
  for (const char* table : {"t", "u"})
    client.Must(
        fmt::format("CREATE TABLE {} (id int PRIMARY KEY, k int, v int, s text, f float8)", table));
  for (int i = 0; i < 30; i++) client.Must(Change(&engine));
  client.Must("SET background_ddl = on");
  for (size_t i = 0; i < Queries().size(); i++)
    client.Must(fmt::format("CREATE MATERIALIZED VIEW m{} AS {}", i, Queries()[i]));
  client.Must("WAIT");
  for (int round = 0; round < 6 && !HasFailure(); round++) {
    for (int i = 0; i < 12; i++) client.Must(Change(&engine));
    client.Must("FLUSH");
    for (size_t i = 0; i < Queries().size(); i++) {
      Answer stored = client.Query(fmt::format("SELECT * FROM m{}", i));
      Answer computed = client.Query(Queries()[i]);
      EXPECT_EQ(stored.sqlstate, computed.sqlstate) << Queries()[i] << "\n"
                                                    << stored.message << "\n"
                                                    << computed.message;
      EXPECT_EQ(stored.Text(false), computed.Text(false)) << Queries()[i];
    }
  }
  for (size_t i = 0; i < Queries().size(); i++)
    client.Must(fmt::format("DROP MATERIALIZED VIEW m{}", i));
}

TEST_F(ViewOperators, AnErrorOfARowIsRaisedUntilTheRowIsGone) {
  Client client(cluster_->Url());
  client.Must("CREATE TABLE e (id int PRIMARY KEY, v int)");
  client.Must("INSERT INTO e VALUES (1, 5), (2, 10)");
  client.Must("CREATE MATERIALIZED VIEW quotients AS SELECT id, 100 / v AS q FROM e");
  client.Must("CREATE MATERIALIZED VIEW above AS SELECT sum(q) AS s FROM quotients");
  client.Must("CREATE MATERIALIZED VIEW others AS SELECT count(*) AS n FROM e");
  client.Must("CREATE MATERIALIZED VIEW one AS SELECT id FROM e WHERE v > (SELECT v FROM e)");
  EXPECT_EQ(client.Query("SELECT * FROM one").sqlstate, "21000");
  EXPECT_EQ(client.Value("SELECT s FROM above"), "30");
  client.Must("INSERT INTO e VALUES (3, 0)");  // the writer is not disturbed
  client.Must("FLUSH");
  EXPECT_EQ(client.Query("SELECT * FROM quotients").sqlstate, "22012");
  EXPECT_EQ(client.Query("SELECT * FROM quotients").message, "division by zero");
  EXPECT_EQ(client.Query("SELECT * FROM above").sqlstate, "22012");
  EXPECT_EQ(client.Value("SELECT n FROM others"), "3");
  client.Must("DELETE FROM e WHERE id IN (1, 3)");
  client.Must("FLUSH");
  EXPECT_EQ(client.Value("SELECT q FROM quotients"), "10");
  EXPECT_EQ(client.Value("SELECT s FROM above"), "10");
  EXPECT_EQ(client.Must("SELECT * FROM one").rows.size(), 0u);
  client.Must("DROP MATERIALIZED VIEW quotients, above, others, one CASCADE");
}

TEST_F(ViewOperators, AnIndexIsBuiltInTheBackgroundAndLookedUp) {
  Client client(cluster_->Url());
  client.Must("CREATE TABLE i (id int PRIMARY KEY, k int, s text, v varchar(20))");
  client.Must(
      "INSERT INTO i SELECT x, x % 100, CASE WHEN x % 7 = 0 THEN NULL ELSE 's' || x % 50 END, 'v' "
      "|| "
      "x % 10 FROM generate_series(1, 20000) x");
  client.Must("CREATE MATERIALIZED VIEW copies AS SELECT id, k, s, v FROM i");
  client.Must("CREATE MATERIALIZED VIEW bags AS SELECT k, s FROM i");
  client.Must("CREATE INDEX by_k ON copies (k, s)");
  client.Must("CREATE INDEX ON copies USING btree (v)");
  client.Must("CREATE INDEX bags_s ON bags (s)");
  const std::vector<std::string> queries = {
      "SELECT * FROM copies WHERE k = 7",
      "SELECT * FROM copies WHERE k = 7 AND s = 's7'",
      "SELECT * FROM copies WHERE k = 7 AND s > 's3' AND s <= 's40'",
      "SELECT * FROM copies WHERE k >= 98",
      "SELECT * FROM copies WHERE k > 5 AND k < 8",
      "SELECT * FROM copies WHERE 3 > k AND v = 'v1'",
      "SELECT * FROM copies WHERE v = 'v3'",
      "SELECT * FROM copies WHERE v = 'nothing'",
      "SELECT * FROM copies WHERE k = 7 AND s IS NULL",
      "SELECT * FROM copies WHERE k = 1000000000000",
      "SELECT * FROM bags WHERE s = 's21'",
      "SELECT * FROM bags WHERE s < 's2'",
  };
  auto check = [&](const std::string& what) {
    client.Must("FLUSH");
    for (const std::string& query : queries) {
      std::string asked = query;
      for (const char* view : {"copies", "bags"})
        if (size_t at = asked.find(view); at != std::string::npos)
          asked.replace(at, strlen(view),
                        std::string(view) == "bags" ? "(SELECT k, s FROM i) x" : "i");
      EXPECT_EQ(client.Must(query).Text(false), client.Must(asked).Text(false))
          << what << ": " << query;
    }
  };
  check("new");
  std::string plan = client.Must("EXPLAIN (COSTS off) SELECT * FROM copies WHERE k = 7").Text(true);
  EXPECT_NE(plan.find("View Index Scan using by_k on copies"), std::string::npos) << plan;
  plan = client.Must("EXPLAIN (COSTS off) SELECT * FROM copies WHERE s = 's1'").Text(true);
  EXPECT_EQ(plan.find("Index"), std::string::npos) << plan;
  client.Must(
      "UPDATE i SET k = k + 1 WHERE id % 3 = 0; DELETE FROM i WHERE id % 5 = 0; INSERT INTO i "
      "VALUES (30000, 7, 's7', 'v3'), (30001, 7, 's7', NULL); UPDATE i SET s = 's21' WHERE k = 21");
  check("changed");
  EXPECT_EQ(
      client.Value("SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE "
                   "tablename IN ('copies', 'bags')"),
      "bags_s by_k copies_v_idx");
  EXPECT_EQ(client.Value("SELECT pg_get_indexdef('by_k'::regclass)"),
            "CREATE INDEX by_k ON public.copies USING btree (k, s)");
  client.Must("REFRESH MATERIALIZED VIEW copies");
  check("refreshed");
  client.Must("ALTER MATERIALIZED VIEW copies RENAME TO renamed");
  EXPECT_EQ(client.Value("SELECT pg_get_indexdef('by_k'::regclass)"),
            "CREATE INDEX by_k ON public.renamed USING btree (k, s)");
  client.Must("ALTER MATERIALIZED VIEW renamed RENAME TO copies");
  client.Must("ALTER INDEX by_k RENAME TO by_key");
  client.Must("DROP INDEX by_key");
  EXPECT_EQ(client.Query("DROP INDEX by_key").sqlstate, "42704");
  check("dropped");
  EXPECT_EQ(client.Query("CREATE UNIQUE INDEX ON copies (id)").sqlstate, "0A000");
  EXPECT_EQ(client.Query("CREATE INDEX ON copies (lower(s))").sqlstate, "0A000");
  EXPECT_EQ(client.Query("CREATE INDEX ON copies (nothing)").sqlstate, "42703");
  EXPECT_EQ(client.Query("CREATE INDEX bags_s ON copies (s)").sqlstate, "42P07");
  client.Must("DROP MATERIALIZED VIEW copies, bags");
}

// Its rows come from its query alone.
TEST_F(ViewOperators, AViewIsNotWritten) {
  Client client(cluster_->Url());
  client.Must("CREATE TABLE base (id int PRIMARY KEY, k int)");
  client.Must("INSERT INTO base VALUES (1, 1)");
  client.Must("CREATE MATERIALIZED VIEW fixed AS SELECT id, k FROM base");
  const std::string change = "cannot change materialized view \"fixed\"";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"INSERT INTO fixed VALUES (2, 2)", change},
      {"INSERT INTO fixed SELECT * FROM base", change},
      {"INSERT INTO fixed DEFAULT VALUES RETURNING *", change},
      {"UPDATE fixed SET k = 3", change},
      {"UPDATE fixed f SET k = base.k FROM base WHERE base.id = f.id", change},
      {"DELETE FROM fixed", change},
      {"WITH d AS (DELETE FROM fixed RETURNING *) SELECT * FROM d", change},
      {"COPY fixed FROM STDIN", "cannot copy to materialized view \"fixed\""},
      {"COPY fixed (id) FROM STDIN", "cannot copy to materialized view \"fixed\""},
      {"TRUNCATE fixed", "\"fixed\" is not a table"},
      {"SELECT * FROM fixed FOR UPDATE", "cannot lock rows in materialized view \"fixed\""},
      {"BEGIN; LOCK TABLE fixed", "cannot lock relation \"fixed\""},
  };
  for (const auto& [sql, message] : refused) {
    Answer answer = client.Query(sql);
    EXPECT_EQ(answer.sqlstate, "42809") << sql;
    EXPECT_EQ(answer.message, message) << sql;
    client.Query("ROLLBACK");
  }
  EXPECT_EQ(client.Query("ALTER MATERIALIZED VIEW fixed RENAME COLUMN k TO l").sqlstate, "0A000");
  EXPECT_EQ(client.Must("SELECT id, k FROM fixed").Text(true), "[1] [1] \n");
  client.Must("DROP TABLE base CASCADE");
}

TEST_F(ViewOperators, FreshReadsSeeWhatWasCommittedBefore) {
  Client client(cluster_->Url()), writer(cluster_->Url());
  client.Must("CREATE TABLE f (id int PRIMARY KEY)");
  client.Must("CREATE MATERIALIZED VIEW first AS SELECT id FROM f");
  client.Must("CREATE MATERIALIZED VIEW second AS SELECT count(*) AS n FROM first");
  client.Must("SET fresh_reads = on");
  for (int i = 1; i <= 50; i++) {
    writer.Must(fmt::format("INSERT INTO f VALUES ({})", i));
    ASSERT_EQ(client.Value("SELECT n FROM second"), std::to_string(i));
  }
  client.Must("RESET fresh_reads");
  client.Must("DROP MATERIALIZED VIEW first CASCADE");
}

TEST_F(ViewOperators, AllViewsOfAStatementAreReadAtOneEpoch) {
  Client client(cluster_->Url());
  client.Must("CREATE TABLE accounts (id int PRIMARY KEY, v int)");
  client.Must("INSERT INTO accounts SELECT i, 100 FROM generate_series(0, 9) i");
  client.Must(
      "CREATE MATERIALIZED VIEW evens AS SELECT sum(v) AS s FROM accounts WHERE id % 2 = 0");
  client.Must("CREATE MATERIALIZED VIEW odds AS SELECT sum(v) AS s FROM accounts WHERE id % 2 = 1");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    Client other(cluster_->Url());
    std::mt19937 engine(1);
    while (!stop) {
      unsigned from = engine() % 10, to = engine() % 10;
      other.Must(fmt::format(
          "BEGIN; UPDATE accounts SET v = v - 7 WHERE id = {}; UPDATE accounts SET v = v + 7 WHERE "
          "id = {}; COMMIT",
          from, to));
    }
  });
  std::set<std::string> seen;
  for (int i = 0; i < 300 || (seen.size() < 3 && i < 20000); i++) {
    Answer answer = client.Must("SELECT e.s, e.s + (SELECT s FROM odds) FROM evens e");
    seen.insert(*answer.rows[0][0]);
    EXPECT_EQ(*answer.rows[0][1], "1000");
  }
  stop = true;
  writer.join();
  EXPECT_GT(seen.size(), 1u);  // something has moved meanwhile
  client.Must("DROP MATERIALIZED VIEW evens, odds");
}

TEST_F(ViewOperators, WhatChangesByItselfIsRefused) {
  Client client(cluster_->Url());
  client.Must("CREATE TABLE w (id int PRIMARY KEY, v int)");
  for (const char* query :
       {"SELECT id, random() AS r FROM w", "SELECT id, now() AS n FROM w",
        "SELECT id FROM w WHERE v > (SELECT random())", "SELECT id, current_user AS u FROM w",
        "SELECT id, nextval('s') AS n FROM w", "SELECT id, clock_timestamp() AS n FROM w",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n "
        "FROM "
        "r"}) {
    Answer answer = client.Query(std::string("CREATE MATERIALIZED VIEW m AS ") + query);
    bool refused = answer.sqlstate == "0A000" || answer.sqlstate == "42P01";
    EXPECT_TRUE(refused) << query << ": " << answer.sqlstate << " " << answer.message;
  }
}

}  // namespace
}  // namespace sluice::test
