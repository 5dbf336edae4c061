"""Charts of players over time."""

import re
import unicodedata
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from srvstat.contract.time import DAY_MS, Window
from srvstat.documents.analysis import HistoryQuery, ServerName, StepCell, StepLine, StepTable
from srvstat.render.charts import count_values, render_chart
from srvstat.render.screen import Screen

HOUR = DAY_MS // 24
START = 1_700_000_000_000 // HOUR * HOUR


def test_a_title_has_the_id_and_the_figures_and_a_name_that_fits() -> None:
    table = build_table(["Asia", "z" * 30], [[1, 2, 3], [1, 2, 3]])
    shown = render_chart(table, Screen(40)).split("\n")

    assert "0  Asia  lowest 1, highest 3, last 3" in shown
    assert "1  lowest 1, highest 3, last 3" in shown


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
        assert " ".join(shown.split()) == "nothing to draw: no observation in the window"
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
    """Return the number of dots of each of the steps in each area."""
    lines = shown.split("\n")
    bottom = re.compile(r" *0(?:\.0+)? └[─┬]+")
    axis = next(line for line in lines if bottom.fullmatch(line))
    left, width = axis.index("└"), len(axis)
    areas: list[list[str]] = [[]]
    for line in lines:
        if bottom.fullmatch(line):
            areas.append([])
        elif re.fullmatch(r" *[0-9][0-9,.kMGTP]* ┤.*| *│.*", line) and line[left] in "│┤":
            areas[-1].append(line[left + 1 :].ljust(width - left - 1))
    return [count_dots(area, count) if area else [0] * count for area in areas[:-1]]


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
        steps[int((at + 0.5) / len(columns) * count)].add(dots)
    assert all(len(step) == 1 for step in steps)
    return [step.pop() for step in steps]
