"""Draw columns of values above an axis, with plotille's canvas of braille dots.

All charts share this look: filled from zero, which reads well without color, and in ASCII, into
which a screen translates the dots. Nothing is drawn where there is no value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plotille import Canvas
from rich.text import Text

from srvstat.render.axes import choose_ticks, format_ticks
from srvstat.render.screen import Screen

USUAL_WIDTH = 80
"""The width of a chart where there is no limit."""

_MOST_AXIS_WIDTH = 11
"""The width of an axis with the label 9,999,999; none is longer."""

_ROW_DOTS, _COLUMN_DOTS = 4, 2
_BLANK = "\u2800"
_LEAST_LABEL_GAP = 1
_AREA_STYLE, _AXIS_STYLE = "cyan", "dim"


@dataclass(frozen=True, slots=True)
class PlotArea:
    """An area of `width` columns and `height` rows, for values from 0 to `top`.

    It holds two values in a column. The value axis is on the left, with a label at some rows, of
    which 0 is the lowest.
    """

    width: int
    height: int
    top: float
    labels: dict[int, str]

    @property
    def capacity(self) -> int:
        """The number of values that it shows side by side."""
        return self.width * _COLUMN_DOTS

    @property
    def axis_width(self) -> int:
        """The width of the value axis."""
        return max(map(len, self.labels.values())) + 2

    def draw(self, values: Sequence[float | None], style: str = _AREA_STYLE) -> list[Text]:
        """Return the lines of an area with its value axis, filled from 0 to each value.

        There are as many values as the capacity. None is blank, while 0 has one dot.
        """
        dots = [-1 if value is None else self._find_dot(value) for value in values]
        canvas = Canvas(self.width, self.height)
        # An image takes less time than a line for each value.
        image = [dot >= row for row in range(self._dots - 1, -1, -1) for dot in dots]
        canvas.braille_image(image, threshold=True)
        rows = canvas.plot("\n").replace(_BLANK, " ").split("\n")
        return [
            Text.assemble(
                (self._draw_axis_at(self.height - 1 - at), _AXIS_STYLE),
                (row.rstrip(), style),
                no_wrap=True,
                overflow="crop",
            )
            for at, row in enumerate(rows)
        ]

    def draw_axis(self, ticks: Iterable[tuple[float, str]]) -> list[Text]:
        """Return the axis below an area, and a line with its labels if there are any.

        Ticks are at positions from 0, the left edge, to 1, the right one, in ascending order. A
        label without room is left out, with its tick.
        """
        marks, labels = ["─"] * self.width, ""
        offset = self.axis_width
        for position, label in ticks:
            column = min(int(position * self.width), self.width - 1)
            middle = offset + column - (len(label) - 1) // 2
            start = max(min(middle, offset + self.width - len(label)), 0)
            if not labels or start >= len(labels) + _LEAST_LABEL_GAP:
                labels = labels.ljust(start) + label
                marks[column] = "┬"
        corner = "└".rjust(offset)
        lines = [corner + "".join(marks), labels]
        return [_build_line(line) for line in lines if line]

    @property
    def _dots(self) -> int:
        return self.height * _ROW_DOTS

    def _find_dot(self, value: float) -> int:
        return round(value / self.top * (self._dots - 1))

    def _draw_axis_at(self, row: int) -> str:
        label = self.labels.get(row, "").rjust(self.axis_width - 2)
        return f"{label} {'┤' if row in self.labels else '│'}"


def fit_plot_area(screen: Screen, highest: float, height: int) -> PlotArea:
    """Return an area as wide as the screen, for values from 0 to the highest one."""
    top = highest or 1
    ticks = [tick for tick in choose_ticks(0, top, height // 2 + 2) if tick <= top]
    rows = [round(tick / top * (height * _ROW_DOTS - 1)) // _ROW_DOTS for tick in ticks]
    labels = dict(zip(rows, format_ticks(ticks), strict=True))
    area = PlotArea(1, height, top, labels)
    return replace(area, width=max(get_chart_width(screen) - area.axis_width, 1))


def get_chart_width(screen: Screen) -> int:
    """Return the width of charts on a screen."""
    return screen.width or USUAL_WIDTH


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, however long the labels of the axis are."""
    return max(get_chart_width(screen) - _MOST_AXIS_WIDTH, 1) * _COLUMN_DOTS


def _build_line(text: str) -> Text:
    return Text(text, _AXIS_STYLE, no_wrap=True, overflow="crop")
