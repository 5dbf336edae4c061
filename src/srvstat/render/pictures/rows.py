"""Divide a picture into rows, one for each server."""

from xml.etree.ElementTree import Element

from srvstat.render.pictures.svg import (
    BOLD,
    FONT_SIZE,
    Box,
    add_text,
    fit_text,
    measure_text,
)

HEADING = 25
_SPACE = 10


def divide_rows(area: Box, count: int) -> list[Box]:
    """Return the boxes of rows of equal height, from the top, with some space between them."""
    height = (area.height + _SPACE) / max(count, 1) - _SPACE
    tops = [area.top + number * (height + _SPACE) for number in range(count)]
    return [Box(area.left, top, area.right, top + height) for top in tops]


def draw_heading(picture: Element, row: Box, name: str, figures: str) -> Box:
    """Draw the name of a server and its figures above a row, and return the box below."""
    y = row.top + FONT_SIZE
    taken = measure_text(figures)
    add_text(picture, "heading", (0, y), fit_text(name, row.right - taken - 12, BOLD))
    add_text(picture, "tick", (row.right, y), figures, "end")
    return row._replace(top=row.top + HEADING)
