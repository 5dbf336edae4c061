"""Documents as charts for a terminal."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    GrowthStepPart,
    PeakHours,
    ServerDistribution,
    ServerGrowth,
    ServerPeakHours,
    StepCell,
    StepLine,
    StepTable,
)
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.figures import (
    describe_step,
    find_highest,
    find_trend_line,
    format_rounded,
    format_step,
    format_trend,
    join_cells,
    list_growth_cells,
    list_whole,
)
from srvstat.render.local_time import WEEKDAYS
from srvstat.render.panels import (
    COLUMN_DOTS,
    Columns,
    Frame,
    Panel,
    Point,
    Scale,
    Tick,
    build_title,
    choose_frame,
    draw_area,
    draw_rows,
    fit_areas,
    get_light_mark,
    list_notes,
    render_nothing,
    render_panels,
)
from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING, format_count

ChartDocument = Distribution | GrowthDocument | PeakHours | StepTable


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    if isinstance(document, StepTable):
        return render_step_chart(document, screen)
    if isinstance(document, Distribution):
        return render_distribution(document, screen)
    if isinstance(document, GrowthDocument):
        return render_growth(document, screen)
    return render_peak_hours(document, screen)


_PLAYER_TICK_WIDTH = 9
"""The usual distance of ticks, in cells."""


def render_distribution(document: Distribution, screen: Screen) -> str:
    """Render a histogram of the observations of each server, and below it its quartiles."""
    if not any(server.sample_count for server in document.servers):
        return render_nothing("no observation", screen)

    def merge(length: int) -> list[Columns]:
        return [Columns(_merge_shares(server, length)) for server in document.servers]

    frame = choose_frame(merge, screen, unit="%")
    drawn = zip(document.servers, merge(frame.layout.merged), frame.scales, strict=True)
    panels = [
        Panel(
            build_title(server.hostname, server.server_id, _describe_quartiles(server), screen),
            draw_rows(columns, scale, frame.layout, screen),
            _draw_quartiles(server, document, frame),
        )
        for server, columns, scale in drawn
    ]
    players = format_count(document.bin_players * frame.layout.merged, "player")
    note = (
        f"share of observations by number of players, each column {players};"
        " the line below is from the lowest to the peak, ━ between the quartiles, ┃ at the median"
    )
    return render_panels(panels, frame, _list_player_ticks(document, frame), [note], screen)


def _merge_shares(server: ServerDistribution, length: int) -> list[float | None]:
    """Return the share of each column in percent; None for 0, which is drawn as nothing."""
    sums = (sum(server.counts[at : at + length]) for at in range(0, len(server.counts), length))
    return [100 * count / server.sample_count if count else None for count in sums]


def _describe_quartiles(server: ServerDistribution) -> str:
    if server.median_players is None:
        return "no observation"
    figures = (server.median_players, server.lower_quartile, server.upper_quartile)
    median, lower, upper = (format_rounded(one, 1) for one in figures)
    return f"median {median}, quartiles {lower} and {upper}"


def _draw_quartiles(server: ServerDistribution, document: Distribution, frame: Frame) -> str:
    """Draw a line from the lowest count to the peak, thick between the quartiles."""
    figures = (
        server.lowest_players,
        server.lower_quartile,
        server.median_players,
        server.upper_quartile,
        server.peak_players,
    )
    cells = [_find_cell(one, document, frame) for one in figures if one is not None]
    if len(cells) < len(figures):
        return ""
    lowest, lower, median, upper, peak = cells
    line = " " * lowest + "├" + "─" * (peak - lowest - 1) + "┤" * (peak > lowest)
    line = line[:lower] + "━" * (upper - lower + 1) + line[upper + 1 :]
    return line[:median] + "┃" + line[median + 1 :]


def _find_cell(players: float, document: Distribution, frame: Frame) -> int:
    """Return the cell of a count, which takes the place from itself to the next one."""
    players_per_cell = document.bin_players * frame.layout.merged / frame.layout.pitch
    return int((players + 0.5 - document.first_players) / players_per_cell)


def _list_player_ticks(document: Distribution, frame: Frame) -> Iterator[Tick]:
    first = document.first_players
    last = first + len(document.servers[0].counts) * document.bin_players - 1
    ticks = choose_ticks(first, last, max(frame.width // _PLAYER_TICK_WIDTH, 3))
    for value, label in zip(ticks, format_ticks(ticks), strict=True):
        if first <= value <= last and float(value).is_integer():
            yield Tick(_find_cell(value, document, frame), label, is_centered=True)


_LABEL_WIDTH = 9
"""The usual distance of labels, in cells."""
_LEAST_STEPS_BETWEEN = 3
"""From this distance on, ticks can be inside of steps."""


def render_growth(document: GrowthDocument, screen: Screen) -> str:
    """Render the average of each step, of several where they do not fit, and the trend."""
    if not any(one.sample_count for one in document.servers):
        return render_nothing("no observation", screen)

    def merge(length: int) -> list[Columns]:
        return [_build_columns(server, length) for server in document.servers]

    frame = choose_frame(merge, screen, has_gaps=True)
    columns = merge(frame.layout.merged)
    trends = [
        list(_draw_trend(one, frame, scale))
        for one, scale in zip(document.servers, frame.scales, strict=True)
    ]
    panels = [
        Panel(
            build_title(one.hostname, one.server_id, _describe_trend(one), screen),
            draw_rows(drawn, scale, frame.layout, screen, trend),
        )
        for one, drawn, scale, trend in zip(
            document.servers, columns, frame.scales, trends, strict=True
        )
    ]
    notes = [*_list_growth_notes(document, columns, frame.layout.merged, screen)]
    notes += ["─ is the trend"] if any(trends) else []
    return render_panels(panels, frame, _list_step_ticks(document, frame), notes, screen)


def _build_columns(server: ServerGrowth, length: int) -> Columns:
    """Return a column for each `length` steps; those of which too little was observed are light."""
    cells = join_cells(list_growth_cells(server.steps), length)
    light = (at for at, one in enumerate(cells) if one.is_partial and one.players is not None)
    return Columns([one.players for one in cells], frozenset(light))


def _describe_trend(server: ServerGrowth) -> str:
    if not server.sample_count:
        return "no observation"
    trend, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    return "" if trend == NOTHING else f"trend {trend}"


def _draw_trend(server: ServerGrowth, frame: Frame, scale: Scale) -> Iterator[int | None]:
    """Yield the row of the trend in each cell; None outside of the chart."""
    line = find_trend_line(server)
    if line is None:
        return
    for at in range(frame.width):
        time = _find_time(server.steps, at, frame)
        players = line.find_players(time)
        is_inside = line.start <= time <= line.end and 0 <= players < scale.top
        yield int(players / scale.top * scale.height) if is_inside else None


def _find_time(steps: Sequence[GrowthStepPart], cell: int, frame: Frame) -> float:
    """Return the instant at the middle of a cell."""
    column, rest = divmod(cell, frame.layout.pitch)
    length = frame.layout.merged
    inside = steps[column * length : (column + 1) * length]
    start, end = inside[0].from_, inside[-1].to
    return start + (end - start) * (rest + 0.5) / frame.layout.pitch


def _list_step_ticks(document: GrowthDocument, frame: Frame) -> list[Tick]:
    """Return ticks at round times where steps start, or else at every n-th column."""
    zone = ZoneInfo(document.time_zone)
    steps, layout = document.servers[0].steps, frame.layout
    starts = [step.from_ for step in steps]
    most = max(frame.width // _LABEL_WIDTH, 2)
    found = choose_time_ticks(starts[0], steps[-1].to - 1, most, zone)
    between = len(starts) / max(len(found), 1)
    if len(found) > 1 and (
        between >= _LEAST_STEPS_BETWEEN or {one.at for one in found} <= {*starts}
    ):
        places = [(bisect_right(starts, one.at) - 1, one.label) for one in found]
    else:
        places = [(at, format_step(start, zone, document.step)) for at, start in enumerate(starts)]
    return [Tick(at // layout.merged * layout.pitch, label) for at, label in places]


def _list_growth_notes(
    document: GrowthDocument, columns: Sequence[Columns], length: int, screen: Screen
) -> Iterator[str]:
    step = document.step
    steps = describe_step(step) if length == 1 else format_count(length, step)
    rest = len(document.servers[0].steps) % length
    last = f", the last one {rest}" if rest else ""
    yield f"average players, each column {steps}{last}, in {document.time_zone}"
    yield from list_notes(columns, "no observation", screen)
    if any(one.light for one in columns):
        yield f"{get_light_mark(ascii_only=screen.ascii_only)} is part of {steps}"


_MIN_DAY_WIDTH = 8
"""The least width of a day with a tick at noon."""


def render_peak_hours(document: PeakHours, screen: Screen) -> str:
    """Render the average of each hour of the week, of several where they do not fit."""

    def merge(length: int) -> list[Columns]:
        cells = (
            [StepCell(one.sample_count, 1, one.average_players, 1) for one in server.cells]
            for server in document.servers
        )
        return [Columns([one.players for one in join_cells(each, length)]) for each in cells]

    frame = choose_frame(merge, screen, period=24)
    length = frame.layout.merged
    columns = merge(length)
    if all(one.is_empty for one in columns):
        return render_nothing("too few observations", screen)
    panels = [
        Panel(
            build_title(one.hostname, one.server_id, _describe_busiest(one), screen),
            draw_rows(drawn, scale, frame.layout, screen),
        )
        for one, drawn, scale in zip(document.servers, columns, frame.scales, strict=True)
    ]
    hours = "an hour" if length == 1 else format_count(length, "hour")
    notes = [
        f"average players, each column {hours} of the week on the clock of {document.time_zone}",
        *list_notes(columns, "fewer than 4 observations an hour", screen),
    ]
    return render_panels(panels, frame, _list_day_ticks(frame), notes, screen)


def _describe_busiest(server: ServerPeakHours) -> str:
    if server.busiest is None:
        return "too few observations"
    if not server.has_hours:
        return "too few hours of the week"
    return f"busiest {WEEKDAYS[server.busiest.weekday - 1][:3]} {server.busiest.hour:02}:00"


def _list_day_ticks(frame: Frame) -> Iterator[Tick]:
    """Yield a tick at the start of each day, and at noon where it fits."""
    layout = frame.layout
    for number, weekday in enumerate(WEEKDAYS):
        hours = 24 * number
        yield Tick(hours * layout.pitch // layout.merged, weekday[:3])
        if 24 * layout.pitch // layout.merged >= _MIN_DAY_WIDTH:
            yield Tick((hours + 12) * layout.pitch // layout.merged, "12")


_TICK_WIDTH = 9
"""The least distance of two ticks of the time axis."""

_AGGREGATES = {
    "mean": "average players",
    "median": "median players",
    "max": "highest count",
    "min": "lowest count",
    "last": "last count",
}


def render_step_chart(table: StepTable, screen: Screen) -> str:
    """Render aggregates of steps, of all that the table has: an area for each server or a sum."""
    lines = (*table.first, *table.last)
    if not any(cell.observations for line in lines for cell in line.cells):
        return render_nothing("no observation", screen)
    edges = _widen_ends([lines[0].start, *(line.end for line in lines)])
    columns = list(zip(*(line.cells for line in lines), strict=True))
    frame = fit_areas(screen, [find_highest(cells) or 0 for cells in columns])
    steps = _assign_steps(edges, frame.width * COLUMN_DOTS)
    panels = []
    for title, cells, scale in zip(_list_titles(table), columns, frame.scales, strict=True):
        points = [Point(cell.players, cell.is_partial) for cell in cells]
        is_observed = any(cell.observations for cell in cells)
        rows = draw_area([points[step] for step in steps], scale) if is_observed else []
        panels.append(Panel(build_title(*title, _describe_cells(cells), screen), rows))
    ticks = _iter_ticks(edges, frame.width, ZoneInfo(table.query.zone))
    return render_panels(panels, frame, ticks, _describe_chart(table, lines), screen)


def _list_titles(table: StepTable) -> list[tuple[str, str]]:
    """Return the hostname and the identifier of each area."""
    if table.query.is_sum:
        title = f"sum of {format_count(len(table.servers), 'server')}"
        return [(title, title)]
    return [(server.hostname, server.server_id) for server in table.servers]


def _describe_cells(cells: Sequence[StepCell]) -> str:
    """Return the figures of whole steps."""
    if not any(cell.observations for cell in cells):
        return "no observation"
    whole = list_whole(cells)
    figures = {
        "lowest": min(whole, default=None),
        "highest": max(whole, default=None),
        "last": whole[-1] if whole else None,
    }
    return ", ".join(f"{name} {format_rounded(value, 1)}" for name, value in figures.items())


def _describe_chart(table: StepTable, lines: Sequence[StepLine]) -> Iterator[str]:
    added = ", added up" if table.query.is_sum else ""
    step = describe_step(table.query.step or "step")
    what = f"{_AGGREGATES[table.query.aggregate]} in steps of {step}"
    yield f"{what}{added}, in {table.query.zone}"
    if table.query.is_sum:
        partial = sum(0 < line.cells[0].servers < len(table.servers) for line in lines)
        if partial:
            yield f"without some servers in {partial:,} of {format_count(len(lines), 'value')}"
    if any(cell.players is None for line in lines for cell in line.cells):
        yield "blank is no observation"
    if table.has_partial:
        yield f"a line without an area below it is part of {step}"


def _widen_ends(edges: Sequence[int]) -> Sequence[int]:
    """Return the edges with whole steps at the ends, which are too narrow where they are cut."""
    if len(edges) < 4:  # noqa: PLR2004 - no step has two neighbors
        return edges
    first, second, *_, second_last, last = edges
    start = min(first, second - (edges[2] - second))
    return [start, *edges[1:-1], max(last, second_last + (second_last - edges[-3]))]


def _assign_steps(edges: Sequence[int], count: int) -> list[int]:
    """Return the step in the middle of each of some equal parts of the time between edges."""
    start, length = edges[0], edges[-1] - edges[0]
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    return [bisect_right(edges, middle) - 1 for middle in middles]


def _iter_ticks(edges: Sequence[int], width: int, zone: ZoneInfo) -> Iterator[Tick]:
    start, end = edges[0], edges[-1]
    length, parts = end - start, width * COLUMN_DOTS
    for at, label in choose_time_ticks(start, end, max(width // _TICK_WIDTH, 1), zone):
        # The first part with its middle at the tick or after it, where a step from then on begins.
        part = -((length - 2 * parts * (at - start)) // (2 * length))
        yield Tick(part // COLUMN_DOTS, label, is_centered=True)
