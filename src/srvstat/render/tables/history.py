"""The tables of a history: the first and the last rows, with the gaps between them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract.ranges import BEFORE_ALL
from srvstat.documents.analysis import (
    HistoryNotes,
    HistoryQuery,
    ObservationTable,
    ServerName,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.render.fields import build_fields_grid
from srvstat.render.local_time import format_clock
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import PARTIAL, describe_partial
from srvstat.render.tables.server_table import ServerLines, escape_server, get_width
from srvstat.render.text import NOTHING, format_count, format_span_length, format_window

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRECISIONS = {"minutes": 60_000, "seconds": 1000, "milliseconds": 1}
_HEADING_WIDTHS = (24, 12)
"""The widths to which hostnames above columns are cut, if the first is too wide."""

_MIN_FIGURES_WIDTH = 28
"""The least width beside the times of steps at which these are not folded."""

_Row = tuple[Text, ...]


class _Clock:
    """Formats instants in a time zone, all as precisely as one of them needs."""

    def __init__(self, zone: str, instants: Iterable[int]) -> None:
        self.zone = zone
        found = list(instants)
        moments = [_convert_instant(at, ZoneInfo(zone)) for at in found]
        # With two offsets, a local time can be repeated.
        self._has_offset = len({moment.utcoffset() for moment in moments}) > 1
        self._precision = next(
            name for name, length in _PRECISIONS.items() if all(at % length == 0 for at in found)
        )

    @property
    def width(self) -> int:
        """The width of a time."""
        return len(self.format(0).plain)

    def format(self, at: int) -> Text:
        """Return a local time, with its offset if the instants have several."""
        moment = _convert_instant(at, ZoneInfo(self.zone))
        shown = moment if self._has_offset else moment.replace(tzinfo=None)
        return Text(shown.isoformat(" ", self._precision))


def _convert_instant(at: int, zone: ZoneInfo) -> datetime:
    moment = _EPOCH + timedelta(milliseconds=at)
    try:
        return moment.astimezone(zone)
    except OverflowError:  # after the year 9999
        return moment


def render_observations(table: ObservationTable, screen: Screen) -> str:
    """Render the observations of a server."""
    title = _build_title(table.server, screen)
    if not table.count:
        return screen.render(*title, Text("no observation in the window"))
    clock = _Clock(table.query.zone, (one.observed_at for one in (*table.first, *table.last)))
    grid = _start_table()
    grid.add_column("observed at", overflow="fold")
    grid.add_column("players", justify="right", overflow="fold")
    for row in _iter_observations(table, clock):
        grid.add_row(*row)
    return screen.render(*title, grid)


def _iter_observations(table: ObservationTable, clock: _Clock) -> Iterator[_Row]:
    before = None
    for number, one in enumerate((*table.first, *table.last)):
        if table.omitted_count and number == len(table.first):
            yield (Text(f"{table.omitted_count:,} not shown", "dim"),)
            before = None
        distance = 0 if before is None else one.observed_at - before
        if table.usual_interval is not None and 2 * distance > 3 * table.usual_interval:
            yield (Text(f"{NOTHING} gap of {format_span_length(distance)} {NOTHING}", "dim"),)
        yield clock.format(one.observed_at), Text(f"{one.players:,}")
        before = one.observed_at


def render_steps(table: StepTable, screen: Screen) -> str:
    """Render the steps of servers: a column for each where they fit, else a table for each."""
    servers = table.servers
    if not table.count:
        return screen.render(Text("no step in the window"))
    if table.query.is_sum:
        title = Text(f"sum of {format_count(len(servers), 'server')}", "bold")
        return screen.render(title, _build_server_grid(table, 0, screen))
    if len(servers) > 1:
        for width in _HEADING_WIDTHS:
            grid = _build_common_grid(table, width, screen)
            if screen.width is None or screen.measure(grid) <= screen.width:
                return screen.render(grid)
    parts = (
        screen.render(*_build_title(server, screen), _build_server_grid(table, column, screen))
        for column, server in enumerate(servers)
    )
    return "\n".join(parts)


def _build_common_grid(table: StepTable, width: int, screen: Screen) -> Table:
    """Return the table of several servers, with a column for each."""
    clock = _create_step_clock(table)
    grid = _start_step_table(clock, screen)
    for server in table.servers:
        grid.add_column(_build_heading(server, width, screen), justify="right", overflow="fold")
    for line in _iter_lines(table):
        if line is None:
            grid.add_row(_describe_omission(table))
            continue
        style = "" if _count_observations(line) else "dim"
        cells = (_format_players(cell, table.query) for cell in line.cells)
        grid.add_row(clock.format(line.start), clock.format(line.end), *cells, style=style)
    return grid


def _build_server_grid(table: StepTable, column: int, screen: Screen) -> Table:
    """Return the table of one server with its observations, or of a sum with its servers."""
    clock = _create_step_clock(table)
    is_sum = table.query.is_sum
    grid = _start_step_table(clock, screen)
    for name in ("players", "servers" if is_sum else "observations"):
        grid.add_column(name, justify="right", overflow="fold")
    for line in _iter_lines(table, column):
        if line is None:
            grid.add_row(_describe_omission(table))
            continue
        times = clock.format(line.start), clock.format(line.end)
        (cell,) = line.cells
        if cell.observations:
            count = cell.servers if is_sum else cell.observations
            grid.add_row(*times, _format_players(cell, table.query), f"{count:,}")
        else:
            gap = f"gap of {format_span_length(line.end - line.start)}"
            grid.add_row(*times, NOTHING, gap, style="dim")
    return grid


def _iter_lines(table: StepTable, column: int | None = None) -> Iterator[StepLine | None]:
    """Yield the lines of a table, or of one of its columns; None is for the omitted ones.

    Adjacent lines without observations become one.
    """
    for part in (table.first, table.last):
        if part is table.last and table.omitted_count:
            yield None
        lines = part
        if column is not None:
            lines = tuple(line._replace(cells=(line.cells[column],)) for line in part)
        for is_observed, group in groupby(lines, lambda line: _count_observations(line) > 0):
            if is_observed:
                yield from group
            else:
                empty = list(group)
                yield empty[0]._replace(end=empty[-1].end)


def _count_observations(line: StepLine) -> int:
    return sum(cell.observations for cell in line.cells)


def _create_step_clock(table: StepTable) -> _Clock:
    lines = (*table.first, *table.last)
    return _Clock(table.query.zone, (at for line in lines for at in (line.start, line.end)))


def _describe_omission(table: StepTable) -> Text:
    return Text(f"{table.omitted_count:,} not shown", "dim")


def _format_players(cell: StepCell, query: HistoryQuery) -> Text:
    if cell.players is None:
        return Text(NOTHING)
    if query.aggregate == "mean":
        text = f"{cell.players:,.2f}"
    else:
        text = f"{cell.players:,.1f}".removesuffix(".0")
    # Before the figure, so that the figures of a column stay aligned.
    return Text(PARTIAL + text, "dim") if cell.is_partial else Text(text)


def _build_title(server: ServerName, screen: Screen) -> list[RenderableType]:
    """Return lines with the id, and the hostname and the cfxId, of a server."""
    names = ServerLines(server.hostname, (server.server_id, server.cfx_id), (), ())
    return [*escape_server(names, screen).build_card_head(get_width(screen))]


def _build_heading(server: ServerName, width: int, screen: Screen) -> Text:
    """Return the id, and below it the hostname, cut to a width or that of the id."""
    name = screen.escape(server.server_id)
    hostname = screen.escape_name(server.hostname)
    return Text("\n").join([name, screen.truncate(hostname, max(name.cell_len, width))])


def _start_step_table(clock: _Clock, screen: Screen) -> Table:
    """Return a table whose times are folded only on a narrow screen."""
    table = _start_table()
    is_narrow = screen.width is not None and screen.width < 2 * clock.width + _MIN_FIGURES_WIDTH
    for name in ("from", "to"):
        table.add_column(name, overflow="fold", no_wrap=not is_narrow)
    return table


def _start_table() -> Table:
    # Two spaces between columns, one of them from the box.
    return Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )


_AGGREGATES = {
    "mean": "the average of each step",
    "median": "the median of each step",
    "max": "the highest count of each step",
    "min": "the lowest count of each step",
    "last": "the last count of each step",
}


def render_notes(notes: HistoryNotes, screen: Screen) -> str:
    """Render what the tables of a history have in common."""
    window = notes.query.window
    start = None if window.start == BEFORE_ALL else window.start
    zone = ZoneInfo(notes.query.zone)
    fields: list[tuple[str, str]] = [
        ("window", format_window(start, window.end, partial(format_clock, zone=zone))),
        ("as of", format_clock(notes.as_of, zone)),
        ("times", zone.key),
    ]
    if notes.query.step is not None:
        of_sum = ", added up over the servers" if notes.query.is_sum else ""
        fields.append(("players", f"{_AGGREGATES[notes.query.aggregate]}{of_sum}"))
    else:
        fields.append(("gap", "more than 1.5 usual intervals between two observations"))
    if notes.has_partial and notes.query.step is not None:
        fields.append(describe_partial(notes.query.step))
    if notes.has_omitted:
        fields.append(("rows", "the first and the last; --format csv prints all"))
    return screen.render(build_fields_grid(fields, screen))
