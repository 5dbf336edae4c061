"""Draw what pictures have in common: axes, rows with headings, and keys."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.pictures.svg import (
    BOLD,
    FONT_SIZE,
    Box,
    Size,
    add,
    add_line,
    add_notes,
    add_text,
    fit_text,
    measure_text,
)
from srvstat.render.text import escape_text

MARGIN = 8
"""The space between a box and the right edge of a picture."""
BELOW = 26
"""The space between a box and the lower edge of a picture, for the labels of an axis."""
_BELOW_NOTES = 14
_TICK_GAP = 6
"""The distance between a label and its axis."""
_LABEL_BELOW = 18
"""The distance from an axis down to the base line of its labels."""
TIME_LABEL_WIDTH = 76
"""The distance of two times on an axis is at least this."""


class Scale(NamedTuple):
    """A linear scale: `low` is at pixel `start`, `high` at pixel `end`."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def draw_notes(picture: Element, notes: Sequence[str], size: Size) -> float:
    """Draw what a picture shows at its top, and return the height below."""
    return add_notes(picture, notes, (0, FONT_SIZE), size.width) + _BELOW_NOTES


def measure_ticks(ticks: Sequence[float]) -> float:
    """Return the width of the labels of a vertical axis, and of the space beside them."""
    return max(map(measure_text, format_ticks(ticks))) + _TICK_GAP


def choose_player_ticks(highest: float | None, height: float) -> list[float]:
    """Return the ticks of an axis of players, from 0, for a height in pixels."""
    if not highest:
        return [0, 1]
    return choose_ticks(0, highest, max(int(height // 36), 4))


def draw_value_axis(picture: Element, box: Box, ticks: Sequence[float]) -> Scale:
    """Draw a horizontal line for each tick, with its label on the left, and return the scale."""
    scale = Scale(ticks[0], ticks[-1], box.bottom, box.top)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        y = scale.place(tick)
        css = "axis" if tick == ticks[0] else "grid"
        add_line(picture, css, (box.left, y), (box.right, y))
        add_text(picture, "tick", (box.left - _TICK_GAP, y + FONT_SIZE / 3), label, "end")
    return scale


def draw_time_axis(picture: Element, box: Box, window: tuple[int, int], zone: ZoneInfo) -> Scale:
    """Draw a mark and a label below the box for each round local time, and return the scale."""
    scale = Scale(*window, box.left, box.right)
    most = max(int(box.width // TIME_LABEL_WIDTH), 2)
    for at, label in choose_time_ticks(*window, most, zone):
        draw_tick(picture, box, scale.place(at), label)
    return scale


def draw_tick(picture: Element, box: Box, x: float, label: str) -> None:
    """Draw a mark and a label below the box, the label centered as far as there is room."""
    add_line(picture, "axis", (x, box.bottom), (x, box.bottom + 4))
    half = measure_text(label) / 2
    centered = min(max(x, half), max(x - half, box.right + MARGIN - half))
    add_text(picture, "tick", (centered, box.bottom + _LABEL_BELOW), label, "middle")


HEADING = 25
_BETWEEN_ROWS = 10
_LEAST_NAME = 80
"""The least width of a name in pixels, and of the space after it."""


def divide_rows(area: Box, count: int) -> list[Box]:
    """Return the boxes of rows of equal height, from the top, with some space between them."""
    height = (area.height + _BETWEEN_ROWS) / max(count, 1) - _BETWEEN_ROWS
    tops = [area.top + number * (height + _BETWEEN_ROWS) for number in range(count)]
    return [Box(area.left, top, area.right, top + height) for top in tops]


def draw_heading(
    picture: Element, row: Box, name: str, figures: Sequence[str], css: str = ""
) -> Box:
    """Draw the name of a server and its figures above a row, and return the box below.

    Figures after the first are left out if the name would have too little room. The first one has
    the CSS class, if any.
    """
    y = row.top + FONT_SIZE
    text = figures[0]
    for figure in figures[1:]:
        longer = f"{text}, {figure}"
        if row.right - measure_text(longer) >= _LEAST_NAME:
            text = longer
    add_text(picture, "heading", (0, y), fit_text(name, row.right - measure_text(text) - 12, BOLD))
    element = add_text(picture, "tick", (row.right, y), "" if css else text, "end")
    if css:
        first = add(element, "tspan", css)
        first.text, first.tail = figures[0], text.removeprefix(figures[0])
    return row._replace(top=row.top + HEADING)


KEY_HEIGHT = 17

_LINE_WIDTH = 18
_SPACE = 6
"""The space between a line and its name."""
_BETWEEN_KEYS = 16
"""The space between keys in a row."""


def measure_key(name: str) -> float:
    """Return the width of a key, rounded up."""
    return _LINE_WIDTH + _SPACE + measure_text(escape_text(name)) + 1


def flow_keys(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Return the left end and the row of each key, in as few rows as fit."""
    places: list[tuple[float, int]] = []
    left, row = 0.0, 0
    for name in names:
        own = measure_key(name)
        if left and left + own > width:
            left, row = 0.0, row + 1
        places.append((left, row))
        left += own + _BETWEEN_KEYS
    return places


def draw_key(
    picture: Element, number: int, name: str, at: tuple[float, float], width: float
) -> None:
    """Draw the key of a series at its left end and middle, cut to a width."""
    left, y = at
    group = add(picture, "g", f"key series-{number}")
    add_line(group, "line", (left, y), (left + _LINE_WIDTH, y))
    text = left + _LINE_WIDTH + _SPACE
    add_text(group, "label", (text, y + FONT_SIZE / 3), fit_text(name, left + width - text))


def spread_keys(wanted: Sequence[float], box: Box) -> list[float]:
    """Return the wanted heights of keys, moved so that none overlap or leave the box."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    placed = list(wanted)
    floor = box.top
    for at in order:
        placed[at] = max(placed[at], floor)
        floor = placed[at] + KEY_HEIGHT
    ceiling = box.bottom
    for at in reversed(order):
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - KEY_HEIGHT
    return placed
