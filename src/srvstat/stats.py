"""Exact statistics of whole numbers (D5, D6). Nothing here rounds, reads or writes.

A quotient of two integers is returned as the IEEE double nearest to it: Python's true division of
integers rounds correctly whatever their size.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
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


def statistics_of(values: Sequence[int]) -> Statistics:
    """Return the statistics of observed values, given in the order of their instants."""
    growth = growth_between(values[0], values[-1]) if len(values) > 1 else Growth(None, None)
    return statistics_of_histogram(Counter(values), growth)


def statistics_of_histogram(histogram: Histogram, growth: Growth) -> Statistics:
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

    `cumulative[i]` counts those with at most `lowest + i` players, for every value that the server
    was ever observed with, up to an instant nearby. What was observed between the two is in `added`
    where that one is earlier, and in `removed` where it is later.
    """

    observations: int
    total: int
    lowest: int
    cumulative: Sequence[int]
    added: Sequence[int]
    removed: Sequence[int]


def statistics_between(start: Prefix, end: Prefix, growth: Growth) -> Statistics:
    """Return the statistics of what was observed after one prefix and up to a later one.

    Both are of one server, so that their cumulative histograms have the same values. The figures
    are those that `statistics_of` gives for the observations between, at a cost that does not grow
    with their number. Growth needs the order that a histogram has lost.
    """
    count = end.observations - start.observations
    if not count:
        return Statistics(0, None, None, None, None, growth)
    select = _selector(start, end)
    lower, upper = (count - 1) // 2, count // 2
    middle = select(lower)
    return Statistics(
        observations=count,
        mean=(end.total - start.total) / count,
        median=(middle + (middle if upper == lower else select(upper))) / 2,
        peak=select(count - 1),
        lowest=select(0),
        growth=growth,
    )


def _selector(start: Prefix, end: Prefix) -> Callable[[int], int]:
    """Return what finds, between two prefixes, the value with a rank, counted from 0.

    That is the least value that more observations than the rank do not exceed.
    """
    lowest, before, after = start.lowest, start.cumulative, end.cumulative
    more = sorted([*end.added, *start.removed])
    fewer = sorted([*end.removed, *start.added])

    def select(rank: int) -> int:
        low, high = 0, len(after) - 1
        while low < high:
            at = (low + high) // 2
            value = lowest + at
            not_above = (
                after[at] - before[at] + bisect_right(more, value) - bisect_right(fewer, value)
            )
            if not_above > rank:
                high = at
            else:
                low = at + 1
        return lowest + low

    return select


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
