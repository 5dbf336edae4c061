"""Check the ranges and their windows (D1, D2)."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.time import DAYS, Range, Window, find_window

LENGTHS: list[tuple[Range, int]] = [
    ("24h", 86_400_000),
    ("7d", 604_800_000),
    ("30d", 2_592_000_000),
    ("90d", 7_776_000_000),
    ("1y", 31_536_000_000),
]


def test_the_ranges_and_their_order_are_those_of_the_specification() -> None:
    assert get_args(Range) == ("24h", "7d", "30d", "90d", "1y")
    assert list(DAYS.items()) == [("24h", 1), ("7d", 7), ("30d", 30), ("90d", 90), ("1y", 365)]


@pytest.mark.parametrize(("range", "length"), LENGTHS)
@given(as_of=st.integers(0, 253_402_300_799_999))
def test_a_window_ends_at_as_of_and_has_the_length_of_the_range(
    range: Range, length: int, as_of: int
) -> None:
    assert find_window(range, as_of) == Window(start=as_of - length, end=as_of)
