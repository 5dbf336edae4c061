"""Summarize the days of a server, so that a window reads few rows.

A summary day is `(00:00, 24:00]` UTC. It excludes its start, as windows do, so a window from
midnight to midnight consists of whole summary days. A row has the figures of a block of days.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.bands import Bands, read_bands
from srvstat.snapshot.format.digest import DIGEST_BYTES
from srvstat.snapshot.format.packing import unpack, unpack_sums
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, Summaries, SummaryIndex

DAYS_PER_BLOCK = 64

MAX_LONG = 4_096
"""Keeps the rows of summaries small; windows of blocks with more are computed otherwise."""

MAX_INTERVAL_BANDS = 100
"""No server has more bands of intervals."""


class SummaryDay(NamedTuple):
    """The number of a summary day, and the positions of its observations.

    The number is that of the UTC day at whose start the summary day ends.
    """

    number: int
    first: int
    end: int

    @property
    def intervals(self) -> slice:
        """The positions of the intervals that end in the day."""
        return slice(max(self.first, 1) - 1, self.end - 1)


def find_summary_days(instants: Sequence[int]) -> Iterator[SummaryDay]:
    """Yield the summary days with observations."""
    first = 0
    while first < len(instants):
        number = find_summary_day(instants[first])
        end = bisect_right(instants, number * DAY_MS, first)
        yield SummaryDay(number, first, end)
        first = end


def find_summary_day(instant: int) -> int:
    """Return the number of the summary day of an instant."""
    return -(-instant // DAY_MS)


def has_all_long_intervals(usual_interval: int, longest_usual: int) -> bool:
    """Check that all intervals longer than three usual ones, in half milliseconds, are listed."""
    return 3 * usual_interval >= 2 * longest_usual


class Index(NamedTuple):
    """The rows of a server: the edges and digests of blocks, and the bands of its intervals.

    `edges` has the first and the last day of each block. Intervals longer than `longest_usual` are
    listed.
    """

    edges: Sequence[int]
    digests: bytes
    count_digests: bytes
    bands: Bands
    longest_usual: int

    @property
    def last_block(self) -> int:
        """The number of the last block."""
        return len(self.edges) // 2 - 1

    def find_block(self, day: int) -> int:
        """Return the block with the last day on or before `day`, or the first block without one."""
        return max((bisect_right(self.edges, day) - 1) // 2, 0)

    def get_digest(self, block: int) -> bytes:
        """Return the digest of a row of `summaries`."""
        return self.digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]

    def get_count_digest(self, block: int) -> bytes:
        """Return the digest of a row of `interval_counts`."""
        return self.count_digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]


def read_index(row: SummaryIndex) -> Index:
    """Return the index in a row.

    Raises ValueError for columns that no build writes.
    """
    blocks = len(row.digests) // DIGEST_BYTES
    if blocks >= BLOCKS_PER_SERVER or row.band_count > MAX_INTERVAL_BANDS:
        raise ValueError("more blocks or bands than a server has")
    edges = unpack(row.blocks, 2 * blocks)
    return Index(edges, row.digests, row.count_digests, read_bands(row), row.longest_usual)


class Blocks:
    """The figures of successive days of a server, from one or more rows of `summaries`.

    A position is that of a day among all days of the rows. Values that no build writes raise
    ValueError or LookupError.
    """

    def __init__(self, first: int, rows: Sequence[Summaries], *, has_last: bool) -> None:
        self.first = first
        """The number of the first block."""
        self.rows = rows
        counts = [row.day_count for row in rows]
        full = counts[:-1] if has_last else counts
        if any(count != DAYS_PER_BLOCK for count in full) or not 0 < counts[-1] <= DAYS_PER_BLOCK:
            raise ValueError("not the days of a block")
        self.days = self.read_column("days")

    def read_column(self, name: str) -> Sequence[int]:
        """Return a column for all days."""
        found: list[int] = []
        for row in self.rows:
            found.extend(unpack_sums(getattr(row, name), row.day_count))
        return found

    def get_value(self, name: str, position: int) -> int:
        """Return a value of a day."""
        block, place = divmod(position, DAYS_PER_BLOCK)
        row = self.rows[block]
        return unpack_sums(getattr(row, name), row.day_count)[place]

    def get_instant(self, name: str, position: int) -> int:
        """Return the instant of a time of a day."""
        return (self.days[position] - 1) * DAY_MS + self.get_value(name, position)

    def list_long_intervals(self, window: Window) -> list[tuple[int, int]] | None:
        """Return the lengths of the long intervals that end in a window, and the players before.

        None if they are too many to be listed.
        """
        found: list[tuple[int, int]] = []
        for row in self.rows:
            if row.long_count is None:
                return None
            if not 0 <= row.long_count <= MAX_LONG:
                raise ValueError("not a number of long intervals")
            if row.long_count:
                start = (unpack(row.days, row.day_count)[0] - 1) * DAY_MS
                ends = unpack(row.long_ends, row.long_count)
                chosen = slice(
                    bisect_right(ends, window.start - start), bisect_right(ends, window.end - start)
                )
                lengths = unpack(row.long_intervals, row.long_count)[chosen]
                found += zip(lengths, unpack(row.long_players, row.long_count)[chosen], strict=True)
        return found
