"""Build calendars of two levels, and find the days of a window in them."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import closing
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import DAY, Build, server
from snapshot.server_rows import build_server
from srvstat.contract.ranges import Window
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.format.calendar import (
    Block,
    Calendar,
    CalendarColumns,
    Entry,
    read_block,
    read_calendar,
    split_calendar,
)
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, ServerRow
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.read.verified_rows import VerifiedRows

KEY = 7
MAX_DAYS = 2_932_896
COUNTS = st.sampled_from([0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 200])
"""Numbers of days that fill blocks of 32, and the 32 to 63 days in the row of the server."""


@st.composite
def draw_days(draw: st.DrawFn) -> list[int]:
    """Draw days with short and long gaps."""
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    first = draw(st.sampled_from([-1, 20_000]))
    gaps = drawn.choices([1, 2, 40], [8, 2, 1], k=draw(COUNTS))
    return [first + gone for gone in accumulate(gaps)]


def build_digest(day: int) -> bytes:
    return day.to_bytes(16)


def split(days: Sequence[int]) -> tuple[CalendarColumns, list[tuple[Any, ...]]]:
    return split_calendar(KEY, days, b"".join(map(build_digest, days)))


def read_back(columns: CalendarColumns, rows: Sequence[tuple[Any, ...]]) -> list[Block]:
    """Read the blocks of a calendar from the row of its server and from its own rows."""
    calendar = read_calendar(build_server_row(columns))
    assert calendar.stored_blocks == len(rows)
    assert [calendar.get_digest(number) for number in range(len(rows))] == [
        digest_row("calendars", row) for row in rows
    ]
    return [*(read_block(*row[1:]) for row in rows), calendar.recent]


def build_server_row(columns: CalendarColumns) -> ServerRow:
    return build_server(KEY, **columns._asdict())


@given(days=draw_days())
def test_a_calendar_is_read_back(days: list[int]) -> None:
    blocks = read_back(*split(days))

    entries = [block.get_entry(at) for block in blocks for at in range(len(block.days))]
    assert entries == [Entry(day, build_digest(day)) for day in days]


@pytest.mark.parametrize(
    ("days", "sizes"),
    [
        (1, [1]),
        (32, [32]),
        (63, [63]),
        (64, [32, 32]),
        (95, [32, 63]),
        (96, [32, 32, 32]),
        (128, [32, 32, 32, 32]),
    ],
)
def test_the_last_days_are_in_the_row_of_the_server_and_earlier_ones_in_blocks(
    days: int, sizes: list[int]
) -> None:
    columns, rows = split(range(days))

    assert [len(block.days) for block in read_back(columns, rows)] == sizes
    assert [row[0] for row in rows] == [
        KEY * BLOCKS_PER_SERVER + at for at in range(len(sizes) - 1)
    ]


def test_the_edges_are_those_of_the_blocks_then_of_the_last_days() -> None:
    columns, _ = split([*range(0, 64, 2), *range(100, 132), *range(300, 340)])

    assert columns.blocks == bytes([0, 62, 100, 131])
    assert list(read_calendar(build_server_row(columns)).edges) == [0, 62, 100, 131, 300, 339]


def test_a_server_without_days_has_an_empty_calendar() -> None:
    columns, rows = split([])

    assert (columns, rows) == (CalendarColumns(b"", b"", b"", b""), [])
    calendar = read_calendar(build_server_row(columns))
    assert calendar == Calendar([], b"", Block((), b""))
    assert calendar.find_block(0) is None
    assert calendar.find_last_block(MAX_DAYS) is None


@pytest.mark.parametrize(("days", "digests"), [(b"\1\2\3", bytes(32)), (b"", bytes(16))])
def test_unequal_numbers_of_days_and_digests_are_refused(days: bytes, digests: bytes) -> None:
    with pytest.raises(ValueError, match="width"):
        read_block(days, digests)
    with pytest.raises(ValueError, match="width"):
        read_calendar(build_server_row(CalendarColumns(days, digests, b"", b"")))
    with pytest.raises(ValueError, match="width"):
        read_calendar(build_server_row(CalendarColumns(b"", b"", days, digests)))


@given(data=st.data(), days=draw_days())
def test_the_blocks_of_the_next_and_the_previous_day_are_found(
    data: st.DataObject, days: list[int]
) -> None:
    mark = data.draw(st.sampled_from([0, 20_500, MAX_DAYS, *days]))
    asked = max(mark + data.draw(st.integers(-2, 2)), 0)
    columns, rows = split(days)
    blocks = read_back(columns, rows)
    calendar = read_calendar(build_server_row(columns))

    first, last = calendar.find_block(asked), calendar.find_last_block(asked)

    later = [day for day in days if day >= asked]
    earlier = [day for day in days if day <= asked]
    assert (first is None, last is None) == (not later, not earlier)
    if first is not None:
        assert blocks[first].find_first(asked) == Entry(later[0], build_digest(later[0]))
    if last is not None:
        assert blocks[last].find_last(asked) == Entry(earlier[-1], build_digest(earlier[-1]))


SPREAD = [*range(10, 42), *range(50, 114, 2), *range(200, 232), *range(500, 540)]
"""Days of three blocks, the second with gaps between all days, and of the server's row."""


def test_the_days_at_the_ends_of_each_span_are_found(build: Build) -> None:
    path = build([server("a"), server("b")], [("a", day * DAY, day) for day in SPREAD])
    marks = sorted(
        {day + step for day in (0, 9, *SPREAD[::9], 41, 112, 231, 539) for step in (0, 1)}
    )

    with closing(open_connection(path)) as connection:
        rows = VerifiedRows(connection)
        a, b = rows.find_servers([("id", "a"), ("id", "b")])
        assert a is not None
        assert b is not None
        for first in marks:
            for last in [mark for mark in marks if mark >= first]:
                of_a, of_b = rows.find_ends([a, b], Window(first * DAY, last * DAY + 1))
                within = SPREAD[bisect_left(SPREAD, first) : bisect_right(SPREAD, last)]
                assert not of_b
                if within:
                    ends = [within[0], within[-1]] if last < SPREAD[-1] else [within[0]]
                    assert [entry.day for entry in of_a] == ends
                days = [day.server_day % 10_000_000 for day in rows.iter_days(a, first, last)]
                assert days == within


def test_a_window_in_a_gap_between_days_has_no_observations(build: Build) -> None:
    path = build([server("a")], [("a", day * DAY, day) for day in SPREAD])
    gaps = [(51, 51), (42, 49), (113, 199), (232, 499), (0, 9), (540, 9_999)]

    with closing(open_file(path)) as snapshot:
        (row,) = snapshot.find_servers([ServerReference(identifier="a", by="id")])
        assert row is not None
        for first, last in gaps:
            window = Window(first * DAY, last * DAY + DAY - 1)
            assert snapshot.compute_statistics([row], window)[0].observations == 0
            assert snapshot.read_observations(row, window) == ([], [])


@pytest.mark.parametrize(("days", "digests"), [(b"\1", b""), (b"\1" * 33, bytes(16 * 33))])
def test_too_many_days_or_days_without_digests_are_refused(days: bytes, digests: bytes) -> None:
    with pytest.raises(ValueError, match="days"):
        read_block(days, digests)
