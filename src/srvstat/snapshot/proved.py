"""The rows of a snapshot, each proved by its digest before anyone sees it.

What was proved once stays in memory, within limits: a snapshot does not change.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from srvstat.contract.instants import format_instant
from srvstat.contract.ranges import DAY_MS
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.days import DAYS_A_SERVER, Day, day_of
from srvstat.snapshot.digest import (
    DIGEST_BYTES,
    Calendar,
    bucket_of,
    calendar_of,
    entries_of,
    entry_digests,
    is_row,
    root_of,
)
from srvstat.snapshot.opening import SnapshotConnection
from srvstat.snapshot.rows import FileRow, ServerRow, file_row, server_row

OWN_ROW = "its own row"
DIRECTORY = "the directory of identifiers"

Reference = tuple[Namespace, str]
"""An identifier in its namespace."""

_MOST_KEPT = 1 << 25
"""About how many bytes of servers and calendars stay in memory."""

_BYTES_A_SERVER, _BYTES_A_CALENDAR = 1_500, 300
"""What each takes besides its texts, days and digests."""


class ProvedRows:
    """The rows of an open file. Every method raises SnapshotError for one that is not as built."""

    def __init__(self, connection: SnapshotConnection) -> None:
        self._connection = connection
        self.own = self._own_row()
        # Of the directory there is one bucket for each namespace and 128 servers.
        self._buckets: dict[int, bytes] = {}
        self._servers: dict[Reference, ServerRow] = {}
        self._calendars: dict[int, Calendar] = {}
        self._kept = 0

    def _own_row(self) -> FileRow:
        rows = self._connection.rows("SELECT * FROM snapshot LIMIT 2", part=OWN_ROW)
        if len(rows) == 1 and is_row("snapshot", rows[0][:-1], rows[0][-1]):
            with self._connection.decoding(OWN_ROW):
                row = file_row(rows[0])
            if root_of(row) == row.root:
                return row
        raise self._connection.damaged(OWN_ROW)

    def named(self, references: Sequence[Reference]) -> list[ServerRow | None]:
        """Return the server that each reference names; None where there is none.

        All are read with one statement.
        """
        found = {reference: self._servers.get(reference) for reference in references}
        entries = {
            reference: list(self._entries(*reference))
            for reference, known in found.items()
            if known is None
        }
        keys = [key for named in entries.values() for key, _ in named]
        rows = self._by_key("servers", "server", keys, part="the servers") if keys else {}
        for reference, named in entries.items():
            found[reference] = self._server(reference, named, rows)
        return [found[reference] for reference in references]

    def _entries(self, by: Namespace, identifier: str) -> Iterator[tuple[int, bytes]]:
        count = self._buckets_a_namespace
        bucket = NAMESPACES.index(by) * count + bucket_of(by, identifier, count)
        return entries_of(self._bucket(bucket), by, identifier)

    def _server(
        self, reference: Reference, entries: Sequence[tuple[int, bytes]], rows: Mapping[Any, Any]
    ) -> ServerRow | None:
        by, identifier = reference
        for key, digest in entries:
            row = rows.get(key)
            if row is None or not is_row("servers", row, digest):
                raise self._connection.damaged(f"server {identifier}")
            with self._connection.decoding(f"server {identifier}"):
                server = server_row(row)
            if server.named(by) == identifier:
                self._make_room(_BYTES_A_SERVER + server.text_length)
                self._servers[reference] = server
                return server
        return None

    def servers(self) -> Iterator[ServerRow]:
        """Yield all servers, in the order of their ids."""
        part = "the servers"
        digests = {
            key: digest
            for number in range(self._buckets_a_namespace)
            for key, digest in entry_digests(self._bucket(number))
        }
        last = 0
        for row in self._connection.stream("SELECT * FROM servers ORDER BY server", part=part):
            # In a damaged table the rows can come in another order.
            if row[0] <= last or not is_row("servers", row, digests.pop(row[0], b"")):
                raise self._connection.damaged(part)
            last = row[0]
            with self._connection.decoding(part):
                server = server_row(row)
            yield server
        if digests:
            raise self._connection.damaged(part)

    def calendars(self, servers: Sequence[ServerRow]) -> list[Calendar]:
        """Return the days of each server."""
        # Held here: making room for one of them may forget the others.
        known = {server.server: self._calendars.get(server.server) for server in servers}
        keys = [key for key, calendar in known.items() if calendar is None]
        rows = self._by_key("calendars", "server", keys, part="the calendars") if keys else {}
        with self._connection.decoding("the calendars"):
            return [
                known[server.server] or self._calendar(server, rows.get(server.server))
                for server in servers
            ]

    def _calendar(self, server: ServerRow, row: Any) -> Calendar:
        if row is None or not is_row("calendars", row, server.calendar_digest):
            raise self._connection.damaged(f"the calendar of {server.title}")
        calendar = calendar_of(*row[1:])
        self._make_room(_BYTES_A_CALENDAR + len(calendar.days) * 8 + len(calendar.digests))
        self._calendars[server.server] = calendar
        return calendar

    def days_at(
        self, servers: Sequence[tuple[ServerRow, Calendar, Sequence[int]]]
    ) -> list[list[Day]]:
        """Return the days of some servers that stand at some positions of their calendars.

        All are read with one statement.
        """
        keys = [
            server.server * DAYS_A_SERVER + calendar.days[position]
            for server, calendar, positions in servers
            for position in positions
        ]
        rows = self._by_key("days", "server_day", keys, part="the days")
        following = iter(keys)
        return [
            [
                self._day(server, calendar, position, rows.get(next(following)))
                for position in positions
            ]
            for server, calendar, positions in servers
        ]

    def days(self, server: ServerRow, calendar: Calendar, first: int, last: int) -> Iterator[Day]:
        """Yield the days of a server between two positions of its calendar, both included."""
        start = server.server * DAYS_A_SERVER
        rows = self._connection.stream(
            "SELECT * FROM days WHERE server_day BETWEEN ? AND ? ORDER BY server_day",
            start + calendar.days[first],
            start + calendar.days[last],
            part=f"the days of {server.title}",
        )
        for position in range(first, last + 1):
            yield self._day(server, calendar, position, next(rows, None))

    def _day(self, server: ServerRow, calendar: Calendar, position: int, row: Any) -> Day:
        """Return the day at a position of a calendar from what the file has in its place."""
        if row is not None and is_row("days", row, calendar.digest(position)):
            with self._connection.decoding("the days"):
                return day_of(row)
        raise self._connection.damaged(day_part(server, calendar.days[position]))

    def _by_key(self, table: str, column: str, keys: Sequence[int], *, part: str) -> dict[Any, Any]:
        rows = self._connection.rows(_among(table, column, len(keys)), *keys, part=part)
        return {row[0]: row for row in rows}

    @property
    def _buckets_a_namespace(self) -> int:
        return len(self.own.bucket_digests) // (DIGEST_BYTES * len(NAMESPACES))

    def _bucket(self, number: int) -> bytes:
        """Return the entries of a bucket of the directory."""
        if number not in self._buckets:
            rows = self._connection.rows(
                "SELECT * FROM directory WHERE bucket = ?", number, part=DIRECTORY
            )
            at = number * DIGEST_BYTES
            digest = self.own.bucket_digests[at : at + DIGEST_BYTES]
            if len(rows) != 1 or not is_row("directory", rows[0], digest):
                raise self._connection.damaged(DIRECTORY)
            self._buckets[number] = rows[0][1]
        return self._buckets[number]

    def _make_room(self, size: int) -> None:
        """Forget all that stays in memory where something new would be too much."""
        if self._kept + size > _MOST_KEPT:
            self._servers.clear()
            self._calendars.clear()
            self._kept = 0
        self._kept += size


def day_part(server: ServerRow, day: int) -> str:
    """Name a day of a server in a message."""
    return f"day {format_instant(day * DAY_MS)[:10]} of {server.title}"


@cache
def _among(table: str, column: str, count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT * FROM {table} WHERE {column} IN ({marks})"  # noqa: S608 - names of ours
