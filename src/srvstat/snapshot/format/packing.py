"""Pack whole numbers into bytes: little-endian, unsigned, all of one width."""

import sys
from array import array
from collections.abc import Sequence
from operator import sub

from srvstat.snapshot.format.rows import ForgedRowError

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The type code of Python's arrays for each width in bytes."""


def pack(numbers: Sequence[int], greatest: int) -> bytes:
    """Pack numbers from 0 to `greatest`, below 2^64, in the fewest bytes each: 1, 2, 4 or 8.

    Raises OverflowError for a number that needs more bytes.
    """
    width = next(width for width in _CODES if greatest >> 8 * width == 0)
    return _swap_big_endian(array(_CODES[width], numbers)).tobytes()


def pack_values(numbers: Sequence[int]) -> bytes:
    """Pack numbers, at least one, below 2^64 as `pack` does with the greatest of them."""
    # Trying takes less time than finding the greatest.
    for code in _CODES.values():
        try:
            packed = array(code, numbers)
        except OverflowError:
            continue
        return _swap_big_endian(packed).tobytes()
    raise OverflowError("a number that needs more bytes")


def pack_offsets(numbers: Sequence[int], start: int) -> bytes:
    """Pack how much each number exceeds `start`, in 4 bytes each."""
    return _swap_big_endian(array("I", [number - start for number in numbers])).tobytes()


def subtract_neighbors(numbers: "array[int]") -> "array[int]":
    """Return how much each number exceeds the one before."""
    return array("q", map(sub, numbers[1:], numbers))


def unpack(packed: bytes, count: int) -> "array[int]":
    """Return the `count` numbers, at least one, that `pack` packed."""
    return _swap_big_endian(array(_CODES[_find_width(len(packed), count)], packed))


def _find_width(length: int, count: int) -> int:
    """Return the width of each of `count` numbers in a number of bytes."""
    width = length // count if count > 0 else 0
    if width * count != length or width not in _CODES:
        raise ForgedRowError("not numbers of one width")
    return width


def extend_packed(packed: bytes, count: int, numbers: Sequence[int]) -> bytes:
    """Return what `pack` returns for `count` packed numbers, at least one, and further ones."""
    width, greatest = _find_width(len(packed), count), max(numbers)
    if greatest >> 8 * width == 0:
        return packed + pack(numbers, (1 << 8 * width) - 1)
    return pack([*unpack(packed, count), *numbers], greatest)


_WIDE = 16
"""The width in bytes of sums that do not fit in 8; no sum needs more."""


def pack_sums(sums: Sequence[int]) -> bytes:
    """Pack sums below 2^128 in the fewest bytes each: 1, 2, 4, 8 or 16."""
    greatest = max(sums)
    if greatest >> 64 == 0:
        return pack(sums, greatest)
    return b"".join(total.to_bytes(_WIDE, "little") for total in sums)


def unpack_sums(packed: bytes, count: int) -> Sequence[int]:
    """Return the `count` sums, at least one, that `pack_sums` packed."""
    if count < 1 or len(packed) != count * _WIDE:
        return unpack(packed, count)
    starts = range(0, len(packed), _WIDE)
    return [int.from_bytes(packed[start : start + _WIDE], "little") for start in starts]


def _swap_big_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
