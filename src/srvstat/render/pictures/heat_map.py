"""Draw the players of one server in each hour of the week."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from srvstat.documents.analysis import HourCellPart, HourPart, ServerPeakHours
from srvstat.render.local_time import WEEKDAYS, format_hour
from srvstat.render.pictures.frame import MARGIN
from srvstat.render.pictures.svg import (
    FONT_SIZE,
    Box,
    Size,
    add,
    add_text,
    add_tooltip,
    create_picture,
    measure_text,
    name_servers,
)
from srvstat.render.tables.figures import describe_shortage, find_level, format_rounded
from srvstat.render.text import format_count

LEVELS = 7
"""The colors of cells, `--level-0` to `--level-6` in palette.css."""

_LEFT, _ABOVE = 34, 20
_KEY_HEIGHT = 22
_KEY_BOX = 16
"""The width of a color in the scale, if there is room."""
_KEY_SPACE = 6
"""The space between the colors and the averages beside them."""
_LEAST_WIDTH_FOR_LINE = 760
"""In narrower pictures, the scale has several lines."""
_LEAST_HOUR = 20
"""The least width of an hour in pixels; narrower ones have fewer labels."""


class _Range(NamedTuple):
    """The averages of the first and of the last level."""

    lowest: float
    highest: float

    def find_level(self, average: float) -> int:
        """Return the level of an average."""
        return find_level(average, self.lowest, self.highest, LEVELS)


def draw_heat_map(server: ServerPeakHours, size: Size, *, is_well_observed: bool = True) -> Element:
    """Draw a cell for each hour of the week, from Monday 0:00, with a scale below.

    The hours are on the clock of the document. Cells without an average are outlines. The busiest
    hour has a frame and is named, if the window is well observed.
    """
    busiest = find_busiest(server) if is_well_observed else None
    name = name_servers([server])[0]
    title = f"Players in each hour of the week: {name}"
    picture = create_picture("heat-map", size, title, list(_describe(server, busiest)))
    averages = [one.average_players for one in server.cells if one.average_players is not None]
    levels = _Range(min(averages, default=0), max(averages, default=0))
    box = Box(
        _LEFT,
        _ABOVE,
        size.width - MARGIN,
        size.height - _count_key_lines(server, size, busiest) * _KEY_HEIGHT,
    )
    _draw_labels(picture, box)
    for cell in server.cells:
        _draw_cell(picture, box, cell, levels)
    if busiest is not None:
        spot = _place_cell(box, busiest)
        frame = {"x": spot.left, "y": spot.top, "width": spot.width, "height": spot.height}
        add(picture, "rect", "marker", **frame)
    _draw_key(picture, size, levels if averages else None, server, busiest)
    return picture


def find_busiest(server: ServerPeakHours) -> HourPart | None:
    """Return the busiest hour; None if no hour is busier than another, or too few have averages."""
    averages = [cell.average_players for cell in server.cells if cell.average_players is not None]
    return server.busiest if server.has_hours and len(set(averages)) > 1 else None


def _has_empty_cells(server: ServerPeakHours) -> bool:
    return any(cell.average_players is None for cell in server.cells)


def _count_key_lines(server: ServerPeakHours, size: Size, busiest: HourPart | None) -> int:
    if size.width >= _LEAST_WIDTH_FOR_LINE or server.busiest is None:
        return 1
    return 1 + (busiest is not None) + _has_empty_cells(server)


def _place_cell(box: Box, cell: HourCellPart | HourPart) -> Box:
    width, height = box.width / 24, box.height / len(WEEKDAYS)
    left, top = box.left + cell.hour * width, box.top + (cell.weekday - 1) * height
    return Box(left, top, left + width, top + height)


def _draw_labels(picture: Element, box: Box) -> None:
    row = box.height / len(WEEKDAYS)
    for number, weekday in enumerate(WEEKDAYS):
        y = box.top + (number + 0.5) * row + FONT_SIZE / 3
        add_text(picture, "tick", (0, y), weekday[:3])
    every = 3 if box.width / 24 >= _LEAST_HOUR else 6
    for hour in range(0, 24, every):
        x = box.left + hour * box.width / 24
        add_text(picture, "tick", (x, box.top - 6), f"{hour:02}:00")


def _draw_cell(picture: Element, box: Box, cell: HourCellPart, levels: _Range) -> None:
    spot = _place_cell(box, cell)
    if cell.average_players is None:
        inset = {"x": spot.left + 2, "y": spot.top + 2}
        size = {"width": spot.width - 4, "height": spot.height - 4}
        element = add(picture, "rect", "cell empty", **inset, **size)
        figures = "too few observations"
    else:
        css = f"cell level-{levels.find_level(cell.average_players)}"
        place = {"x": spot.left, "y": spot.top, "width": spot.width, "height": spot.height}
        element = add(picture, "rect", css, **place)
        figures = f"average {format_rounded(cell.average_players, 2)}"
    count = format_count(cell.sample_count, "observation")
    add_tooltip(element, f"{format_hour(cell.weekday, cell.hour)}: {figures}, {count}")


def _draw_key(
    picture: Element,
    size: Size,
    levels: _Range | None,
    server: ServerPeakHours,
    busiest: HourPart | None,
) -> None:
    """Draw the scale, what an outline means, and the busiest hour, in one line if it is wide."""
    lines = _count_key_lines(server, size, busiest)
    y = size.height - 6 - (lines - 1) * _KEY_HEIGHT
    x: float = _LEFT
    if levels is not None:
        x = _draw_scale(picture, (x, y), levels, size.width)
    if busiest is not None:
        text = f"busiest {format_hour(busiest.weekday, busiest.hour)}"
        if lines == 1:
            add_text(picture, "unit", (size.width - MARGIN, y), text, "end")
        else:
            x, y = _LEFT, y + _KEY_HEIGHT
            add_text(picture, "unit", (x, y), text)
    if _has_empty_cells(server):
        if lines > 1:
            x, y = _LEFT, y + _KEY_HEIGHT
        add(picture, "rect", "empty", x=x, y=y - 10, width=_KEY_BOX - 2, height=11)
        add_text(picture, "unit", (x + _KEY_BOX + 4, y), "fewer than 4 observations")


def _draw_scale(picture: Element, at: tuple[float, float], levels: _Range, right: float) -> float:
    """Draw the colors with the averages at their ends, and return the place after them."""
    x, y = at
    low, high = (format_rounded(value, 1) for value in levels)
    words = f"players {low}"
    add_text(picture, "unit", (x, y), words)
    room = right - x - measure_text(words) - measure_text(high) - 2 * _KEY_SPACE
    box = max(min(_KEY_BOX, room / LEVELS), 1)
    x += measure_text(words) + _KEY_SPACE
    shown = range(LEVELS) if low != high else (LEVELS // 2,)
    for level in shown:
        add(picture, "rect", f"cell level-{level}", x=x, y=y - 11, width=box, height=13)
        x += box
    if low != high:
        add_text(picture, "unit", (x + _KEY_SPACE, y), high)
        x += measure_text(high) + _KEY_SPACE
    return x + 16


def _describe(server: ServerPeakHours, busiest: HourPart | None) -> Iterator[str]:
    if server.busiest is None or server.quietest is None:
        yield f"{describe_shortage(server)}."
        return
    if busiest is not None:
        for name, hour in (("Busiest", busiest), ("Quietest", server.quietest)):
            average = format_rounded(server.get_cell(hour).average_players, 2)
            yield f"{name}: {format_hour(hour.weekday, hour.hour)}, average {average}."
    known = [cell.average_players for cell in server.cells if cell.average_players is not None]
    if len(set(known)) == 1:
        yield "No hour is busier than another."
    if len(known) < len(server.cells):
        yield f"{len(server.cells) - len(known)} of {len(server.cells)} hours have no figures."
