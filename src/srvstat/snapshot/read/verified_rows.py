"""The rows of a snapshot, each proved by its digest before anyone sees it.

What was proved once stays in memory, within limits: a snapshot does not change.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.format.bands import BANDS_A_SERVER, Bands, Members, read_bands
from srvstat.snapshot.format.calendar import (
    BLOCKS_A_SERVER,
    Block,
    Calendar,
    Entry,
    read_block,
    read_calendar,
)
from srvstat.snapshot.format.days import DAYS_A_SERVER
from srvstat.snapshot.format.digest import (
    DIGEST_BYTES,
    compute_root,
    entry_digests,
    find_bucket,
    hash_identifier,
    is_row,
    list_entries,
)
from srvstat.snapshot.format.rows import Day, FileRow, ServerRow
from srvstat.snapshot.read.connection import UNDECODABLE, SnapshotConnection

OWN_ROW = "its own row"
DIRECTORY = "the directory of identifiers"

Reference = tuple[Namespace, str]
"""An identifier in its namespace."""

_MOST_KEPT = 1 << 25
"""About how many bytes of servers and calendars stay in memory."""

_BYTES_A_SERVER, _BYTES_A_CALENDAR, _BYTES_A_BLOCK, _BYTES_A_NUMBER = 2_500, 500, 1_000, 40
"""What each takes at most; a server besides its texts and blobs, a calendar besides its numbers."""

_LEAST_ROW_BYTES = 4
"""Of a file, for each row in it."""


class ProvedRows:
    """The rows of an open file. Every method raises SnapshotError for one that is not as built."""

    def __init__(self, connection: SnapshotConnection) -> None:
        self._connection = connection
        self.own = self._own_row()
        # Of the directory there is one bucket for each namespace and 128 servers.
        self._buckets: dict[int, bytes] = {}
        self._servers: dict[Reference, ServerRow] = {}
        self._calendars: dict[int, Calendar] = {}
        self._bands: dict[int, Bands] = {}
        self._blocks: dict[int, Block] = {}
        self._kept = 0

    def _own_row(self) -> FileRow:
        rows = self._connection.rows("SELECT * FROM snapshot LIMIT 2", part=OWN_ROW)
        if len(rows) == 1 and is_row("snapshot", rows[0][:-1], rows[0][-1]):
            row = FileRow._make(rows[0])
            # Forged counts must not let rows without end pass for as many as there should be.
            most = self._connection.size // _LEAST_ROW_BYTES
            counts = (row.server_count, row.observation_count)
            if compute_root(row) == row.root and all(0 <= count <= most for count in counts):
                return row
        raise self._connection.damaged(OWN_ROW)

    def named(self, references: Sequence[Reference]) -> list[ServerRow | None]:
        """Return the server that each reference names; None where there is none.

        All are read with one statement.
        """
        self._make_room()
        found = {reference: self._servers.get(reference) for reference in references}
        entries = {
            reference: self._entries(*reference)
            for reference, known in found.items()
            if known is None
        }
        keys = [key for named in entries.values() for key, _ in named]
        rows = self._by_key("servers", "server", keys, part="the servers") if keys else {}
        for reference, named in entries.items():
            found[reference] = self._server(reference, named, rows)
        return [found[reference] for reference in references]

    def _entries(self, by: Namespace, identifier: str) -> list[tuple[int, bytes]]:
        count = self._buckets_a_namespace
        sought = hash_identifier(by, identifier)
        bucket = NAMESPACES.index(by) * count + find_bucket(sought, count)
        return list_entries(self._bucket(bucket), sought)

    def _server(
        self, reference: Reference, entries: Sequence[tuple[int, bytes]], rows: Mapping[Any, Any]
    ) -> ServerRow | None:
        by, identifier = reference
        for key, digest in entries:
            row = rows.get(key)
            if row is None or not is_row("servers", row, digest):
                raise self._connection.damaged(f"server {identifier}")
            server = ServerRow._make(row)
            if server.named(by) == identifier:
                self._kept += _BYTES_A_SERVER + server.length
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
        rows = self._connection.stream("SELECT * FROM servers ORDER BY server", part=part)
        with self._connection.decoding(part):
            for row in rows:
                # In a damaged table the rows can come in another order.
                if row[0] <= last or not is_row("servers", row, digests.pop(row[0], b"")):
                    raise self._connection.damaged(part)
                last = row[0]
                yield ServerRow._make(row)
        if digests:
            raise self._connection.damaged(part)

    def calendar(self, server: ServerRow) -> Calendar:
        """Return the days of a server."""
        if server.server not in self._calendars:
            try:
                calendar = self._calendars[server.server] = read_calendar(server)
            except UNDECODABLE:
                raise self._connection.damaged(f"the calendar of {server.title}") from None
            self._kept += _BYTES_A_CALENDAR + _BYTES_A_NUMBER * len(calendar.edges)
        return self._calendars[server.server]

    def bands(self, server: ServerRow) -> Bands:
        """Return the bands of a server's values."""
        if server.server not in self._bands:
            try:
                bands = self._bands[server.server] = read_bands(server)
            except UNDECODABLE:
                raise self._connection.damaged(f"the bands of {server.title}") from None
            self._kept += _BYTES_A_CALENDAR + _BYTES_A_NUMBER * len(bands.starts)
        return self._bands[server.server]

    def ends(self, servers: Sequence[ServerRow], window: Window) -> list[Sequence[Entry]]:
        """Return, of each server, the days whose rows tell its state at the ends of a window.

        The first is the first day from that of the window's start on, the second the last one up to
        that of its end. The second is left out where the window ends after all observations. Both
        are where nothing can lie between. At most one statement reads what is not in memory.
        """
        self._make_room()
        first_day, last_day = window.start // DAY_MS, window.end // DAY_MS
        wanted: list[tuple[ServerRow, Calendar, Sequence[int]]] = []
        for server in servers:
            calendar = self.calendar(server)
            first, last = calendar.find_block(first_day), calendar.find_last_block(last_day)
            if first is None or last is None or first > last:
                wanted.append((server, calendar, ()))
            elif window.end >= (server.last_observed_at or 0):
                wanted.append((server, calendar, (first,)))
            else:
                wanted.append((server, calendar, (first, last)))
        self._read_blocks(wanted)
        ends: list[Sequence[Entry]] = []
        for server, calendar, numbers in wanted:
            blocks = [self._block(server, calendar, number) for number in numbers]
            try:
                entries = [block.first_from(first_day) for block in blocks[:1]]
                entries += [block.last_up_to(last_day) for block in blocks[1:]]
            except UNDECODABLE:
                raise self._connection.damaged(f"the calendar of {server.title}") from None
            ends.append(() if entries and entries[0].day > entries[-1].day else entries)
        return ends

    def _read_blocks(self, wanted: Iterable[tuple[ServerRow, Calendar, Sequence[int]]]) -> None:
        """Read the blocks of calendars that are not in memory."""
        missing = {}
        for server, calendar, blocks in wanted:
            for block in blocks:
                key = server.server * BLOCKS_A_SERVER + block
                if block < calendar.stored_blocks and key not in self._blocks:
                    missing[key] = server, calendar.digest(block)
        if not missing:
            return
        rows = self._by_key("calendars", "server_block", list(missing), part="the calendars")
        for key, (server, digest) in missing.items():
            row = rows.get(key)
            try:
                if row is None or not is_row("calendars", row, digest):
                    raise ValueError("not the row that was built")
                self._blocks[key] = read_block(*row[1:])
            except UNDECODABLE:
                raise self._connection.damaged(f"the calendar of {server.title}") from None
            self._kept += _BYTES_A_BLOCK

    def _block(self, server: ServerRow, calendar: Calendar, block: int) -> Block:
        """Return a block of a calendar that is in memory."""
        if block >= calendar.stored_blocks:
            return calendar.recent
        return self._blocks[server.server * BLOCKS_A_SERVER + block]

    def days_at(self, servers: Sequence[tuple[ServerRow, Sequence[Entry]]]) -> list[list[Day]]:
        """Return some days of some servers, all read with one statement."""
        keys = [
            server.server * DAYS_A_SERVER + entry.day
            for server, entries in servers
            for entry in entries
        ]
        rows = self._by_key("days", "server_day", keys, part="the days")
        following = iter(keys)
        return [
            [self._day(server, entry, rows.get(next(following))) for entry in entries]
            for server, entries in servers
        ]

    def days(self, server: ServerRow, first_day: int, last_day: int) -> Iterator[Day]:
        """Yield the days of a server from one day up to another one, both included."""
        self._make_room()
        calendar = self.calendar(server)
        first, last = calendar.find_block(first_day), calendar.find_last_block(last_day)
        if first is None or last is None:
            return
        start = server.server * DAYS_A_SERVER
        rows = self._connection.stream(
            "SELECT * FROM days WHERE server_day BETWEEN ? AND ? ORDER BY server_day",
            start + first_day,
            start + last_day,
            part=f"the days of {server.title}",
        )
        for number in range(first, last + 1):
            self._make_room()
            self._read_blocks([(server, calendar, (number,))])
            block = self._block(server, calendar, number)
            begin, end = bisect_left(block.days, first_day), bisect_right(block.days, last_day)
            for position in range(begin, end):
                yield self._day(server, block.entry(position), next(rows, None))

    def _day(self, server: ServerRow, entry: Entry, row: Any) -> Day:
        """Return a day from what the file has in its place."""
        key = server.server * DAYS_A_SERVER + entry.day
        if row is not None and row[0] == key and is_row("days", row, entry.digest):
            return Day._make(row)
        raise self._connection.damaged(day_part(server, entry.day))

    def members(self, wanted: Iterable[tuple[ServerRow, int]]) -> dict[tuple[int, int], Members]:
        """Return the observations that lie in some bands of several values.

        They come by the server's key and the number of the band. All are read with one statement.
        """
        servers = {(server.server, band): server for server, band in wanted}
        if not servers:
            return {}
        keys = [key * BANDS_A_SERVER + band for key, band in servers]
        rows = self._by_key("bands", "server_band", keys, part="the bands")
        found = {}
        for (key, band), server in servers.items():
            row = rows.get(key * BANDS_A_SERVER + band)
            bands = self.bands(server)
            if row is None or not is_row("bands", row, bands.digest(band) or b""):
                raise self._connection.damaged(f"the bands of {server.title}")
            found[key, band] = Members(*row[1:])
        return found

    def prove_bands(self, server: ServerRow) -> int:
        """Read all rows of bands of a server, and return how many it has."""
        bands = self.bands(server)
        wide = [band for band in range(len(bands.starts)) if bands.digest(band)]
        for band in wide:
            self.members([(server, band)])
        return len(wide)

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

    def _make_room(self) -> None:
        """Forget all that stays in memory where it has become too much."""
        if self._kept > _MOST_KEPT:
            self.forget_servers()

    def forget_servers(self) -> None:
        """Forget all servers that were asked about; the directory stays in memory."""
        for kept in (self._servers, self._calendars, self._bands, self._blocks):
            kept.clear()
        self._kept = 0


def day_part(server: ServerRow, day: int) -> str:
    """Name a day of a server in a message."""
    if day > LATEST // DAY_MS:
        return f"the calendar of {server.title}"
    return f"day {format_instant(day * DAY_MS)[:10]} of {server.title}"


@lru_cache(maxsize=64)
def _among(table: str, column: str, count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT * FROM {table} WHERE {column} IN ({marks})"  # noqa: S608 - names of ours
