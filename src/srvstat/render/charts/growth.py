"""The chart of the document `growth`: a column for each step, and the trend."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from srvstat.documents.analysis import GrowthDocument, GrowthStepPart, ServerGrowth
from srvstat.render.axes import choose_time_ticks
from srvstat.render.changes import describe_step, format_trend
from srvstat.render.charts.columns import get_light_mark
from srvstat.render.charts.panels import (
    Columns,
    Frame,
    Panel,
    choose_frame,
    list_notes,
    render_panels,
)
from srvstat.render.charts.texts import build_title, render_nothing
from srvstat.render.charts.ticks import Tick
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_step, join_cells, list_growth_cells
from srvstat.render.text import NOTHING, format_count
from srvstat.render.trend_line import find_trend_line

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
    length = frame.layout.merged
    panels = [
        Panel(
            build_title(one.hostname, one.server_id, _describe_trend(one), screen),
            columns,
            list(_draw_trend(one, frame, number)),
        )
        for number, (one, columns) in enumerate(zip(document.servers, merge(length), strict=True))
    ]
    notes = _list_notes(document, panels, length, screen)
    ticks = _list_ticks(document, frame)
    return render_panels(panels, frame, ticks, notes, screen)


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


def _draw_trend(server: ServerGrowth, frame: Frame, number: int) -> Iterator[int | None]:
    """Yield the row of the trend in each cell; None outside of the chart."""
    line = find_trend_line(server)
    if line is None:
        return
    scale = frame.scales[number]
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


def _list_ticks(document: GrowthDocument, frame: Frame) -> list[Tick]:
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


def _list_notes(
    document: GrowthDocument, panels: Sequence[Panel], length: int, screen: Screen
) -> Iterator[str]:
    step = document.step
    steps = describe_step(step) if length == 1 else format_count(length, step)
    rest = len(document.servers[0].steps) % length
    last = f", the last one {rest}" if rest else ""
    yield f"average players, each column {steps}{last}, in {document.time_zone}"
    yield from list_notes(panels, "no observation", screen)
    if any(panel.columns.light for panel in panels):
        yield f"{get_light_mark(ascii_only=screen.ascii_only)} is part of {steps}"
    if any(panel.line for panel in panels):
        yield "─ is the trend"
