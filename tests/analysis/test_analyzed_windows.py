"""The windows of the analyzer: ranges, dates in time zones, bundles, and other windows."""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.definitions import (
    EPOCH,
    HOUR,
    Row,
    compare_naively,
    compute_coverage,
    compute_joined_figures,
    read_clock,
    select,
)
from conftest import AS_OF, DAY, Build, Cli, build_in, few_examples, server
from replay.explained import format_naively
from srvstat.analysis.questions import (
    ComparedQuery,
    LongWindowQuery,
    WindowQuery,
    choose_window,
    find_previous,
    list_step_edges,
    parse_marks,
    parse_step,
)
from srvstat.analysis.selection import Question
from srvstat.analysis.statistics import compute_stats, rank_servers
from srvstat.contract.errors import UsageError
from srvstat.contract.time import LATEST
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.analysis import TopKey
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
            (
                WindowQuery(length),
                r"range: .* is not a duration; use a value .*, up to 100y, or all$",
            )
            for length in ("", "0d", "7D", "7m", "36501d", "101y", "07d", " 7d", "7d\n", "ALL")
        ),
        *(
            (WindowQuery(tz=zone), "tz: no time zone ")
            for zone in ("", "Mars", "Europe", "../UTC", "/etc/passwd", "a\0b", "\udcff", "x" * 999)
        ),
        *(
            (
                WindowQuery(start=day, tz=zone),
                f'start: "{day}" is not a valid date from 1970 to 9999, ',
            )
            for day, zone in (
                ("2026-02-30", "UTC"),
                ("0000-01-01", "UTC"),
                ("0001-01-01", "Europe/Berlin"),
                ("1969-12-31", "UTC"),
                ("1970-01-01", "Europe/Berlin"),
            )
        ),
        (WindowQuery(start="2026-02-01T12:00"), "start: .*: no time zone; add Z or"),
        (WindowQuery(start="tomorrow"), "start: .tomorrow. is not a time; write .*"),
        (WindowQuery(end=str(LATEST + 1)), "end: .*: outside the years 1970 to 9999"),
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


@pytest.mark.parametrize(
    ("text", "instant", "label"),
    [
        ("2026-03-01=Update 5", "2026-02-28T23:00Z", "Update 5"),
        ("2026-07-01 18:30=a=b ", "2026-07-01T16:30Z", "a=b"),
        ("2026-07-01T18:30Z=UTC", "2026-07-01T18:30Z", "UTC"),
        ("2026-07-01T18:30:01-05:00=-5", "2026-07-01T23:30:01Z", "-5"),
        # This time does not exist on the first day, and occurs twice on the second.
        ("2026-03-29T02:30=skipped", "2026-03-29T01:00Z", "skipped"),
        ("2026-10-25T02:30=twice", "2026-10-25T00:30Z", "twice"),
    ],
)
def test_a_mark_is_a_time_on_the_clock_of_the_zone(text: str, instant: str, label: str) -> None:
    (mark,) = parse_marks([text], ZoneInfo("Europe/Berlin"))

    assert datetime.fromtimestamp(mark.at / 1000, UTC) == datetime.fromisoformat(instant)
    assert mark.label == label


def test_marks_are_in_order_of_time_and_an_invalid_one_is_refused() -> None:
    utc = ZoneInfo("UTC")

    assert [mark.label for mark in parse_marks(["2000=b", "1000=a"], utc)] == ["a", "b"]
    for text, problem in (
        ("2026-03-01", '"2026-03-01" has no label'),
        ("2026-03-01= ", '"2026-03-01= " has no label'),
        (" ", "empty"),
        ("soon=Update", '"soon" is not a time'),
        ("2026-02-30=Update", '"2026-02-30" is not a valid date'),
        ("2026-03-01=\udcff", "not valid UTF-8"),
    ):
        with pytest.raises(UsageError, match=f"^mark: {problem}"):
            parse_marks([text], utc)


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
    with pytest.raises(UsageError, match=r"^the window is longer than 100 years; use"):
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
    with pytest.raises(
        UsageError, match=r"^step: .* is not supported; .* \(7d\), or day, week, month$"
    ):
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


MOST = 40
"""The maximum of the record of one server; the other has none."""

CLOCKS = (
    *(("Europe/Berlin", "2025-03-30"), ("Europe/Berlin", "2025-10-26")),
    *(("America/Havana", "2025-03-09"), ("America/Havana", "2025-11-02")),
)
"""Days on which clocks are set forward and back."""


def find_instant(clock: datetime, zone: ZoneInfo) -> int:
    """Return the first instant at which a clock shows a time, or has skipped it."""
    first, late = (
        read_instant(clock.replace(tzinfo=zone, fold=fold).isoformat()) for fold in (0, 1)
    )
    if late < first:  # the clock skips this time, between both instants
        minute = late // 60_000
        while read_clock(minute * 60_000, zone).replace(tzinfo=None) < clock:
            minute += 1
        return minute * 60_000
    return first


def find_midnight(day: date, zone: ZoneInfo) -> int:
    return find_instant(datetime.combine(day, datetime.min.time()), zone)


class Fleet(NamedTuple):
    """The observations of two servers around a change of the clock."""

    zone: ZoneInfo
    middle: int
    servers: dict[str, list[Row]]

    @property
    def as_of(self) -> int:
        """The last observation."""
        return max(at for rows in self.servers.values() for at, _ in rows)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw polls of each few hours over ten weeks, with gaps, of servers with other ends."""
    zone, day = draw(st.sampled_from(CLOCKS))
    middle = read_instant(f"{day}T00:00Z")
    servers = {}
    for name in ("a", "b"):
        interval = draw(st.sampled_from([HOUR // 2, HOUR, 3 * HOUR]))
        start = middle - draw(st.integers(30, 45)) * DAY
        end = middle + draw(st.integers(1, 10 * 24)) * HOUR + draw(st.sampled_from([0, 1]))
        gaps = [(start + at * HOUR, length * HOUR) for at, length in draw(GAPS)]
        factor = draw(st.integers(1, 7))
        servers[name] = [
            (at, max(at // interval * factor % 61 - 20, 0))
            for at in range(start, end + 1, interval)
            if not any(gap <= at < gap + length for gap, length in gaps)
        ] or [(end, 1)]
    return Fleet(ZoneInfo(zone), middle, servers)


GAPS = st.lists(st.tuples(st.integers(0, 45 * 24), st.sampled_from([2, 30, 200])), max_size=4)


def list_usual(window: tuple[int, int], zone: ZoneInfo) -> list[tuple[int, int]]:
    """Return the same hours of the four weeks before, each instant at most once."""
    edges = [
        [
            find_instant(
                read_clock(at, zone).replace(tzinfo=None, fold=0) - timedelta(weeks=weeks), zone
            )
            for at in window
        ]
        for weeks in (4, 3, 2, 1)
    ]
    found: list[tuple[int, int]] = []
    free = edges[0][0]
    for start, end in edges:
        begin, until = max(start, free), min(end, window[0])
        free = max(free, until)
        found += [(begin, until)] if begin < until else []
    return found


class Asked(NamedTuple):
    """A query, and the windows that it is about for servers with these last observations."""

    query: ComparedQuery
    window: tuple[int, int]
    before: list[tuple[int, int]]


@st.composite
def questions_about(draw: st.DrawFn, fleet: Fleet) -> Asked:
    zone, key = fleet.zone, fleet.zone.key
    end = fleet.middle + draw(st.integers(-2 * 24, 7 * 24)) * HOUR // 2
    length = draw(st.sampled_from([1, 2, 5, 24, 36, 7 * 24]))
    window = end - length * HOUR, end
    asked = ComparedQuery(range=f"{length}h", end=str(end), tz=key)
    kind = draw(st.sampled_from(["previous", "usual", "dates", "around"]))
    if kind == "around":
        day = read_clock(fleet.middle, zone).date() + timedelta(draw(st.integers(-4, 0)))
        days = draw(st.integers(1, 9))
        edges = [find_midnight(day + timedelta(n), zone) - 1 for n in (-days, 0, days)]
        query = ComparedQuery(range=f"{days}d", tz=key, around=str(day))
        return Asked(query, (edges[1], edges[2]), [(edges[0], edges[1])])
    if kind == "dates":
        numbers = sorted(draw(st.sets(st.integers(-30, 4), min_size=2, max_size=2)))
        first, last = (read_clock(fleet.middle, zone).date() + timedelta(n) for n in numbers)
        query = replace(asked, versus=f"{first}..{last}")
        return Asked(query, window, [(find_midnight(first, zone), find_midnight(last, zone))])
    previous = [(2 * window[0] - end, window[0])]
    before = previous if kind == "previous" else list_usual(window, zone)
    return Asked(replace(asked, versus=kind), window, before)


def compute_change(
    rows: Sequence[Row], window: tuple[int, int], before: Sequence[tuple[int, int]]
) -> Any:
    windows = [window, *before]
    if min(compute_coverage(rows, one) for one in windows) < Fraction(8, 10):
        return None
    return compare_naively(
        [n for one in before for _, n in select(rows, one)], [n for _, n in select(rows, window)]
    )


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(fleet=fleets(), data=st.data())
def test_every_compared_window_follows_from_the_rows(fleet: Fleet, data: st.DataObject) -> None:
    records = [server("a", players={"current": 1, "max": MOST}), server("b")]
    rows = [(name, *row) for name, of_one in fleet.servers.items() for row in of_one]
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        path = str(build_in(Path(directory), records, rows))
        snapshot = stack.enter_context(closing(open_file(path)))
        for _ in range(5):
            check(snapshot, fleet, data.draw(questions_about(fleet)))


def check(snapshot: SnapshotFile, fleet: Fleet, asked: Asked) -> None:
    query, window, before = asked
    assert choose_window(snapshot, query) == window
    found = ask(snapshot, query)
    for shown in found["servers"]:
        kept, most = fleet.servers[shown["serverId"]], MOST if shown["serverId"] == "a" else 0
        own = compute_joined_figures(kept, [window], most=most)
        assert shown == shown | own
        assert shown["previous"] == compute_joined_figures(kept, before, most=most)
        assert shown["previousCoverage"] == shown["previous"]["coverage"]
        assert shown["change"] == compute_change(kept, window, before)
    assert found["previousWindow"] == {
        "from": format_naively(before[0][0]),
        "to": format_naively(before[-1][1]),
    }


def ask(snapshot: SnapshotFile, query: ComparedQuery) -> Any:
    servers = [*snapshot.iter_servers()]
    window = choose_window(snapshot, query)
    question = Question(snapshot, servers, window, ZoneInfo(query.tz))
    return json.loads(compute_stats(question, query=query).to_json())


RANKED: tuple[TopKey, ...] = (
    *("average", "median", "peak", "samples", "growth", "change", "occupancy"),
)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(fleet=fleets(), hours=st.sampled_from([1, 24, 7 * 24]), back=st.integers(0, 20 * 24))
def test_a_window_until_last_seen_ends_with_the_server(fleet: Fleet, hours: int, back: int) -> None:
    records = [server("a", players={"current": 1, "max": MOST}), server("b")]
    rows = [(name, *row) for name, of_one in fleet.servers.items() for row in of_one]
    end = fleet.as_of - back * HOUR
    query = ComparedQuery(range=f"{hours}h", end=str(end), until_last_seen=True)
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        path = str(build_in(Path(directory), records, rows))
        snapshot = stack.enter_context(closing(open_file(path)))
        found = ask(snapshot, query)
        question = Question(snapshot, [*snapshot.iter_servers()], choose_window(snapshot, query))
        ranks = {
            key: json.loads(rank_servers(question, key, 2, query=query).to_json())["servers"]
            for key in RANKED
        }
    for shown in found["servers"]:
        kept = fleet.servers[shown["serverId"]]
        last = max((at for at, _ in kept if at <= end), default=end)
        window = last - hours * HOUR, last
        most = MOST if shown["serverId"] == "a" else 0
        assert shown["window"] == dict(
            zip(("from", "to"), map(format_naively, window), strict=True)
        )
        assert shown == shown | compute_joined_figures(kept, [window], most=most)
        before = (2 * window[0] - last, window[0])
        assert shown["change"] == compute_change(kept, window, [before])
    for key, ranked in ranks.items():
        values = [read_value(one, key) for one in ranked]
        assert values == sorted(values, key=lambda one: (one is None, -(one or 0)))
        assert sorted(ranked, key=lambda one: str(one["serverId"])) == found["servers"]


def read_value(shown: Any, key: str) -> float | None:
    if key in {"growth", "change"}:
        players: float | None = (shown[key] or {"players": None})["players"]
        return players
    names = {"samples": "sampleCount", "occupancy": "occupancy"}
    value: float | None = shown[names.get(key, f"{key}Players")]
    return value


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"versus": "yesterday"}, r'^versus: "yesterday" is not previous, usual or two times such'),
        ({"versus": "2026-02-01.."}, "^versus: .* is not previous, usual or two times"),
        ({"versus": "2026-02-31..2026-03-01"}, '^versus: "2026-02-31" is not a valid date'),
        ({"versus": "2026-02-02..2026-02-02"}, "^versus: the first time must be earlier"),
        ({"versus": "usual", "range": "8d"}, "^versus usual: the window must be at most a week"),
        ({"versus": "usual", "range": "all"}, "^range all has no previous window"),
        ({"around": "2026-02-10", "range": "36h"}, "^range: must be whole days with around"),
        ({"around": "2026-02-10", "range": "all"}, "^range: must be whole days with around"),
        ({"around": "2026-02-10", "start": "2026-02-01"}, "^around can't be combined with start"),
        ({"around": "2026-02-10", "until_last_seen": True}, "^around can't be combined with"),
        ({"around": str(AS_OF)}, '^around: "[0-9]+" is not a valid date'),
        ({"around": "2030-01-01"}, "^around: the snapshot has no whole day from 2030-01-01 on; it"),
        (
            {"around": "1970-01-02", "range": "7d"},
            '^around: "1970-01-02" is not a valid date from 1970 to',
        ),
    ],
)
def test_windows_that_can_not_be_compared_are_refused(
    query: Any, message: str, build: Build
) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    with closing(open_file(path)) as snapshot, pytest.raises(UsageError, match=message):
        ask(snapshot, ComparedQuery(**query))


def test_days_around_a_date_are_those_that_the_snapshot_has(build: Build) -> None:
    path = build([server("a")], [("a", AS_OF - 50 * DAY, 1), ("a", AS_OF, 1)])
    midnight = AS_OF - DAY // 2
    with closing(open_file(path)) as snapshot:
        for days, expected in ((1, 1), (29, 29), (30, 30), (31, 30)):
            first = midnight - days * DAY
            day = read_clock(first, ZoneInfo("UTC")).date()
            window = choose_window(snapshot, ComparedQuery(around=str(day)))
            assert window == (first - 1, first + expected * DAY - 1)


def test_top_adds_the_total_of_all_servers_that_match(demo_snapshot: str, cli: Cli) -> None:
    week = ("--range=7d", "--versus=usual", "-s", demo_snapshot)
    total = cli("stats", "--all", "--sum", *week).json["servers"][0]
    every = cli("stats", "--all", *week).json["servers"]
    whole = sum(Fraction(one["averagePlayers"] or 0) for one in every)

    top = cli("top", "--rank-by=share", "--sum", "-n2", *week)

    assert top.json["total"] == total
    assert total["servers"] == sorted(one["serverId"] for one in every)
    for one in top.json["servers"]:
        assert one["share"] == pytest.approx(float(Fraction(one["averagePlayers"]) / whole), 1e-12)
    table = cli("top", "--rank-by=share", "--sum", "-n2", *week, "--table").stdout.decode()
    assert re.findall(r"^(\d|  total) +[a-z]", table, re.MULTILINE)[1:] == ["1", "2", "  total"]
    assert " 45.2% " in table
    last = cli("top", "--sum", "-n2", *week, "--format=csv").stdout.decode().splitlines()[-1]
    assert last.startswith(",")
    assert "total" not in cli("top", "nobody", "--sum", *week).json


def test_hours_that_two_usual_weeks_share_count_once(build: Build) -> None:
    zone, end = ZoneInfo("Europe/Berlin"), read_instant("2025-04-01T00:00Z")
    rows = [(at, at // HOUR % 7) for at in range(end - 60 * DAY, end + 1, HOUR)]
    path = build([server("a", players={"current": 1, "max": MOST})], [("a", *row) for row in rows])
    for days in (4, 5):
        window = end - (7 + days) * DAY + 4 * DAY, end - days * DAY + 4 * DAY
        query = ComparedQuery(range="7d", end=str(window[1]), tz=zone.key, versus="usual")
        with closing(open_file(path)) as snapshot:
            fleet = Fleet(zone, end, {"a": rows})
            check(snapshot, fleet, Asked(query, window, list_usual(window, zone)))
