"""psycopg 3: statements, prepared statements, server cursors, types there and back."""
import datetime
import decimal
import sys
import uuid

import psycopg

url = sys.argv[1]
with psycopg.connect(url, autocommit=True) as connection:
    row = connection.execute("SELECT count(*), sum(balance), max(name) FROM people").fetchone()
    assert row == (20, decimal.Decimal("52.50"), "n9"), row
    for _ in range(8):  # prepared by the server from the fifth on
        row = connection.execute("SELECT name FROM people WHERE id = %s", (7,)).fetchone()
        assert row == ("n7",), row
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        values = [
            True, 1, 2**40, 1.5, decimal.Decimal("12.340"), "text", b"\x00\xff",
            datetime.date(2024, 2, 29), datetime.time(1, 2, 3), uuid.UUID(int=5),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.timedelta(days=1, seconds=2), [1, 2, 3],
            ["a", None],
        ]
        casts = ["bool", "int4", "int8", "float8", "numeric", "text", "bytea", "date", "time", "uuid",
                 "timestamp", "interval", "int4[]", "text[]"]
        for value, cast in zip(values, casts):
            cursor.execute(f"SELECT %s::{cast}", (value,))
            got = cursor.fetchone()[0]
            assert got == value, (cast, value, got, binary)
    try:
        connection.execute("SELECT nothing FROM people")
        raise AssertionError("no error")
    except psycopg.errors.UndefinedColumn:
        pass
    info = psycopg.types.TypeInfo.fetch(connection, "numeric")
    assert info is not None and info.oid == 1700 and info.array_oid == 1231, info
    enum = psycopg.types.enum.EnumInfo.fetch(connection, "mood")
    assert enum is not None and list(enum.labels) == ["sad", "happy"], enum

with psycopg.connect(url) as connection:
    with connection.cursor(name="c") as cursor:
        cursor.itersize = 3
        cursor.execute("SELECT id FROM people ORDER BY id")
        assert [r[0] for r in cursor] == list(range(1, 21))
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(5)]
    assert [c.fetchone()[0] for c in cursors] == list(range(5))
