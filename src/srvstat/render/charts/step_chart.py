"""Charts of players over time: an area for each server, with common axes.

Several lines in one area are illegible without color, and with it where they cross often. Areas
one below the other, with the same scale, are legible and can be compared.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from srvstat.documents.analysis import StepCell, StepLine, StepTable
from srvstat.render.axes import choose_time_ticks
from srvstat.render.changes import describe_step
from srvstat.render.charts.plot_area import COLUMN_DOTS, Point, fit_plot_areas
from srvstat.render.charts.texts import build_caption, build_title, render_nothing
from srvstat.render.charts.ticks import Tick, select_ticks
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import find_highest, format_rounded, list_whole
from srvstat.render.text import format_count

_TICK_WIDTH = 9
"""The least distance of two ticks of the time axis."""

_AGGREGATES = {
    "mean": "average players",
    "median": "median players",
    "max": "highest count",
    "min": "lowest count",
    "last": "last count",
}


def render_step_chart(table: StepTable, screen: Screen) -> str:
    """Render aggregates of steps, of all that the table has: an area for each server or a sum."""
    lines = (*table.first, *table.last)
    if not any(cell.observations for line in lines for cell in line.cells):
        return render_nothing("no observation", screen)
    edges = _widen_ends([lines[0].start, *(line.end for line in lines)])
    columns = list(zip(*(line.cells for line in lines), strict=True))
    highs = [find_highest(cells) or 0 for cells in columns]
    areas = fit_plot_areas(screen, highs)
    width = areas[0].width
    steps = _assign_steps(edges, areas[0].capacity)
    ticks = select_ticks(_iter_ticks(edges, width, ZoneInfo(table.query.zone)), width)
    parts = []
    for title, cells, area in zip(_list_titles(table), columns, areas, strict=True):
        parts.append(build_title(*title, _describe_cells(cells), screen))
        points = [Point(cell.players, cell.is_partial) for cell in cells]
        drawn = area.draw([points[step] for step in steps], ticks)
        # Without values, the axis is enough.
        parts += drawn if any(cell.observations for cell in cells) else drawn[-1:]
    caption = build_caption(_describe_chart(table, lines), [area.scale.top for area in areas])
    return screen.render(*parts, areas[0].label_axis(ticks), caption)


def _list_titles(table: StepTable) -> list[tuple[str, str]]:
    """Return the hostname and the identifier of each area."""
    if table.query.is_sum:
        title = f"sum of {format_count(len(table.servers), 'server')}"
        return [(title, title)]
    return [(server.hostname, server.server_id) for server in table.servers]


def _describe_cells(cells: Sequence[StepCell]) -> str:
    """Return the figures of whole steps."""
    if not any(cell.observations for cell in cells):
        return "no observation"
    whole = list_whole(cells)
    figures = {
        "lowest": min(whole, default=None),
        "highest": max(whole, default=None),
        "last": whole[-1] if whole else None,
    }
    return ", ".join(f"{name} {format_rounded(value, 1)}" for name, value in figures.items())


def _describe_chart(table: StepTable, lines: Sequence[StepLine]) -> Iterator[str]:
    added = ", added up" if table.query.is_sum else ""
    step = describe_step(table.query.step or "step")
    what = f"{_AGGREGATES[table.query.aggregate]} in steps of {step}"
    yield f"{what}{added}, in {table.query.zone}"
    if table.query.is_sum:
        partial = sum(0 < line.cells[0].servers < len(table.servers) for line in lines)
        if partial:
            yield f"without some servers in {partial:,} of {format_count(len(lines), 'value')}"
    if any(cell.players is None for line in lines for cell in line.cells):
        yield "blank is no observation"
    if table.has_partial:
        yield f"a line without an area below it is part of {step}"


def _widen_ends(edges: Sequence[int]) -> Sequence[int]:
    """Return the edges with whole steps at the ends, which are too narrow where they are cut."""
    if len(edges) < 4:  # noqa: PLR2004 - no step has two neighbors
        return edges
    first, second, *_, second_last, last = edges
    start = min(first, second - (edges[2] - second))
    return [start, *edges[1:-1], max(last, second_last + (second_last - edges[-3]))]


def _assign_steps(edges: Sequence[int], count: int) -> list[int]:
    """Return the step in the middle of each of some equal parts of the time between edges."""
    start, length = edges[0], edges[-1] - edges[0]
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    return [bisect_right(edges, middle) - 1 for middle in middles]


def _iter_ticks(edges: Sequence[int], width: int, zone: ZoneInfo) -> Iterator[Tick]:
    start, end = edges[0], edges[-1]
    length, parts = end - start, width * COLUMN_DOTS
    for at, label in choose_time_ticks(start, end, max(width // _TICK_WIDTH, 1), zone):
        # The first part with its middle at the tick or after it, where a step from then on begins.
        part = -((length - 2 * parts * (at - start)) // (2 * length))
        yield Tick(part // COLUMN_DOTS, label, is_centered=True)
