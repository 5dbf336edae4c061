"""Only whole steps reach the figures, scales and trends of tables and charts."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, few_examples, server
from srvstat.contract.ranges import Window
from srvstat.contract.responses import CompareResponse, GrowthFields, ServerResult
from srvstat.documents.analysis import (
    ComparedServer,
    Comparison,
    GrowthDocument,
    GrowthStepPart,
    HistoryQuery,
    ServerGrowth,
    ServerName,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.documents.document import GrowthPart, WindowPart
from srvstat.render.charts import render_chart
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from support.terminal import run_srvstat_in_terminal

HOUR = DAY // 24
NOON = AS_OF
MIDNIGHT = AS_OF - AS_OF % DAY
FIRST_LAST = "first → last"
NOTHING = "–"  # noqa: RUF001 - the dash of a table

# An evening has many players and a night few, so that the average of a part of a day misleads.
DAILY_CYCLE = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 10, 10, 10, 10, 10, 10, 40, 40, 40, 40, 40, 40]


def list_hours(first: int, last: int, factor: float = 1) -> list[tuple[str, int, int]]:
    """Return observations of every hour of some days before midnight, those of a daily cycle."""
    return [
        ("a", MIDNIGHT - day * DAY + hour * HOUR, round(DAILY_CYCLE[hour] * factor))
        for day in range(first, last, -1)
        for hour in range(24)
    ]


@pytest.fixture
def cycle(build: Build) -> str:
    """Build a server with a daily cycle of 13.5 players, cut at noon, and a gap from 18:00 on."""
    rows = [row for row in list_hours(20, -1) if row[1] <= NOON]
    gap = MIDNIGHT - 6 * DAY + 18 * HOUR, MIDNIGHT - 3 * DAY + 18 * HOUR
    return build([server("a")], [row for row in rows if not gap[0] <= row[1] < gap[1]])


def test_a_chart_of_days_names_and_scales_whole_ones(cycle: str, cli: Cli) -> None:
    asked = ["history", "a", "-s", cycle, "--range=12d", "--step=1d", "--chart"]
    title, *lines = cli(*asked).stdout.decode().split("\n")

    assert title == "a  lowest 13.5, highest 13.5, last 13.5"
    assert max(int(line.split()[0]) for line in lines if "┤" in line) == 15
    notes = "in UTC; blank is no observation; a line without an area below it is part of a day"
    assert any(line.endswith(f"average players in steps of a day, {notes}") for line in lines)
    # The evening after the gap has 40 players: its edge is at the upper end.
    assert "⠉" in lines[0]
    assert "⣿" not in lines[0]


def test_a_chart_without_a_whole_step_has_no_figures(build: Build, cli: Cli) -> None:
    rows = [("a", NOON - at * HOUR, 3 + at) for at in range(6)]
    asked = ["history", "a", "-s", build([server("a")], rows), "--range=1d", "--step=1d", "--chart"]
    title, top, *_ = cli(*asked).stdout.decode().split("\n")

    assert title == f"a  lowest {NOTHING}, highest {NOTHING}, last {NOTHING}"
    assert top.startswith("6 ┤")


def test_a_chart_of_growth_is_as_high_as_its_whole_days(cycle: str, cli: Cli) -> None:
    asked = ["growth", "a", "-s", cycle, "--range=20d", "--chart"]
    title, top, *lines = cli(*asked).stdout.decode().split("\n")

    assert title.rstrip() == "a  trend flat"
    assert top.startswith("15 ┤░")
    assert any(line.endswith("░ is part of a day; ─ is the trend") for line in lines)


def test_tables_of_steps_mark_those_that_are_partial(cycle: str, cli: Cli) -> None:
    asked = ["-s", cycle, "--range=3d", "--table"]
    grown = cli("growth", "a", *asked).stdout.decode()
    listed = cli("history", "a", "--step=day", *asked).stdout.decode()

    assert [line.split() for line in grown.split("\n") if line.startswith("2026-")] == [
        ["2026-02-26", "*40.00", NOTHING, "6", "25%", "observed"],
        ["2026-02-27", "13.50", NOTHING, "24"],
        ["2026-02-28", "13.50", "0.00", "0.0%", "24"],
        ["2026-03-01", "*2.62", NOTHING, "13", "50%", "observed"],
    ]
    note = "*  part of a day: less than 90% of it was observed"
    assert note in re.sub("  +", "  ", grown)
    assert [line.split()[4] for line in listed.split("\n") if line.startswith("2026-")] == [
        *("*40.00", "13.50", "13.50", "*2.62")
    ]
    assert note in re.sub("  +", "  ", listed)
    assert "part of" not in cli("history", "a", "--step=6h", *asked).stdout.decode()


def test_a_partial_mark_differs_without_color_and_in_ascii(build: Build) -> None:
    rows = [row for row in list_hours(9, -1) if row[1] <= NOON]
    path = build([server("a"), server("b")], rows)
    asked = ["compare", "a", "b", "-s", path, "--table"]
    for environment, mark in (({}, "·"), ({"LC_ALL": "C"}, "o")):
        _, shown = run_srvstat_in_terminal(*asked, columns=120, env=environment)
        full = "#" if mark == "o" else "█"

        assert f" {full * 9}{mark}" in shown
        assert f", {mark} is part of a day" in " ".join(shown.split())
        assert "average: a 13.5\n" in shown
    _, shown = run_srvstat_in_terminal(*asked, columns=120, env={"NO_COLOR": ""})
    assert "█████████\x1b[2m·\x1b[0m" in shown


@pytest.fixture
def asked_servers(build: Build) -> str:
    """Build a server that grows, one whose earlier window is half observed, and a new one."""
    rows = list_hours(20, 10, 1) + list_hours(10, 0, 1.5)
    half = [("half", at, count) for _, at, count in rows if at >= MIDNIGHT - 15 * DAY]
    new = [("new", at, count) for _, at, count in rows if at >= MIDNIGHT - 3 * DAY]
    less = [("less", at, 30 - count // 2) for _, at, count in rows]
    return build([server(name) for name in ("a", "half", "less", "new")], rows + half + new + less)


def test_the_change_of_the_average_leads_and_is_in_color(
    asked_servers: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for command in (["top", "--by=change"], ["growth", "a", "less"], ["stats", "a", "less"]):
        window = ["--range=10d", "--to=2026-03-01"]
        shown = cli(*command, "-s", asked_servers, *window, "--table").stdout.decode()
        head = shown.split("\n", maxsplit=1)[0]

        assert re.search("average +change ", head)
        assert "growth" not in head
        assert re.search(r"\x1b\[32m\+[0-9.]+  \+[0-9.]+%\x1b", shown)
        assert re.search(r"\x1b\[31m-[0-9.]+ +-[0-9.]+%\x1b", shown)
        assert FIRST_LAST in head
        assert re.search(r"(?<!m)3 → 60(?! -)", shown)
        assert shown.count("\x1b[32m") + shown.count("\x1b[31m") == 2


def test_a_missing_change_has_its_reason_once(asked_servers: str, cli: Cli) -> None:
    window = ["-s", asked_servers, "--range=10d", "--to=2026-03-01", "--table"]
    weak = "the 10 days before were observed for 50% only"
    absent = "the 10 days before were not observed"

    for command in ("stats", "growth"):
        shown = cli(command, "half", *window).stdout.decode()
        assert f"against that of the 10 days before; {NOTHING} {weak}\n" in shown
        shown = cli(command, "a", "half", "new", *window).stdout.decode()
        assert f"before; {NOTHING} half: {weak}; new: {absent}\n" in shown
        whole = cli(command, "a", "-s", asked_servers, "--range=all", "--table").stdout.decode()
        assert f"change        {NOTHING} there is no window before all observations\n" in whole
        assert ("covered" in whole) == (command == "stats")


@pytest.mark.parametrize("columns", [79, 80, 120])
def test_a_terminal_of_80_columns_shows_the_last_figure_as_a_note(
    columns: int, asked_servers: str
) -> None:
    asked = ["top", "-s", asked_servers, "--range=10d"]
    _, shown = run_srvstat_in_terminal(*asked, columns=columns)
    head = shown.split("\n", maxsplit=1)[0]

    assert head.startswith("server ") == (columns >= 80)
    assert head.endswith(FIRST_LAST) == (columns == 120)
    assert (f" {FIRST_LAST} 3 → 60" in shown) == (columns == 80)


def test_all_times_are_in_the_zone_which_is_named_once(build: Build, cli: Cli) -> None:
    rows = list_hours(40, 0)
    rows += [("a", MIDNIGHT - 5 * DAY + 18 * HOUR + 60_000, 99)]
    path = build([server("a")], rows)
    zone = "--tz=Asia/Tokyo"
    for command in (
        ["stats", "a", "--versus=previous"],
        ["top"],
        ["growth", "a"],
        ["peak-hours", "a"],
        ["history", "a", "--step=1d"],
        ["history", "a"],
        ["integrity", "a"],
    ):
        ran = cli(*command, "-s", path, zone, "--range=20d", "--to=2026-02-27", "--table")
        shown = ran.stdout.decode()

        assert (ran.exit_code, ran.stderr) == (0, "")
        assert "UTC" not in shown
        assert "Z " not in shown
        assert [line.split()[-1] for line in shown.split("\n") if line.startswith("times")] == [
            "Asia/Tokyo"
        ]
        assert "2026-02-27 00:00:00 inclusive" in shown
    assert (
        "peak 2026-02-25 03:01\n" in cli("stats", "a", "-s", path, zone, "--table").stdout.decode()
    )
    assert cli("stats", "a", "-s", path, zone).json["timeZone"] == "Asia/Tokyo"
    assert cli("top", "-s", path, zone).json["timeZone"] == "Asia/Tokyo"
    assert cli("top", "-s", path).json["timeZone"] == "UTC"
    late = cli("stats", "a", "-s", path, zone, "--to=2030-01-01").stderr
    assert late.startswith(
        "note: no observation in the window; the snapshot has 2026-01-20 09:00:00"
    )
    assert late.endswith("to 2026-03-01 08:00:00 Asia/Tokyo\n")


def test_a_daily_series_has_no_busiest_hour(build: Build, cli: Cli) -> None:
    rows = [("a", MIDNIGHT - day * DAY + 9 * HOUR, day % 7) for day in range(1, 60)]
    asked = ["peak-hours", "a", "--range=all", "-s", build([server("a")], rows)]
    shown = cli(*asked, "--chart").stdout.decode()

    assert "busiest" not in shown
    assert "quietest" not in shown
    assert shown.startswith("a  too few hours of the week\n")
    assert "blank  161 of 168 hours" in shown
    (found,) = cli(*asked).json["servers"]
    assert found["busiest"] is not None


# A law: whatever partial steps have, nothing changes but their own marks.

shares = st.one_of(st.floats(0.9, 1), st.floats(0, 0.899))
steps = st.lists(
    st.tuples(st.one_of(st.none(), st.floats(0, 99)), shares, st.floats(0, 9e6)),
    min_size=1,
    max_size=60,
)
Steps = Sequence[tuple[float | None, float, float]]


def build_cells(drawn: Steps, *, is_changed: bool) -> tuple[StepCell, ...]:
    """Return the cells of steps; if `is_changed`, partial ones have their other value."""
    return tuple(
        StepCell(
            int(value is not None),
            1,
            other if is_changed and value is not None and share < 0.9 else value,
            share,
        )
        for value, share, other in drawn
    )


def render_step_chart(cells: Sequence[StepCell], screen: Screen) -> str:
    start = MIDNIGHT - len(cells) * DAY
    lines = tuple(
        StepLine(start + at * DAY, start + (at + 1) * DAY, (cell,)) for at, cell in enumerate(cells)
    )
    query = HistoryQuery(Window(start, MIDNIGHT), "UTC", step="day")
    return render_chart(
        StepTable(query, (ServerName("a", "a", "a"),), lines, (), len(lines)), screen
    )


def build_growth(cells: Sequence[StepCell]) -> GrowthDocument:
    start, none = MIDNIGHT - len(cells) * DAY, GrowthPart(players=None, percentage=None)
    parts = tuple(
        GrowthStepPart(
            start + at * DAY,
            start + (at + 1) * DAY,
            cell.is_partial,
            cell.observed_share,
            cell.observations,
            cell.players,
            None,
            none,
        )
        for at, cell in enumerate(cells)
    )
    one = ServerGrowth(
        server_id="a",
        cfx_id="a",
        hostname="a",
        sample_count=sum(cell.observations for cell in cells),
        average_players=9.0,
        change=None,
        coverage=1.0,
        previous_coverage=0.5,
        first_players=1,
        last_players=2,
        growth=none,
        previous_growth=None,
        players_per_week=1.5,
        steps=parts,
    )
    return GrowthDocument(
        as_of=MIDNIGHT,
        root="",
        step="day",
        time_zone="UTC",
        window=WindowPart(from_=start, to=MIDNIGHT),
        previous_window=None,
        servers=(one, one.model_copy(update={"server_id": "b"})),
    )


def render_comparison(cells: tuple[StepCell, ...], screen: Screen) -> str:
    result = ServerResult(
        serverId="a",
        cfxId="a",
        range="30d",
        currentPlayers=0,
        averagePlayers=1.0,
        medianPlayers=1.0,
        peakPlayers=1,
        lowestPlayers=1,
        growth=GrowthFields(players=1, percentage=50.0),
        sampleCount=3,
    )
    one = ComparedServer(result, "a", cells, 1, 2, MIDNIGHT)
    response = CompareResponse(range="30d", data=(result, result))
    window = Window(MIDNIGHT - 30 * DAY, MIDNIGHT)
    return render_table(
        Comparison(response, (one, replace(one, hostname="b")), window, MIDNIGHT, "day", DAY),
        screen,
    )


def keep_words(text: str) -> list[str]:
    """Return the lines of a chart without what is drawn: titles, labels of axes and captions."""
    return [re.split("[┤│└]", line)[0] for line in text.split("\n")]


SURFACES: dict[str, Callable[[tuple[StepCell, ...], Screen], list[str]]] = {
    "chart of steps": lambda cells, screen: keep_words(render_step_chart(cells, screen)),
    "chart of growth": lambda cells, screen: [
        line.replace("░", " ").rstrip()
        for line in render_chart(build_growth(cells), screen).split("\n")
    ],
    "table of a comparison": lambda cells, screen: [render_comparison(cells, screen)],
    "table of growth": lambda cells, screen: [render_table(build_growth(cells), screen)],
}


@pytest.mark.parametrize("surface", SURFACES)
@settings(max_examples=few_examples())
@given(steps, st.sampled_from([40, 80, 120]))
def test_the_values_of_partial_steps_change_no_figure_and_no_scale(
    surface: str, drawn: Steps, width: int
) -> None:
    before, after = (build_cells(drawn, is_changed=changed) for changed in (False, True))
    if not any(cell.players is not None and not cell.is_partial for cell in before):
        return
    show = SURFACES[surface]

    assert show(after, Screen(width)) == show(before, Screen(width))


@pytest.mark.slow
def test_a_comparison_of_real_servers_is_headed_by_whole_days(
    war_brokers_snapshot: str, war_brokers_rows: dict[str, list[tuple[int, int]]], cli: Cli
) -> None:
    asked = ["compare", "wb-usa", "wb-europe", "--range=90d", "--chart", "-s", war_brokers_snapshot]
    shown = cli(*asked).stdout.decode()
    end = max(at for at, _ in war_brokers_rows["wb-usa"])

    for name in ("wb-usa", "wb-europe"):
        days = defaultdict(list)
        for at, players in war_brokers_rows[name]:
            days[at // DAY].append(players)
        first, last = (end - 90 * DAY) // DAY + 1, end // DAY
        # The usual interval is half an hour, and an observation lasts at most three of them.
        averages = [sum(days[day]) / len(days[day]) for day in range(first, last)]
        figures = min(averages), max(averages), averages[-1]
        lowest, highest, recent = (f"{figure:.1f}".removesuffix(".0") for figure in figures)
        hostname = {"wb-usa": "Usa", "wb-europe": "Europe"}[name]
        assert f"{name}  {hostname}  lowest {lowest}, highest {highest}, last {recent}\n" in shown
    assert "wb-usa  Usa  lowest 11.7, highest 19.1, last 15.8\n" in shown


@pytest.mark.slow
def test_half_a_real_year_is_no_ground_for_a_change(war_brokers_snapshot: str, cli: Cli) -> None:
    asked = ["stats", "wb-usa-west", "--range=1y", "-s", war_brokers_snapshot, "--table"]

    assert "the 365 days before were observed for 46.6% only\n" in cli(*asked).stdout.decode()
