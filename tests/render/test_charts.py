"""Charts draw every value in proportion, with round ticks, on any screen."""

import re
import unicodedata
from datetime import UTC, datetime
from itertools import chain
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from srvstat.cli.output import Form, show
from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import HistoryQuery, StepCell, StepLine, StepTable
from srvstat.documents.document import ServerName
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.charts import choose_scale, count_values, render_chart
from srvstat.render.figures import join_cells
from srvstat.render.screen import Screen

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo")
BERLIN = ZoneInfo("Europe/Berlin")
ENDS = st.integers(-(2**53), 2**53) | st.floats(-1000, 1000)


@given(st.tuples(ENDS, ENDS).map(sorted), st.integers(3, 20))
@settings(max_examples=50)
def test_few_equidistant_ticks_enclose_the_values(ends: list[float], most: int) -> None:
    low, high = ends
    ticks = choose_ticks(low, high, most)
    texts = format_ticks(ticks)

    assert 2 <= len(ticks) <= most
    assert ticks[0] <= low <= high <= ticks[-1]
    assert len(set(texts)) == len(texts)
    step = ticks[1] - ticks[0]
    assert ticks == pytest.approx([ticks[0] + step * at for at in range(len(ticks))])
    assert f"{step:.9e}"[0] in "125"


@pytest.mark.parametrize(
    ("high", "most", "texts"),
    [
        (97, 6, "0 20 40 60 80 100"),
        (1234, 5, "0 500 1,000 1,500"),
        (0.3, 4, "0.0 0.1 0.2 0.3"),
        (0, 5, "0.0 0.5 1.0"),
        (2.4e7, 6, "0 5M 10M 15M 20M 25M"),
        (2**53 - 1, 3, "0 5P 10P"),
    ],
)
def test_ticks_from_zero(high: float, most: int, texts: str) -> None:
    assert " ".join(format_ticks(choose_ticks(0, high, most))) == texts


@given(
    st.integers(0, LATEST),
    st.integers(1, 40_000 * DAY_MS) | st.integers(1, 40) | st.integers(1, 40 * DAY_MS),
    st.integers(1, 20),
    st.sampled_from(ZONES),
)
@settings(max_examples=50)
def test_few_ascending_time_ticks_are_inside(end: int, length: int, most: int, name: str) -> None:
    start, zone = max(end - length, 0), ZoneInfo(name)
    ticks = choose_time_ticks(start, end, most, zone)

    assert len(ticks) <= most
    instants = [tick.at for tick in ticks]
    assert instants == sorted(set(instants))
    assert all(start <= at <= end for at in instants)
    for at, label in ticks:
        local = datetime.fromtimestamp(at / 1000, zone)
        day = f"{local:%b} {local.day}"
        assert label in {f"{local:%H:%M}", day, f"{local:%b}", f"{local.year}"}


def find_labels(end: str, days: float, most: int, zone: ZoneInfo = BERLIN) -> str:
    at = int(datetime.fromisoformat(end).replace(tzinfo=UTC).timestamp() * 1000)
    ticks = choose_time_ticks(at - int(days * DAY_MS), at, most, zone)
    return ", ".join(tick.label for tick in ticks)


@pytest.mark.parametrize(
    ("days", "most", "labels"),
    [
        (0.1, 4, "18:00, 19:00"),
        (1, 4, "Mar 31, 06:00, 12:00, 18:00"),
        (7, 6, "Mar 26, Mar 28, Mar 30"),
        (30, 6, "Mar 2, Mar 9, Mar 16, Mar 23, Mar 30"),
        (90, 6, "2026, Feb, Mar"),
        (365, 4, "Apr, Jul, Oct, 2026"),
        (1000, 4, "2024, 2025, 2026"),
    ],
)
def test_labels_suit_the_length(days: float, most: int, labels: str) -> None:
    assert find_labels("2026-03-31T17:30", days, most) == labels


def test_the_clock_may_change() -> None:
    # In Berlin 02:00 is skipped on March 29 and comes twice on October 25; in São Paulo November 4
    # begins at 01:00.
    assert find_labels("2026-03-29T03:30", 0.2, 9) == "Mar 29, 01:00, 03:00, 04:00, 05:00"
    assert find_labels("2026-10-25T03:30", 0.25, 9) == "Oct 25, 01:00, 02:00, 03:00, 04:00"
    sao_paulo = ZoneInfo("America/Sao_Paulo")
    assert find_labels("2018-11-06T00:00", 3, 3, sao_paulo) == "Nov 3, Nov 4, Nov 5"


@given(st.floats(0.001, 2.0**53), st.integers(2, 12))
def test_a_scale_fits_its_rows_and_reaches_the_highest_value(high: float, rows: int) -> None:
    scale = choose_scale(high, rows)

    assert scale.top >= high
    assert scale.height <= rows
    assert set(scale.labels) <= {*range(-1, scale.height)}


def test_joined_steps_have_the_average_of_their_observations() -> None:
    steps = [(1, 10.0, 1.0), (3, 40.0, 0.5), (0, None, 0.0), (1, 0.0, 1.0), (1, 5.0, 1.0)]
    cells = [StepCell(count, 1, value, share) for count, value, share in steps]

    joined = [
        (cell.observations, cell.players, cell.observed_share) for cell in join_cells(cells, 2)
    ]
    assert joined == [(4, 32.5, 0.75), (1, 0.0, 0.5), (1, 5.0, 1.0)]


HOUR = DAY_MS // 24
START = 1_700_000_000_000 // HOUR * HOUR


def test_a_title_has_the_id_and_the_figures_and_a_name_that_fits() -> None:
    table = build_table(["Asia", "z" * 30], [[1, 2, 3], [1, 2, 3]])
    shown = render_chart(table, Screen(52)).split("\n")

    assert "0  Asia  lowest 1, highest 3 on Nov 15, last 3" in shown
    assert "1  lowest 1, highest 3 on Nov 15, last 3" in shown


@given(st.integers(1, 5), st.integers(24, 60))
def test_a_chart_fits_the_height_of_a_terminal(count: int, height: int) -> None:
    table = build_table(["x"] * count, [[at * 10.0 + 1, 0, None] for at in range(count)])
    shown = render_chart(table, Screen(80, height))

    # The last line is that of the prompt.
    assert shown.count("\n") < height
    assert shown.count("└") == 1


def test_a_table_is_below_a_chart_if_the_terminal_has_room_for_both() -> None:
    table = build_table(["x"], [[1, 2, 3]])
    for height, has_table in ((None, True), (60, True), (16, False)):
        shown = b"".join(show(table, Form.TABLE, chart=table, screen=Screen(80, height)).pieces)

        assert (b"observations" in shown) == has_table


def test_servers_have_the_colors_of_their_rows_and_share_a_scale_unless_one_is_flat() -> None:
    near, far = (
        render_chart(build_table(["x", "y"], [[40, 10], [high, 0]]), Screen(80, 24, color=True))
        for high in (20, 2)
    )

    for shown in (near, far):
        first, second = ("38;5;32m", "38;5;166m")
        assert shown.index(first) < shown.index(second)
        assert shown.count(second) > 2
    assert "the scales differ" in far
    assert "the scales differ" not in near


@given(st.integers(40, 150), st.integers(0, 23))
def test_a_tick_is_at_the_start_of_its_step(width: int, late: int) -> None:
    hours = range(late, late + count_values(Screen(width)))
    start = START - START % DAY_MS
    lines = tuple(
        StepLine(start + at * HOUR, start + (at + 1) * HOUR, (StepCell(1, 1, at % 24 // 23, 1.0),))
        for at in hours
    )
    query = HistoryQuery(Window(lines[0].start, lines[-1].end), "Etc/GMT-1")
    table = StepTable(query, (ServerName("a", "a", "a"),), lines, (), len(lines))
    _, top, *rest = render_chart(table, Screen(width)).split("\n")
    axis = next(line for line in rest if "└" in line)

    ticks = [at for at, mark in enumerate(axis) if mark == "┬"]
    assert ticks
    assert all(top[at : at + 1].strip() for at in ticks)


HOSTNAMES = st.text(st.characters(exclude_characters="│┤└", codec="utf-8"), max_size=40)
VALUES = st.none() | st.integers(0, 2**53 - 1) | st.floats(0, 100)


def build_table(hostnames: list[str], columns: list[list[float | None]]) -> StepTable:
    cells = ((StepCell(value is not None, 1, value, 1.0) for value in column) for column in columns)
    lines = tuple(
        StepLine(START + at * HOUR, START + (at + 1) * HOUR, row)
        for at, row in enumerate(zip(*cells, strict=True))
    )
    window = Window(START, START + len(lines) * HOUR)
    servers = tuple(ServerName(str(at), str(at), name) for at, name in enumerate(hostnames))
    return StepTable(HistoryQuery(window, "UTC"), servers, lines, (), len(lines))


@given(st.data(), st.integers(20, 150), st.lists(HOSTNAMES, min_size=1, max_size=5))
def test_all_values_are_drawn_in_proportion_and_nothing_else(
    data: st.DataObject, width: int, hostnames: list[str]
) -> None:
    count = data.draw(st.integers(1, count_values(Screen(width))))
    column = st.lists(VALUES, min_size=count, max_size=count)
    columns = data.draw(st.lists(column, min_size=len(hostnames), max_size=len(hostnames)))
    table = build_table(hostnames, columns)
    shown = render_chart(table, Screen(width))

    check_text(shown, width)
    check_text(render_chart(table, Screen(width, ascii_only=True)), width)
    if all(value is None for column in columns for value in column):
        assert " ".join(shown.split()) == "nothing to draw: no observations in the window"
        return
    areas = read_areas(shown, count)
    assert len(areas) == len(columns)
    for values, area in zip(columns, areas, strict=True):
        check_area(values, area)
    if "the scales differ" not in " ".join(shown.split()):
        check_area(list(chain(*columns)), list(chain(*areas)))


def check_area(values: list[float | None], drawn: list[int]) -> None:
    """Check that values have a height, other steps none, and that heights are in their order."""
    assert [height == 0 for height in drawn] == [value is None for value in values]
    pairs = [(value, dots) for value, dots in zip(values, drawn, strict=True) if value is not None]
    heights = [dots for _, dots in sorted(pairs)]
    assert heights == sorted(heights)


def check_text(shown: str, width: int) -> None:
    """Check that text fits a width and can't drive a terminal."""
    for line in shown.split("\n"):
        assert cell_len(line) <= width
        assert not {unicodedata.category(character) for character in line} & {"Cc", "Cf", "Cs"}


def read_areas(shown: str, count: int) -> list[list[int]]:
    """Return the number of dots of each of the steps in each area, each below its title."""
    lines = shown.split("\n")
    bottom = next(at for at, line in enumerate(lines) if re.fullmatch(r" *0(?:\.0+)? └[─┬]+", line))
    left, width = lines[bottom].index("└"), len(lines[bottom])
    areas: list[list[str]] = []
    for line in lines[:bottom]:
        if re.fullmatch(r" *[0-9][0-9,.kMGTP]* ┤.*| *│.*", line) and line[left] in "│┤":
            areas[-1].append(line[left + 1 :].ljust(width - left - 1))
        else:
            areas.append([])
    return [count_dots(area, count) if area else [0] * count for area in areas]


def count_dots(rows: list[str], count: int) -> list[int]:
    """Return the dots of each step, of which all columns must have as many."""
    columns = [
        sum(
            (ord(row[at // 2]) & (0x47, 0xB8)[at % 2]).bit_count()
            for row in rows
            if row[at // 2] != " "
        )
        for at in range(2 * len(rows[0]))
    ]
    steps: list[set[int]] = [set() for _ in range(count)]
    for at, dots in enumerate(columns):
        steps[(2 * at + 1) * count // (2 * len(columns))].add(dots)
    assert all(len(step) == 1 for step in steps)
    return [step.pop() for step in steps]
