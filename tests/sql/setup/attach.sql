-- Postgres's own DDL, as for postgres_fdw.
CREATE TABLE orders (id bigint, customer int NOT NULL, region text NOT NULL, amount numeric(12,2) NOT NULL, qty int NOT NULL, price float8 NOT NULL, created timestamptz NOT NULL, note text) PARTITION BY LIST ((id % 4));
CREATE FOREIGN TABLE orders_1 PARTITION OF orders FOR VALUES IN (1) SERVER shard1 OPTIONS (table_name 'orders');
CREATE FOREIGN TABLE orders_2 PARTITION OF orders FOR VALUES IN (2) SERVER shard2 OPTIONS (table_name 'orders');
CREATE FOREIGN TABLE orders_3 PARTITION OF orders FOR VALUES IN (3) SERVER shard3 OPTIONS (table_name 'orders');
CREATE FOREIGN TABLE orders_4 PARTITION OF orders FOR VALUES IN (0) SERVER shard4 OPTIONS (table_name 'orders');
CREATE TABLE items (order_id bigint, line int, product int NOT NULL, qty int, price numeric(10,2)) PARTITION BY LIST ((order_id % 4));
CREATE FOREIGN TABLE items_1 PARTITION OF items FOR VALUES IN (1) SERVER shard1 OPTIONS (table_name 'items');
CREATE FOREIGN TABLE items_2 PARTITION OF items FOR VALUES IN (2) SERVER shard2 OPTIONS (table_name 'items');
CREATE FOREIGN TABLE items_3 PARTITION OF items FOR VALUES IN (3) SERVER shard3 OPTIONS (table_name 'items');
CREATE FOREIGN TABLE items_4 PARTITION OF items FOR VALUES IN (0) SERVER shard4 OPTIONS (table_name 'items');
CREATE FOREIGN TABLE regions (code text, title text, big bool) SERVER shard1 OPTIONS (schema_name 'public', table_name 'regions');
-- Existing sharded tables, from all servers at once.
CALL sluice.attach_table('customers');
CALL sluice.attach_table('things');
CALL sluice.attach_table('single');
CALL sluice.attach_table('nothing');
CALL sluice.attach_table('nulls');
CALL sluice.attach_table('batch');
CALL sluice.attach_table('events');
CREATE VIEW big_orders AS SELECT id, customer, amount FROM orders WHERE amount > 500;
