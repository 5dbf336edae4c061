"""Compute exact statistics of integers (D5, D6).

Sums are exact. A quotient is the IEEE double nearest to the exact value, because Python's true
division of integers rounds correctly whatever their size.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import inf
from operator import mul
from typing import NamedTuple

Histogram = Mapping[int, int]
"""The number of observations of each value, at least 1."""


class Growth(NamedTuple):
    """The last observation minus the first, in players and in percent of the first."""

    players: int | None
    percentage: float | None


class Statistics(NamedTuple):
    """The statistics of one window. If `observations` is 0, all other values are None."""

    observations: int
    mean: float | None
    median: float | None
    peak: int | None
    lowest: int | None
    growth: Growth


def compute_statistics(values: Sequence[int]) -> Statistics:
    """Return the statistics of player counts, given in the order of their instants."""
    growth = compute_growth(values[0], values[-1]) if len(values) > 1 else Growth(None, None)
    ascending, count = sorted(values), len(values)
    return compute_ranking_statistics(count, sum(ascending), ascending.__getitem__, growth)


def compute_histogram_statistics(histogram: Histogram, growth: Growth) -> Statistics:
    """Return the statistics of a histogram; its growth is given, as it depends on the order."""
    if not histogram:
        return Statistics(0, None, None, None, None, growth)
    return Statistics(
        observations=sum(histogram.values()),
        mean=compute_mean(histogram),
        median=compute_median(histogram),
        peak=max(histogram),
        lowest=min(histogram),
        growth=growth,
    )


class Prefix(NamedTuple):
    """The observations of a server up to an instant: their number, their sum and their histogram.

    All values ever observed of the server are divided into bands of adjacent values, often of one
    value each. `cumulative[i]` counts the observations in bands 0 to i up to a second instant
    nearby. The values observed between the two instants are in `added` if the second one is
    earlier, and in `removed` if it is later.
    """

    observations: int
    total: int
    cumulative: Sequence[int]
    added: Sequence[int]
    removed: Sequence[int]


class Ranking:
    """Finds values by rank among the observations between two prefixes.

    `starts` are the lowest values of the bands, ascending. Ranks count from 0. The cost does not
    depend on the number of observations.
    """

    def __init__(self, start: Prefix, end: Prefix, starts: Sequence[int]) -> None:
        self.count = end.observations - start.observations
        self.total = end.total - start.total
        self._start, self._end, self._starts = start, end, starts
        self._added = sorted([*end.added, *start.removed])
        self._removed = sorted([*end.removed, *start.added])
        self._histograms: tuple[_Histogram, _Histogram] | None = None

    def find_band(self, rank: int) -> int:
        """Return the band that contains the value with a rank."""
        starts, before, after = self._starts, self._start.cumulative, self._end.cumulative
        added, removed = self._added, self._removed
        low, high = 0, len(starts) - 1
        while low < high:
            at = (low + high) // 2
            limit = starts[at + 1]
            below = after[at] - before[at] + bisect_left(added, limit) - bisect_left(removed, limit)
            if below > rank:
                high = at
            else:
                low = at + 1
        return low

    def find_members(self, band: int) -> tuple[int, int]:
        """Return the positions of a band's first observation and of the one after its last.

        Positions count all observations of the band from 0, in the order of their instants.
        """
        if self._histograms is None:
            self._histograms = _Histogram(self._start), _Histogram(self._end)
        low = self._starts[band]
        high = self._starts[band + 1] if band + 1 < len(self._starts) else inf
        first, last = (each.count(band, low, high) for each in self._histograms)
        return first, last

    def count_below(self, band: int) -> int:
        """Return the number of observations in the bands below one."""
        if not band:
            return 0
        limit = self._starts[band]
        below = self._end.cumulative[band - 1] - self._start.cumulative[band - 1]
        return below + bisect_left(self._added, limit) - bisect_left(self._removed, limit)


class _Histogram:
    """The histogram of a prefix, corrected by the observations added and removed."""

    def __init__(self, prefix: Prefix) -> None:
        self._cumulative = prefix.cumulative
        self._added, self._removed = sorted(prefix.added), sorted(prefix.removed)

    def count(self, band: int, low: float, high: float) -> int:
        """Return the number of observations in a band, whose values are in [low, high)."""
        count = self._cumulative[band] - (self._cumulative[band - 1] if band else 0)
        count += bisect_left(self._added, high) - bisect_left(self._added, low)
        return count - bisect_left(self._removed, high) + bisect_left(self._removed, low)


def find_middle_ranks(count: int) -> tuple[int, int]:
    """Return the two middle ranks, which are equal if the count is odd."""
    return (count - 1) // 2, count // 2


def find_quantile_ranks(count: int, quantile: Fraction) -> tuple[int, int]:
    """Return the two ranks whose values have a quantile as their mean; they may be equal.

    The quantile is in [0, 1]. This is definition 2 of Hyndman and Fan (1996), in which 1/2 is the
    median.
    """
    below, rest = divmod(count * quantile, 1)
    ranks = (below, below) if rest else (below - 1, below)
    lower, upper = (min(max(rank, 0), count - 1) for rank in ranks)
    return lower, upper


def compute_ranking_statistics(
    count: int, total: int, find_value: Callable[[int], int], growth: Growth
) -> Statistics:
    """Return the statistics of observations; `find_value` returns the one with a rank.

    `count` is their number and `total` their sum. The statistics equal those that
    `compute_statistics` returns for the same observations.
    """
    if not count:
        return Statistics(0, None, None, None, None, growth)
    lower, upper = map(find_value, find_middle_ranks(count))
    return Statistics(
        observations=count,
        mean=total / count,
        median=(lower + upper) / 2,
        peak=find_value(count - 1),
        lowest=find_value(0),
        growth=growth,
    )


def compute_mean(histogram: Histogram) -> float:
    """Return the mean of a histogram that is not empty."""
    total = sum(value * count for value, count in histogram.items())
    return total / sum(histogram.values())


def compute_median(histogram: Histogram) -> float:
    """Return the median of a histogram that is not empty."""
    values = sorted(histogram)
    ends = list(accumulate(histogram[value] for value in values))
    lower, upper = find_middle_ranks(ends[-1])
    return (values[bisect_right(ends, lower)] + values[bisect_right(ends, upper)]) / 2


def compute_growth(first: int, last: int) -> Growth:
    """Return the growth between the player counts of two observations.

    The percentage is None if the first count is 0.
    """
    return Growth(last - first, compute_growth_percentage(first, last))


def compute_growth_percentage(first: int, last: int) -> float | None:
    """Return the growth between two player counts in percent of the first; None if that is 0."""
    return 100 * (last - first) / first if first else None


def compute_usual_interval(instants: Sequence[int]) -> float | None:
    """Return the median distance between successive instants; None for fewer than two of them.

    The instants are strictly ascending. The median is exact, with at most half a unit.
    """
    distances = Counter(after - before for before, after in pairwise(instants))
    return compute_median(distances) if distances else None


def compute_durations(instants: Sequence[int], end: int) -> list[int]:
    """Return how long each observation lasts, in half units of time.

    It lasts until the next one, the last one until `end`, but at most three usual intervals. One
    observation alone has no usual interval, and lasts until `end`.
    """
    distances = [2 * (after - before) for before, after in pairwise([*instants, end])]
    interval = compute_usual_interval(instants)
    if interval is None:
        return distances
    longest = 3 * int(2 * interval)
    return [min(distance, longest) for distance in distances]


def compute_weighted_mean(values: Sequence[int], weights: Sequence[int]) -> float:
    """Return the mean of values, at least one; the plain mean if all weights are 0."""
    total: int = sum(map(mul, values, weights))
    return total / sum(weights) if any(weights) else sum(values) / len(values)


def compute_coverage(durations: Iterable[int], length: int) -> float:
    """Return the share of a window's length in which an observation lasts.

    The durations are those of `compute_durations`.
    """
    return sum(durations) / (2 * length)
