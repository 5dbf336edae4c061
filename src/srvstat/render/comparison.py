"""A comparison: a table where it fits, else a card for each server.

Lines are put together here, not by Rich: the figures keep their columns for every server, while the
line below them, with identifiers and a drawing, has columns of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.views import ComparisonView, ServerView
from srvstat.render.fields import fields_grid
from srvstat.render.figures import drawing, figures_of, growths, highest_mark, observed_lines
from srvstat.render.screen import NATURAL_WIDTH, Screen
from srvstat.render.text import date_text, exact_duration, instant_text

_GAP = 2
_CARD_GAP = 3
_LEAST_TABLE_WIDTH = 80
_LEAST_NAME_WIDTH = 12
_USUAL_NAME_WIDTH = 24
_USUAL_WIDTHS = {"current": 7, "average": 7, "median": 6, "peak": 5, "lowest": 6, "growth": 12}
"""The figures of a server, and the least width of each column."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What is shown of one server; `observed` in usual lines, then in narrow ones."""

    hostname: Text
    names: tuple[str, ...]
    figures: tuple[Text, ...]
    drawing: str
    observed: tuple[list[str], list[str]]

    def identifiers(self, name_width: int, width: int) -> list[str]:
        """Return lines with id and cfxId, without one that the hostname already shows in full."""
        is_whole = self.hostname.cell_len <= name_width
        names = [name for name in self.names if not (is_whole and name == self.hostname.plain)]
        on_one_line = "  ".join(names)
        return [on_one_line] if names and cell_len(on_one_line) <= width else names


class _Widths(NamedTuple):
    """How wide the parts of a table are."""

    columns: tuple[int, ...]
    drawing: int
    names: int
    identifiers: int

    @property
    def figures(self) -> int:
        return sum(self.columns) + _GAP * (len(self.columns) - 1)


class _Layout(NamedTuple):
    """How wide the names are and where the drawings begin: beside the figures or below them."""

    name_width: int
    drawing_at: int
    draws_beside: bool
    is_narrow: bool


def comparison(view: ComparisonView, screen: Screen) -> str:
    """Show a comparison, and below it what the figures and drawings mean."""
    grown = growths(view.servers, ascii_only=screen.ascii_only)
    rows = [
        _row(server, growth, view, screen)
        for server, growth in zip(view.servers, grown, strict=True)
    ]
    widths = _widths(rows)
    layout = _find_layout(rows, widths, screen)
    if layout is None:
        return screen.text(*_cards(rows, screen), _notes(view, screen))
    lines = [_header(view, layout, widths)]
    for row in rows:
        lines += _table_row(row, layout, widths, screen)
    return screen.text(*lines, Text(), _notes(view, screen))


def _row(server: ServerView, growth: Text, view: ComparisonView, screen: Screen) -> _Row:
    result = server.result
    names = (screen.whole(name).plain for name in (result.serverId, result.cfxId))
    return _Row(
        screen.cell(server.hostname, "bold"),
        tuple(dict.fromkeys(names)),
        (*map(Text, figures_of(result).values()), growth),
        drawing(server.averages),
        (
            observed_lines(server, view, is_narrow=False),
            observed_lines(server, view, is_narrow=True),
        ),
    )


def _widths(rows: Sequence[_Row]) -> _Widths:
    figures = zip(_USUAL_WIDTHS.values(), *(row.figures for row in rows), strict=True)
    return _Widths(
        tuple(max(least, *map(len, column)) for least, *column in figures),
        max(len(row.drawing) for row in rows),
        max(_USUAL_NAME_WIDTH, *(row.hostname.cell_len for row in rows)),
        max(_GAP + cell_len("  ".join(row.names)) for row in rows),
    )


def _find_layout(rows: Sequence[_Row], widths: _Widths, screen: Screen) -> _Layout | None:
    """Return the first layout that fits the screen; None where no table does."""
    width = NATURAL_WIDTH if screen.width is None else screen.width
    if width < _LEAST_TABLE_WIDTH:
        return None
    layouts = [_layout_beside(widths, width)]
    for is_narrow in (False, True):
        observed = max(len(line) for row in rows for line in row.observed[is_narrow])
        layouts.append(_layout_below(widths, width, observed, is_narrow=is_narrow))
    return next((layout for layout in layouts if layout and _fits(rows, layout)), None)


def _layout_beside(widths: _Widths, width: int) -> _Layout | None:
    """Lay out the drawings in a column of their own, on the lines of the figures."""
    room = width - widths.figures - widths.drawing - 2 * _GAP
    if room < _USUAL_NAME_WIDTH:
        return None
    name_width = min(room, max(widths.names, widths.identifiers - widths.figures - _GAP))
    return _Layout(name_width, name_width + widths.figures + 2 * _GAP, True, is_narrow=False)


def _layout_below(widths: _Widths, width: int, observed: int, *, is_narrow: bool) -> _Layout | None:
    """Lay out the drawings on the lines of the identifiers."""
    room = width - widths.figures - _GAP
    if room < _LEAST_NAME_WIDTH:
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
        for line in _identifiers(row, layout)
    )


def _identifiers(row: _Row, layout: _Layout) -> list[str]:
    return row.identifiers(layout.name_width, layout.drawing_at - 2 * _GAP)


def _header(view: ComparisonView, layout: _Layout, widths: _Widths) -> Text:
    names = map(Text, _USUAL_WIDTHS)
    parts = [(0, Text("server")), *_columns(tuple(names), layout, widths)]
    if layout.draws_beside:
        parts.append((layout.drawing_at, Text(view.response.range)))
    header = _line(*parts)
    header.stylize("bold")
    return header


def _table_row(row: _Row, layout: _Layout, widths: _Widths, screen: Screen) -> Iterator[Text]:
    name = screen.cut(row.hostname, layout.name_width)
    first = [(0, name), *_columns(row.figures, layout, widths)]
    drawn = (layout.drawing_at, Text(row.drawing))
    observed_at = layout.drawing_at
    if layout.draws_beside:
        first.append(drawn)
    else:
        observed_at += widths.drawing + _GAP
    yield _line(*first)
    lines = zip_longest(_identifiers(row, layout), row.observed[layout.is_narrow])
    for number, (names, seen) in enumerate(lines):
        beside = [drawn] if number == 0 and not layout.draws_beside else []
        yield _line(
            (_GAP, Text(names or "", "dim")),
            *beside,
            (observed_at, Text(seen or "")),
        )


def _columns(cells: Sequence[Text], layout: _Layout, widths: _Widths) -> Iterator[tuple[int, Text]]:
    """Yield the cells of figures, each with the column at which it begins, right-aligned."""
    end = layout.name_width
    for cell, width in zip(cells, widths.columns, strict=True):
        end += _GAP + width
        yield end - len(cell), cell


def _line(*parts: tuple[int, Text]) -> Text:
    """Put texts on one line, each at its column."""
    line = Text(no_wrap=True, overflow="ignore")
    for start, part in parts:
        line.append(" " * (start - line.cell_len))
        line.append_text(part)
    return line


def _cards(rows: Sequence[_Row], screen: Screen) -> Iterator[RenderableType]:
    """Show each server as a block of lines whose figures stand in the same columns."""
    width = NATURAL_WIDTH if screen.width is None else screen.width
    figures = [_card_figures(rows, count) for count in (3, 2, 1)]
    fitting = next((cards for cards in figures if len(cards[0][0]) <= width), figures[-1])
    for row, lines in zip(rows, fitting, strict=True):
        yield row.hostname
        for names in row.identifiers(NATURAL_WIDTH, width):
            yield Text(names, "dim", overflow="fold")
        yield from lines
        observed = row.observed[False]
        beside = len(row.drawing) + _GAP
        if beside + max(map(len, observed)) <= width:
            yield _line((0, Text(row.drawing)), (beside, Text(observed[0])))
            yield from (_line((beside, Text(line))) for line in observed[1:])
        else:
            cuts = range(0, len(row.drawing), width)
            yield from (Text(row.drawing[at : at + width]) for at in cuts)
            yield from map(Text, observed)
        yield Text()


def _card_figures(rows: Sequence[_Row], count: int) -> list[list[Text]]:
    """Return the lines with the figures of each card, `count` on a line, all of equal width."""
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
            for at in range(count):
                value = row.figures[start + at]
                line.append(" " * (_CARD_GAP if at else 0))
                line.append(names[start + at].ljust(name_widths[at] + _GAP), "dim")
                line.append(" " * (value_widths[at] - len(value)))
                line.append_text(value)
            lines.append(line)
        cards.append(lines)
    return cards


def _notes(view: ComparisonView, screen: Screen) -> Table:
    start, end = view.window
    fields: list[tuple[str, str]] = [
        ("window", f"after {instant_text(start)}, to {instant_text(end)} inclusive"),
        ("as of", instant_text(end)),
        ("growth", "from the first observation in the window to the last"),
    ]
    if end != view.snapshot_as_of:
        own = f"the record's own, as of the snapshot: {instant_text(view.snapshot_as_of)}"
        fields.insert(2, ("current", own))
    mark = f"each mark the average of {exact_duration(view.cell_ms)}"
    meaning = f"{date_text(start)} to {date_text(end)}, {mark}; ▁ is 0, blank is no observation"
    fields.append((view.response.range, meaning))
    tops = [
        f"{screen.whole(server.result.serverId).plain} {top}"
        for server in view.servers
        if (top := highest_mark(server.averages)) is not None
    ]
    if tops:
        fields.append(("scale", f"from 0 to the peak average of each row: {', '.join(tops)}"))
    return fields_grid(fields, screen)
