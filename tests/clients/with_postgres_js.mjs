// postgres.js: rows in bulk, arrays, transactions with savepoints, cursors, COPY both ways, describe.
import assert from 'node:assert/strict';
import postgres from 'postgres';

const sql = postgres(process.argv[2], { max: 3, onnotice: () => {} });
await sql`DROP TABLE IF EXISTS js_rows`;
await sql`CREATE TABLE js_rows (id int PRIMARY KEY, b text, e jsonb, i int[], d timestamptz, f bytea, n numeric)`;
const rows = [...Array(10).keys()].map((i) => (
  { id: i, b: 'x' + i, e: { i }, i: [i, 2], d: new Date(0), f: Buffer.from([i]), n: '1.5' }));
const inserted = await sql`INSERT INTO js_rows ${sql(rows)} RETURNING id`;
assert.equal(inserted.length, 10);
assert.deepEqual([...await sql`SELECT * FROM js_rows WHERE id = ANY(${[1, 2]}) ORDER BY id`], rows.slice(1, 3));
assert.deepEqual([...await sql`SELECT * FROM js_rows WHERE id IN ${sql([3, 4])} ORDER BY 1`], rows.slice(3, 5));
await sql.begin(async (transaction) => {
  await transaction`UPDATE js_rows SET b = ${'new'} WHERE id = 5`;
  await transaction.savepoint((inner) => inner`DELETE FROM js_rows WHERE id = 6`);
});
await assert.rejects(sql.begin(async (transaction) => {
  await transaction`DELETE FROM js_rows`;
  await transaction`SELECT 1/0`;
}), { code: '22012' });
assert.deepEqual([...await sql`SELECT count(*)::int AS n, max(b) AS b FROM js_rows`], [{ n: 9, b: 'x9' }]);
let seen = 0;
await sql`SELECT generate_series(1, 1000) AS x`.cursor(100, (batch) => { seen += batch.length; });
assert.equal(seen, 1000);
const into = await sql`COPY js_rows (id, b) FROM STDIN`.writable();
into.write('100\tfoo\n');
into.end('101\tbar\n');
await new Promise((resolve, reject) => { into.on('finish', resolve); into.on('error', reject); });
let text = '';
for await (const chunk of await sql`COPY js_rows (id, b) TO STDOUT`.readable()) text += chunk;
assert.deepEqual(text.split('\n').filter((line) => line.startsWith('10')).sort(), ['100\tfoo', '101\tbar']);
assert.equal((await sql`SELECT * FROM js_rows WHERE id = ${1}`.describe()).columns.length, 7);
await sql`DROP TABLE js_rows`;
await sql.end();
