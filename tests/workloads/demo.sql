\timing on
CALL sluice.attach_table('orders', expression => '(id % 4)', rule => 'list');
SELECT count(*) FROM orders;
SELECT region, sum(amount), count(*) FROM orders GROUP BY region ORDER BY region;
SELECT * FROM orders WHERE id = 4242;
SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3;
EXPLAIN (VERBOSE) SELECT region, sum(amount), count(*) FROM orders GROUP BY region;
SET enable_pushdown_aggregate = off;
EXPLAIN (ANALYZE) SELECT region, sum(amount), count(*) FROM orders GROUP BY region;
