"""Draw values as columns of block characters."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from srvstat.render.axes import choose_ticks, format_ticks

_EIGHTHS, _THIRDS = " ▁▂▃▄▅▆▇█", " .:#"
_LIGHT, _LIGHT_IN_ASCII = "░", "o"
OVERDRAWN = frozenset({" ", _EIGHTHS[-1], _THIRDS[-1], _LIGHT, _LIGHT_IN_ASCII})
"""The characters that are not the upper end of a column."""

_MAX_PITCH = 7
_MIN_PITCH_WITH_GAP = 3
_HEIGHTS = {1: 10, 2: 8, 3: 6, 4: 5}
"""The usual rows of a panel, by the number of panels."""
_LEAST_HEIGHT = 4
_FEW_ROWS = 5


class Layout(NamedTuple):
    """How values share the cells of a line.

    A column stands for `merged` values and takes `pitch` cells, the last `gap` of them blank.
    """

    merged: int
    pitch: int
    gap: int


class Scale(NamedTuple):
    """The vertical axis of a panel, from 0 to `top`.

    `labels` are at the upper edges of rows counted from below; -1 is the horizontal axis.
    """

    top: float
    height: int
    labels: dict[int, str]

    @property
    def label_width(self) -> int:
        """The width of the longest label."""
        return max(map(len, self.labels.values()))

    def format_axis(self, row: int, label_width: int) -> str:
        """Format the axis beside a row, with its label unless the width of labels is 0."""
        label = self.labels.get(row, "")
        axis = "└" if row < 0 else "┤" if label else "│"
        return f"{label:>{label_width}} {axis}" if label_width else axis


def choose_layout(count: int, room: int, *, has_gaps: bool = False, period: int = 0) -> Layout:
    """Return the widest layout of `count` values, at least one, in `room` cells.

    A whole number of columns stands for `period` values.
    """
    merged = -(-count // room)
    while period % merged:
        merged += 1
    pitch = min(room // -(-count // merged), _MAX_PITCH)
    return Layout(merged, pitch, 1 if has_gaps and pitch >= _MIN_PITCH_WITH_GAP else 0)


def choose_scale(high: float, panels: int, unit: str = "") -> Scale:
    """Return a scale from 0 to a round number of at least `high`, for one of several panels."""
    rows = _HEIGHTS.get(panels, _LEAST_HEIGHT)
    if not high:
        return _build_scale([0, 1], rows, unit)
    # In few rows, each can have a label, and the height of columns matters more.
    counts = range(3, rows + 2) if rows <= _FEW_ROWS else [rows // 2 + 1]
    scales = [_build_scale(choose_ticks(0, high, count), rows, unit) for count in counts]
    return max(scales, key=lambda scale: high / scale.top * scale.height)


def _build_scale(ticks: Sequence[float], rows: int, unit: str) -> Scale:
    """Return a scale of about `rows` rows, with a whole number of rows between two ticks."""
    steps = len(ticks) - 1
    each = max(round(rows / steps), 1)
    labels = {each * at - 1: label + unit for at, label in enumerate(format_ticks(ticks))}
    return Scale(ticks[-1], each * steps, labels)


def draw_columns(
    values: Sequence[float | None], scale: Scale, *, ascii_only: bool, light: Collection[int] = ()
) -> list[str]:
    """Return the rows of columns, the uppermost first, with one character for each value.

    Heights are rounded to eighths of a row, in ASCII to thirds. None is blank, and 0 the lowest
    mark, which then no other value has. The columns `light` consist of a lighter character, in
    whole rows. A value above the scale fills all rows.
    """
    marks = _THIRDS if ascii_only else _EIGHTHS
    full = len(marks) - 1
    levels = _round_heights(values, scale.height * full / scale.top)
    for at in light:
        levels[at] = min(max((levels[at] + full // 2) // full, levels[at] > 0), scale.height) * full
    rows = []
    for row in reversed(range(scale.height)):
        cells = [marks[min(max(level - row * full, 0), full)] for level in levels]
        for at in light:
            if cells[at] == marks[-1]:
                cells[at] = get_light_mark(ascii_only=ascii_only)
        rows.append("".join(cells))
    return rows


def get_zero_mark(*, ascii_only: bool) -> str:
    """Return the column of a value of 0."""
    return (_THIRDS if ascii_only else _EIGHTHS)[1]


def get_light_mark(*, ascii_only: bool) -> str:
    """Return the character that fills lighter columns."""
    return _LIGHT_IN_ASCII if ascii_only else _LIGHT


def _round_heights(values: Sequence[float | None], parts_of_one: float) -> list[int]:
    """Return the height of each value in parts of a row: 0 only for None."""
    least = 2 if 0 in values else 1
    return [
        0 if value is None else max(round(value * parts_of_one), least if value else 1)
        for value in values
    ]
