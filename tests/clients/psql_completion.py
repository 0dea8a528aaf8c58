"""psql's tab completion, typed at a terminal: each line is completed to what stands beside it."""
import os
import pty
import re
import select
import sys
import time

url = sys.argv[1]
lines = [
    ("SELECT * FROM peo", "people"),
    ("INSERT INTO peo", "people"),
    ("UPDATE people SET bal", "balance"),
    ("SELECT * FROM people WHERE bor", "born"),
    ("DROP VIEW ri", "rich"),
    ("ALTER TABLE people DROP CONSTRAINT people_b", "people_balance_check"),
    ("ALTER TYPE moo", "mood"),
    ("SET search_pa", "search_path"),
    ("SET sluice.default_dis", "sluice.default_distribution"),
    ("SHOW max_conn", "max_connections"),
    ("DROP SERVER sha", "shard"),
    ("GRANT SELECT ON people TO postg", "postgres"),
    ("\\d peo", "people"),
    ("CREATE INDEX ON peo", "people"),
    ("TRUNCATE peo", "people"),
    ("SELECT * FROM information_schema.colu", "information_schema.column"),
]


def read_until_silent(terminal, seconds):
    text = b""
    while select.select([terminal], [], [], seconds)[0]:
        try:
            text += os.read(terminal, 65536)
        except OSError:
            break
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07", "", text.decode(errors="replace"))


child, terminal = pty.fork()
if child == 0:
    os.environ.update(TERM="xterm", INPUTRC="/dev/null", PSQL_HISTORY="/dev/null")
    os.execvp("psql", ["psql", "-X", url])
read_until_silent(terminal, 1)
failed = []
for typed, completed in lines:
    os.write(terminal, typed.encode() + b"\t")
    deadline = time.monotonic() + 10
    shown = ""
    while completed not in shown and time.monotonic() < deadline:
        shown += read_until_silent(terminal, 0.3)
    if completed not in shown:
        failed.append((typed, completed, shown))
    os.write(terminal, b"\x15\x03")  # the line away
    read_until_silent(terminal, 0.1)
os.write(terminal, b"\\q\n")
os.waitpid(child, 0)
assert not failed, failed
