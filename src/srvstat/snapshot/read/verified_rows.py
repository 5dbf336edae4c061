"""Read rows of a snapshot and verify each of them against its digest.

Verified rows stay in memory within limits: a snapshot does not change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.contract.windows import DAY_MS, Window
from srvstat.snapshot.format.bands import Bands, Members, read_bands
from srvstat.snapshot.format.calendar import Block, Calendar, Entry, read_block, read_calendar
from srvstat.snapshot.format.digest import (
    DIGEST_BYTES,
    compute_root,
    find_bucket,
    find_entries,
    has_digest,
    hash_identifier,
    read_entries,
)
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    BLOCKS_PER_SERVER,
    DAYS_PER_SERVER,
    Bucket,
    Day,
    FileRow,
    ForgedRowError,
    ServerRow,
)
from srvstat.snapshot.read.connection import (
    DECODE_ERRORS,
    SnapshotConnection,
    convert_decode_errors,
)
from srvstat.snapshot.read.header import FILE_ROW, check_optional_instant

DIRECTORY = "the directory of identifiers"

Reference = tuple[Namespace, str]
"""A namespace and an identifier."""

_MAX_BYTES_KEPT = 1 << 25
"""Approximate bytes of servers, calendars and bands kept in memory."""

_BYTES_PER_SERVER, _BYTES_PER_CALENDAR, _BYTES_PER_BLOCK, _BYTES_PER_NUMBER = 2_500, 500, 1_000, 40
"""Upper bounds of memory, without the texts and blobs of a server and the numbers of a calendar."""

_KEYS_PER_STATEMENT = 500
"""Below the limit of parameters of a connection."""

_MIN_ROW_BYTES = 4
"""The fewest bytes of a file per row."""


class VerifiedRows:
    """Verified rows of an open file; every method raises SnapshotError for a row that differs."""

    def __init__(self, connection: SnapshotConnection) -> None:
        self._connection = connection
        self.file_row = self._read_file_row()
        # The directory has a bucket per namespace and 128 servers.
        self._buckets: dict[int, Bucket] = {}
        self._servers: dict[Reference, ServerRow] = {}
        self._calendars: dict[int, Calendar] = {}
        self._bands: dict[int, Bands] = {}
        self._blocks: dict[int, Block] = {}
        self._kept = 0

    def _read_file_row(self) -> FileRow:
        rows = self._connection.fetch_rows("SELECT * FROM snapshot LIMIT 2", part=FILE_ROW)
        if len(rows) == 1 and has_digest("snapshot", rows[0][:-1], rows[0][-1]):
            row = FileRow._make(rows[0])
            # Forged counts must not make endless rows look complete.
            most = self._connection.size // _MIN_ROW_BYTES
            counts = (row.server_count, row.observation_count)
            if compute_root(row) == row.root and all(0 <= count <= most for count in counts):
                return row
        raise self.build_damage_error(FILE_ROW)

    def find_rows(self, references: Sequence[Reference]) -> list[ServerRow | None]:
        """Return the server of each reference, read with one statement; None for an unknown one."""
        self._limit_memory()
        found = {reference: self._servers.get(reference) for reference in references}
        entries = {
            reference: self._find_entries(*reference)
            for reference, known in found.items()
            if known is None
        }
        keys = [key for candidates in entries.values() for key, _ in candidates]
        rows = self.read_by_key("servers", "server", keys, part="the servers") if keys else {}
        for reference, candidates in entries.items():
            found[reference] = self._find_server(reference, candidates, rows)
        return [found[reference] for reference in references]

    def _find_entries(self, by: Namespace, identifier: str) -> list[tuple[int, bytes]]:
        count = self._buckets_per_namespace
        wanted = hash_identifier(by, identifier)
        bucket = NAMESPACES.index(by) * count + find_bucket(wanted, count)
        return find_entries(self._read_bucket(bucket), wanted)

    def _find_server(
        self, reference: Reference, entries: Sequence[tuple[int, bytes]], rows: Mapping[Any, Any]
    ) -> ServerRow | None:
        by, identifier = reference
        for key, digest in entries:
            row = rows.get(key)
            if row is None or not has_digest("servers", row, digest):
                raise self.build_damage_error(f"server {identifier}")
            server = ServerRow._make(row)
            if server.get_identifier(by) == identifier:
                self._kept += _BYTES_PER_SERVER + server.length
                self._servers[reference] = server
                return server
        return None

    def iter_servers(self) -> Iterator[ServerRow]:
        """Yield all servers in the order of their ids."""
        part = "the servers"
        digests = {
            key: digest
            for number in range(self._buckets_per_namespace)
            for key, digest in read_entries(self._read_bucket(number))
        }
        last = ""
        rows = self._connection.stream("SELECT * FROM servers ORDER BY id", part=part)
        with convert_decode_errors(self._connection.path, part):
            for row in rows:
                # A damaged index can yield the rows in another order.
                if not has_digest("servers", row, digests.pop(row[0], b"")) or row[1] <= last:
                    raise self.build_damage_error(part)
                server = ServerRow._make(row)
                last = server.id
                check_optional_instant(server.first_observed_at)
                check_optional_instant(server.last_observed_at)
                yield server
        if digests:
            raise self.build_damage_error(part)

    def get_calendar(self, server: ServerRow) -> Calendar:
        """Return the calendar of a server."""
        if server.server not in self._calendars:
            try:
                calendar = self._calendars[server.server] = read_calendar(server)
            except DECODE_ERRORS:
                raise self.build_damage_error(f"the calendar of {server.title}") from None
            self._kept += _BYTES_PER_CALENDAR + _BYTES_PER_NUMBER * len(calendar.edges)
        return self._calendars[server.server]

    def get_bands(self, server: ServerRow) -> Bands:
        """Return the bands of a server's values."""
        if server.server not in self._bands:
            try:
                bands = self._bands[server.server] = read_bands(server)
            except DECODE_ERRORS:
                raise self.build_damage_error(f"the bands of {server.title}") from None
            self._kept += _BYTES_PER_CALENDAR + _BYTES_PER_NUMBER * len(bands.starts)
        return self._bands[server.server]

    def find_ends(self, servers: Sequence[ServerRow], window: Window) -> list[Sequence[Entry]]:
        """Return the days of each server that give its state at the start and end of a window.

        These are its first day on or after the day of the window's start, and its last day on or
        before the day of the window's end. The second is omitted if the window does not end before
        the last observation; both are omitted if the window can't contain any. Runs at most one
        statement.
        """
        self._limit_memory()
        first_day, last_day = window.start // DAY_MS, window.end // DAY_MS
        wanted: list[tuple[ServerRow, Calendar, Sequence[int]]] = []
        for server in servers:
            calendar = self.get_calendar(server)
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
            blocks = [self._get_block(server, calendar, number) for number in numbers]
            try:
                entries = [block.find_first(first_day) for block in blocks[:1]]
                entries += [block.find_last(last_day) for block in blocks[1:]]
            except DECODE_ERRORS:
                raise self.build_damage_error(f"the calendar of {server.title}") from None
            ends.append(() if entries and entries[0].day > entries[-1].day else entries)
        return ends

    def _read_blocks(self, wanted: Iterable[tuple[ServerRow, Calendar, Sequence[int]]]) -> None:
        """Read blocks of calendars that are not in memory yet."""
        missing = {}
        for server, calendar, blocks in wanted:
            for block in blocks:
                key = server.server * BLOCKS_PER_SERVER + block
                if block < calendar.stored_blocks and key not in self._blocks:
                    missing[key] = server, calendar.get_digest(block)
        if not missing:
            return
        rows = self.read_by_key("calendars", "server_block", list(missing), part="the calendars")
        for key, (server, digest) in missing.items():
            row = rows.get(key)
            try:
                if row is None or not has_digest("calendars", row, digest):
                    raise ForgedRowError("not the row of the digest")
                self._blocks[key] = read_block(*row[1:])
            except DECODE_ERRORS:
                raise self.build_damage_error(f"the calendar of {server.title}") from None
            self._kept += _BYTES_PER_BLOCK

    def _get_block(self, server: ServerRow, calendar: Calendar, block: int) -> Block:
        """Return a block of a calendar from memory."""
        if block >= calendar.stored_blocks:
            return calendar.recent
        return self._blocks[server.server * BLOCKS_PER_SERVER + block]

    def read_days_of(self, servers: Sequence[tuple[ServerRow, Sequence[Entry]]]) -> list[list[Day]]:
        """Return the rows of some days of servers, read with one statement."""
        keys = [
            server.server * DAYS_PER_SERVER + entry.day
            for server, entries in servers
            for entry in entries
        ]
        rows = self.read_by_key("days", "server_day", keys, part="the days")
        next_key = iter(keys)
        return [
            [self._check_day(server, entry, rows.get(next(next_key))) for entry in entries]
            for server, entries in servers
        ]

    def iter_entries(
        self, server: ServerRow, first_day: int, last_day: int = LATEST // DAY_MS
    ) -> Iterator[Entry]:
        """Yield the days of a server from `first_day` to `last_day`, without their rows."""
        calendar = self.get_calendar(server)
        first, last = calendar.find_block(first_day), calendar.find_last_block(last_day)
        if first is None or last is None:
            return
        for number in range(first, last + 1):
            self._limit_memory()
            self._read_blocks([(server, calendar, (number,))])
            yield from self._get_block(server, calendar, number).iter_entries(first_day, last_day)

    def iter_days(
        self, server: ServerRow, first_day: int = 0, last_day: int = DAYS_PER_SERVER - 1
    ) -> Iterator[Day]:
        """Yield the days of a server from `first_day` to `last_day`, both included."""
        start = server.server * DAYS_PER_SERVER
        rows = self._connection.stream(
            "SELECT * FROM days WHERE server_day BETWEEN ? AND ? ORDER BY server_day",
            start + first_day,
            start + last_day,
            part=f"the days of {server.title}",
        )
        for entry in self.iter_entries(server, first_day, last_day):
            yield self._check_day(server, entry, next(rows, None))

    def _check_day(self, server: ServerRow, entry: Entry, row: Any) -> Day:
        """Verify the row that the file has for a day."""
        key = server.server * DAYS_PER_SERVER + entry.day
        if row is not None and row[0] == key and has_digest("days", row, entry.digest):
            return Day._make(row)
        raise self.build_damage_error(format_day(server.title, entry.day))

    def read_members(
        self, table: str, wanted: Iterable[tuple[ServerRow, Bands, int]]
    ) -> dict[tuple[int, int], Members]:
        """Return the members of some bands of several values, of `bands` or of `intervals`.

        The keys are the server's key and the number of the band.
        """
        keys = {
            server.server * BANDS_PER_SERVER + band: (server, bands, band)
            for server, bands, band in wanted
        }
        rows = self.read_by_key(table, "server_band", list(keys), part="the bands")
        found = {}
        for key, (server, bands, band) in keys.items():
            row = rows.get(key)
            if row is None or not has_digest(table, row, bands.get_digest(band) or b""):
                raise self.build_damage_error(f"the bands of {server.title}")
            found[server.server, band] = Members(*row[1:])
        return found

    def verify_bands(self, server: ServerRow) -> int:
        """Verify all rows of `bands` of a server, and return their number."""
        return self.verify_members("bands", server, self.get_bands(server))

    def verify_members(self, table: str, server: ServerRow, bands: Bands) -> int:
        """Verify all rows of `bands` or of `intervals` of a server, and return their number."""
        with_row = bands.list_rows()
        for band in with_row:
            self.read_members(table, [(server, bands, band)])
        return len(with_row)

    def read_by_key(
        self, table: str, column: str, keys: Sequence[int], *, part: str
    ) -> dict[Any, Any]:
        """Return rows by their keys, without verification."""
        found: dict[Any, Any] = {}
        for at in range(0, len(keys), _KEYS_PER_STATEMENT):
            some = keys[at : at + _KEYS_PER_STATEMENT]
            query = _build_query(table, column, len(some))
            found |= {row[0]: row for row in self._connection.fetch_rows(query, *some, part=part)}
        return found

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the file."""
        return self._connection.build_damage_error(part)

    @property
    def _buckets_per_namespace(self) -> int:
        return len(self.file_row.bucket_digests) // (DIGEST_BYTES * len(NAMESPACES))

    def _read_bucket(self, number: int) -> Bucket:
        """Return a verified bucket of the directory."""
        if number not in self._buckets:
            rows = self._connection.fetch_rows(
                "SELECT * FROM directory WHERE bucket = ?", number, part=DIRECTORY
            )
            at = number * DIGEST_BYTES
            digest = self.file_row.bucket_digests[at : at + DIGEST_BYTES]
            if len(rows) != 1 or not has_digest("directory", rows[0], digest):
                raise self.build_damage_error(DIRECTORY)
            self._buckets[number] = Bucket._make(rows[0])
        return self._buckets[number]

    def _limit_memory(self) -> None:
        """Remove all servers from memory once they take too much of it."""
        if self._kept > _MAX_BYTES_KEPT // self._connection.sharing:
            self.forget_servers()

    def forget_servers(self) -> None:
        """Remove all servers from memory; the directory stays."""
        for kept in (self._servers, self._calendars, self._bands, self._blocks):
            kept.clear()
        self._kept = 0


def format_day(server: str, day: int) -> str:
    """Return how messages name a day of a server, given how they name the server."""
    if day > LATEST // DAY_MS:
        return f"the calendar of {server}"
    return f"day {format_instant(day * DAY_MS)[:10]} of {server}"


@lru_cache(maxsize=64)
def _build_query(table: str, column: str, count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT * FROM {table} WHERE {column} IN ({marks})"  # noqa: S608 - our own names
