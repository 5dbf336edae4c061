"""Open a snapshot safely and ask it named questions. Reading never creates or changes a file."""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.contract.requests import Namespace
from srvstat.contract.responses import Players, ServerDetail
from srvstat.snapshot.days import (
    DAYS_A_SERVER,
    Day,
    day_of,
    has_prefix,
    statistics_from_days,
    statistics_from_ends,
)
from srvstat.snapshot.schema import APPLICATION_ID, FORMAT_VERSION, schema
from srvstat.stats import Statistics, statistics_of

if TYPE_CHECKING:
    from srvstat.contract.views import SnapshotView

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_COLUMN_OF: dict[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}
_SCHEMA_ENTRIES = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
# 32 MiB of pages are what answers need of a few hundred servers; only those that are read count.
_SETTINGS = (
    "trusted_schema = 0",
    "cell_size_check = 1",
    "query_only = 1",
    "cache_size = -32768",
)
_BUILD_ONE = "build one with `srvstat snapshot build`"
_DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError)


class StoredServer(NamedTuple):
    """What a comparison needs of a row of `servers`; `key` is the server's number in the file."""

    key: int
    id: str
    cfx_id: str
    players_current: int
    hostname: str


class StoredDetail(NamedTuple):
    """A server's public record, and what surrounds it; instants are Unix milliseconds."""

    server: ServerDetail
    first_seen_at: int
    updated_at: int
    current_is_stand_in: bool


_Kind = TypeVar("_Kind", int, str)


class SnapshotFile:
    """An open snapshot. Made by `open_file`; every method may raise SnapshotError."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        connection.row_factory = sqlite3.Row
        self._check_schema()
        (as_of,) = self._one("SELECT as_of FROM snapshot")
        with _damage_of(path):
            self.as_of = _instant(as_of)

    def close(self) -> None:
        """Close the file; the snapshot can't be asked any more."""
        self._connection.close()

    def find(self, by: Namespace, identifier: str) -> StoredServer | None:
        """Return the server that an identifier names in its namespace, compared exactly."""
        rows = self._all(
            "SELECT server, id, cfx_id, players_current, hostname FROM servers"  # noqa: S608 - a column of ours
            f" WHERE {_COLUMN_OF[by]} = ?",
            identifier,
        )
        if not rows:
            return None
        server = StoredServer._make(rows[0])
        if [*map(type, server)] != [int, str, str, int, str]:
            raise _damaged(self.path)
        return server

    def detail(self, server: StoredServer) -> StoredDetail:
        """Return all that is stored of a server."""
        row = self._one("SELECT * FROM servers WHERE server = ?", server.key)
        with _damage_of(self.path):
            return _stored_detail(row)

    def identifiers(self, by: Namespace) -> list[str]:
        """Return every identifier of a namespace, sorted."""
        column = _COLUMN_OF[by]
        rows = self._all(f"SELECT {column} FROM servers ORDER BY {column}")  # noqa: S608 - a column of ours
        return self._column(rows, str)

    def statistics(self, servers: Sequence[int], window: Window) -> list[Statistics]:
        """Return the statistics of some servers, by their keys, in a window.

        All that is read comes with one statement, except for servers whose days hold no prefix.
        """
        # A window can begin before 1970, but not by so many days that another server's come first.
        first_day, last_day = (at // DAY_MS for at in window)
        bounds: list[int] = []
        for server in servers:
            start = server * DAYS_A_SERVER
            bounds += (start + first_day, start + DAYS_A_SERVER - 1, start, start + last_day)
        rows = self._all(_ends(len(servers)), *bounds)
        with _damage_of(self.path):
            ends = {end: day_of(row) for end, *row in rows}
        return [
            self._statistics(ends.get(2 * position), ends.get(2 * position + 1), window)
            for position in range(len(servers))
        ]

    def _statistics(self, first: Day | None, last: Day | None, window: Window) -> Statistics:
        """Return the statistics of a window from the days at its ends, where there are any."""
        if first is None or last is None:
            return statistics_of(())
        with _damage_of(self.path):
            if has_prefix(first):
                return statistics_from_ends(first, last, window)
            days = self._all(
                "SELECT * FROM days WHERE server_day BETWEEN ? AND ? ORDER BY server_day",
                first.server_day,
                last.server_day,
            )
            return statistics_from_days(map(day_of, days), window)

    def averages(self, server: int, window: Window, length: int) -> dict[int, float]:
        """Return the average of the players in each part of a window, nearly exact.

        The parts are `length` milliseconds long, numbered from 0 at the window's start, and closed
        at their end like the window. A part without an observation is missing.
        """
        rows = self._all(
            "SELECT (observed_at - ? - 1) / ?, avg(players) FROM observations"
            " WHERE server = ? AND observed_at > ? AND observed_at <= ? GROUP BY 1",
            window.start,
            length,
            server,
            *window,
        )
        return dict(map(tuple, rows))

    def last_observed_at(self, server: int, until: int) -> int | None:
        """Return the instant of a server's last observation up to and including `until`."""
        (found,) = self._one(
            "SELECT max(observed_at) FROM observations WHERE server = ? AND observed_at <= ?",
            server,
            until,
        )
        with _damage_of(self.path):
            return None if found is None else _instant(found)

    def view(self) -> "SnapshotView":
        """Return what is in the file."""
        from srvstat.contract.views import ListedServer, SnapshotView  # noqa: PLC0415 - only for info

        row = self._one("SELECT * FROM snapshot")
        servers = self._all("SELECT id, cfx_id, game, hostname FROM servers ORDER BY id")
        (stand_ins,) = self._one("SELECT count(*) FROM servers WHERE current_is_stand_in")
        with _damage_of(self.path):
            return SnapshotView(
                as_of=self.as_of,
                first_observed_at=_optional_instant(row["first_observed_at"]),
                last_observed_at=_optional_instant(row["last_observed_at"]),
                observations=row["observation_count"],
                servers=tuple(ListedServer(**dict(server)) for server in servers),
                stand_ins=stand_ins,
                sources=_texts(row["sources"]),
                repeated=row["repeated"],
                conflicting=row["conflicting"],
                rejected=row["rejected"],
            )

    def is_sound(self) -> bool:
        """Say whether SQLite finds the file well formed and the counts of its own row right."""
        (finding,) = self._one("PRAGMA quick_check(1)")
        counted = self._one(
            "SELECT (SELECT count(*) FROM servers), (SELECT count(*) FROM observations)"
        )
        stated = self._one("SELECT server_count, observation_count FROM snapshot")
        return finding == "ok" and tuple(counted) == tuple(stated)

    def _check_schema(self) -> None:
        """Refuse tables that are not to the letter ours: a view could compute without end."""
        for setting in _SETTINGS:
            self._all(f"PRAGMA {setting}")
        found = {tuple(row) for row in self._all(_SCHEMA_ENTRIES)}
        with closing(sqlite3.connect(":memory:")) as ours:
            ours.executescript(schema())
            if found != set(ours.execute(_SCHEMA_ENTRIES)):
                raise _damaged(self.path)

    def _all(self, sql: str, *parameters: object) -> list[Any]:
        with _damage_of(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def _column(self, rows: list[Any], kind: type[_Kind]) -> list[_Kind]:
        """Return the only column of some rows, all of whose values are of one type."""
        values = [value for (value,) in rows]
        if not set(map(type, values)) <= {kind}:
            raise _damaged(self.path)
        return values

    def _one(self, sql: str, *parameters: object) -> Any:
        rows = self._all(sql, *parameters)
        if len(rows) != 1:
            raise _damaged(self.path)
        return rows[0]


@cache
def _ends(servers: int) -> str:
    """Return the statement for the two days between which a window of each server lies.

    An even number leads the first day from the window's start on, the next odd one the last day up
    to its end; a row that does not exist is missing.
    """
    day = "SELECT * FROM days WHERE server_day BETWEEN ? AND ? ORDER BY server_day"
    return " UNION ALL ".join(
        f"SELECT {2 * position}, * FROM ({day} LIMIT 1)"  # noqa: S608 - numbers of ours
        f" UNION ALL SELECT {2 * position + 1}, * FROM ({day} DESC LIMIT 1)"
        for position in range(servers)
    )


def open_file(path: str) -> SnapshotFile:
    """Open a snapshot for reading.

    Raises SnapshotError, in one line that says what the file is and what to do about it, and that
    holds nothing of the file's content.
    """
    location = _check_header(path)
    # A path is quoted to become a URI: `#`, `?` and `%` in it would otherwise mean something.
    # `immutable` alone would create a missing file and ignore a hot journal, so the header check
    # comes first and `mode=ro` stays.
    uri = f"file:{quote(os.fsencode(location), safe='/')}?mode=ro&immutable=1"
    with _damage_of(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        return SnapshotFile(path, connection)
    except BaseException:
        connection.close()
        raise


def _check_header(path: str) -> str:
    """Return where the file really lies, once its first bytes are those of a snapshot."""
    location, header, size = _read_header(path)
    if not size:
        raise SnapshotError(f"{path}: an empty file, not a snapshot; {_BUILD_ONE}")
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise SnapshotError(f"{path}: not a snapshot, nor any SQLite file; {_BUILD_ONE}")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise SnapshotError(f"{path}: a SQLite file of another program; {_BUILD_ONE}")
    version = int.from_bytes(header[60:64])
    if version != FORMAT_VERSION:
        remedy = "upgrade srvstat" if version > FORMAT_VERSION else "build it again"
        raise SnapshotError(
            f"{path}: a snapshot of format {version}, and this srvstat reads format"
            f" {FORMAT_VERSION}; {remedy}"
        )
    # Bytes 18 and 19 say 2 in write-ahead-log mode, where the newest rows may lie in another file.
    if header[18:20] != b"\x01\x01":
        raise SnapshotError(f"{path}: in write-ahead-log mode, changed since it was built")
    page_size = int.from_bytes(header[16:18])
    if (65_536 if page_size == 1 else page_size) * int.from_bytes(header[28:32]) != size:
        raise SnapshotError(f"{path}: cut short or grown since it was built; copy it again")
    return location


def _read_header(path: str) -> tuple[str, bytes, int]:
    """Return the place, first bytes and size of what is, then, a regular file beside no journal."""
    if not path:
        raise SnapshotError("the name of the snapshot is empty")
    try:
        location = os.path.realpath(path)
        # Without O_NONBLOCK a FIFO would wait for its writer.
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SnapshotError(f"{path}: {_kind(status.st_mode)}, not a snapshot")
            header = os.read(descriptor, _HEADER_BYTES)
        finally:
            os.close(descriptor)
        for journal in (f"{location}-journal", f"{location}-wal"):
            if os.path.exists(journal) and os.path.getsize(journal):
                raise SnapshotError(
                    f"{path}: another program was interrupted writing to it (a journal stands"
                    " beside it); copy or build it again"
                )
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no such file; {_BUILD_ONE}") from None
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except ValueError:  # a NUL in the path
        raise SnapshotError(f"{path}: not a file name") from None
    return location, header, status.st_size


def _kind(mode: int) -> str:
    return "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"


@contextmanager
def _damage_of(path: str) -> Iterator[None]:
    """Turn what a damaged file makes SQLite and the decoders say into one fixed text.

    Their own messages can carry bytes of the file, so none of them is shown.
    """
    try:
        yield
    except sqlite3.ProgrammingError:  # closed, or of another thread: the caller's mistake
        raise
    except _DAMAGE:
        raise _damaged(path) from None


def _damaged(path: str) -> SnapshotError:
    return SnapshotError(f"{path}: damaged; copy it again, or {_BUILD_ONE}")


def _instant(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LATEST:
        raise ValueError("not an instant")
    return value


def _optional_instant(value: Any) -> int | None:
    return None if value is None else _instant(value)


def _texts(array: str) -> tuple[str, ...]:
    """Read a JSON array of texts; one that UTF-8 can't write is none of ours."""
    texts = tuple(wire.decode_text(array))
    "".join(texts).encode("utf-8")
    return texts


def _stored_detail(row: sqlite3.Row) -> StoredDetail:
    server = ServerDetail(
        id=row["id"],
        game=row["game"],
        cfxId=row["cfx_id"],
        hostname=row["hostname"],
        projectName=row["project_name"],
        projectDescription=row["project_description"],
        region=row["region"],
        players=Players(current=row["players_current"], max=row["players_max"]),
        tags=_texts(row["tags"]),
        flags=_texts(row["flags"]),
        chatUrl=row["chat_url"],
        iconUrl=row["icon_url"],
        offline=bool(row["offline"]),
        firstSeenAt=format_instant(row["first_seen_at"]),
        updatedAt=format_instant(row["updated_at"]),
    )
    return StoredDetail(
        server,
        _instant(row["first_seen_at"]),
        _instant(row["updated_at"]),
        bool(row["current_is_stand_in"]),
    )
