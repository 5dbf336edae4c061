"""Pack whole numbers into the fewest of 1, 2, 4 or 8 little-endian bytes each."""

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.snapshot.format.packing import extend_packed, pack, pack_values, unpack

BYTES = [
    ([0], 0, "00"),
    ([1, 0, 255], 255, "0100ff"),
    ([1, 0, 255], 256, "01000000ff00"),
    ([256], 256, "0001"),
    ([258, 65_535], 65_535, "0201ffff"),
    ([258, 65_535], 65_536, "02010000ffff0000"),
    ([65_536], 65_536, "00000100"),
    ([16_909_060, 2**32 - 1], 2**32 - 1, "04030201ffffffff"),
    ([16_909_060], 2**32, "0403020100000000"),
    ([2**32], 2**32, "0000000001000000"),
    ([2**53 - 1, 1], 2**53 - 1, "ffffffffffff1f000100000000000000"),
    ([2**64 - 1], 2**64 - 1, "ffffffffffffffff"),
]


@pytest.mark.parametrize(("numbers", "greatest", "packed"), BYTES)
def test_numbers_are_packed_in_the_width_of_the_greatest(
    numbers: list[int], greatest: int, packed: str
) -> None:
    assert pack(numbers, greatest).hex() == packed
    assert list(unpack(bytes.fromhex(packed), len(numbers))) == numbers


def test_big_endian_machines_swap_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the other byte order patched in, packing gives big-endian bytes on any machine, and
    # unpacking reads them back.
    monkeypatch.setattr(sys, "byteorder", {"little": "big", "big": "little"}[sys.byteorder])

    assert pack([258, 1], 65_535) == b"\1\2\0\1"
    assert list(unpack(b"\1\2\0\1", 2)) == [258, 1]


@st.composite
def numbers_with_a_bound(draw: st.DrawFn) -> tuple[list[int], int]:
    borders = [2**bits + step for bits in (8, 16, 32, 53, 63) for step in (-1, 0, 1)]
    greatest = draw(st.sampled_from([0, 1, *borders, 2**64 - 1]) | st.integers(0, 2**64 - 1))
    below = st.integers(0, greatest) | st.sampled_from([0, greatest])
    return draw(st.lists(below, min_size=1, max_size=50)), greatest


@given(case=numbers_with_a_bound())
def test_packed_numbers_take_the_fewest_bytes_and_are_unpacked(case: tuple[list[int], int]) -> None:
    numbers, greatest = case

    packed = pack(numbers, greatest)

    width = next(width for width in (1, 2, 4, 8) if greatest < 256**width)
    assert packed == b"".join(number.to_bytes(width, "little") for number in numbers)
    assert list(unpack(packed, len(numbers))) == numbers


BORDERS = st.sampled_from([0, 255, 256, 511, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**64 - 1])


@given(first=st.lists(BORDERS, min_size=1), later=st.lists(BORDERS, min_size=1))
def test_packed_numbers_are_extended(first: list[int], later: list[int]) -> None:
    extended = extend_packed(pack(first, max(first)), len(first), later)

    assert extended == pack(first + later, max(first + later))


@pytest.mark.parametrize(
    ("numbers", "greatest"), [([256], 255), ([0, 65_536], 65_535), ([2**32], 2**32 - 1), ([-1], 9)]
)
def test_a_number_above_the_bound_is_never_truncated(numbers: Sequence[int], greatest: int) -> None:
    with pytest.raises(OverflowError):
        pack(numbers, greatest)


@given(packed=st.binary(max_size=40), count=st.integers(-3, 45))
def test_unpacking_returns_the_requested_count_or_fails(packed: bytes, count: int) -> None:
    fits = [width for width in (1, 2, 4, 8) if count > 0 and width * count == len(packed)]

    if fits:
        assert unpack(packed, count).itemsize == fits[0]
        assert pack(unpack(packed, count), 256 ** fits[0] - 1) == packed
    else:
        with pytest.raises(ValueError, match=r"^not numbers of one width$"):
            unpack(packed, count)


def test_values_that_need_more_than_eight_bytes_are_refused() -> None:
    assert pack_values([2**64 - 1]) == b"\xff" * 8
    with pytest.raises(OverflowError, match=r"^a number that needs more bytes$"):
        pack_values([1, 2**64])
