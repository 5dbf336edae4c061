"""Compute exact figures of arrays of 64-bit integers.

No contract answer imports this module: importing numpy takes longer than such an answer.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]


def sum_exactly(values: Numbers) -> int:
    """Return the sum of numbers from 0 to 2^53 - 1, which may exceed 63 bits."""
    if len(values) <= 1024:  # noqa: PLR2004 - so many are below 2^63
        return int(values.sum())
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def dot_exactly(factors: Numbers, others: Numbers) -> int:
    """Return the sum of products of numbers that are not negative, which may exceed 63 bits."""
    if not len(factors):
        return 0
    if int(factors.max()) * int(others.max()) * len(factors) < 1 << 63:
        return int(np.dot(factors, others))
    return sum(map(int.__mul__, factors.tolist(), others.tolist()))
