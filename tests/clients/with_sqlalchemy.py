"""psycopg2, and SQLAlchemy's reflection over it."""
import sys

import psycopg2
import sqlalchemy
from sqlalchemy import MetaData, Table, create_engine, inspect, select

url = sys.argv[1]
connection = psycopg2.connect(url)
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM people WHERE id > %s", (10,))
    assert cursor.fetchone() == (10,)
with connection.cursor("named") as cursor:
    cursor.itersize = 5
    cursor.execute("SELECT id FROM people ORDER BY id")
    assert [row[0] for row in cursor] == list(range(1, 21))
connection.close()

engine = create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(url))
inspector = inspect(engine)
assert "public" in inspector.get_schema_names(), inspector.get_schema_names()
assert "people" in inspector.get_table_names(), inspector.get_table_names()
assert "rich" in inspector.get_view_names(), inspector.get_view_names()
assert "SELECT" in inspector.get_view_definition("rich")
columns = {c["name"]: c for c in inspector.get_columns("people")}
assert list(columns) == ["id", "name", "born", "balance", "feels"], columns
assert isinstance(columns["id"]["type"], sqlalchemy.BIGINT), columns["id"]
assert columns["name"]["nullable"] is False and columns["name"]["default"] == "'x'::text", columns["name"]
assert (columns["balance"]["type"].precision, columns["balance"]["type"].scale) == (12, 2)
assert list(columns["feels"]["type"].enums) == ["sad", "happy"], columns["feels"]
assert inspector.get_pk_constraint("people")["constrained_columns"] == ["id"]
assert [c["name"] for c in inspector.get_check_constraints("people")] == ["people_balance_check"]
assert columns["born"]["comment"] == "the day", columns["born"]
for what in ("get_foreign_keys", "get_indexes", "get_unique_constraints",
             "get_check_constraints", "get_table_comment"):
    getattr(inspector, what)("people")
assert inspector.has_table("people") and not inspector.has_table("nothing")

people = Table("people", MetaData(), autoload_with=engine)
with engine.connect() as connection:
    rows = connection.execute(select(people.c.id, people.c.name).where(people.c.id < 4).order_by(people.c.id))
    assert [tuple(r) for r in rows] == [(1, "n1"), (2, "n2"), (3, "n3")]
