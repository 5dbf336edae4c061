"""Charts of players over time: an area for each server, with common axes.

Several lines in one area are illegible without color, and with it where they cross often. Areas
one below the other, with the same scale, are legible and can be compared.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.history import ServerName, StepCell, StepTable
from srvstat.render.axes import choose_time_ticks
from srvstat.render.charts.plot_area import PlotArea, fit_plot_area, get_chart_width
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_rounded
from srvstat.render.text import format_count, format_duration

_HEIGHTS = {1: 11, 2: 9, 3: 7}
_SMALL_HEIGHT = 5
"""The rows of an area, by the number of servers; five areas fit a usual screen."""

_TICK_WIDTH = 9
"""The least distance of two ticks of the time axis."""

_LEAST_TITLE_WIDTH = 20
_GAP = 2

_AGGREGATES = {
    "mean": "average",
    "median": "median",
    "max": "highest count",
    "min": "lowest count",
    "last": "last count",
}

_Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class _LineChart:
    """What a chart shows: a value for each step between edges, and None for a blank.

    `titles` name the areas: hostnames, or what is not foreign. `notes` say what a value is.
    """

    edges: Sequence[int]
    titles: Sequence[str]
    values: Sequence[_Values]
    zone: str
    notes: Sequence[str]


def render_step_chart(table: StepTable, screen: Screen) -> str:
    """Render aggregates of steps, of all that the table has: an area for each server or a sum."""
    lines = (*table.first, *table.last)
    if not any(cell.observations for line in lines for cell in line.cells):
        return screen.render(Text("no chart: no observation in the window"))
    edges = [line.start for line in lines[:1]] + [line.end for line in lines]
    columns = list(zip(*(line.cells for line in lines), strict=True))
    titles = _choose_titles(table.servers)
    value = f"each value is the {_AGGREGATES[table.query.aggregate]} of {_describe_steps(edges)}"
    notes = [value]
    if table.query.is_sum:
        notes = [f"{value}, added up", *_describe_missing(columns[0], len(titles))]
        titles = [f"sum of {format_count(len(titles), 'server')}"]
    chart = _LineChart(
        edges=_widen_ends(edges),
        titles=titles,
        values=[[cell.players for cell in column] for column in columns],
        zone=table.query.zone,
        notes=notes,
    )
    return _render_chart(chart, screen)


def _choose_titles(servers: Sequence[ServerName]) -> list[str]:
    """Return hostnames, but identifiers before those that are blank or repeated."""
    counts = Counter(server.hostname for server in servers)
    return [
        server.hostname
        if counts[server.hostname] == 1 and server.hostname.strip()
        else f"{server.server_id}  {server.hostname}"
        for server in servers
    ]


def _describe_steps(edges: Sequence[int]) -> str:
    """Name the usual length of the steps. The window and changes of the clock cut some of them."""
    lengths = sorted(end - start for start, end in pairwise(edges[1:-1] if edges[3:] else edges))
    usual = lengths[len(lengths) // 2]
    if usual < DAY_MS:
        return format_duration(usual)
    least, most = (round(length / DAY_MS) for length in (lengths[0], lengths[-1]))
    return ("" if least == most else f"{least:,} to ") + format_count(most, "day")


def _describe_missing(cells: Sequence[StepCell], servers: int) -> Iterator[str]:
    """Say in how many steps a sum is without some of its servers."""
    if partial := sum(0 < cell.servers < servers for cell in cells):
        yield f"without some servers in {partial:,} of {format_count(len(cells), 'value')}"


def _widen_ends(edges: Sequence[int]) -> Sequence[int]:
    """Return the edges with whole steps at the ends, which are too narrow where they are cut."""
    if len(edges) < 4:  # noqa: PLR2004 - no step has two neighbors
        return edges
    first, second, *_, second_last, last = edges
    start = min(first, second - (edges[2] - second))
    return [start, *edges[1:-1], max(last, second_last + (second_last - edges[-3]))]


def _render_chart(chart: _LineChart, screen: Screen) -> str:
    known = [value for value in chain(*chart.values) if value is not None]
    height = _HEIGHTS.get(len(chart.titles), _SMALL_HEIGHT)
    area = fit_plot_area(screen, max(known), height)
    columns = _assign_steps(chart.edges, area.capacity)
    parts: list[Text] = []
    for title, values in zip(_build_titles(chart, screen), chart.values, strict=True):
        parts += [*title, *area.draw([values[step] for step in columns])]
    parts += area.draw_axis(_list_time_ticks(chart, area))
    return screen.render(*parts, _build_notes(chart))


def _assign_steps(edges: Sequence[int], count: int) -> list[int]:
    """Return the step in the middle of each of some equal parts of the time between edges."""
    start, length = edges[0], edges[-1] - edges[0]
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    return [bisect_right(edges, middle) - 1 for middle in middles]


def _list_time_ticks(chart: _LineChart, area: PlotArea) -> list[tuple[float, str]]:
    start, end = chart.edges[0], chart.edges[-1]
    ticks = choose_time_ticks(start, end, max(area.width // _TICK_WIDTH, 1), ZoneInfo(chart.zone))
    return [((tick.at - start) / (end - start), tick.label) for tick in ticks]


def _build_titles(chart: _LineChart, screen: Screen) -> list[list[Text]]:
    """Return the lines above each area: the title, and beside or below it what is drawn."""
    titles = [screen.escape_cell(title, "bold") for title in chart.titles]
    figures = _format_figures(chart.values)
    width = get_chart_width(screen)
    longest = max(title.cell_len for title in titles)
    room = width - max(map(len, figures)) - _GAP
    if room < min(longest, _LEAST_TITLE_WIDTH):
        return [
            [screen.truncate(title, width), Text(text)]
            for title, text in zip(titles, figures, strict=True)
        ]
    found = []
    for title, text in zip(titles, figures, strict=True):
        shown = screen.truncate(title, room)
        padding = " " * (min(longest, room) - shown.cell_len + _GAP)
        line = Text.assemble(shown, padding, text, no_wrap=True, overflow="crop")
        found.append([line])
    return found


def _format_figures(columns: Sequence[_Values]) -> list[str]:
    """Return the lowest, the highest and the last value of each server, aligned."""
    rows = []
    for values in columns:
        known = [value for value in values if value is not None]
        figures = (min(known), max(known), known[-1]) if known else ()
        rows.append([format_rounded(value, 1) for value in figures])
    widths = [max(map(len, column)) for column in zip(*filter(None, rows), strict=True)]
    names = ("lowest", "highest", "last")
    return [
        "  ".join(
            f"{name} {text.rjust(width)}"
            for name, text, width in zip(names, row, widths, strict=True)
        )
        if row
        else "no observation"
        for row in rows
    ]


def _build_notes(chart: _LineChart) -> Text:
    notes = [*chart.notes]
    if any(None in values for values in chart.values):
        notes.append("blank: no observation")
    notes.append(f"times: {chart.zone}")
    return Text("; ".join(notes), "dim")
