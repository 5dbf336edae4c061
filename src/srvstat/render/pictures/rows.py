"""Divide a picture into rows, one for each server."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from srvstat.render.pictures.svg import (
    BOLD,
    FONT_SIZE,
    Box,
    add,
    add_text,
    fit_text,
    measure_text,
)

HEADING = 25
_SPACE = 10
_LEAST_NAME = 80
"""The least width of a name in pixels, and of the space after it."""


def divide_rows(area: Box, count: int) -> list[Box]:
    """Return the boxes of rows of equal height, from the top, with some space between them."""
    height = (area.height + _SPACE) / max(count, 1) - _SPACE
    tops = [area.top + number * (height + _SPACE) for number in range(count)]
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
