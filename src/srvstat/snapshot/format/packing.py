"""Unpack whole numbers from bytes: little-endian, unsigned, all of one width."""

import sys
from array import array
from collections.abc import Sequence

from srvstat.snapshot.format.rows import (
    BLOCK_SIZE,
    DIGEST_BYTES,
    END_WIDTH,
    ForgedRowError,
    ServerRow,
)

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The type code of Python's arrays for each width in bytes."""


_WIDTHS = (1, 1, 2, 4, 4, 8, 8, 8, 8)
"""The width of a number by the bytes that it needs."""


def choose_width(greatest: int) -> int:
    """Return the least width in bytes of numbers from 0 to `greatest`, which is below 2^64."""
    return _WIDTHS[(greatest.bit_length() + 7) // 8]


def find_width(packed: bytes, count: int) -> int:
    """Return the width of each of `count` packed numbers, at least one.

    Raises ForgedRowError.
    """
    width = len(packed) // count if count > 0 else 0
    if width * count != len(packed) or width not in CODES:
        raise ForgedRowError("not numbers of one width")
    return width


def unpack(packed: bytes, width: int) -> Sequence[int]:
    """Return packed numbers without copying them.

    Raises TypeError if the bytes are not a multiple of the width.
    """
    numbers: memoryview[int] = memoryview(packed).cast(CODES[width])  # type: ignore[call-overload]
    if sys.byteorder == "big":  # pragma: no cover - needs such a machine
        swapped = array(CODES[width], numbers)
        swapped.byteswap()
        return swapped
    return numbers


def pack_sum(total: int) -> bytes:
    """Return a sum, which may exceed SQLite's integers, in the fewest little-endian bytes."""
    return total.to_bytes((total.bit_length() + 7) // 8, "little")


def read_block_ends(server: ServerRow) -> Sequence[int]:
    """Return the last instant of each block of a server.

    Raises ForgedRowError for other numbers of blocks than its observations need.
    """
    blocks = -(-server.observation_count // BLOCK_SIZE)
    if (
        len(server.block_ends) != blocks * END_WIDTH
        or len(server.block_digests) != blocks * DIGEST_BYTES
    ):
        raise ForgedRowError("not the blocks of the observations")
    return unpack(server.block_ends, END_WIDTH)


def read_block_peaks(server: ServerRow) -> Sequence[int]:
    """Return the most players of each block of a server, at least one.

    Raises ForgedRowError.
    """
    return unpack(server.block_peaks, find_width(server.block_peaks, len(read_block_ends(server))))
