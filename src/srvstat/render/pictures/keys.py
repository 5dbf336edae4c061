"""Place and draw keys: pieces of lines with the names of their servers."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from srvstat.render.pictures.svg import (
    FONT_SIZE,
    Box,
    add,
    add_line,
    add_text,
    fit_text,
    measure_text,
)
from srvstat.render.text import escape_text

KEY_HEIGHT = 17

_LINE_WIDTH = 18
_SPACE = 6
"""The space between a line and its name."""
_BETWEEN = 16
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
        left += own + _BETWEEN
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
