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
