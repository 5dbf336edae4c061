"""Collect the rows to change in the draft of an update, and store them."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence

from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.rows import ROWS_PER_SERVER, Bucket, FileRow, ServerRow, Value

_MAX_BYTES = 1 << 26
"""Bytes of rows after which those in memory are stored."""

_BYTES_PER_ROW = 500
"""The approximate memory of a row without its blobs."""

_DERIVED = ROWS_PER_SERVER.keys() - {"servers"}

# The draft is deleted on any error and flushed before it is renamed.
_SETTINGS = """
    PRAGMA trusted_schema = 0;
    PRAGMA cell_size_check = 1;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


class Changes:
    """The rows to change in a draft, which may still be incomplete when they are collected.

    `wait` is called once, before the first change: it returns when the draft is a complete copy.
    The methods may raise sqlite3.Error, and what `wait` raises.
    """

    def __init__(self, connection: sqlite3.Connection, wait: Callable[[], None]) -> None:
        self._connection = connection
        self._wait: Callable[[], None] | None = wait
        self._removed: list[int] = []
        self._rows: defaultdict[str, list[Sequence[Value]]] = defaultdict(list)
        self._bytes = 0
        self.digests: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        """The digests of the rows that were put, by table and key, without those of `servers`."""

    def put(self, table: str, row: Sequence[Value]) -> None:
        """Add or replace a derived row of a server."""
        self._rows[table].append(row)
        self._bytes += _BYTES_PER_ROW + sum(len(each) for each in row if isinstance(each, bytes))
        if self._bytes > _MAX_BYTES:
            self._store_rows()

    def remove_derived(self, server: int) -> None:
        """Remove all derived rows of a server that the draft has before any row of it is put."""
        self._removed.append(server)

    def finish(
        self,
        removed: Sequence[ServerRow],
        added: Sequence[ServerRow],
        directory: Sequence[Bucket],
        file_row: FileRow,
    ) -> None:
        """Store the collected rows, the rows of servers, the directory, and the row of the file.

        Servers are removed first, so that one can get an identifier that another one had.
        """
        self._store_rows()
        execute, insert = self._connection.execute, self._insert
        self._connection.executemany(
            "DELETE FROM servers WHERE server = ?", [(row.server,) for row in removed]
        )
        insert("servers", added)
        for table, rows in (("directory", directory), ("snapshot", [file_row])):
            execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            insert(table, rows)
        self._connection.commit()

    def _store_rows(self) -> None:
        if self._wait:
            self._wait()
            self._wait = None
            self._connection.executescript(_SETTINGS)
        for table in sorted(_DERIVED):
            per_server = ROWS_PER_SERVER[table]
            self._connection.executemany(
                f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?",  # noqa: S608 - our own names
                [(of * per_server, (of + 1) * per_server - 1) for of in self._removed],
            )
        for table, rows in self._rows.items():
            self._insert(table, rows)
            self.digests[table].update((int(row[0] or 0), digest_row(table, row)) for row in rows)
        self._removed.clear()
        self._rows.clear()
        self._bytes = 0

    def _insert(self, table: str, rows: Sequence[Sequence[Value]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names
