"""Statistics, ranks and trends of servers, recomputed from random rows by the definitions."""

import json
import random
import tempfile
from contextlib import closing
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.definitions import HOUR, Rows, compute_change_naively, compute_figures, series
from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from srvstat.analysis.growth import compute_median_slope
from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.contract.errors import UsageError
from srvstat.contract.time import format_instant, parse_instant
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.analysis import TopKey
from srvstat.snapshot.read.file import SnapshotFile, open_file

KEYS: tuple[TopKey, ...] = get_args(TopKey)


class Case(NamedTuple):
    """The rows of each server, and the questions."""

    servers: dict[str, Rows]
    windows: list[tuple[int | None, int]]
    quantiles: list[str]
    above: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    servers = {name: draw(series()) for name in ("a", "b", "c")}
    servers["tie"] = servers["b"]  # ranked by id
    servers["d"] = {AS_OF: 1}  # so that the snapshot is as of AS_OF
    observed = [at for of_one in servers.values() for at in of_one]
    ends = st.sampled_from([AS_OF, AS_OF - HOUR, AS_OF - DAY, *observed])
    lengths = st.sampled_from([1, HOUR, DAY, 2 * DAY + 1])
    windows = [
        (None if length is None else end - length, end)
        for end, length in draw(
            st.lists(st.tuples(ends, lengths | st.none()), min_size=2, max_size=2)
        )
    ]
    quantiles = st.sampled_from(["0", "0.5", "1", ".95", "0.999", "0.333333333333333"])
    above = draw(st.none() | st.integers(0, 3))
    return Case(servers, windows, draw(st.lists(quantiles, max_size=3)), above)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=cases())
def test_every_figure_and_every_rank_follows_from_the_rows(case: Case) -> None:
    records = [
        server(name, players={"current": number % 3}) for number, name in enumerate(case.servers)
    ]
    observed = [(name, at, n) for name, of_one in case.servers.items() for at, n in of_one.items()]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), records, observed))
        with closing(open_file(path)) as snapshot:
            for window in case.windows:
                stats = check_stats(snapshot, case, window)
                check_top(snapshot, window, stats)


def check_stats(snapshot: SnapshotFile, case: Case, window: tuple[int | None, int]) -> Any:
    start, end = window
    quantiles = [*case.quantiles] * 2
    figures = FigureOptions(quantiles, case.above, None if start is None else "previous")
    found = json.loads(compute_stats(ask(snapshot, window), figures).to_json())
    exact = list(dict.fromkeys(map(Fraction, case.quantiles)))
    for shown in found["servers"]:
        of_one = sorted(case.servers[shown["serverId"]].items())
        expected = compute_figures(of_one, window, exact, case.above)
        assert shown == shown | expected
        change = compute_change_naively(of_one, window)
        assert (shown["change"], shown["previousCoverage"]) == change
        seen = [at for at, _ in of_one]
        assert shown["lastObservedAt"] == (format_instant(max(seen)) if seen else None)
        if start is None:
            assert shown["previous"] is None
        else:
            before = (2 * start - end, start)
            assert shown["previous"] == compute_figures(of_one, before, exact, case.above)
    assert [shown["serverId"] for shown in found["servers"]] == sorted(case.servers)
    return found["servers"]


def check_top(snapshot: SnapshotFile, window: tuple[int | None, int], stats: Any) -> None:
    plain = json.loads(compute_stats(ask(snapshot, window)).to_json())["servers"]
    # A window of all observations has no change.
    for key in (key for key in KEYS if key != "change" or window[0] is not None):
        top = json.loads(rank_servers(ask(snapshot, window), key, limit=3).to_json())
        values = {one["serverId"]: get_figure(one, key, snapshot.as_of) for one in stats}
        ranked = sorted(
            plain,
            key=lambda one: (
                values[one["serverId"]] is None,
                -(values[one["serverId"]] or 0),
                one["serverId"],
            ),
        )
        assert (top["by"], top["serverCount"]) == (key, len(stats))
        assert top["servers"] == ranked[:3]


def ask(snapshot: SnapshotFile, window: tuple[int | None, int]) -> Question:
    """Return the question about all servers in a window."""
    start, end = window
    servers = MatchingServers(snapshot, FilterOptions())
    return Question(snapshot, servers, Window(BEFORE_ALL if start is None else start, end))


def get_figure(shown: Any, key: TopKey, as_of: int) -> float | None:
    last = shown["lastObservedAt"]
    if key == "current" and (last is None or as_of - parse_instant(last) > DAY):
        return None
    if key in {"growth", "change"}:
        players: float | None = (shown[key] or {"players": None})["players"]
        return players
    value: float | None = shown["sampleCount" if key == "samples" else f"{key}Players"]
    return value


def test_many_servers_are_read_in_batches(build: Build) -> None:
    names = [f"s{number:03}" for number in range(250)]
    path = build([server(name) for name in names], [(name, AS_OF, int(name[1:])) for name in names])
    with closing(open_file(path)) as snapshot:
        question = ask(snapshot, (AS_OF - DAY, AS_OF))
        stats, top = compute_stats(question), rank_servers(question, "peak", limit=150)

    assert [one.server_id for one in stats.servers] == names
    assert [one.peak_players for one in stats.servers] == list(range(250))
    assert [one.server_id for one in top.servers] == names[:99:-1]
    assert top.server_count == 250


NOT_QUANTILES = "1.01 -0.5 5e-1 1/2 +0.5 0.5_0 \u0660.\u0665 nan 0.1234567890123456 ."


@pytest.mark.parametrize("text", ["", " 0.5", *NOT_QUANTILES.split(" ")])
def test_a_quantile_is_a_decimal_from_0_to_1(text: str) -> None:
    with pytest.raises(UsageError, match="is not a decimal from 0 to 1"):
        FigureOptions([text])


LARGEST = 2**53 - 1


class Average(NamedTuple):
    """The average of `total` in `observations` observations at a position."""

    position: int
    total: int
    observations: int


def compute_trend(points: list[Average]) -> Fraction:
    columns = [[getattr(point, name) for point in points] for name in Average._fields]
    fits = all(abs(number) < 1 << 63 for number in columns[1])
    return compute_median_slope(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64 if fits else object),
        np.array(columns[2], np.int64),
    )


@st.composite
def averages(draw: st.DrawFn) -> list[Average]:
    """Draw averages: few or many, of equal, small or huge counts, at even and uneven distances."""
    size = draw(st.sampled_from([2, 3, 4, 15, 16, 17, 40]))
    totals = st.integers(0, draw(st.sampled_from([0, 1, 3, 900, LARGEST])))
    counts = st.integers(1, draw(st.sampled_from([1, 3, 288, LARGEST])))
    distances = st.sampled_from(draw(st.sampled_from([[1], [1, 2, 3], [7, 10**9, 3**30]])))
    trend = draw(st.sampled_from([0, 1, 50]))
    position = draw(st.integers(0, LARGEST))
    found = []
    for number in range(size):
        position += draw(distances)
        count = draw(counts)
        found.append(Average(position, draw(totals) + trend * number * count, count))
    return found


def draw_line() -> list[Average]:
    """Draw averages of which some are so close to a line that doubles can't order their slopes."""
    drawn, count = random.Random(1), 10**15  # noqa: S311 - cases are drawn from a seed
    on_line = drawn.sample(range(40), 12)
    totals = [
        (at + 7) * count + drawn.randrange(-3, 4)
        if at in on_line
        else (at + drawn.choice([2, 4, 10, 12])) * count + drawn.randrange(count)
        for at in range(40)
    ]
    return [Average(at, total, count) for at, total in enumerate(totals)]


def compute_naively(points: list[Average]) -> Fraction:
    return median(
        (Fraction(b.total, b.observations) - Fraction(a.total, a.observations))
        / (b.position - a.position)
        for a, b in combinations(points, 2)
    )


@example([Average(at, at % 4, 1) for at in range(40)])
@example([Average(at, LARGEST + at % 3, LARGEST) for at in range(40)])  # doubles see equal averages
@example(draw_line())
@example([Average(at, at * at % 97, 1 + at % 2) for at in range(1, 80)])
@given(averages())
def test_the_trend_is_the_median_of_all_slopes(points: list[Average]) -> None:
    assert compute_trend(points) == compute_naively(points)


HALF = [LARGEST, *(7919 * at % 1000 for at in range(1, 750))]


def test_millions_of_slopes_are_ranked() -> None:
    # Two averages of the third series are imprecise as doubles.
    for means, slope in (([*range(1_500)], 1), ([0, 9] * 750, 0), ([*HALF, *reversed(HALF)], 0)):
        counts = [280 + at * at % 97 for at in range(1_500)]
        points = [Average(at, mean * counts[at], counts[at]) for at, mean in enumerate(means)]
        assert compute_trend(points) == slope
