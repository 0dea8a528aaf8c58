-- The rows of every differential test. Runs on the reference Postgres (sluice.shard = 0: keeps all rows) and
-- on each shard (keeps its own).
CREATE FUNCTION on_other_shard(key bigint) RETURNS bool LANGUAGE sql AS
$$ SELECT current_setting('sluice.shard') <> '0' AND key % 4 <> current_setting('sluice.shard')::int % 4 $$;

-- The enum's oid differs from shard to shard.
DO $$ BEGIN FOR i IN 1..current_setting('sluice.shard')::int LOOP EXECUTE format('CREATE TYPE filler%s AS ENUM (''x'')', i); END LOOP; END $$;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');

CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, region text NOT NULL, amount numeric(12,2) NOT NULL, qty int NOT NULL, price float8 NOT NULL, created timestamptz NOT NULL, note text);
INSERT INTO orders SELECT g, ((g * 7919) % 100)::int, (ARRAY['emea','apac','amer','latam'])[1 + g % 4 % 3 + g % 2], ((g * 37) % 100000) / 100.0, g % 50, (g % 1000) * 1.25, timestamptz '2024-01-01 00:00:00+00' + (g % 31536000) * interval '1 second', CASE WHEN g % 10 = 0 THEN NULL ELSE 'note ' || g % 1000 END FROM generate_series(1, 6000) g;
DELETE FROM orders WHERE on_other_shard(id);

CREATE TABLE items (order_id bigint, line int, product int NOT NULL, qty int, price numeric(10,2), PRIMARY KEY (order_id, line));
INSERT INTO items SELECT o, l, (o * 31 + l * 17) % 50, CASE WHEN (o + l) % 7 = 0 THEN NULL ELSE (o + l) % 9 END, ((o * 13 + l) % 1000) / 10.0 FROM generate_series(1, 1500) o, generate_series(1, 3) l WHERE (o + l) % 5 <> 0;
DELETE FROM items WHERE on_other_shard(order_id);

CREATE TABLE customers (id int PRIMARY KEY, name text, region text, credit numeric, boss int);
INSERT INTO customers SELECT g, 'customer ' || g, CASE WHEN g % 9 = 0 THEN NULL ELSE (ARRAY['emea','apac','amer'])[1 + g % 3] END, CASE WHEN g % 11 = 0 THEN NULL ELSE g * 10.5 END, CASE WHEN g % 5 = 0 THEN NULL ELSE g / 2 END FROM generate_series(1, 120) g;
DELETE FROM customers WHERE on_other_shard(id);

-- Every kind of value, with NULLs.
CREATE TABLE things (id int PRIMARY KEY, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, t text, v varchar(20), c char(5), y bytea, d date, tm time, ts timestamp, tz timestamptz, iv interval, u uuid, js json, jb jsonb, ai int[], at text[], m mood, o oid);
INSERT INTO things SELECT g, CASE g % 3 WHEN 0 THEN true WHEN 1 THEN false END, (g % 200 - 100)::int2, g * 1000 - 50000, g::bigint * 10000000000 - 5, (g * 0.5)::float4, g * 0.25, CASE g % 6 WHEN 0 THEN NULL WHEN 1 THEN g * 0.000067 WHEN 2 THEN g * 123456789012345678901234567890.5 ELSE g / 8.0 END, CASE WHEN g % 7 = 0 THEN NULL ELSE chr(65 + g % 26) || g || repeat('x', g % 30) END, 'v' || g % 13, 'c' || g % 11, decode(lpad(to_hex(g * 7), 8, '0'), 'hex'), date '2020-01-01' + g, time '00:00' + g * interval '77 seconds', timestamp '2021-03-04 05:06:07.89' + g * interval '1 hour', timestamptz '2021-03-04 05:06:07.123456+00' + g * interval '1 day', g * interval '1 hour' + (g % 5) * interval '1 month', md5(g::text)::uuid, ('{"k": ' || g || '}')::json, ('{"k": ' || g % 10 || ', "s": "x"}')::jsonb, CASE WHEN g % 4 = 0 THEN NULL ELSE ARRAY[g, NULL, g * 2] END, ARRAY['a' || g, NULL, 'q"uo,te'], (ARRAY['sad','ok','happy'])[1 + g % 3]::mood, g FROM generate_series(1, 200) g;
INSERT INTO things (id, n, f8, f4, d, ts, tz) VALUES (1001, 'NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity'), (1002, 'Infinity', 'Infinity', 'Infinity', '-infinity', '-infinity', '-infinity'), (1003, '-Infinity', '-Infinity', '-Infinity', '4713-01-01 BC', '0044-03-15 BC', '0044-03-15 00:00:00+00 BC'), (1004, 0.000067, -0.0, 0, '2000-01-01', '2000-01-01', '2000-01-01 00:00:00+00'), (1005, NULL, NULL, NULL, NULL, NULL, NULL);
DELETE FROM things WHERE on_other_shard(id);

-- One value on one shard, none on the others; and a table without rows.
CREATE TABLE single (id int PRIMARY KEY, v numeric, f float8, g text);
INSERT INTO single VALUES (6, 2.50, 2.5, 'g');
DELETE FROM single WHERE on_other_shard(id);
CREATE TABLE nothing (id int PRIMARY KEY, v int, w text);
CREATE TABLE nulls (id int PRIMARY KEY, v int, t text, n numeric, f float8);
INSERT INTO nulls SELECT g, NULL, NULL, NULL, NULL FROM generate_series(1, 20) g;
DELETE FROM nulls WHERE on_other_shard(id);

-- Exactly a batch of rows, one more, one fewer (on one shard).
CREATE TABLE batch (id int PRIMARY KEY, k int);
INSERT INTO batch SELECT g * 4 + 1, g FROM generate_series(0, 2048) g;
DELETE FROM batch WHERE on_other_shard(id);

-- No key, spread by a rule that only the application knows.
CREATE TABLE events (kind text, at timestamptz, weight int);
INSERT INTO events SELECT 'kind ' || g % 7, timestamptz '2024-02-01 12:00:00+00' + g * interval '1 minute', CASE WHEN g % 13 = 0 THEN NULL ELSE g % 17 END FROM generate_series(1, 500) g WHERE current_setting('sluice.shard') = '0' OR (g / 100) % 4 + 1 = current_setting('sluice.shard')::int;

-- On the first shard only.
CREATE TABLE regions (code text PRIMARY KEY, title text, big bool);
INSERT INTO regions SELECT * FROM (VALUES ('emea', 'Europe, Middle East, Africa', true), ('apac', 'Asia, Pacific', true), ('amer', 'America', false), ('nowhere', NULL, NULL)) v WHERE current_setting('sluice.shard')::int <= 1;
CREATE VIEW big_orders AS SELECT id, customer, amount FROM orders WHERE amount > 500;
ANALYZE;

-- Tables for modify_*.sql, empty: modify_reset.sql fills them before each file.
CREATE TABLE w_accounts (id int PRIMARY KEY, owner text NOT NULL, balance numeric(12,2) DEFAULT 0 CHECK (balance >= 0), kind mood, seen timestamptz);
CREATE TABLE w_lines (account int, n int, amount int, note varchar(10) DEFAULT 'none', PRIMARY KEY (account, n));
CREATE TABLE w_days (id bigint, at date, message text);
CREATE TABLE w_words (word text, n int, tags text[], UNIQUE (word));
CREATE TABLE w_names (code text PRIMARY KEY, title text DEFAULT 'untitled', rank int GENERATED ALWAYS AS (length(code)) STORED);
