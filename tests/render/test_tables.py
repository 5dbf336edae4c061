"""Tables: their columns and cards, what partial steps change, terminals and pipes."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields as dataclass_fields
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from conftest import AS_OF, DAY, Build, Cli, few_examples, server
from srvstat.contract.windows import Window
from srvstat.documents.analysis import (
    HistoryQuery,
    ServerStatistics,
    Stats,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.documents.document import ChangePart, GrowthPart, ServerName, WindowPart
from srvstat.render.charts import render_chart
from srvstat.render.screen import UNLIMITED, Screen
from srvstat.render.tables import render_table
from support.documents import build_growth, build_peak_hours
from support.terminal import run_srvstat_in_terminal

identifiers = st.text("abcXYZ019-", min_size=1, max_size=40)
hostnames = st.text("aZ «夜勤»é\u0301|\x1b\u202e", max_size=60).map(lambda text: f"h{text}")
counts = st.one_of(st.integers(0, 9), st.integers(0, 9_999_999), st.integers(0, 2**53 - 1))
NONE = "–"  # noqa: RUF001 - the dash of a table


@st.composite
def statistics(draw: st.DrawFn) -> ServerStatistics:
    """Draw a server with statistics of any size, or without observations."""
    name, top = draw(identifiers), draw(counts)
    seen = draw(st.booleans())
    cells = [StepCell(1, 1, draw(st.floats(0, top)), draw(st.floats(0, 1))) for _ in range(30)]
    first, last = draw(counts), draw(counts)
    return build_server(
        server_id=name,
        hostname=draw(st.one_of(st.just(name), st.just(""), hostnames)),
        current_players=draw(counts),
        last_observed_at=AS_OF - draw(st.sampled_from([0, 3 * DAY])) if seen else None,
        average_players=top / 3 if seen else None,
        median_players=top / 2 if seen else None,
        peak_players=top if seen else None,
        lowest_players=draw(counts) if seen else None,
        first_players=first if seen else None,
        growth=GrowthPart(last - first if seen else None, None),
        cells=tuple(cells) if seen else (StepCell(0, 1, None, 0.0),) * 30,
        coverage=draw(st.floats(0, 1)),
        change=draw(st.none() | st.just(ChangePart(-2.5, -20.0))),
    )


def build_server(**fields: Any) -> ServerStatistics:
    """Return a server whose figures are None, except for fields that are given."""
    given: dict[str, Any] = {one.name: None for one in dataclass_fields(ServerStatistics)}
    given |= {"cfx_id": "x", "growth": GrowthPart(None, None), "quantiles": (), "sample_count": 3}
    return ServerStatistics(**(given | fields))


def build_stats(*servers: ServerStatistics) -> Stats:
    """Return the statistics of servers over 30 days."""
    window = WindowPart(from_=AS_OF - 30 * DAY, to=AS_OF)
    return Stats(
        as_of=AS_OF,
        root="0",
        time_zone="UTC",
        window=window,
        previous_window=None,
        cell_step="day",
        servers=servers,
    )


def expand_wide_characters(line: str) -> str:
    """Repeat each character by its number of cells on the screen."""
    return "".join(character * cell_len(character) for character in line)


def format_expected(shown: ServerStatistics) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each figure except the changes."""
    is_silent = shown.last_observed_at != AS_OF
    yield "current", "silent" if is_silent else f"{shown.current_players:,}"
    average, median = shown.average_players, shown.median_players
    yield "average", NONE if average is None else f"{average:,.2f}"
    yield "median", NONE if median is None else f"{median:,.1f}".removesuffix(".0")
    for name, count in (("peak", shown.peak_players), ("lowest", shown.lowest_players)):
        yield name, NONE if count is None else f"{count:,}"


@given(st.lists(statistics(), min_size=1, max_size=4), st.just(UNLIMITED) | st.integers(40, 220))
def test_figures_end_below_their_names(shown: list[ServerStatistics], width: int) -> None:
    text = render_table(build_stats(*shown), Screen(width))
    _, header, *lines = map(expand_wide_characters, text.split("\n"))

    assert max(map(cell_len, text.split("\n"))) <= width
    assert all(str(one.server_id) in text.replace("\n", "") for one in shown)
    if not header.startswith("server "):
        return
    assert width >= 60
    has_a_line_each = "each " in header
    places = [at for at, line in enumerate(lines) if not line.startswith("  ")][: len(shown)]
    for one, at in zip(shown, places, strict=True):
        assert lines[at].startswith(str(one.server_id))
        for name, value in format_expected(one):
            if name in header:
                assert lines[at][: header.index(name) + len(name)].endswith(f" {value}")
            else:
                assert f"{name} {value}" in "".join(lines[at : at + 4])
    assert not has_a_line_each or (width >= 100 and places == [*range(len(shown))])


@given(statistics())
def test_a_sparkline_is_between_the_lowest_and_the_highest_whole_day(one: ServerStatistics) -> None:
    text = render_table(build_stats(one), Screen())
    whole = [cell.players for cell in one.cells if cell.players is not None and not cell.is_partial]
    if not whole:
        return
    marks = re.search(r" ([▁▂▃▄▅▆▇█◦]{30}) ", text)

    assert marks
    digits = 2 if max(whole) < 1 else 1
    assert f"{min(whole):,.{digits}f} {marks[1]} " in text
    assert re.search(rf"{marks[1]} +{max(whole):,.{digits}f}", text)
    for mark, cell in zip(marks[1], one.cells, strict=True):
        if cell.is_partial:
            assert mark == "◦"
        elif min(whole) < max(whole):
            assert cell.players != min(whole) or mark == "▁"
            assert cell.players != max(whole) or mark == "█"


MIDNIGHT = AS_OF - AS_OF % DAY


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


def render_compared(cells: tuple[StepCell, ...], screen: Screen) -> str:
    one = build_server(server_id="a", hostname="a", current_players=0, cells=cells)
    return render_table(build_stats(one, one), screen)


def keep_words(text: str) -> list[str]:
    """Return the lines of a chart without what is drawn: titles, labels of axes and captions."""
    return [re.split("[┤│└]", line)[0] for line in text.split("\n")]


SURFACES: dict[str, Callable[[tuple[StepCell, ...], Screen], list[str]]] = {
    "chart of steps": lambda cells, screen: keep_words(render_step_chart(cells, screen)),
    "table of a comparison": lambda cells, screen: [render_compared(cells, screen)],
    "table of growth": lambda cells, screen: [render_table(build_growth(cells, cells), screen)],
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


SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J\x1b]0;x\x07[red]A[/] [/x]\u202eb\n" + "z" + "\u0301" * 200 + "\x9b1m"
COMPARE = ["compare", "harbor-city", "night-shift", "empty-plains", "--range", "7d"]


@pytest.mark.parametrize("columns", [1, 10, 20, 30])
def test_the_narrowest_terminal_shows_all_identifiers(columns: int, build: Build) -> None:
    long = "a-" * 64
    path = build(
        [server(long, cfxId="x"), server("b", hostname=HOSTILE)], [("b", AS_OF, 2**53 - 1)]
    )
    code, shown = run_srvstat_in_terminal("compare", long, "b", "-s", path, columns=columns)

    assert code == 0
    assert long in shown.replace("\n", "")
    assert "9,007,199,254,740,991" in shown.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize(
    ("env", "is_colored"),
    [
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": "", "TERM": "dumb"}, False),
        ({"NO_COLOR": "", "TERM": ""}, False),
    ],
)
def test_colors_follow_the_environment(
    env: dict[str, str], is_colored: bool, demo_snapshot: str
) -> None:
    _, shown = run_srvstat_in_terminal(*COMPARE, env={"SRVSTAT_SNAPSHOT": demo_snapshot, **env})

    assert ("\x1b[" in shown) is is_colored


@pytest.mark.parametrize("term", ["dumb", "unknown", "xterm"])
def test_a_pipe_has_the_natural_width_for_any_term(
    term: str, demo_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    plain = cli(*COMPARE, "--table").stdout.decode()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    colored = cli(*COMPARE, "--table").stdout.decode()

    assert "\x1b[1m" in colored
    assert [line.rstrip() for line in SGR.sub("", colored).split("\n")] == plain.split("\n")


def test_a_heat_map_is_blue_with_the_averages_that_fit_and_complete_without_color() -> None:
    document = build_peak_hours([float(at) for at in range(168)])
    wide, narrow, plain, ascii_only = (
        render_table(document, Screen(width, 24, color=color, ascii_only=is_ascii))
        for width, color, is_ascii in (
            (140, True, False),
            (80, True, False),
            (140, False, False),
            (140, False, True),
        )
    )

    levels = [level for level, _ in groupby(re.findall(r"48;5;(\d+)m", wide))]
    # Those of the map, whose averages rise, and those of the scale below it.
    assert levels == ["17", "19", "25", "32", "74", "117", "195"] * 2
    assert "167" in wide.split("Sun")[1]
    assert "166 167" not in narrow
    assert "█167" in plain
    assert "#167" in ascii_only
    for shown in (wide, narrow, plain, ascii_only):
        assert max(map(cell_len, re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n"))) <= 140
        assert "busiest Sun 23:00 to 24:00 (167.00 players)" in shown
        assert shown.rpartition("Sun")[2].count("\n") <= 4
