"""`--chart` of `compare` and `history`, and what all charts have in common."""

import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from support.terminal import run_srvstat_in_terminal

HOUR = DAY // 24
PAIR = ["harbor-city", "night-shift"]
FIVE = [*PAIR, "flaky-arena", "hostile-host", "empty-plains"]


@pytest.fixture(autouse=True)
def _default_snapshot(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)


def split_chart(cli: Cli, *arguments: str) -> tuple[str, str]:
    """Return the chart of a command, and what follows after an empty line."""
    ran = cli(*arguments, "--chart")
    assert ran.exit_code == 0, ran.stderr
    chart, rest = ran.stdout.decode().split("\n\n", 1)
    return chart, rest


def test_a_comparison_has_its_chart_above_the_usual_table(cli: Cli) -> None:
    asked = ["compare", *PAIR, "--range=7d", "--at=2026-02-20T12:00Z"]
    chart, table = split_chart(cli, *asked)

    assert table == cli(*asked, "--table").stdout.decode()
    drawn, _ = split_chart(cli, "history", *PAIR, "--range=7d", "--to=2026-02-20T12:00Z")
    assert chart == drawn


def test_a_chart_fits_a_terminal_that_shows_only_ascii(demo_snapshot: str) -> None:
    env = {"SRVSTAT_SNAPSHOT": demo_snapshot, "LC_ALL": "C"}
    code, shown = run_srvstat_in_terminal("compare", *FIVE, "--chart", columns=60, env=env)

    assert (code, shown.isascii()) == (0, True)
    assert max(map(len, shown.split("\n"))) <= 60


@pytest.mark.parametrize(
    ("options", "title", "value"),
    [
        (
            ["--range=24h"],
            "lowest 7.5, highest 79.5, last 30.3",
            "average players in steps of 2 hours, in UTC",
        ),
        (["--range=24h", "--aggregate=max"], "highest 86", "highest count in steps of 2 hours"),
        (
            ["--range=all", "--step=month", "--aggregate=last"],
            "lowest 43, highest 43, last 43",
            "last count in steps of a month",
        ),
        (["--range=24h", "--sum"], "sum of 1 server", "2 hours, added up"),
    ],
)
def test_a_history_draws_the_steps_that_it_would_list(
    options: list[str], title: str, value: str, cli: Cli
) -> None:
    chart, notes = split_chart(cli, "history", "night-shift", *options)

    assert title in chart
    assert value in chart
    assert notes.startswith("window ")


def test_polls_that_are_a_little_late_leave_no_gap(build: Build, cli: Cli) -> None:
    rows = [("a", AS_OF - at * 10 * 60_000 + at % 3 * 1000, 5) for at in range(1, 140)]
    # Two observations say nothing about how often a server is polled.
    rows += [("b", AS_OF - 10 * HOUR, 5), ("b", AS_OF, 5)]
    path = build([server("a"), server("b")], rows)
    asked = ["history", "-s", path, "--range=12h"]

    assert "in steps of 30 minutes, in UTC" in split_chart(cli, *asked, "a")[0]
    chart, _ = split_chart(cli, *asked, "a", "b")
    assert "in steps of 30 minutes, in UTC; blank is no observation" in chart


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["compare", *PAIR, "--json"], "--chart can't be combined with --json or --format"),
        (["history", *PAIR, "--format=csv"], "--chart can't be combined with --json or --format"),
        (["compare", "--batch=-"], "--batch can't be combined with --request, --table, --explain"),
        (["history", *FIVE, "old-guard"], "servers: 6 given, at most 5 can be drawn"),
        (["history", *PAIR, "--step=1h"], "--step: 720 steps, but the chart has room for 138;"),
    ],
)
def test_what_a_chart_can_not_show_is_invalid_usage(
    arguments: list[str], reason: str, cli: Cli
) -> None:
    ran = cli(*arguments, "--chart")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert reason in ran.stderr


@pytest.mark.parametrize("command", ["history", "stats", "growth", "peak-hours"])
def test_a_chart_of_nothing_says_so(command: str, cli: Cli) -> None:
    chart, _ = split_chart(cli, command, "empty-plains", "--range=all")

    few = "too few observations" if command == "peak-hours" else "no observation"
    assert chart == f"nothing to draw: {few} in the window"


def test_a_sum_can_have_many_servers(cli: Cli) -> None:
    chart, _ = split_chart(cli, "history", *FIVE, "old-guard", "--sum")

    assert "sum of 6 servers" in chart
    assert "without some servers in 120 of 120 values" in chart
