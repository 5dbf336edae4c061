"""A day of real data has one value on every surface."""

import json
from collections import defaultdict
from datetime import date, datetime
from pathlib import Path
from statistics import mean
from zoneinfo import ZoneInfo

import pytest

from conftest import DAY, Cli
from srvstat.render.figures import format_rounded
from support.pages import Node, Page

pytestmark = pytest.mark.slow

HOUR = DAY // 24
FIVE = ["wb-usa", "wb-europe", "wb-asia", "wb-australia", "wb-japan"]
Rows = dict[str, list[tuple[int, int]]]


@pytest.fixture(autouse=True)
def _snapshot(war_brokers_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)
    monkeypatch.chdir(tmp_path)


def average_days(rows: list[tuple[int, int]], start: int, zone: ZoneInfo) -> dict[date, float]:
    """Return the average of each local day, of the rows after an instant."""
    days = defaultdict(list)
    for at, players in rows:
        if at > start:
            days[datetime.fromtimestamp(at / 1000, zone).date()].append(players)
    return {day: mean(values) for day, values in days.items()}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "window",
    [
        ["--range=30d"],
        ["--from=2025-10-20", "--to=2025-11-03"],
    ],
)
def test_a_day_has_one_value_in_the_report_and_in_growth_history_and_raw_rows(
    cli: Cli, war_brokers_rows: Rows, window: list[str], zone: str
) -> None:
    options = [*window, f"--tz={zone}"]
    report = Page.parse(cli("report", *FIVE, *options, "-o", "-").stdout).root
    growth = cli("growth", *FIVE, *options, "--step=day", "--json").json
    history = [
        json.loads(line)
        for line in cli("history", *FIVE, *options, "--step=day").stdout.splitlines()
    ]

    for at, (name, one) in enumerate(zip(FIVE, growth["servers"], strict=True)):
        steps = one["steps"]
        assert [
            (step["from"], step["averagePlayers"], step["observedShare"], step["isPartial"])
            for step in steps
        ] == [
            (row["from"], row["players"], row["observedShare"], row["isPartial"])
            for row in history
            if row["serverId"] == name
        ]
        printed = [format_rounded(step["averagePlayers"], 2) for step in steps]
        for section in ("players", "growth"):
            cells = read_cells(report, section, at)
            assert [cell.removeprefix("part of a day ").split()[0] for cell in cells] == printed
            assert [cell.startswith("part of a day ") for cell in cells] == [
                step["isPartial"] for step in steps
            ]
        start = datetime.fromisoformat(growth["window"]["from"]).timestamp() * 1000
        days = average_days(war_brokers_rows[name], int(start), ZoneInfo(zone))
        assert [step["averagePlayers"] for step in steps][1:-1] == list(days.values())[
            1 : len(steps) - 1
        ]


def read_cells(report: Node, section: str, at: int) -> list[str]:
    """Return the texts of a server in the table of days of a section."""
    rows = report.find(section).find_all("table")[-1].find_all("tr")[1:]
    return [row.find_all("td")[at].text for row in rows]
