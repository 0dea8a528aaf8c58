-- What modify_*.sql begin with; runs on the reference and on each shard, as schema.sql.
TRUNCATE w_accounts, w_lines, w_days, w_words, w_names;
INSERT INTO w_accounts SELECT g, 'owner ' || g % 5, g * 10, (ARRAY['sad','ok','happy'])[1 + g % 3]::mood, timestamptz '2024-01-01 00:00:00+00' + g * interval '1 day' FROM generate_series(1, 40) g;
DELETE FROM w_accounts WHERE on_other_shard(id);
INSERT INTO w_lines SELECT a, n, a * n, 'n' || n FROM generate_series(1, 40) a, generate_series(1, 3) n;
DELETE FROM w_lines WHERE on_other_shard(account);
INSERT INTO w_names SELECT 'c' || g, 'title ' || g FROM generate_series(1, 6) g WHERE current_setting('sluice.shard') IN ('0', '1');
