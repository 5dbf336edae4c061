"""Lay out panels of columns, one for each server, one below the other on one horizontal axis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from srvstat.render.charts.columns import (
    OVERDRAWN,
    Layout,
    Scale,
    choose_layout,
    choose_scale,
    draw_columns,
    get_zero_mark,
)
from srvstat.render.charts.texts import (
    AXIS_STYLE,
    AXIS_WIDTH,
    STYLE,
    build_caption,
    get_chart_width,
)
from srvstat.render.charts.ticks import Tick, draw_axis, draw_labels, select_ticks
from srvstat.render.screen import Screen

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
    """What is drawn for a server, below its title; nothing if all columns are None.

    `line` has the row, counted from below, of a line in each cell. `below` is a line of text below
    the axis.
    """

    title: Text
    columns: Columns
    line: Sequence[int | None] = ()
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
    merge: Merge,
    screen: Screen,
    *,
    unit: str = "",
    has_gaps: bool = False,
    period: int = 0,
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


def list_notes(panels: Iterable[Panel], blank: str, screen: Screen) -> Iterator[str]:
    """Yield what the lowest mark and a blank mean, if there are any."""
    drawn = (panel.columns for panel in panels if not panel.columns.is_empty)
    values = {value for columns in drawn for value in columns.values}
    if 0 in values:
        yield f"{get_zero_mark(ascii_only=screen.ascii_only)} is 0"
    if None in values:
        yield f"blank is {blank}"


def render_panels(
    panels: Sequence[Panel],
    frame: Frame,
    ticks: Iterable[Tick],
    notes: Iterable[str],
    screen: Screen,
) -> str:
    """Render panels, at least one with columns, and below them labels and a caption of notes."""
    shown = select_ticks(ticks, frame.width)
    lines = list(_build_panels(panels, frame, shown, screen))
    lines.append(_indent(frame, Text(draw_labels(shown), AXIS_STYLE)))
    drawn = zip(panels, frame.scales, strict=True)
    return screen.render(
        *lines,
        build_caption(notes, [scale.top for panel, scale in drawn if not panel.columns.is_empty]),
    )


def _build_panels(
    panels: Sequence[Panel], frame: Frame, ticks: Iterable[Tick], screen: Screen
) -> Iterator[Text]:
    axis = draw_axis(ticks, frame.width)
    for panel, scale in zip(panels, frame.scales, strict=True):
        yield panel.title
        # Without columns, the axis is enough.
        if not panel.columns.is_empty:
            rows = _draw_rows(panel, scale, frame.layout, screen)
            for number, row in zip(reversed(range(scale.height)), rows, strict=True):
                yield _join_row(scale, number, frame, row)
        yield _join_row(scale, -1, frame, Text(axis, AXIS_STYLE))
        if panel.below:
            yield _indent(frame, Text(panel.below, _MARK_STYLE))


def _draw_rows(panel: Panel, scale: Scale, layout: Layout, screen: Screen) -> Iterator[Text]:
    values, light = panel.columns
    drawn = draw_columns(values, scale, ascii_only=screen.ascii_only, light=light)
    for number, cells in zip(reversed(range(scale.height)), drawn, strict=True):
        width, blank = layout.pitch - layout.gap, " " * layout.gap
        row = Text("".join(cell * width + blank for cell in cells), STYLE)
        for at in light:
            row.stylize("dim", at * layout.pitch, (at + 1) * layout.pitch)
        distance = max(layout.pitch, _LEAST_DASH_DISTANCE)
        yield _draw_dashes(
            row,
            [
                at
                for at, line in enumerate(panel.line)
                if line == number and not (at + 1) % distance
            ],
        )


def _draw_dashes(row: Text, places: Iterable[int]) -> Text:
    """Return a row with dashes, but none over the upper end of a column."""
    cells = list(row.plain)
    drawn = [at for at in places if cells[at] in OVERDRAWN]
    for at in drawn:
        cells[at] = "─"
    line = row.copy()
    line.plain = "".join(cells)
    for at in drawn:
        line.stylize(_MARK_STYLE, at, at + 1)
    return line


def _join_row(scale: Scale, number: int, frame: Frame, row: Text) -> Text:
    row.rstrip()
    return Text.assemble((scale.format_axis(number, frame.label_width), AXIS_STYLE), row)


def _indent(frame: Frame, line: Text) -> Text:
    return Text.assemble(" " * (frame.label_width + AXIS_WIDTH if frame.label_width else 1), line)
