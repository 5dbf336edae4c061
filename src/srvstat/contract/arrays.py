"""Compute exact statistics of arrays of 64-bit integers.

No API response needs this module, because importing numpy takes longer than computing a response.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]
Exact: TypeAlias = npt.NDArray[Any]
"""Numbers that numpy represents exactly, or otherwise Python integers and floats."""

# After a large array is freed, glibc keeps freed memory for later arrays. Without this, glibc
# returns the memory to the system, and page faults take half of the time.
np.empty(1 << 24, np.uint8)


def sum_exactly(values: Numbers) -> int:
    """Return the exact sum of numbers from 0 to 2^53 - 1, even beyond 63 bits."""
    if int(values.max(initial=0)) * len(values) < 1 << 63:
        return int(values.sum())
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def dot_exactly(factors: Numbers, others: Numbers) -> int:
    """Return the exact dot product of two arrays, even beyond 63 bits."""
    largest, other = (int(np.abs(one).max(initial=0)) for one in (factors, others))
    if largest * other * len(factors) < 1 << 63:
        return int(np.dot(factors, others))
    return sum(map(int.__mul__, factors.tolist(), others.tolist()))


def sum_groups(values: Numbers, edges: Numbers) -> Exact:
    """Return the sum of each group; the first group is `values[edges[0] : edges[1]]`, and so on.

    The values are from 0 to 2^53 - 1. If a sum exceeds 63 bits, the sums are Python integers.
    """
    counts = np.diff(edges)
    if int(counts.max(initial=0)) * int(values.max(initial=0)) >= 1 << 63:
        high, low = sum_groups(values >> 32, edges), sum_groups(values & 0xFFFFFFFF, edges)
        combined: Exact = (high.astype(object) << 32) + low
        return combined
    sums = np.zeros(len(counts), np.int64)
    if counts.any():  # numpy's reduceat needs groups that are not empty
        sums[counts > 0] = np.add.reduceat(values[: edges[-1]], edges[:-1][counts > 0])
    return sums


def sort_groups(groups: Numbers, values: Numbers) -> Numbers:
    """Return nonnegative values in the order of their groups, and sorted within each group."""
    bits = int(values.max(initial=0)).bit_length()
    all_bits = int(groups.max(initial=0)).bit_length() + bits
    if all_bits > 63:  # noqa: PLR2004 - bits without the sign
        return values[np.lexsort((values, groups))]
    keys = groups << bits | values
    # Sorting 32-bit numbers is faster.
    ranked = np.sort(keys.astype(np.int32) if all_bits < 32 else keys)  # noqa: PLR2004 - likewise
    return ranked.astype(np.int64) & ((1 << bits) - 1)


def compute_double_medians(
    groups: Numbers, values: Numbers, weights: Numbers | None = None, number: int = 0
) -> tuple[Numbers, Numbers]:
    """Return the total weight and twice the median of each group.

    - `groups`: the group of each value, from 0.
    - `values`: from 0 to 2^53 - 1.
    - `weights`: how often each value counts. Default: once.
    - `number`: the minimum number of groups.

    The median of a group without weight is undefined.
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
    """Return the exact products of nonnegative numbers."""
    if int(factors.max(initial=0)) * int(others.max(initial=0)) < 1 << 63:
        return factors * others
    products: Exact = factors.astype(object) * others
    return products


def divide(numerators: Exact, denominators: Exact) -> Exact:
    """Return the doubles nearest to the quotients. The denominators must be less than 2^53."""
    if numerators.max(initial=0) >= 1 << 53:
        numerators = numerators.astype(
            object
        )  # Python rounds quotients of integers of any size correctly
    quotients: Exact = numerators / denominators
    return quotients


def find_ranks(values: Numbers, lower: int, upper: int) -> tuple[int, int]:
    """Return the values at two adjacent or equal 0-based ranks."""
    # numpy selects one rank several times as fast as two.
    ranked = np.partition(values, upper)
    greater: int = ranked[upper].item()
    return ranked[:upper].max().item() if lower < upper else greater, greater
