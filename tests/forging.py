"""Snapshots that were changed after they were built, with their digests or without."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager

from srvstat.snapshot.days import DAYS_A_SERVER
from srvstat.snapshot.digest import calendar_row, directory_of, row_digest, sealed
from srvstat.snapshot.rows import FileRow, ServerRow


def change(path: str, sql: str) -> None:
    """Run SQL on a snapshot, past the checks of its tables, which look untouched afterwards."""
    with _unchecked(path) as connection:
        connection.executescript(sql)


def forge(path: str, sql: str) -> None:
    """Change a snapshot with SQL, and then every digest in it, as whoever forges one would."""
    with _unchecked(path) as connection:
        connection.executescript(sql)
        with connection:
            _reseal(connection)


@contextmanager
def _unchecked(path: str) -> Iterator[sqlite3.Connection]:
    """Open a snapshot whose tables take any value until the block ends."""
    with closing(sqlite3.connect(path)) as connection, connection:
        schema = connection.execute("SELECT sql, name FROM sqlite_schema").fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        for old, new in ((") STRICT,", ")"), (") STRICT", ")"), ("NOT NULL", "")):
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?)", (old, new))
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.execute("PRAGMA writable_schema = ON")
        with connection:
            connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", schema)


def _reseal(connection: sqlite3.Connection) -> None:
    days: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for row in connection.execute("SELECT * FROM days ORDER BY server_day"):
        server, day = divmod(row[0], DAYS_A_SERVER)
        days[server].append((day, row_digest("days", row)))
    servers = []
    for row in connection.execute("SELECT * FROM servers ORDER BY server"):
        server = ServerRow._make(row)
        numbers, digests = (
            [day for day, _ in days[server.server]],
            [d for _, d in days[server.server]],
        )
        calendar = calendar_row(server.server, numbers, digests)
        connection.execute("REPLACE INTO calendars VALUES (?, ?, ?)", calendar)
        servers.append(server._replace(calendar_digest=row_digest("calendars", calendar)))
    marks = ", ".join("?" * len(ServerRow._fields))
    connection.executemany(f"REPLACE INTO servers VALUES ({marks})", servers)  # noqa: S608 - question marks
    directory = directory_of(servers)
    connection.executemany("REPLACE INTO directory VALUES (?, ?)", directory)
    of_buckets = b"".join(row_digest("directory", row) for row in directory)
    own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
    own = sealed(own._replace(bucket_digests=of_buckets))
    query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
    connection.execute(query, (own.bucket_digests, own.root, own.digest))
