"""The documents growth and peakHours, recomputed from rows by the definitions alone."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from statistics import mean, median
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.naive_steps import (
    compute_change_naively,
    compute_trend_naively,
    describe_average,
    describe_changes,
    split_naively,
)
from analysis.raw_figures import compute_mean
from analysis.raw_figures import select as select_rows
from conftest import DAY, Build, build_in, few_examples, server
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.pictures import compute_peak_hours
from srvstat.contract.time import BEFORE_ALL, Window
from srvstat.documents.analysis import GrowthStepName
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ["UTC", "Europe/Berlin", "America/Havana", "America/Santiago", "Asia/Kathmandu"]
STEPS: list[GrowthStepName] = ["day", "week", "month"]
START, END = 1_741_000_000_000, 1_764_000_000_000
"""2025-03-03 to 2025-11-24: clocks go forward and back."""

Row = tuple[int, int]


def draw_rows() -> dict[str, list[Row]]:
    """Draw rows of a server around changes of clocks, and of some with few."""
    drawn = random.Random(5)  # noqa: S311 - cases are drawn from a seed
    quarter = DAY // 96
    regular = [
        at
        for middle in (1_743_292_800_000, 1_757_203_200_000, 1_761_436_800_000)
        for at in range(middle - 3 * DAY, middle + 3 * DAY, quarter)
        if at % (5 * DAY) > DAY
    ]
    sparse = [drawn.randrange(START, END) for _ in range(40)]
    return {
        "regular": [(at, drawn.choice([0, 3, at // DAY % 50])) for at in regular],
        "sparse": sorted(dict.fromkeys(sparse, 2**53 - 1).items()),
        # Hours are listed for periods of 364 days.
        "edge": [(56 * 364 * DAY + at, n) for at, n in ((-1, 5), (0, 6), (1, 7), (2, 8), (3, 9))],
        # Doubles see equal averages at 12:00, 13:00 and 14:00.
        "close": [
            (1_750_248_000_000 + hour * DAY // 24 + at, 2**53 - (2 if at < less else 1))
            for hour, less, count in ((0, 1, 4), (1, 0, 4), (2, 3, 8))
            for at in range(count)
        ],
        "last": [(END, 4)],
        "silent": [],
    }


ROWS = draw_rows()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    observed = [(name, at, n) for name, rows in ROWS.items() for at, n in rows]
    path = build_in(tmp_path_factory.mktemp("local"), map(server, ROWS), observed)
    with closing(open_file(str(path))) as file:
        yield file


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Draw a window that may begin or end with a step, or at an observation."""
    instants = [at for at, _ in ROWS["regular"]]
    midnights = [1_743_202_800_000, 1_761_429_600_000, 1_757_217_600_000, 1_761_436_800_000]
    periods = [at for at, _ in ROWS["edge"]]
    edges = st.sampled_from([START, END, *midnights, *periods]) | st.sampled_from(instants)
    start, end = sorted({draw(edges), draw(edges), END + draw(st.integers(1, DAY))})[:2]
    return Window(draw(st.sampled_from([start, start, BEFORE_ALL])), end)


def select(name: str, window: Window) -> list[Row]:
    return [row for row in ROWS[name] if window.start < row[0] <= window.end]


def read_clock(at: int, zone: ZoneInfo) -> datetime:
    return (EPOCH + timedelta(milliseconds=at)).astimezone(zone)


def describe_growth(values: list[int]) -> dict[str, Any]:
    if len(values) < 2:
        return {"players": None, "percentage": None}
    players = values[-1] - values[0]
    return {
        "players": players,
        "percentage": float(Fraction(100 * players, values[0])) if values[0] else None,
    }


@pytest.mark.slow
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=windows(), zone=st.sampled_from(ZONES), step=st.sampled_from(STEPS))
def test_growth_follows_from_the_rows(
    snapshot: SnapshotFile, window: Window, zone: str, step: GrowthStepName
) -> None:
    servers = list(snapshot.iter_servers())
    found = json.loads(compute_growth(snapshot, servers, window, step, ZoneInfo(zone)).to_json())

    start = None if window.start == BEFORE_ALL else window.start
    first = min(at for rows in ROWS.values() for at, _ in rows)
    for shown in found["servers"]:
        rows, clock = ROWS[shown["serverId"]], ZoneInfo(zone)
        values = [n for _, n in select(shown["serverId"], window)]
        steps = split_naively(rows, (start, window.end), step, clock, first)
        days = split_naively(rows, (start, window.end), "day", clock, first)
        assert shown["steps"] == [
            {
                **one.describe(),
                **describe_average(one.values),
                "change": change,
                "growth": describe_growth(one.values),
            }
            for one, change in zip(steps, describe_changes(steps), strict=True)
        ]
        assert shown["playersPerWeek"] == compute_trend_naively(days)
        assert shown["growth"] == describe_growth(values)
        assert shown["sampleCount"] == len(values)
        assert shown["averagePlayers"] == compute_mean(values)
        change, coverage = compute_change_naively(rows, (start, window.end))
        assert (shown["change"], shown["previousCoverage"]) == (change, coverage)
        before = (
            None
            if start is None
            else describe_growth([n for _, n in select_rows(rows, (2 * start - window.end, start))])
        )
        assert shown["previousGrowth"] == before


@pytest.mark.slow
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(window=Window(ROWS["edge"][0][0], END), zone="UTC")
@example(window=Window(START, END), zone="UTC")
@given(window=windows(), zone=st.sampled_from(ZONES))
def test_peak_hours_follow_from_the_rows(snapshot: SnapshotFile, window: Window, zone: str) -> None:
    servers = list(snapshot.iter_servers())
    found = json.loads(compute_peak_hours(snapshot, servers, window, ZoneInfo(zone)).to_json())

    for shown in found["servers"]:
        cells: dict[tuple[int, int], list[Fraction]] = {
            (weekday, hour): [] for weekday in range(1, 8) for hour in range(24)
        }
        for at, n in select(shown["serverId"], window):
            clock = read_clock(at, ZoneInfo(zone))
            cells[clock.isoweekday(), clock.hour].append(Fraction(n))
        assert shown["cells"] == [
            {
                "weekday": weekday,
                "hour": hour,
                "sampleCount": len(values),
                "averagePlayers": float(mean(values)) if len(values) > 3 else None,
                "medianPlayers": float(median(values)) if len(values) > 3 else None,
            }
            for (weekday, hour), values in cells.items()
        ]
        averages = {place: mean(values) for place, values in cells.items() if len(values) > 3}
        for key, choose in (("busiest", max), ("quietest", min)):
            extreme = choose(averages.values(), default=None)
            places = [place for place, average in averages.items() if average == extreme]
            expected = {"weekday": places[0][0], "hour": places[0][1]} if places else None
            assert shown[key] == expected


def test_steps_that_begin_before_1970_are_not_observed_until_then(build: Build) -> None:
    hour = DAY // 24
    rows = [*(("a", at * hour, 5) for at in range(25)), ("b", 300 * DAY, 5), ("b", 301 * DAY, 5)]

    with closing(open_file(build(map(server, "abc"), rows))) as file:
        servers, window = list(file.iter_servers()), Window(BEFORE_ALL, 301 * DAY)
        found = compute_growth(file, servers, window, "month", ZoneInfo("America/Havana"))

    # December of 1969 ends five hours after it in UTC; `c` has no observation.
    assert [one.steps[0].observed_share for one in found.servers] == [5 / (31 * 24), 0, 0]
