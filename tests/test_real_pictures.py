"""Pictures and reports of real data show calendar days, hours and outages as they were."""

import json
from collections import defaultdict
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest

from conftest import DAY, Cli
from srvstat.render.figures import format_rounded
from support.pages import Node, Page
from support.timelines import find_all

pytestmark = pytest.mark.slow

HOUR = DAY // 24
FIVE = ["wb-usa", "wb-europe", "wb-asia", "wb-australia", "wb-japan"]
Rows = dict[str, list[tuple[int, int]]]


@pytest.fixture(autouse=True)
def _snapshot(war_brokers_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)
    monkeypatch.chdir(tmp_path)


class Picture:
    """The lines of a plot, read back from pixels by its axes."""

    def __init__(self, svg: bytes, start: int, end: int) -> None:
        self.root = ET.fromstring(svg)  # noqa: S314 - our own output
        for one in self.root.iter():
            one.tag = one.tag.rpartition("}")[2]
        (axis,) = (one for one in find_all(self.root, "axis") if one.get("y1") == one.get("y2"))
        self.left, self.right, self.bottom = (
            float(axis.get(name, "")) for name in ("x1", "x2", "y1")
        )
        labels = [one for one in find_all(self.root, "tick") if one.get("text-anchor") == "end"]
        self.highest = float(labels[-1].text or "")
        self.height = float(labels[0].get("y", "")) - float(labels[-1].get("y", ""))
        self.start, self.length = start, end - start

    def read_lines(self, number: int, css: str) -> list[list[tuple[float, float]]]:
        """Return the instants and the players of the parts of a server's line."""
        group = find_all(self.root, f"series-{number}")[0]
        paths = [one for one in find_all(group, "line") if one.get("class") == css]
        parts = [part for one in paths for part in one.get("d", "").split("M")[1:]]
        return [[self._read_vertex(vertex) for vertex in part.split("L")] for part in parts]

    def _read_vertex(self, vertex: str) -> tuple[float, float]:
        x, y = map(float, vertex.split())
        at = self.start + (x - self.left) / (self.right - self.left) * self.length
        return at, (self.bottom - y) / self.height * self.highest


def draw(cli: Cli, rows: Rows, names: list[str], days: int, *options: str) -> Picture:
    end = max(at for at, _ in rows[names[0]])
    ran = cli("plot", *names, "--range", f"{days}d", *options, "-o", "-")
    assert ran.exit_code == 0, ran.stderr
    return Picture(ran.stdout, end - days * DAY, end)


def average_days(rows: list[tuple[int, int]], start: int, zone: ZoneInfo) -> dict[date, float]:
    """Return the average of each local day, of the rows after an instant."""
    days = defaultdict(list)
    for at, players in rows:
        if at > start:
            days[datetime.fromtimestamp(at / 1000, zone).date()].append(players)
    return {day: mean(values) for day, values in days.items()}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("width", ["960", "1600"])
def test_a_plot_of_90_days_has_the_same_whole_days_at_every_width(
    cli: Cli, war_brokers_rows: Rows, width: str, zone: str
) -> None:
    clock = ZoneInfo(zone)
    picture = draw(cli, war_brokers_rows, FIVE, 90, "--width", width, "--tz", zone)

    for number, name in enumerate(FIVE, 1):
        days = average_days(war_brokers_rows[name], picture.start, clock)
        (line,) = picture.read_lines(number, "line")
        drawn = [(datetime.fromtimestamp(at / 1000, clock).date(), n) for at, n in line]
        # The first and the last day are cut by the window, and so dashed.
        assert [day for day, _ in drawn] == [*days][1:-1]
        assert all(abs(players - days[day]) < 0.05 for day, players in drawn)
        assert [len(part) for part in picture.read_lines(number, "line partial")] == [2, 2]
    whole = [
        n
        for name in FIVE
        for n in [*average_days(war_brokers_rows[name], picture.start, clock).values()][1:-1]
    ]
    assert max(whole) <= picture.highest == 20


def test_five_servers_of_30_days_have_the_hours_of_one_and_show_an_outage(
    cli: Cli, war_brokers_rows: Rows
) -> None:
    five = draw(cli, war_brokers_rows, FIVE, 30)
    starts = {at // HOUR * HOUR for at, _ in war_brokers_rows[FIVE[0]] if at > five.start}
    gaps = [
        (before, after)
        for (before, _), (after, _) in pairwise(war_brokers_rows[FIVE[0]])
        if before > five.start and after - before > 3 * HOUR // 2
    ]

    assert gaps
    for number, name in enumerate(FIVE, 1):
        lines = five.read_lines(number, "line")
        alone = draw(cli, war_brokers_rows, [name], 30).read_lines(1, "line")
        assert [len(line) for line in lines] == [len(line) for line in alone]
        assert sum(map(len, lines)) > 0.99 * len(starts)
        for line in lines:
            for (one, _), (other, _) in pairwise(line):
                assert other - one < 1.2 * HOUR
                # An observation lasts, so that the line may end within the gap.
                assert not any(one < (start + end) / 2 < other for start, end in gaps)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "window",
    [
        ["--range=30d"],
        ["--from=2025-10-20", "--to=2025-11-03"],
        ["--from=2026-03-20", "--to=2026-04-09"],
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
