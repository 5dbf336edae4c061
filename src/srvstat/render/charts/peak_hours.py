"""The chart of the document `peakHours`: a typical week, hour by hour."""

from collections.abc import Iterator

from srvstat.documents.peak_hours import PeakHours, ServerPeakHours
from srvstat.render.charts.panels import (
    Frame,
    Panel,
    choose_frame,
    list_notes,
    render_panels,
)
from srvstat.render.charts.ticks import Tick
from srvstat.render.charts.titles import build_title
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import join_averages
from srvstat.render.tables.peak_hours import WEEKDAYS
from srvstat.render.text import format_count

_MIN_DAY_WIDTH = 8
"""The least width of a day with a tick at noon."""


def render_peak_hours(document: PeakHours, screen: Screen) -> str:
    """Render the average of each hour of the week, of several where they do not fit."""

    def merge(length: int) -> list[list[float | None]]:
        return [join_averages(_list_averages(one), length) for one in document.servers]

    frame = choose_frame(merge, screen, period=24)
    panels = [
        Panel(build_title(one.hostname, one.server_id, _describe_busiest(one), screen), columns)
        for one, columns in zip(document.servers, merge(frame.layout.merged), strict=True)
    ]
    caption = _describe_chart(document, panels, frame, screen)
    return render_panels(panels, frame, _list_ticks(frame), caption, screen)


def _list_averages(server: ServerPeakHours) -> list[tuple[int, float | None]]:
    return [(cell.sample_count, cell.average_players) for cell in server.cells]


def _describe_busiest(server: ServerPeakHours) -> str:
    if server.busiest is None:
        return "too few observations"
    return f"busiest {WEEKDAYS[server.busiest.weekday - 1]} {server.busiest.hour:02}:00"


def _list_ticks(frame: Frame) -> Iterator[Tick]:
    """Yield a tick at the start of each day, and at noon where it fits."""
    layout = frame.layout
    for number, weekday in enumerate(WEEKDAYS):
        hours = 24 * number
        yield Tick(hours * layout.pitch // layout.merged, weekday)
        if 24 * layout.pitch // layout.merged >= _MIN_DAY_WIDTH:
            yield Tick((hours + 12) * layout.pitch // layout.merged, "12")


def _describe_chart(document: PeakHours, panels: list[Panel], frame: Frame, screen: Screen) -> str:
    hours = "an hour" if frame.layout.merged == 1 else format_count(frame.layout.merged, "hour")
    zone = document.time_zone
    what = f"average players, each column {hours} of the week on the clock of {zone}"
    return "; ".join([what, *list_notes(panels, "fewer than 4 observations an hour", screen)])
