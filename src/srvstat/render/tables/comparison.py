"""The table of a comparison, or a card for each server where the table does not fit.

Builds lines itself, not with a Rich table: the figures of all servers share columns, while the line
below them, with identifiers and a drawing, has columns of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract.ranges import Range
from srvstat.documents.comparison import ComparedServer, Comparison
from srvstat.render.fields import build_fields_grid
from srvstat.render.screen import NATURAL_WIDTH, Screen
from srvstat.render.tables.figures import (
    describe_observations,
    draw_averages,
    format_figures,
    format_growths,
    format_highest_average,
)
from srvstat.render.text import format_date, format_exact_duration, format_time

CELLS: dict[Range, int] = {"24h": 24, "7d": 28, "30d": 30, "90d": 30, "1y": 30}
"""The number of marks in a drawing, by range."""

_GAP = 2
_CARD_GAP = 3
_MIN_TABLE_WIDTH = 80
_MIN_NAME_WIDTH = 12
_USUAL_NAME_WIDTH = 24
_USUAL_WIDTHS = {"current": 7, "average": 7, "median": 6, "peak": 5, "lowest": 6, "growth": 12}
"""The figures of a server, and the minimum width of each column."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The parts of one server; `observed` has its usual lines and its narrow ones."""

    hostname: Text
    names: tuple[str, ...]
    figures: tuple[Text, ...]
    drawing: str
    observed: tuple[list[str], list[str]]

    def list_identifiers(self, name_width: int, width: int) -> list[str]:
        """Return lines with id and cfxId. Omits one that equals a hostname shown in full."""
        is_whole = self.hostname.cell_len <= name_width
        names = [name for name in self.names if not (is_whole and name == self.hostname.plain)]
        on_one_line = "  ".join(names)
        return [on_one_line] if names and cell_len(on_one_line) <= width else names


class _Widths(NamedTuple):
    """The widths of the parts of a table."""

    columns: tuple[int, ...]
    drawing: int
    names: int
    identifiers: int

    @property
    def figures(self) -> int:
        return sum(self.columns) + _GAP * (len(self.columns) - 1)


class _Layout(NamedTuple):
    """The width of names and the column of drawings, beside the figures or below them."""

    name_width: int
    drawing_at: int
    is_beside: bool
    is_narrow: bool


def render_comparison(comparison: Comparison, screen: Screen) -> str:
    """Render a comparison, and below it notes on the figures and drawings."""
    growths = format_growths(comparison.servers, ascii_only=screen.ascii_only)
    rows = [
        _build_row(server, growth, comparison, screen)
        for server, growth in zip(comparison.servers, growths, strict=True)
    ]
    widths = _measure_widths(rows)
    layout = _find_layout(rows, widths, screen)
    if layout is None:
        return screen.render(*_build_cards(rows, screen), _build_notes(comparison, screen))
    lines = [_build_header(comparison, layout, widths)]
    for row in rows:
        lines += _build_lines(row, layout, widths, screen)
    return screen.render(*lines, Text(), _build_notes(comparison, screen))


def _build_row(
    server: ComparedServer, growth: Text, comparison: Comparison, screen: Screen
) -> _Row:
    result = server.result
    names = (screen.escape(name).plain for name in (result.serverId, result.cfxId))
    texts = {name: Text(text) for name, text in format_figures(result).items()}
    figures = {**texts, "growth": growth}
    return _Row(
        screen.escape_cell(server.hostname, "bold"),
        tuple(dict.fromkeys(names)),
        tuple(figures[name] for name in _USUAL_WIDTHS),
        draw_averages(server.averages),
        (
            describe_observations(server, comparison, is_narrow=False),
            describe_observations(server, comparison, is_narrow=True),
        ),
    )


def _measure_widths(rows: Sequence[_Row]) -> _Widths:
    figures = zip(_USUAL_WIDTHS.values(), *(row.figures for row in rows), strict=True)
    return _Widths(
        tuple(max(least, *map(len, column)) for least, *column in figures),
        max(len(row.drawing) for row in rows),
        max(_USUAL_NAME_WIDTH, *(row.hostname.cell_len for row in rows)),
        max(_GAP + cell_len("  ".join(row.names)) for row in rows),
    )


def _find_layout(rows: Sequence[_Row], widths: _Widths, screen: Screen) -> _Layout | None:
    """Return the first layout that fits the screen; None if no table fits."""
    width = NATURAL_WIDTH if screen.width is None else screen.width
    if width < _MIN_TABLE_WIDTH:
        return None
    layouts = [_lay_out_beside(widths, width)]
    for is_narrow in (False, True):
        observed = max(len(line) for row in rows for line in row.observed[is_narrow])
        layouts.append(_lay_out_below(widths, width, observed, is_narrow=is_narrow))
    return next((layout for layout in layouts if layout and _fits(rows, layout)), None)


def _lay_out_beside(widths: _Widths, width: int) -> _Layout | None:
    """Give drawings a column of their own, on the lines of the figures."""
    room = width - widths.figures - widths.drawing - 2 * _GAP
    if room < _USUAL_NAME_WIDTH:
        return None
    name_width = min(room, max(widths.names, widths.identifiers - widths.figures - _GAP))
    return _Layout(name_width, name_width + widths.figures + 2 * _GAP, True, is_narrow=False)


def _lay_out_below(
    widths: _Widths, width: int, observed: int, *, is_narrow: bool
) -> _Layout | None:
    """Put drawings on the lines of the identifiers."""
    room = width - widths.figures - _GAP
    if room < _MIN_NAME_WIDTH:
        return None
    name_width = min(room, max(widths.names, widths.identifiers))
    drawing_at = min(
        max(name_width, widths.identifiers) + _GAP, width - widths.drawing - _GAP - observed
    )
    return _Layout(name_width, drawing_at, False, is_narrow)


def _fits(rows: Sequence[_Row], layout: _Layout) -> bool:
    return all(
        _GAP + cell_len(line) + _GAP <= layout.drawing_at
        for row in rows
        for line in _list_identifiers(row, layout)
    )


def _list_identifiers(row: _Row, layout: _Layout) -> list[str]:
    return row.list_identifiers(layout.name_width, layout.drawing_at - 2 * _GAP)


def _build_header(comparison: Comparison, layout: _Layout, widths: _Widths) -> Text:
    names = map(Text, _USUAL_WIDTHS)
    parts = [(0, Text("server")), *_place_figures(tuple(names), layout, widths)]
    if layout.is_beside:
        parts.append((layout.drawing_at, Text(comparison.response.range)))
    header = _join_at_columns(*parts)
    header.stylize("bold")
    return header


def _build_lines(row: _Row, layout: _Layout, widths: _Widths, screen: Screen) -> Iterator[Text]:
    name = screen.truncate(row.hostname, layout.name_width)
    first = [(0, name), *_place_figures(row.figures, layout, widths)]
    drawn = (layout.drawing_at, Text(row.drawing))
    observed_at = layout.drawing_at
    if layout.is_beside:
        first.append(drawn)
    else:
        observed_at += widths.drawing + _GAP
    yield _join_at_columns(*first)
    lines = zip_longest(_list_identifiers(row, layout), row.observed[layout.is_narrow])
    for number, (names, seen) in enumerate(lines):
        beside = [drawn] if number == 0 and not layout.is_beside else []
        yield _join_at_columns(
            (_GAP, Text(names or "", "dim")),
            *beside,
            (observed_at, Text(seen or "")),
        )


def _place_figures(
    cells: Sequence[Text], layout: _Layout, widths: _Widths
) -> Iterator[tuple[int, Text]]:
    """Yield each figure, right-aligned in its column, after the position where it starts."""
    end = layout.name_width
    for cell, width in zip(cells, widths.columns, strict=True):
        end += _GAP + width
        yield end - len(cell), cell


def _join_at_columns(*parts: tuple[int, Text]) -> Text:
    """Return one line with each text at its column, counted from 0."""
    line = Text(no_wrap=True, overflow="ignore")
    for start, part in parts:
        line.append(" " * (start - line.cell_len))
        line.append_text(part)
    return line


def _build_cards(rows: Sequence[_Row], screen: Screen) -> Iterator[RenderableType]:
    """Yield a block of lines for each server; the figures of all blocks share columns."""
    width = NATURAL_WIDTH if screen.width is None else screen.width
    figures = [_build_card_figures(rows, count) for count in (3, 2, 1)]
    fitting = next((cards for cards in figures if len(cards[0][0]) <= width), figures[-1])
    for row, lines in zip(rows, fitting, strict=True):
        yield row.hostname
        for names in row.list_identifiers(NATURAL_WIDTH, width):
            yield Text(names, "dim", overflow="fold")
        yield from lines
        observed = row.observed[False]
        beside = len(row.drawing) + _GAP
        if beside + max(map(len, observed)) <= width:
            yield _join_at_columns((0, Text(row.drawing)), (beside, Text(observed[0])))
            yield from (_join_at_columns((beside, Text(line))) for line in observed[1:])
        else:
            cuts = range(0, len(row.drawing), width)
            yield from (Text(row.drawing[at : at + width]) for at in cuts)
            yield from map(Text, observed)
        yield Text()


def _build_card_figures(rows: Sequence[_Row], count: int) -> list[list[Text]]:
    """Return the lines of figures of each card, `count` figures a line, in equal widths."""
    names = list(_USUAL_WIDTHS)
    name_widths = [max(map(len, names[at::count])) for at in range(count)]
    value_widths = [
        max(len(value) for row in rows for value in row.figures[at::count]) for at in range(count)
    ]
    cards = []
    for row in rows:
        lines = []
        for start in range(0, len(names), count):
            line = Text(overflow="fold")
            for at in range(min(count, len(names) - start)):
                value = row.figures[start + at]
                line.append(" " * (_CARD_GAP if at else 0))
                line.append(names[start + at].ljust(name_widths[at] + _GAP), "dim")
                line.append(" " * (value_widths[at] - len(value)))
                line.append_text(value)
            lines.append(line)
        cards.append(lines)
    return cards


def _build_notes(comparison: Comparison, screen: Screen) -> Table:
    start, end = comparison.window
    fields: list[tuple[str, str]] = [
        ("window", f"after {format_time(start)}, to {format_time(end)} inclusive"),
        ("as of", format_time(end)),
        ("growth", "from the first observation in the window to the last"),
    ]
    if end != comparison.snapshot_as_of:
        record = f"from the server record, as of {format_time(comparison.snapshot_as_of)}"
        fields.insert(2, ("current", record))
    mark = f"each mark is the average of {format_exact_duration(comparison.cell_ms)}"
    meaning = f"{format_date(start)} to {format_date(end)}, {mark}; ▁ is 0, blank is no observation"
    fields.append((comparison.response.range, meaning))
    tops = [
        f"{screen.escape(server.result.serverId).plain} {top}"
        for server in comparison.servers
        if (top := format_highest_average(server.averages)) is not None
    ]
    if tops:
        fields.append(("scale", f"each row from 0 to its highest average: {', '.join(tops)}"))
    return build_fields_grid(fields, screen)
