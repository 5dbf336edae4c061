"""The documents stats and top, recomputed from random rows by the definitions alone."""

import json
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.naive_steps import compute_change_naively
from analysis.random_rows import Rows, rows
from analysis.raw_figures import compute_figures
from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from srvstat.analysis.selection import FilterOptions
from srvstat.analysis.statistics import FigureOptions, compute_stats, rank_servers
from srvstat.contract.errors import UsageError
from srvstat.contract.time import BEFORE_ALL, Window, format_instant, parse_instant
from srvstat.documents.analysis import TopKey
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file

HOUR = DAY // 24
KEYS: tuple[TopKey, ...] = get_args(TopKey)


class Case(NamedTuple):
    """The rows of each server, and the questions."""

    servers: dict[str, Rows]
    windows: list[tuple[int | None, int]]
    quantiles: list[str]
    above: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    servers = {name: draw(rows()) for name in ("a", "b", "c")}
    servers["tie"] = servers["b"]  # ranked by id
    servers["d"] = {AS_OF: 1}  # so that the snapshot is as of AS_OF
    edges = [
        AS_OF,
        AS_OF - HOUR,
        AS_OF - DAY,
        *(at for of_one in servers.values() for at in of_one),
    ]
    ends = st.sampled_from(edges)
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
    found = json.loads(
        compute_stats(snapshot, snapshot.iter_servers(), to_window(window), figures).to_json()
    )
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
    plain = json.loads(
        compute_stats(snapshot, snapshot.iter_servers(), to_window(window)).to_json()
    )["servers"]
    # A window of all observations has no change.
    for key in (key for key in KEYS if key != "change" or window[0] is not None):
        top = json.loads(
            rank_servers(snapshot, FilterOptions(), to_window(window), key, limit=3).to_json()
        )
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


def to_window(window: tuple[int | None, int]) -> Window:
    return Window(BEFORE_ALL if window[0] is None else window[0], window[1])


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
    window = Window(AS_OF - DAY, AS_OF)
    with closing(open_file(path)) as snapshot:
        stats = compute_stats(snapshot, snapshot.iter_servers(), window)
        top = rank_servers(snapshot, FilterOptions(), window, "peak", limit=150)

    assert [one.server_id for one in stats.servers] == names
    assert [one.peak_players for one in stats.servers] == list(range(250))
    assert [one.server_id for one in top.servers] == names[:99:-1]
    assert top.server_count == 250


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.01",
        "-0.5",
        "5e-1",
        "1/2",
        "+0.5",
        " 0.5",
        "0.5_0",
        "\u0660.\u0665",
        "nan",
        "0.1234567890123456",
        ".",
    ],
)
def test_a_quantile_is_a_decimal_from_0_to_1(text: str) -> None:
    with pytest.raises(UsageError, match="is not a decimal from 0 to 1"):
        FigureOptions([text])
