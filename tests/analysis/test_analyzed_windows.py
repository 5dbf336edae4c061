"""The windows of the analyzer: ranges, dates in time zones, bundles."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.definitions import EPOCH, read_clock
from conftest import AS_OF, DAY, build_in, server
from srvstat.analysis.questions import (
    LongWindowQuery,
    WindowQuery,
    choose_window,
    find_previous,
    list_step_edges,
    parse_step,
)
from srvstat.contract.errors import UsageError
from srvstat.contract.time import LATEST
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.operations.answers import NotInBundleError
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.write.copies import write_bundle

MIDNIGHT = AS_OF - DAY // 2
"""The start of the UTC day of AS_OF."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Open a snapshot as of AS_OF with observations around a midnight."""
    rows = [("a", at, 1) for at in (MIDNIGHT - DAY - 1, MIDNIGHT - DAY, AS_OF)]
    path = build_in(tmp_path_factory.mktemp("windows"), [server("a")], rows)
    with closing(open_file(str(path))) as file:
        yield file


@pytest.fixture(scope="module")
def bundle(snapshot: SnapshotFile) -> Iterator[SnapshotFile]:
    """Open a bundle that begins with an observation at a midnight."""
    write_bundle(f"{snapshot.path}.bundle", snapshot, [*snapshot.iter_servers()], "24h")
    with closing(open_file(f"{snapshot.path}.bundle")) as file:
        yield file


@pytest.mark.parametrize(
    ("query", "window"),
    [
        (WindowQuery(), Window(AS_OF - 30 * DAY, AS_OF)),
        (LongWindowQuery(), Window(AS_OF - 90 * DAY, AS_OF)),
        (WindowQuery("36h"), Window(AS_OF - 36 * DAY // 24, AS_OF)),
        (WindowQuery("2w"), Window(AS_OF - 14 * DAY, AS_OF)),
        (WindowQuery("6mo"), Window(AS_OF - 180 * DAY, AS_OF)),
        (WindowQuery("100y"), Window(AS_OF - 36_500 * DAY, AS_OF)),
        (WindowQuery("1y", end="1000"), Window(1000 - 365 * DAY, 1000)),
        (WindowQuery("all", end="0"), Window(BEFORE_ALL, 0)),
        (WindowQuery(start="5", end="6"), Window(5, 6)),
        (WindowQuery(end="9999-12-31"), Window(LATEST + 1 - 31 * DAY, LATEST + 1 - DAY)),
    ],
)
def test_a_window_is_a_range_or_its_ends(
    query: WindowQuery, window: Window, snapshot: SnapshotFile
) -> None:
    assert choose_window(snapshot, query) == window


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("UTC", "2026-02-01", "2026-02-01T00:00Z"),
        ("Europe/Berlin", "2026-02-01", "2026-01-31T23:00Z"),
        ("Europe/Berlin", "2025-07-01", "2025-06-30T22:00Z"),
        ("Asia/Kathmandu", "2026-02-01", "2026-01-31T18:15Z"),
        # Midnight does not exist on the first day, and occurs twice on the second.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00Z"),
        ("America/Havana", "2025-11-02", "2025-11-02T04:00Z"),
    ],
)
def test_a_date_is_the_first_midnight_in_the_zone(
    zone: str, day: str, instant: str, snapshot: SnapshotFile
) -> None:
    start = choose_window(snapshot, WindowQuery(start=day, tz=zone)).start

    assert datetime.fromtimestamp(start / 1000, UTC) == datetime.fromisoformat(instant)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *(
            (WindowQuery(length), r"range: .* is not a number of .* \(at most 100y\), and not all$")
            for length in ("", "0d", "7D", "7m", "36501d", "101y", "07d", " 7d", "7d\n", "ALL")
        ),
        *(
            (WindowQuery(tz=zone), "tz: no time zone ")
            for zone in ("", "Mars", "Europe", "../UTC", "/etc/passwd", "a\0b", "\udcff", "x" * 999)
        ),
        *(
            (WindowQuery(start=day, tz=zone), "start: no such day in the years 1970 to 9999, ")
            for day, zone in (
                ("2026-02-30", "UTC"),
                ("0000-01-01", "UTC"),
                ("0001-01-01", "Europe/Berlin"),
                ("1969-12-31", "UTC"),
                ("1970-01-01", "Europe/Berlin"),
            )
        ),
        (WindowQuery(start="2026-02-01T12:00"), "start: no time zone: .*; a date is YYYY-MM-DD"),
        (WindowQuery(start="tomorrow"), "start: not Unix milliseconds and not .*"),
        (WindowQuery(end=str(LATEST + 1)), "end: outside the years 1970 to 9999"),
        (WindowQuery("7d", start="5"), "range and start can't be combined"),
        (WindowQuery(start="6", end="6"), "start: must be earlier than end$"),
        (WindowQuery(start=str(AS_OF)), "start: must be earlier than the end of the snapshot, "),
    ],
)
def test_an_invalid_window_is_refused(
    query: WindowQuery, message: str, snapshot: SnapshotFile
) -> None:
    with pytest.raises(UsageError, match=message):
        choose_window(snapshot, query)


def test_all_of_a_bundle_begins_with_its_first_instant(bundle: SnapshotFile) -> None:
    window = choose_window(bundle, WindowQuery("all"))

    assert window == (MIDNIGHT - DAY - 1, AS_OF)
    (a,) = bundle.iter_servers()
    assert read_observations(bundle, a, window).instants[0] == bundle.covered_from == MIDNIGHT - DAY


@pytest.mark.parametrize(
    "query",
    [
        WindowQuery(start=str(MIDNIGHT - DAY - 1)),
        WindowQuery("all", end=str(MIDNIGHT - DAY - 1)),
        WindowQuery("1h", end=str(MIDNIGHT - DAY)),
        # Begins at BEFORE_ALL.
        WindowQuery("24h", end=str(DAY - 1)),
    ],
)
def test_a_bundle_refuses_a_window_that_begins_earlier(
    query: WindowQuery, bundle: SnapshotFile
) -> None:
    with pytest.raises(NotInBundleError, match="a bundle that covers"):
        choose_window(bundle, query)


def test_the_window_before_has_the_same_length() -> None:
    assert find_previous(Window(7, 10)) == (4, 7)
    with pytest.raises(UsageError, match=r"^start: more than 36500d before end; use"):
        find_previous(Window(0, LATEST))


TICK = 300_000
"""The steps below begin at multiples of five minutes."""

CHANGES = [
    ("Europe/Berlin", "2025-03-30"),
    ("Europe/Berlin", "2025-10-26"),
    ("America/New_York", "2025-11-02"),
    ("America/Havana", "2025-11-02"),  # 01:00 becomes 00:00
    ("America/Santiago", "2025-09-07"),  # there is no 00:00
    ("America/Noronha", "2000-10-08"),  # and back after a week
    ("Asia/Beirut", "2024-10-27"),  # 24:00 becomes 23:00
    ("Australia/Lord_Howe", "2026-04-05"),  # half an hour back
    ("Australia/Lord_Howe", "2025-10-05"),
    ("Pacific/Apia", "2011-12-31"),  # there is no 2011-12-30
    ("Africa/Casablanca", "2026-02-15"),
    ("Asia/Kathmandu", "1986-01-01"),
    ("UTC", "2026-01-01"),
]
STEPS = ["10m", "20m", "1h", "90m", "6h", "24h", "day", "2d", "week", "month"]


class Case(NamedTuple):
    """A window near a change of a zone's clock."""

    zone: ZoneInfo
    window: Window
    step: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    zone, day = draw(st.sampled_from(CHANGES))
    middle = read_instant(f"{day}T00:00Z")
    start = middle - draw(st.integers(1, 4 * DAY // TICK)) * TICK
    end = middle + draw(st.integers(1, 4 * DAY // TICK)) * TICK
    odd = draw(st.sampled_from([0, 0, 1, TICK - 1]))
    return Case(ZoneInfo(zone), Window(start + odd, end), draw(st.sampled_from(STEPS)))


def read_instant(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def describe_step(clock: datetime, step: str) -> Any:
    """Return a value that grows from one step to the next."""
    if step == "week":
        return clock.isocalendar()[:2]
    if step == "month":
        return clock.year, clock.month
    days = clock.toordinal() - EPOCH.toordinal()
    if step == "2d":
        return days // 2
    number = re.sub(r"\D", "", step) or "24"
    minutes = int(number) * (1 if step.endswith("m") else 60)
    return days, (clock.hour * 60 + clock.minute) // minutes


def is_repeated_whole(clock: datetime, step: str) -> bool:
    """Check whether the clock shows a repeated time, in a repetition as long as the step."""
    repeated = (clock.replace(fold=0).utcoffset() or timedelta()) - (
        clock.utcoffset() or timedelta()
    )
    longest = {"10m": 10, "20m": 20, "1h": 60}.get(step, 61)
    return clock.fold == 1 and repeated >= timedelta(minutes=longest)


def build_case(zone: str, start: str, end: str, step: str) -> Case:
    return Case(ZoneInfo(zone), Window(read_instant(start), read_instant(end)), step)


@example(build_case("America/Noronha", "2000-10-06T00:00Z", "2000-10-17T00:00Z", "6h"))
@example(build_case("America/St_Johns", "2010-11-07T03:00Z", "2010-11-09T00:00Z", "day"))
@example(build_case("Europe/Berlin", "2025-10-25T00:00Z", "2025-10-27T00:00Z", "1h"))
@given(case=cases())
def test_steps_begin_where_the_clock_first_reaches_them(case: Case) -> None:
    zone, window, step = case
    highest = before = None
    edges = []
    for at in range(window.start // TICK * TICK - 2 * DAY, window.end, TICK):
        clock = read_clock(at, zone)
        now = describe_step(clock, step), clock.fold if is_repeated_whole(clock, step) else 0
        is_first = highest is None or now[0] > highest
        if (is_first or (now != before and now[1])) and at > window.start:
            edges.append(at)
        highest, before = now[0] if is_first else highest, now

    found = list_step_edges(*window, parse_step(step), zone).tolist()

    assert [at for at in found if window.start < at < window.end] == edges


@example(build_case("Europe/Berlin", "2025-10-26T22:30Z", "2025-10-27T00:00Z", "day"))  # 25 hours
@given(case=cases())
def test_the_first_and_the_last_step_are_whole(case: Case) -> None:
    zone, (first, last), name = case
    step = parse_step(name)

    edges = list_step_edges(first, last, step, zone).tolist()

    assert edges[0] <= first < edges[1]
    assert edges[-2] <= last < edges[-1]
    for start, end in pairwise(edges):
        assert list_step_edges(start, start, step, zone).tolist() == [start, end]
        assert list_step_edges(end - 1, end - 1, step, zone).tolist() == [start, end]


@pytest.mark.parametrize(
    "text", ["7h", "0m", "1441m", "48h", "1w", "", "1H", "day ", "\u0661h", "99999d"]
)
def test_a_step_that_does_not_divide_a_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^step: .* 15m, 1h, 6h, 7d, day, week or month$"):
        parse_step(text)


def test_a_million_steps_are_too_many() -> None:
    window = Window(0, read_instant("9999-12-31T23:59:59Z"))

    with pytest.raises(UsageError, match=r"use a longer step or a shorter window$"):
        list_step_edges(*window, parse_step("day"), ZoneInfo("UTC"))


def test_the_last_days_that_have_a_text_form_have_steps() -> None:
    window = Window(read_instant("9999-12-30T00:00Z"), read_instant("9999-12-31T23:59:59Z"))

    zone = ZoneInfo("Pacific/Kiritimati")
    days = list_step_edges(*window, parse_step("day"), zone)
    months = list_step_edges(*window, parse_step("month"), zone)

    # The clock there is 14 hours ahead.
    assert [at - window.start for at in days[:3]] == [
        -14 * DAY // 24,
        10 * DAY // 24,
        34 * DAY // 24,
    ]
    january = read_instant("9999-12-31T10:00Z")
    assert months.tolist() == [january - 31 * DAY, january, january + 31 * DAY]
