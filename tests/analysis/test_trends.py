"""The exact median slope, beside the median of all slopes as fractions."""

import random
import time
from fractions import Fraction
from itertools import combinations
from statistics import median
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srvstat.analysis.growth import compute_median_slope

MOST = 2**53 - 1


class Average(NamedTuple):
    """The average of `total` in `observations` observations at a position."""

    position: int
    total: int
    observations: int


def compute_trend(points: list[Average]) -> Fraction:
    columns = [[getattr(point, name) for point in points] for name in Average._fields]
    fits = all(abs(number) < 1 << 63 for number in columns[1])
    return compute_median_slope(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64 if fits else object),
        np.array(columns[2], np.int64),
    )


@st.composite
def averages(draw: st.DrawFn) -> list[Average]:
    """Draw averages: few or many, of equal, small or huge counts, at even and uneven distances."""
    size = draw(st.sampled_from([2, 3, 4, 15, 16, 17, 40]))
    totals = st.integers(0, draw(st.sampled_from([0, 1, 3, 900, MOST])))
    counts = st.integers(1, draw(st.sampled_from([1, 3, 288, MOST])))
    distances = st.sampled_from(draw(st.sampled_from([[1], [1, 2, 3], [7, 10**9, 3**30]])))
    trend = draw(st.sampled_from([0, 1, 50]))
    position = draw(st.integers(0, MOST))
    found = []
    for number in range(size):
        position += draw(distances)
        count = draw(counts)
        found.append(Average(position, draw(totals) + trend * number * count, count))
    return found


def draw_line() -> list[Average]:
    """Draw averages of which some are so close to a line that doubles can't order their slopes."""
    drawn, count = random.Random(1), 10**15  # noqa: S311 - cases are drawn from a seed
    on_line = drawn.sample(range(40), 12)
    totals = [
        (at + 7) * count + drawn.randrange(-3, 4)
        if at in on_line
        else (at + drawn.choice([2, 4, 10, 12])) * count + drawn.randrange(count)
        for at in range(40)
    ]
    return [Average(at, total, count) for at, total in enumerate(totals)]


def compute_naively(points: list[Average]) -> Fraction:
    return median(
        (Fraction(b.total, b.observations) - Fraction(a.total, a.observations))
        / (b.position - a.position)
        for a, b in combinations(points, 2)
    )


@example([Average(at, at % 4, 1) for at in range(40)])
@example([Average(at, MOST + at % 3, MOST) for at in range(40)])  # doubles see equal averages
@example(draw_line())
@example([Average(at, at * at % 97, 1 + at % 2) for at in range(1, 80)])
@given(averages())
def test_the_trend_is_the_median_of_all_slopes(points: list[Average]) -> None:
    assert compute_trend(points) == compute_naively(points)


HALF = [MOST, *(7919 * at % 1000 for at in range(1, 1_500))]


@pytest.mark.parametrize(
    ("averages", "slope"),
    [
        ([0] * 3_000, 0),
        ([*range(3_000)], 1),
        ([0, 9] * 1_500, 0),
        ([*HALF, *reversed(HALF)], 0),  # two averages of which doubles are imprecise
    ],
)
def test_millions_of_slopes_are_ranked_in_seconds(averages: list[int], slope: int) -> None:
    started = time.process_time()
    counts = [280 + at * at % 97 for at in range(3_000)]

    found = compute_trend(
        [Average(at, mean * counts[at], counts[at]) for at, mean in enumerate(averages)]
    )

    assert found == slope
    assert time.process_time() - started < 5
