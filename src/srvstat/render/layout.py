"""Lay out tables of servers: one or two lines per server, or a card on a narrow terminal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from srvstat.documents.analysis import NamedServer, StepCell
from srvstat.render import figures
from srvstat.render.screen import SERIES_STYLES, Screen
from srvstat.render.text import format_count, format_id, name_some

_TITLE = "server"
GAP = 2
"""The space between columns, and the indentation of a server's second line."""

_LINE_WIDTH, _TABLE_WIDTH = 100, 60
"""The minimum widths for one line per server, and for two lines per server."""

_LEAST_NAME_WIDTH, _USUAL_NAME_WIDTH, _MOST_NAME_WIDTH = 8, 20, 32
_LEAST_MARKS, _USUAL_MARKS, _MOST_MARKS = 8, 24, 60
_LEAST_COLUMNS = 2
_MOST_NAMED = 3
_CARD_COLUMNS, _CARD_GAP = 3, 3


class ServerCells(NamedTuple):
    """The parts of a server as text for a screen.

    - `title`: the id, because users type ids.
    - `hostname`: empty if it equals the id.
    - `figures`: the cells of the columns.
    - `steps`: the values of the sparkline.
    - `style`: the color of the sparkline.
    """

    title: Text
    hostname: Text
    figures: tuple[Text, ...]
    steps: Sequence[StepCell] = ()
    style: str = ""


def escape_server(
    screen: Screen,
    server: NamedServer,
    shown: Iterable[str | Text] = (),
    steps: Sequence[StepCell] = (),
    style: str = "",
) -> ServerCells:
    """Return the parts of a server as text for a screen.

    A total is named after its servers. `style` colors the id and the sparkline.
    """
    identifier = screen.escape(format_id(server.server_id)).plain
    hostname = screen.escape_name(server.hostname)
    if server.servers:
        hostname = Text(screen.escape(name_some(server.servers, _MOST_NAMED)).plain, "dim")
    return ServerCells(
        Text().append(identifier, f"bold {style}"),
        Text() if hostname.plain == identifier else hostname,
        tuple(Text(one) if isinstance(one, str) else one for one in shown),
        steps,
        style,
    )


def build_row(title: str, shown: Sequence[str]) -> ServerCells:
    """Return a line of dimmed values below a server's own."""
    cells = tuple(Text(one, "dim") for one in shown)
    return ServerCells(Text(" " * GAP + title, "dim"), Text(), cells)


def build_head(server: NamedServer, screen: Screen) -> Text:
    """Return a server's id and hostname, as a heading above its own table or drawing."""
    cells = escape_server(screen, server)
    room = screen.width - cells.title.cell_len - GAP
    if not cells.hostname or room < _LEAST_NAME_WIDTH:
        return cells.title
    return Text(" " * GAP).join((cells.title, screen.truncate(cells.hostname, room)))


def choose_styles(count: int) -> Sequence[str]:
    """Return a color for each server, as in charts, if there are enough colors for all servers."""
    return SERIES_STYLES[:count] if count <= len(SERIES_STYLES) else [""] * count


def build_title(title: str) -> Text:
    """Return the line above a table."""
    return Text(title, "bold", overflow="fold")


def build_rest(count: int, noun: str, plural: str | None = None) -> list[Text]:
    """Return a line about the items that a table omits, if any."""
    more = format_count(count, noun, plural)
    return [Text(f"and {more}; --json lists all")] if count > 0 else []


POINTER = "srvstat help terms explains the columns"


def build_footer(facts: Iterable[str], screen: Screen) -> list[Text]:
    """Return the lines below a table: unusual facts, and where the columns are explained.

    If the facts take two lines, POINTER is omitted.
    """
    lines = [*map(Text, wrap("; ".join(facts), screen.width, break_on_hyphens=False))]
    return lines if len(lines) > 1 else [*lines, Text(POINTER, "dim")]


def build_server_table(
    headers: Sequence[str],
    rows: Sequence[ServerCells],
    screen: Screen,
    *,
    optional: int = 0,
    step: str = "",
) -> list[RenderableType]:
    """Return the lines of a table, or no lines if there are no servers.

    - `headers`: the names of the columns.
    - `optional`: how many of the last columns may be omitted if space is short.
    - `step`: the period that each mark of a sparkline averages, or a multiple of it.
    """
    if not rows:
        return []
    table = _Table(headers, rows, screen, len(headers) - optional, step)
    if screen.width >= _LINE_WIDTH and table.has_room_for_lines:
        return [*table.build_lines()]
    columns = table.count_columns(screen.width - table.title_width)
    if screen.width < _TABLE_WIDTH or columns < min(_LEAST_COLUMNS, len(headers)):
        return [*table.build_cards()]
    return [*table.build_pairs(columns)]


@dataclass(frozen=True)
class _Table:
    """The parts of a table. The first `required` columns must be shown."""

    headers: Sequence[str]
    rows: Sequence[ServerCells]
    screen: Screen
    required: int
    step: str

    @cached_property
    def title_width(self) -> int:
        return max(len(_TITLE), *(row.title.cell_len for row in self.rows))

    @cached_property
    def name_width(self) -> int:
        return min(max(row.hostname.cell_len for row in self.rows), _MOST_NAME_WIDTH)

    @cached_property
    def widths(self) -> list[int]:
        columns = zip(*(row.figures for row in self.rows), strict=True)
        cells = [max(cell.cell_len for cell in column) for column in columns]
        return [*map(max, cells, map(len, self.headers))]

    @cached_property
    def label_width(self) -> int:
        """The width of the lowest and highest value beside a sparkline."""
        highs = [figures.format_ends(row.steps)[1] for row in self.rows]
        widest = max(map(len, highs))
        # Merged steps can have a highest value below 1, which takes one more digit.
        return max(widest, len("0.95")) if widest else 0

    @cached_property
    def most_marks(self) -> int:
        return max(len(row.steps) for row in self.rows)

    def measure_drawing(self, marks: int) -> int:
        """Return the width of a sparkline with `marks` marks, including the gap before it."""
        marks = min(marks, self.most_marks)
        return GAP + marks + 2 * (self.label_width + 1) if marks else 0

    @property
    def _line_room(self) -> int:
        """The room for names, sparklines and optional columns on a server's line."""
        required = sum(GAP + width for width in self.widths[: self.required])
        return self.screen.width - self.title_width - required

    @property
    def has_room_for_lines(self) -> bool:
        name = min(self.name_width, _LEAST_NAME_WIDTH)
        return self._line_room >= GAP + name + self.measure_drawing(_LEAST_MARKS)

    def count_columns(self, room: int) -> int:
        """Return how many of the first columns fit."""
        count = 0
        for width in self.widths:
            room -= GAP + width
            if room < 0:
                break
            count += 1
        return count

    def build_lines(self) -> Iterator[Text]:
        """Yield one line per server. If space is short, names shrink first, then sparklines."""
        room, widths, count = self._line_room, self.widths, self.required
        wanted = GAP + self.name_width + self.measure_drawing(_USUAL_MARKS)
        while count < len(widths) and room - GAP - widths[count] >= wanted:
            room -= GAP + widths[count]
            count += 1
        least, usual = map(self.measure_drawing, (_LEAST_MARKS, _USUAL_MARKS))
        name = min(_USUAL_NAME_WIDTH, room - GAP - least)
        name = min(max(name, room - GAP - usual), self.name_width)
        gap = GAP if name else 0
        drawings = self._draw(room - gap - name)
        titles = [
            join_at_columns(
                (0, row.title), (self.title_width + gap, self.screen.truncate(row.hostname, name))
            )
            for row in self.rows
        ]
        start = self.title_width + gap + name
        end = start + sum(GAP + width for width in widths[:count]) + GAP
        lines = zip(titles, self.rows, drawings[1:], strict=True)
        yield self._build_header(start, count, (end, drawings[0]))
        for title, row, drawing in lines:
            figured = build_line(title, row.figures[:count], start, widths[:count])
            yield join_at_columns((0, figured), (end, drawing))

    def build_pairs(self, count: int) -> Iterator[Text]:
        """Yield two lines per server, and a third line for columns that fit on neither."""
        widths = self.widths[:count]
        start = GAP + self.name_width + (GAP if self.name_width else 0)
        drawings = self._draw(self.screen.width - start + GAP)
        yield self._build_header(self.title_width, count)
        if drawings[0]:
            drawings[0].stylize("dim")
            yield join_at_columns((start, drawings[0]))
        required = self.headers[count : self.required]
        for row, drawing in zip(self.rows, drawings[1:], strict=True):
            yield build_line(row.title, row.figures[:count], self.title_width, widths)
            name = self.screen.truncate(row.hostname, self.name_width)
            line = join_at_columns((GAP, name), (start, drawing))
            cells = zip(required, row.figures[count:], strict=False)
            shown = [f"{name} {cell.plain.strip()}" for name, cell in cells if cell.plain.strip()]
            notes = Text("; ".join(shown), overflow="fold")
            at = start + drawings[0].cell_len + (GAP if drawings[0] else 0)
            if at + notes.cell_len <= self.screen.width:
                line, notes = join_at_columns((0, line), (at, notes)), Text()
            yield from (one for one in (line, Text(" " * GAP) + notes) if one.plain.strip())

    def build_cards(self) -> Iterator[Text]:
        """Yield a card of lines for each server, separated by blank lines."""
        width = self.screen.width
        for count in range(_CARD_COLUMNS, 0, -1):
            cards = self._build_card_figures(min(count, len(self.headers)))
            if max(line.cell_len for lines in cards for line in lines) <= width:
                break
        drawings = self._draw(width + GAP)[1:]
        for number, (row, lines, drawing) in enumerate(
            zip(self.rows, cards, drawings, strict=True)
        ):
            if number:
                yield Text()
            # Rich would break a line after the rank, even at a no-break space.
            yield from row.title.divide(range(width, len(row.title), width))
            parts = (row.hostname, *lines, drawing)
            yield from (Text("", overflow="fold").append_text(part) for part in parts if part.plain)

    def _build_card_figures(self, count: int) -> list[list[Text]]:
        """Return the lines of each card, with `count` values per line in equal widths."""
        headers, widths = self.headers[: self.required], self.widths
        names = [max(map(len, headers[at::count])) for at in range(count)]
        values = [max(widths[: self.required][at::count]) for at in range(count)]
        space = Text(" " * _CARD_GAP, overflow="fold")
        cards = []
        for row in self.rows:
            cells = [
                Text.assemble(
                    (header.ljust(names[at % count] + GAP), "dim"),
                    " " * (values[at % count] - value.cell_len),
                    value,
                )
                for at, (header, value) in enumerate(zip(headers, row.figures, strict=False))
            ]
            cards.append([space.join(cells[at : at + count]) for at in range(0, len(cells), count)])
        return cards

    def _build_header(
        self, start: int, count: int, drawing: tuple[int, Text] | None = None
    ) -> Text:
        names = map(Text, self.headers[:count])
        line = build_line(Text(_TITLE), names, start, self.widths[:count])
        if drawing is not None:
            line = join_at_columns((0, line), drawing)
        line.stylize("bold")
        return line

    def _draw(self, room: int) -> list[Text]:
        """Return the heading of the sparklines, and a sparkline of the same width for each row."""
        marks = min(room - self.measure_drawing(1) + 1, _MOST_MARKS)
        if not self.most_marks or marks < 1:
            return [Text()] * (len(self.rows) + 1)
        length = -(-self.most_marks // marks)
        count = -(-self.most_marks // length)
        pitch = 2 if 2 * count <= min(marks, _USUAL_MARKS) else 1
        label, unit = self.label_width, f"{length} {self.step}s" if length > 1 else self.step
        drawings = []
        for row in self.rows:
            cells = figures.join_cells(row.steps, length)
            low, high = figures.format_ends(cells)
            drawn = figures.draw_steps(cells, pitch, row.style)
            if row.steps:
                blank = " " * (count * pitch - len(drawn) + 1)
                drawings.append(Text.assemble(f"{low:>{label}} ", drawn, blank, f"{high:>{label}}"))
            else:
                drawings.append(Text())
        width = count * pitch + 2 * (label + 1)
        return [Text(" " * (label + 1) + f"each {unit}".ljust(width - label - 1)), *drawings]


def build_line(title: Text, shown: Iterable[Text], name_width: int, widths: Sequence[int]) -> Text:
    """Return a line with a title and values, right-aligned in their columns."""
    parts = [(0, title)]
    end = name_width
    for cell, width in zip(shown, widths, strict=True):
        end += GAP + width
        parts.append((end - cell.cell_len, cell))
    return join_at_columns(*parts)


def join_at_columns(*parts: tuple[int, Text]) -> Text:
    """Return one line with each text at its column, counted from 0."""
    line = Text(no_wrap=True, overflow="ignore")
    for start, part in parts:
        line.append(" " * (start - line.cell_len))
        line.append_text(part)
    return line
