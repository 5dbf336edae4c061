"""Windows that are compared: usual hours, days around a date, last weeks, any two windows."""

import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
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
from srvstat.analysis.questions import ComparedQuery, choose_window
from srvstat.analysis.selection import Question
from srvstat.analysis.statistics import compute_stats, rank_servers
from srvstat.contract.errors import UsageError
from srvstat.documents.analysis import TopKey
from srvstat.snapshot.read.file import SnapshotFile, open_file

MOST = 40
"""The maximum of the record of one server; the other has none."""

CHANGES = (
    *(("Europe/Berlin", "2025-03-30"), ("Europe/Berlin", "2025-10-26")),
    *(("America/Havana", "2025-03-09"), ("America/Havana", "2025-11-02")),
)
"""Days on which clocks are set forward and back."""


def read_instant(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


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
    zone, day = draw(st.sampled_from(CHANGES))
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
        ({"versus": "2026-02-31..2026-03-01"}, "^versus: no such day"),
        ({"versus": "2026-02-02..2026-02-02"}, "^versus: the first time must be earlier"),
        ({"versus": "usual", "range": "8d"}, "^versus usual: the window is longer than a week"),
        ({"versus": "usual", "range": "all"}, "^range all: no earlier window"),
        ({"around": "2026-02-10", "range": "36h"}, "^range: around needs whole days"),
        ({"around": "2026-02-10", "range": "all"}, "^range: around needs whole days"),
        ({"around": "2026-02-10", "start": "2026-02-01"}, "^around can't be combined with start"),
        ({"around": "2026-02-10", "until_last_seen": True}, "^around can't be combined with"),
        ({"around": str(AS_OF)}, "^around: no such day"),
        ({"around": "2030-01-01"}, "^around: the snapshot has no whole day from 2030-01-01 on; it"),
        ({"around": "1970-01-02", "range": "7d"}, "^around: no such day in the years 1970 to"),
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

    top = cli("top", "--by=share", "--sum", "-n2", *week)

    assert top.json["total"] == total
    assert total["servers"] == sorted(one["serverId"] for one in every)
    for one in top.json["servers"]:
        assert one["share"] == pytest.approx(float(Fraction(one["averagePlayers"]) / whole), 1e-12)
    table = cli("top", "--by=share", "--sum", "-n2", *week, "--table").stdout.decode()
    assert re.findall(r"^(\d|  total) ", table, re.MULTILINE) == ["1", "2", "  total"]
    assert "share 45.2%" in table
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
