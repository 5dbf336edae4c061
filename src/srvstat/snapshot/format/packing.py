"""Pack whole numbers into bytes: little-endian, unsigned, all of one width."""

import sys
from array import array
from collections.abc import Sequence

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The type code of Python's arrays for each width in bytes."""


def pack(numbers: Sequence[int], greatest: int) -> bytes:
    """Pack numbers from 0 to `greatest`, below 2^64, in the fewest bytes each: 1, 2, 4 or 8.

    Raises OverflowError for a number that needs more bytes.
    """
    width = next(width for width in _CODES if greatest >> 8 * width == 0)
    return _swap_big_endian(array(_CODES[width], numbers)).tobytes()


def unpack(packed: bytes, count: int) -> "array[int]":
    """Return the `count` numbers, at least one, that `pack` packed.

    Raises ValueError for bytes that are not `count` numbers of one width.
    """
    width = len(packed) // count if count > 0 else 0
    if width * count != len(packed) or width not in _CODES:
        raise ValueError("not numbers of one width")
    return _swap_big_endian(array(_CODES[width], packed))


def _swap_big_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
