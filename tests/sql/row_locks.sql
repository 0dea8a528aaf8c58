-- FOR UPDATE and its kin give the rows that they would give without, and where none can be locked
-- the error. (What they lock: tests/isolation.)
SELECT id, qty FROM orders WHERE id < 50 ORDER BY id FOR UPDATE;
SELECT id, qty FROM orders WHERE id = 7 FOR NO KEY UPDATE;
SELECT id, qty FROM orders WHERE id < 50 AND qty > 3 ORDER BY qty, id LIMIT 5 FOR SHARE;
SELECT id FROM orders WHERE id < 50 ORDER BY id LIMIT 3 OFFSET 2 FOR KEY SHARE;
SELECT id, qty FROM orders ORDER BY id FOR UPDATE SKIP LOCKED;
SELECT id, qty FROM orders WHERE id < 50 FOR UPDATE NOWAIT;
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE o.id < 50 ORDER BY 1 FOR UPDATE;
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE o.id < 50 ORDER BY 1 FOR UPDATE OF o FOR SHARE OF c NOWAIT;
SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer) AND o.id < 50 ORDER BY 1 FOR UPDATE;
SELECT sum(qty) FROM (SELECT qty FROM orders WHERE id < 50 FOR UPDATE) s;
SELECT s.id FROM (SELECT id FROM orders WHERE id < 50) s ORDER BY 1 FOR UPDATE;
SELECT s.id FROM (SELECT id, count(*) FROM orders GROUP BY id) s ORDER BY 1 FOR UPDATE;
SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.id WHERE o.id < 50 ORDER BY 1 FOR UPDATE OF o;
SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.id WHERE o.id < 50 ORDER BY 1 FOR UPDATE OF c;
WITH w AS (SELECT id FROM orders WHERE id < 20 FOR UPDATE) SELECT * FROM w ORDER BY 1;
SELECT id FROM orders, generate_series(1, 2) g WHERE id < 10 ORDER BY id, g FOR UPDATE;
SELECT id FROM orders UNION ALL (SELECT id FROM orders FOR UPDATE);
SELECT generate_series(1, 2), id FROM orders FOR UPDATE;
SELECT id FROM orders HAVING true FOR UPDATE;
SELECT id FROM orders FOR UPDATE OF o;
SELECT DISTINCT ON (qty) id FROM orders FOR UPDATE;
