"""Divide the intervals of a server into bands, and count the intervals in them day by day.

An interval is the time between two successive observations. The bands are like those of values
(bands.py), but fewer: a median needs less than all quantiles.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from operator import add

from srvstat.snapshot.format.bands import divide_values
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import IntervalCounts, ServerRow
from srvstat.snapshot.format.summaries import SummaryDay

_MIN_BANDS, _MAX_BANDS = 8, 64
_INTERVALS_PER_BAND_AND_DAY = 4
"""The counts of a day then take little space beside its observations."""


def divide_intervals(counts: Mapping[int, int], days: int) -> Sequence[int]:
    """Return the least interval of each band, for a server with intervals on a number of days."""
    wanted = sum(counts.values()) // days // _INTERVALS_PER_BAND_AND_DAY
    wanted = min(max(wanted, _MIN_BANDS), _MAX_BANDS)
    return divide_values(counts, singles=wanted, wanted=wanted)


def build_interval_counts(
    key: int, days: Sequence[SummaryDay], bands: bytes, before: Sequence[int]
) -> tuple[IntervalCounts, list[int]]:
    """Return the row of `interval_counts` for the days of a block, and the counts after it.

    `bands` has the band of each interval, and `before` the cumulative counts of earlier blocks.
    """
    of_days = [bands[day.intervals] for day in days]
    lower = [0] * len(days)
    columns: list[list[int]] = []
    for band in range(len(before)):
        up_to = accumulate(of_day.count(band) for of_day in of_days)
        lower = list(map(add, lower, up_to))
        columns.append(lower)
    counts = pack(list(chain.from_iterable(columns)), lower[-1])
    after = [count + column[-1] for count, column in zip(before, columns, strict=True)]
    return IntervalCounts(key, pack(before, before[-1]), counts), after


def read_interval_counts(row: IntervalCounts, days: int, place: int, bands: int) -> list[int]:
    """Return for each band the number of intervals in it or a lower one, up to a day of a block.

    `days` is the number of days of the block, and `place` the position of the day.

    Raises ValueError for rows that no build writes.
    """
    counts = unpack(row.counts, days * bands)[place::days]
    return list(map(add, unpack(row.before, bands), counts))


def compute_server_coverage(server: ServerRow, as_of: int) -> float | None:
    """Return the share of the time from the first observation to `as_of` that a server is covered.

    An observation lasts until the next one, the last one until `as_of`, but at most three usual
    intervals of the server. None for fewer than two observations.

    Raises ValueError for columns that no build writes.
    """
    first, last = server.first_observed_at, server.last_observed_at
    usual, covered = server.usual_interval, server.covered
    if usual is None or covered is None:
        return None
    if first is None or last is None or not 0 < covered <= 2 * (last - first) or usual < 1:
        raise ValueError("not the intervals of observations")
    end = max(as_of, last)
    return (covered + min(2 * (end - last), 3 * usual)) / (2 * (end - first))
