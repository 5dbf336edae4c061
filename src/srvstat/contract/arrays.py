"""Compute exact figures of arrays of 64-bit integers.

No contract answer imports this module: importing numpy takes longer than such an answer.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Exact: TypeAlias = npt.NDArray[Any]
"""Numbers that numpy holds exactly, or else Python's integers and floats."""

# Once a large array was freed, glibc keeps freed memory for later arrays. Otherwise it returns it
# to the system, and page faults take half of the time.
np.empty(1 << 24, np.uint8)


def sum_exactly(values: Numbers) -> int:
    """Return the sum of numbers from 0 to 2^53 - 1, which may exceed 63 bits."""
    if int(values.max(initial=0)) * len(values) < 1 << 63:
        return int(values.sum())
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def dot_exactly(factors: Numbers, others: Numbers) -> int:
    """Return the sum of products of numbers, which may exceed 63 bits."""
    largest, other = (int(np.abs(one).max(initial=0)) for one in (factors, others))
    if largest * other * len(factors) < 1 << 63:
        return int(np.dot(factors, others))
    return sum(map(int.__mul__, factors.tolist(), others.tolist()))


def sum_groups(values: Numbers, edges: Numbers) -> Exact:
    """Return the sums of groups: the first has `values[edges[0] : edges[1]]`, and so on.

    The values are from 0 to 2^53 - 1. Sums that exceed 63 bits are Python integers.
    """
    counts = np.diff(edges)
    if int(counts.max(initial=0)) * int(values.max(initial=0)) >= 1 << 63:
        high, low = sum_groups(values >> 32, edges), sum_groups(values & 0xFFFFFFFF, edges)
        combined: Exact = (high.astype(object) << 32) + low
        return combined
    sums = np.zeros(len(counts), np.int64)
    if counts.any():  # numpy's groups are not empty
        sums[counts > 0] = np.add.reduceat(values[: edges[-1]], edges[:-1][counts > 0])
    return sums


def sort_groups(groups: Numbers, values: Numbers) -> Numbers:
    """Return values, which are not negative, in the order of their groups, each group sorted."""
    bits = int(values.max(initial=0)).bit_length()
    all_bits = int(groups.max(initial=0)).bit_length() + bits
    if all_bits > 63:  # noqa: PLR2004 - bits without the sign
        return values[np.lexsort((values, groups))]
    keys = groups << bits | values
    # Shorter numbers are sorted in less time.
    ranked = np.sort(keys.astype(np.int32) if all_bits < 32 else keys)  # noqa: PLR2004 - likewise
    return ranked.astype(np.int64) & ((1 << bits) - 1)


def compute_double_medians(
    groups: Numbers, values: Numbers, weights: Numbers | None = None, number: int = 0
) -> tuple[Numbers, Numbers]:
    """Return the weight of each group from 0 on, at least `number` of them, and twice the median.

    A value counts as often as it weighs, by default once. The values are from 0 to 2^53 - 1. The
    median of a group without weight is undefined.
    """
    counts = np.bincount(groups, minlength=number)
    if weights is None:
        ranked, places = sort_groups(groups, values), None
    else:
        order = np.lexsort((values, groups))
        ranked, places = values[order], weights[order].cumsum()
        counts = sum_groups(weights[order], np.append(0, counts.cumsum()))
    ends = counts.cumsum()
    lower, upper = ends - counts // 2 - 1, ends - counts + counts // 2
    if places is not None:
        lower, upper = (places.searchsorted(rank, "right") for rank in (lower, upper))
    if not len(ranked):
        return counts, np.zeros_like(counts)
    doubles: Numbers = ranked.take(lower, mode="clip") + ranked.take(upper, mode="clip")
    return counts, doubles


def multiply(factors: Numbers, others: Numbers) -> Exact:
    """Return exact products of numbers that are not negative."""
    if int(factors.max(initial=0)) * int(others.max(initial=0)) < 1 << 63:
        return factors * others
    products: Exact = factors.astype(object) * others
    return products


def divide(numerators: Exact, denominators: Exact) -> Exact:
    """Return the doubles nearest to quotients; the denominators are less than 2^53."""
    if numerators.max(initial=0) >= 1 << 53:
        numerators = numerators.astype(object)  # Python rounds quotients of any integers correctly
    quotients: Exact = numerators / denominators
    return quotients


def find_ranks(values: Numbers, lower: int, upper: int) -> tuple[int, int]:
    """Return the values with two ranks, which are adjacent or equal, and count from 0."""
    # For one rank, numpy is several times as fast as for two.
    ranked = np.partition(values, upper)
    greater: int = ranked[upper].item()
    return ranked[:upper].max().item() if lower < upper else greater, greater
