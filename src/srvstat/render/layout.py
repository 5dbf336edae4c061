"""Lay out tables of servers: lines of figures, and below them identifiers and notes.

The figures of all servers share columns, while the lines below them have columns of their own. The
tables of Rich have one set of columns.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from srvstat.documents.analysis import NamedServer
from srvstat.render.screen import Screen
from srvstat.render.text import format_id

GAP = 2
"""The space between two columns, and the indentation of the lines below an id."""

MIN_NAME_WIDTH = 12
USUAL_NAME_WIDTH = 24
MIN_TABLE_WIDTH = 80
"""The least width at which the column of ids may be as narrow as MIN_NAME_WIDTH."""

_CARD_GAP = 3
_MIN_NOTE_WIDTH = 40
"""The least width of notes beside names; narrower ones are below them."""


class ServerCells(NamedTuple):
    """The parts of one server as text for a screen. The id is the title: people type ids.

    `hostname` is None if it equals the id, or was shown already. `names` are other identifiers.
    Notes are short texts without line breaks, shown in their order, as many on a line as fit.
    """

    title: Text
    hostname: Text | None
    names: tuple[Text, ...]
    figures: tuple[Text, ...]
    notes: tuple[str, ...]

    @property
    def names_width(self) -> int:
        """The width of the hostname and the other identifiers on one line."""
        return _join_names(self._list_all()).cell_len

    def list_names(self, width: int, screen: Screen) -> list[Text]:
        """Return lines with the hostname and the other identifiers. Only a hostname is cut."""
        if self.names_width <= width:
            return [_join_names(self._list_all())] if self._list_all() else []
        if self.hostname is None:
            return [*self.names]
        room = width - (GAP + _join_names(self.names).cell_len if self.names else 0)
        if room < MIN_NAME_WIDTH:
            return [screen.truncate(self.hostname, width), *self.names]
        return [_join_names((screen.truncate(self.hostname, room), *self.names))]

    def build_card_head(self, width: int) -> Iterator[Text]:
        """Yield the first lines of a card: the id, then the hostname and other identifiers."""
        names = self._list_all()
        joined = (_join_names(names),) if names and self.names_width <= width else names
        # Rich would break a line after the rank, even at a no-break space.
        yield from self.title.divide(range(width, len(self.title), width))
        for line in joined:
            line.overflow = "fold"
            yield line

    def build_figures(
        self, name_width: int, widths: Sequence[int], screen: Screen
    ) -> tuple[list[Text], "ServerCells"]:
        """Return the lines with the id and the figures, and the parts that are not on them.

        An id is never cut. One that is too wide has a line of its own, above the hostname.
        """
        if self.title.cell_len <= name_width:
            return [build_line(self.title, self.figures, name_width, widths)], self
        beside = Text(" " * GAP)
        if self.hostname is not None:
            beside.append_text(screen.truncate(self.hostname, name_width - GAP))
        line = build_line(beside, self.figures, name_width, widths)
        return [join_at_columns((0, self.title)), line], self._replace(hostname=None)

    def _list_all(self) -> tuple[Text, ...]:
        return self.names if self.hostname is None else (self.hostname, *self.names)


def _join_names(names: Iterable[Text]) -> Text:
    return Text(" " * GAP).join(names)


def escape_server(
    screen: Screen,
    server: NamedServer,
    figures: Iterable[str | Text] = (),
    notes: Iterable[str] = (),
    rank: str = "",
) -> ServerCells:
    """Return the parts of a server as text for a screen. Equal names are shown once.

    `rank` is a text before the id.
    """
    hostname = screen.escape_name(server.hostname)
    identifier = screen.escape(format_id(server.server_id)).plain
    other = screen.escape(server.cfx_id).plain
    return ServerCells(
        Text(rank).append(identifier, "bold"),
        None if hostname.plain == identifier else hostname,
        () if other in {"", identifier, hostname.plain} else (Text(other, "dim"),),
        tuple(Text(one) if isinstance(one, str) else one for one in figures),
        (*_list_members(server, screen), *notes),
    )


_MOST_MEMBERS = 3
"""The most servers of a total that a table names."""


def _list_members(server: NamedServer, screen: Screen) -> Iterator[str]:
    """Yield what servers a total adds up."""
    if server.servers:
        named = [screen.escape(one).plain for one in server.servers[:_MOST_MEMBERS]]
        rest = len(server.servers) - _MOST_MEMBERS
        yield f"{', '.join(named)}{f' and {rest:,} more' if rest > 0 else ''}"


def build_server_table(
    headers: Sequence[str], rows: Sequence[ServerCells], screen: Screen
) -> list[RenderableType]:
    """Return the lines of a table: id and figures, and below them hostname, cfxId and notes.

    `headers` are the names of the figures. Where the table does not fit, there is a card for each
    server instead, with a blank line between them. No server: no line.
    """
    if not rows:
        return []
    widths = measure_columns(headers, rows)
    name_width = _find_name_width(rows, widths, screen)
    if name_width is None:
        flowing = (_flow(row.notes, screen.width) for row in rows)
        notes = ([Text(line, overflow="fold") for line in lines] for lines in flowing)
        return list(build_cards(headers, rows, notes, screen.width))
    header = build_line(Text("server"), map(Text, headers), name_width, widths)
    header.stylize("bold")
    lines: list[RenderableType] = [header]
    notes_at = _find_notes(rows, screen)
    for row in rows:
        figures, rest = row.build_figures(name_width, widths, screen)
        lines += [*figures, *_build_details(rest, notes_at, screen)]
    return lines


def fits(headers: Sequence[str], rows: Sequence[ServerCells], screen: Screen) -> bool:
    """Check whether a table of servers fits a screen, so that it needs no cards."""
    return _find_name_width(rows, measure_columns(headers, rows), screen) is not None


def measure_columns(headers: Sequence[str], rows: Iterable[ServerCells]) -> list[int]:
    """Return the width of each column of figures."""
    columns = zip(headers, *(row.figures for row in rows), strict=True)
    return [max(map(len, column)) for column in columns]


def measure_figures(widths: Sequence[int]) -> int:
    """Return the width of all columns of figures with the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def build_line(
    title: Text, figures: Iterable[Text], name_width: int, widths: Sequence[int]
) -> Text:
    """Return a line with a title and the figures, right-aligned in their columns."""
    parts = [(0, title)]
    end = name_width
    for cell, width in zip(figures, widths, strict=True):
        end += GAP + width
        parts.append((end - len(cell), cell))
    return join_at_columns(*parts)


def join_at_columns(*parts: tuple[int, Text]) -> Text:
    """Return one line with each text at its column, counted from 0."""
    line = Text(no_wrap=True, overflow="ignore")
    for start, part in parts:
        line.append(" " * (start - line.cell_len))
        line.append_text(part)
    return line


def _find_name_width(
    rows: Sequence[ServerCells], widths: Sequence[int], screen: Screen
) -> int | None:
    """Return the width of the column of ids; None if the table does not fit."""
    room = screen.width - measure_figures(widths) - GAP
    least = MIN_NAME_WIDTH if screen.width >= MIN_TABLE_WIDTH else USUAL_NAME_WIDTH
    longest_name = max((name.cell_len for row in rows for name in row.names), default=0)
    longest_title = max(row.title.cell_len for row in rows)
    if room < least or max(longest_title, GAP + longest_name) > screen.width:
        return None
    return min(room, max(USUAL_NAME_WIDTH, longest_title))


def _find_notes(rows: Sequence[ServerCells], screen: Screen) -> int | None:
    """Return the column of notes beside names; None if notes must be below them."""
    most = min(screen.width - _MIN_NOTE_WIDTH, max(_MIN_NOTE_WIDTH, screen.width // 2)) - 2 * GAP
    if most < USUAL_NAME_WIDTH or not any(row.notes for row in rows):
        return None
    lines = (line.cell_len for row in rows for line in row.list_names(most, screen))
    longest = max(lines, default=0)
    return GAP + longest + GAP if longest <= most else None


def _build_details(row: ServerCells, notes_at: int | None, screen: Screen) -> Iterator[Text]:
    if notes_at is None:
        room = screen.width - GAP
        for line in (*row.list_names(room, screen), *map(Text, _flow(row.notes, room))):
            yield join_at_columns((GAP, line))
        return
    names = row.list_names(notes_at - 2 * GAP, screen)
    notes = map(Text, _flow(row.notes, screen.width - notes_at))
    for name, line in zip_longest(names, notes, fillvalue=Text()):
        yield join_at_columns((GAP, name), (notes_at, line))


def _flow(notes: Iterable[str], width: int) -> list[str]:
    """Join notes to lines of at most a width. Only a note that is wider is divided."""
    lines: list[str] = []
    for note in notes:
        if lines and cell_len(f"{lines[-1]}; {note};") <= width:
            lines[-1] += f"; {note}"
            continue
        if lines:
            lines[-1] += ";"
        lines += _divide(note, width)
    return lines


def _divide(note: str, width: int) -> Iterator[str]:
    line = ""
    for word in note.split(" "):
        if line and cell_len(f"{line} {word};") > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def build_cards(
    headers: Sequence[str],
    rows: Sequence[ServerCells],
    endings: Iterable[Iterable[Text]],
    width: int,
) -> Iterator[Text]:
    """Yield the lines of a card for each server, with a blank line between them.

    The figures of all cards are in equal columns: three a line, or fewer. Each of `endings` has the
    lines below the figures of a server.
    """
    for count in (3, 2, 1):
        figures = _build_card_figures(headers, rows, min(count, len(headers)))
        if len(figures[0][0]) <= width:
            break
    for number, (row, lines, ending) in enumerate(zip(rows, figures, endings, strict=True)):
        if number:
            yield Text()
        yield from row.build_card_head(width)
        yield from lines
        yield from ending


def _build_card_figures(
    headers: Sequence[str], rows: Sequence[ServerCells], count: int
) -> list[list[Text]]:
    """Return the lines of figures of each card, `count` figures a line, in equal widths."""
    name_widths = [max(map(len, headers[at::count])) for at in range(count)]
    columns = [max(len(row.figures[at]) for row in rows) for at in range(len(headers))]
    value_widths = [max(columns[at::count]) for at in range(count)]
    space = Text(" " * _CARD_GAP, overflow="fold")
    cards = []
    for row in rows:
        cells = []
        for number, (header, value) in enumerate(zip(headers, row.figures, strict=True)):
            name = header.ljust(name_widths[number % count] + GAP)
            blank = " " * (value_widths[number % count] - len(value))
            cells.append(Text.assemble((name, "dim"), blank, value))
        cards.append([space.join(cells[at : at + count]) for at in range(0, len(cells), count)])
    return cards
