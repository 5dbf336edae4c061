"""Exact statistics of whole numbers (D5, D6). Nothing here rounds, reads or writes.

A quotient of two integers is returned as the IEEE double nearest to it: Python's true division of
integers rounds correctly whatever their size.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

Histogram = Mapping[int, int]
"""How often each value was observed: value to count, every count at least 1."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The last observation minus the first, and that in percent of the first."""

    players: int | None
    percentage: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of one window. Without an observation all but the count are None."""

    count: int
    mean: float | None
    median: float | None
    peak: int | None
    lowest: int | None
    growth: Growth


def statistics_of(values: Sequence[int]) -> Statistics:
    """Return the statistics of observed values, given in the order of their instants."""
    growth = growth_between(values[0], values[-1]) if len(values) > 1 else Growth(None, None)
    return statistics_of_histogram(Counter(values), growth)


def statistics_of_histogram(histogram: Histogram, growth: Growth) -> Statistics:
    """Return the statistics of a histogram; growth needs the order that it lost."""
    if not histogram:
        return Statistics(0, None, None, None, None, growth)
    return Statistics(
        count=sum(histogram.values()),
        mean=mean(histogram),
        median=median(histogram),
        peak=max(histogram),
        lowest=min(histogram),
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
