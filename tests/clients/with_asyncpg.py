"""asyncpg: binary parameters and results, prepared statements, cursors, its own type introspection."""
import asyncio
import datetime
import decimal
import sys

import asyncpg


async def main(conninfo):
    words = dict(word.split("=", 1) for word in conninfo.split())
    connection = await asyncpg.connect(host=words["host"], port=int(words["port"]), user=words["user"],
                                       database=words["dbname"])
    assert await connection.fetchval("SELECT count(*) FROM people") == 20
    row = await connection.fetchrow("SELECT id, name, born, balance FROM people WHERE id = $1", 4)
    assert dict(row) == {"id": 4, "name": "n4", "born": datetime.date(2000, 1, 5),
                         "balance": decimal.Decimal("1.00")}, row
    statement = await connection.prepare("SELECT name FROM people WHERE id < $1 ORDER BY id")
    assert [r[0] for r in await statement.fetch(4)] == ["n1", "n2", "n3"]
    assert [p.name for p in statement.get_parameters()] == ["int8"], statement.get_parameters()
    async with connection.transaction():
        ids = [r["id"] async for r in connection.cursor("SELECT id FROM people ORDER BY id", prefetch=4)]
    assert ids == list(range(1, 21))
    for value, cast in [(True, "bool"), (5, "int2"), (5, "int8"), (1.25, "float8"),
                        (decimal.Decimal("1.50"), "numeric"), ("t", "text"), (b"b", "bytea"),
                        (datetime.date(2024, 1, 2), "date")]:
        assert await connection.fetchval(f"SELECT $1::{cast}", value) == value, cast
    await connection.close()


asyncio.run(main(sys.argv[1]))
