"""The analyzer's figures of real data, recomputed from the raw CSV with exact fractions."""

import json
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from statistics import mean
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from analysis.naive_steps import (
    compute_change_naively,
    compute_trend_naively,
    describe_average,
    describe_changes,
    split_naively,
)
from analysis.raw_figures import (
    Row,
    compute_durations,
    compute_figures,
    compute_growth,
    select,
)
from conftest import DAY, Cli
from explain.naive import explain_naively, format_naively

pytestmark = pytest.mark.slow

BERLIN = ZoneInfo("Europe/Berlin")
IDS = ["wb-usa", "wb-europe", "wb-asia-clan"]
DAYS = [("2025-10-20", "2025-11-03"), ("2026-03-25", "2026-04-01")]
"""Days of Berlin between which the clocks change, in either direction."""

Rows = dict[str, list[Row]]


@pytest.fixture
def ask_lines(
    war_brokers_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[Any]]:
    """Run a command on the snapshot of the rows, and return its lines of JSON."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)

    def run(*arguments: str) -> list[Any]:
        ran = cli(*arguments)
        assert (ran.exit_code, ran.stderr) == (0, "")
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return run


@pytest.fixture
def ask(ask_lines: Callable[..., list[Any]]) -> Callable[..., Any]:
    """Run a command on the snapshot of the rows, and return its document."""

    def run(*arguments: str) -> Any:
        (document,) = ask_lines(*arguments)
        return document

    return run


@pytest.fixture
def rows(war_brokers_rows: Rows) -> Rows:
    """Return all rows of each server."""
    return war_brokers_rows


def find_year(rows: Rows) -> tuple[int, int]:
    end = max(at for at, _ in rows[IDS[0]])
    return end - 365 * DAY, end


def find_midnights(days: tuple[str, str]) -> tuple[int, int]:
    start, end = (datetime.fromisoformat(day).replace(tzinfo=BERLIN) for day in days)
    return int(start.timestamp()) * 1000, int(end.timestamp()) * 1000


def build_options(days: tuple[str, str]) -> list[str]:
    return ["--from", days[0], "--to", days[1], "--tz", "Europe/Berlin"]


FIGURES = ["--quantile", "0", "--quantile", "0.95", "--quantile", "0.999", "--above", "20"]


@pytest.mark.parametrize("days", DAYS)
def test_stats_of_days_and_of_the_days_before_follow_from_the_raw_rows(
    rows: Rows, ask: Callable[..., Any], days: tuple[str, str]
) -> None:
    start, end = find_midnights(days)

    found = ask("stats", *IDS, *build_options(days), *FIGURES, "--versus", "previous")

    assert found["window"] == {"from": format_naively(start), "to": format_naively(end)}
    assert [server["serverId"] for server in found["servers"]] == IDS
    for name, server in zip(IDS, found["servers"], strict=True):
        assert server == server | compute_figures(rows[name], (start, end))
        assert server["previous"] == compute_figures(rows[name], (2 * start - end, start))


@pytest.mark.parametrize("range", ["1y", "all"])
def test_stats_of_long_ranges_follow_from_the_raw_rows(
    rows: Rows, ask: Callable[..., Any], range: str
) -> None:
    start, end = find_year(rows)

    (server,) = ask("stats", "wb-usa", "--range", range, *FIGURES)["servers"]

    window = (None if range == "all" else start, end)
    assert server == server | compute_figures(rows["wb-usa"], window)


def test_top_orders_all_servers_by_the_means_of_the_raw_rows(
    rows: Rows, ask: Callable[..., Any]
) -> None:
    _, end = find_year(rows)
    kept = {name: select(of_server, (end - 30 * DAY, end)) for name, of_server in rows.items()}
    means = {name: mean(Fraction(row[1]) for row in some) for name, some in kept.items()}
    names = sorted(means, key=lambda name: (-means[name], name))

    servers = ask("top", "--range", "30d", "-n", "31", *FIGURES)["servers"]

    assert [server["serverId"] for server in servers] == names
    for server in servers[:5]:
        name = server["serverId"]
        assert server == server | compute_figures(kept[name], (end - 30 * DAY, end))


@pytest.mark.parametrize(("step", "days"), [("day", 30), ("week", 60), ("month", 90)])
def test_growth_by_local_steps_follows_from_the_raw_rows(
    rows: Rows, ask: Callable[..., Any], step: str, days: int
) -> None:
    _, end = find_year(rows)
    window, before = (end - days * DAY, end), (end - 2 * days * DAY, end - days * DAY)
    options = ["--step", step, "--range", f"{days}d", "--tz", "Europe/Berlin"]

    servers = ask("growth", *IDS, *options)["servers"]

    for name, server in zip(IDS, servers, strict=True):
        steps = split_naively(rows[name], window, step, BERLIN)
        values, previous = (
            [players for _, players in select(rows[name], some)] for some in (window, before)
        )
        assert server["growth"] == compute_growth(values)
        assert server["previousGrowth"] == compute_growth(previous)
        change, coverage = compute_change_naively(rows[name], window)
        assert (server["change"], server["previousCoverage"]) == (change, coverage)
        whole_days = split_naively(rows[name], window, "day", BERLIN)
        assert server["playersPerWeek"] == compute_trend_naively(whole_days)
        assert server["steps"] == [
            {
                **one.describe(),
                **describe_average(one.values),
                "change": change,
                "growth": compute_growth(one.values),
            }
            for one, change in zip(steps, describe_changes(steps), strict=True)
        ]


def test_history_without_steps_is_the_raw_rows(rows: Rows, ask_lines: Callable[..., Any]) -> None:
    assert ask_lines("history", *IDS, *build_options(DAYS[0])) == [
        {"serverId": name, "observedAt": format_naively(at), "players": players}
        for name in IDS
        for at, players in select(rows[name], find_midnights(DAYS[0]))
    ]


def test_servers_have_the_intervals_and_the_coverage_of_their_raw_rows(
    rows: Rows, ask: Callable[..., Any]
) -> None:
    _, end = find_year(rows)

    servers = {server["id"]: server for server in ask("servers")["servers"]}

    assert servers.keys() == rows.keys()
    for name, of_server in rows.items():
        assert servers[name]["sampleCount"] == len(of_server)
        assert servers[name]["firstObservedAt"] == format_naively(of_server[0][0])
        assert servers[name]["lastObservedAt"] == format_naively(of_server[-1][0])
    for name in IDS:
        (first, _), *_ = rows[name]
        explained = explain_naively(rows[name], None, end)
        lasting = sum(compute_durations(rows[name], end))
        assert servers[name]["usualIntervalSeconds"] == explained["usualIntervalSeconds"]
        assert servers[name]["coverage"] == float(Fraction(lasting, 2 * (end - first)))
