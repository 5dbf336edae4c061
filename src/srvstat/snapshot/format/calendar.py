"""List the days with observations of a server and their digests, so that a missing day is detected.

The last days are in the row of the server, as most windows begin and end there. Earlier days are in
blocks: rows of `calendars`, whose first day, last day and digest are in the row of the server. So
an answer hashes few bytes, even for a server with many days.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, ForgedRowError, ServerRow, Value

_MAX_BLOCKS = BLOCKS_PER_SERVER - 1

_DAYS_PER_BLOCK = 32
"""A window of 30 days touches 31 days, which are all in the row of the server."""


class Entry(NamedTuple):
    """A day, counted from 1970-01-01, and the digest of its row of `days`."""

    day: int
    digest: bytes


class Block(NamedTuple):
    """Successive days with observations, and their joined digests."""

    days: Sequence[int]
    digests: bytes

    def get_entry(self, position: int) -> Entry:
        """Return the day at a position.

        Raises LookupError for a missing day: a block of a forged calendar may begin after its edge.
        """
        if position < 0:
            raise IndexError(position)
        at = position * DIGEST_BYTES
        return Entry(self.days[position], self.digests[at : at + DIGEST_BYTES])

    def iter_entries(self, first_day: int, last_day: int) -> Iterator[Entry]:
        """Yield the days from `first_day` to `last_day`, both included."""
        begin, end = bisect_left(self.days, first_day), bisect_right(self.days, last_day)
        starts = range(begin * DIGEST_BYTES, end * DIGEST_BYTES, DIGEST_BYTES)
        digests = [self.digests[start : start + DIGEST_BYTES] for start in starts]
        return map(Entry, self.days[begin:end], digests)

    def find_first(self, day: int) -> Entry:
        """Return the first day on or after `day`, which must be in the block."""
        return self.get_entry(bisect_left(self.days, day))

    def find_last(self, day: int) -> Entry:
        """Return the last day on or before `day`, which must be in the block."""
        return self.get_entry(bisect_right(self.days, day) - 1)


class Calendar(NamedTuple):
    """All days of a server: the edges and digests of its blocks, and its recent days.

    `edges` has the first and the last day of each block. The recent days count as the last block.
    """

    edges: Sequence[int]
    digests: bytes
    recent: Block

    @property
    def stored_blocks(self) -> int:
        """The number of rows of `calendars`; the recent days are the block with that number."""
        return len(self.digests) // DIGEST_BYTES

    def count_days(self) -> int:
        """Return the number of days."""
        return self.stored_blocks * _DAYS_PER_BLOCK + len(self.recent.days)

    def get_digest(self, block: int) -> bytes:
        """Return the digest of a row of `calendars`."""
        return self.digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]

    def find_block(self, first_day: int) -> int | None:
        """Return the block with the first day on or after `first_day`; None without such a day."""
        block = bisect_left(self.edges, first_day) // 2
        return block if 2 * block < len(self.edges) else None

    def find_last_block(self, last_day: int) -> int | None:
        """Return the block with the last day on or before `last_day`; None without such a day."""
        block = (bisect_right(self.edges, last_day) - 1) // 2
        return block if block >= 0 else None


class Blocks(NamedTuple):
    """Rows of `calendars` of a server: the first and the last day of each, and their digests."""

    edges: Sequence[int]
    digests: bytes


_NO_BLOCKS = Blocks((), b"")


class CalendarColumns(NamedTuple):
    """The columns of `servers` that hold a calendar."""

    days: bytes
    day_digests: bytes
    blocks: bytes
    block_digests: bytes


def split_calendar(
    server: int, days: Sequence[int], digests: bytes, earlier: Blocks = _NO_BLOCKS
) -> tuple[CalendarColumns, list[tuple[Value, ...]]]:
    """Return the columns of `servers` and new rows of `calendars` for the days of a server.

    `digests` are the joined digests of their rows. The days follow those of earlier blocks, which
    already have rows.
    """
    recent = max(len(days) // _DAYS_PER_BLOCK - 1, 0) * _DAYS_PER_BLOCK
    rows: list[tuple[Value, ...]] = []
    edges = [*earlier.edges]
    for start in range(0, recent, _DAYS_PER_BLOCK):
        block = days[start : start + _DAYS_PER_BLOCK]
        of_block = digests[start * DIGEST_BYTES : (start + _DAYS_PER_BLOCK) * DIGEST_BYTES]
        rows.append((server * BLOCKS_PER_SERVER + len(edges) // 2, _pack(block), of_block))
        edges += (block[0], block[-1])
    columns = CalendarColumns(
        days=_pack(days[recent:]),
        day_digests=digests[recent * DIGEST_BYTES :],
        blocks=_pack(edges),
        block_digests=earlier.digests + b"".join(digest_row("calendars", row) for row in rows),
    )
    return columns, rows


def read_calendar(server: ServerRow) -> Calendar:
    """Return the calendar in the row of a server."""
    recent = read_block(server.days, server.day_digests, most=2 * _DAYS_PER_BLOCK - 1)
    count = 2 * len(server.block_digests) // DIGEST_BYTES
    if count > 2 * _MAX_BLOCKS:
        raise ForgedRowError("more blocks than a server has")
    edges = unpack(server.blocks, count).tolist() if count else []
    edges += (recent.days[0], recent.days[-1]) if recent.days else ()
    return Calendar(edges, server.block_digests, recent)


def read_block(days: bytes, digests: bytes, *, most: int = _DAYS_PER_BLOCK) -> Block:
    """Return the block in two columns of a row."""
    count = len(digests) // DIGEST_BYTES
    if not count:
        if days:
            raise ForgedRowError("days without digests")
        return Block((), b"")
    if count > most:
        raise ForgedRowError("more days than a block has")
    return Block(unpack(days, count), digests)


def _pack(days: Sequence[int]) -> bytes:
    return pack(days, days[-1]) if days else b""
