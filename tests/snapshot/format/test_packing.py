"""Unpack whole numbers of 1, 2, 4 or 8 little-endian bytes each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.snapshot.rows import ForgedRowError, choose_width, find_width, pack_sum, unpack

WIDTHS = (1, 2, 4, 8)
BORDERS = [2**bits + step for bits in (8, 16, 32, 53, 63) for step in (-1, 0, 1)]
NUMBERS = st.sampled_from([0, 1, *BORDERS, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=50))
def test_numbers_of_the_least_width_are_unpacked(numbers: list[int]) -> None:
    width = choose_width(max(numbers))
    packed = b"".join(number.to_bytes(width, "little") for number in numbers)

    assert width == next(width for width in WIDTHS if max(numbers) < 256**width)
    assert find_width(packed, len(numbers)) == width
    assert [*unpack(packed, width)] == numbers


@given(packed=st.binary(max_size=40), count=st.integers(-3, 45))
def test_numbers_have_one_width_or_are_refused(packed: bytes, count: int) -> None:
    fitting = [width for width in WIDTHS if count > 0 and width * count == len(packed)]

    if fitting:
        assert [find_width(packed, count)] == fitting
    else:
        with pytest.raises(ForgedRowError, match=r"^not numbers of one width$"):
            find_width(packed, count)


@given(total=NUMBERS | st.integers(0, 2**80))
def test_a_sum_takes_the_fewest_bytes(total: int) -> None:
    packed = pack_sum(total)

    assert int.from_bytes(packed, "little") == total
    assert not packed.endswith(b"\0")
