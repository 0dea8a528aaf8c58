#include "parser/analyze.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "common/arena.h"
#include "common/bytes.h"
#include "parser/prescan.h"
#include "parser/print.h"
#include "types/kernel.h"

namespace sluice {
namespace {

Relation Table(Oid oid, const char* name, std::vector<std::pair<const char*, Oid>> columns) {
  Relation table{};
  table.oid = oid;
  table.schema = "public";
  table.name = name;
  table.kind = RelationKind::kForeignTable;
  for (auto [column, type] : columns) {
    ColumnInfo info;
    info.name = column;
    info.type = type;
    if (type == kTextOid) info.collation = kDefaultCollationOid;
    table.columns.push_back(info);
  }
  return table;
}

class AnalyzeTest : public testing::Test {
 protected:
  AnalyzeTest() {
    LoadBuiltinCatalog();
    catalog_.relations[20000] =
        Table(20000, "t", {{"id", kInt8Oid}, {"a", kInt4Oid}, {"n", kNumericOid}, {"s", kTextOid}});
    catalog_.relations[20000].primary_key = {0};
    catalog_.relations[20001] =
        Table(20001, "u", {{"id", kInt8Oid}, {"b", kInt4Oid}, {"x", kTextOid}});
    Relation view = Table(20002, "v", {{"key", kInt8Oid}, {"twice", kInt4Oid}});
    view.kind = RelationKind::kView;
    view.view_sql = "SELECT id, a * 2 FROM t WHERE a > 0";
    catalog_.relations[20002] = view;
    Relation loop = Table(20003, "loop", {{"id", kInt8Oid}});
    loop.kind = RelationKind::kView;
    loop.view_sql = "SELECT id FROM loop";
    catalog_.relations[20003] = loop;
    Relation parent = Table(20004, "parent", {{"id", kInt8Oid}, {"a", kInt4Oid}});
    parent.kind = RelationKind::kInheritsParent;
    parent.primary_key = {0};
    catalog_.relations[20004] = parent;
  }

  const Query* Analyze(const std::string& sql) {
    parsed_.push_back(ParseSql(sql));
    params_.clear();
    AnalyzeContext context{&catalog_, &settings_, {"public"}, "me", "db", &arena_, &params_};
    return AnalyzeSelect(parsed_.back().statements().at(0), context);
  }
  std::string Print(const std::string& sql) { return PrintQuery(*Analyze(sql)); }
  // The condition only.
  std::string Where(const std::string& condition) {
    return PrintExpr(*Analyze("SELECT 1 FROM t WHERE " + condition)->where);
  }
  Error ErrorOf(const std::string& sql) {
    try {
      Analyze(sql);
    } catch (const QueryError& e) {
      return e.error;
    }
    return MakeError(sqlstate::kSuccess, "no error");
  }

  Catalog catalog_;
  SessionSettings settings_;
  Arena arena_;
  std::vector<Oid> params_;
  std::vector<ParsedSql> parsed_;
};

TEST_F(AnalyzeTest, ResolvesColumnsAndOperators) {
  EXPECT_EQ(Print("SELECT id, s FROM t WHERE a = 5 AND s = 'x'"),
            "(query (select (id 0.0) (s 0.3)) (from t) (where (and (= 0.1 5) (= 0.3 'x'))))");
  EXPECT_EQ(Where("n > a"), "(> 0.2 (numeric 0.1))");
  EXPECT_EQ(Where("id = a"), "(= 0.0 0.1)");
  EXPECT_EQ(Where("a BETWEEN 1 AND 3"), "(and (>= 0.1 1) (<= 0.1 3))");
  EXPECT_EQ(Where("a NOT BETWEEN 1 AND 3"), "(or (< 0.1 1) (> 0.1 3))");
  EXPECT_EQ(Where("s LIKE 'a%'"), "(~~ 0.3 'a%')");
  EXPECT_EQ(Where("(a, id) < (1, 2)"), "(or (< 0.1 1) (and (= 0.1 1) (< 0.0 2)))");
  EXPECT_EQ(Where("a IS DISTINCT FROM 1"), "(distinct-from 0.1 1)");
  EXPECT_EQ(Where("s IS NOT DISTINCT FROM NULL"), "(is-null 0.3)");
  EXPECT_EQ(Where("CASE a WHEN 1 THEN true END"), "(case (= 0.1 1) true null:boolean)");
  EXPECT_EQ(Where("s || a = 'x'"), "(= (|| 0.3 0.1) 'x')");
  EXPECT_EQ(Where("s COLLATE \"C\" < 'x'"), "(< (collate 0.3) 'x')");
}

TEST_F(AnalyzeTest, MakesOneArrayOfALongInList) {
  const Query* query = Analyze("SELECT 1 FROM t WHERE a IN (1, NULL, 300)");
  const Expr& in = *query->where;
  ASSERT_EQ(in.kind, ExprKind::kAnyOf);
  ASSERT_EQ(in.args[1]->kind, ExprKind::kConst);
  EXPECT_EQ(in.args[1]->type, kInt4ArrayOid);
  std::string_view value = in.args[1]->value;
  ASSERT_EQ(value.size(), 20u + 8 + 4 + 8);
  EXPECT_EQ(LoadBig<int32_t>(value.data()), 1);        // dimensions
  EXPECT_EQ(LoadBig<int32_t>(value.data() + 4), 1);    // has NULLs
  EXPECT_EQ(LoadBig<int32_t>(value.data() + 12), 3);   // length
  EXPECT_EQ(LoadBig<int32_t>(value.data() + 28), -1);  // the NULL
  EXPECT_EQ(LoadBig<int32_t>(value.data() + 36), 300);
  EXPECT_EQ(Where("a NOT IN (1, 2)"), "(<>all 0.1 const:integer[])");
  EXPECT_EQ(Where("a IN (1, id, 2)"), "(or (=any 0.1 const:integer[]) (= 0.1 0.0))");
  EXPECT_EQ(Where("a IN (1)"), "(= 0.1 1)");
  EXPECT_EQ(Where("a IN ($1, 2)"), "(=any 0.1 (array:integer[] $1:integer 2))");
  EXPECT_EQ(Where("a IN (1, 2.5)"),
            "(=any (numeric 0.1) (array:numeric[] (numeric 1) const:numeric))");

  std::string many = "SELECT 1 FROM t WHERE a IN (0";
  for (int i = 1; i < 5000; i++) many += ", " + std::to_string(i);
  EXPECT_EQ(Analyze(many + ")")->where->args[1]->value.size(), 20u + 5000 * 8);
}

TEST_F(AnalyzeTest, GivesAnInsertsSourceTheColumnsTypes) {
  EXPECT_EQ(Print("INSERT INTO t VALUES (1, '2')"),
            "(query (insert t id a (query (select (id (int8 1)) (a 2)))) (returning))");
  EXPECT_EQ(ErrorOf("INSERT INTO t (s, n) VALUES ('x', 1), (DEFAULT, 2)").state,
            sqlstate::kFeatureNotSupported);
  EXPECT_EQ(Print("INSERT INTO t (id, s) SELECT b, 'x' FROM u"),
            "(query (insert t id s (query (select (id (int8 0.0)) (s 'x')) (from (*SELECT* (query "
            "(select (b 0.1) (?column? null:text)) (from u)))))) (returning))");
  // A column that is DEFAULT in every row is left to the shard.
  EXPECT_EQ(Print("INSERT INTO t (id, s) VALUES (1, DEFAULT), (2, DEFAULT)"),
            "(query (insert t id (query (select (id 0.0)) (from (values ((int8 1)) ((int8 2)))))) "
            "(returning))");
  EXPECT_EQ(Print("INSERT INTO t DEFAULT VALUES"),
            "(query (insert t (query (select))) (returning))");
}

TEST_F(AnalyzeTest, ResolvesUpdatesAndConflicts) {
  EXPECT_EQ(Print("UPDATE t SET a = u.b, n = 1 FROM u WHERE u.id = t.id RETURNING t.id"),
            "(query (update t (set a 1.1) (set n (numeric 1))) (returning (id 0.0)) (from (join t "
            "u)) (where (= 1.0 0.0)))");
  EXPECT_EQ(Print("DELETE FROM t WHERE id = 5"),
            "(query (delete t) (returning) (from t) (where (= 0.0 5)))");
  EXPECT_EQ(
      Print("INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET a = excluded.a + t.a"),
      "(query (insert t id (query (select (id (int8 1)))) (on-conflict 0.0 (set a (+ 1.1 "
      "0.1)))) (returning))");
}

TEST_F(AnalyzeTest, RefusesWrongModificationsAsPostgresDoes) {
  EXPECT_EQ(ErrorOf("INSERT INTO t (id) VALUES (1, 2)").message,
            "INSERT has more expressions than target columns");
  EXPECT_EQ(ErrorOf("INSERT INTO t (id, a) VALUES (1)").message,
            "INSERT has more target columns than expressions");
  EXPECT_EQ(ErrorOf("INSERT INTO t (id) VALUES (true)").message,
            "column \"id\" is of type bigint but expression is of type boolean");
  EXPECT_EQ(ErrorOf("UPDATE t SET zz = 1").message,
            "column \"zz\" of relation \"t\" does not exist");
  EXPECT_EQ(ErrorOf("UPDATE t SET a = 1, a = 2").message,
            "multiple assignments to same column \"a\"");
  EXPECT_EQ(ErrorOf("DELETE FROM t RETURNING count(*)").message,
            "aggregate functions are not allowed in RETURNING");
  EXPECT_EQ(ErrorOf("SELECT (WITH x AS (DELETE FROM t) SELECT 1)").message,
            "WITH clause containing a data-modifying statement must be at the top level");
}

TEST_F(AnalyzeTest, FindsTheOperatorsOfSubqueries) {
  EXPECT_EQ(Where("a IN (SELECT b FROM u)"), "(any= 0.1 (query (select (b 0.1)) (from u)))");
  // The subquery's column is cast in its own select list, or around it where that would change it.
  EXPECT_EQ(Where("n IN (SELECT b FROM u)"),
            "(any= 0.2 (query (select (b (numeric 0.1))) (from u)))");
  EXPECT_EQ(Where("n IN (SELECT DISTINCT b FROM u WHERE x = s)"),
            "(any= 0.2 (query (select (b (numeric 0.0))) (from (*SELECT* (query (select (b 0.1)) "
            "(from u) "
            "(where (= 0.2 0.3^2)) distinct)))))");
  EXPECT_EQ(Where("EXISTS (SELECT 1 FROM u WHERE u.id = t.id)"),
            "(exists (query (select (?column? 1)) (from u) (where (= 0.0 0.0^1))))");
  EXPECT_EQ(Where("(a, s) IN (SELECT b, x FROM u)"),
            "(any== 0.1 0.3 (query (select (b 0.1) (x 0.2)) (from u)))");
}

TEST_F(AnalyzeTest, UnifiesTheColumnsOfSetOperations) {
  EXPECT_EQ(Print("SELECT a FROM t UNION ALL SELECT n FROM t"),
            "(query (select (a -1.0)) (union all (query (select (a (numeric 0.1))) (from t)) "
            "(query (select "
            "(n 0.2)) (from t))))");
  // The inner UNION removes duplicates among integers, before the cast.
  EXPECT_EQ(
      Print("SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT 1.5"),
      "(query (select (a -1.0)) (union all (query (select (a (numeric 0.0))) (from (*SELECT* "
      "(query "
      "(select (a -1.0)) (union (query (select (a 0.1)) (from t)) (query (select (b 0.1)) (from "
      "u))))))) (query (select (?column? const:numeric)))))");
  EXPECT_EQ(Print("SELECT 'x' UNION SELECT s FROM t ORDER BY 1 LIMIT 2"),
            "(query (select (?column? -1.0)) (union (query (select (?column? 'x'))) (query (select "
            "(s 0.3)) "
            "(from t))) (order 0<) (limit (int8 2)))");
}

TEST_F(AnalyzeTest, CountsLevelsOfWithQueries) {
  EXPECT_EQ(Print("WITH q AS (SELECT 1 AS c) SELECT (SELECT max(c) FROM q) FROM q"),
            "(query (with q materialized refs 2 (query (select (c 1)))) (select (max (scalar "
            "(query (select "
            "(max (max 0.0))) (from (cte 0^1)) aggregated)))) (from (cte 0^0)))");
  EXPECT_EQ(
      Print("WITH q AS (SELECT random() AS c) SELECT c FROM q"),
      "(query (with q materialized refs 1 (query (select (c (random))))) (select (c 0.0)) (from "
      "(cte 0^0)))");
  EXPECT_EQ(Print("WITH q AS NOT MATERIALIZED (SELECT 1 AS c) SELECT * FROM q, q r"),
            "(query (with q refs 2 (query (select (c 1)))) (select (c 0.0) (c 1.0)) (from (join "
            "(cte 0^0) "
            "(cte 0^0))))");
}

TEST_F(AnalyzeTest, ExpandsViews) {
  EXPECT_EQ(
      Print("SELECT twice FROM v WHERE key = 1"),
      "(query (select (twice 0.1)) (from (v (query (select (id 0.0) (?column? (* 0.1 2))) (from t) "
      "(where (> 0.1 0))))) (where (= 0.0 1)))");
  EXPECT_EQ(ErrorOf("SELECT * FROM loop").state, sqlstate::kInvalidObjectDefinition);
}

TEST_F(AnalyzeTest, KeepsTheShapeOfJoins) {
  EXPECT_EQ(Print("SELECT id FROM t LEFT JOIN u USING (id) WHERE b > 1"),
            "(query (select (id 0.0)) (from (left t u (on (= 0.0 1.0)))) (where (> 1.1 1)))");
  EXPECT_EQ(Print("SELECT id FROM t FULL JOIN u USING (id)"),
            "(query (select (id (coalesce 0.0 1.0))) (from (full t u (on (= 0.0 1.0)))))");
  EXPECT_EQ(
      Print("SELECT l.y FROM t, LATERAL (SELECT t.a + 1 AS y) l"),
      "(query (select (y 1.0)) (from (join lateral t (l (query (select (y (+ 0.1^1 1))))))))");
}

TEST_F(AnalyzeTest, GroupsByPrimaryKey) {
  EXPECT_EQ(ErrorOf("SELECT s FROM t GROUP BY id").message, "no error");
  EXPECT_EQ(ErrorOf("SELECT x FROM u GROUP BY id").state, sqlstate::kGroupingError);
  // The children of an INHERITS parent do not share their key.
  EXPECT_EQ(ErrorOf("SELECT a FROM parent GROUP BY id").state, sqlstate::kGroupingError);
}

TEST_F(AnalyzeTest, PutsHiddenColumnsLast) {
  EXPECT_EQ(Print("SELECT s FROM t ORDER BY a DESC, s"),
            "(query (select (s 0.3) (junk 0.1)) (from t) (order 1>nulls-first 0<))");
  EXPECT_EQ(Print("SELECT count(*) FROM t GROUP BY a"),
            "(query (select (count (count *)) (junk 0.1)) (from t) (group 1) aggregated)");
}

TEST_F(AnalyzeTest, InfersParameters) {
  Analyze("SELECT $2 FROM t WHERE id = $1 AND s LIKE $3");
  EXPECT_EQ(params_, (std::vector<Oid>{kInt8Oid, kTextOid, kTextOid}));
  EXPECT_EQ(ErrorOf("SELECT $1 IS NULL").state, sqlstate::kIndeterminateDatatype);
}

TEST_F(AnalyzeTest, DerivesCollations) {
  const Query* query = Analyze("SELECT s || 'x', upper(s COLLATE \"C\") FROM t ORDER BY 2");
  EXPECT_EQ(query->targets[0].expr->collation, kDefaultCollationOid);
  EXPECT_EQ(query->targets[1].expr->input_collation, kCCollationOid);
  EXPECT_EQ(query->order_by[0].collation, kCCollationOid);
  Error error = ErrorOf("SELECT s COLLATE \"C\" < s COLLATE \"POSIX\" FROM t");
  EXPECT_EQ(error.state, sqlstate::kCollationMismatch);
  EXPECT_EQ(error.message, "collation mismatch between explicit collations \"C\" and \"POSIX\"");
  error = ErrorOf(
      "SELECT a.c < b.d FROM (SELECT s COLLATE \"C\" AS c FROM t) a, (SELECT s COLLATE \"POSIX\" "
      "AS d FROM t) b");
  EXPECT_EQ(error.state, sqlstate::kIndeterminateCollation);
}

TEST_F(AnalyzeTest, RefusesByName) {
  for (auto [sql, message] : std::vector<std::pair<const char*, const char*>>{
           {"SELECT DISTINCT a FROM t FOR UPDATE",
            "FOR UPDATE is not allowed with DISTINCT clause"},
           {"SELECT count(*) FROM t FOR SHARE",
            "FOR SHARE is not allowed with aggregate functions"},
           {"SELECT 1 UNION SELECT 2 FOR KEY SHARE",
            "FOR KEY SHARE is not allowed with UNION/INTERSECT/EXCEPT"},
           {"SELECT 1 INTO x", "SELECT INTO"},
           {"SELECT t FROM t", "a whole row as a value (\"t\")"},
           {"SELECT ctid FROM t", "system column \"ctid\""},
           {"SELECT t.tableoid FROM t", "system column \"tableoid\""},
           {"SELECT generate_series(1, 2), count(*)",
            "a set-returning function in the select list of a grouped query"},
           {"SELECT * FROM t TABLESAMPLE system (1)", "TABLESAMPLE"},
           {"SELECT * FROM json_each('{}')", "function \"json_each\", which returns a record"},
           {"SELECT ROW(1, 2)", "a row as a value"},
           {"SELECT (ARRAY[1])[1:2]", "slices of arrays and fields of values"},
           {"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t", "WITHIN GROUP"},
           {"WITH RECURSIVE a AS (SELECT 1 FROM b), b AS (SELECT 1 FROM a) SELECT * FROM a",
            "this reference to WITH query \"b\""},
       }) {
    Error error = ErrorOf(sql);
    EXPECT_EQ(error.state, sqlstate::kFeatureNotSupported) << sql;
    EXPECT_EQ(error.message, message) << sql;
  }
}

TEST_F(AnalyzeTest, PositionsCountCharactersOfTheWholeText) {
  ParsedSql parsed = ParseSql("SELECT 'é'; SELECT 'ü', nope FROM t");
  AnalyzeContext context{&catalog_, &settings_, {"public"}, "me", "db", &arena_, &params_};
  try {
    AnalyzeSelect(parsed.statements()[1], context);
    FAIL();
  } catch (const QueryError& e) {
    EXPECT_EQ(e.error.position, 25);
  }
}

TEST_F(AnalyzeTest, StandsDeepStatements) {
  std::string chain = "SELECT 1", calls = "SELECT ", close;
  size_t levels = EnsureStackForParser() / 2 - 10;
  for (size_t i = 0; i < levels; i++) chain += "+1";
  for (size_t i = 0; i < levels / 2; i++) calls += "abs(", close += ")";
  EXPECT_EQ(ErrorOf(chain).message, "no error");
  EXPECT_EQ(ErrorOf(calls + "1" + close).message, "no error");
}

TEST_F(AnalyzeTest, RefusesWhatWouldGrowWithoutBound) {
  std::string between = "1", of_case = "1";
  for (int i = 0; i < 60; i++) {
    between = "(" + between + " BETWEEN 1 AND 2)::int";
    of_case = "CASE " + of_case + " WHEN 1 THEN 1 WHEN 2 THEN 2 END";
  }
  EXPECT_EQ(ErrorOf("SELECT " + between).state, sqlstate::kStatementTooComplex);
  EXPECT_EQ(ErrorOf("SELECT " + of_case).state, sqlstate::kStatementTooComplex);
}

TEST_F(AnalyzeTest, AnalysesExpressionsOfARelation) {
  AnalyzeContext context{&catalog_, &settings_, {"public"}, "me", "db", &arena_, &params_};
  const Relation& t = catalog_.relations[20000];
  EXPECT_EQ(PrintExpr(*AnalyzeExpression("id % 4", &t, context)), "(% 0.0 (int8 4))");
  EXPECT_EQ(PrintExpr(*AnalyzeExpression("5", nullptr, context)), "5");
  EXPECT_THROW(AnalyzeExpression("1, 2", &t, context), QueryError);
  EXPECT_THROW(AnalyzeExpression("1 FROM t", &t, context), QueryError);
  EXPECT_THROW(AnalyzeExpression("count(*)", &t, context), QueryError);
}

}  // namespace
}  // namespace sluice
