"""The chart of the document `peakHours`: a typical week, hour by hour."""

from collections.abc import Iterator, Sequence

from srvstat.documents.analysis import PeakHours, ServerPeakHours, StepCell
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
from srvstat.render.local_time import WEEKDAYS
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import join_cells
from srvstat.render.text import format_count

_MIN_DAY_WIDTH = 8
"""The least width of a day with a tick at noon."""


def render_peak_hours(document: PeakHours, screen: Screen) -> str:
    """Render the average of each hour of the week, of several where they do not fit."""

    def merge(length: int) -> list[Columns]:
        joined = (join_cells(_list_cells(one), length) for one in document.servers)
        return [Columns([cell.players for cell in cells]) for cells in joined]

    frame = choose_frame(merge, screen, period=24)
    panels = [
        Panel(build_title(one.hostname, one.server_id, _describe_busiest(one), screen), columns)
        for one, columns in zip(document.servers, merge(frame.layout.merged), strict=True)
    ]
    if all(panel.columns.is_empty for panel in panels):
        return render_nothing("too few observations", screen)
    notes = _list_notes(document, panels, frame, screen)
    return render_panels(panels, frame, _list_ticks(frame), notes, screen)


def _list_cells(server: ServerPeakHours) -> list[StepCell]:
    return [StepCell(cell.sample_count, 1, cell.average_players, 1) for cell in server.cells]


def _describe_busiest(server: ServerPeakHours) -> str:
    if server.busiest is None:
        return "too few observations"
    if not server.has_hours:
        return "too few hours of the week"
    return f"busiest {WEEKDAYS[server.busiest.weekday - 1][:3]} {server.busiest.hour:02}:00"


def _list_ticks(frame: Frame) -> Iterator[Tick]:
    """Yield a tick at the start of each day, and at noon where it fits."""
    layout = frame.layout
    for number, weekday in enumerate(WEEKDAYS):
        hours = 24 * number
        yield Tick(hours * layout.pitch // layout.merged, weekday[:3])
        if 24 * layout.pitch // layout.merged >= _MIN_DAY_WIDTH:
            yield Tick((hours + 12) * layout.pitch // layout.merged, "12")


def _list_notes(
    document: PeakHours, panels: Sequence[Panel], frame: Frame, screen: Screen
) -> Iterator[str]:
    length = frame.layout.merged
    hours = "an hour" if length == 1 else format_count(length, "hour")
    yield f"average players, each column {hours} of the week on the clock of {document.time_zone}"
    yield from list_notes(panels, "fewer than 4 observations an hour", screen)
