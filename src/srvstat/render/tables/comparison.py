"""The table of a comparison: a table of servers with a drawing for each, or cards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.analysis import ComparedServer, Comparison
from srvstat.render.figures import (
    describe_drawings,
    describe_step,
    draw_averages,
    format_current,
    format_first_last,
    format_rounded,
    format_whole,
    name_first_last,
)
from srvstat.render.screen import Renderers, Screen, build_fields_grid
from srvstat.render.tables.server_table import (
    GAP,
    MIN_NAME_WIDTH,
    MIN_TABLE_WIDTH,
    USUAL_NAME_WIDTH,
    ServerCells,
    build_card_figures,
    build_line,
    escape_server,
    get_width,
    join_at_columns,
    measure_columns,
    measure_figures,
)
from srvstat.render.text import format_count, format_date, format_time, format_window

_HEADERS = ("current", "average", "median", "peak", "lowest")
_USUAL_WIDTHS = (7, 7, 6, 5, 6, 14)
"""The minimum width of each column of figures, the last one that of the first and last count."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The parts of one server; `observed` has its usual lines and its narrow ones."""

    cells: ServerCells
    drawing: Text
    observed: tuple[list[str], list[str]]


class _Layout(NamedTuple):
    """The widths of ids and figures, and the column of drawings: beside figures or below them."""

    widths: tuple[int, ...]
    name_width: int
    drawing_at: int
    is_beside: bool = False
    is_narrow: bool = False


def render_comparison(comparison: Comparison, screen: Screen) -> str:
    """Render a comparison, and below it notes on the figures and drawings."""
    headers = (*_HEADERS, name_first_last(ascii_only=screen.ascii_only))
    rows = [_build_row(server, comparison, screen) for server in comparison.servers]
    layout = _find_layout(headers, rows, screen)
    if layout is None:
        lines: Iterable[RenderableType] = _build_cards(headers, rows, screen)
    else:
        lines = [*_build_lines(headers, rows, layout, comparison, screen), Text()]
    return screen.render(*lines, _build_notes(comparison, screen))


def _build_row(server: ComparedServer, comparison: Comparison, screen: Screen) -> _Row:
    result = server.result
    ends = server.first_players, result.growth.players
    figures = (
        format_rounded(result.averagePlayers, 2),
        format_rounded(result.medianPlayers, 1),
        format_whole(result.peakPlayers),
        format_whole(result.lowestPlayers),
        format_first_last(*ends, ascii_only=screen.ascii_only),
    )
    names = (server.hostname, result.serverId, result.cfxId)
    current = format_current(
        result.currentPlayers, server.last_observed_at, comparison.snapshot_as_of
    )
    cells = escape_server(screen, names, (current, *map(Text, figures)))
    drawing = Text(draw_averages(server.cells, ascii_only=screen.ascii_only))
    for at, cell in enumerate(server.cells, 1):  # after the frame
        if cell.is_partial:
            drawing.stylize("dim", at, at + 1)
    observed = _describe_observations(server, comparison)
    return _Row(cells, drawing, observed)


def _describe_observations(
    server: ComparedServer, comparison: Comparison
) -> tuple[list[str], list[str]]:
    """Return lines that say how much of the window was observed, and the same in less width."""
    observations = format_count(server.result.sampleCount, "observation")
    if not server.result.sampleCount or server.observed_spans >= comparison.span_count:
        return [observations], [observations]
    unit = "hours" if comparison.response.range == "24h" else "days"
    spans = f"in {server.observed_spans} of {comparison.span_count} {unit}"
    return [f"{server.result.sampleCount:,} {spans}"], [observations, spans]


def _find_layout(headers: Sequence[str], rows: Sequence[_Row], screen: Screen) -> _Layout | None:
    """Return the first layout that fits the screen; None if no table fits."""
    width = get_width(screen)
    cells = [row.cells for row in rows]
    longest_title = max(row.title.cell_len for row in cells)
    if width < max(MIN_TABLE_WIDTH, longest_title):
        return None
    widths = measure_columns(headers, cells, _USUAL_WIDTHS)
    figures, drawing = measure_figures(widths), max(len(row.drawing) for row in rows)
    names = max(USUAL_NAME_WIDTH, longest_title)
    identifiers = max(GAP + row.names_width for row in cells)
    layouts = []
    room = width - figures - drawing - 2 * GAP
    if room >= USUAL_NAME_WIDTH:
        name_width = min(room, max(names, identifiers - figures - GAP))
        layouts.append(_Layout(widths, name_width, name_width + figures + 2 * GAP, is_beside=True))
    room = width - figures - GAP
    for is_narrow in (False, True) if room >= MIN_NAME_WIDTH else ():
        observed = max(len(line) for row in rows for line in row.observed[is_narrow])
        name_width = min(room, max(names, identifiers))
        drawing_at = min(max(name_width, identifiers) + GAP, width - drawing - GAP - observed)
        layouts.append(_Layout(widths, name_width, drawing_at, is_narrow=is_narrow))
    for layout in layouts:
        room = layout.drawing_at - 2 * GAP
        if all(line.cell_len <= room for row in cells for line in row.list_names(room, screen)):
            return layout
    return None


def _build_lines(
    headers: Sequence[str],
    rows: Sequence[_Row],
    layout: _Layout,
    comparison: Comparison,
    screen: Screen,
) -> Iterator[Text]:
    drawing_at = observed_at = layout.drawing_at
    header = build_line(Text("server"), map(Text, headers), layout.name_width, layout.widths)
    if layout.is_beside:
        header = join_at_columns((0, header), (drawing_at, Text(comparison.response.range)))
    else:
        observed_at += max(len(row.drawing) for row in rows) + GAP
    header.stylize("bold")
    yield header
    for row in rows:
        figures, rest = row.cells.build_figures(layout.name_width, layout.widths, screen)
        drawn = [(drawing_at, row.drawing)]
        yield from figures[:-1]
        yield join_at_columns((0, figures[-1]), *(drawn if layout.is_beside else []))
        names = rest.list_names(drawing_at - 2 * GAP, screen)
        lines = zip_longest(names, row.observed[layout.is_narrow])
        for number, (name, seen) in enumerate(lines):
            beside = [] if number or layout.is_beside else drawn
            yield join_at_columns((GAP, name or Text()), *beside, (observed_at, Text(seen or "")))


def _build_cards(
    headers: Sequence[str], rows: Sequence[_Row], screen: Screen
) -> Iterator[RenderableType]:
    """Yield a block of lines for each server; the figures of all blocks share columns."""
    width = get_width(screen)
    figures = build_card_figures(headers, [row.cells for row in rows], width)
    for row, lines in zip(rows, figures, strict=True):
        yield from row.cells.build_card_head(width)
        yield from lines
        observed = row.observed[False]
        beside = len(row.drawing) + GAP
        if beside + max(map(len, observed)) <= width:
            yield join_at_columns((0, row.drawing), (beside, Text(observed[0])))
            yield from (join_at_columns((beside, Text(line))) for line in observed[1:])
        else:
            cuts = range(0, len(row.drawing), width)
            yield from (row.drawing[at : at + width] for at in cuts)
            yield from map(Text, observed)
        yield Text()


def _build_notes(comparison: Comparison, screen: Screen) -> Table:
    start, end = comparison.window
    fields: list[tuple[str, str]] = [
        ("window", format_window(start, end)),
        ("as of", format_time(end)),
        (
            name_first_last(ascii_only=screen.ascii_only),
            "the API's growth: two moments, mostly at different times of day",
        ),
    ]
    if end != comparison.snapshot_as_of:
        record = f"from the server record, as of {format_time(comparison.snapshot_as_of)}"
        fields.insert(2, ("current", record))
    drawn = [(server.result.serverId, server.cells) for server in comparison.servers]
    marks, scale = describe_drawings(drawn, describe_step(comparison.cell_step), screen)
    dates = f"{format_date(start)} to {format_date(end)}"
    fields.append((comparison.response.range, f"{dates}, {marks}"))
    if scale:
        fields.append(("scale", scale))
    return build_fields_grid(fields, screen)


RENDERERS: Renderers = {
    Comparison: render_comparison,
}
