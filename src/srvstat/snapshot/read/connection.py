"""Open a file as a snapshot without trusting it. Reading never creates or changes a file."""

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
from srvstat.files.identity import compute_identity
from srvstat.snapshot.format.schema import APPLICATION_ID, FORMAT_VERSION, LONGEST_ROW, schema

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_UTF_8 = 1
_SCHEMA_ENTRIES = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
_BUILD_ONE = "build one with `srvstat snapshot build`"

# 32 MiB of pages are what answers need of a few hundred servers; only those that are read count.
_SETTINGS = (
    "trusted_schema = 0",
    "cell_size_check = 1",
    "mmap_size = 0",
    "query_only = 1",
    "temp_store = 2",
    "cache_size = -32768",
)
# What no statement of ours comes near, so that a file can't make one of them grow.
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_ROW,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 64,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
}
_TABLES = frozenset(
    {
        "snapshot",
        "directory",
        "servers",
        "calendars",
        "bands",
        "days",
        "observations",
        "sqlite_master",
    }
)
_PRAGMAS = frozenset({*(setting.partition(" ")[0] for setting in _SETTINGS), "integrity_check"})
_FUNCTIONS = frozenset({"count"})

_MOST_REPLACED = 100
"""How many times in a row a new build may take the file's place just while it is opened."""

UNDECODABLE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)
"""What the decoders of rows raise for values that no build wrote."""

_SECONDS_A_ROW = 5.0
_OPERATIONS_A_LOOK = 2_000
"""So many steps of SQLite pass between two looks at the clock: a few dozen microseconds."""


class SnapshotConnection:
    """A connection to a snapshot file that runs our few statements and nothing else.

    Made by `connected`; every method raises SnapshotError where the file is damaged.
    """

    def __init__(self, path: str, connection: sqlite3.Connection, size: int) -> None:
        self.path = path
        self.size = size
        """How many bytes the file has."""
        self._connection = connection
        self._deadline = _Deadline()
        connection.set_progress_handler(self._deadline.has_passed, _OPERATIONS_A_LOOK)
        connection.set_authorizer(_judgement)
        for category, limit in _LIMITS.items():
            connection.setlimit(category, limit)
        for setting in _SETTINGS:
            self.rows(f"PRAGMA {setting}", part="the whole file")
        # A view in the place of a table could compute without end, and a trigger or a generated
        # column could run what they like.
        found = set(self.rows(_SCHEMA_ENTRIES, part="its tables"))
        if found != _schema_entries():
            raise self.damaged("its tables")

    def close(self) -> None:
        """Close the file; the snapshot can't be asked any more."""
        self._connection.close()

    def rows(
        self, sql: str, *parameters: object, part: str, seconds: float = _SECONDS_A_ROW
    ) -> list[Any]:
        """Return the rows of a statement, which reads a part of the file and does not take long."""
        self._deadline.put_off(seconds)
        with self._reading(part):
            return self._connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, *parameters: object, part: str) -> Iterator[Any]:
        """Yield the rows of a statement that may have many; none of them takes long."""
        self._deadline.put_off(_SECONDS_A_ROW)
        with self._reading(part):
            for row in self._connection.execute(sql, parameters):
                yield row
                self._deadline.put_off(_SECONDS_A_ROW)

    def is_sound(self) -> bool:
        """Say whether SQLite finds nothing wrong in the whole file, its indexes included."""
        found = self.rows("PRAGMA integrity_check(1)", part="the whole file", seconds=math.inf)
        return found == [("ok",)]

    @contextmanager
    def _reading(self, part: str) -> Iterator[None]:
        """Turn what SQLite says against reading into one fixed text.

        Its own messages can carry bytes of the file, so none of them is shown.
        """
        try:
            yield
        except sqlite3.ProgrammingError:  # closed: the caller's mistake
            raise
        except (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError):
            raise self.damaged(part) from None

    def damaged(self, part: str) -> SnapshotError:
        """Return the error that says which part of the file is damaged."""
        return _damaged(self.path, part)

    @contextmanager
    def decoding(self, part: str) -> Iterator[None]:
        """Turn what values of a wrong kind make the decoders say into one fixed text.

        A file that was changed with all its digests can hold anything.
        """
        try:
            yield
        except UNDECODABLE:
            raise self.damaged(part) from None


class _Deadline:
    """When a statement under way has taken too long, by the clock that only goes forward."""

    def __init__(self) -> None:
        self._at = [math.inf]
        # SQLite calls this, and loses what is raised in there. A signal is raised in whatever line
        # of Python comes next, so there is none: these are functions of C alone.
        instants = iter(partial(self._at.__getitem__, 0), None)
        self.has_passed = map(lt, instants, iter(time.monotonic, None)).__next__

    def put_off(self, seconds: float) -> None:
        """Let the statement take some seconds from now on."""
        self._at[0] = time.monotonic() + seconds


def _judgement(
    action: int, name: str | None, function: str | None, _database: str | None, source: str | None
) -> int:
    """Judge what a statement wants to do; `source` names the view or trigger that it comes from."""
    allowed = source is None and (
        action == sqlite3.SQLITE_SELECT
        or (action == sqlite3.SQLITE_READ and name in _TABLES)
        or (action == sqlite3.SQLITE_PRAGMA and name in _PRAGMAS)
        or (action == sqlite3.SQLITE_FUNCTION and function in _FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@cache
def _schema_entries() -> set[Any]:
    """Return what a file with our tables, and only these, says of them."""
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(schema())
        return set(ours.execute(_SCHEMA_ENTRIES))


def open_connection(path: str) -> SnapshotConnection:
    """Open a file that looks like a snapshot, so far as its first bytes and its tables can tell.

    Raises SnapshotError, in one line that says what the file is and what to do about it, and that
    holds nothing of the file's content.
    """
    for _ in range(_MOST_REPLACED):
        location, judged = _judged_file(path)
        connection = _connection_to(path, location)
        try:
            if _is_unchanged(path, location, judged):
                return SnapshotConnection(path, connection, judged.st_size)
        except BaseException:
            connection.close()
            raise
        connection.close()
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _connection_to(path: str, location: str) -> sqlite3.Connection:
    # A path is quoted to become a URI: `#`, `?` and `%` in it would otherwise mean something.
    # `immutable` alone would create a missing file and ignore a hot journal, so the header check
    # comes first and `mode=ro` stays.
    uri = f"file:{quote(os.fsencode(location), safe='/')}?mode=ro&immutable=1"
    try:
        # Any thread may use it, one at a time: those that share it hold a lock (api.py).
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error:
        # The file was just read. What is left is SQLite's own limit on the length of a path.
        raise SnapshotError(f"{path}: too long a path for SQLite; open it from nearby") from None


def _judged_file(path: str) -> tuple[str, os.stat_result]:
    """Return where the file really lies, once its first bytes are those of a snapshot."""
    location, header, status = _read_header(path)
    if not status.st_size:
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
        raise SnapshotError(
            f"{path}: another program has set it to write-ahead-log mode; reset it with SQLite's"
            " PRAGMA journal_mode = DELETE, or build it again"
        )
    page_size = int.from_bytes(header[16:18])
    if (65_536 if page_size == 1 else page_size) * int.from_bytes(header[28:32]) != status.st_size:
        raise SnapshotError(f"{path}: cut short or grown since it was built; copy it again")
    if int.from_bytes(header[56:60]) != _UTF_8:
        raise _damaged(path, "its header")
    return location, status


def _read_header(path: str) -> tuple[str, bytes, os.stat_result]:
    """Return the place, first bytes and status of a file: a regular one, beside no journal."""
    if not path:
        raise SnapshotError("the name of the snapshot is empty")
    with _naming(path):
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
        if journal := journal_beside(path):
            raise SnapshotError(
                f"{path}: {journal} lies beside it, so another program may not have finished"
                f" writing; {remedy_for(journal)}"
            )
    return location, header, status


def journal_beside(path: str) -> str | None:
    """Return the path of SQLite's journal or write-ahead log of a file, unless that is empty.

    Raises OSError.
    """
    file = os.path.realpath(path) if os.path.islink(path) else path
    for journal in (f"{file}-journal", f"{file}-wal"):
        if os.path.exists(journal) and os.path.getsize(journal):
            return journal
    return None


def remedy_for(journal: str) -> str:
    """Return what to do about a journal that lies beside a snapshot."""
    return f"close the programs that use it, remove {journal} if it is still there, and try again"


def _is_unchanged(path: str, location: str, judged: os.stat_result) -> bool:
    """Say whether no file took the place of the one whose first bytes were judged."""
    with _naming(path):
        return compute_identity(os.stat(location)) == compute_identity(judged)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in what the system says against reading it."""
    try:
        yield
    except FileNotFoundError:
        raise SnapshotError(f"{path}: no such file; {_BUILD_ONE}") from None
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except ValueError:  # a NUL in the path
        raise SnapshotError(f"{path}: not a file name") from None


def _kind(mode: int) -> str:
    return "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"


def _damaged(path: str, part: str) -> SnapshotError:
    return SnapshotError(f"{path}: damaged ({part}); copy it again, or {_BUILD_ONE}")
