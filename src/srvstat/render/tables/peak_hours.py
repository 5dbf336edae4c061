"""The heat map of the document `peakHours`: a row for each weekday, a column for each hour."""

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.analysis import HourCellPart, PeakHours, ServerPeakHours
from srvstat.render.fields import build_fields_grid
from srvstat.render.local_time import WEEKDAYS, format_clock, format_local_window
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import describe_shortage, find_level, format_rounded
from srvstat.render.tables.server_table import ServerLines, escape_server, get_width
from srvstat.render.text import format_count

_LABEL_WIDTH = 5
_SHADES = ("·", "░", "▒", "▓", "█")
_STYLES = ("dim", "blue", "cyan", "yellow", "red")


def render_peak_hours(document: PeakHours, screen: Screen) -> str:
    """Render a heat map for each server, and below them notes."""
    parts: list[RenderableType] = []
    for server in document.servers:
        parts += [*_build_block(server, screen), Text()]
    return screen.render(*parts, _build_fields(document, screen))


def _build_block(server: ServerPeakHours, screen: Screen) -> Iterator[RenderableType]:
    names = (server.server_id, server.cfx_id)
    head = escape_server(ServerLines(server.hostname, names, (), ()), screen)
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
    cells: Sequence[HourCellPart], lowest: float, highest: float, screen: Screen
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


def _describe_cell(cell: HourCellPart) -> str:
    observations = format_count(cell.sample_count, "observation")
    return (
        f"{WEEKDAYS[cell.weekday - 1][:3]} {cell.hour:02}:00 to {cell.hour + 1:02}:00, average"
        f" {format_rounded(cell.average_players, 2)}, median"
        f" {format_rounded(cell.median_players, 1)} of {observations}"
    )


def _describe_scale(lowest: float, highest: float) -> str:
    if lowest == highest:
        return f"all averages are {format_rounded(lowest, 2)}"
    low, high = format_rounded(lowest, 2), format_rounded(highest, 2)
    return f"{' '.join(_SHADES)} from {low} to {high}, in equal parts"


def _build_fields(document: PeakHours, screen: Screen) -> Table:
    zone = ZoneInfo(document.time_zone)
    return build_fields_grid(
        [
            ("window", format_local_window(document.window, zone)),
            ("as of", format_clock(document.as_of, zone)),
            ("times", zone.key),
        ],
        screen,
    )
