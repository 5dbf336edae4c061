"""Compute exact statistics of integers (D5, D6).

Sums are exact. A quotient is the IEEE double nearest to the exact value, because Python's true
division rounds integers of any size correctly.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

Histogram = Mapping[int, int]
"""The number of observations of each value; each number is at least 1."""


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
    """Return the statistics of player counts in chronological order."""
    growth = compute_growth(values[0], values[-1]) if len(values) > 1 else Growth(None, None)
    ascending, count = sorted(values), len(values)
    return compute_ranking_statistics(count, sum(ascending), ascending.__getitem__, growth)


def compute_histogram_statistics(histogram: Histogram, growth: Growth) -> Statistics:
    """Return the statistics of a histogram. `growth` is given, because it depends on the order."""
    values = sorted(histogram)
    ends = list(accumulate(histogram[value] for value in values))
    total = sum(value * count for value, count in histogram.items())

    def find_value(rank: int) -> int:
        return values[bisect_right(ends, rank)]

    return compute_ranking_statistics(ends[-1] if ends else 0, total, find_value, growth)


def find_middle_ranks(count: int) -> tuple[int, int]:
    """Return the two middle ranks, counted from 0. They are equal if the count is odd."""
    return (count - 1) // 2, count // 2


def find_quantile_ranks(count: int, quantile: Fraction) -> tuple[int, int]:
    """Return the two 0-based ranks such that the quantile is the mean of their values.

    `quantile` is in [0, 1]. The definition is Hyndman-Fan type 2 (1996), in which 1/2 is the
    median. The ranks may be equal.
    """
    below, rest = divmod(count * quantile, 1)
    ranks = (below, below) if rest else (below - 1, below)
    lower, upper = (min(max(rank, 0), count - 1) for rank in ranks)
    return lower, upper


def compute_ranking_statistics(
    count: int, total: int, find_value: Callable[[int], int], growth: Growth
) -> Statistics:
    """Return the statistics of `count` observations with the sum `total`.

    `find_value` returns the observation with a rank, counted from 0. The result equals the result
    of `compute_statistics` for the same observations.
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


def compute_growth(first: int, last: int) -> Growth:
    """Return the growth from the first to the last player count.

    The percentage is None if the first count is 0.
    """
    return Growth(last - first, 100 * (last - first) / first if first else None)
