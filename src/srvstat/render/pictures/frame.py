"""Draw the axes of pictures: lines of a grid, ticks and units."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.pictures.svg import (
    FONT_SIZE,
    Box,
    Size,
    add_line,
    add_notes,
    add_text,
    measure_text,
)

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
