"""Draw areas of values, filled from zero, with plotille's canvas of Braille dots.

They read well without color, and in ASCII, into which a screen translates the dots.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plotille import Canvas
from rich.text import Text

from srvstat.render.charts.columns import Scale, choose_scale
from srvstat.render.charts.ticks import Tick, draw_axis, draw_labels
from srvstat.render.screen import Screen

USUAL_WIDTH = 80
"""The width of a chart where there is no limit."""

_MOST_LABEL_WIDTH = len("9,999,999")
_AXIS_WIDTH = 2
"""The vertical axis and the space before it."""

_MOST_SMALL = 4
"""With more areas, each is as high as with this many."""
_MOST_TIMES_HIGHER = 4
"""Areas whose highest values differ by a greater factor have scales of their own."""

_ROW_DOTS, _COLUMN_DOTS = 4, 2
_BLANK = "\u2800"
_STYLE, _AXIS_STYLE = "cyan", "dim"


class PlotArea(NamedTuple):
    """An area of `width` columns, each of two values, beside a scale."""

    width: int
    scale: Scale
    label_width: int

    @property
    def capacity(self) -> int:
        """The number of values that it shows side by side."""
        return self.width * _COLUMN_DOTS

    def draw(self, values: Sequence[float | None], ticks: Iterable[Tick]) -> list[Text]:
        """Return the lines of an area, filled from 0 to each value, and the axis below it.

        There are as many values as the capacity. None is blank, while 0 has one dot.
        """
        height = self.scale.height * _ROW_DOTS
        dots = [
            0 if value is None else max(round(value / self.scale.top * height), 1)
            for value in values
        ]
        canvas = Canvas(self.width, self.scale.height)
        # An image takes less time than a line for each value.
        image = [dot > row for row in range(height - 1, -1, -1) for dot in dots]
        canvas.braille_image(image, threshold=True)
        rows = canvas.plot("\n").replace(_BLANK, " ").split("\n")
        numbers = reversed(range(self.scale.height))
        lines = [
            self._build_line(number, row, _STYLE) for number, row in zip(numbers, rows, strict=True)
        ]
        return [*lines, self._build_line(-1, draw_axis(ticks, self.width), _AXIS_STYLE)]

    def label_axis(self, ticks: Iterable[Tick]) -> Text:
        """Return the labels below the last area."""
        start = " " * (self.label_width + _AXIS_WIDTH)
        return Text(start + draw_labels(ticks), _AXIS_STYLE)

    def _build_line(self, row: int, drawn: str, style: str) -> Text:
        axis = self.scale.format_axis(row, self.label_width)
        return Text.assemble((axis, _AXIS_STYLE), (drawn, style))


def fit_plot_areas(screen: Screen, highs: Sequence[float]) -> list[PlotArea]:
    """Return areas as wide as the screen, each for values from 0 to a highest one.

    They have a common scale, unless a highest value would be small on it.
    """
    least = min(filter(None, highs), default=0)
    if least * _MOST_TIMES_HIGHER >= max(highs):
        highs = [max(highs)] * len(highs)
    scales = [choose_scale(high, min(len(highs), _MOST_SMALL)) for high in highs]
    label_width = max(scale.label_width for scale in scales)
    width = max(get_chart_width(screen) - label_width - _AXIS_WIDTH, 1)
    return [PlotArea(width, scale, label_width) for scale in scales]


def get_chart_width(screen: Screen) -> int:
    """Return the width of charts on a screen."""
    return screen.width or USUAL_WIDTH


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, however long the labels of the scale are."""
    width = get_chart_width(screen) - _MOST_LABEL_WIDTH - _AXIS_WIDTH
    return max(width, 1) * _COLUMN_DOTS
