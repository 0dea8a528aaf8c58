SELECT a, b FROM t WHERE a::text = '5' AND b::int = a
SELECT sum(a)::int, sum(a)/count(*), avg(a)::numeric(10,2), round(avg(n), 2), count(*)::float / 3 FROM t
SELECT * FROM t WHERE d >= '2020-01-01' AND d < date '2020-01-01' + interval '1 month'
SELECT * FROM t WHERE ts BETWEEN '2020-01-01' AND '2020-02-01'
SELECT * FROM t WHERE tz > now() - interval '1 day'
SELECT * FROM t WHERE s IN ('a', 'b', 'c') OR v IN ('x', 'y')
SELECT * FROM t WHERE (a = 1 OR b = 2) AND NOT (s IS NULL)
SELECT * FROM t WHERE m IN ('sad')
SELECT * FROM t WHERE u IN ('00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000001')
SELECT * FROM t WHERE ia @> ARRAY[1] AND ia <@ '{1,2}' AND ta && '{a}'
SELECT * FROM t WHERE ia = ARRAY[1,2] OR ta = '{}'
SELECT array_agg(a ORDER BY b) FILTER (WHERE a > 0), array_agg(DISTINCT a) FROM t
SELECT min(ts) - max(ts), max(d) - min(d), max(tz) - now() FROM t
SELECT CASE WHEN a > 0 THEN 'pos' WHEN a < 0 THEN 'neg' ELSE 'zero' END AS sign, count(*) FROM t GROUP BY 1
SELECT CASE WHEN a > 0 THEN 'pos' ELSE 'x' END, count(*) FROM t GROUP BY CASE WHEN a > 0 THEN 'pos' ELSE 'x' END
SELECT date_trunc('month', ts) AS mon, sum(n) FROM t GROUP BY date_trunc('month', ts) ORDER BY mon
SELECT extract(year FROM ts)::int AS y, count(*) FROM t GROUP BY y
SELECT s, sum(a) FROM t GROUP BY s HAVING sum(a) > 10 AND max(b) IS NOT NULL ORDER BY sum(a) DESC NULLS LAST, s
SELECT coalesce(s, 'none') AS s, count(*) FROM t GROUP BY coalesce(s, 'none')
SELECT lower(s) FROM t GROUP BY lower(s)
SELECT upper(lower(s)) FROM t GROUP BY lower(s)
SELECT a % 10, count(*) FROM t GROUP BY a % 10 ORDER BY a % 10
SELECT a + 1 FROM t GROUP BY a ORDER BY a + 1
SELECT t1.a, sum(t2.b) FROM t t1 JOIN t t2 ON t1.id = t2.a GROUP BY t1.a
SELECT t1.id, t1.s, sum(t2.b) FROM t t1 JOIN t t2 ON t1.id = t2.a GROUP BY t1.id
SELECT DISTINCT s, upper(s) FROM t ORDER BY upper(s)
SELECT DISTINCT s AS x FROM t ORDER BY x
SELECT count(DISTINCT (a + b)) FROM t
SELECT count(DISTINCT a), sum(DISTINCT n) FROM t
SELECT string_agg(s, ', ' ORDER BY s DESC, a), string_agg(s::text, ',') FROM t
SELECT string_agg(DISTINCT s, ',' ORDER BY s) FROM t
SELECT string_agg(DISTINCT v, ',' ORDER BY v) FROM t
SELECT string_agg(DISTINCT s, ',' ORDER BY a) FROM t
SELECT bool_and(a > 0) OR bool_or(b > 0) FROM t
SELECT exists(SELECT 1 FROM w WHERE w.id = t.id) AS e, not exists(SELECT 1 FROM w) FROM t
SELECT (SELECT sum(w.a) FROM w WHERE w.id = t.id) + 1 FROM t
SELECT * FROM t WHERE a > (SELECT avg(a) FROM t)
SELECT * FROM t WHERE (a, b) IN (SELECT id, a FROM w)
SELECT * FROM t WHERE a NOT IN (SELECT id FROM w WHERE id IS NOT NULL)
SELECT * FROM t WHERE a = ALL (SELECT id FROM w)
SELECT * FROM t WHERE a <> ANY (ARRAY[1,2])
SELECT * FROM t WHERE s = ANY (ARRAY['a','b'])
SELECT * FROM t WHERE v = ANY (ARRAY['a','b'])
SELECT * FROM t WHERE v = ANY (ARRAY['a','b']::text[])
SELECT * FROM t WHERE id = ANY ($1::int[])
SELECT * FROM t WHERE s = ANY ($1)
SELECT * FROM t WHERE n = ANY ($1)
SELECT * FROM t WHERE c = 'abc' AND c = $1
SELECT * FROM t WHERE v = $1 AND v LIKE $2 AND v > s
SELECT * FROM t WHERE bo = true AND bo AND bo IS NOT FALSE
SELECT * FROM t WHERE n > 1.5 AND n < 100 AND f > 1 AND r < 1.5 AND sm = 3 AND b = 10000000000
SELECT * FROM t WHERE a > 2147483648
SELECT * FROM t WHERE sm > 100000
SELECT -a, - - a, +a, -(-5), -n, -f, -iv FROM t
SELECT 1/2, 1/2.0, 5%3, 2^3, 2^0.5, 7 / 2::float
SELECT 1::bigint + 1, 1::smallint + 1::smallint, 1.5::real + 1, 1.5::real + 1.5::float8, 1 + 1.5::real
SELECT '1'::text || 2, 'a'::varchar || 'b'::char(2), 'a' || NULL, NULL || NULL
SELECT NULL::int + 1, NULL + 1, -NULL, NOT NULL
SELECT now()::date, now()::time, now()::timestamp, current_date + 1, current_date - date '2020-01-01', localtimestamp - now()
SELECT to_char(now(), 'YYYY-MM-DD'), to_char(a, '999'), to_char(n, '9.9'), to_char(f, '9'), to_char(iv, 'HH') FROM t
SELECT to_number('1', '9'), to_timestamp('2020', 'YYYY'), to_timestamp(1.5), to_hex(a), to_hex(b) FROM t
SELECT substring(s, 1, 2), substring(s from 'a.b'), substring(s from 2), substring(s for 3), substring(s similar 'a#"b#"' escape '#'), substr(s, 1, 2), substring(by from 1 for 2) FROM t
SELECT position('a' in s), strpos(s, 'a'), char_length(s), octet_length(s), bit_length(s), length(by), octet_length(c), char_length(c) FROM t
SELECT trim(s), trim(leading from s), trim(trailing 'x' from s), ltrim(s), rtrim(s, 'x'), btrim(s, 'a'), trim(v), trim(c) FROM t
SELECT regexp_replace(s, 'a', 'b'), regexp_match(s, 'a'), regexp_split_to_array(s, ','), regexp_replace(s, 'a', 'b', 'g'), regexp_count(s, 'a'), regexp_like(s, 'x'), regexp_substr(s, 'x') FROM t
SELECT overlay(s placing 'x' from 2 for 3), encode(by, 'hex'), decode('00', 'hex'), quote_ident(s), quote_literal(s), quote_nullable(a), quote_literal(a) FROM t
SELECT (d, d) OVERLAPS (d, d), (ts, iv) OVERLAPS (ts, iv) FROM t
SELECT date_part('epoch', tz), extract(century from d), extract(microseconds from tm), extract(timezone from tz), date_bin('15 min', ts, ts) FROM t
SELECT make_interval(), make_timestamp(2020,1,1,1,1,1.5), make_time(1,2,3.5), make_timestamptz(2020,1,1,1,1,1.5)
SELECT make_interval(1, 2), jsonb_set(jb, '{a}', '1', false), jsonb_insert(jb, '{a}', '1'), parse_ident(s) FROM t
SELECT timezone('UTC', ts), ts AT TIME ZONE interval '1 hour', tm AT TIME ZONE 'UTC' FROM t
SELECT justify_hours(iv), iv::text, iv::time, tm::interval, d::timestamptz, ts::timestamptz, tz::timestamp, d::timestamp::date FROM t
SELECT ceil(a), ceiling(n), floor(n), round(a), round(f::numeric, 2), trunc(f), trunc(n, 1), width_bucket(n, 1, 2, 3), width_bucket(f, 1, 2, 3), gcd(a, 2), lcm(b, 2), factorial(3), cbrt(f), degrees(f), radians(f), sin(f), atan2(f, f), scale(n), min_scale(n), trim_scale(n), log(n), log(f), log(2, n), log10(f) FROM t
SELECT random(), setseed(0.5), gen_random_uuid(), md5(by), sha256(by), pg_sleep(0), txid_current(), pg_backend_pid(), inet_client_addr(), current_schemas(true), current_setting('x'), current_setting('x', true), set_config('a', 'b', false)
SELECT array_dims(ia), array_ndims(ia), array_lower(ia, 1), array_fill(1, ARRAY[2]), array_positions(ia, 1), array_replace(ia, 1, 2), trim_array(ia, 1), string_to_array(s, ',', 'x'), array_to_string(ta, ',', 'n'), ia || ARRAY[1], ia || '{1}' FROM t
SELECT jsonb_build_array(a, s), json_build_object('k', a, 'v', s), jsonb_object('{a,b}'), to_json(s), to_json('x'::text), array_to_json(ia), jsonb_object_agg(s, a), json_object_agg(s, a), jsonb_agg(a ORDER BY b) FROM t GROUP BY jb, a, s, ia
SELECT least(a, b, 1.5), greatest('2020-01-01', d), least('x', 'y'), greatest(NULL, 1), least(ts, tz) FROM t
SELECT nullif(d, '2020-01-01'), nullif('a', 'b'), nullif(1, 1.5), nullif(a, b), nullif(NULL, 1) FROM t
SELECT coalesce(d, ts, tz), coalesce(a, '5'), coalesce(d, 'today'), coalesce(NULL, NULL), coalesce(m, 'ok') FROM t
SELECT CASE WHEN bo THEN a WHEN NOT bo THEN n ELSE f END, CASE WHEN bo THEN c ELSE v END, CASE WHEN bo THEN '1' ELSE 2 END, CASE m WHEN 'sad' THEN 1 END FROM t
SELECT ARRAY[a, n], ARRAY[d, ts], ARRAY['x', s], ARRAY[v, c], ARRAY[NULL, 1], ARRAY[ia, ia], ARRAY[ARRAY['a'], ARRAY['b']]::varchar[], ARRAY[m, 'ok'] FROM t
SELECT ARRAY[1,2] = '{1,2}', ARRAY[1,2] || 3, ARRAY[1] || NULL, ARRAY['a'] || 'b', 3 = ANY (ARRAY[1,2]), ARRAY[1.5] || 1
SELECT a::"char", s::regclass, 'int4'::regtype, a::money, s::xml, '1.2.3.4'::inet, '(1,2)'::point, int4range(1,5), '[1,2]'::int4range FROM t
SELECT lower(int4range(1,5)), int4range(1,5) @> 3, numrange(1,2) && numrange(1.5, 3), upper(tsrange(ts, ts)), isempty('[1,1)'::int4range) FROM t
SELECT point(1,2) <-> point(3,4), '1.2.3.4'::inet << '1.0.0.0/8', host('1.2.3.4'), inet '1.2.3.4' + 5
SELECT to_tsvector('x') @@ to_tsquery('y'), ts_rank(to_tsvector(s), plainto_tsquery('a')) FROM t
SELECT x.a1 FROM tv x JOIN tvv ON x.a1 = tvv.k
SELECT tv.*, t.n FROM tv JOIN t USING (id)
WITH a AS (SELECT id, sum(a) AS sa FROM t GROUP BY id) SELECT w.x, a.sa FROM w JOIN a ON w.id = a.id WHERE a.sa > (SELECT avg(sa) FROM a)
WITH a AS (SELECT 1 x), b AS (SELECT * FROM a UNION ALL SELECT 2) SELECT * FROM b WHERE x IN (SELECT x FROM a)
WITH a(x, y) AS (VALUES (1, 'a'), (2, 'b')) SELECT y, x FROM a
SELECT * FROM (WITH z AS (SELECT a FROM t) SELECT * FROM z) q
SELECT * FROM t WHERE EXISTS (WITH z AS (SELECT 1) SELECT * FROM z)
SELECT * FROM (SELECT a, b FROM t) AS q WHERE q.a = (SELECT max(q.b))
SELECT a FROM t WHERE a IN (SELECT t.a)
SELECT (SELECT a) FROM t
SELECT (SELECT count(*) FROM w WHERE w.a = t.a AND w.id IN (SELECT t.id FROM w w2 WHERE w2.id = t.b)) FROM t
SELECT max((SELECT a)) FROM t
SELECT (SELECT sum(t.a + w.id) FROM w) FROM t
SELECT (SELECT sum(t.a)) FROM t
SELECT count(*) FROM t HAVING (SELECT max(t.a)) > 1
SELECT a FROM t GROUP BY a HAVING (SELECT max(t.b)) > 1
SELECT * FROM t LEFT JOIN w ON t.id = w.id AND w.x = 'a' WHERE w.id IS NULL
SELECT t.id FROM t JOIN w ON w.id = t.id JOIN w w2 USING (id)
SELECT id FROM t JOIN w USING (id) JOIN tv USING (id)
SELECT * FROM t JOIN w USING (id) JOIN tv USING (id) LIMIT 1
SELECT * FROM t t1 NATURAL FULL JOIN t t2
SELECT * FROM w a NATURAL LEFT JOIN w b
SELECT a.*, b.x FROM w a LEFT JOIN w b ON a.id = b.id ORDER BY a.id, b.x NULLS FIRST
SELECT sum(x.a) FROM (SELECT a FROM t LIMIT 10) x
SELECT s.n FROM generate_series(1, 10) AS s(n) LEFT JOIN t ON t.a = s.n
SELECT n, (SELECT count(*) FROM t WHERE a = n) FROM generate_series(1, 10, 2) n
SELECT * FROM t, generate_series(1, t.a) g
SELECT * FROM unnest(ARRAY[1,2]) WITH ORDINALITY
SELECT u.* FROM t CROSS JOIN LATERAL unnest(ia) AS u
SELECT 1 AS "A b", 2 AS a, 3 AS select
SELECT 1 a, 2 b
SELECT t.a AS x FROM t ORDER BY t.a, x
SELECT a x, count(*) c FROM t GROUP BY x ORDER BY c
SELECT a FROM t ORDER BY (SELECT 1)
SELECT a FROM t ORDER BY s COLLATE "C"
SELECT s FROM t ORDER BY s USING >
SELECT a AS a FROM t UNION SELECT b FROM t ORDER BY a DESC NULLS FIRST OFFSET 1
SELECT 1, 'x' UNION SELECT 2, 'y' UNION ALL SELECT NULL, NULL
SELECT '1' UNION SELECT 2
SELECT ARRAY[1] UNION SELECT '{2}'
SELECT NULL INTERSECT SELECT 'x'
(SELECT 1) UNION ((SELECT 2) EXCEPT (SELECT 3))
SELECT a FROM t WHERE a = 1 UNION ALL SELECT a FROM t WHERE a = 2 UNION ALL SELECT sm FROM t
(SELECT s FROM t ORDER BY 1 LIMIT 5) UNION (SELECT v FROM t)
(SELECT DISTINCT sm FROM t) UNION ALL SELECT b FROM t
SELECT 1.5 UNION SELECT 2::float8
SELECT d FROM t UNION SELECT 'today'
VALUES (1, NULL), (NULL, 'x')
VALUES ('a'), (NULL)
VALUES (1::smallint), (2), (3.5::real)
VALUES ('2020-01-01'::date), ('today')
VALUES ($1, 2), (3, $2)
SELECT * FROM (VALUES (1.0::numeric(4,2)), (2.5::numeric(4,2))) v
SELECT * FROM (VALUES (1.0::numeric(4,2)), (2.5::numeric(5,2))) v
SELECT $1::int + $2, $3 || 'a', $4 > now()
SELECT * FROM t WHERE a = $1 OR b = $1
SELECT * FROM t WHERE n = $1 AND a = $1
SELECT count(*) FROM t WHERE ts >= $1 AND ts < $1 + interval '1 day'
SELECT count(*) FROM t WHERE ts >= $1::timestamp AND ts < $1::timestamp + $2
SELECT * FROM t LIMIT $1::int
SELECT CASE WHEN $1 = 1 THEN $2 ELSE a END FROM t
SELECT $1 LIKE 'x', $2 ~ 'y', $3 AND true, $4 IS TRUE
SELECT sum($1), max($2::int), count($3::text)
SELECT $1 BETWEEN 1 AND 5, $2 IN ('a', 'b'), $3 = ANY(ARRAY[1,2])
SELECT s || $1, v || $1, a + $2 FROM t
SELECT substring($1, 1, 2), length($2), round($3, 2), round($4)
SELECT extract(year FROM $1::date), date_trunc('day', $2)
SELECT ($1 + 1)::text, -$2, @$3
SELECT ROW(1,2) = ROW(1,2), (1,2) >= (1,3), (1, 'a') < ($1, $2)
SELECT interval '1' year, interval '1-2' year to month, interval '5' minute, interval '1 2:03' day to second, '1 day'::interval day, '1.5 s'::interval(0), '2'::interval second(1)
SELECT time '10:00', timetz '10:00+1', time(3) '10:00:00.12345', timestamp(2) '2020-01-01 00:00:00.555', timestamp with time zone '2020-01-01', bit '101', varbit '1', bit(3) '101', B'101'::bit(2)
SELECT char 'abc', varchar(2) 'abc', character varying 'x', bpchar 'x', 'abc'::character(2), "char" 'a', name 'abc', text 'x'
SELECT float '1.5', real '1', double precision '2', decimal '1.5', decimal(5,2) '1.5', dec(3) '1', smallint '1', bigint '1', boolean 'yes'
SELECT 1::float(1), 1::float(30), 1::float4, 1::serial
SELECT 'a'::text COLLATE "C" = 'b', s COLLATE "POSIX", (s COLLATE "C")::varchar(3), v COLLATE pg_catalog."default" FROM t
SELECT array_agg(v), array_agg(c), max(v || 'x'), min(c), max(v::varchar(5)), array_agg(d) FROM t
SELECT sum(n)::numeric(12,2), avg(n)::numeric(5,1), max(n), min(n), n * 2, n + n, abs(n), round(n), coalesce(n, 0), coalesce(n, n), nullif(n, 1), greatest(n, n), -n FROM t GROUP BY n
SELECT v || '', coalesce(v, 'x'), coalesce(v, v), CASE WHEN bo THEN v ELSE v END, CASE WHEN bo THEN v END, nullif(v, 'x'), greatest(v, v), lower(v), (SELECT v), ARRAY[v], max(v) FROM t GROUP BY v, bo
SELECT tz, coalesce(tz, tz), tz + iv, date_trunc('day', tz), max(tz), tz::timestamptz, tz::timestamptz(1), CASE WHEN bo THEN tz END, (SELECT tz LIMIT 1) FROM t GROUP BY tz, iv, bo
SELECT c || 'x', c::text, c::varchar, c::varchar(10), c::char(3), c::bpchar, trim(c), c = 'x ', lower(c), coalesce(c, c), max(c) FROM t GROUP BY c
SELECT ia::bigint[], ia::text[], '{a}'::varchar(3)[], ta::varchar[], ia::numeric(5,2)[], array_agg(n), array_agg(v) FROM t GROUP BY ia, ta
SELECT "select" FROM "Odd Name" o WHERE o."Col" = 1 AND "Odd Name"."Col" = 2
SELECT o."col" FROM "Odd Name" o
SELECT t.A, T.B, "t"."s" FROM T
SELECT oid FROM w
SELECT a FROM t WHERE current_date = d AND current_timestamp > tz AND localtime > tm
SELECT a FROM t WHERE s IS NULL OR s = '' OR s IS NOT NULL AND NOT bo
SELECT a ISNULL, a NOTNULL FROM t
SELECT 5 OPERATOR(pg_catalog.+) 3, a OPERATOR(pg_catalog.=) b FROM t
SELECT 5 OPERATOR(foo.+) 3
SELECT a # 1, a >> 1, f ^ 2, ||/ f, !! 5 FROM t
SELECT a !~ 'x' FROM t
SELECT s ~~ 'x', s !~~* 'y', s ^@ 'x', s ~>=~ 'a', s < 'b', name 'x' = 'y', name 'a' || 'b' FROM t
SELECT 'a' < 'b', 'a' LIKE 'b', 'x' IN ('x', 'y'), 'a' = ANY('{a,b}'), 'a' BETWEEN 'b' AND 'c', 1 BETWEEN SYMMETRIC 3 AND 2
SELECT 'abc'::int, 1
SELECT int '1x'
SELECT numeric '1.2.3'
SELECT '1'::bool, 't'::bool, 'oops'::bool
SELECT timestamp '2020-02-30'
SELECT interval '1 foo'
SELECT time '25:00'
SELECT uuid 'xyz'
SELECT '{1,2'::int[]
SELECT '{"a":}'::json
SELECT '{"a":}'::jsonb
SELECT '\xzz'::bytea
SELECT float8 '1e400'
SELECT '99999'::smallint
SELECT 'x'::mood
SELECT oid '-x'
SELECT a + FROM t
SELECT count(*) OVER FROM t
SELECT lag(a) FROM t
SELECT nosuch(*) FROM t
SELECT t.upper FROM t
SELECT s.upper FROM t s
SELECT t.a.b FROM t
SELECT a.b.c.d.e FROM t
SELECT db.public.t.a FROM t
SELECT * FROM t WHERE unnest(ia) = 1
SELECT * FROM generate_series(1, generate_series(1,2))
SELECT 1 LIMIT generate_series(1,2)
SELECT DISTINCT ON (1) a, b FROM t ORDER BY 1
SELECT DISTINCT ON (3) a, b FROM t
SELECT DISTINCT a FROM t ORDER BY a + 1
SELECT a FROM t GROUP BY a, a, 1
SELECT a FROM t OFFSET -1
SELECT a FROM t LIMIT -1
SELECT a FROM t LIMIT 10000000000000000000000
SELECT a FROM t FETCH FIRST ROW ONLY
SELECT a FROM t ORDER BY a OFFSET 2 ROWS FETCH NEXT 5 ROWS ONLY
SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES
SELECT 1 WHERE NULL
SELECT 1 WHERE $1
SELECT 1 FROM t WHERE NULL = a
SELECT a FROM t HAVING a > 1
SELECT true AND NULL, NOT NULL::bool, NULL IS TRUE, 'true' AND 'f'
