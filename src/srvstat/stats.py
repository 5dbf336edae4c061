"""Exact statistics of whole numbers (D5, D6). Nothing here rounds, reads or writes.

A quotient of two integers is returned as the IEEE double nearest to it: Python's true division of
integers rounds correctly whatever their size.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import NamedTuple

Histogram = Mapping[int, int]
"""How often each value was observed: value to count, every count at least 1."""


class Growth(NamedTuple):
    """The last observation minus the first, and that in percent of the first."""

    players: int | None
    percentage: float | None


class Statistics(NamedTuple):
    """The figures of one window. Without an observation all but their number are None."""

    observations: int
    mean: float | None
    median: float | None
    peak: int | None
    lowest: int | None
    growth: Growth


def compute_statistics(values: Sequence[int]) -> Statistics:
    """Return the statistics of observed values, given in the order of their instants."""
    growth = growth_between(values[0], values[-1]) if len(values) > 1 else Growth(None, None)
    return compute_histogram_statistics(Counter(values), growth)


def compute_histogram_statistics(histogram: Histogram, growth: Growth) -> Statistics:
    """Return the statistics of a histogram; growth needs the order that it lost."""
    if not histogram:
        return Statistics(0, None, None, None, None, growth)
    return Statistics(
        observations=sum(histogram.values()),
        mean=mean(histogram),
        median=median(histogram),
        peak=max(histogram),
        lowest=min(histogram),
        growth=growth,
    )


class Prefix(NamedTuple):
    """What a server's observations up to an instant add up to: how many, and all their players.

    The values that the server was ever observed with are divided into bands of neighbours, often of
    one value each. `cumulative[i]` counts the observations in the bands 0 to i, up to an instant
    nearby. The observations between the two are in `added` where that one is earlier, and in
    `removed` where it is later.
    """

    observations: int
    total: int
    cumulative: Sequence[int]
    added: Sequence[int]
    removed: Sequence[int]


class Ranking:
    """Finds values by their rank among the observations after one prefix and up to a later one.

    `starts` are the least values of the bands, ascending. A rank counts from 0. The cost does not
    grow with the number of observations between the two.
    """

    def __init__(self, start: Prefix, end: Prefix, starts: Sequence[int]) -> None:
        self.count = end.observations - start.observations
        self.total = end.total - start.total
        self._start, self._end, self._starts = start, end, starts
        self._more = sorted([*end.added, *start.removed])
        self._fewer = sorted([*end.removed, *start.added])
        self._moved: tuple[_Moved, _Moved] | None = None

    def find_band(self, rank: int) -> int:
        """Return the band that the value with a rank lies in."""
        starts, before, after = self._starts, self._start.cumulative, self._end.cumulative
        more, fewer = self._more, self._fewer
        low, high = 0, len(starts) - 1
        while low < high:
            at = (low + high) // 2
            limit = starts[at + 1]
            below = after[at] - before[at] + bisect_left(more, limit) - bisect_left(fewer, limit)
            if below > rank:
                high = at
            else:
                low = at + 1
        return low

    def find_members(self, band: int) -> tuple[int, int]:
        """Return the positions of a band's observations between the prefixes, the second excluded.

        Positions count the band's observations from 0, in the order of time.
        """
        if self._moved is None:
            self._moved = _Moved(self._start), _Moved(self._end)
        low = self._starts[band]
        high = self._starts[band + 1] if band + 1 < len(self._starts) else inf
        first, last = (moved.count_in(band, low, high) for moved in self._moved)
        return first, last

    def count_below(self, band: int) -> int:
        """Return how many observations lie in the bands before one."""
        if not band:
            return 0
        limit = self._starts[band]
        below = self._end.cumulative[band - 1] - self._start.cumulative[band - 1]
        return below + bisect_left(self._more, limit) - bisect_left(self._fewer, limit)


class _Moved:
    """A prefix with the observations between it and its histogram in the order of their values."""

    def __init__(self, prefix: Prefix) -> None:
        self._cumulative = prefix.cumulative
        self._added, self._removed = sorted(prefix.added), sorted(prefix.removed)

    def count_in(self, band: int, low: float, high: float) -> int:
        """Return how many observations lie in a band, with values from `low` to below `high`."""
        count = self._cumulative[band] - (self._cumulative[band - 1] if band else 0)
        count += bisect_left(self._added, high) - bisect_left(self._added, low)
        return count - bisect_left(self._removed, high) + bisect_left(self._removed, low)


def middle_ranks(count: int) -> tuple[int, int]:
    """Return the ranks of the two middle ones of some observations; equal where there is one."""
    return (count - 1) // 2, count // 2


def compute_ranking_statistics(
    ranking: Ranking, value_at: Callable[[int], int], growth: Growth
) -> Statistics:
    """Return the statistics of a ranking, whose values by rank `value_at` gives.

    The figures are those that `statistics_of` gives for the observations. Growth needs their order.
    """
    count = ranking.count
    if not count:
        return Statistics(0, None, None, None, None, growth)
    lower, upper = map(value_at, middle_ranks(count))
    return Statistics(
        observations=count,
        mean=ranking.total / count,
        median=(lower + upper) / 2,
        peak=value_at(count - 1),
        lowest=value_at(0),
        growth=growth,
    )


def mean(histogram: Histogram) -> float:
    """Return the double nearest to the sum over the count; the histogram is not empty."""
    total = sum(value * count for value, count in histogram.items())
    return total / sum(histogram.values())


def median(histogram: Histogram) -> float:
    """Return the middle value, or the mean of the two middle ones; the histogram is not empty."""
    values = sorted(histogram)
    ends = list(accumulate(histogram[value] for value in values))
    lower, upper = (ends[-1] - 1) // 2, ends[-1] // 2
    return (values[bisect_right(ends, lower)] + values[bisect_right(ends, upper)]) / 2


def growth_between(first: int, last: int) -> Growth:
    """Return the growth from the first observation to the last, two different ones.

    From 0 there is no percentage.
    """
    players = last - first
    return Growth(players, 100 * players / first if first else None)
