"""Draw players over time for a terminal: an area for each server, on a shared time axis.

Each dot of a Braille pattern is one bit, so drawing needs no library. plotext, uniplot and
asciichartpy are slow to import, print escape sequences in labels, or have no time axis.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.documents import analysis
from srvstat.render import figures, text
from srvstat.render.axes import choose_highs, choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.layout import choose_styles
from srvstat.render.screen import UNLIMITED, Screen

_USUAL_WIDTH = 80
"""The chart width if the output has no width limit."""
_AXIS_WIDTH = 2
"""The width of the vertical axis and the space before it."""
_MIN_NAME_WIDTH = 12
"""A hostname that would be cut to fewer cells is omitted."""
_MOST_LABEL_WIDTH = len("9,999,999")
_LEAST_LABEL_DISTANCE = 9
"""The usual distance between labels on the horizontal axis, in cells."""

_HEIGHTS = {1: 10, 2: 8, 3: 6, 4: 5}
"""Rows per panel, by the number of panels."""
_USUAL_HEIGHT = 4
"""Rows per panel for more panels than listed above."""
_LEAST_HEIGHT, _MOST_HEIGHT = 2, 12
"""The limits of rows per panel when the panels are fitted to the terminal."""
_COMMON_LINES = 5
"""The lines below all panels: the axis, its labels, two lines of notes, and the prompt."""
_FEW_ROWS = 5
_AXIS_STYLE = "dim"

_ROW_DOTS, _COLUMN_DOTS = 4, 2
"""The rows and columns of dots in a Braille pattern."""
_BLANK = 0x2800
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of the dots, from the bottom up, in the left and right column of a pattern."""

Cells = Sequence[analysis.StepCell]
"""The values of a server. Values of partial steps are dimmed and do not affect the scale."""


class Scale(NamedTuple):
    """The vertical axis of a panel, from 0 to `top`.

    `labels` maps a row, counted from the bottom, to the label at its upper edge. Row -1 is the
    horizontal axis.
    """

    top: float
    height: int
    labels: dict[int, str]


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, whatever the length of the scale's labels."""
    width = _get_width(screen) - _MOST_LABEL_WIDTH - _AXIS_WIDTH
    return max(width, 1) * _COLUMN_DOTS


def _get_width(screen: Screen) -> int:
    return _USUAL_WIDTH if screen.width == UNLIMITED else screen.width


def render_chart(table: analysis.StepTable, screen: Screen) -> str:
    """Render the values of steps: an area for each server or sum.

    Servers get separate filled areas, because overlapping lines are unreadable without color. The
    areas share a scale, unless a small server would look flat beside a large one, and fill the
    terminal's height.
    """
    lines = (*table.first, *table.last)
    columns = list(zip(*(line.cells for line in lines), strict=True))
    if all(map(_is_empty, columns)):
        return screen.render(Text("nothing to draw: no observations in the window"))
    highs = choose_highs([figures.find_highest(cells) for cells in columns])
    rows = _choose_rows(len(columns), screen)
    scales = [choose_scale(high, rows) for high in highs]
    label_width = max(len(label) for scale in scales for label in scale.labels.values())
    width = max(_get_width(screen) - label_width - _AXIS_WIDTH, 1)
    edges = _widen_ends([lines[0].start, *(line.end for line in lines)])
    # Divide the time into equal parts; each part shows the step at its middle.
    start, length, count = edges[0], edges[-1] - edges[0], width * _COLUMN_DOTS
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    steps = [bisect_right(edges, middle) - 1 for middle in middles]
    drawn: list[Text] = []
    styles = choose_styles(len(columns))
    for server, cells, scale, style in zip(table.servers, columns, scales, styles, strict=True):
        drawn.append(
            _build_title(server, _describe_cells(cells, table.query, edges), screen, style)
        )
        area = [] if _is_empty(cells) else _draw_area([cells[step] for step in steps], scale, style)
        for height, row in zip(reversed(range(len(area))), area, strict=True):
            label = scale.labels.get(height, "")
            edge = f"{label:>{label_width}} {'┤' if label else '│'}"
            drawn.append(Text.assemble((edge, _AXIS_STYLE), row))
    axis, labels = _draw_axis(edges, width, ZoneInfo(table.query.zone))
    drawn.append(Text(f"{scales[-1].labels[-1]:>{label_width}} └{axis}", _AXIS_STYLE))
    drawn.append(Text(" " * (label_width + _AXIS_WIDTH) + labels, _AXIS_STYLE))
    tops = {scale.top for cells, scale in zip(columns, scales, strict=True) if not _is_empty(cells)}
    notes = [*_describe_chart(table, lines), *(["the scales differ"] if len(tops) > 1 else [])]
    return screen.render(*drawn, Text("; ".join(notes), _AXIS_STYLE, overflow="fold"))


def _is_empty(cells: Cells) -> bool:
    return all(cell.players is None for cell in cells)


def _choose_rows(panels: int, screen: Screen) -> int:
    """Return the number of rows per panel, below a title line each."""
    if screen.height is None:
        return _HEIGHTS.get(panels, _USUAL_HEIGHT)
    rows = (screen.height - _COMMON_LINES) // panels - 1
    return min(max(rows, _LEAST_HEIGHT), _MOST_HEIGHT)


def choose_scale(high: float | None, rows: int) -> Scale:
    """Return a scale from 0 to a round number of at least `high`, in at most `rows` rows."""
    if not high:
        return _build_scale([0, 1], rows)
    # With few rows, each row can have a label, and using the full height matters more.
    counts = range(3, rows + 2) if rows <= _FEW_ROWS else [rows // 2 + 1]
    scales = [_build_scale(choose_ticks(0, high, count), rows) for count in counts]
    return max(scales, key=lambda scale: high / scale.top * scale.height)


def _build_scale(ticks: Sequence[float], rows: int) -> Scale:
    """Return a scale of at most `rows` rows, with a whole number of rows between ticks."""
    steps = len(ticks) - 1
    each = max(rows // steps, 1)
    labels = {each * at - 1: label for at, label in enumerate(format_ticks(ticks))}
    return Scale(ticks[-1], each * steps, labels)


def _build_title(server: analysis.NamedServer, note: str, screen: Screen, style: str) -> Text:
    """Return the line above an area: the id, the hostname, possibly cut, and a note.

    If space is short, the note takes precedence over the hostname, because the id already
    identifies the server.
    """
    width = _get_width(screen)
    title = screen.escape(text.format_id(server.server_id), f"bold {style}")
    name = screen.escape_name(server.hostname)
    rest = f"  {note}" if title.cell_len + 2 + len(note) <= width else ""
    room = width - title.cell_len - 2 - len(rest)
    if name.plain != title.plain and room >= min(_MIN_NAME_WIDTH, name.cell_len):
        title = Text.assemble(title, "  ", screen.truncate(name, room))
    return Text.assemble(title, rest)


def _describe_cells(cells: Cells, query: analysis.HistoryQuery, edges: Sequence[int]) -> str:
    """Return the statistics of whole steps, and when the highest step began."""
    if _is_empty(cells):
        return "no observation"
    whole = figures.list_whole(cells)
    if not whole:
        return "no whole step"
    # Format averages with as few digits as the labels of the scale.
    aggregate = "median" if query.aggregate == "mean" else query.aggregate
    lowest, highest, last = (
        figures.format_aggregate(one, aggregate) for one in (min(whole), max(whole), whole[-1])
    )
    peak = next(
        at
        for at, cell in zip(edges, cells, strict=False)
        if not cell.is_partial and cell.players == max(whole)
    )
    zone = ZoneInfo(query.zone)
    day, clock = text.format_day(peak, query.window.end, zone), text.format_clock(peak, zone)[11:16]
    when = day if clock == "00:00" else f"{day} {clock}"
    return f"lowest {lowest}, highest {highest} on {when}, last {last}"


def _draw_area(cells: Cells, scale: Scale, style: str) -> list[Text]:
    """Return the rows of an area of Braille dots, filled from 0 to each value.

    Each character shows two values. None is blank, while 0 has one dot. For a partial step, only
    the upper edge is drawn, clipped at the top of the scale.
    """
    height = scale.height * _ROW_DOTS
    heights = [
        0 if cell.players is None else min(max(round(cell.players / scale.top * height), 1), height)
        for cell in cells
    ]
    rows = []
    for row in reversed(range(scale.height)):
        bits = []
        for at, cell in enumerate(cells):
            dots = max(heights[at] - row * _ROW_DOTS, 0)
            first = dots - 1 if cell.is_partial else 0
            bits.append(sum(_DOTS[at % 2][first:dots]))
        patterns = zip(bits[::2], bits[1::2], strict=True)
        characters = "".join(chr(_BLANK | left | right) for left, right in patterns)
        line = Text(characters.replace(chr(_BLANK), " ").rstrip(), style)
        for at in range(0, len(cells), 2):
            drawn = [cells[one] for one in (at, at + 1) if bits[one]]
            if drawn and all(cell.is_partial for cell in drawn):
                line.stylize("dim", at // 2, at // 2 + 1)
        rows.append(line)
    return rows


def _draw_axis(edges: Sequence[int], width: int, zone: ZoneInfo) -> tuple[str, str]:
    """Return the time axis with its ticks, and the labels that fit below it."""
    start, end = edges[0], edges[-1]
    length, parts = end - start, width * _COLUMN_DOTS
    labels, places = "", set()
    for at, label in choose_time_ticks(start, end, max(width // _LEAST_LABEL_DISTANCE, 1), zone):
        # The first part whose middle is at or after the tick, where a step from then on begins.
        part = -((length - 2 * parts * (at - start)) // (2 * length))
        cell = part // _COLUMN_DOTS
        first = max(cell - len(label) // 2, 0)
        if (not labels or first > len(labels)) and first + len(label) <= width:
            labels = labels.ljust(first) + label
            places.add(cell)
    return "".join("┬" if at in places else "─" for at in range(width)), labels


def _describe_chart(table: analysis.StepTable, lines: Sequence[analysis.StepLine]) -> Iterator[str]:
    step = figures.describe_step(table.query.step or "step")
    aggregate = figures.AGGREGATES[table.query.aggregate]
    what = aggregate if " " in aggregate else f"{aggregate} players"
    yield f"{what} in steps of {step}, in {table.query.zone}"
    if any(cell.players is None for line in lines for cell in line.cells):
        yield "blank is no observation"
    if table.has_partial:
        yield f"a line without an area below it is part of {step}"


def _widen_ends(edges: Sequence[int]) -> Sequence[int]:
    """Extend the first and last step to full length if the window cuts them."""
    if len(edges) < 4:  # noqa: PLR2004 - no step has two neighbors
        return edges
    first, second, *_, second_last, last = edges
    start = min(first, second - (edges[2] - second))
    return [start, *edges[1:-1], max(last, second_last + (second_last - edges[-3]))]
