"""Divide the intervals of a server into bands, and count the intervals in them day by day.

An interval is the time between two successive observations. The first observations of a server
determine the bands (epochs.py). Medians of windows are mostly near the median of these intervals,
so only bands around it have rows. Each frequent interval is a band by itself.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, pairwise, repeat
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from srvstat.snapshot.format.bands import UNKNOWN, digest_rows, pack_digests
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    DAYS_PER_BLOCK,
    ForgedRowError,
    IntervalCounts,
    ServerRow,
    Value,
)
from srvstat.stats import find_middle_ranks

if TYPE_CHECKING:
    from array import array

_MIN_MIDDLE, _MAX_MIDDLE = 2, 16
"""Limits to the number of bands around the median, which have a quarter of the intervals."""

_INTERVALS_PER_BAND_AND_DAY = 4
"""The counts of a day then take little space beside its observations."""

_MAX_SAMPLE = 2_048
_INTERVALS_AT_ONCE = 10_000


class IntervalBands(NamedTuple):
    """The bands of the intervals of a server.

    `starts` has the least interval of each band, ascending, and `stored` the numbers of the bands
    that can have rows. `longest_usual` is 2.5 times the usual interval of an epoch.
    """

    starts: Sequence[int]
    stored: range
    longest_usual: int

    def pack_digests(self, rows: Iterable[tuple[Value, ...]]) -> bytes:
        """Pack the digests of `rows`, which are those of `intervals`, and mark unknown bands."""
        unknown = [band for band in range(len(self.starts)) if not self.is_known(band)]
        return pack_digests(dict.fromkeys(unknown, UNKNOWN) | digest_rows("intervals", rows))

    def is_known(self, band: int) -> bool:
        """Check that a band without a row has only intervals that equal its start."""
        return band in self.stored or self.starts[band + 1 : band + 2] == [self.starts[band] + 1]


def divide_intervals(intervals: Sequence[int], days: int) -> IntervalBands:
    """Return the bands of intervals.

    `intervals` are those of the epoch of a server, at least one, on a number of days.
    """
    wanted = len(intervals) // days // _INTERVALS_PER_BAND_AND_DAY
    wanted = min(max(wanted, _MIN_MIDDLE), _MAX_MIDDLE)
    sample = sorted(intervals[:: len(intervals) // _MAX_SAMPLE + 1])
    # From three to five eighths of all.
    ranks = (len(sample) * (3 * wanted + 2 * at) // (8 * wanted) for at in range(wanted + 1))
    middle = [sample[rank] for rank in ranks]
    # A frequent interval has its own band.
    counts = Counter(sample)
    frequent = {value for value, count in counts.items() if 2 * wanted * count >= len(sample)}
    frequent |= {value for value, following in pairwise(middle) if value == following}
    # The last band has long intervals.
    starts = sorted({0, *middle, *frequent, *(value + 1 for value in frequent), 2 * middle[-1]})
    stored = range(starts.index(middle[0]), starts.index(middle[-1]))
    return IntervalBands(starts, stored, 5 * sample[len(sample) // 2] // 2)


class DividedIntervals(NamedTuple):
    """The intervals of a server, their bands, and the band of each of them.

    `members` has the intervals of each band that can have a row, in order of time, minus its least.
    """

    intervals: "array[int]"
    bands: IntervalBands
    numbers: bytes
    members: Mapping[int, Sequence[int]]

    def find_longer(self, least: int) -> list[int]:
        """Return the positions of intervals longer than `least`."""
        starts = self.bands.starts
        first = max(bisect_right(starts, least) - 1, 0)
        is_candidate = self._mark_bands(range(first, len(starts)))
        found = []
        at = is_candidate.find(1)
        while at >= 0:
            if self.intervals[at] > least:
                found.append(at)
            at = is_candidate.find(1, at + 1)
        return found

    def _mark_bands(self, wanted: range) -> bytes:
        """Return a 1 for each interval in one of the bands, and a 0 for each other one."""
        return self.numbers.translate(bytes(band in wanted for band in range(256)))

    def compute_usual_interval(self, cumulative: Sequence[int]) -> int:
        """Return the median of the intervals, in half milliseconds.

        `cumulative` has for each band the number of intervals in it or a lower one.
        """
        ranks = find_middle_ranks(cumulative[-1])
        return sum(self._find_value(rank, cumulative) for rank in ranks)

    def _find_value(self, rank: int, cumulative: Sequence[int]) -> int:
        band = bisect_right(cumulative, rank)
        if band in self.members:
            members = sorted(self.members[band])
            return self.bands.starts[band] + members[rank - cumulative[band] + len(members)]
        if self.bands.is_known(band):
            return self.bands.starts[band]
        return sorted(self.intervals)[rank]


def number_intervals(intervals: "array[int]", bands: IntervalBands) -> DividedIntervals:
    """Find the band of each interval of a server."""
    starts, stored = bands.starts, bands.stored
    others = bytes(band for band in range(256) if band not in stored)
    is_stored = bytes(band in stored for band in range(256))
    members: dict[int, list[int]] = {band: [] for band in stored}
    append = {band: of_band.append for band, of_band in members.items()}
    numbers = []
    # A list of all intervals would take much memory.
    for at in range(0, len(intervals), _INTERVALS_AT_ONCE):
        part = intervals[at : at + _INTERVALS_AT_ONCE].tolist()
        of_part = find_bands(part, starts)
        numbers.append(of_part)
        chosen = compress(part, of_part.translate(is_stored))
        for band, interval in zip(of_part.translate(None, others), chosen, strict=True):
            append[band](interval - starts[band])
    return DividedIntervals(intervals, bands, b"".join(numbers), members)


def find_bands(intervals: Sequence[int], starts: Sequence[int]) -> bytes:
    """Return the number of the band of each interval."""
    return bytes(map(bisect_right, repeat(starts[1:]), intervals))


def build_interval_rows(
    server: int, members: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the rows of `intervals` of a server."""
    for band, above in members.items():
        if any(above):
            yield server * BANDS_PER_SERVER + band, len(above), pack(above, max(above))


class CountBlock(NamedTuple):
    """A row of `interval_counts`: cumulative counts of intervals, a number for each band.

    `days` has those of the block up to each of its days.
    """

    before: Sequence[int]
    days: list[Sequence[int]]

    @property
    def after(self) -> list[int]:
        """The counts up to the last day of the block."""
        return list(map(add, self.before, self.days[-1]))

    def build_row(self, key: int) -> IntervalCounts:
        """Return the row of `interval_counts`."""
        counts = list(chain.from_iterable(zip(*self.days, strict=True)))
        before = pack(self.before, self.before[-1])
        return IntervalCounts(key, before, pack(counts, self.days[-1][-1]))


def count_intervals(numbers: Sequence[bytes], before: Sequence[int]) -> CountBlock:
    """Count the intervals of a block of days.

    `numbers` has the bands of the intervals of each day, and `before` the counts before the block.
    """
    days: list[Sequence[int]] = []
    up_to: Sequence[int] = [0] * len(before)
    for of_day in numbers:
        up_to = _add_counts(up_to, of_day)
        days.append(up_to)
    return CountBlock(before, days)


def _add_counts(cumulative: Sequence[int], numbers: bytes) -> Sequence[int]:
    """Add intervals, given by their bands, to cumulative counts."""
    counts = map(numbers.count, range(len(cumulative)))
    return list(map(add, cumulative, accumulate(counts)))


def extend_counts(
    last: CountBlock, numbers: Iterable[bytes], *, joins_last_day: bool
) -> list[CountBlock]:
    """Return the last block of a server with the intervals of later days, and the next blocks.

    `numbers` has the bands of the intervals of each day. The first day may be the last one of the
    block.
    """
    blocks = [last]
    for of_day in numbers:
        before, days = blocks[-1]
        if joins_last_day:
            blocks[-1] = CountBlock(before, [*days[:-1], _add_counts(days[-1], of_day)])
            joins_last_day = False
        elif len(days) < DAYS_PER_BLOCK:
            blocks[-1] = CountBlock(before, [*days, _add_counts(days[-1], of_day)])
        else:
            blocks.append(count_intervals([of_day], blocks[-1].after))
    return blocks


def read_count_block(row: IntervalCounts, days: int, bands: int) -> CountBlock:
    """Return the counts in a row."""
    counts = unpack(row.counts, days * bands)
    return CountBlock(unpack(row.before, bands), [counts[day::days] for day in range(days)])


def read_interval_counts(row: IntervalCounts, days: int, place: int, bands: int) -> list[int]:
    """Return for each band the number of intervals in it or a lower one, up to a day of a block.

    `days` is the number of days of the block, and `place` the position of the day.
    """
    counts = unpack(row.counts, days * bands)[place::days]
    return list(map(add, unpack(row.before, bands), counts))


def compute_server_coverage(server: ServerRow, as_of: int) -> float | None:
    """Return the share of the time from the first observation to `as_of` that a server is covered.

    An observation lasts until the next one, the last one until `as_of`, but at most three usual
    intervals of the server. None for fewer than two observations.
    """
    first, last = server.first_observed_at, server.last_observed_at
    usual, covered = server.usual_interval, server.covered
    if usual is None or covered is None:
        return None
    if first is None or last is None or not 0 < covered <= 2 * (last - first) or usual < 1:
        raise ForgedRowError("not the intervals of observations")
    end = max(as_of, last)
    return (covered + min(2 * (end - last), 3 * usual)) / (2 * (end - first))
