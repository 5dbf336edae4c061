"""Compute with many integers at once."""

import sys
from array import array
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.instants import LATEST
from srvstat.snapshot.format.lanes import is_ascending_array, pack_offsets, subtract_neighbors

DISTANCES = st.sampled_from([1, 300_000, 2**32]) | st.integers(1, 2**31)


@given(
    first=st.integers(0, LATEST),
    some=st.lists(DISTANCES, min_size=1, max_size=9),
    times=st.sampled_from([0, 1, 100, 256, 1_000]),
)
def test_neighbors_are_subtracted(first: int, some: list[int], times: int) -> None:
    numbers = array("q", accumulate(some * times, initial=first))

    assert [*subtract_neighbors(numbers)] == [after - before for before, after in pairwise(numbers)]


@given(
    first=st.integers(0, LATEST),
    some=st.lists(DISTANCES, min_size=1, max_size=9),
    times=st.sampled_from([0, 1, 100, 256, 1_000]),
    data=st.data(),
)
def test_arrays_are_ascending_until_one_number_is_not(
    first: int, some: list[int], times: int, data: st.DataObject
) -> None:
    numbers = array("q", accumulate(some * times, initial=first))
    assert is_ascending_array(numbers)

    at = data.draw(st.integers(0, len(numbers) - 1))
    numbers[at:at] = array("q", [data.draw(st.integers(numbers[at], LATEST * 2))])

    assert not is_ascending_array(numbers)


@given(start=st.integers(0, LATEST), offsets=st.lists(st.integers(0, 2**32 - 1), max_size=300))
def test_offsets_take_four_bytes(start: int, offsets: list[int]) -> None:
    numbers = array("q", [start + offset for offset in offsets])

    packed = b"".join(offset.to_bytes(4, "little") for offset in offsets)
    assert pack_offsets(numbers, start) == packed


def test_the_other_byte_order_gives_the_same_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    # Numbers with swapped bytes are those of a machine with the other byte order.
    monkeypatch.setattr(sys, "byteorder", {"little": "big", "big": "little"}[sys.byteorder])
    numbers = array("q", [5, 6, 300_006, 2**40])
    numbers.byteswap()
    before = numbers[:]

    differences = subtract_neighbors(numbers)

    assert numbers == before
    differences.byteswap()
    assert [*differences] == [1, 300_000, 2**40 - 300_006]
