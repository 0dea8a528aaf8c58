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
