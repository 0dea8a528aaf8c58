// node-postgres: parameters and results of many types, named statements, errors' fields, a pool.
import assert from 'node:assert/strict';
import pg from 'pg';

const connectionString = process.argv[2];
const client = new pg.Client({ connectionString });
await client.connect();
await client.query(`CREATE TABLE node_rows (id int8 PRIMARY KEY, a int, b text, c numeric, d timestamptz, e jsonb, f bytea,
  g bool, h float8, i int[], j uuid, k text[])`);
const values = ['1', 7, "it's", '1.50', new Date('2024-01-02T03:04:05.678Z'), { x: [1, null] }, Buffer.from([0, 1, 255]),
  true, 1.25, [1, null, 3], '550e8400-e29b-41d4-a716-446655440000', ['a', 'b"c', null]];
const inserted = await client.query('INSERT INTO node_rows VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) RETURNING *', values);
assert.equal(inserted.rowCount, 1);
assert.deepEqual(Object.values(inserted.rows[0]), values);
for (let i = 0; i < 8; i++) {
  const named = await client.query({ name: 'by id', text: 'SELECT b FROM node_rows WHERE id = $1', values: [1] });
  assert.deepEqual(named.rows, [{ b: "it's" }]);
}
const array = await client.query({ text: 'SELECT id, b FROM node_rows', rowMode: 'array' });
assert.deepEqual(array.fields.map((f) => [f.name, f.dataTypeID, f.columnID]), [['id', 20, 1], ['b', 25, 3]]);
await client.query('BEGIN');
await client.query('UPDATE node_rows SET a = a + $1 WHERE id = $2', [1, 1]);
await client.query('ROLLBACK');
await assert.rejects(client.query('SELECT * FROM nope'), { code: '42P01', position: '15' });
await assert.rejects(client.query('INSERT INTO node_rows (id) VALUES (1)'),
  { code: '23505', detail: 'Key (id)=(1) already exists.', constraint: 'node_rows_pkey', table: 'node_rows' });
const two = await client.query('SELECT 1 AS a; SELECT 2 AS b');
assert.deepEqual(two.map((r) => r.rows), [[{ a: 1 }], [{ b: 2 }]]);
await client.end();

const pool = new pg.Pool({ connectionString, max: 5 });
const all = await Promise.all([...Array(20).keys()].map((i) => pool.query('SELECT $1::int + count(*)::int AS n FROM node_rows', [i])));
assert.deepEqual(all.map((r) => r.rows[0].n), [...Array(20).keys()].map((i) => i + 1));
await pool.query('DROP TABLE node_rows');
await pool.end();
