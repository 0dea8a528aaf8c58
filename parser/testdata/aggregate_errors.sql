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
