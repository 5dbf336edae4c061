"""`srvstat growth` and `srvstat peak-hours`: options, errors, forms and tables."""

import json
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.documents.analysis import GrowthDocument, PeakHours
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from srvstat.snapshot.read.reader import open_file

HOUR = DAY // 24
NAMES = ["harbor-city", "hostile-host", "empty-plains", "old-guard"]


@pytest.mark.parametrize("command", ["growth", "peak-hours"])
@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], 2, "error: no server; give IDENTIFIER…\n"),
        (["harbor-city", "--tz", "Mars/Olympus"], 2, '--tz: no time zone "Mars/Olympus"'),
        (
            ["harbor-city", "--from=2026-03-02"],
            2,
            "earlier than the end of the snapshot, 2026-03-01T",
        ),
        (["a b"], 40, "may only contain"),
        (["harbor-cty"], 44, "no id harbor-cty; "),
        (["harbor-city", "-s", "absent.db"], 3, "absent.db"),
    ],
)
def test_invalid_usage_is_reported(  # noqa: PLR0913, PLR0917 - a case and its fixtures
    command: str,
    arguments: list[str],
    code: int,
    reason: str,
    cli: Cli,
    demo_snapshot: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    ran = cli(command, *arguments, "--table")

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--step=1h"], "'1h' is not one of 'day', 'week', 'month'"),
        (["--from=1970-01-01", "--to=9999-12-31"], "more than 1,000,000 steps in the window"),
    ],
)
def test_a_step_that_growth_can_not_have_is_refused(
    arguments: list[str], reason: str, cli: Cli, demo_snapshot: str
) -> None:
    ran = cli("growth", "harbor-city", "-s", demo_snapshot, *arguments)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert reason in ran.stderr


@pytest.mark.parametrize(
    ("command", "field"), [(["growth", "--step=month"], "steps"), (["peak-hours"], "cells")]
)
def test_rows_have_the_values_of_the_document(
    command: list[str], field: str, cli: Cli, demo_snapshot: str
) -> None:
    asked = [*command, "old-guard", "cfxId:hc4x2k", "id:old-guard", "-s", demo_snapshot]
    rows = [json.loads(line) for line in cli(*asked, "--format=ndjson").stdout.splitlines()]

    expected = []
    for shown in cli(*asked).json["servers"]:
        for part in shown[field]:
            growth = part.pop("growth", {})
            if "change" in part:
                change = part.pop("change") or {"players": None, "percentage": None}
                part |= {f"change{name.capitalize()}": value for name, value in change.items()}
            flat = {f"growth{name.capitalize()}": value for name, value in growth.items()}
            expected.append({"serverId": shown["serverId"], **part, **flat})
    assert rows == expected
    assert {row["serverId"] for row in rows} == {"old-guard", "harbor-city"}


def test_a_bundle_that_ends_with_the_window_has_no_previous_growth(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "bundle.db")
    cli("snapshot", "bundle", "harbor-city", "-s", demo_snapshot, "-o", bundle, "--range=7d")
    asked = ["growth", "harbor-city", "-s", bundle]

    short, whole = (cli(*asked, f"--range={length}").json for length in ("3d", "7d"))

    assert short["previousWindow"]["to"] == short["window"]["from"]
    assert short["servers"][0]["previousGrowth"]["players"] is not None
    assert whole["previousWindow"] is whole["servers"][0]["previousGrowth"] is None
    assert cli(*asked, "--range=30d").exit_code == 3


def compute_tables(path: str) -> dict[str, GrowthDocument | PeakHours]:
    """Return documents of the demo's servers, by the names of their tables."""
    window, zone = Window(AS_OF - 30 * DAY, AS_OF), ZoneInfo("Europe/Berlin")
    with closing(open_file(path)) as snapshot:
        servers = {one.id: one for one in snapshot.iter_servers()}
        four, one = [servers[name] for name in NAMES], [servers["flaky-arena"]]
        hidden = Window(BEFORE_ALL, AS_OF)
        return {
            "growth": compute_growth(snapshot, four, window, "day", zone),
            "growth-of-one": compute_growth(snapshot, one, hidden, "week", zone),
            "peak-hours": compute_peak_hours(
                snapshot, [*one, servers["hostile-host"], servers["empty-plains"]], window, zone
            ),
        }


@pytest.mark.parametrize("columns", [20, 28, 40])
def test_narrow_tables_are_ascii_where_nothing_else_is_shown(
    columns: int, demo_snapshot: str
) -> None:
    for document in compute_tables(demo_snapshot).values():
        shown = render_table(document, Screen(columns, ascii_only=True))
        assert shown.isascii()
        assert max(map(len, shown.split("\n"))) <= columns


def test_long_lists_end_with_the_last_steps(build: Build, cli: Cli) -> None:
    rows = [("a", AS_OF - day * DAY, day) for day in range(100)]
    shown = cli("growth", "a", "--range=100d", "-s", build([server("a")], rows), "--table").stdout

    lines = shown.decode().split("\n")
    listed = [line for line in lines if line[:10] in {"2026-03-01", "2025-12-30", "2025-12-29"}]
    assert "39 earlier days not shown; --format csv prints all" in lines
    assert [line.split()[:2] for line in listed] == [
        ["2025-12-30", "61.00"],
        ["2026-03-01", "*0.00"],
    ]
    marks = "│·███▇▇▇▇▆▆▆▆▆▅▅▅▅▅▄▄▄▄▃▃▃▃▃▂▂▂▂▂▂·│"
    assert lines[2] == f"  x-a  {marks}; 100 observations; 1 of 101 days empty"


def test_equal_averages_have_the_middle_shade_and_few_hours_no_busiest_one(
    build: Build, cli: Cli
) -> None:
    monday = AS_OF - AS_OF % DAY - 6 * DAY
    rows = [("a", monday + HOUR + at, 7) for at in range(4)]
    path = build([server("a")], [*rows, ("a", monday + 3 * HOUR, 1), ("a", AS_OF, 9)])
    shown = cli("peak-hours", "a", "--range=all", "-s", path, "--table").stdout.decode()

    assert "\nMon    ▒▒\nTue\n" in shown
    assert "scale  all averages are 7.00\n" in shown
    assert "blank  167 of 168 hours, with fewer than 4 observations\n" in shown
    assert "busiest" not in shown
