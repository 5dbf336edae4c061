"""Statistics compared with exact fractions (D5, D6)."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.arrays import (
    compute_double_medians,
    divide,
    dot_exactly,
    sort_groups,
    sum_exactly,
    sum_groups,
)
from srvstat.contract.stats import (
    Growth,
    Statistics,
    compute_histogram_statistics,
    compute_ranking_statistics,
    compute_statistics,
    find_middle_ranks,
    find_quantile_ranks,
)

LARGEST = 2**53 - 1
UNKNOWN = Growth(None, None)

CASES = [
    ([], Statistics(0, None, None, None, None, UNKNOWN)),
    ([0], Statistics(1, 0.0, 0.0, 0, 0, UNKNOWN)),
    ([LARGEST], Statistics(1, 9007199254740991.0, 9007199254740991.0, LARGEST, LARGEST, UNKNOWN)),
    ([0, 0], Statistics(2, 0.0, 0.0, 0, 0, Growth(0, None))),
    ([0, 5], Statistics(2, 2.5, 2.5, 5, 0, Growth(5, None))),
    ([5, 0], Statistics(2, 2.5, 2.5, 5, 0, Growth(-5, -100.0))),
    ([9, 1, 4], Statistics(3, 4.666666666666667, 4.0, 9, 1, Growth(-5, -55.55555555555556))),
    ([4, 1, 9, 2], Statistics(4, 4.0, 3.0, 9, 1, Growth(-2, -50.0))),
]


@pytest.mark.parametrize(("values", "expected"), CASES)
def test_statistics_of_known_values(values: list[int], expected: Statistics) -> None:
    assert compute_statistics(values) == expected


def test_a_mean_is_the_nearest_double_of_any_sum() -> None:
    assert compute_statistics([LARGEST, 1, 1]).mean == 3002399751580331.0
    assert compute_statistics([LARGEST, LARGEST - 1]).mean == 9007199254740990.0
    for histogram, mean in (
        ({LARGEST: 10**9}, 9007199254740991.0),
        ({0: 199_999, 1: 1}, 0.000005),
        ({0: 9_999_999, 1: 1}, 1e-7),
        ({0: 10**12 - 3, 1: 3}, 3e-12),
    ):
        assert compute_histogram_statistics(histogram, UNKNOWN).mean == mean


def test_the_median_is_exact_for_counts_beyond_exact_doubles() -> None:
    # As a double, the middle rank would round to the rank of the next value.
    at_0, at_1 = 2**54 + 4, 2**54 + 3

    assert compute_histogram_statistics({0: at_0, 1: at_1}, UNKNOWN).median == 0.0
    assert find_middle_ranks(at_0 + at_1) == (2**54 + 3, 2**54 + 3)


def is_nearest(double: float | None, exact: Fraction) -> bool:
    """Return whether no other double is nearer; of two at the same distance the even one counts."""
    if double is None:
        return False
    distance = abs(Fraction(double) - exact)
    for neighbor in (math.nextafter(double, -math.inf), math.nextafter(double, math.inf)):
        farther = abs(Fraction(neighbor) - exact)
        if distance > farther or (distance == farther and is_odd(double)):
            return False
    return double == float(exact)


def is_odd(double: float) -> bool:
    """Return whether the last bit of a double's significand is set."""
    return (Fraction(double) / Fraction(math.ulp(double))) % 2 == 1


player_counts = st.one_of(
    st.integers(0, 3),
    st.integers(0, 2000),
    st.integers(LARGEST - 3, LARGEST),
    st.integers(0, LARGEST),
)
observed = st.lists(player_counts, min_size=1, max_size=40)


@given(values=st.lists(player_counts, min_size=2, max_size=40))
def test_growth_depends_on_the_first_and_the_last_value_only(values: list[int]) -> None:
    first, last = values[0], values[-1]

    growth = compute_statistics(values).growth

    assert growth.players == last - first
    if first == 0:
        assert growth.percentage is None
    else:
        assert is_nearest(growth.percentage, Fraction(100 * (last - first), first))


@given(counts=st.lists(st.tuples(player_counts, st.integers(1, 10**9)), min_size=1, max_size=20))
def test_statistics_do_not_depend_on_the_order_of_a_histogram(
    counts: list[tuple[int, int]],
) -> None:
    histogram = dict(counts)
    found = compute_histogram_statistics(histogram, UNKNOWN)

    assert found == compute_histogram_statistics(dict(sorted(histogram.items())), UNKNOWN)
    assert found.observations == sum(histogram.values())
    total = sum(value * count for value, count in histogram.items())
    assert is_nearest(found.mean, Fraction(total, found.observations))
    assert is_nearest(found.median, find_median(histogram))
    assert (found.peak, found.lowest) == (max(histogram), min(histogram))
    assert found.growth == UNKNOWN


def find_median(histogram: dict[int, int]) -> Fraction:
    """Return the median by its definition: as many observations are below as above."""
    size = sum(histogram.values())
    values = sorted(histogram)
    for value in values:
        below = sum(histogram[other] for other in values if other < value)
        above = sum(histogram[other] for other in values if other > value)
        if 2 * below < size and 2 * above < size:
            return Fraction(value)
    return next(
        Fraction(lower + upper, 2)
        for lower, upper in pairwise(values)
        if 2 * sum(histogram[other] for other in values if other <= lower) == size
    )


@given(values=observed)
def test_values_their_histogram_and_their_ranks_have_the_same_statistics(values: list[int]) -> None:
    found = compute_statistics(values)

    assert compute_histogram_statistics(Counter(values), found.growth) == found
    find_value = sorted(values).__getitem__
    assert found == compute_ranking_statistics(len(values), sum(values), find_value, found.growth)


def test_an_empty_histogram_has_the_given_growth() -> None:
    nothing = Statistics(0, None, None, None, None, UNKNOWN)

    assert compute_histogram_statistics({}, UNKNOWN) == nothing
    assert compute_ranking_statistics(0, 0, [].__getitem__, UNKNOWN) == nothing


@given(values=observed, quantile=st.fractions(0, 1, max_denominator=40))
def test_a_quantile_has_its_share_of_values_at_or_below_it_and_at_or_above_it(
    values: list[int], quantile: Fraction
) -> None:
    values.sort()
    count = len(values)

    lower, upper = find_quantile_ranks(count, quantile)

    # All values with this property are at the ranks from lower to upper, and they are their mean.
    fitting = [
        rank
        for rank in range(count)
        if rank + 1 >= quantile * count and count - rank >= (1 - quantile) * count
    ]
    assert [*range(lower, upper + 1)] == fitting


values = st.integers(0, 3) | st.integers(LARGEST - 3, LARGEST)


@given(st.lists(st.lists(values, max_size=3), min_size=1), st.sampled_from([1, 700]))
def test_groups_are_summed_divided_and_sorted_exactly(groups: list[list[int]], times: int) -> None:
    groups = [group * times for group in groups]
    flat = np.array([value for group in groups for value in group], np.int64)
    counts = np.array(list(map(len, groups)), np.int64)
    edges = np.append(0, counts.cumsum())

    sums = sum_groups(flat, edges)

    assert sums.tolist() == list(map(sum, groups))
    assert sum_exactly(flat) == sum(map(sum, groups))
    for sign in (1, -1):
        assert dot_exactly(sign * flat, flat) == sign * sum(
            value * value for value in flat.tolist()
        )
    filled = counts > 0
    assert divide(sums[filled], counts[filled]).tolist() == [
        sum(group) / len(group) for group in groups if group
    ]
    found, doubles = compute_double_medians(np.repeat(np.arange(len(groups)), counts), flat)
    assert found.tolist() == [len(group) for group in groups[: len(found)]]
    for group, double in zip(groups, doubles.tolist(), strict=False):
        if group:
            assert double == 2 * median(map(Fraction, group))
    for shift in (0, 2**40):  # groups and values of more than 63 bits
        numbers = np.repeat(np.arange(len(groups)) + shift, counts)
        ranked = sort_groups(numbers[::-1], flat[::-1]).tolist()
        assert [ranked[start:end] for start, end in pairwise(edges)] == list(map(sorted, groups))
