"""The table of a comparison: a table of servers with a drawing for each, or cards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.analysis import ComparedServer, Comparison, StepCell
from srvstat.render.figures import (
    describe_drawings,
    describe_observations,
    describe_step,
    draw_averages,
    format_current,
    format_first_last,
    format_rounded,
    format_whole,
    name_first_last,
)
from srvstat.render.screen import Screen, build_fields_grid
from srvstat.render.tables.server_table import (
    GAP,
    MIN_NAME_WIDTH,
    MIN_TABLE_WIDTH,
    USUAL_NAME_WIDTH,
    ServerCells,
    ServerLines,
    build_card_figures,
    build_line,
    escape_server,
    get_width,
    join_at_columns,
    measure_columns,
    measure_figures,
)
from srvstat.render.text import format_date, format_time, format_window

_HEADERS = ("current", "average", "median", "peak", "lowest")
_USUAL_WIDTHS = (7, 7, 6, 5, 6, 14)
"""The minimum width of each column of figures, the last one that of the first and last count."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The parts of one server; `observed` has its usual lines and its narrow ones."""

    cells: ServerCells
    drawing: Text
    observed: tuple[list[str], list[str]]


class _Widths(NamedTuple):
    """The widths of the parts of a table."""

    columns: tuple[int, ...]
    drawing: int
    names: int
    identifiers: int

    @property
    def figures(self) -> int:
        return measure_figures(self.columns)


class _Layout(NamedTuple):
    """The width of ids and the column of drawings, beside the figures or below them."""

    name_width: int
    drawing_at: int
    is_beside: bool
    is_narrow: bool


def render_comparison(comparison: Comparison, screen: Screen) -> str:
    """Render a comparison, and below it notes on the figures and drawings."""
    headers = (*_HEADERS, name_first_last(ascii_only=screen.ascii_only))
    rows = [_build_row(server, comparison, screen) for server in comparison.servers]
    widths = _measure_widths(headers, rows)
    layout = _find_layout(rows, widths, screen)
    if layout is None:
        return screen.render(*_build_cards(headers, rows, screen), _build_notes(comparison, screen))
    lines = [_build_header(headers, comparison, layout, widths)]
    for row in rows:
        lines += _build_lines(row, layout, widths, screen)
    return screen.render(*lines, Text(), _build_notes(comparison, screen))


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
    names = (result.serverId, result.cfxId)
    current = format_current(
        result.currentPlayers, server.last_observed_at, comparison.snapshot_as_of
    )
    lines = ServerLines(server.hostname, names, (current, *map(Text, figures)), notes=())
    return _Row(
        escape_server(lines, screen),
        _draw_cells(server.cells, screen),
        (
            describe_observations(server, comparison, is_narrow=False),
            describe_observations(server, comparison, is_narrow=True),
        ),
    )


def _draw_cells(cells: Sequence[StepCell], screen: Screen) -> Text:
    drawing = Text(draw_averages(cells, ascii_only=screen.ascii_only))
    for at, cell in enumerate(cells, 1):  # after the frame
        if cell.is_partial:
            drawing.stylize("dim", at, at + 1)
    return drawing


def _measure_widths(headers: Sequence[str], rows: Sequence[_Row]) -> _Widths:
    cells = [row.cells for row in rows]
    return _Widths(
        measure_columns(headers, cells, _USUAL_WIDTHS),
        max(len(row.drawing) for row in rows),
        max(USUAL_NAME_WIDTH, *(row.title.cell_len for row in cells)),
        max(GAP + row.names_width for row in cells),
    )


def _find_layout(rows: Sequence[_Row], widths: _Widths, screen: Screen) -> _Layout | None:
    """Return the first layout that fits the screen; None if no table fits."""
    width = get_width(screen)
    if width < max(MIN_TABLE_WIDTH, *(row.cells.title.cell_len for row in rows)):
        return None
    layouts = [_lay_out_beside(widths, width)]
    for is_narrow in (False, True):
        observed = max(len(line) for row in rows for line in row.observed[is_narrow])
        layouts.append(_lay_out_below(widths, width, observed, is_narrow=is_narrow))
    return next((layout for layout in layouts if layout and _fits(rows, layout, screen)), None)


def _lay_out_beside(widths: _Widths, width: int) -> _Layout | None:
    """Give drawings a column of their own, on the lines of the figures."""
    room = width - widths.figures - widths.drawing - 2 * GAP
    if room < USUAL_NAME_WIDTH:
        return None
    name_width = min(room, max(widths.names, widths.identifiers - widths.figures - GAP))
    return _Layout(name_width, name_width + widths.figures + 2 * GAP, True, is_narrow=False)


def _lay_out_below(
    widths: _Widths, width: int, observed: int, *, is_narrow: bool
) -> _Layout | None:
    """Put drawings on the lines of the identifiers."""
    room = width - widths.figures - GAP
    if room < MIN_NAME_WIDTH:
        return None
    name_width = min(room, max(widths.names, widths.identifiers))
    drawing_at = min(
        max(name_width, widths.identifiers) + GAP, width - widths.drawing - GAP - observed
    )
    return _Layout(name_width, drawing_at, False, is_narrow)


def _fits(rows: Sequence[_Row], layout: _Layout, screen: Screen) -> bool:
    room = layout.drawing_at - 2 * GAP
    return all(line.cell_len <= room for row in rows for line in row.cells.list_names(room, screen))


def _build_header(
    headers: Sequence[str], comparison: Comparison, layout: _Layout, widths: _Widths
) -> Text:
    header = build_line(Text("server"), map(Text, headers), layout.name_width, widths.columns)
    if layout.is_beside:
        header = join_at_columns((0, header), (layout.drawing_at, Text(comparison.response.range)))
    header.stylize("bold")
    return header


def _build_lines(row: _Row, layout: _Layout, widths: _Widths, screen: Screen) -> Iterator[Text]:
    figures, rest = row.cells.build_figures(layout.name_width, widths.columns, screen)
    yield from figures[:-1]
    first = [(0, figures[-1])]
    drawn = (layout.drawing_at, row.drawing)
    observed_at = layout.drawing_at
    if layout.is_beside:
        first.append(drawn)
    else:
        observed_at += widths.drawing + GAP
    yield join_at_columns(*first)
    names_lines = rest.list_names(layout.drawing_at - 2 * GAP, screen)
    lines = zip_longest(names_lines, row.observed[layout.is_narrow])
    for number, (names, seen) in enumerate(lines):
        beside = [drawn] if number == 0 and not layout.is_beside else []
        yield join_at_columns((GAP, names or Text()), *beside, (observed_at, Text(seen or "")))


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
