"""The tables of statistics, growth, the hours of the week and histories."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.contract.time import BEFORE_ALL
from srvstat.documents import analysis
from srvstat.render.figures import (
    PARTIAL,
    align_changes,
    describe_drawings,
    describe_partial,
    describe_shortage,
    describe_step,
    draw_averages,
    find_level,
    format_average,
    format_change,
    format_changes,
    format_current,
    format_first_last,
    format_median,
    format_step,
    format_trend,
    format_whole,
    join_cells,
    list_change_fields,
    list_growth_cells,
    name_first_last,
)
from srvstat.render.screen import (
    MIN_TABLE_WIDTH,
    Renderers,
    Screen,
    ServerCells,
    build_fields_grid,
    build_server_table,
    escape_server,
    fits,
    get_width,
    start_table,
)
from srvstat.render.text import (
    NOTHING,
    WEEKDAYS,
    format_clock,
    format_count,
    format_share,
    format_span_length,
    format_window,
)

_HEADERS = ("current", "average", "change", "median", "peak", "lowest")
_HOUR_MS = 3_600_000


def render_stats(document: analysis.Stats | analysis.Top, screen: Screen) -> str:
    """Render the figures of servers, and below them notes on the window and the figures."""
    servers = document.servers
    if not servers:
        return screen.render(Text("no server matches"))
    first_last = name_first_last(ascii_only=screen.ascii_only)
    headers: Sequence[str] = (*_HEADERS, first_last)
    lines = _list_rows(document, screen)
    if screen.width and screen.width >= MIN_TABLE_WIDTH and not fits(headers, lines, screen):
        headers = _HEADERS
        # The last figure moves to the notes, where there is room.
        lines = [
            one._replace(
                figures=one.figures[:-1],
                notes=(f"{first_last} {one.figures[-1].plain}", *one.notes),
            )
            for one in lines
        ]
    table = build_server_table(headers, lines, screen)
    return screen.render(*table, Text(), _build_fields(document, screen))


def _list_rows(document: analysis.Stats | analysis.Top, screen: Screen) -> list[ServerCells]:
    servers, zone = document.servers, ZoneInfo(document.time_zone)
    digits = len(str(len(servers)))
    return [
        escape_server(
            screen,
            (server.hostname, server.server_id, server.cfx_id),
            _list_figures(server, change, document.as_of, zone, screen),
            tuple(_list_notes(server, zone)),
            f"{rank:>{digits}} " if isinstance(document, analysis.Top) else "",
        )
        for rank, (server, change) in enumerate(
            zip(servers, format_changes(servers), strict=True), 1
        )
    ]


def _list_figures(
    server: analysis.ServerStatistics, change: Text, as_of: int, zone: ZoneInfo, screen: Screen
) -> tuple[Text, ...]:
    ends = server.first_players, server.growth.players
    return (
        format_current(server.current_players, server.last_observed_at, as_of, zone),
        Text(format_average(server.average_players)),
        change,
        Text(format_median(server.median_players)),
        Text(format_whole(server.peak_players)),
        Text(format_whole(server.lowest_players)),
        Text(format_first_last(*ends, ascii_only=screen.ascii_only)),
    )


def _list_notes(server: analysis.ServerStatistics, zone: ZoneInfo) -> Iterator[str]:
    yield format_count(server.sample_count, "observation")
    if server.coverage:
        yield f"{format_share(server.coverage)} covered"
    if server.peak_first_at is not None and server.peak_last_at is not None:
        times = server.peak_first_at, server.peak_last_at
        first, last = (format_clock(at, zone, "minutes") for at in times)
        yield f"peak {first}" + ("" if first == last else f", last {last}")
    for one in server.quantiles:
        yield f"{_format_quantile(one.quantile)} {format_median(one.players)}"
    if server.above is not None:
        hours = server.above.hours
        length = format_span_length(round(hours * _HOUR_MS)) if hours else "never"
        yield f"above {server.above.players:,}: {NOTHING if hours is None else length}"
    mean, weighted = server.average_players, server.time_weighted_average
    if mean is not None and weighted is not None and abs(weighted - mean) > mean / 100:
        yield f"time-weighted average {format_average(weighted)}"
    if server.previous is not None:
        yield _describe_previous(server.previous)


def _format_quantile(quantile: float) -> str:
    """Return the name of a quantile, such as p95 or p99.9."""
    percent = (Decimal(wire.format_number(quantile)) * 100).normalize()
    return f"p{percent:f}"


def _describe_previous(before: analysis.FiguresPart) -> str:
    if not before.sample_count:
        return "no observation in the previous window"
    figures = {
        "average": format_average(before.average_players),
        "median": format_median(before.median_players),
        "peak": format_whole(before.peak_players),
        "lowest": format_whole(before.lowest_players),
    }
    quantiles = (
        f"{_format_quantile(one.quantile)} {format_median(one.players)}" for one in before.quantiles
    )
    shown = [*(f"{name} {figure}" for name, figure in figures.items()), *quantiles]
    return f"before: {', '.join(shown)}"


def _list_window(
    document: analysis.Stats | analysis.Top | analysis.GrowthDocument | analysis.PeakHours,
) -> list[tuple[str, str]]:
    zone = ZoneInfo(document.time_zone)
    return [
        ("window", format_window(document.window.from_, document.window.to, zone)),
        ("as of", format_clock(document.as_of, zone)),
        ("times", zone.key),
    ]


def _build_fields(document: analysis.Stats | analysis.Top, screen: Screen) -> Table:
    zone = ZoneInfo(document.time_zone)
    fields = _list_window(document)
    if document.previous_window is not None:
        fields.insert(
            1,
            (
                "previous",
                format_window(document.previous_window.from_, document.previous_window.to, zone),
            ),
        )
    if isinstance(document, analysis.Top):
        shown = f"{len(document.servers):,} of {format_count(document.server_count, 'server')}"
        fields.append(("ranked", f"by {document.by}, the greatest first; {shown}"))
    if document.window.to != document.as_of:
        as_of = format_clock(document.as_of, zone)
        fields.append(("current", f"from the server record, as of {as_of}"))
    fields += list_change_fields(document.servers, document.window, screen)
    if any(server.coverage for server in document.servers):
        meaning = (
            "the share of the window in which observations last: each until the next one, at most"
            " three usual intervals"
        )
        fields.append(("covered", meaning))
    if any(server.peak_players is not None for server in document.servers):
        fields.append(("peak", "when first reached, and when last if more than once"))
    return build_fields_grid(fields, screen)


_MAX_MARKS = 36
"""The most marks of a drawing, so that it fits beside identifiers."""

_STEP_HEADERS = {"day": "day", "week": "week from", "month": "month"}

_MAX_STEPS_LISTED = 62
"""Two months of days."""


def render_growth(document: analysis.GrowthDocument, screen: Screen) -> str:
    """Render the growth of servers, and for a single server a list of its steps."""
    servers, is_ascii = document.servers, screen.ascii_only
    columns = {
        "average": [Text(format_average(one.average_players)) for one in servers],
        "change": format_changes(servers),
        "trend": [
            Text(format_trend(one.players_per_week, one.average_players, one.coverage)[0])
            for one in servers
        ],
        name_first_last(ascii_only=is_ascii): [
            Text(format_first_last(one.first_players, one.growth.players, ascii_only=is_ascii))
            for one in servers
        ],
    }
    figures = zip(*columns.values(), strict=True)
    lines = [
        escape_server(
            screen,
            (one.hostname, one.server_id, one.cfx_id),
            texts,
            tuple(_list_growth_notes(one, document, screen)),
        )
        for one, texts in zip(servers, figures, strict=True)
    ]
    parts: list[RenderableType] = [*build_server_table(list(columns), lines, screen), Text()]
    if len(servers) == 1 and servers[0].sample_count:
        parts += _list_steps(servers[0], document, screen)
    return screen.render(*parts, _build_growth_fields(document, screen))


def _list_growth_notes(
    server: analysis.ServerGrowth, document: analysis.GrowthDocument, screen: Screen
) -> Iterator[str]:
    if server.sample_count:
        yield draw_averages(_join_steps(server.steps), ascii_only=screen.ascii_only)
    yield format_count(server.sample_count, "observation")
    empty = sum(not step.sample_count for step in server.steps)
    if server.sample_count and empty:
        yield f"{empty:,} of {format_count(len(server.steps), document.step)} empty"


def _join_steps(steps: Sequence[analysis.GrowthStepPart]) -> list[analysis.StepCell]:
    """Return the average of each mark of a drawing, which stands for one step or several."""
    return join_cells(list_growth_cells(steps), _find_mark_length(len(steps)))


def _find_mark_length(count: int) -> int:
    return max(-(-count // _MAX_MARKS), 1)


def _list_steps(
    server: analysis.ServerGrowth, document: analysis.GrowthDocument, screen: Screen
) -> Iterator[RenderableType]:
    """Yield a list of the last steps of a server."""
    zone = ZoneInfo(document.time_zone)
    shown = server.steps[-_MAX_STEPS_LISTED:]
    if len(shown) < len(server.steps):
        earlier = format_count(len(server.steps) - len(shown), f"earlier {document.step}")
        yield Text(f"{earlier} not shown; --format csv prints all", "dim", overflow="fold")
    step_changes = align_changes(format_change(step.change, step.average_players) for step in shown)
    rows = []
    for step, change in zip(shown, step_changes, strict=True):
        average = format_average(step.average_players)
        cells = (
            Text(format_step(step.from_, zone, document.step)),
            Text(f"{PARTIAL}{average}" if _is_part(step) else average),
            change,
            Text(f"{step.sample_count:,}"),
            Text(f"{format_share(step.observed_share)} observed" if _is_part(step) else ""),
        )
        rows.append(("dim" if step.is_partial else "", cells))
    headers = (_STEP_HEADERS[document.step], "average", "change", "observations", "")
    table = Table()
    for count in range(len(headers), 1, -1):  # as many of the first columns as fit
        table = start_table(*headers[:count], right=headers[1:4])
        for style, cells in rows:
            table.add_row(*cells[:count], style=style)
        if screen.width is None or screen.measure(table) <= screen.width:
            break
    yield table
    yield Text()


def _is_part(step: analysis.GrowthStepPart) -> bool:
    return step.is_partial and step.sample_count > 0


def _build_growth_fields(document: analysis.GrowthDocument, screen: Screen) -> Table:
    fields = [
        *_list_window(document),
        *list_change_fields(document.servers, document.window, screen),
        ("trend", _TREND),
    ]
    length = _find_mark_length(len(document.servers[0].steps))
    step = describe_step(document.step) if length == 1 else format_count(length, document.step)
    drawn = [(server.server_id, _join_steps(server.steps)) for server in document.servers]
    marks, scale = describe_drawings(drawn, step, screen)
    if len(document.servers) == 1 and any(map(_is_part, document.servers[0].steps)):
        fields.append(describe_partial(document.step))
    if scale:
        fields += [("marks", marks), ("scale", scale)]
    return build_fields_grid(fields, screen)


_TREND = "the median change between two whole days, in players a week; flat is below 1% a week"


_LABEL_WIDTH = 5
_SHADES = ("·", "░", "▒", "▓", "█")
_STYLES = ("dim", "blue", "cyan", "yellow", "red")


def render_peak_hours(document: analysis.PeakHours, screen: Screen) -> str:
    """Render a heat map for each server, and below them notes."""
    parts: list[RenderableType] = []
    for server in document.servers:
        parts += [*_build_block(server, screen), Text()]
    return screen.render(*parts, build_fields_grid(_list_window(document), screen))


def _build_block(server: analysis.ServerPeakHours, screen: Screen) -> Iterator[RenderableType]:
    head = escape_server(screen, (server.hostname, server.server_id, server.cfx_id))
    yield from head.build_card_head(get_width(screen))
    averages = [cell.average_players for cell in server.cells]
    known = [average for average in averages if average is not None]
    if server.busiest is None or server.quietest is None:
        yield Text(f"{describe_shortage(server)}; use a longer window", overflow="fold")
        return
    lowest, highest = min(known), max(known)
    yield from _draw_map(server.cells, lowest, highest, screen)
    fields = [("scale", _describe_scale(lowest, highest))]
    if server.has_hours:
        fields[:0] = [
            ("busiest", _describe_cell(server.get_cell(server.busiest))),
            ("quietest", _describe_cell(server.get_cell(server.quietest))),
        ]
    if len(known) < len(averages):
        few = f"{len(averages) - len(known)} of {len(averages)} hours"
        fields.append(("blank", f"{few}, with fewer than 4 observations"))
    yield build_fields_grid(fields, screen)


def _draw_map(
    cells: Sequence[analysis.HourCellPart], lowest: float, highest: float, screen: Screen
) -> Iterator[Text]:
    """Yield the lines of a map; none if it does not fit."""
    width = 2 if get_width(screen) >= _LABEL_WIDTH + 2 * 24 else 1
    if get_width(screen) < _LABEL_WIDTH + width * 24:
        return
    every = 6 // width
    hours = "".join(f"{hour:02}".ljust(6) for hour in range(0, 24, every))
    yield Text(" " * _LABEL_WIDTH + hours.rstrip(), "bold")
    for number, weekday in enumerate(WEEKDAYS):
        line = Text(weekday[:3].ljust(_LABEL_WIDTH), no_wrap=True)
        for cell in cells[24 * number : 24 * number + 24]:
            average = cell.average_players
            if average is None:
                line.append(" " * width)
                continue
            level = find_level(average, lowest, highest, len(_SHADES))
            line.append(_SHADES[level] * width, _STYLES[level])
        yield line


def _describe_cell(cell: analysis.HourCellPart) -> str:
    observations = format_count(cell.sample_count, "observation")
    return (
        f"{WEEKDAYS[cell.weekday - 1][:3]} {cell.hour:02}:00 to {cell.hour + 1:02}:00, average"
        f" {format_average(cell.average_players)}, median"
        f" {format_median(cell.median_players)} of {observations}"
    )


def _describe_scale(lowest: float, highest: float) -> str:
    if lowest == highest:
        return f"all averages are {format_average(lowest)}"
    low, high = format_average(lowest), format_average(highest)
    return f"{' '.join(_SHADES)} from {low} to {high}, in equal parts"


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


def render_observations(table: analysis.ObservationTable, screen: Screen) -> str:
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


def _iter_observations(table: analysis.ObservationTable, clock: _Clock) -> Iterator[_Row]:
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


def render_steps(table: analysis.StepTable, screen: Screen) -> str:
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
    return "\n".join(
        screen.render(*_build_title(server, screen), _build_server_grid(table, column, screen))
        for column, server in enumerate(servers)
    )


def _build_common_grid(table: analysis.StepTable, width: int, screen: Screen) -> Table:
    """Return the table of several servers, with a column for each."""
    clock = _create_step_clock(table)
    grid = _start_step_table(clock, screen)
    for server in table.servers:
        grid.add_column(_build_heading(server, width, screen), justify="right", overflow="fold")
    for line in _iter_lines(table):
        if line is None:
            grid.add_row(Text(f"{table.omitted_count:,} not shown", "dim"))
            continue
        style = "" if _count_observations(line) else "dim"
        cells = (_format_players(cell, table.query) for cell in line.cells)
        grid.add_row(clock.format(line.start), clock.format(line.end), *cells, style=style)
    return grid


def _build_server_grid(table: analysis.StepTable, column: int, screen: Screen) -> Table:
    """Return the table of one server with its observations, or of a sum with its servers."""
    clock = _create_step_clock(table)
    is_sum = table.query.is_sum
    grid = _start_step_table(clock, screen)
    for name in ("players", "servers" if is_sum else "observations"):
        grid.add_column(name, justify="right", overflow="fold")
    for line in _iter_lines(table, column):
        if line is None:
            grid.add_row(Text(f"{table.omitted_count:,} not shown", "dim"))
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


def _iter_lines(
    table: analysis.StepTable, column: int | None = None
) -> Iterator[analysis.StepLine | None]:
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


def _count_observations(line: analysis.StepLine) -> int:
    return sum(cell.observations for cell in line.cells)


def _create_step_clock(table: analysis.StepTable) -> _Clock:
    lines = (*table.first, *table.last)
    return _Clock(table.query.zone, (at for line in lines for at in (line.start, line.end)))


def _format_players(cell: analysis.StepCell, query: analysis.HistoryQuery) -> Text:
    if cell.players is None:
        return Text(NOTHING)
    text = (format_average if query.aggregate == "mean" else format_median)(cell.players)
    # Before the figure, so that the figures of a column stay aligned.
    return Text(PARTIAL + text, "dim") if cell.is_partial else Text(text)


def _build_title(server: analysis.ServerName, screen: Screen) -> list[RenderableType]:
    """Return lines with the id, and the hostname and the cfxId, of a server."""
    cells = escape_server(screen, (server.hostname, server.server_id, server.cfx_id))
    return [*cells.build_card_head(get_width(screen))]


def _build_heading(server: analysis.ServerName, width: int, screen: Screen) -> Text:
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


_AGGREGATES = {"mean": "average", "median": "median", "max": "highest count", "min": "lowest count"}


def render_notes(notes: analysis.HistoryNotes, screen: Screen) -> str:
    """Render what the tables of a history have in common."""
    window = notes.query.window
    start = None if window.start == BEFORE_ALL else window.start
    zone = ZoneInfo(notes.query.zone)
    fields: list[tuple[str, str]] = [
        ("window", format_window(start, window.end, zone)),
        ("as of", format_clock(notes.as_of, zone)),
        ("times", zone.key),
    ]
    if notes.query.step is not None:
        aggregate = _AGGREGATES.get(notes.query.aggregate, "last count")
        of_sum = ", added up over the servers" if notes.query.is_sum else ""
        fields.append(("players", f"the {aggregate} of each step{of_sum}"))
    else:
        fields.append(("gap", "more than 1.5 usual intervals between two observations"))
    if notes.has_partial and notes.query.step is not None:
        fields.append(describe_partial(notes.query.step))
    if notes.has_omitted:
        fields.append(("rows", "the first and the last; --format csv prints all"))
    return screen.render(build_fields_grid(fields, screen))


RENDERERS: Renderers = {
    analysis.GrowthDocument: render_growth,
    analysis.HistoryNotes: render_notes,
    analysis.ObservationTable: render_observations,
    analysis.PeakHours: render_peak_hours,
    analysis.Stats: render_stats,
    analysis.StepTable: render_steps,
    analysis.Top: render_stats,
}
