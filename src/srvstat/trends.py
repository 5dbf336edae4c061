"""Compute the exact median slope between averages: the estimator of Theil (1950) and Sen (1968).

There are n (n - 1) / 2 slopes, of which few are computed. The number of slopes below a given one is
the number of inversions in the heights of the points over a line with that slope, which is fast to
count; so a few counts find a small interval that contains the median.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import inf
from operator import itemgetter, sub
from typing import NamedTuple

_MAX_SLOPES = 6
"""The most slopes per point that are sorted."""

_TOLERANCE = 2.0**-48
"""Well above the relative error of a few operations on doubles."""

_MIN_POINTS = 16
"""The fewest points for which doubles save time."""

_MARGINS, _WIDENING, _MAX_TRIES = 4, 4, 3
"""Lines are aimed at this part of the points away from a rank, further away if none is between."""

_MAX_EQUAL = 100
"""The most slopes that doubles can't distinguish and that are compared exactly."""


class Averages(NamedTuple):
    """Averages `total / count` at strictly ascending positions; each count is at least 1."""

    positions: Sequence[int]
    totals: Sequence[int]
    counts: Sequence[int]


_Slope = tuple[float, int, int]
"""The slope between two points, as a double, and the numbers of the points."""


class _Points(NamedTuple):
    """The coordinates of points, all in integers or all in doubles; `xs` strictly ascend."""

    xs: Sequence[float]
    ys: Sequence[float]

    def find_heights(self, rise: float, run: float = 1) -> list[float]:
        """Return the heights of the points over a line with a slope, times `run`."""
        return [y * run - rise * x for x, y in zip(self.xs, self.ys, strict=True)]

    def list_distant_slopes(self) -> list[_Slope]:
        """Return the slopes between points that are half the points apart, ascending."""
        xs, ys = self
        pairs = zip(range(len(xs)), range(len(xs) // 2, len(xs)), strict=False)
        return sorted(((ys[j] - ys[i]) / (xs[j] - xs[i]), i, j) for i, j in pairs)

    def list_slopes_between(
        self, low: Sequence[float], high: Sequence[float], *, stride: int = 1, most: float = inf
    ) -> list[_Slope]:
        """Return the slopes strictly between two, or one in `stride` of them, ascending.

        `low` and `high` are the heights over lines with the two slopes. The second point of a slope
        between them has the greater height over `low`, and the lesser height over `high`. Stops
        after `most` slopes or some more.
        """
        xs, ys = self
        found: list[_Slope] = []
        seen: list[float] = []
        numbers: list[int] = []
        skipped = 0
        # Equal heights over `low` are taken in reverse: their slope is not between.
        for j in sorted(range(len(xs) - 1, -1, -1), key=low.__getitem__):
            height = high[j]
            if not seen or height >= seen[-1]:  # saves half of the time where lines are close
                seen.append(height)
                numbers.append(j)
                continue
            at = bisect_right(seen, height)
            if partners := numbers[at + skipped :: stride]:
                x, y = xs[j], ys[j]
                found += [((y - ys[i]) / (x - xs[i]), i, j) for i in partners]
                if len(found) > most:
                    break
            skipped = (skipped + at - len(numbers)) % stride
            seen.insert(at, height)
            numbers.insert(at, j)
        return sorted(found, key=itemgetter(0))


def compute_median_slope(averages: Averages) -> Fraction | None:
    """Return the median of the slopes between all pairs of averages.

    It is the mean of the two middle ones if their number is even, and None for fewer than two
    averages.
    """
    size = len(averages.positions)
    if size < 2:  # noqa: PLR2004 - a slope is between two
        return None
    last = math.comb(size, 2) - 1
    ranks = sorted({last // 2, (last + 1) // 2})
    found = _find_with_doubles(averages, ranks) if size >= _MIN_POINTS else []
    found = found or _find_exactly(averages, ranks)
    return (found[0] + found[-1]) / 2


def _find_with_doubles(averages: Averages, ranks: Sequence[int]) -> list[Fraction]:
    """Return the slopes with ranks, counted from 0; an empty list if doubles can't find them."""
    positions, totals, counts = averages
    points = _Points(
        [float(position - positions[0]) for position in positions],
        [total / count for total, count in zip(totals, counts, strict=True)],
    )
    aim = _guess_line(points, ranks[0])
    if aim is None:
        return []
    error = _TOLERANCE * max(points.ys) / min(map(sub, points.xs[1:], points.xs))
    margin, most = len(positions) / _MARGINS, _MAX_SLOPES * len(positions)
    for _ in range(_MAX_TRIES):
        start, end = aim.find_slope(ranks[0] - margin), aim.find_slope(ranks[-1] + margin)
        low, high = _draw_line(points, start), _draw_line(points, end)
        if low is None or high is None:
            return []
        below = _count_inversions(low)
        between = points.list_slopes_between(low, high, most=most)
        if len(between) > most:
            return []
        if below <= ranks[0] and ranks[-1] < below + len(between):
            return _select_slopes(averages, between, [rank - below for rank in ranks], error)
        if between:  # the line between the two tells more than the guess
            aim = _Aim(end, below + len(between), len(between) / (end - start))
        else:
            margin *= _WIDENING
    return []


class _Aim(NamedTuple):
    """A slope, about how many slopes are below it, and about how many more per slope."""

    slope: float
    rank: int
    density: float

    def find_slope(self, rank: float) -> float:
        """Return a slope with about this rank: on a short way, ranks increase evenly."""
        return self.slope + (rank - self.rank) / self.density


def _guess_line(points: _Points, rank: int) -> _Aim | None:
    """Return a slope near a rank; None if many slopes are equal there.

    The first guess follows from the distant slopes, the second one from the first.
    """
    slopes = points.list_distant_slopes()
    total = math.comb(len(points.xs), 2)
    low, high = _choose_places(len(slopes), rank / total)
    start, end = slopes[low][0], slopes[high][0]
    if start == end:
        return None
    density = (high - low) * total / len(slopes) / (end - start)
    middle = (start + end) / 2
    first = _Aim(middle, _count_inversions(points.find_heights(middle)), density)
    slope = first.find_slope(rank)
    second = _Aim(slope, _count_inversions(points.find_heights(slope)), density)
    if second.rank == first.rank:
        return second
    return second._replace(density=(second.rank - first.rank) / (second.slope - first.slope))


def _draw_line(points: _Points, slope: float) -> list[float] | None:
    """Return the heights over a line; None if doubles can't tell which slopes are below its own."""
    heights = points.find_heights(slope)
    ordered = sorted(heights)
    error = _TOLERANCE * (max(points.ys) + abs(slope) * points.xs[-1])
    return heights if min(map(sub, ordered[1:], ordered)) > error else None


def _find_exactly(averages: Averages, ranks: Sequence[int]) -> list[Fraction]:
    """Return the slopes with adjacent or equal ranks, counted from 0."""
    positions, totals, counts = averages
    common = math.lcm(*counts)
    xs = [position - positions[0] for position in positions]
    ys = [total * (common // count) for total, count in zip(totals, counts, strict=True)]
    # A quotient of these coordinates could be too large for a double.
    points, scaled = _Points(xs, ys), _Points([common * x for x in xs], ys)
    limit = max(ys) - min(ys) + 1
    low, high = points.find_heights(-limit), points.find_heights(limit)
    below, end = 0, math.comb(len(xs), 2)
    slopes = scaled.list_distant_slopes()
    while True:
        for place in _choose_places(len(slopes), (ranks[0] - below) / (end - below)):
            _, i, j = slopes[place]
            heights = points.find_heights(ys[j] - ys[i], xs[j] - xs[i])
            less = _count_inversions(heights)
            at_most = less + _count_equal(heights)
            if at_most <= ranks[0]:
                low, below = heights, at_most
            elif ranks[-1] < less:
                high, end = heights, less
                break  # the second slope is not less than the first
            elif less <= ranks[0] and ranks[-1] < at_most:
                return [_compute_slope(averages, i, j)] * len(ranks)
            else:
                return [_find_exactly(averages, [rank])[0] for rank in ranks]
        stride = -(-(end - below) // (_MAX_SLOPES * len(xs)))
        slopes = scaled.list_slopes_between(low, high, stride=stride)
        if stride == 1:
            return _select_slopes(averages, slopes, [rank - below for rank in ranks], error=0)


def _choose_places(count: int, position: float) -> tuple[int, int]:
    """Return two places around a relative position in a sorted list of slopes.

    If the slopes are a part of many, the rank of one among them has a standard deviation of at most
    half the square root of their number.
    """
    middle, margin = int(position * count), math.isqrt(count) // 2 + 1
    return max(middle - margin, 0), min(middle + margin, count - 1)


def _select_slopes(
    averages: Averages, slopes: Sequence[_Slope], ranks: Sequence[int], error: float
) -> list[Fraction]:
    """Return the exact slopes with ranks among some; an empty list if too many are nearly equal.

    `error` is the greatest error of the doubles. At 0 they are rounded correctly, which can make
    two slopes equal, but never inverts them.
    """
    found = []
    for rank in ranks:
        value = slopes[rank][0]
        start = bisect_left(slopes, value - 2 * error, key=itemgetter(0))
        end = bisect_right(slopes, value + 2 * error, key=itemgetter(0))
        if error and end - start > _MAX_EQUAL:
            return []
        equal = sorted(_compute_slope(averages, i, j) for _, i, j in slopes[start:end])
        found.append(equal[rank - start])
    return found


def _compute_slope(averages: Averages, first: int, second: int) -> Fraction:
    positions, totals, counts = averages
    rise = totals[second] * counts[first] - totals[first] * counts[second]
    run = positions[second] - positions[first]
    return Fraction(rise, counts[first] * counts[second] * run)


def _count_inversions(heights: Sequence[float]) -> int:
    """Return the number of pairs of which the second is lower."""
    found = seen = 0
    # Those that are lower have their bits in `seen`. Equal heights stay in their order.
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        found += (seen >> number).bit_count()
        seen |= 1 << number
    return found


def _count_equal(heights: Sequence[float]) -> int:
    """Return the number of pairs of equal heights."""
    return sum(math.comb(size, 2) for size in Counter(heights).values())
