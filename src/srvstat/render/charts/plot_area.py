"""Draw areas of values, filled from zero, with Braille dots.

They read well without color, and in ASCII, into which a screen translates the dots.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.text import Text

from srvstat.render.charts.columns import Scale, choose_scale
from srvstat.render.charts.texts import AXIS_STYLE, AXIS_WIDTH, STYLE, get_chart_width
from srvstat.render.charts.ticks import Tick, draw_axis, draw_labels
from srvstat.render.screen import Screen

_MOST_LABEL_WIDTH = len("9,999,999")

_MOST_SMALL = 4
"""With more areas, each is as high as with this many."""
_MOST_TIMES_HIGHER = 4
"""Areas whose highest values differ by a greater factor have scales of their own."""

_ROW_DOTS, COLUMN_DOTS = 4, 2
"""The dots of a cell, one above the other and side by side."""

_BLANK = 0x2800
"""The Braille pattern without dots. Each dot is a bit of the others."""
_LEFT_DOTS = (0, 0x40, 0x44, 0x46, 0x47, 0x40, 0x04, 0x02, 0x01)
_RIGHT_DOTS = (0, 0x80, 0xA0, 0xB0, 0xB8, 0x80, 0x20, 0x10, 0x08)
"""The dots of a column by its pattern.

A pattern is a number of dots from below or, above `_ROW_DOTS`, a single dot at a height from 1 on.
"""


class Point(NamedTuple):
    """A value, and whether it is pale."""

    value: float | None
    is_pale: bool


class PlotArea(NamedTuple):
    """An area of `width` columns, each of two values, beside a scale."""

    width: int
    scale: Scale
    label_width: int

    @property
    def capacity(self) -> int:
        """The number of values that it shows side by side."""
        return self.width * COLUMN_DOTS

    def draw(self, points: Sequence[Point], ticks: Iterable[Tick]) -> list[Text]:
        """Return the lines of an area, filled from 0 to each value, and the axis below it.

        There are as many points as the capacity. None is blank, while 0 has one dot. Of a pale
        value, only the upper edge is drawn, at most at the upper end of the scale.
        """
        height = self.scale.height * _ROW_DOTS
        dots = [
            0
            if point.value is None
            else min(max(round(point.value / self.scale.top * height), 1), height)
            for point in points
        ]
        pale = [point.is_pale for point in points]
        lines = []
        for row in range(self.scale.height - 1, -1, -1):
            patterns = [
                _find_edge(one - row * _ROW_DOTS)
                if is_pale
                else min(max(one - row * _ROW_DOTS, 0), _ROW_DOTS)
                for one, is_pale in zip(dots, pale, strict=True)
            ]
            lines.append(self._join_line(row, _draw_row(patterns)))
        return [*lines, self._join_line(-1, Text(draw_axis(ticks, self.width), AXIS_STYLE))]

    def label_axis(self, ticks: Iterable[Tick]) -> Text:
        """Return the labels below the last area."""
        start = " " * (self.label_width + AXIS_WIDTH)
        return Text(start + draw_labels(ticks), AXIS_STYLE)

    def _join_line(self, row: int, drawn: Text) -> Text:
        drawn.rstrip()
        axis = self.scale.format_axis(row, self.label_width)
        return Text.assemble((axis, AXIS_STYLE), drawn)


def _find_edge(dots: int) -> int:
    """Return the pattern with the upper edge of a column, if the edge is in the row."""
    return _ROW_DOTS + dots if 0 < dots <= _ROW_DOTS else 0


def _draw_row(patterns: Sequence[int]) -> Text:
    """Return a row of cells, each with the patterns of its left and its right column."""
    pairs = list(zip(patterns[::2], patterns[1::2], strict=True))
    cells = "".join(chr(_BLANK | _LEFT_DOTS[left] | _RIGHT_DOTS[right]) for left, right in pairs)
    row = Text(cells.replace(chr(_BLANK), " "), STYLE)
    for at, pair in enumerate(pairs):
        if max(pair) > _ROW_DOTS and not any(0 < one <= _ROW_DOTS for one in pair):
            row.stylize("dim", at, at + 1)
    return row


def fit_plot_areas(screen: Screen, highs: Sequence[float]) -> list[PlotArea]:
    """Return areas as wide as the screen, each for values from 0 to a highest one.

    They have a common scale, unless a highest value would be small on it.
    """
    least = min(filter(None, highs), default=0)
    if least * _MOST_TIMES_HIGHER >= max(highs):
        highs = [max(highs)] * len(highs)
    scales = [choose_scale(high, min(len(highs), _MOST_SMALL)) for high in highs]
    label_width = max(scale.label_width for scale in scales)
    width = max(get_chart_width(screen) - label_width - AXIS_WIDTH, 1)
    return [PlotArea(width, scale, label_width) for scale in scales]


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, however long the labels of the scale are."""
    width = get_chart_width(screen) - _MOST_LABEL_WIDTH - AXIS_WIDTH
    return max(width, 1) * COLUMN_DOTS
