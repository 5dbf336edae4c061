"""Read the database and the servers.json of Minetrack.

The table `pings` of the database has a row for each ping: Unix milliseconds, the address of the
server, and its player count, which is NULL if the ping failed. servers.json is an array of objects
with a name and an address (`ip`).
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from srvstat.contract.errors import SourceError
from srvstat.contract.time import LATEST, YEAR_2001
from srvstat.files.json_stream import Events, Problem, read_items, read_value
from srvstat.files.paths import convert_errors, identify_file
from srvstat.files.reading import STDIN
from srvstat.sources.batch import COUNT_RULE, MAX_PLAYERS, Batch, Reject
from srvstat.sources.json_points import read_events
from srvstat.sources.server_records import PartialRecord
from srvstat.sources.servers import FieldError, check_source_id, check_text, require_field
from srvstat.sources.source import Source

FAILED_PING = "failed ping"
"""The reason to skip a ping without a player count."""

_TIME, _ADDRESS, _COUNT, _OLD_COUNT = "timestamp", "ip", "playerCount", "player"
"""The columns; the last one is the name of the player count in 2015."""

_ROWS_PER_BATCH = 10_000
_MAX_VALUE_BYTES = 1 << 20
_MAGIC = b"SQLite format 3\x00"
_WAL_MODE = b"\x02\x02"

_Row = tuple[Any, Any, Any]


_SERVER = {"name": None, "ip": None}


def read(source: Source) -> Iterator[Batch]:
    """Read the pings of a database, in the order of its rows.

    All rows are read in one transaction, so they are of one state even while Minetrack writes.

    Raises SourceError if the source can't be read or is no database of Minetrack.
    """
    with _open_database(source) as connection:
        count = _find_count_column(source, connection)
        query = f"SELECT {_TIME}, {_ADDRESS}, {count} FROM pings NOT INDEXED"  # noqa: S608 - our own names
        # Exact unless rows were deleted, and found without reading all rows.
        ((total,),) = connection.execute("SELECT max(rowid) FROM pings").fetchall()
        cursor, done = connection.execute(query), 0
        while rows := cursor.fetchmany(_ROWS_PER_BATCH):
            yield _build_batch(rows, done + 1)
            source.report_rows(done, len(rows), total)
            done += len(rows)


@contextmanager
def _open_database(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a database for reading.

    Raises SourceError, also for SQLite's errors in the block.
    """
    uri = f"file:{quote(os.fsencode(source.name), safe='/')}?mode=ro"
    identity = identify_file(source.name)
    is_idle = _is_idle_log(source)
    if is_idle:
        # Opening such a database would create the files of the log.
        uri += "&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = 0")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise SourceError(
            f"{source.title}: can't be read as a SQLite database: {error}; if Minetrack writes to"
            " it, read a copy"
        ) from None
    if is_idle and identify_file(source.name) != identity:
        raise SourceError(f"{source.title}: changed while it was read; read a copy")


def _is_idle_log(source: Source) -> bool:
    """Check the beginning of a file; return whether it is in WAL mode and no log exists.

    Raises SourceError if the file can't be read or is not of SQLite.
    """
    if source.name == STDIN:
        raise SourceError(f"{source.title}: a database can't be read from a pipe; name a file")
    with convert_errors(source.title, SourceError):
        if not os.path.isfile(source.name) and os.path.exists(source.name):
            raise SourceError(f"{source.title}: not a file; name the database of Minetrack")
        with open(source.name, "rb") as file:
            header = file.read(100)
    if not header.startswith(_MAGIC):
        raise SourceError(f"{source.title}: not a SQLite database")
    # SQLite keeps the log beside the file that a symbolic link names.
    log = f"{os.path.realpath(source.name)}-wal"
    return header[18:20] == _WAL_MODE and not os.path.exists(log)


def _find_count_column(source: Source, connection: sqlite3.Connection) -> str:
    """Return the name of the column of player counts.

    Raises SourceError if the table or a column is missing.
    """
    # A view could compute endlessly, and a virtual table is what a module makes of it.
    query = (
        "SELECT name FROM pragma_table_list"
        " WHERE schema = 'main' AND type = 'table' AND name <> 'sqlite_schema' ORDER BY name"
    )
    tables = [name for (name,) in connection.execute(query)]
    if "pings" not in tables:
        raise SourceError(
            f"{source.title}: no table pings (views and virtual tables are not read); the tables"
            f" are: {', '.join(tables) or 'none'}"
        )
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(pings)")]
    count = _COUNT if _COUNT in columns else _OLD_COUNT
    if missing := {_TIME, _ADDRESS, count} - {*columns}:
        names = ", ".join(sorted(missing)).replace(_OLD_COUNT, _COUNT)
        raise SourceError(
            f"{source.title}: the table pings has no {names}; its columns are {', '.join(columns)}"
        )
    return count


def _build_batch(rows: Sequence[_Row], first_place: int) -> Batch:
    kept: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    failed = 0
    for place, (instant, address, count) in enumerate(rows, first_place):
        if fault := _find_fault(instant, address, count):
            reason, value = fault
            rejects.append(Reject(place, reason, f"{instant},{address},{count}", str(value)))
        elif count is None:
            failed += 1
        else:
            kept.append((address, instant, count, place))
    return Batch.from_rows(kept, rejects, skipped={FAILED_PING: failed} if failed else {})


def _find_fault(instant: Any, address: Any, count: Any) -> tuple[str, Any] | None:
    """Return why a row is malformed, and the value that is; None if the row is well-formed."""
    if type(address) is not str:
        return f"{_ADDRESS}: must be text", address
    if type(instant) is not int or not YEAR_2001 <= instant <= LATEST:
        return f"{_TIME}: must be Unix milliseconds in the years 2001 to 9999", instant
    if count is not None and (type(count) is not int or not 0 <= count <= MAX_PLAYERS):
        return f"{_COUNT}: {COUNT_RULE}", count
    return None


def read_records(source: Source) -> list[PartialRecord]:
    """Read all server records: the name is the hostname, and the address the source's identifier.

    Raises SourceError if the source can't be read, or for a server without name or address.
    """
    records = []
    events = read_events(source)
    found = read_value(events, _read_servers)
    if not isinstance(found, list) or next(events, None):
        raise SourceError(
            f"{source.title}: must be an array of servers, as in Minetrack's servers.json"
        )
    for number, server in enumerate(found, 1):
        try:
            records.append(_build_record(server))
        except FieldError as error:
            raise SourceError(f"{source.title}, server {number}: {error}") from None
    return records


def _read_servers(events: Events) -> list[Any]:
    return [read_value(item, _SERVER) for item in read_items(events)]


def _build_record(server: Any) -> PartialRecord:
    if isinstance(server, Problem):
        raise FieldError(server.reason)
    return PartialRecord(
        source_id=require_field(server, "ip", check_source_id),
        hostname=require_field(server, "name", check_text),
    )
