// Random changes into many views at once: after each epoch every view equals what the executor
// makes of its plan over the stored inputs. Views are created and dropped meanwhile, built in small
// steps.
#include <gtest/gtest.h>

#include "stream/testing.h"

namespace sluice::testing {
namespace {

const std::vector<std::string>& Queries() {
  static const std::vector<std::string> queries = {
      "SELECT * FROM t",
      "SELECT k, v + 1 AS w FROM t WHERE v > 2",
      "SELECT 100 / (v - 3) AS q FROM t WHERE v <> 3",
      "SELECT g FROM l",
      "SELECT g, v FROM l WHERE v IS NOT NULL",
      "SELECT DISTINCT k, s FROM t",
      "SELECT k, count(*) AS n, count(v) AS c, sum(v) AS s, avg(v) AS a FROM t GROUP BY k",
      "SELECT k, s, min(v) AS lo, max(v) AS hi, min(s) AS ls, max(n) AS hn FROM t GROUP BY k, s",
      "SELECT count(*) AS n, sum(n) AS s, avg(n) AS a, stddev(n) AS d, var_pop(v) AS p FROM t",
      "SELECT k, sum(f) AS s, avg(f) AS a, stddev_samp(f) AS d FROM t GROUP BY k",
      "SELECT k, bool_and(v > 2) AS a, bool_or(v > 2) AS o FROM t GROUP BY k",
      "SELECT k, string_agg(s, ',' ORDER BY s, id) AS x, array_agg(v ORDER BY id) AS y FROM t "
      "GROUP BY k",
      "SELECT k, count(DISTINCT v) AS n, sum(DISTINCT v) AS s, string_agg(DISTINCT s, '-') AS x "
      "FROM t GROUP BY k",
      "SELECT k, count(*) FILTER (WHERE v > 2) AS n, sum(v) FILTER (WHERE s = 'a') AS s FROM t "
      "GROUP BY k",
      "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING count(*) > 2",
      "SELECT t.id, u.id AS uid FROM t JOIN u ON t.k = u.k",
      "SELECT t.id, u.id AS uid FROM t JOIN u ON t.k = u.k AND t.v < u.v",
      "SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.k = u.k",
      "SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.k = u.k AND t.v < u.v",
      "SELECT t.id, u.id AS uid FROM t RIGHT JOIN u ON t.k = u.k AND t.s = u.s",
      "SELECT t.id, u.id AS uid FROM t FULL JOIN u ON t.k = u.k AND t.v = u.v",
      "SELECT t.id, u.id AS uid FROM t LEFT JOIN u ON t.v > u.v + 3",
      "SELECT t.id, l.g FROM t, l WHERE t.v + l.v = 7",
      "SELECT a.id, b.id AS bid FROM t a JOIN t b ON a.v = b.k",
      "SELECT a.id, b.id AS bid, c.g FROM t a JOIN u b ON a.k = b.k JOIN l c ON c.g = b.v",
      "SELECT id FROM t WHERE v IN (SELECT v FROM u)",
      "SELECT id FROM t WHERE v NOT IN (SELECT v FROM u WHERE k = 1)",
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.v)",
      "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.v)",
      "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.g = t.k)",
      "SELECT id FROM t WHERE v = (SELECT max(v) FROM t)",
      "SELECT id, (SELECT sum(v) FROM u WHERE u.k = t.k) AS x FROM t",
      "SELECT id, v - (SELECT avg(v) FROM u) AS x FROM t",
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE v = 6)",
      "SELECT k FROM t UNION SELECT k FROM u",
      "SELECT k, v FROM t UNION ALL SELECT g, v FROM l",
      "SELECT k FROM t INTERSECT SELECT k FROM u",
      "SELECT k FROM t INTERSECT ALL SELECT g FROM l",
      "SELECT k FROM t EXCEPT SELECT g FROM l",
      "SELECT g FROM l EXCEPT ALL SELECT k FROM t",
      "SELECT id, v FROM t ORDER BY v, id LIMIT 5",
      "SELECT id, v FROM t ORDER BY v DESC NULLS LAST, id DESC LIMIT 4 OFFSET 2",
      "SELECT id, v FROM t ORDER BY v FETCH FIRST 3 ROWS WITH TIES",
      "SELECT DISTINCT ON (k) k, v, id FROM t ORDER BY k, v DESC, id",
      "SELECT id, v, row_number() OVER (PARTITION BY k ORDER BY v, id) AS r FROM t",
      "SELECT id, rank() OVER (ORDER BY v) AS r, sum(v) OVER (ORDER BY id) AS s FROM t",
      "SELECT id, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS c, "
      "ntile(3) OVER (PARTITION BY k ORDER BY id) AS n FROM t WINDOW w AS (PARTITION BY k ORDER BY "
      "v DESC NULLS LAST)",
      "SELECT id, p FROM (SELECT id, lag(v) OVER (PARTITION BY k ORDER BY id) AS p FROM t) x WHERE "
      "p > 2",
      "SELECT k, id FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t) "
      "x WHERE r <= 1",
      "SELECT id, lead(v, 2, -1) OVER w AS l, first_value(s) OVER w AS f, nth_value(v, 2) OVER w "
      "AS n, last_value(id) OVER w AS z FROM t WINDOW w AS (PARTITION BY k ORDER BY id)",
      "SELECT id, sum(n) OVER w AS s, avg(v) OVER w AS a, count(v) OVER w AS c, min(v) OVER w AS "
      "lo, max(s) OVER w AS hi FROM t WINDOW w AS (PARTITION BY k ORDER BY id ROWS BETWEEN 2 "
      "PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)",
      "SELECT id, sum(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS s, "
      "count(*) FILTER (WHERE s = 'a') OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND 1 "
      "FOLLOWING EXCLUDE TIES) AS c FROM t",
      "SELECT id, sum(100 / (v - 3)) OVER (PARTITION BY k) AS s FROM t",
      "SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM t GROUP BY k",
      "SELECT g, v, count(*) OVER (PARTITION BY g) AS n FROM l",
      "SELECT k, s, count(*) AS n, sum(v) AS sv, grouping(k, s) AS gr FROM t GROUP BY ROLLUP (k, "
      "s)",
      "SELECT k, g, count(*) AS n, max(t.v) AS hi FROM t JOIN l ON t.v = l.v GROUP BY GROUPING "
      "SETS "
      "((k), (g), ())",
      "SELECT k, s, v, count(*) AS n FROM t GROUP BY CUBE (k, s), v",
      "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM u)",
      "SELECT k, count(*) AS n, (SELECT max(v) FROM u WHERE u.k = t.k) AS hi FROM t GROUP BY k "
      "HAVING EXISTS (SELECT 1 FROM l WHERE l.g = t.k) ORDER BY n",
      "SELECT count(*) AS n FROM t HAVING count(*) > (SELECT count(*) FROM u)",
      "SELECT sum((SELECT max(l.v) FROM l WHERE l.g = t.k)) AS s FROM t",
      "SELECT id, (SELECT v FROM u WHERE u.id = t.id) AS x FROM t",
      "SELECT id, (SELECT v FROM u WHERE u.k = t.k) AS x FROM t WHERE id % 7 = 0",
      "SELECT id, (SELECT s FROM u WHERE u.k = t.k ORDER BY v, id LIMIT 1) AS x FROM t",
      "SELECT id FROM t WHERE v = (SELECT v FROM l WHERE g = 1)",
      "SELECT id, (SELECT v FROM l WHERE l.g = t.k AND l.v > t.v) AS x FROM t WHERE id % 5 = 0",
      "SELECT id FROM t WHERE v > 4 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
      "SELECT id, EXISTS (SELECT 1 FROM u WHERE u.v < t.v) AS e FROM t",
      "SELECT id, v IN (SELECT v FROM l) AS e, v NOT IN (SELECT v FROM l WHERE g > t.k) AS f FROM "
      "t",
      "SELECT id FROM t WHERE v > ALL (SELECT v FROM l WHERE g = t.k) OR k IS NULL",
      "SELECT id, (SELECT count(*) FROM u WHERE u.v < t.v) AS c FROM t",
      "SELECT id, ARRAY(SELECT v FROM u WHERE u.k = t.k ORDER BY id) AS a FROM t",
      "SELECT id, x.v, x.uid FROM t, LATERAL (SELECT v, id AS uid FROM u WHERE u.k = t.k ORDER BY "
      "v, id LIMIT 2) x",
      "SELECT t.id, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM l WHERE l.v > t.v "
      "HAVING count(*) > 1) x ON x.n > t.k",
      "SELECT id, (SELECT 100 / (max(u.v) - t.v) FROM u WHERE u.k = t.k) AS x FROM t",
      "SELECT id FROM t WHERE (k, v) NOT IN (SELECT g, v FROM l WHERE l.v > 1)",
      "SELECT t.id, u.id AS uid FROM t FULL JOIN u ON t.k = u.k AND t.v < u.v",
      "SELECT a.n, b.n AS m FROM (SELECT count(*) AS n, max(k) AS k FROM t) a FULL JOIN (SELECT "
      "count(*) AS n, max(g) AS k FROM l) b ON a.k = b.k",
      "SELECT (SELECT v FROM l) AS x",
      "SELECT id, (SELECT sum(x) FROM (SELECT v AS x FROM l WHERE l.g < t.k UNION ALL SELECT v "
      "FROM "
      "u WHERE u.k = t.k) y) AS s FROM t",
      "SELECT id FROM t WHERE v NOT IN (SELECT v FROM l)",
      "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) x WHERE n > 1",
      "SELECT x.k, x.n, u.id FROM (SELECT k, count(*) AS n FROM t GROUP BY k) x LEFT JOIN u ON "
      "x.n = u.v",
      "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) x GROUP BY n",
      "WITH x AS (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT a.k, b.k AS bk FROM x a JOIN x b "
      "ON a.s = b.s",
      "SELECT t.id, x.a FROM t JOIN (VALUES (1, 'one'), (2, 'two'), (2, 'zwei')) x(k, a) ON x.k = "
      "t.k",
      "SELECT x AS g, count(t.id) AS n FROM generate_series(0, 6) x LEFT JOIN t ON t.v = x GROUP "
      "BY x",
  };
  return queries;
}

class RandomChanges {
 public:
  RandomChanges(ViewHarness* harness, uint64_t seed) : h_(*harness), engine_(seed) {}

  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint64_t>(bound)); }

  // Some new rows at once.
  void Piece() {
    const std::string table = Below(3) == 0 ? "l" : Below(2) == 0 ? "t" : "u";
    auto shard = static_cast<uint32_t>(Below(2));
    TextRows piece;
    for (int i = Below(12); i >= 0; i--) piece.push_back(NewRow(table));
    for (const TextRow& row : piece) rows_[table].emplace_back(shard, row);
    h_.InsertPiece(table, piece, shard);
  }

  void Step() {
    int kind = Below(10);
    const std::string table = Below(3) == 0 ? "l" : Below(2) == 0 ? "t" : "u";
    auto& rows = rows_[table];
    if (Below(400) == 0) {
      auto shard = static_cast<uint32_t>(Below(2));
      h_.Truncate(table, shard);
      std::erase_if(rows, [&](const auto& row) { return row.first == shard; });
    } else if (rows.empty() || (kind < 4 && rows.size() < 40)) {
      auto shard = static_cast<uint32_t>(Below(2));
      TextRow row = NewRow(table);
      h_.Insert(table, {row}, shard);
      rows.emplace_back(shard, row);
    } else {
      size_t at = static_cast<size_t>(Below(static_cast<int>(rows.size())));
      auto [shard, old_row] = rows[at];
      if (kind < 7) {
        h_.Delete(table, old_row, shard);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        TextRow row = NewRow(table);
        if (table != "l" && Below(4) != 0) row[0] = old_row[0];  // sometimes the key changes
        h_.Update(table, old_row, row, shard);
        rows[at].second = row;
      }
    }
  }

 private:
  std::optional<std::string> Number(int bound) {
    if (Below(8) == 0) return std::nullopt;
    return std::to_string(Below(bound));
  }

  TextRow NewRow(const std::string& table) {
    if (table == "l") return {Number(4), Number(5)};
    static const char* floats[] = {"0.1", "-2.5", "1e10", "NaN", "Infinity", "-0", "3"};
    static const char* numerics[] = {"1.00", "2.50", "-3.25", "100.00", "0.01"};
    static const char* texts[] = {"a", "b", "ab", ""};
    TextRow row = {std::to_string(next_id_++), Number(4), Number(8)};
    row.push_back(Below(8) == 0 ? std::nullopt : std::optional<std::string>(texts[Below(4)]));
    row.push_back(Below(8) == 0 ? std::nullopt : std::optional<std::string>(numerics[Below(5)]));
    row.push_back(Below(8) == 0 ? std::nullopt : std::optional<std::string>(floats[Below(7)]));
    return row;
  }

  ViewHarness& h_;
  std::mt19937_64 engine_;
  std::map<std::string, std::vector<std::pair<uint32_t, TextRow>>> rows_;
  int next_id_ = 1;
};

void AddTables(ViewHarness* h) {
  for (const char* name : {"t", "u"})
    h->AddTable(name, {"id int4", "k int4", "v int4", "s text", "n numeric", "f float8"}, {0});
  h->AddTable("l", {"g int4", "v int4"}, {});
}

TEST(RandomViewTest, EveryOperatorEqualsRecomputationAfterEachEpoch) {
  uint64_t seed = TestSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  ViewHarness h;
  AddTables(&h);
  RandomChanges changes(&h, seed);
  for (int i = 0; i < 60; i++) changes.Step();
  h.Commit();
  for (size_t i = 0; i < Queries().size(); i++) h.AddView("m" + std::to_string(i), Queries()[i]);
  h.Commit();
  for (size_t i = 0; i < Queries().size(); i++) h.Build("m" + std::to_string(i), 7);
  h.Check("built");
  for (int epoch = 0; epoch < 60 && !::testing::Test::HasFailure(); epoch++) {
    for (int i = changes.Below(12); i >= 0; i--) changes.Step();
    if (changes.Below(10) == 0) {
      h.Commit();
      h.Reopen();
    }
    h.Commit();
    h.Check("epoch " + std::to_string(epoch));
  }
}

TEST(RandomViewTest, GraphsGrowWhileTheyAreBuilt) {
  uint64_t seed = TestSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  ViewHarness h;
  AddTables(&h);
  RandomChanges changes(&h, seed);
  for (int i = 0; i < 80; i++) changes.Step();
  h.Commit();
  std::vector<std::string> names;
  auto input = [&] {
    return names.empty() || changes.Below(2) == 0
               ? std::string(changes.Below(2) == 0 ? "t" : "u")
               : names[static_cast<size_t>(changes.Below(static_cast<int>(names.size())))];
  };
  for (int i = 0; i < 14; i++) {
    std::string a = input(), b = input(), sql;
    switch (changes.Below(6)) {
      case 0:
        sql = "SELECT id, k, v FROM " + a + " WHERE v > 1 OR v IS NULL";
        break;
      case 1:
        sql = "SELECT max(id) AS id, k, sum(v)::int4 AS v FROM " + a + " GROUP BY k";
        break;
      case 2:
        sql = "SELECT a.id, b.k, a.v FROM " + a + " a JOIN " + b + " b ON a.id = b.v";
        break;
      case 3:
        sql = "SELECT a.id, b.k, b.v FROM " + a + " a LEFT JOIN " + b + " b ON a.k = b.id";
        break;
      case 4:
        sql = "SELECT id, k, v FROM " + a + " UNION SELECT id, k, v FROM " + b;
        break;
      default:
        sql = "SELECT id, k, v FROM " + a + " ORDER BY v, id, k LIMIT 9";
    }
    std::string name = "m" + std::to_string(i);
    h.AddView(name, sql);
    names.push_back(name);
    // Some steps of some edges, in any order, between changes.
    for (int step = 0; step < 6; step++) {
      const std::string& view =
          names[static_cast<size_t>(changes.Below(static_cast<int>(names.size())))];
      for (const EdgeInfo& edge : h.epoch().Edges(h.OidOf(view)))
        if (!edge.at_end)
          h.epoch().Backfill(edge.view, edge.input, static_cast<size_t>(1 + changes.Below(9)));
      for (int c = changes.Below(4); c > 0; c--) changes.Step();
      if (changes.Below(3) == 0) h.Commit();
    }
    h.Commit();
    if (changes.Below(4) == 0) h.Reopen();
  }
  for (const std::string& name : names) h.Build(name, 3);
  h.Check("all built");
  for (int epoch = 0; epoch < 20 && !::testing::Test::HasFailure(); epoch++) {
    for (int i = changes.Below(8); i >= 0; i--) changes.Step();
    h.Commit();
    h.Check("epoch " + std::to_string(epoch));
  }
}

// As the view worker builds views: rows come in pieces of shards' key order and change as soon as
// they are there, the process dies between epochs, and views are added at any time.
TEST(RandomViewTest, ViewsThatAreFilledWithTheirTables) {
  uint64_t seed = TestSeed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  ViewHarness h;
  for (const char* name : {"t", "u"})
    h.AddTable(name, {"id int4", "k int4", "v int4", "s text", "n numeric", "f float8"}, {0},
               false);
  h.AddTable("l", {"g int4", "v int4"}, {}, false);
  RandomChanges changes(&h, seed);
  std::vector<std::string> waiting = Queries(), names;
  waiting.insert(waiting.end(),
                 {"SELECT * FROM t", "SELECT * FROM l", "SELECT id, k, v FROM t WHERE v > 1",
                  "SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k", "SELECT * FROM m0",
                  "SELECT DISTINCT k FROM t", "SELECT count(*) AS c, avg(n) AS a FROM t",
                  "SELECT k, sum(x) AS x FROM (SELECT k, v AS x FROM t UNION ALL SELECT k, id FROM "
                  "u) q GROUP BY k"});
  // On the one that filters t.
  const std::string filtered = "m" + std::to_string(Queries().size() + 2);
  waiting.push_back("SELECT id, v + 1 AS w FROM " + filtered + " WHERE k > 0");
  waiting.push_back("SELECT k, sum(v) AS s FROM " + filtered + " GROUP BY k");
  waiting.push_back("SELECT a.id, b.v FROM " + filtered + " a JOIN " + filtered +
                    " b ON a.k = b.id");
  auto add = [&](size_t count) {
    for (; count > 0 && names.size() < waiting.size(); count--) {
      const std::string name = "m" + std::to_string(names.size());
      h.AddView(name, waiting[names.size()], FirstRows::kCheapest);
      names.push_back(name);
    }
  };
  auto all_edges = [&](size_t rows) {
    for (const std::string& name : names)
      for (const EdgeInfo& edge : h.epoch().Edges(h.OidOf(name)))
        if (!edge.at_end && changes.Below(2) == 0) h.epoch().Backfill(edge.view, edge.input, rows);
  };
  for (int epoch = 0; epoch < 40; epoch++) {
    if (changes.Below(2) == 0) add(static_cast<size_t>(changes.Below(8)));
    for (int i = changes.Below(3); i > 0; i--) changes.Piece();
    for (int i = changes.Below(6); i > 0; i--) changes.Step();
    if (changes.Below(3) == 0) all_edges(static_cast<size_t>(1 + changes.Below(9)));
    if (changes.Below(12) == 0) h.graph().SetHeldBytesMax(1);
    h.Commit();
    if (changes.Below(12) == 0) h.Reopen();
  }
  add(waiting.size());
  for (const char* table : {"l", "t", "u"}) {
    h.SetComplete(table);
    for (int i = changes.Below(6); i > 0; i--) changes.Step();
    h.Commit();
    if (changes.Below(6) == 0) h.Reopen();
  }
  for (const std::string& name : names) h.Build(name, 5);
  h.Check("all built");
  for (int epoch = 0; epoch < 20 && !::testing::Test::HasFailure(); epoch++) {
    for (int i = changes.Below(8); i >= 0; i--) changes.Step();
    h.Commit();
    if (changes.Below(8) == 0) h.Reopen();
    h.Check("epoch " + std::to_string(epoch));
  }
}

}  // namespace
}  // namespace sluice::testing
