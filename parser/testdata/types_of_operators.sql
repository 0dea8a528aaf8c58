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
