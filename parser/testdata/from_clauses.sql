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
