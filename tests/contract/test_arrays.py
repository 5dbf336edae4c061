"""Sums, orders and quotients of arrays, compared with those of Python's integers."""

from fractions import Fraction
from itertools import pairwise
from statistics import median

import numpy as np
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

LARGEST = 2**53 - 1

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
