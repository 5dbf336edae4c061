"""Draw areas of values, filled from zero, with plotille's canvas of Braille dots.

They read well without color, and in ASCII, into which a screen translates the dots.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from typing import NamedTuple

from plotille import Canvas
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

_BLANK = "\u2800"


class PlotArea(NamedTuple):
    """An area of `width` columns, each of two values, beside a scale."""

    width: int
    scale: Scale
    label_width: int

    @property
    def capacity(self) -> int:
        """The number of values that it shows side by side."""
        return self.width * COLUMN_DOTS

    def draw(self, values: Sequence[float | None], ticks: Iterable[Tick]) -> list[Text]:
        """Return the lines of an area, filled from 0 to each value, and the axis below it.

        There are as many values as the capacity. None is blank, while 0 has one dot.
        """
        height = self.scale.height * _ROW_DOTS
        dots = [
            0 if value is None else max(round(value / self.scale.top * height), 1)
            for value in values
        ]
        cells = _draw_cells()
        rows = []
        numbers = range(self.scale.height - 1, -1, -1)
        for row in numbers:
            parts = [min(max(one - row * _ROW_DOTS, 0), _ROW_DOTS) for one in dots]
            pairs = zip(parts[::2], parts[1::2], strict=True)
            rows.append("".join([cells[left][right] for left, right in pairs]))
        lines = map(self._build_line, numbers, rows, repeat(STYLE))
        return [*lines, self._build_line(-1, draw_axis(ticks, self.width), AXIS_STYLE)]

    def label_axis(self, ticks: Iterable[Tick]) -> Text:
        """Return the labels below the last area."""
        start = " " * (self.label_width + AXIS_WIDTH)
        return Text(start + draw_labels(ticks), AXIS_STYLE)

    def _build_line(self, row: int, drawn: str, style: str) -> Text:
        axis = self.scale.format_axis(row, self.label_width)
        return Text.assemble((axis, AXIS_STYLE), (drawn.rstrip(), style))


@cache
def _draw_cells() -> list[str]:
    """Return the character of a cell by the numbers of dots in its left and its right column.

    Areas are put together from these: to draw them dot by dot takes ten times as long.
    """
    counts = range(_ROW_DOTS + 1)
    canvas = Canvas(len(counts) ** 2, 1)
    dots = [one for left in counts for right in counts for one in (left, right)]
    canvas.braille_image(
        [one > row for row in reversed(range(_ROW_DOTS)) for one in dots], threshold=True
    )
    drawn = canvas.plot("\n").replace(_BLANK, " ")
    return [drawn[left * len(counts) : (left + 1) * len(counts)] for left in counts]


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
