"""The tables of statistics, growth, the hours of the week and histories."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract.windows import BEFORE_ALL
from srvstat.documents import analysis
from srvstat.documents.document import ServerName
from srvstat.render import figures, layout, text
from srvstat.render.screen import Fields, Renderers, Screen, build_fields_grid, start_table

_HOUR_MS = 3_600_000


def render_stats(document: analysis.Stats | analysis.Top, screen: Screen) -> str:
    """Render the figures of servers, and below them notes on the window and the figures."""
    servers, zone = document.list_series(), ZoneInfo(document.time_zone)
    if not servers:
        return screen.render(Text("no server matches"))
    first_last, pairs = figures.name_first_last(screen), _list_first_last(servers, screen)
    columns: dict[str, Sequence[str | Text]] = {
        "current": [
            figures.format_current(
                one.current_players, one.last_observed_at, document.as_of, zone, hold=document.hold
            )
            for one in servers
        ],
        "average": [text.format_average(one.average_players) for one in servers],
        "change": figures.align_changes((one.change, one.average_players) for one in servers),
        "median": [text.format_median(one.median_players) for one in servers],
        "peak": [text.format_whole(one.peak_players) for one in servers],
        "lowest": [text.format_whole(one.lowest_players) for one in servers],
        first_last: pairs,
    }
    notes = [list(_list_notes(one, document)) for one in servers]
    is_ranked = isinstance(document, analysis.Top)
    lines = _build_lines(servers, columns, notes, screen, is_ranked=is_ranked)
    if screen.width >= layout.MIN_TABLE_WIDTH and not layout.fits([*columns], lines, screen):
        # The last figure moves to the notes, where there is room.
        del columns[first_last]
        notes = [[f"{first_last} {pair}", *own] for pair, own in zip(pairs, notes, strict=True)]
        lines = _build_lines(servers, columns, notes, screen, is_ranked=is_ranked)
    table = layout.build_server_table([*columns], lines, screen)
    return screen.render_blocks(table, [build_fields_grid(_list_fields(document, screen), screen)])


def _list_first_last(servers: figures.Servers, screen: Screen) -> list[str]:
    return [
        figures.format_first_last(one.first_players, one.growth.players, screen.arrow)
        for one in servers
    ]


def _build_lines(
    servers: figures.Servers,
    columns: Mapping[str, Sequence[str | Text]],
    notes: Iterable[Iterable[str]],
    screen: Screen,
    *,
    is_ranked: bool = False,
) -> list[layout.ServerCells]:
    digits = len(str(len(servers)))
    rows = zip(servers, zip(*columns.values(), strict=True), notes, strict=True)
    lines = []
    for rank, (server, texts, own) in enumerate(rows, 1):
        shown = f"{rank if server.server_id else '':>{digits}} " if is_ranked else ""
        lines.append(layout.escape_server(screen, server, texts, own, shown))
    return lines


def _list_notes(
    server: analysis.ServerStatistics, document: analysis.Stats | analysis.Top
) -> Iterator[str]:
    zone = ZoneInfo(document.time_zone)
    if server.window is not None and server.sample_count:
        yield f"until {text.format_clock(server.window.to, zone, 'minutes')}"
    if server.share is not None:
        yield f"share {text.format_share(server.share)}"
    yield text.format_count(server.sample_count, "observation")
    if server.coverage:
        yield f"{text.format_share(server.coverage)} covered"
    if server.peak_first_at is not None and server.peak_last_at is not None:
        times = server.peak_first_at, server.peak_last_at
        first, last = (text.format_clock(at, zone, "minutes") for at in times)
        yield f"peak {first}" + ("" if first == last else f", last {last}")
    yield from _list_quantiles(server)
    if server.above is not None:
        yield f"above {server.above.players:,}: {_format_hours(server.above.hours)}"
    if document.shows_occupancy:
        yield _describe_occupancy(server)
    mean, weighted = server.average_players, server.time_weighted_average
    if mean is not None and weighted is not None and abs(weighted - mean) > mean / 100:
        yield f"time-weighted average {text.format_average(weighted)}"
    if server.previous is not None:
        yield _describe_previous(server.previous)


def _format_hours(hours: float | None) -> str:
    length = text.format_span_length(round(hours * _HOUR_MS)) if hours else "never"
    return text.NOTHING if hours is None else length


def _describe_occupancy(server: analysis.ServerStatistics) -> str:
    opened = f"average when open {text.format_average(server.average_when_open)}"
    if server.occupancy is None:
        return opened
    full = _format_hours(server.full_hours)
    return f"occupancy {text.format_share(server.occupancy)}, full: {full}, {opened}"


def _list_quantiles(part: analysis.FiguresPart | analysis.ServerStatistics) -> Iterator[str]:
    """Yield quantiles with their names, such as p95 or p99.9."""
    for one in part.quantiles:
        yield f"p{text.format_quantile(one.quantile)} {text.format_median(one.players)}"


def _describe_previous(before: analysis.FiguresPart) -> str:
    if before.average_players is None:
        return "before: no observation"
    quantiles = "".join(f", {one}" for one in _list_quantiles(before))
    return (
        f"before: average {text.format_average(before.average_players)},"
        f" median {text.format_median(before.median_players)},"
        f" peak {text.format_whole(before.peak_players)},"
        f" lowest {text.format_whole(before.lowest_players)}{quantiles}"
    )


def _list_window(start: int | None, end: int, as_of: int, zone: ZoneInfo) -> list[tuple[str, str]]:
    """Return the notes that every table of the analyzer has."""
    return [
        ("window", text.format_window(start, end, zone)),
        ("as of", text.format_clock(as_of, zone)),
        ("times", zone.key),
    ]


def _has_total(document: analysis.Stats | analysis.Top) -> bool:
    is_added = isinstance(document, analysis.Top) and document.total is not None
    return is_added or any(server.servers for server in document.servers)


def _list_fields(document: analysis.Stats | analysis.Top, screen: Screen) -> Fields:
    zone, window = ZoneInfo(document.time_zone), document.window
    first, *others = _list_window(window.from_, window.to, document.as_of, zone)
    if document.until_last_seen:
        length = "time" if window.from_ is None else figures.format_window_length(window)
        yield "window", f"the {length} until each server was last seen"
    else:
        yield first
    if document.previous_window is not None:
        previous = document.previous_window
        shown = text.format_window(previous.from_, previous.to, zone)
        if document.versus == "usual":
            shown = "the same hours of the four weeks before"
        yield "other" if document.versus == "other" else "previous", shown
    yield from others
    if isinstance(document, analysis.Top):
        shown = f"{len(document.servers):,} of {text.format_count(document.server_count, 'server')}"
        order = "least" if document.reverse else "greatest"
        yield "ranked", f"by {document.by}, the {order} first; {shown}"
    if window.to != document.as_of:
        yield "current", f"from the server record, as of {text.format_clock(document.as_of, zone)}"
    yield from figures.list_change_fields(document.list_series(), window, screen, document.versus)
    if document.shows_occupancy:
        yield "occupancy", "the average as a part of the maximum of the server's record"
    if document.hold:
        yield figures.HELD
    elif any(server.coverage for server in document.servers):
        meaning = "the share of the window in which observations last"
        least = "; of a total, the least of its servers" if _has_total(document) else ""
        yield "covered", f"{meaning}: each until the next one, at most three usual intervals{least}"
    if any(server.peak_players is not None for server in document.servers):
        yield "peak", "when first reached, and when last if more than once"


_MAX_MARKS = 36
"""The most marks of a drawing, so that it fits beside identifiers."""

_STEP_HEADERS = {"day": "day", "week": "week from", "month": "month"}

_MAX_STEPS_LISTED = 62
"""Two months of days."""


_LATER = f"averages of days, and their part of the first; {text.NOTHING} is observed below 80%"


def render_growth(document: analysis.GrowthDocument, screen: Screen) -> str:
    """Render the growth of servers, and for a single server a list of its steps."""
    servers = document.servers
    if not servers:
        return screen.render(Text("no server matches"))
    columns: dict[str, Sequence[str | Text]] = {
        "average": [text.format_average(one.average_players) for one in servers],
        "change": figures.align_changes((one.change, one.average_players) for one in servers),
        "trend": [
            figures.format_trend(one.players_per_week, one.average_players, one.coverage)
            for one in servers
        ],
        figures.name_first_last(screen): _list_first_last(servers, screen),
    }
    # A mark stands for one step or several.
    length = max(-(-len(servers[0].steps) // _MAX_MARKS), 1)
    cells = [
        figures.join_cells(figures.list_growth_cells(document, one), length) for one in servers
    ]
    notes = []
    for one, drawn in zip(servers, cells, strict=True):
        has_average = one.average_players is not None
        drawing = [figures.draw_averages(drawn, screen)] if has_average else []
        notes.append(
            [*drawing, *_list_growth_notes(one, document.step), *_list_remaining(one, document)]
        )
    lines = _build_lines(servers, columns, notes, screen)
    is_single = len(servers) == 1 and servers[0].average_players is not None
    steps = list(_list_steps(servers[0], document, screen)) if is_single else []
    zone, step = ZoneInfo(document.time_zone), document.step
    named = zip((one.server_id for one in servers), cells, strict=True)
    marks, scale = figures.describe_drawings(named, figures.describe_step(step, length), screen)
    has_partial = is_single and any(map(_is_part, servers[0].steps))
    fields = [
        *_list_window(document.window.from_, document.window.to, document.as_of, zone),
        *figures.list_change_fields(servers, document.window, screen),
        (
            "trend",
            "the median change between two whole days, in players a week; flat is below 1% a week",
        ),
        *([("later", _LATER)] if servers[0].remaining else []),
        *([figures.HELD] if document.hold else []),
        *([figures.describe_partial(step)] if has_partial else []),
        ("marks", marks if scale else None),
        ("scale", scale),
    ]
    table = layout.build_server_table([*columns], lines, screen)
    return screen.render_blocks(table, steps, [build_fields_grid(fields, screen)])


def _list_remaining(
    server: analysis.ServerGrowth, document: analysis.GrowthDocument
) -> Iterator[str]:
    for one in server.remaining or ():
        when = f"{one.days} days later"
        if not one.days:
            when = f"on {figures.format_step(one.from_, ZoneInfo(document.time_zone), 'day')}"
        share = f" ({text.format_share(one.share)})" if one.days and one.share is not None else ""
        yield f"{when}: {text.format_average(one.average_players)}{share}"


def _list_growth_notes(server: analysis.ServerGrowth, step: str) -> Iterator[str]:
    yield text.format_count(server.sample_count, "observation")
    empty = sum(one.average_players is None for one in server.steps)
    if server.average_players is not None and empty:
        yield f"{empty:,} of {text.format_count(len(server.steps), step)} empty"


def _list_steps(
    server: analysis.ServerGrowth, document: analysis.GrowthDocument, screen: Screen
) -> Iterator[RenderableType]:
    """Yield a list of the last steps of a server."""
    zone = ZoneInfo(document.time_zone)
    shown = server.steps[-_MAX_STEPS_LISTED:]
    if len(shown) < len(server.steps):
        earlier = text.format_count(len(server.steps) - len(shown), f"earlier {document.step}")
        yield Text(f"{earlier} not shown; --format csv prints all", "dim", overflow="fold")
    changes = figures.align_changes((one.change, one.average_players) for one in shown)
    headers = (_STEP_HEADERS[document.step], "average", "change", "observations", "")
    for count in range(len(headers), 1, -1):  # as many of the first columns as fit
        table = start_table(*headers[:count], right=headers[1:4])
        for step, change in zip(shown, changes, strict=True):
            is_part, average = _is_part(step), text.format_average(step.average_players)
            cells = (
                figures.format_step(step.from_, zone, document.step),
                f"{figures.PARTIAL}{average}" if is_part else average,
                change,
                f"{step.sample_count:,}",
                f"{text.format_share(step.observed_share)} observed" if is_part else "",
            )
            table.add_row(*cells[:count], style="dim" if step.is_partial else "")
        if screen.has_room_for(table):
            break
    yield table


def _is_part(step: analysis.GrowthStepPart) -> bool:
    return step.is_partial and step.average_players is not None


_LABEL_WIDTH = 5
_SHADES = ("·", "░", "▒", "▓", "█")
_STYLES = ("dim", "blue", "cyan", "yellow", "red")


def render_peak_hours(document: analysis.PeakHours, screen: Screen) -> str:
    """Render a heat map for each server, or a bar for each hour or weekday; below them notes."""
    servers, window, zone = document.servers, document.window, ZoneInfo(document.time_zone)
    maps = [[*_build_title(one, screen), *_build_map(one, document, screen)] for one in servers]
    fields = _list_window(window.from_, window.to, document.as_of, zone)
    fields += [figures.HELD] if document.hold else []
    return screen.render_blocks(*maps, [build_fields_grid(fields, screen)])


def _build_title(server: analysis.NamedServer, screen: Screen) -> Iterator[Text]:
    return layout.escape_server(screen, server).build_card_head(screen.width)


def _build_map(
    server: analysis.ServerPeakHours, document: analysis.PeakHours, screen: Screen
) -> Iterator[RenderableType]:
    averages = [cell.average_players for cell in server.cells]
    known = [average for average in averages if average is not None]
    if server.busiest is None or server.quietest is None:
        shortage = figures.describe_shortage(server, document.by)
        yield Text(f"{shortage}; use a longer window", overflow="fold")
        return
    lowest, highest = min(known), max(known)
    low, high = map(text.format_average, (lowest, highest))
    if document.by == "week-hour":
        yield from _draw_map(server.cells, lowest, highest, screen)
        scale = f"{' '.join(_SHADES)} from {low} to {high}, in equal parts"
    else:
        yield from _draw_bars(server.cells, highest, screen)
        scale = f"from 0 to the highest average, {high}"
    fields = [("scale", f"all averages are {low}" if lowest == highest else scale)]
    if server.has_hours:
        fields[:0] = [
            ("busiest", _describe_cell(server.get_cell(server.busiest))),
            ("quietest", _describe_cell(server.get_cell(server.quietest))),
        ]
    if server.restart_player_hours is not None:
        hour = text.format_hour(server.quietest.weekday, server.quietest.hour, 3)
        cost = text.format_average(server.restart_player_hours)
        fields.insert(2, ("restart", f"{hour} costs {cost} player-hours"))
    if len(known) < len(averages):
        cells = text.format_count(len(averages), figures.HOURS[document.by].partition(" ")[0])
        blank = f"{len(averages) - len(known)} of {cells}"
        fields.append(("blank", f"{blank}, {figures.name_few(document)}"))
    yield build_fields_grid(fields, screen)


_BAR_WIDTH = 40


def _draw_bars(
    cells: Sequence[analysis.HourCellPart], highest: float, screen: Screen
) -> Iterator[Text]:
    """Yield a line for each cell, with its average and a bar from 0."""
    averages = [text.format_average(cell.average_players) for cell in cells]
    width = max(map(len, averages))
    for cell, average in zip(cells, averages, strict=True):
        label = (
            f"{cell.hour:02}:00"
            if cell.weekday is None
            else text.format_hour(cell.weekday, None, 3)
        )
        head = f"{label.ljust(_LABEL_WIDTH)}  {average:>{width}}  "
        room = min(max(screen.width - len(head), 1), _BAR_WIDTH)
        length = round((cell.average_players or 0) / (highest or 1) * room)
        yield Text(head).append("█" * length, "cyan")


def _draw_map(
    cells: Sequence[analysis.HourCellPart], lowest: float, highest: float, screen: Screen
) -> Iterator[Text]:
    """Yield the lines of a map; none if it does not fit."""
    width = 2 if screen.width >= _LABEL_WIDTH + 2 * 24 else 1
    if screen.width < _LABEL_WIDTH + width * 24:
        return
    hours = "".join(f"{hour:02}".ljust(6) for hour in range(0, 24, 6 // width))
    yield Text(" " * _LABEL_WIDTH + hours.rstrip(), "bold")
    for number, weekday in enumerate(text.WEEKDAYS):
        line = Text(weekday[:3].ljust(_LABEL_WIDTH), no_wrap=True)
        for cell in cells[24 * number : 24 * number + 24]:
            if cell.average_players is None:
                line.append(" " * width)
                continue
            level = figures.find_level(cell.average_players, lowest, highest, len(_SHADES))
            line.append(_SHADES[level] * width, _STYLES[level])
        yield line


def _describe_cell(cell: analysis.HourCellPart) -> str:
    return (
        f"{text.format_hour(cell.weekday, cell.hour, 3)}, average"
        f" {text.format_average(cell.average_players)}, median"
        f" {text.format_median(cell.median_players)} of"
        f" {text.format_count(cell.sample_count, 'observation')}"
    )


_MISSING_CORRELATIONS: Mapping[analysis.MissingCorrelation, str] = {
    "coverage": "observed for less than 80%",
    "steps": "not enough data",
    "constant": "one never changes",
}
_BAR_HALF = 10


def render_together(document: analysis.Together, screen: Screen) -> str:
    """Render the correlation of each pair of servers, with a bar from -1 to 1."""
    table = start_table("server", "and", "steps", "correlation", "", right=("steps", "correlation"))
    for pair in document.pairs:
        if pair.correlation is None or pair.reason:
            shown, drawn = text.NOTHING, _MISSING_CORRELATIONS[pair.reason or "steps"]
        else:
            shown = f"{pair.correlation:+z.2f}"
            mark = "█" * round(abs(pair.correlation) * _BAR_HALF)
            left, right = (mark, "") if pair.correlation < 0 else ("", mark)
            drawn = f"{left:>{_BAR_HALF}}│{right}"
        ids = map(screen.escape, pair.servers)
        table.add_row(*ids, f"{pair.steps:,}", shown, drawn)
    window = document.window
    fields = [
        *_list_window(window.from_, window.to, document.as_of, ZoneInfo(document.time_zone)),
        ("steps", f"those of {figures.describe_step(document.step)} that are whole for both"),
        (
            "correlation",
            "of ranks, from -1 to 1, without the usual differences between hours of the week",
        ),
        *([figures.HELD] if document.hold else []),
    ]
    return screen.render_blocks([table], [build_fields_grid(fields, screen)])


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRECISIONS = {"minutes": 60_000, "seconds": 1000, "milliseconds": 1}
_HEADING_WIDTHS = (24, 12)
"""The widths to which hostnames above columns are cut, if the first is too wide."""

_MIN_FIGURES_WIDTH = 28
"""The least width beside the times of steps at which these are not folded."""

_PADDING = (0, 1, 0, 0)
"""Puts two spaces between columns, one of them from the box."""


def _create_clock(zone: ZoneInfo, instants: Iterable[int]) -> Callable[[int], str]:
    """Return a function that formats instants, all as precisely as one of them needs.

    If they have two UTC offsets, a local time can be repeated, so all have their offset.
    """
    found = list(instants)
    offsets = {_convert_instant(at, zone).utcoffset() for at in found}
    precision = next(
        name for name, length in _PRECISIONS.items() if all(at % length == 0 for at in found)
    )

    def format_time(at: int) -> str:
        moment = _convert_instant(at, zone)
        shown = moment if len(offsets) > 1 else moment.replace(tzinfo=None)
        return shown.isoformat(" ", precision)

    return format_time


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
    shown = (*table.first, *table.last)
    clock = _create_clock(ZoneInfo(table.query.zone), (one.observed_at for one in shown))
    grid = start_table("observed at", "players", right=("players",), padding=_PADDING)
    before = None
    for number, one in enumerate(shown):
        if table.omitted_count and number == len(table.first):
            grid.add_row(_describe_omitted(table.omitted_count))
            before = None
        distance = 0 if before is None else one.observed_at - before
        if table.usual_interval is not None and 2 * distance > 3 * table.usual_interval:
            gap = f"{text.NOTHING} gap of {text.format_span_length(distance)} {text.NOTHING}"
            grid.add_row(Text(gap, "dim"))
        grid.add_row(clock(one.observed_at), f"{one.players:,}")
        before = one.observed_at
    return screen.render(*title, grid)


def _describe_omitted(count: int) -> Text:
    return Text(f"{count:,} not shown", "dim")


def render_steps(table: analysis.StepTable, screen: Screen) -> str:
    """Render the steps of servers: a column for each where they fit, else a table for each."""
    servers = table.servers
    if not table.count:
        return screen.render(Text("no step in the window"))
    if table.query.is_sum:
        return screen.render(
            *_build_title(servers[0], screen), _build_server_grid(table, 0, screen)
        )
    if len(servers) > 1:
        for width in _HEADING_WIDTHS:
            headings = [_build_heading(server, width, screen) for server in servers]
            grid = _build_step_grid(table, headings, None, screen)
            if screen.has_room_for(grid):
                return screen.render(grid)
    blocks: list[list[RenderableType]] = [
        [*_build_title(server, screen), _build_server_grid(table, column, screen)]
        for column, server in enumerate(servers)
    ]
    return screen.render_blocks(*blocks)


def _build_server_grid(table: analysis.StepTable, column: int, screen: Screen) -> Table:
    """Return the table of one server with its observations, or of a sum with its servers."""
    headings = [Text(table.query.figure), Text("servers" if table.query.is_sum else "observations")]
    return _build_step_grid(table, headings, column, screen)


def _build_step_grid(
    table: analysis.StepTable, headings: Iterable[Text], column: int | None, screen: Screen
) -> Table:
    """Return a table with the times of each step, and the figures of one column or of all."""
    edges = (at for line in (*table.first, *table.last) for at in (line.start, line.end))
    clock = _create_clock(ZoneInfo(table.query.zone), edges)
    is_narrow = screen.width < 2 * len(clock(0)) + _MIN_FIGURES_WIDTH
    grid = start_table(padding=_PADDING)
    for name in ("from", "to"):
        grid.add_column(name, overflow="fold", no_wrap=not is_narrow)
    for heading in headings:
        grid.add_column(heading, justify="right", overflow="fold")
    for line in _iter_lines(table, column):
        if line is None:
            grid.add_row(_describe_omitted(table.omitted_count))
            continue
        cells = [_format_players(cell, table.query) for cell in line.cells]
        if column is not None:
            cells.append(_count_observations(line, table.query))
        style = "" if _is_observed(line) else "dim"
        grid.add_row(clock(line.start), clock(line.end), *cells, style=style)
    return grid


def _count_observations(line: analysis.StepLine, query: analysis.HistoryQuery) -> Text:
    (cell,) = line.cells
    if cell.players is None:
        return Text(f"gap of {text.format_span_length(line.end - line.start)}")
    return Text(f"{cell.servers if query.is_sum else cell.observations:,}")


def _iter_lines(
    table: analysis.StepTable, column: int | None
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
        for is_observed, group in groupby(lines, _is_observed):
            if is_observed:
                yield from group
            else:
                empty = list(group)
                yield empty[0]._replace(end=empty[-1].end)


def _is_observed(line: analysis.StepLine) -> bool:
    return any(cell.players is not None for cell in line.cells)


def _format_players(cell: analysis.StepCell, query: analysis.HistoryQuery) -> Text:
    if cell.players is None:
        return Text(text.NOTHING)
    shown = figures.format_aggregate(cell.players, query.aggregate)
    # Before the figure, so that the figures of a column stay aligned.
    return Text(figures.PARTIAL + shown, "dim") if cell.is_partial else Text(shown)


def _build_heading(server: ServerName, width: int, screen: Screen) -> Text:
    """Return the id, and below it the hostname, cut to a width or to the width of the id."""
    name = screen.escape(text.format_id(server.server_id))
    hostname = screen.escape_name(server.hostname)
    return Text("\n").join([name, screen.truncate(hostname, max(name.cell_len, width))])


def render_notes(notes: analysis.HistoryNotes, screen: Screen) -> str:
    """Render what the tables of a history have in common."""
    query = notes.query
    start = None if query.window.start == BEFORE_ALL else query.window.start
    fields = _list_window(start, query.window.end, notes.as_of, ZoneInfo(query.zone))
    if query.step is not None:
        fields.append((query.figure, f"the {figures.AGGREGATES[query.aggregate]} of each step"))
        if notes.has_partial:
            fields.append(figures.describe_partial(query.step))
    elif not notes.hold:
        fields.append(("gap", "more than 1.5 usual intervals between two observations"))
    fields += [figures.HELD] if notes.hold else []
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
    analysis.Together: render_together,
    analysis.Top: render_stats,
}
