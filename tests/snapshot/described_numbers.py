"""Encode numbers as schema.sql describes it, independently of our code."""

from collections.abc import Sequence


def describe_sum(players: Sequence[int]) -> bytes:
    """Return the sum of players as bytes."""
    total = sum(players)
    return total.to_bytes(-(-total.bit_length() // 8), "little")


def pack_numbers(numbers: Sequence[int], greatest: int | None = None) -> bytes:
    """Return packed numbers in the fewest bytes that hold the greatest."""
    if not numbers:
        return b""
    most = max(numbers) if greatest is None else greatest
    width = next(width for width in (1, 2, 4, 8) if most < 256**width)
    return b"".join(number.to_bytes(width, "little") for number in numbers)
