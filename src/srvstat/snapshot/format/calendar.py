"""The days that a server was observed on, each with its digest, so that none is missing unnoticed.

The last days stand in the server's own row, since most windows begin and end there. Earlier ones
stand in blocks, rows of `calendars`, of which the server's row has the first day, the last day and
the digest. So an answer hashes little, however many days a server has.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import ServerRow, Value

BLOCKS_PER_SERVER = 10_000
"""More blocks than the days of a server fill: `server_block` is the server times this, plus the
number of the block."""

_MAX_BLOCKS = BLOCKS_PER_SERVER - 1

_DAYS_PER_BLOCK = 32
"""A window of 30 days ends among 31 days, all of which stand in the server's row."""


class Entry(NamedTuple):
    """A day since 1970-01-01, and the digest of its row of `days`."""

    day: int
    digest: bytes


class Block(NamedTuple):
    """Successive days that a server was observed on, and their digests one after another."""

    days: Sequence[int]
    digests: bytes

    def entry(self, position: int) -> Entry:
        """Return the day at a position.

        Raises LookupError where there is none: in a forged calendar a block may begin after the
        edge that leads to it.
        """
        if position < 0:
            raise IndexError(position)
        at = position * DIGEST_BYTES
        return Entry(self.days[position], self.digests[at : at + DIGEST_BYTES])

    def first_from(self, day: int) -> Entry:
        """Return the first day from one on, which is in the block."""
        return self.entry(bisect_left(self.days, day))

    def last_up_to(self, day: int) -> Entry:
        """Return the last day up to one, which is in the block."""
        return self.entry(bisect_right(self.days, day) - 1)


class Calendar(NamedTuple):
    """All days of a server: the edges and digests of its blocks, and its recent days.

    `edges` holds the first and the last day of each block, and then those of the recent days, which
    count as one more block. Without any day it is empty.
    """

    edges: Sequence[int]
    digests: bytes
    recent: Block

    @property
    def stored_blocks(self) -> int:
        """How many blocks are rows of `calendars`; the recent days have the next number."""
        return len(self.digests) // DIGEST_BYTES

    def digest(self, block: int) -> bytes:
        """Return the digest of a row of `calendars`."""
        return self.digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]

    def find_block(self, first_day: int) -> int | None:
        """Return the block that has the first day from `first_day` on; None where none has."""
        block = bisect_left(self.edges, first_day) // 2
        return block if 2 * block < len(self.edges) else None

    def find_last_block(self, last_day: int) -> int | None:
        """Return the block that has the last day up to `last_day`; None where none has."""
        block = (bisect_right(self.edges, last_day) - 1) // 2
        return block if block >= 0 else None


class CalendarColumns(NamedTuple):
    """The columns of `servers` that hold a calendar."""

    days: bytes
    day_digests: bytes
    blocks: bytes
    block_digests: bytes


def split_calendar(
    server: int, days: Sequence[int], digests: Sequence[bytes]
) -> tuple[CalendarColumns, list[tuple[Value, ...]]]:
    """Return the calendar of a server: its columns of `servers` and its rows of `calendars`."""
    recent = max(len(days) // _DAYS_PER_BLOCK - 1, 0) * _DAYS_PER_BLOCK
    rows: list[tuple[Value, ...]] = []
    edges: list[int] = []
    for start in range(0, recent, _DAYS_PER_BLOCK):
        block = days[start : start + _DAYS_PER_BLOCK]
        joined = b"".join(digests[start : start + _DAYS_PER_BLOCK])
        rows.append((server * BLOCKS_PER_SERVER + len(rows), _pack(block), joined))
        edges += (block[0], block[-1])
    columns = CalendarColumns(
        days=_pack(days[recent:]),
        day_digests=b"".join(digests[recent:]),
        blocks=_pack(edges),
        block_digests=b"".join(digest_row("calendars", row) for row in rows),
    )
    return columns, rows


def read_calendar(server: ServerRow) -> Calendar:
    """Return the calendar that the row of a server holds.

    Raises ValueError for columns that no build wrote.
    """
    recent = read_block(server.days, server.day_digests, most=2 * _DAYS_PER_BLOCK - 1)
    count = 2 * len(server.block_digests) // DIGEST_BYTES
    if count > 2 * _MAX_BLOCKS:
        raise ValueError("more blocks than a server has")
    edges = unpack(server.blocks, count).tolist() if count else []
    edges += (recent.days[0], recent.days[-1]) if recent.days else ()
    return Calendar(edges, server.block_digests, recent)


def read_block(days: bytes, digests: bytes, *, most: int = _DAYS_PER_BLOCK) -> Block:
    """Return the days that two columns of a row hold.

    Raises ValueError for bytes that no build wrote.
    """
    count = len(digests) // DIGEST_BYTES
    if not count:
        if days:
            raise ValueError("days without digests")
        return Block((), b"")
    if count > most:
        raise ValueError("more days than a block has")
    return Block(unpack(days, count), digests)


def _pack(days: Sequence[int]) -> bytes:
    return pack(days, days[-1]) if days else b""
