// Every statement is analysed here and prepared on a real Postgres: columns' names, types and typmods,
// parameters' types, and errors with their SQLSTATE, message, position and hint have to be the same.
#include <gtest/gtest.h>

#include "common/arena.h"
#include "parser/analyze.h"
#include "parser/postgres_for_test.h"
#include "parser/statements_for_test.h"
#include "types/kernel.h"

namespace sluice {
namespace {

const char* const kSchema = R"(
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, n numeric(10,2), f float8, s text, v varchar(20),
  c char(5), d date, ts timestamp, tz timestamptz(3), iv interval, u uuid, j json, jb jsonb,
  ia int[], ta text[], m mood, bo boolean, by bytea, r real, sm smallint, tm time, o oid, nn numeric);
CREATE TABLE w (id int, a int, x text, y numeric, PRIMARY KEY (id, a));
CREATE TABLE "Odd Name" ("Col" int, "select" text);
CREATE VIEW tv AS SELECT id, a + 1 AS a1, s || 'x' AS sx FROM t WHERE a > 0;
CREATE VIEW tvv (k, total) AS SELECT a1, count(*) FROM tv GROUP BY a1;
)";

std::string Describe(PGconn* connection, const std::string& sql) {
  PGresult* prepared = PQprepare(connection, "", sql.c_str(), 0, nullptr);
  std::string text;
  if (PQresultStatus(prepared) != PGRES_COMMAND_OK) {
    auto field = [&](int code) {
      const char* value = PQresultErrorField(prepared, code);
      return std::string(value == nullptr ? "" : value);
    };
    text = fmt::format("{} {} @{} hint [{}] detail [{}]", field(PG_DIAG_SQLSTATE),
                       field(PG_DIAG_MESSAGE_PRIMARY), field(PG_DIAG_STATEMENT_POSITION),
                       field(PG_DIAG_MESSAGE_HINT), field(PG_DIAG_MESSAGE_DETAIL));
    PQclear(prepared);
    return text;
  }
  PQclear(prepared);
  PGresult* described = PQdescribePrepared(connection, "");
  for (int i = 0; i < PQnfields(described); i++)
    text += fmt::format("{} {} {}; ", PQfname(described, i), PQftype(described, i),
                        PQfmod(described, i));
  for (int i = 0; i < PQnparams(described); i++)
    text += fmt::format("${} {}; ", i + 1, PQparamtype(described, i));
  PQclear(described);
  return text;
}

std::string Analyze(const Catalog& catalog, const std::string& sql) {
  SessionSettings settings;
  Arena arena;
  std::vector<Oid> param_types;
  AnalyzeContext context{&catalog, &settings,  {"public"},   "postgres",
                         "postgres", &arena, &param_types};
  try {
    ParsedSql parsed = ParseSql(sql);
    if (parsed.statements().size() != 1) return "not one statement";
    const Query* query = AnalyzeSelect(parsed.statements()[0], context);
    std::string text;
    for (const Target& target : query->targets)
      if (!target.junk)
        text += fmt::format("{} {} {}; ", target.name, target.expr->type, target.expr->typmod);
    for (size_t i = 0; i < param_types.size(); i++)
      text += fmt::format("${} {}; ", i + 1, param_types[i]);
    return text;
  } catch (const QueryError& e) {
    const Error& error = e.error;
    return fmt::format("{} {} @{} hint [{}] detail [{}]", SqlStateText(error.state), error.message,
                       error.position > 0 ? std::to_string(error.position) : "", error.hint,
                       error.detail);
  }
}

class AnalyzeLikePostgres : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    LoadBuiltinCatalog();
    postgres_ = new TestPostgres;
    postgres_->Rows("SET client_min_messages = error");
    postgres_->Rows(kSchema);
    catalog_ = new Catalog(postgres_->MakeCatalog());
  }
  static void TearDownTestSuite() {
    delete catalog_;
    delete postgres_;
  }
  void Compare(std::string_view statements) {
    size_t count = 0;
    while (!statements.empty()) {
      size_t end = std::min(statements.find('\n'), statements.size());
      std::string sql(statements.substr(0, end));
      statements.remove_prefix(std::min(end + 1, statements.size()));
      if (sql.empty()) continue;
      count++;
      EXPECT_EQ(Analyze(*catalog_, sql), Describe(postgres_->connection(), sql)) << sql;
    }
    EXPECT_GT(count, 0u);
  }

  static TestPostgres* postgres_;
  static Catalog* catalog_;
};
TestPostgres* AnalyzeLikePostgres::postgres_ = nullptr;
Catalog* AnalyzeLikePostgres::catalog_ = nullptr;

TEST_F(AnalyzeLikePostgres, NamesOfColumns) {
  Compare(R"(
SELECT 1
SELECT * FROM t
SELECT t.* FROM t
SELECT t.*, w.* FROM t, w
SELECT *, 1 AS one FROM w
SELECT a, t.b, public.t.s, t.id AS "My Id" FROM t
SELECT a + 1, -a, a::text, a::text || 'x', cast(a AS bigint), (a), ((a)) FROM t
SELECT count(*), sum(a), max(s) FROM t
SELECT upper(s), pg_catalog.lower(s), substring(s from 1 for 2), trim(both ' ' from s), position('a' in s), overlay(s placing 'x' from 1) FROM t
SELECT CASE WHEN a > 1 THEN s END, CASE WHEN a > 1 THEN 'a' ELSE s END, CASE a WHEN 1 THEN 2 ELSE 3 END FROM t
SELECT coalesce(a, 1), nullif(a, 1), greatest(a, b), least(1, 2.5) FROM t
SELECT (SELECT max(a) FROM w), EXISTS (SELECT 1 FROM w), ARRAY(SELECT a FROM w), 1 IN (SELECT a FROM w)
SELECT (SELECT a AS zz FROM w LIMIT 1), (SELECT 1), (VALUES (2))
SELECT ARRAY[1,2], ARRAY['a','b'], ARRAY[1, 2.5], ARRAY[[1,2],[3,4]], ARRAY[]::int[]
SELECT current_date, current_timestamp, localtime, localtimestamp(2), current_user, session_user, current_time, current_timestamp(1), current_catalog, current_schema, user, current_role
SELECT date '2020-01-01', timestamp '2020-01-01', interval '1 day', interval '1' day, interval(3) '1.5 s', bool 't', int4 '5', numeric(5,2) '1.25'
SELECT true, 'x', NULL, 1.5, 10000000000, 99999999999999999999999, 1e10, B'101', X'1F', 0, -1, -2147483648, 2147483648
SELECT a IS NULL, a IS DISTINCT FROM 1, bo IS TRUE, NOT bo, a = 1 AND b = 2, a BETWEEN 1 AND 2, s LIKE 'x%', a IN (1,2), a = ANY(ia) FROM t
SELECT extract(year from d), extract(epoch from ts), date_part('year', d), tz AT TIME ZONE 'UTC', ts AT TIME ZONE 'UTC' FROM t
SELECT "Col", "select" FROM "Odd Name"
SELECT * FROM tv
SELECT * FROM tvv
SELECT k, total + 1 FROM tvv v WHERE total > 1
SELECT now(), random(), pi(), version()
SELECT s COLLATE "C", s COLLATE "C" || 'a' FROM t
SELECT int8(a), float8(a), text(a), date(ts), numeric(a) FROM t
SELECT 'a' 'b'
VALUES (1, 'a'), (2, 'b')
VALUES (1), (2.5), (NULL)
TABLE w
SELECT FROM t
)");
}

TEST_F(AnalyzeLikePostgres, TypesOfOperators) {
  Compare(R"(
SELECT a + b, a + n, a + f, a + sm, sm + sm, b * n, n / a, f * n, r + r, r + f, r + a, a % 2, a ^ 2, n ^ 2, |/ f, @ a, a & 1, a | b, a << 2, ~a FROM t
SELECT d + 1, d - 1, d - d, ts - ts, ts + iv, tz - iv, d + iv, tm + iv, iv * 2, iv / 2.5, d + tm, -iv, tz - tz, tm - tm, iv + iv FROM t
SELECT d + interval '1 day', ts - interval '1 hour', '2020-01-01'::date - '2019-01-01'::date FROM t
SELECT s || s, s || a, a || s, s || 1.5, v || v, c || c, v || s, c || 'x', 'a' || 'b', ia || ia, ia || 1, 1 || ia, ta || 'x', jb || jb, by || by FROM t
SELECT jb -> 'a', jb ->> 'a', jb -> 0, jb #> '{a,b}', jb #>> '{a}', jb ? 'a', jb @> '{}', j -> 'a', j ->> 'b', jb - 'a' FROM t
SELECT s = 'x', v = 'x', c = 'x', s = v, v = c, d = '2020-01-01', ts > d, tz > ts, a = 1.5, n = f, u = '00000000-0000-0000-0000-000000000000', m = 'sad', m < 'ok', bo = 't', by = '\x00', ia = '{1}', ia && ARRAY[1] FROM t
SELECT a = '5', b > '7', n < '1.5', f = '1e3', sm = '3', o = 5, o = '7' FROM t
SELECT s ~ 'x', s !~* 'x', s LIKE 'a', s ILIKE 'b', s SIMILAR TO 'c', s NOT LIKE 'x', s LIKE 'a' ESCAPE '!', v LIKE 'x', c LIKE 'y' FROM t
SELECT '1' + 1, 1 + '1', '1' || 1, 'a' = 'b', NULL = NULL, '5' + 1.5, '2020-01-01' - d FROM t
SELECT a = ANY('{1,2}'), a = ANY(ARRAY[1,2]), s = ANY(ta), a <> ALL(ia), v = ANY(ta), b = ANY(ia), s = ANY('{a}') FROM t
SELECT a IN (1, 2), a IN (1, 2.5), s IN ('a', 'b'), a IN (b, 1), d IN ('2020-01-01', '2021-01-01'), m IN ('sad', 'ok'), a NOT IN (1, 2), n IN (1, 2), a IN (1) FROM t
SELECT (a, b) = (1, 2), (a, b) < (1, 2), (a, s) IN ((1, 'x'), (2, 'y')), (a, b) IS NULL, (a, b) IS DISTINCT FROM (1, 2), (a, b) <> (1, 2) FROM t
SELECT a IN (SELECT id FROM w), b IN (SELECT id FROM w), n IN (SELECT id FROM w), (a, s) IN (SELECT id, x FROM w), a > ALL (SELECT id FROM w), a = ANY (SELECT y FROM w) FROM t
SELECT greatest(a, n), least(d, ts), greatest('a', s), coalesce(n, 1), coalesce(a, n), coalesce(NULL, 'x'), nullif(a, 1.5), nullif(s, 'x'), nullif(n, 0), coalesce(v, 'x'), coalesce(v, s), coalesce(c, v) FROM t
SELECT CASE WHEN bo THEN 1 ELSE 2.5 END, CASE WHEN bo THEN n END, CASE WHEN bo THEN d ELSE ts END, CASE WHEN bo THEN NULL ELSE 'x' END, CASE s WHEN 'x' THEN v ELSE v END FROM t
SELECT a::numeric(5,1), s::varchar(3), s::char(2), s::char, v::text, v::varchar, v::varchar(5), n::numeric, n::numeric(10,2), n::numeric(8,3), ts::timestamp(0), tz::date, a::bit(3), s::bytea, 'x'::"char", s::name FROM t
SELECT '1.234'::numeric(5,2), '12'::varchar(1), '1 day'::interval, '2020-01-01'::timestamptz(2), NULL::numeric(3,1), '{1,2}'::int[], '{1.1,2.2}'::numeric(3,1)[], ARRAY[1,2]::text[], ARRAY['1','2']::int[], ia::text[], ta::varchar(3)[], ia::bigint[] FROM t
SELECT a::int8, a::float4, a::oid, a::bool, f::int, n::int8, bo::int, s::int, s::date, s::mood, m::text, a::varchar, j::jsonb, jb::text, s::jsonb FROM t
SELECT lower(v), lower(c), length(s), length(c), abs(a), abs(n), round(n, 1), round(f), round(n), ceil(n), floor(f), mod(a, 2), mod(n, 2), power(a, 2), power(n, 2), sqrt(a), trunc(n), sign(a), exp(1), ln(n), log(10), div(n, 3) FROM t
SELECT concat(a, s, NULL, 'x'), concat_ws(',', a, s), format('%s', a), left(s, 2), repeat(s, 2), replace(s, 'a', 'b'), split_part(s, ',', 1), md5(s), to_char(ts, 'YYYY'), to_char(n, '999'), to_date('2020', 'YYYY'), lpad(s, 5), strpos(s, 'x'), substr(s, 2), reverse(s), initcap(s), ascii(s), chr(65), starts_with(s, 'a'), translate(s, 'a', 'b') FROM t
SELECT date_trunc('day', ts), date_trunc('month', tz), date_trunc('year', d), age(ts), age(ts, ts), make_date(2020, 1, 1), to_timestamp(0), extract(dow from tz), date_part('hour', iv), justify_days(iv), now() - ts FROM t
SELECT array_length(ia, 1), cardinality(ia), array_append(ia, 1), array_cat(ta, ta), array_position(ta, 'x'), array_to_string(ia, ','), string_to_array(s, ','), array_remove(ia, 3), array_prepend(1, ia), array_upper(ia, 1) FROM t
SELECT jsonb_build_object('a', 1), json_build_array(1, 'x'), to_jsonb(a), jsonb_typeof(jb), jsonb_array_length(jb), row_to_json(NULL), jsonb_set(jb, '{a}', '1') FROM t
SELECT gen_random_uuid(), pg_typeof(a), pg_typeof('x'), coalesce(s, 'x')::varchar(7), hashtext(s), a::text::int::numeric(4,1) FROM t
SELECT sum(a), sum(b), sum(n), sum(f), sum(r), sum(iv), sum(sm), avg(a), avg(b), avg(f), avg(iv), avg(n), min(d), max(ts), min(s), max(v), min(c), count(a), count(DISTINCT s), bool_and(bo), bool_or(a > 1), every(bo), stddev(a), variance(f), var_pop(n), stddev_samp(r), min(m), max(ia), min(n) FROM t
SELECT string_agg(s, ','), string_agg(s, ',' ORDER BY a), string_agg(DISTINCT s, ','), array_agg(a), array_agg(s ORDER BY a DESC), array_agg(ia), array_agg(n), json_agg(a), jsonb_agg(s), count(*) FILTER (WHERE a > 1), sum(a) FILTER (WHERE bo), string_agg(v, ','), bit_and(a), corr(f, f) FROM t
)");
}

TEST_F(AnalyzeLikePostgres, Parameters) {
  Compare(R"(
SELECT $1
SELECT $1::int
SELECT $1 + 1
SELECT * FROM w WHERE id = $1
SELECT * FROM w WHERE id = $1 AND x = $2 AND y > $3
SELECT * FROM w WHERE x LIKE $1
SELECT * FROM w WHERE id IN ($1, $2, $3)
SELECT * FROM w WHERE id = ANY($1)
SELECT * FROM t WHERE d > $1 AND ts < $2 AND m = $3
SELECT * FROM t WHERE a BETWEEN $1 AND $2
SELECT * FROM w LIMIT $1 OFFSET $2
SELECT coalesce($1, 'x'), coalesce($2, 1), CASE WHEN $3 THEN 1 END
SELECT $1 || 'x'
SELECT $1 = 'x', $2 = 1.5
SELECT $1::text, $2::numeric(5,2), $3::date
SELECT sum(a) FROM t WHERE d + $1 > $2
SELECT $1, $2 FROM t GROUP BY $1
SELECT $1 = $2
SELECT $1 IS NULL
SELECT $2::int
SELECT $1::int, $1::text
SELECT $1 + 1, $1 + 1
SELECT $1 + 1 WHERE $1 = 'x'
SELECT $0
SELECT upper($1), length($2)
SELECT abs($1)
SELECT a + $1 FROM t
SELECT n + $1, f * $2, b - $3 FROM t
SELECT ts - $1 FROM t
SELECT d - $1 FROM t
SELECT * FROM w WHERE (id, x) = ($1, $2)
SELECT $1 UNION SELECT 1
SELECT * FROM (SELECT $1) s
SELECT * FROM (VALUES ($1, 2)) v(x, y)
SELECT NOT $1, $2 AND true
SELECT concat($1, 'x')
SELECT ARRAY[$1, 2]
SELECT $1 FROM w ORDER BY $1
SELECT 1 WHERE $1 IN (SELECT id FROM w)
SELECT nullif($1, 1), greatest($2, 1.5)
)");
}

TEST_F(AnalyzeLikePostgres, FromClauses) {
  Compare(R"(
SELECT * FROM t JOIN w USING (id)
SELECT * FROM t JOIN w USING (id, a)
SELECT * FROM t NATURAL JOIN w
SELECT * FROM t LEFT JOIN w USING (id) WHERE id = 1
SELECT * FROM t RIGHT JOIN w USING (a)
SELECT * FROM t FULL JOIN w USING (id)
SELECT id, t.id, w.id FROM t FULL JOIN w USING (id)
SELECT * FROM t x JOIN w y ON x.id = y.id
SELECT x.a, y.a FROM t x CROSS JOIN w y
SELECT * FROM (t JOIN w USING (id)) AS j
SELECT j.id FROM (t JOIN w USING (id)) AS j (aa, bb)
SELECT aa, bb FROM (t JOIN w USING (id)) AS j (aa, bb)
SELECT * FROM t JOIN w USING (id) AS ju WHERE ju.id = 1
SELECT * FROM w AS q (c1, c2)
SELECT q.c1, q.x FROM w AS q (c1, c2)
SELECT * FROM (SELECT 1 AS one, 'x' AS two) s
SELECT * FROM (SELECT 1, 2) s (p, q)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (num, str)
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v
SELECT * FROM w, LATERAL (SELECT w.id + 1 AS nx) l
SELECT * FROM w LEFT JOIN LATERAL (SELECT w.x || 'y') l (z) ON true
SELECT * FROM generate_series(1, 3)
SELECT * FROM generate_series(1, 3) g
SELECT g FROM generate_series(1, 3) g
SELECT * FROM generate_series(1, 3) AS g (n)
SELECT * FROM generate_series(1, 3) WITH ORDINALITY
SELECT * FROM generate_series(1::bigint, 3) WITH ORDINALITY AS g (n, o)
SELECT * FROM unnest(ARRAY[1,2]) u
SELECT * FROM t, unnest(t.ta) WITH ORDINALITY AS u (e, i)
SELECT * FROM generate_series('2020-01-01'::timestamp, '2020-02-01', '1 day')
SELECT * FROM generate_series(now(), now(), '1 day') d
SELECT * FROM generate_series(1.5, 3)
WITH q AS (SELECT id, x FROM w) SELECT * FROM q
WITH q (p) AS (SELECT id, x FROM w) SELECT * FROM q
WITH q AS (SELECT 1 AS a), r AS (SELECT a + 1 AS b FROM q) SELECT * FROM q, r
WITH q AS (SELECT 1 AS a) SELECT * FROM (WITH q AS (SELECT 'x' AS b) SELECT * FROM q) s, q
WITH w AS (SELECT 5 AS only) SELECT * FROM w
SELECT * FROM (SELECT * FROM w) s JOIN t USING (id)
SELECT id FROM w WHERE EXISTS (SELECT 1 FROM t WHERE t.id = w.id)
SELECT (SELECT count(*) FROM t WHERE t.id = w.id) FROM w
SELECT * FROM t JOIN (w JOIN t t2 USING (a)) USING (id)
SELECT * FROM ONLY w
SELECT w.id FROM public.w
SELECT public.w.id FROM public.w, w w2
SELECT * FROM w w1 JOIN w w2 ON w1.id = w2.id JOIN w w3 ON w2.id = w3.id AND w1.a = w3.a
SELECT s.* FROM (SELECT id, a FROM w UNION SELECT a, id FROM w) s
)");
}

TEST_F(AnalyzeLikePostgres, GroupingOrderingAndSets) {
  Compare(R"(
SELECT a, count(*) FROM t GROUP BY a
SELECT a, count(*) FROM t GROUP BY 1
SELECT a AS z, count(*) FROM t GROUP BY z
SELECT a + 1 AS z, count(*) FROM t GROUP BY a + 1
SELECT a + 1 + count(*) FROM t GROUP BY a + 1
SELECT * FROM t GROUP BY id
SELECT id, s, count(*) FROM t GROUP BY id
SELECT t.id, t.s, count(*) FROM t JOIN w ON t.id = w.id GROUP BY t.id
SELECT id, a, x FROM w GROUP BY id, a
SELECT id, count(*) FROM t JOIN w USING (id) GROUP BY id
SELECT a FROM t GROUP BY (a, b), s
SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY count(*) DESC, 1
SELECT a AS b FROM t GROUP BY b
SELECT max(a) FROM t HAVING true
SELECT 1 FROM t HAVING count(*) > 0
SELECT a FROM t ORDER BY b
SELECT a AS b FROM t ORDER BY b
SELECT a FROM t ORDER BY 1 DESC NULLS LAST, s NULLS FIRST
SELECT a FROM t ORDER BY a + b
SELECT DISTINCT a FROM t ORDER BY a
SELECT DISTINCT a, s FROM t ORDER BY s, a
SELECT DISTINCT a + 1 FROM t ORDER BY a + 1
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b
SELECT DISTINCT ON (a, b) * FROM t
SELECT DISTINCT 'x' FROM t
SELECT a FROM t ORDER BY 'x'::text
SELECT a FROM t LIMIT 5 OFFSET 2
SELECT a FROM t LIMIT ALL
SELECT a FROM t FETCH FIRST 3 ROWS ONLY
SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES
SELECT a FROM t LIMIT 1.5
SELECT a FROM t LIMIT '5'
SELECT a FROM t LIMIT (SELECT 5)
SELECT 1 UNION SELECT 2
SELECT 1 AS x UNION SELECT 2.5 AS y
SELECT 'a' UNION SELECT s FROM t
SELECT 'a' UNION ALL SELECT 'b'
SELECT NULL UNION SELECT 1
SELECT NULL UNION SELECT NULL UNION SELECT 1
SELECT a, s FROM t INTERSECT SELECT id, x FROM w
SELECT a FROM t EXCEPT ALL SELECT id FROM w ORDER BY 1 LIMIT 3
SELECT a FROM t UNION SELECT b FROM t UNION ALL SELECT n FROM t
(SELECT a FROM t ORDER BY b LIMIT 1) UNION ALL (SELECT b FROM t ORDER BY a LIMIT 1)
SELECT DISTINCT a FROM t UNION SELECT n FROM t
SELECT v FROM t UNION SELECT v FROM t
SELECT v FROM t UNION SELECT s FROM t
SELECT n FROM t UNION ALL SELECT n FROM t
SELECT n FROM t UNION ALL SELECT nn FROM t
SELECT c FROM t UNION ALL SELECT v FROM t
SELECT d FROM t UNION ALL SELECT ts FROM t
SELECT '2020-01-01' UNION ALL SELECT d FROM t
SELECT a AS q FROM t UNION SELECT id FROM w ORDER BY q
SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3) ORDER BY 1
VALUES (1, 'x') UNION ALL SELECT a, s FROM t
VALUES (1, 2), (3, 4) ORDER BY 1 DESC LIMIT 1
WITH q AS (SELECT 1 AS a) SELECT a FROM q UNION SELECT a FROM q
SELECT count(*) FROM (SELECT a FROM t UNION SELECT id FROM w) s
SELECT sum(total) FROM (SELECT a, sum(b) AS total FROM t GROUP BY a) s
SELECT (SELECT max(t.a) FROM w) FROM t
SELECT a FROM t WHERE a = (SELECT max(a) FROM t t2 WHERE t2.s = t.s)
SELECT a, (SELECT count(*) FROM w WHERE w.id = t.a) FROM t GROUP BY a
SELECT m, count(*) FROM t GROUP BY m ORDER BY m
SELECT ia FROM t GROUP BY ia ORDER BY ia
SELECT jb, count(*) FROM t GROUP BY jb ORDER BY jb
)");
}

TEST_F(AnalyzeLikePostgres, NameErrors) {
  Compare(R"(
SELECT nope
SELECT nope FROM t
SELECT t.nope FROM t
SELECT q.a FROM t
SELECT t.a FROM t q
SELECT * FROM nope
SELECT * FROM nope.t
SELECT * FROM other.public.t
SELECT a FROM t, w
SELECT * FROM t, t
SELECT * FROM t JOIN w t ON true
SELECT * FROM t a, w a
SELECT nope(1)
SELECT nope(a, s) FROM t
SELECT foo.upper('x')
SELECT upper(1)
SELECT *
SELECT t.*
SELECT q.* FROM t
SELECT stext FROM t
SELECT idd FROM t
SELECT * FROM t JOIN w USING (nope)
SELECT * FROM t JOIN w USING (x)
SELECT * FROM t JOIN w USING (id, id)
SELECT * FROM t JOIN w ON t.id = z.id
SELECT * FROM t q JOIN w ON t.id = w.id
SELECT * FROM w, (SELECT w.id) s
SELECT * FROM w FULL JOIN LATERAL (SELECT w.id) s ON true
SELECT * FROM w AS q (a, b, c, d, e)
SELECT * FROM (VALUES (1)) v (a, b)
SELECT 1::nope
SELECT 1::nope.foo
SELECT a FROM t ORDER BY nope
SELECT a FROM t GROUP BY nope
SELECT a AS x, b AS x FROM t ORDER BY x
SELECT a FROM t ORDER BY 2
SELECT a FROM t ORDER BY 0
SELECT a FROM t GROUP BY 3
SELECT a FROM t ORDER BY 1.5
SELECT a FROM t ORDER BY 'x'
WITH q AS (SELECT 1), q AS (SELECT 2) SELECT * FROM q
WITH q (a, b) AS (SELECT 1) SELECT * FROM q
WITH q AS (SELECT * FROM r), r AS (SELECT 1) SELECT * FROM q
SELECT s COLLATE "nope" FROM t
SELECT a COLLATE "C" FROM t
SELECT * FROM (SELECT 1 AS a, 2 AS a) s ORDER BY a
SELECT s.a FROM (SELECT 1 AS a, 2 AS a) s
)");
}

TEST_F(AnalyzeLikePostgres, TypeErrors) {
  Compare(R"(
SELECT a + s FROM t
SELECT s + 1 FROM t
SELECT a = s FROM t
SELECT s = 5 FROM t
SELECT d = 5 FROM t
SELECT -s FROM t
SELECT a || b FROM t
SELECT 'a' + 'b'
SELECT m = 'nope' FROM t
SELECT m = s FROM t
SELECT 1 WHERE 5
SELECT 1 WHERE 'x'
SELECT 1 FROM t WHERE a
SELECT 1 FROM t WHERE s
SELECT NOT a FROM t
SELECT a AND bo FROM t
SELECT a IS TRUE FROM t
SELECT 1 FROM t HAVING 5
SELECT CASE WHEN a THEN 1 END FROM t
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT CASE WHEN true THEN a ELSE s END FROM t
SELECT coalesce(a, s) FROM t
SELECT coalesce(1, 'x')
SELECT greatest(d, 5) FROM t
SELECT a IN (1, 'x') FROM t
SELECT a IN (1, s) FROM t
SELECT a IN (SELECT x FROM w) FROM t
SELECT a = ANY(s) FROM t
SELECT a = ANY(ta) FROM t
SELECT 5 = ANY(5)
SELECT (1, 2) = (1, 2, 3)
SELECT (1, 2) IN (SELECT 1)
SELECT 1 IN (SELECT 1, 2)
SELECT (SELECT 1, 2)
SELECT ARRAY(SELECT 1, 2)
SELECT 'x'::int
SELECT 1 + 'x'
SELECT '2020-13-01'::date
SELECT date 'nope'
SELECT a = 'x' FROM t
SELECT d = 'nope' FROM t
SELECT bo = 'maybe' FROM t
SELECT u = 'nope' FROM t
SELECT '1.5'::int
SELECT 99999999999::int4
SELECT '99999999999'::int4
SELECT d::int FROM t
SELECT bo::date FROM t
SELECT u::int FROM t
SELECT ia::int FROM t
SELECT 1::varchar(0)
SELECT 1::numeric(0)
SELECT 1::numeric(2000)
SELECT 1::int(5)
SELECT '{1,x}'::int[]
SELECT ARRAY[1, 'x']
SELECT ARRAY[a, s] FROM t
SELECT ARRAY[]
SELECT 1 UNION SELECT 'x'
SELECT a FROM t UNION SELECT s FROM t
SELECT a, b FROM t UNION SELECT 1
SELECT a FROM t UNION SELECT a FROM t ORDER BY b
SELECT a FROM t UNION SELECT a FROM t ORDER BY a + 1
VALUES (1, 2), (3)
VALUES (1), ('x')
SELECT j FROM t ORDER BY j
SELECT j FROM t GROUP BY j
SELECT DISTINCT j FROM t
SELECT j FROM t UNION SELECT j FROM t
SELECT j = j FROM t
SELECT DISTINCT a FROM t ORDER BY b
SELECT DISTINCT ON (a) a FROM t ORDER BY b
SELECT a FROM t LIMIT a
SELECT a FROM t LIMIT 'x'
SELECT a FROM t LIMIT s
SELECT a FROM t LIMIT NULL
SELECT round('x')
SELECT lower()
SELECT substring(a, 1) FROM t
SELECT max(j) FROM t
SELECT sum(s) FROM t
SELECT array_append(ia, 'x') FROM t
SELECT array_append(ia, s) FROM t
SELECT extract(nope FROM a) FROM t
SELECT interval '1 nope'
SELECT s LIKE 5 FROM t
SELECT f % 2 FROM t
SELECT a FROM t WHERE a = 1 AND s
SELECT 1 FROM t JOIN w ON t.id
SELECT * FROM t JOIN "Odd Name" o (id) ON t.s = o.id
)");
}

TEST_F(AnalyzeLikePostgres, AggregateErrors) {
  Compare(R"(
SELECT a, count(*) FROM t
SELECT a, b FROM t GROUP BY a
SELECT t.a + b FROM t GROUP BY a
SELECT s, count(*) FROM t GROUP BY a
SELECT x FROM w GROUP BY id
SELECT * FROM t GROUP BY a
SELECT a FROM t GROUP BY a ORDER BY b
SELECT a FROM t HAVING count(*) > 1
SELECT count(*) FROM t HAVING a > 1
SELECT a FROM t WHERE count(*) > 1
SELECT count(*) FROM t GROUP BY count(*)
SELECT count(*) AS c FROM t GROUP BY c
SELECT count(*) FROM t GROUP BY 1
SELECT sum(count(*)) FROM t
SELECT count(count(*)) FROM t
SELECT * FROM t JOIN w ON count(*) > 1
SELECT count(a) FILTER (WHERE count(*) > 1) FROM t
SELECT a FROM t LIMIT count(*)
SELECT upper(*) FROM t
SELECT upper(DISTINCT s) FROM t
SELECT upper(s ORDER BY a) FROM t
SELECT upper(s) FILTER (WHERE true) FROM t
SELECT count() FROM t
SELECT row_number() FROM t
SELECT sum(DISTINCT a ORDER BY b) FROM t
SELECT string_agg(s) FROM t
SELECT string_agg(a, ',') FROM t
SELECT count(DISTINCT j) FROM t
SELECT (SELECT a FROM w WHERE w.id = t.b) FROM t GROUP BY t.a
SELECT a, (SELECT count(*) FROM w WHERE w.id = t.b) FROM t GROUP BY a
SELECT * FROM w, LATERAL (SELECT max(w.id)) l
SELECT max(a) FILTER (WHERE 5) FROM t
SELECT a FROM t GROUP BY a HAVING sum(b) > 1 AND c = 'x'
SELECT CASE a WHEN 1 THEN b END FROM t GROUP BY a
SELECT percentile_cont(0.5) FROM t
SELECT max(a, b) FROM t
)");
}

TEST_F(AnalyzeLikePostgres, AllSorts) { Compare(kAssortedStatements); }

TEST_F(AnalyzeLikePostgres, SyntaxErrors) {
  Compare(R"(
SELEC 1
SELECT 1 FROM
SELECT 1 +
SELECT (1
SELECT 'abc
SELECT é FROM t WHERE a = = 1
SELECT 'é', nope FROM t
SELECT * FROM (SELECT 1)
SELECT a b c FROM t
SELECT date $1
SELECT extract($1 FROM d) FROM t
SELECT a FROM t LIMIT 1, 2
SELECT * FROM (VALUES (1))
)");
}

}  // namespace
}  // namespace sluice
