-- Data-modifying WITH.
WITH a AS (INSERT INTO w_accounts (id, owner) VALUES (201, 'a'), (202, 'b'), (203, 'c') RETURNING *) SELECT id, owner, balance FROM a;
WITH a AS (INSERT INTO w_accounts (id, owner) VALUES (211, 'a'), (212, 'b') RETURNING id) SELECT count(*), max(id) FROM a;
WITH a AS (DELETE FROM w_lines WHERE account <= 6 AND n = 1 RETURNING *) INSERT INTO w_days (id, message) SELECT account, note FROM a RETURNING *;
WITH a AS (UPDATE w_accounts SET balance = balance + 5 WHERE id BETWEEN 3 AND 9 RETURNING id, balance) SELECT a.id, a.balance, l.n FROM a JOIN w_lines l ON l.account = a.id AND l.n = 2;
WITH a AS (UPDATE w_accounts SET balance = 7 WHERE id < 3 RETURNING id), b AS (DELETE FROM w_lines USING a WHERE account = a.id RETURNING account, n) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b);
WITH a AS (DELETE FROM w_lines WHERE account = 20) SELECT 1;
WITH a AS (INSERT INTO w_days VALUES (900, '2024-02-02', 'x') RETURNING *), b AS (SELECT * FROM a) SELECT x.id, y.message FROM a x JOIN b y ON x.id = y.id;
WITH a AS (INSERT INTO w_words SELECT 'with' || g, g FROM generate_series(1, 400) g RETURNING word, n) SELECT count(*), sum(n) FROM a WHERE n % 2 = 0;
WITH a AS (DELETE FROM w_lines WHERE account = 30) SELECT * FROM a;
SELECT * FROM (WITH a AS (DELETE FROM w_lines RETURNING *) SELECT * FROM a) x;
WITH a AS (INSERT INTO w_accounts (id, owner) VALUES (1, 'dup') RETURNING id) SELECT * FROM a;
WITH a AS (DELETE FROM w_days RETURNING id) INSERT INTO w_accounts (id, owner) SELECT 1, 'dup' FROM a;
SELECT * FROM w_accounts ORDER BY id;
SELECT * FROM w_days ORDER BY id;
SELECT count(*), sum(amount) FROM w_lines;
