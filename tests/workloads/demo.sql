\timing on
CALL sluice.attach_table('orders', expression => '(id % 4)', rule => 'list');
SELECT count(*) FROM orders;
SELECT region, sum(amount), count(*) FROM orders GROUP BY region ORDER BY region;
SELECT * FROM orders WHERE id = 4242;
SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3;
EXPLAIN (VERBOSE) SELECT region, sum(amount), count(*) FROM orders GROUP BY region;
SET enable_pushdown_aggregate = off;
EXPLAIN (ANALYZE) SELECT region, sum(amount), count(*) FROM orders GROUP BY region;
RESET enable_pushdown_aggregate;
-- A live view and one on it, both built in the background, then kept up to date.
SET background_ddl = on;
CREATE MATERIALIZED VIEW totals AS SELECT region, count(*), sum(amount) FROM orders GROUP BY region;
CREATE MATERIALIZED VIEW best AS SELECT region, sum FROM totals ORDER BY sum DESC, region LIMIT 3;
SELECT view, state, waits_for, shards, percent FROM sluice.jobs;
WAIT;
SELECT * FROM best ORDER BY sum DESC;
UPDATE orders SET amount = amount + 1000000 WHERE id = 4242;
FLUSH;
SELECT * FROM best ORDER BY sum DESC;
SELECT * FROM sluice.verify('best');
SELECT server, lag_bytes, lag_seconds FROM sluice.shards;
