"""Open an untrusted file as a snapshot, without creating or changing any file."""

import math
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from operator import lt
from typing import Any
from urllib.parse import quote

from srvstat.contract.errors import SnapshotError
from srvstat.files.paths import compute_identity, convert_errors
from srvstat.snapshot.rows import APPLICATION_ID, FORMAT_VERSION, MAX_ROW_BYTES, read_schema

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_UTF_8 = 1
_BUILD_REMEDY = "build one with `srvstat snapshot build`"

_SETTINGS = (
    "trusted_schema = 0",
    "cell_size_check = 1",
    "mmap_size = 0",
    "query_only = 1",
    "temp_store = 2",
)
_CACHE_KIB = 32_768
"""The size of the page cache, sufficient for queries about a few hundred servers."""
_LEAST_CACHE_KIB = 64
# Far above the needs of our statements, so that a hostile file can't use more.
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_ROW_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 64,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
}
_SCHEMA_ENTRIES = "SELECT type, name, tbl_name, sql FROM sqlite_schema"

_MAX_ATTEMPTS = 100
"""The maximum number of attempts to open a file that is replaced during each attempt."""

_SECONDS_PER_ROW = 5.0
_STEPS_PER_CLOCK_CHECK = 2_000
"""The number of SQLite steps between two checks of the clock; they take a few dozen
microseconds.
"""


class SnapshotConnection:
    """A read-only connection to a snapshot file whose tables are exactly ours.

    It has no authorizer: if a signal handler raised an exception in one, SQLite would replace it by
    an error that looks like damage.

    `open_connection` opens one. Every method raises SnapshotError if the file is damaged.
    """

    def __init__(self, path: str, connection: sqlite3.Connection, size: int, sharing: int) -> None:
        self.path = path
        self.size = size
        """The size of the file in bytes."""
        self.sharing = sharing
        """The number of files that share one memory limit."""
        self._connection = connection
        self._deadline = _Deadline()
        connection.set_progress_handler(self._deadline.has_passed, _STEPS_PER_CLOCK_CHECK)
        for category, limit in _LIMITS.items():
            connection.setlimit(category, limit)
        cache = max(_CACHE_KIB // sharing, _LEAST_CACHE_KIB)
        for setting in (*_SETTINGS, f"cache_size = -{cache}"):
            self.fetch_rows(f"PRAGMA {setting}", part="the whole file")
        # A view with a table's name could run forever, and a trigger or a generated column could
        # run any expression. Our own view serves other programs only.
        if set(self.fetch_rows(_SCHEMA_ENTRIES, part="its tables")) != _list_schema_entries():
            raise build_damage_error(self.path, "its tables")

    def close(self) -> None:
        """Close the file; later reads raise sqlite3.ProgrammingError."""
        self._connection.close()

    def fetch_rows(
        self, sql: str, *parameters: object, part: str, seconds: float = _SECONDS_PER_ROW
    ) -> list[Any]:
        """Return all rows of a statement that may take `seconds`. `part` names what it reads."""
        self._deadline.extend(seconds)
        with self._convert_sqlite_errors(part):
            return self._connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, *parameters: object, part: str) -> Iterator[Any]:
        """Yield the rows of a statement. Each row may take a few seconds."""
        self._deadline.extend(_SECONDS_PER_ROW)
        with self._convert_sqlite_errors(part):
            for row in self._connection.execute(sql, parameters):
                yield row
                self._deadline.extend(_SECONDS_PER_ROW)

    def count_rows(self, table: str, most: int) -> int:
        """Return the number of rows of a table, at most `most`."""
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?)"  # noqa: S608 - our own names
        ((count,),) = self.fetch_rows(query, most, part=f"the table {table}", seconds=math.inf)
        return int(count)

    def forget_pages(self) -> None:
        """Remove all pages from SQLite's cache, so that the next query reads the file."""
        self.fetch_rows("PRAGMA shrink_memory", part="the whole file")

    def check_structure(self) -> None:
        """Check the structure of the whole file with SQLite, including its indexes."""
        query = "PRAGMA integrity_check(1)"
        if self.fetch_rows(query, part="the whole file", seconds=math.inf) != [("ok",)]:
            raise build_damage_error(self.path, "the structure of the SQLite file")

    @contextmanager
    def _convert_sqlite_errors(self, part: str) -> Iterator[None]:
        """Report SQLite's errors as damage of a part, with a fixed message.

        SQLite's own messages can contain bytes of the file, so they are not shown.
        """
        try:
            yield
        except sqlite3.ProgrammingError:  # the connection is closed: a bug of the caller
            raise
        except (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError):
            raise build_damage_error(self.path, part) from None


class _Deadline:
    """The monotonic time at which SQLite interrupts the running statement."""

    def __init__(self) -> None:
        self._at = [math.inf]
        # SQLite calls this and discards exceptions, which a signal handler can raise in any line of
        # Python. So this chain consists of C functions only.
        instants = iter(partial(self._at.__getitem__, 0), None)
        self.has_passed = map(lt, instants, iter(time.monotonic, None)).__next__

    def extend(self, seconds: float) -> None:
        """Set the deadline to some seconds from now."""
        self._at[0] = time.monotonic() + seconds


@cache
def _list_schema_entries() -> set[Any]:
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(read_schema())
        return set(ours.execute(_SCHEMA_ENTRIES))


def open_connection(path: str, *, sharing: int = 1) -> SnapshotConnection:
    """Open a file that has the header and the tables of a snapshot.

    `sharing`: the number of files that share the memory limit of one file.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the file's content.
    """
    for _ in range(_MAX_ATTEMPTS):
        location, status = _check_file(path)
        connection = _connect(path, location)
        try:
            with convert_errors(path, SnapshotError, remedy=_BUILD_REMEDY):
                current = os.stat(location)
            if compute_identity(current) == compute_identity(status):
                return SnapshotConnection(path, connection, status.st_size, sharing)
        except BaseException:
            connection.close()
            raise
        connection.close()
    raise SnapshotError(f"{path}: keeps being replaced; try again")


def _connect(path: str, location: str) -> sqlite3.Connection:
    # The path is quoted because `#`, `?` and `%` have a meaning in a URI. `immutable` alone would
    # create a missing file and ignore a hot journal, so `mode=ro` and the header check are needed
    # too.
    uri = f"file:{quote(os.fsencode(location), safe='/')}?mode=ro&immutable=1"
    try:
        # Threads that share the connection use a lock (api/snapshot.py).
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error:
        # The file was readable a moment ago, so the cause is SQLite's limit on path lengths.
        raise SnapshotError(
            f"{path}: the path is too long for SQLite; use a shorter relative path"
        ) from None


def _check_file(path: str) -> tuple[str, os.stat_result]:
    """Check the header of a file, and return its real path and its status."""
    location, header, status = _read_header(path)
    if not status.st_size:
        raise SnapshotError(f"{path}: an empty file, not a snapshot; {_BUILD_REMEDY}")
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise SnapshotError(f"{path}: not a snapshot; {_BUILD_REMEDY}")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise SnapshotError(f"{path}: a SQLite file, but not a snapshot; {_BUILD_REMEDY}")
    version = int.from_bytes(header[60:64])
    if not version:
        raise build_damage_error(path, "its header")
    if version != FORMAT_VERSION:
        raise SnapshotError(
            f"{path}: a snapshot of format {version}, but this srvstat reads format"
            f" {FORMAT_VERSION}; upgrade srvstat, or build it again"
        )
    # Bytes 18 and 19 are 2 in write-ahead-log mode, in which another file may have newer rows.
    if header[18:20] != b"\x01\x01":
        raise SnapshotError(
            f"{path}: set to write-ahead-log mode by another program; reset it with SQLite's"
            " PRAGMA journal_mode = DELETE, or build it again"
        )
    page_size = int.from_bytes(header[16:18])
    if (65_536 if page_size == 1 else page_size) * int.from_bytes(header[28:32]) != status.st_size:
        raise SnapshotError(f"{path}: damaged; copy or build it again")
    if int.from_bytes(header[56:60]) != _UTF_8:
        raise build_damage_error(path, "its header")
    return location, status


def _read_header(path: str) -> tuple[str, bytes, os.stat_result]:
    """Return the real path, first bytes and status of a regular file without a journal."""
    if not path:
        raise SnapshotError("snapshot: the name is empty; name a file")
    with convert_errors(path, SnapshotError, remedy=_BUILD_REMEDY):
        location = os.path.realpath(path)
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                is_folder = stat.S_ISDIR(status.st_mode)
                kind = "a directory" if is_folder else "a pipe, socket or device"
                raise SnapshotError(f"{path}: {kind}, not a snapshot")
            header = os.read(descriptor, _HEADER_BYTES)
        finally:
            os.close(descriptor)
        if journal := find_journal(path):
            raise SnapshotError(
                f"{path}: {journal} exists, so another program may not have finished writing;"
                f" {format_journal_remedy(journal)}"
            )
    return location, header, status


def find_journal(path: str) -> str | None:
    """Return the path of a file's non-empty SQLite journal or write-ahead log, or None.

    Raises OSError if the file is inaccessible.
    """
    file = os.path.realpath(path) if os.path.islink(path) else path
    for journal in (f"{file}-journal", f"{file}-wal"):
        if os.path.exists(journal) and os.path.getsize(journal):
            return journal
    return None


def format_journal_remedy(journal: str) -> str:
    """Return the remedy for a snapshot with a journal."""
    return f"close the programs that use it, remove {journal} if it still exists, and try again"


def build_damage_error(path: str, part: str) -> SnapshotError:
    """Return the error that reports a damaged part of a file."""
    return SnapshotError(f"{path}: damaged ({part}); copy it again, or {_BUILD_REMEDY}")
