"""Tables of statistics, growth, hours of the week and histories."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.contract.windows import BEFORE_ALL
from srvstat.documents import analysis
from srvstat.documents.document import ServerName, WindowPart
from srvstat.render import figures, layout, text
from srvstat.render.screen import HEAT_STYLES, Screen, render_table, start_table

_HOUR_MS = 3_600_000

_LEAST_DIFFERENCE = 0.05
"""The relative difference from which a time-weighted average is noted."""

_Columns = dict[str, Sequence[str | Text]]


@render_table.register
def render_stats(document: analysis.Stats | analysis.Top, screen: Screen) -> str:
    """Render the statistics of servers, and what is unusual about them."""
    servers = document.list_series()
    if not servers:
        return screen.render(Text("no server matches"))
    columns = _list_figures(document)
    required = len(columns)
    columns |= _list_optional(servers, ZoneInfo(document.time_zone), screen)
    digits = len(str(len(servers)))
    styles = layout.choose_styles(len(servers))
    rows = []
    for number, (one, *texts) in enumerate(zip(servers, *columns.values(), strict=True)):
        row = layout.escape_server(screen, one, texts, one.cells, styles[number])
        if isinstance(document, analysis.Top):
            rank = f"{number + 1 if one.server_id else '':>{digits}} "
            row = row._replace(title=Text(rank).append_text(row.title))
        rows.append(row)
        if one.previous is not None:
            before = [_list_before(one.previous, columns).get(name, "") for name in columns]
            rows.append(layout.build_row("before", before))
    table = layout.build_server_table(
        [*columns], rows, screen, optional=len(columns) - required, step=document.cell_step
    )
    footer = layout.build_footer(_list_facts(document, screen), screen)
    return screen.render(layout.build_title(_describe_window(document)), *table, *footer)


def _list_figures(document: analysis.Stats | analysis.Top) -> _Columns:
    """Return the required columns by heading."""
    servers, zone = document.list_series(), ZoneInfo(document.time_zone)
    columns: _Columns = {
        "current": [
            figures.format_current(
                one.current_players, one.last_observed_at, document.as_of, hold=document.hold
            )
            for one in servers
        ],
        "average": [text.format_average(one.average_players) for one in servers],
    }
    if any(one.share is not None for one in servers):
        columns["share"] = [_format_share(one.share) for one in servers]
    columns["change"] = figures.align_changes((one.change, one.average_players) for one in servers)
    columns["median"] = [text.format_median(one.median_players) for one in servers]
    for at, quantile in enumerate(servers[0].quantiles):
        name = f"p{text.format_quantile(quantile.quantile)}"
        columns[name] = [text.format_median(one.quantiles[at].players) for one in servers]
    columns["peak"] = [text.format_whole(one.peak_players) for one in servers]
    columns["lowest"] = [text.format_whole(one.lowest_players) for one in servers]
    if servers[0].above is not None:
        name = f"above {servers[0].above.players:,}"
        columns[name] = [_format_hours(one.above.hours if one.above else None) for one in servers]
    if document.shows_occupancy:
        columns["occupancy"] = [_format_share(one.occupancy) for one in servers]
        columns["full"] = [_format_hours(one.full_hours) for one in servers]
        columns["when open"] = [text.format_average(one.average_when_open) for one in servers]
    if document.until_last_seen:
        columns["until"] = [
            _format_time(one.window.to if one.window and one.sample_count else None, zone)
            for one in servers
        ]
    return columns


def _list_optional(
    servers: Sequence[analysis.ServerStatistics], zone: ZoneInfo, screen: Screen
) -> _Columns:
    """Return the columns that are shown only if there is room."""
    return {
        **_list_first_last(servers, screen),
        "observed": [_format_share(one.coverage) for one in servers],
        "peak at": [_format_time(one.peak_first_at, zone) for one in servers],
        "observations": [f"{one.sample_count:,}" for one in servers],
    }


def _list_first_last(servers: Sequence[figures.Server], screen: Screen) -> _Columns:
    pairs = [
        figures.format_first_last(one.first_players, one.growth.players, screen.arrow)
        for one in servers
    ]
    return {f"first {screen.arrow} last": pairs}


def _list_before(before: analysis.FiguresPart, columns: Iterable[str]) -> dict[str, str]:
    """Return the statistics of the window that a server is compared with, by column."""
    quantiles = (text.format_median(one.players) for one in before.quantiles)
    names = (name for name in columns if name[:1] == "p" and name[1:2].isdecimal())
    return {
        "average": text.format_average(before.average_players),
        "median": text.format_median(before.median_players),
        **dict(zip(names, quantiles, strict=True)),
        "peak": text.format_whole(before.peak_players),
        "lowest": text.format_whole(before.lowest_players),
        "observed": _format_share(before.coverage),
    }


def _format_share(share: float | None) -> str:
    return text.NOTHING if share is None else text.format_share(share)


def _format_time(at: int | None, zone: ZoneInfo) -> str:
    return text.NOTHING if at is None else text.format_clock(at, zone, "minutes")


def _format_hours(hours: float | None) -> str:
    length = text.format_span_length(round(hours * _HOUR_MS)) if hours else "never"
    return text.NOTHING if hours is None else length


def _describe_window(document: analysis.Stats | analysis.Top) -> str:
    """Return the title of a table of statistics."""
    window, zone = document.window, ZoneInfo(document.time_zone)
    title = figures.format_title_window(window, zone)
    if document.until_last_seen:
        length = "time" if window.from_ is None else figures.format_window_length(window)
        title = f"the {length} until each server was last seen"
    if document.versus == "usual":
        title += ", against the same hours of the four weeks before"
    elif document.previous_window is not None:
        title += f", against {figures.format_title_window(document.previous_window, zone)}"
    if isinstance(document, analysis.Top):
        shown = text.format_count(document.server_count, "server")
        if len(document.servers) < document.server_count:
            shown = f"{len(document.servers):,} of {shown}"
        title += f", {shown} by {document.by}{', the least first' if document.reverse else ''}"
    return title


def _list_facts(document: analysis.Stats | analysis.Top, screen: Screen) -> Iterator[str]:
    """Yield what is unusual about these statistics."""
    servers, zone = document.list_series(), ZoneInfo(document.time_zone)
    if document.window.to != document.as_of:
        at = text.format_zoned_time(document.as_of, zone, "minutes")
        yield f"current: from the server's metadata, as of {at}"
    if document.hold:
        yield "the API's statistics, not weighted by time" if document.is_answer else figures.HELD
    yield from figures.list_unobserved(servers, document.window, screen, document.versus)
    weighted = [
        (one, one.time_weighted_average)
        for one in servers
        if one.average_players is not None
        and one.time_weighted_average is not None
        and abs(one.time_weighted_average - one.average_players)
        > _LEAST_DIFFERENCE * one.average_players
    ]
    if weighted and not document.hold:
        first, average = weighted[0]
        more = f" and {len(weighted) - 1:,} more" if weighted[1:] else ""
        name = screen.escape(text.format_id(first.server_id)).plain
        yield f"averages differ if weighted by time: {name} {text.format_average(average)}{more}"


_STEP_HEADERS = {"day": "day", "week": "week from", "month": "month"}

_MAX_STEPS_LISTED = 62
"""Two months of days."""


@render_table.register
def render_growth(document: analysis.GrowthDocument, screen: Screen) -> str:
    """Render the growth of servers, and for a single server a list of its steps."""
    servers, zone = document.servers, ZoneInfo(document.time_zone)
    if not servers:
        return screen.render(Text("no server matches"))
    columns: _Columns = {
        "average": [text.format_average(one.average_players) for one in servers],
        "change": figures.align_changes((one.change, one.average_players) for one in servers),
        "trend": [
            figures.format_trend(one.players_per_week, one.average_players, one.coverage)
            for one in servers
        ],
    }
    for at, day in enumerate(servers[0].remaining or ()):
        name = f"{day.days} days later" if day.days else figures.format_step(day.from_, zone, "day")
        columns[name] = [_describe_remaining((one.remaining or ())[at]) for one in servers]
    optional = _list_first_last(servers, screen)
    columns |= optional
    styles = layout.choose_styles(len(servers))
    rows = [
        layout.escape_server(screen, one, texts, figures.list_growth_cells(document, one), style)
        for one, style, *texts in zip(servers, styles, *columns.values(), strict=True)
    ]
    table = layout.build_server_table(
        [*columns], rows, screen, optional=len(optional), step=document.step
    )
    is_single = len(servers) == 1 and servers[0].average_players is not None
    steps = list(_list_steps(servers[0], document, screen)) if is_single else []
    facts = figures.list_unobserved(servers, document.window, screen)
    title, footer = _frame(document, screen, facts)
    if steps:
        return screen.render_blocks([*title, *table], [*steps, *footer])
    return screen.render(*title, *table, *footer)


def _frame(
    document: analysis.GrowthDocument | analysis.PeakHours | analysis.Together,
    screen: Screen,
    facts: Iterable[str] = (),
) -> tuple[list[Text], list[Text]]:
    """Return the lines above and below a table about a window."""
    window = figures.format_title_window(document.window, ZoneInfo(document.time_zone))
    facts = [*([figures.HELD] if document.hold else []), *facts]
    return [layout.build_title(window)], layout.build_footer(facts, screen)


def _describe_remaining(part: analysis.RemainingPart) -> str:
    share = f" ({text.format_share(part.share)})" if part.days and part.share is not None else ""
    return f"{text.format_average(part.average_players)}{share}"


def _list_steps(
    server: analysis.ServerGrowth, document: analysis.GrowthDocument, screen: Screen
) -> Iterator[RenderableType]:
    """Yield a list of a server's last steps."""
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
_LONGER = (
    "the total skips times at which a server has no count; use a longer window, or leave out"
    " servers with a low coverage, which srvstat servers shows"
)
"""The explanation of empty hours of a total."""


@render_table.register
def render_peak_hours(document: analysis.PeakHours, screen: Screen) -> str:
    """Render a heat map for each server, or a bar for each hour or weekday, followed by notes."""
    servers = document.servers
    maps = [[layout.build_head(one, screen), *_build_map(one, document, screen)] for one in servers]
    title, footer = _frame(document, screen)
    return screen.render_blocks(title, *maps, footer)


def _build_map(
    server: analysis.ServerPeakHours, document: analysis.PeakHours, screen: Screen
) -> Iterator[Text]:
    """Yield the busiest and quietest hour, the map, and its scale."""
    averages = [cell.average_players for cell in server.cells]
    known = [average for average in averages if average is not None]
    is_total = server.server_id is None
    if server.busiest is None or server.quietest is None:
        shortage = figures.describe_shortage(server, document.by)
        yield Text(f"{shortage}; {_LONGER if is_total else 'use a longer window'}", overflow="fold")
        return
    if server.has_hours:
        busiest, quietest = (
            f"{text.format_hour(cell.weekday, cell.hour, 3)}"
            f" ({text.format_average(cell.average_players)} players)"
            for cell in map(server.get_cell, (server.busiest, server.quietest))
        )
        cost = ""
        if server.restart_player_hours is not None:
            players = text.format_average(server.restart_player_hours)
            cost = f"; a one-hour restart then costs {players} player-hours"
        yield Text(f"busiest {busiest}; quietest {quietest}{cost}", overflow="fold")
    lowest, highest = min(known), max(known)
    low, high = map(text.format_average, (lowest, highest))
    if document.by == "week-hour":
        yield from _draw_map(averages, lowest, highest, screen)
        scale = _draw_scale(low, high, screen)
    else:
        yield from _draw_bars(server.cells, highest, screen)
        scale = Text(f"from 0 to the highest average, {high}")
    scale = Text(f"all averages are {low}") if lowest == highest else scale
    if len(known) < len(averages):
        cells = text.format_count(len(averages), figures.HOURS[document.by].partition(" ")[0])
        blank = f"; blank: {len(averages) - len(known)} of {cells}, {figures.name_few(document)}"
        scale.append(blank)
    yield scale
    if is_total and len(known) < len(averages):
        yield Text(_LONGER, overflow="fold")


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
    averages: Sequence[float | None], lowest: float, highest: float, screen: Screen
) -> Iterator[Text]:
    """Yield the lines of a map, with the rounded averages if they fit.

    Yields nothing if the map does not fit. Cells have a color, or a shade on a screen without
    colors.
    """
    room = (screen.width - _LABEL_WIDTH) // 24
    if not room:
        return
    longest = len(f"{highest:,.0f}") + (1 if screen.color else 2)
    width = min(room, longest) if room >= longest else min(room, 2)
    hours = "".join(f"{hour:02}".ljust(3 * width) for hour in range(0, 24, 3))
    if width == 1:
        hours = "".join(f"{hour:02}".ljust(6) for hour in range(0, 24, 6))
    yield Text(" " * _LABEL_WIDTH + hours.rstrip(), "bold")
    styles: Sequence[str] = HEAT_STYLES if screen.color else _SHADES
    for number, weekday in enumerate(text.WEEKDAYS):
        line = Text(weekday[:3].ljust(_LABEL_WIDTH), no_wrap=True)
        for average in averages[24 * number : 24 * number + 24]:
            if average is None:
                line.append(" " * width)
                continue
            style = styles[figures.find_level(average, lowest, highest, len(styles))]
            value = f"{average:,.0f}" if room >= longest else ""
            if screen.color:
                line.append(value.rjust(width - bool(value)) + " " * bool(value), style)
            elif value:
                line.append(f"{style}{value:>{width - 2}} ")
            else:
                line.append(style * width)
        yield line


def _draw_scale(low: str, high: str, screen: Screen) -> Text:
    """Return the colors or shades of a map, from the lowest to the highest average."""
    if not screen.color:
        return Text(f"{low} {' '.join(_SHADES)} {high}, in equal parts")
    blocks = [("  ", style) for style in HEAT_STYLES]
    return Text.assemble(f"{low} ", *blocks, f" {high}, in equal parts")


_MISSING_CORRELATIONS: Mapping[analysis.MissingCorrelation, str] = {
    "coverage": "observed for less than 80%",
    "steps": "not enough data",
    "constant": "one never changes",
}
_BAR_HALF = 10
_WIDTH_WITH_BARS = 80


@render_table.register
def render_together(document: analysis.Together, screen: Screen) -> str:
    """Render the correlation of each pair of servers, with a bar from -1 to 1."""
    names = (
        "server",
        "other server",
        "steps",
        "correlation",
        *[""] * (screen.width >= _WIDTH_WITH_BARS),
    )
    table = start_table(*names, right=("steps", "correlation"))
    missing: Counter[analysis.MissingCorrelation] = Counter()
    for pair in document.pairs:
        if pair.correlation is None:
            missing[pair.reason or "steps"] += 1
            continue
        mark = "█" * round(abs(pair.correlation) * _BAR_HALF)
        left, right = (mark, "") if pair.correlation < 0 else ("", mark)
        ids = map(screen.escape, pair.servers)
        bar = f"{left:>{_BAR_HALF}}│{right}"
        shown = f"{pair.correlation:+z.2f}"
        cells: tuple[RenderableType, ...] = (*ids, f"{pair.steps:,}", shown, bar)
        table.add_row(*cells[: len(names)])
    reasons = (
        f"no correlation of {text.format_count(count, 'pair')}: {_MISSING_CORRELATIONS[reason]}"
        for reason, count in missing.items()
    )
    title, footer = _frame(document, screen, reasons)
    return screen.render(*title, *([table] if table.row_count else []), *footer)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRECISIONS = {"minutes": 60_000, "seconds": 1000, "milliseconds": 1}
_HEADING_WIDTHS = (24, 12)
"""The widths to which hostnames above columns are cut. The second is used if the first is too
wide.
"""

_MIN_FIGURES_WIDTH = 28
"""The minimum width beside the step times at which these are not folded."""

_PADDING = (0, 1, 0, 0)
"""Leaves two spaces between columns; the box adds one of them."""


def _create_clock(zone: ZoneInfo, instants: Iterable[int]) -> Callable[[int], str]:
    """Return a function that formats instants with the finest precision that any of them needs.

    If their UTC offsets differ, the function adds the offset, because local times can repeat.
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


@render_table.register
def render_observations(table: analysis.ObservationTable, screen: Screen) -> str:
    """Render the observations of a server."""
    title = layout.build_head(table.server, screen)
    if not table.count:
        return screen.render(title, Text("no observations in the window"))
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
    return screen.render(title, grid)


def _describe_omitted(count: int) -> Text:
    return Text(f"{count:,} not shown", "dim")


@render_table.register
def render_steps(table: analysis.StepTable, screen: Screen) -> str:
    """Render the steps of servers: a column for each if they fit, otherwise a table for each."""
    servers = table.servers
    if not table.count:
        return screen.render(Text("no steps in the window"))
    if len(servers) > 1:
        for width in _HEADING_WIDTHS:
            headings = [_build_heading(server, width, screen) for server in servers]
            grid = _build_step_grid(table, headings, None, screen)
            if screen.has_room_for(grid):
                return screen.render(grid)
    blocks: list[list[RenderableType]] = [
        [layout.build_head(server, screen), _build_server_grid(table, column, screen)]
        for column, server in enumerate(servers)
    ]
    return screen.render_blocks(*blocks)


def _build_server_grid(table: analysis.StepTable, column: int, screen: Screen) -> Table:
    """Return the table of a server with its observations, or of a sum with its servers."""
    headings = [Text(table.query.figure), Text("servers" if table.query.is_sum else "observations")]
    return _build_step_grid(table, headings, column, screen)


def _build_step_grid(
    table: analysis.StepTable, headings: Iterable[Text], column: int | None, screen: Screen
) -> Table:
    """Return a table with the times of each step, and the values of one column or of all."""
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
    """Yield the lines of a table, or of one of its columns; None stands for the omitted lines.

    Adjacent lines without observations are merged.
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
    # The mark precedes the number, so that the numbers of a column stay aligned.
    return Text(figures.PARTIAL + shown, "dim") if cell.is_partial else Text(shown)


def _build_heading(server: ServerName, width: int, screen: Screen) -> Text:
    """Return the id and, below it, the hostname, cut to `width` or to the width of the id."""
    name = screen.escape(text.format_id(server.server_id))
    hostname = screen.escape_name(server.hostname)
    return Text("\n").join([name, screen.truncate(hostname, max(name.cell_len, width))])


@render_table.register
def render_query(query: analysis.HistoryQuery, screen: Screen) -> str:
    """Render the title of a history's tables."""
    start = None if query.window.start == BEFORE_ALL else query.window.start
    window = WindowPart(from_=start, to=query.window.end)
    title = figures.format_title_window(window, ZoneInfo(query.zone))
    if query.step is not None:
        aggregate, step = figures.AGGREGATES[query.aggregate], figures.describe_step(query.step)
        title += f", each row the {aggregate} of {step}"
    return screen.render(layout.build_title(title))


@render_table.register
def render_notes(notes: analysis.HistoryNotes, screen: Screen) -> str:
    """Render the notes on all tables of a history."""
    facts = [figures.HELD] if notes.hold else []
    if notes.has_omitted:
        facts.append("the first and the last rows; --format csv prints all")
    return screen.render(*layout.build_footer(facts, screen))
