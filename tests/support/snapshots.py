"""Build, read and change snapshots."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from srvstat.snapshot.format.bands import pack_digests, read_bands
from srvstat.snapshot.format.calendar import split_calendar

from conftest import Ran
from srvstat.snapshot.format.digest import DIGEST_BYTES, build_directory, digest_row, seal
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    BLOCKS_PER_SERVER,
    DAYS_PER_SERVER,
    FileRow,
    ServerRow,
    SummaryIndex,
)

_Row = tuple[Any, ...]

COMMAND = ["snapshot", "build", "out.db", "--servers", "servers.ndjson"]
WEEK = [*COMMAND, "--observations", "week.csv"]
EXISTS = "error: out.db: exists; --overwrite replaces it\n"


def read_directory(directory: Path) -> dict[str, bytes | None]:
    """Return the content of each file by its name; None for what is not a file."""
    return {
        path.name: path.read_bytes() if path.is_file() else None for path in directory.iterdir()
    }


def read_observations(path: str) -> list[tuple[str, int, int]]:
    """Return the observations of a snapshot as (id, observed at, players)."""
    query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def read_root(path: str) -> bytes:
    """Return the root of a snapshot."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT root FROM snapshot").fetchone()
    return bytes(root)


def parse_summary(ran: Ran) -> dict[str, str]:
    """Return the lines of a build's summary by their names."""
    return dict(re.findall(r"^  (\S+(?: \S+)*)  +(.*)$", ran.stderr, re.MULTILINE))


def read_rejects(path: str = "rejects.ndjson") -> list[dict[str, Any]]:
    """Return the entries of a rejects file."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def expect_conflict(name: str, line: int, first: int, text: str) -> dict[str, Any]:
    """Return the reject of a row whose players differ from those of an earlier row."""
    reason = f"players: an earlier row of this server and instant has {first}"
    return {"file": name, "line": line, "reason": reason, "text": text}


def change(path: str, sql: str) -> None:
    """Run SQL on a snapshot without the checks of its tables; the schema is restored afterwards."""
    with _open_unchecked(path) as connection:
        connection.executescript(sql)


def forge(path: str, sql: str) -> None:
    """Change a snapshot with SQL, then update all digests and calendars to match.

    Digests and calendars that the SQL changed are kept. The digest of a deleted row stays in the
    row above it.
    """
    with _open_unchecked(path) as connection:
        before = _read_tables(connection)
        connection.executescript(sql)
        with connection:
            _reseal(connection, before)


@contextmanager
def _open_unchecked(path: str) -> Iterator[sqlite3.Connection]:
    """Open a snapshot without the checks of its tables."""
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


class _Tables(NamedTuple):
    """The rows that hold digests of other rows, by key."""

    servers: Mapping[int, ServerRow]
    calendars: Mapping[int, _Row]
    indexes: Mapping[int, SummaryIndex]


def _read_tables(connection: sqlite3.Connection) -> _Tables:
    servers = map(ServerRow._make, connection.execute("SELECT * FROM servers ORDER BY server"))
    calendars = connection.execute("SELECT * FROM calendars")
    indexes = map(SummaryIndex._make, connection.execute("SELECT * FROM summary_index"))
    return _Tables(
        {row.server: row for row in servers},
        {row[0]: row for row in calendars},
        {row.server: row for row in indexes},
    )


def _reseal(connection: sqlite3.Connection, before: _Tables) -> None:
    after = _read_tables(connection)
    days: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for row in connection.execute("SELECT * FROM days ORDER BY server_day"):
        server, day = divmod(row[0], DAYS_PER_SERVER)
        days[server].append((day, digest_row("days", row)))
    bands = _digest_rows(connection, "bands", BANDS_PER_SERVER)
    summaries = _update_indexes(connection, before.indexes, after.indexes)
    servers = []
    for key, row in after.servers.items():
        calendar = _update_calendar(connection, key, days[key], before.calendars, after.calendars)
        fitting = row._replace(
            **calendar,
            band_digests=_update_bands(row, bands[key]),
            summary_digest=summaries.get(key, row.summary_digest),
        )
        kept = _keep_changes(before.servers.get(key, row), row, fitting)
        servers.append(ServerRow._make(kept))
    _insert(connection, "servers", servers)
    directory = build_directory(servers)
    _insert(connection, "directory", directory)
    of_buckets = b"".join(digest_row("directory", row) for row in directory)
    own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
    own = seal(own._replace(bucket_digests=of_buckets))
    query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
    connection.execute(query, (own.bucket_digests, own.root, own.digest))


def _update_calendar(
    connection: sqlite3.Connection,
    server: int,
    days: Sequence[tuple[int, bytes]],
    before: Mapping[int, _Row],
    after: Mapping[int, _Row],
) -> dict[str, Any]:
    """Store the calendar of a server, except for changed rows, and return its columns."""
    digests = b"".join(digest for _, digest in days)
    columns, new_rows = split_calendar(server, [day for day, _ in days], digests)
    rows: list[_Row] = list(new_rows)
    stored = [
        row if after.get(row[0]) == before.get(row[0]) else after.get(row[0], row) for row in rows
    ]
    deleted = before.keys() - after.keys()
    _insert(connection, "calendars", [row for row in stored if row[0] not in deleted])
    # Fewer days fill fewer rows.
    of_server = {key for key in before if key // BLOCKS_PER_SERVER == server}
    unused = of_server - {row[0] for row in rows}
    connection.executemany(
        "DELETE FROM calendars WHERE server_block = ?", [(key,) for key in unused]
    )
    digests = b"".join(digest_row("calendars", row) for row in stored)
    return columns._replace(block_digests=digests)._asdict()


def _update_indexes(
    connection: sqlite3.Connection,
    before: Mapping[int, SummaryIndex],
    after: Mapping[int, SummaryIndex],
) -> dict[int, bytes]:
    """Store the rows of `summary_index`, and return their digests by server."""
    summaries = _digest_rows(connection, "summaries", BLOCKS_PER_SERVER)
    counts = _digest_rows(connection, "interval_counts", BLOCKS_PER_SERVER)
    intervals = _digest_rows(connection, "intervals", BANDS_PER_SERVER)
    stored = []
    for key, row in after.items():
        fitting = row._replace(
            digests=_update_digests(row.digests, summaries[key]),
            count_digests=_update_digests(row.count_digests, counts[key]),
            band_digests=_update_bands(row, intervals[key]),
        )
        stored.append(SummaryIndex._make(_keep_changes(before.get(key, row), row, fitting)))
    _insert(connection, "summary_index", stored)
    return {row.server: digest_row("summary_index", row) for row in stored}


def _digest_rows(
    connection: sqlite3.Connection, table: str, per_server: int
) -> defaultdict[int, dict[int, bytes]]:
    """Return the digests of the rows of a table by server and number."""
    digests: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - our own names
        server, number = divmod(row[0], per_server)
        digests[server][number] = digest_row(table, row)
    return digests


def _update_bands(row: ServerRow | SummaryIndex, of_rows: Mapping[int, bytes]) -> Any:
    try:
        stored = read_bands(row).digests_by_number
    except (TypeError, ValueError):  # the SQL changed it
        return row.band_digests
    known = {band: digest for band, digest in of_rows.items() if band in stored}
    return pack_digests(stored | known)


def _update_digests(stored: Any, of_rows: Mapping[int, bytes]) -> Any:
    if not isinstance(stored, bytes):  # the SQL stored an integer, which would be a length
        return stored
    digests = bytearray(stored)
    for band, digest in of_rows.items():
        if band * DIGEST_BYTES < len(digests):
            digests[band * DIGEST_BYTES : (band + 1) * DIGEST_BYTES] = digest
    return bytes(digests)


def _keep_changes(before: _Row, after: _Row, fitting: _Row) -> _Row:
    return tuple(
        fit if now == was else now for was, now, fit in zip(before, after, fitting, strict=True)
    )


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[_Row]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names
