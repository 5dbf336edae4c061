"""Draw columns and areas of values with characters, on axes that they share."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from srvstat.render.axes import choose_ticks, format_ticks
from srvstat.render.screen import Screen

USUAL_WIDTH = 80
"""The width of a chart where there is no limit."""

AXIS_WIDTH = 2
"""The vertical axis and the space before it."""

STYLE, AXIS_STYLE = "cyan", "dim"

_MIN_NAME_WIDTH = 12
"""A hostname that would be cut to fewer cells than this is left out."""


def get_chart_width(screen: Screen) -> int:
    """Return the width of charts on a screen."""
    return screen.width or USUAL_WIDTH


def build_title(hostname: str, identifier: str, note: str, screen: Screen) -> Text:
    """Return the line above a chart: the id, the hostname, which may be cut, and a note.

    The id identifies the server, so the note has room before the hostname.
    """
    width = get_chart_width(screen)
    title, name = screen.escape(identifier, "bold"), screen.escape_name(hostname)
    rest = f"  {note}" if title.cell_len + 2 + len(note) <= width else ""
    room = width - title.cell_len - 2 - len(rest)
    if name.plain != title.plain and room >= min(_MIN_NAME_WIDTH, name.cell_len):
        title = Text.assemble(title, "  ", screen.truncate(name, room))
    return Text.assemble(title, rest)


def render_nothing(reason: str, screen: Screen) -> str:
    """Render what is there in place of a chart without any value."""
    return screen.render(Text(f"nothing to draw: {reason} in the window"))


class Tick(NamedTuple):
    """A tick of the horizontal axis; `at` is a cell counted from the first column."""

    at: int
    label: str
    is_centered: bool = False

    @property
    def start(self) -> int:
        """The cell at which the label starts."""
        return max(self.at - len(self.label) // 2, 0) if self.is_centered else self.at


def select_ticks(ticks: Iterable[Tick], width: int) -> list[Tick]:
    """Return the ticks whose labels fit, one beside the other."""
    kept: list[Tick] = []
    end = 0
    for tick in ticks:
        if tick.start >= end and tick.start + len(tick.label) <= width:
            kept.append(tick)
            end = tick.start + len(tick.label) + 1
    return kept


_EIGHTHS, _THIRDS = " ▁▂▃▄▅▆▇█", " .:#"
_LIGHT, _LIGHT_IN_ASCII = "░", "o"
_OVERDRAWN = frozenset({" ", _EIGHTHS[-1], _THIRDS[-1], _LIGHT, _LIGHT_IN_ASCII})
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


_MARK_STYLE = "bold yellow"
_LABEL_WIDTHS = range(2, 13)
_LEAST_DASH_DISTANCE = 3
_MIN_ROOM = 12


class Columns(NamedTuple):
    """The values of the columns of a server, and which of them are light.

    Beside others, a light column takes no part in the scale.
    """

    values: Sequence[float | None]
    light: frozenset[int] = frozenset()

    @property
    def highest(self) -> float:
        """The highest value of the scale; 0 without any."""
        known = {at: value for at, value in enumerate(self.values) if value is not None}
        full = [value for at, value in known.items() if at not in self.light]
        return max(full or known.values(), default=0)

    @property
    def is_empty(self) -> bool:
        """Whether there is no column to draw."""
        return all(value is None for value in self.values)


class Panel(NamedTuple):
    """What is drawn for a server below its title: rows, the uppermost first, or only an axis.

    `below` is a line of text below the axis.
    """

    title: Text
    rows: Sequence[Text]
    below: str = ""


class Frame(NamedTuple):
    """What all panels share, and the scale of each. `label_width` is 0 if labels do not fit."""

    layout: Layout
    label_width: int
    column_count: int
    scales: Sequence[Scale]

    @property
    def width(self) -> int:
        """The width of all columns, in cells."""
        return self.column_count * self.layout.pitch


Merge = Callable[[int], Sequence[Columns]]
"""Returns the columns of each server; each column stands for the given number of values."""


def choose_frame(
    merge: Merge, screen: Screen, *, unit: str = "", has_gaps: bool = False, period: int = 0
) -> Frame:
    """Return the frame of panels for at least one server; see choose_layout for the options."""
    count = len(merge(1)[0].values)
    width = get_chart_width(screen) - AXIS_WIDTH
    for label_width in (*_LABEL_WIDTHS, 0):
        room = max(width - label_width, 1)
        layout = choose_layout(count, room, has_gaps=has_gaps, period=period)
        columns = merge(layout.merged)
        scales = [choose_scale(one.highest, len(columns), unit) for one in columns]
        fits = max(scale.label_width for scale in scales) <= label_width
        if fits and room >= _MIN_ROOM:
            break
    return Frame(layout, label_width, len(columns[0].values), scales)


def list_notes(columns: Iterable[Columns], blank: str, screen: Screen) -> Iterator[str]:
    """Yield what the lowest mark and a blank mean, if there are any."""
    values = {value for one in columns if not one.is_empty for value in one.values}
    if 0 in values:
        yield f"{(_THIRDS if screen.ascii_only else _EIGHTHS)[1]} is 0"
    if None in values:
        yield f"blank is {blank}"


def render_panels(
    panels: Sequence[Panel],
    frame: Frame,
    ticks: Iterable[Tick],
    notes: Iterable[str],
    screen: Screen,
) -> str:
    """Render panels, at least one with rows, and below them labels and a caption of notes."""
    shown = select_ticks(ticks, frame.width)
    places = {tick.at for tick in shown}
    axis = "".join("┬" if at in places else "─" for at in range(frame.width))
    indent = " " * (frame.label_width + AXIS_WIDTH if frame.label_width else 1)
    lines: list[Text] = []
    for panel, scale in zip(panels, frame.scales, strict=True):
        lines.append(panel.title)
        for number, row in enumerate([*panel.rows, Text(axis, AXIS_STYLE)], 1):
            row.rstrip()
            label = scale.format_axis(len(panel.rows) - number, frame.label_width)
            lines.append(Text.assemble((label, AXIS_STYLE), row))
        if panel.below:
            lines.append(Text.assemble(indent, (panel.below, _MARK_STYLE)))
    labels = ""
    for tick in shown:
        labels = labels.ljust(tick.start) + tick.label
    lines.append(Text(indent + labels, AXIS_STYLE))
    tops = {scale.top for panel, scale in zip(panels, frame.scales, strict=True) if panel.rows}
    caption = "; ".join([*notes, *(["the scales differ"] if len(tops) > 1 else [])])
    return screen.render(*lines, Text(caption, AXIS_STYLE, overflow="fold"))


def draw_rows(
    columns: Columns,
    scale: Scale,
    layout: Layout,
    screen: Screen,
    line: Sequence[int | None] = (),
) -> list[Text]:
    """Return the rows of a panel with columns, the uppermost first; none if all are None.

    `line` has the row, counted from below, of a dashed line in each cell.
    """
    if columns.is_empty:
        return []
    values, light = columns
    drawn = draw_columns(values, scale, ascii_only=screen.ascii_only, light=light)
    width, blank = layout.pitch - layout.gap, " " * layout.gap
    distance = max(layout.pitch, _LEAST_DASH_DISTANCE)
    rows = []
    for number, marks in zip(reversed(range(scale.height)), drawn, strict=True):
        cells = [*"".join(mark * width + blank for mark in marks)]
        dashes = [
            at
            for at, place in enumerate(line)
            # A dash is never over the upper end of a column.
            if place == number and not (at + 1) % distance and cells[at] in _OVERDRAWN
        ]
        for at in dashes:
            cells[at] = "─"
        row = Text("".join(cells), STYLE)
        for at in light:
            row.stylize("dim", at * layout.pitch, (at + 1) * layout.pitch)
        for at in dashes:
            row.stylize(_MARK_STYLE, at, at + 1)
        rows.append(row)
    return rows


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


def draw_area(points: Sequence[Point], scale: Scale) -> list[Text]:
    """Return the rows of an area of Braille dots, filled from 0 to each value.

    There are two points a cell. None is blank, while 0 has one dot. Of a pale value, only the upper
    edge is drawn, at most at the upper end of the scale.
    """
    height = scale.height * _ROW_DOTS
    dots = [
        0 if point.value is None else min(max(round(point.value / scale.top * height), 1), height)
        for point in points
    ]
    rows = []
    for row in range(scale.height - 1, -1, -1):
        patterns = [
            _find_edge(one - row * _ROW_DOTS)
            if point.is_pale
            else min(max(one - row * _ROW_DOTS, 0), _ROW_DOTS)
            for one, point in zip(dots, points, strict=True)
        ]
        rows.append(_draw_row(patterns))
    return rows


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


def fit_areas(screen: Screen, highs: Sequence[float]) -> Frame:
    """Return the frame of areas as wide as the screen, each for values from 0 to a highest one.

    They have a common scale, unless a highest value would be small on it.
    """
    least = min(filter(None, highs), default=0)
    if least * _MOST_TIMES_HIGHER >= max(highs):
        highs = [max(highs)] * len(highs)
    scales = [choose_scale(high, min(len(highs), _MOST_SMALL)) for high in highs]
    label_width = max(scale.label_width for scale in scales)
    width = max(get_chart_width(screen) - label_width - AXIS_WIDTH, 1)
    return Frame(Layout(1, 1, 0), label_width, width, scales)


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, however long the labels of the scale are."""
    width = get_chart_width(screen) - _MOST_LABEL_WIDTH - AXIS_WIDTH
    return max(width, 1) * COLUMN_DOTS
