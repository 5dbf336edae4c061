"""Doubles whose text form is hard to format; the same in every run."""

import hashlib
import math
import struct
from collections.abc import Iterator


def list_doubles() -> list[float]:
    """Return random doubles, quotients as in statistics, and neighbors of powers of ten."""
    return [
        *_draw_doubles(60_000),
        *_draw_quotients(30_000),
        *_draw_integers_and_halves(15_000),
        *_list_doubles_near_powers_of_ten(),
    ]


def _draw_integers(seed: str, count: int) -> tuple[int, ...]:
    """Return pseudorandom integers of 64 bits, the same in every run."""
    stream = hashlib.shake_256(seed.encode()).digest(8 * count)
    return struct.unpack(f">{count}Q", stream)


def _draw_doubles(count: int) -> Iterator[float]:
    for bits in _draw_integers("bits", count):
        (double,) = struct.unpack(">d", bits.to_bytes(8))
        if math.isfinite(double):
            yield double


def _draw_quotients(count: int) -> Iterator[float]:
    tops = _draw_integers("tops", count)
    bottoms = _draw_integers("bottoms", count)
    for top, bottom in zip(tops, bottoms, strict=True):
        yield (top >> top % 64) / (1 + bottom % 100_000)
        yield -100 * (top % 5000) / (1 + bottom % 5000)


def _draw_integers_and_halves(count: int) -> Iterator[float]:
    for number in _draw_integers("integers", count):
        integer = (number >> 11) >> number % 53
        yield float(integer)
        yield -(integer >> 1) / 2
    yield from (float(2**53 - step) for step in range(-10, 10))


def _list_doubles_near_powers_of_ten() -> Iterator[float]:
    for exponent in range(-324, 309):
        around = float(f"1e{exponent}")
        below = above = around
        for _ in range(8 if abs(exponent) > 25 else 100):
            below, above = math.nextafter(below, 0), math.nextafter(above, math.inf)
            yield from (below, -above)
        yield around
    for numerator in range(1, 2000):
        for denominator in (10**6, 10**7, 10**8, 3 * 10**7):
            yield numerator / denominator
        yield numerator * 1e18
        yield numerator * 1e19
