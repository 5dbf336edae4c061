"""Tables: their columns and cards, what partial steps change, terminals and pipes."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from conftest import AS_OF, DAY, Build, Cli, few_examples, server
from srvstat.contract.responses import CompareResponse, GrowthFields, ServerResult
from srvstat.contract.windows import Window
from srvstat.documents.analysis import (
    ComparedServer,
    Comparison,
    HistoryQuery,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.documents.document import ServerName
from srvstat.render.charts import render_chart
from srvstat.render.layout import build_server_table, escape_server
from srvstat.render.screen import UNLIMITED, Screen
from srvstat.render.tables import render_table
from srvstat.render.tables.servers import render_comparison
from support.documents import build_growth
from support.terminal import run_srvstat_in_terminal

identifiers = st.text("abcXYZ019-", min_size=1, max_size=40)
hostnames = st.text("aZ «夜勤»é\u0301|\x1b\u202e", max_size=60).map(lambda text: f"h{text}")
notes = st.integers(0, 99).map(lambda number: f"note{number} of some words")


ListedServer = tuple[ServerName, tuple[str, ...], tuple[str, ...], str]
"""The names, the figures, the notes and the rank of a server."""


@st.composite
def listed_servers(draw: st.DrawFn) -> ListedServer:
    figures = draw(st.tuples(st.integers(0, 99), st.integers(0, 2**53)))
    return (
        ServerName(draw(identifiers), draw(identifiers), draw(hostnames)),
        tuple(f"{figure:,}" for figure in figures),
        tuple(draw(st.lists(notes, max_size=9))),
        draw(st.sampled_from(["", "7 ", "10 "])),
    )


@given(
    st.lists(listed_servers(), min_size=1, max_size=4), st.just(UNLIMITED) | st.integers(40, 160)
)
def test_all_parts_are_shown_within_the_width(shown: list[ListedServer], width: int) -> None:
    screen = Screen(width)
    text = screen.render(
        *build_server_table(
            ("current", "peak"), [escape_server(screen, *one) for one in shown], screen
        )
    )
    words = text.replace(";", " ").split()

    assert max(map(cell_len, text.split("\n"))) <= width
    for names, _, of_notes, _ in shown:
        expected = {names.server_id, names.cfx_id, *" ".join(of_notes).split()}
        assert expected <= {*words}
    header, *lines = text.split("\n")
    if not header.startswith("server "):
        return
    places = [at for at, line in enumerate(lines) if line and not line.startswith("  ")]
    for (names, figures, _, rank), at in zip(shown, places, strict=True):
        title = f"{rank}{names.server_id}"
        # An id that is too wide has a line of its own.
        row = lines[at + 1] if lines[at] == title else lines[at]
        assert lines[at] == title or row.startswith(f"{title} ")
        assert row.endswith(f" {figures[1]}")
        assert cell_len(row) == len(header)


BAR = "│"
NONE = "–"  # noqa: RUF001 - the dash of a table


counts = st.one_of(st.integers(0, 9), st.integers(0, 9_999_999), st.integers(0, 2**53 - 1))


@st.composite
def compared_servers(draw: st.DrawFn) -> ComparedServer:
    """Draw a server with statistics of any size, or without observations."""
    name = draw(identifiers)
    first, last, top = draw(counts), draw(counts), draw(counts)
    seen = draw(st.booleans())
    result = ServerResult(
        server_id=name,
        cfx_id=draw(st.one_of(st.just(name), identifiers)),
        range="30d",
        current_players=draw(counts),
        average_players=top / 3 if seen else None,
        median_players=top / 2 if seen else None,
        peak_players=top if seen else None,
        lowest_players=first if seen else None,
        growth=GrowthFields(
            players=last - first if seen else None,
            percentage=100 * (last - first) / first if seen and first else None,
        ),
        sample_count=draw(st.integers(1, 99_999)) if seen else 0,
    )
    return ComparedServer(
        result,
        draw(st.one_of(st.just(name), hostnames)),
        tuple(
            StepCell(1, 1, draw(st.floats(0, top)), draw(st.floats(0, 1)))
            if seen
            else StepCell(0, 1, None, 0.0)
            for _ in range(30)
        ),
        draw(st.integers(1, 30)) if seen else 0,
        first if seen else None,
        AS_OF - draw(st.sampled_from([0, 3 * DAY])) if seen else None,
    )


def build_comparison(*shown: ComparedServer) -> Comparison:
    """Return a comparison of servers over 30 days."""
    response = CompareResponse(range="30d", data=tuple(one.result for one in shown))
    return Comparison(response, shown, Window(AS_OF - 30 * DAY, AS_OF), AS_OF, "day", DAY)


def expand_wide_characters(line: str) -> str:
    """Repeat each character by its number of cells on the screen."""
    return "".join(character * cell_len(character) for character in line)


def format_expected(shown: ComparedServer) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each figure except the first and the last count."""
    result = shown.result
    silent = "not seen" if shown.last_observed_at is None else "last seen Feb 26"
    yield "current", f"{result.current_players:,}" if shown.last_observed_at == AS_OF else silent
    average, median = result.average_players, result.median_players
    yield "average", NONE if average is None else f"{average:,.2f}"
    yield "median", NONE if median is None else f"{median:,.1f}".removesuffix(".0")
    for name, count in (("peak", result.peak_players), ("lowest", result.lowest_players)):
        yield name, NONE if count is None else f"{count:,}"


@given(
    st.lists(compared_servers(), min_size=2, max_size=5), st.just(UNLIMITED) | st.integers(60, 220)
)
def test_figures_end_below_their_names(shown: list[ComparedServer], width: int) -> None:
    text = render_comparison(build_comparison(*shown), Screen(width))
    header, *lines = map(expand_wide_characters, text.split("\n\n", maxsplit=1)[0].split("\n"))

    assert max(map(cell_len, text.split("\n"))) <= width
    for name in {name for one in shown for name in (one.result.server_id, one.result.cfx_id)}:
        assert name in text
    if not header.startswith("server "):
        return
    places = [at for at, line in enumerate(lines) if not line.startswith("  ")]
    for one, at in zip(shown, places, strict=True):
        # An id that is too wide has a line of its own.
        row = lines[at + 1] if lines[at] == one.result.server_id else lines[at]
        for name, value in format_expected(one):
            assert row[: header.index(name) + len(name)].endswith(f" {value}")
    assert width >= 80
    assert len({line.index(BAR) for line in lines if BAR in line}) == 1


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
    result = ServerResult(
        server_id="a",
        cfx_id="a",
        range="30d",
        current_players=0,
        average_players=1.0,
        median_players=1.0,
        peak_players=1,
        lowest_players=1,
        growth=GrowthFields(players=1, percentage=50.0),
        sample_count=3,
    )
    one = ComparedServer(result, "a", cells, 1, 2, AS_OF)
    return render_comparison(build_comparison(one, one), screen)


def keep_words(text: str) -> list[str]:
    """Return the lines of a chart without what is drawn: titles, labels of axes and captions."""
    return [re.split("[┤│└]", line)[0] for line in text.split("\n")]


SURFACES: dict[str, Callable[[tuple[StepCell, ...], Screen], list[str]]] = {
    "chart of steps": lambda cells, screen: keep_words(render_step_chart(cells, screen)),
    "chart of growth": lambda cells, screen: [
        line.replace("░", " ").rstrip()
        for line in render_chart(build_growth(cells, cells), screen).split("\n")
    ],
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
