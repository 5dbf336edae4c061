"""Draw documents as charts for a terminal: panels of columns or areas, on common axes.

Each dot of a Braille pattern is a bit, so drawing needs no library. plotext, uniplot and
asciichartpy import slowly, print escape sequences in labels, or have no time axis.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.documents import analysis
from srvstat.render import figures, text
from srvstat.render.axes import choose_highs, choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.layout import choose_styles
from srvstat.render.screen import UNLIMITED, Renderers, Screen

_USUAL_WIDTH = 80
"""The width of a chart where there is no limit."""
_AXIS_WIDTH = 2
"""The vertical axis and the space before it."""
_MIN_NAME_WIDTH = 12
"""A hostname that would be cut to fewer cells than this is left out."""
_MOST_LABEL_WIDTH = len("9,999,999")
_LEAST_LABEL_WIDTH = 2
_LEAST_LABEL_DISTANCE = 9
"""The usual distance of labels on the horizontal axis, in cells."""

_HEIGHTS = {1: 10, 2: 8, 3: 6, 4: 5}
"""The usual rows of a panel, by the number of panels."""
_USUAL_HEIGHT = 4
"""The usual rows of a panel, if there are more."""
_LEAST_HEIGHT, _MOST_HEIGHT = 2, 12
"""The rows of a panel that has as many as fit a terminal."""
_COMMON_LINES = 5
"""The lines below all panels: the axis and its labels, two of notes, and the prompt."""
_FEW_ROWS = 5
_MAX_PITCH = 7
_MIN_PITCH_WITH_GAP = 3

_EIGHTHS, _THIRDS = " ▁▂▃▄▅▆▇█░", " .:#o"
"""The parts of a column by their height. The last character fills columns of partial values."""
_OVERDRAWN = frozenset(" █#░o")
"""The characters that are not the upper end of a column."""
_LEAST_DASH_DISTANCE = 3
_AXIS_STYLE, _MARK_STYLE = "dim", "bold"

_ROW_DOTS, _COLUMN_DOTS = 4, 2
"""The dots of a Braille pattern, one above the other and side by side."""
_BLANK = 0x2800
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of the dots, from below, in the left and in the right column of a pattern."""

Cells = Sequence[analysis.StepCell]
"""The values of a server. A value of a partial step is pale, and does not determine the scale."""


def render_chart(document: object, screen: Screen) -> str:
    """Render a document that has a chart.

    Columns have eight levels a row, where Braille dots have four. All panels have one horizontal
    axis, and one scale, unless a small server would be flat beside a large one. Panels are as high
    as all of them fit a terminal.
    """
    return _RENDERERS[type(document)](document, screen)


Ticks = Iterable[tuple[int, int, str]]
"""The ticks of the horizontal axis: their cells, those of their labels, and the labels."""


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


class Frame(NamedTuple):
    """What all panels share, and the columns and the scale of each.

    A column stands for `merged` values and takes `pitch` cells, the last `gap` of them blank.
    """

    label_width: int
    width: int
    columns: Sequence[Cells]
    scales: Sequence[Scale]
    merged: int = 1
    pitch: int = 1
    gap: int = 0


class Panel(NamedTuple):
    """What is drawn for a server: rows, the uppermost first, or only an axis.

    `note` is beside the name of the server, and `below` a line of text below the axis.
    """

    server: analysis.NamedServer
    note: str
    rows: Sequence[Text]
    below: str = ""


def count_values(screen: Screen) -> int:
    """Return how many values fit side by side, however long the labels of the scale are."""
    width = _get_width(screen) - _MOST_LABEL_WIDTH - _AXIS_WIDTH
    return max(width, 1) * _COLUMN_DOTS


def _get_width(screen: Screen) -> int:
    return _USUAL_WIDTH if screen.width == UNLIMITED else screen.width


def _choose_rows(panels: int, screen: Screen, lines: int = 1) -> int:
    """Return the rows of each of some panels, which have `lines` of text each."""
    if screen.height is None:
        return _HEIGHTS.get(panels, _USUAL_HEIGHT)
    rows = (screen.height - _COMMON_LINES) // panels - lines
    return min(max(rows, _LEAST_HEIGHT), _MOST_HEIGHT)


def choose_scale(high: float | None, rows: int) -> Scale:
    """Return a scale from 0 to a round number of at least `high`, in at most so many rows."""
    if not high:
        return _build_scale([0, 1], rows)
    # In few rows, each can have a label, and the height of columns matters more.
    counts = range(3, rows + 2) if rows <= _FEW_ROWS else [rows // 2 + 1]
    scales = [_build_scale(choose_ticks(0, high, count), rows) for count in counts]
    return max(scales, key=lambda scale: high / scale.top * scale.height)


def _build_scale(ticks: Sequence[float], rows: int) -> Scale:
    """Return a scale of at most `rows` rows, with a whole number of rows between two ticks."""
    steps = len(ticks) - 1
    each = max(rows // steps, 1)
    labels = {each * at - 1: label for at, label in enumerate(format_ticks(ticks))}
    return Scale(ticks[-1], each * steps, labels)


def _choose_frame(
    mergers: Sequence[Callable[[int], Cells]],
    screen: Screen,
    *,
    lines: int = 1,
    has_gaps: bool = False,
    period: int = 0,
) -> Frame:
    """Return the frame of the widest columns that fit, for at least one server with a value.

    Each of `mergers` returns the columns of a server, with the given number of values in each. A
    whole number of columns stands for `period` values. Each panel has `lines` of text.
    """
    count = len(mergers[0](1))
    rows = _choose_rows(len(mergers), screen, lines)
    width = _get_width(screen) - _AXIS_WIDTH
    for label_width in range(_LEAST_LABEL_WIDTH, width):
        room = width - label_width
        merged = -(-count // room)
        while period % merged:
            merged += 1
        columns = [merge(merged) for merge in mergers]
        highs = choose_highs([figures.find_highest(one) for one in columns])
        scales = [choose_scale(high, rows) for high in highs]
        if max(scale.label_width for scale in scales) <= label_width:
            break
    pitch = min(room // len(columns[0]), _MAX_PITCH)
    gap = 1 if has_gaps and pitch >= _MIN_PITCH_WITH_GAP else 0
    return Frame(label_width, len(columns[0]) * pitch, columns, scales, merged, pitch, gap)


def _fit_areas(screen: Screen, columns: Sequence[Cells]) -> Frame:
    """Return the frame of areas as wide as the screen."""
    highs = choose_highs([figures.find_highest(cells) for cells in columns])
    rows = _choose_rows(len(columns), screen)
    scales = [choose_scale(high, rows) for high in highs]
    label_width = max(scale.label_width for scale in scales)
    width = max(_get_width(screen) - label_width - _AXIS_WIDTH, 1)
    return Frame(label_width, width, columns, scales)


def _build_title(panel: Panel, screen: Screen, style: str) -> Text:
    """Return the line above a panel: the id, the hostname, which may be cut, and a note.

    The id identifies the server, so the note has room before the hostname.
    """
    width = _get_width(screen)
    title = screen.escape(text.format_id(panel.server.server_id), f"bold {style}")
    name = screen.escape_name(panel.server.hostname)
    rest = f"  {panel.note}" if title.cell_len + 2 + len(panel.note) <= width else ""
    room = width - title.cell_len - 2 - len(rest)
    if name.plain != title.plain and room >= min(_MIN_NAME_WIDTH, name.cell_len):
        title = Text.assemble(title, "  ", screen.truncate(name, room))
    return Text.assemble(title, rest)


def _draw_rows(
    frame: Frame, screen: Screen, lines: Sequence[Sequence[int | None]] = ()
) -> list[list[Text]]:
    """Return the rows of each panel with columns, the uppermost first; none without any value.

    Each of `lines` has the row, counted from below, of a dashed line in each cell.
    """
    drawn = zip(frame.columns, frame.scales, lines or [()] * len(frame.columns), strict=True)
    return [
        [] if _is_empty(cells) else _draw_panel(cells, scale, frame, screen, line)
        for cells, scale, line in drawn
    ]


def draw_columns(cells: Cells, scale: Scale, *, ascii_only: bool) -> list[str]:
    """Return the rows of columns, the uppermost first, with one character for each value.

    Heights are rounded to eighths of a row, in ASCII to thirds. None is blank, and 0 the lowest
    mark, which then no other value has. Partial values consist of a lighter character, in whole
    rows. A value above the scale fills all rows.
    """
    marks = _THIRDS if ascii_only else _EIGHTHS
    full = len(marks) - 2
    parts_of_one = scale.height * full / scale.top
    least = 2 if any(cell.players == 0 for cell in cells) else 1
    levels = []
    for cell in cells:
        level = 0
        if cell.players is not None:
            level = max(round(cell.players * parts_of_one), least if cell.players else 1)
        if cell.is_partial:
            rows = (level + full // 2) // full
            level = min(max(rows, level > 0), scale.height) * full
        levels.append(level)
    fills = [marks[:full] + marks[-1] if cell.is_partial else marks for cell in cells]
    lines = []
    for row in reversed(range(scale.height)):
        parts = [min(max(level - row * full, 0), full) for level in levels]
        lines.append("".join(fill[part] for fill, part in zip(fills, parts, strict=True)))
    return lines


def _draw_panel(
    cells: Cells, scale: Scale, frame: Frame, screen: Screen, line: Sequence[int | None]
) -> list[Text]:
    width, blank = frame.pitch - frame.gap, " " * frame.gap
    distance = max(frame.pitch, _LEAST_DASH_DISTANCE)
    rows = []
    drawn = draw_columns(cells, scale, ascii_only=screen.ascii_only)
    for number, marks in zip(reversed(range(scale.height)), drawn, strict=True):
        characters = [*"".join(mark * width + blank for mark in marks)]
        dashes = [
            at
            for at, place in enumerate(line)
            # A dash is never over the upper end of a column.
            if place == number and not (at + 1) % distance and characters[at] in _OVERDRAWN
        ]
        for at in dashes:
            characters[at] = "─"
        row = Text("".join(characters))
        for at, cell in enumerate(cells):
            if cell.is_partial and cell.players is not None:
                row.stylize("dim", at * frame.pitch, (at + 1) * frame.pitch)
        for at in dashes:
            row.stylize(_MARK_STYLE, at, at + 1)
        rows.append(row)
    return rows


def _is_empty(cells: Cells) -> bool:
    return all(cell.players is None for cell in cells)


def _draw_area(cells: Cells, scale: Scale) -> list[Text]:
    """Return the rows of an area of Braille dots, filled from 0 to each value.

    A line of text has two values a character. None is blank, while 0 has one dot. Of a partial
    value, only the upper edge is drawn, at most at the upper end of the scale.
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
        line = Text(characters.replace(chr(_BLANK), " "))
        for at in range(0, len(cells), 2):
            drawn = [cells[one] for one in (at, at + 1) if bits[one]]
            if drawn and all(cell.is_partial for cell in drawn):
                line.stylize("dim", at // 2, at // 2 + 1)
        rows.append(line)
    return rows


def _render_nothing(reason: str, screen: Screen) -> str:
    """Render what is there in place of a chart without any value."""
    return screen.render(Text(f"nothing to draw: {reason} in the window"))


def _render_panels(
    panels: Sequence[Panel], frame: Frame, ticks: Ticks, notes: Iterable[str], screen: Screen
) -> str:
    """Render panels, at least one with rows, and below them labels and a caption of notes."""
    labels, places = "", set()
    for at, start, label in ticks:
        if (not labels or start > len(labels)) and start + len(label) <= frame.width:
            labels = labels.ljust(start) + label
            places.add(at)
    axis = "".join("┬" if at in places else "─" for at in range(frame.width))
    indent = " " * (frame.label_width + _AXIS_WIDTH)
    lines: list[Text] = []
    styles = choose_styles(len(panels))
    for panel, scale, style in zip(panels, frame.scales, styles, strict=True):
        lines.append(_build_title(panel, screen, style))
        for row, height in zip(panel.rows, reversed(range(len(panel.rows))), strict=True):
            row.rstrip()
            row.style = style
            lines.append(_build_edge(scale.labels.get(height, ""), "┤", "│", frame).append(row))
        if panel.below:
            lines.append(Text.assemble(indent, (panel.below, _MARK_STYLE)))
    lines.append(
        _build_edge(frame.scales[-1].labels[-1], "└", "└", frame).append(axis, _AXIS_STYLE)
    )
    lines.append(Text((indent + labels).rstrip(), _AXIS_STYLE))
    tops = {scale.top for panel, scale in zip(panels, frame.scales, strict=True) if panel.rows}
    caption = "; ".join([*notes, *(["the scales differ"] if len(tops) > 1 else [])])
    return screen.render(*lines, Text(caption, _AXIS_STYLE, overflow="fold"))


def _build_edge(label: str, labeled: str, plain: str, frame: Frame) -> Text:
    """Return the part of the vertical axis beside a row."""
    return Text(f"{label:>{frame.label_width}} {labeled if label else plain}", _AXIS_STYLE)


def _center(at: int, label: str) -> tuple[int, int, str]:
    """Return a tick with its label in the middle below it, as far as there is room."""
    return at, max(at - len(label) // 2, 0), label


def _list_blank_notes(columns: Iterable[Cells], blank: str, screen: Screen) -> Iterator[str]:
    """Yield what the lowest mark and a blank mean, if there are any."""
    values = {cell.players for cells in columns if not _is_empty(cells) for cell in cells}
    if 0 in values:
        yield f"{(_THIRDS if screen.ascii_only else _EIGHTHS)[1]} is 0"
    if None in values:
        yield f"blank is {blank}"


def _render_distribution(document: analysis.Distribution, screen: Screen) -> str:
    """Render a histogram of the observations of each server, and below it its quartiles."""
    if all(server.median_players is None for server in document.servers):
        return _render_nothing("no observation", screen)
    mergers = [partial(_merge_bins, one) for one in document.servers]
    frame = _choose_frame(mergers, screen, lines=2)
    panels = [
        Panel(server, _describe_quartiles(server), rows, _draw_quartiles(server, document, frame))
        for server, rows in zip(document.servers, _draw_rows(frame, screen), strict=True)
    ]
    players = text.format_count(document.bin_players * frame.merged, "player")
    unit = "time" if document.hold else "observations"
    note = (
        f"percent of {unit} by number of players, each column {players};"
        " the line below is from the lowest to the peak, ━ between the quartiles, ┃ at the median"
    )
    return _render_panels(panels, frame, _iter_player_ticks(document, frame), [note], screen)


def _merge_bins(server: analysis.ServerDistribution, length: int) -> list[analysis.StepCell]:
    """Return the share of each column in percent; None for 0, which is drawn as nothing."""
    sums = [sum(server.counts[at : at + length]) for at in range(0, len(server.counts), length)]
    shares = [100 * count / sum(sums) if count else None for count in sums]
    return [analysis.StepCell(1, 1, share, 1) for share in shares]


def _describe_quartiles(server: analysis.ServerDistribution) -> str:
    if server.median_players is None:
        return "no observation"
    quartiles = (server.median_players, server.lower_quartile, server.upper_quartile)
    median, lower, upper = map(text.format_median, quartiles)
    return f"median {median}, quartiles {lower} and {upper}"


def _draw_quartiles(
    server: analysis.ServerDistribution, document: analysis.Distribution, frame: Frame
) -> str:
    """Draw a line from the lowest count to the peak, thick between the quartiles."""
    counts = (
        server.lowest_players,
        server.lower_quartile,
        server.median_players,
        server.upper_quartile,
        server.peak_players,
    )
    cells = [_find_cell(one, document, frame) for one in counts if one is not None]
    if len(cells) < len(counts):
        return ""
    lowest, lower, median, upper, peak = cells
    line = " " * lowest + "├" + "─" * (peak - lowest - 1) + "┤" * (peak > lowest)
    line = line[:lower] + "━" * (upper - lower + 1) + line[upper + 1 :]
    return line[:median] + "┃" + line[median + 1 :]


def _find_cell(players: float, document: analysis.Distribution, frame: Frame) -> int:
    """Return the cell of a count, which takes the place from itself to the next one."""
    players_per_cell = document.bin_players * frame.merged / frame.pitch
    return int((players + 0.5 - document.first_players) / players_per_cell)


def _iter_player_ticks(document: analysis.Distribution, frame: Frame) -> Ticks:
    first = document.first_players
    last = first + len(document.servers[0].counts) * document.bin_players - 1
    ticks = choose_ticks(first, last, max(frame.width // _LEAST_LABEL_DISTANCE, 3))
    for value, label in zip(ticks, format_ticks(ticks), strict=True):
        if first <= value <= last and float(value).is_integer():
            yield _center(_find_cell(value, document, frame), label)


_LEAST_STEPS_BETWEEN = 3
"""From this distance on, ticks can be inside of steps."""


def _render_growth(document: analysis.GrowthDocument, screen: Screen) -> str:
    """Render the average of each step, of several where they do not fit, and the trend."""
    if all(one.average_players is None for one in document.servers):
        return _render_nothing("no observation", screen)
    steps = (figures.list_growth_cells(document, server) for server in document.servers)
    mergers = [partial(figures.join_cells, cells) for cells in steps]
    frame = _choose_frame(mergers, screen, has_gaps=True)
    trends = [
        list(_draw_trend(server, frame, scale))
        for server, scale in zip(document.servers, frame.scales, strict=True)
    ]
    panels = [
        Panel(server, _describe_trend(server), rows)
        for server, rows in zip(document.servers, _draw_rows(frame, screen, trends), strict=True)
    ]
    notes = [*_list_growth_notes(document, frame, screen)]
    notes += ["─ is the trend"] if any(trends) else []
    return _render_panels(panels, frame, _iter_step_ticks(document, frame), notes, screen)


def _describe_trend(server: analysis.ServerGrowth) -> str:
    if server.average_players is None:
        return "no observation"
    trend = figures.format_trend(server.players_per_week, server.average_players, server.coverage)
    return "" if trend == text.NOTHING else f"trend {trend}"


def _draw_trend(server: analysis.ServerGrowth, frame: Frame, scale: Scale) -> Iterator[int | None]:
    """Yield the row of the trend in each cell; None outside of the chart."""
    line = figures.find_trend_line(server)
    if line is None:
        return
    for at in range(frame.width):
        column, rest = divmod(at, frame.pitch)
        merged = server.steps[column * frame.merged : (column + 1) * frame.merged]
        start, end = merged[0].from_, merged[-1].to
        time = start + (end - start) * (rest + 0.5) / frame.pitch  # in the middle of the cell
        players = line.find_players(time)
        is_inside = line.start <= time <= line.end and 0 <= players < scale.top
        yield int(players / scale.top * scale.height) if is_inside else None


def _iter_step_ticks(document: analysis.GrowthDocument, frame: Frame) -> Ticks:
    """Yield ticks at round times where steps start, or else at every n-th column."""
    zone = ZoneInfo(document.time_zone)
    steps = document.servers[0].steps
    starts = [step.from_ for step in steps]
    most = max(frame.width // _LEAST_LABEL_DISTANCE, 2)
    found = choose_time_ticks(starts[0], steps[-1].to - 1, most, zone)
    between = len(starts) / max(len(found), 1)
    is_at_starts = {one.at for one in found} <= {*starts}
    if len(found) > 1 and (between >= _LEAST_STEPS_BETWEEN or is_at_starts):
        places = [(bisect_right(starts, one.at) - 1, one.label) for one in found]
    else:
        days = (figures.format_step(start, zone, document.step) for start in starts)
        places = list(enumerate(days))
    for at, label in places:
        cell = at // frame.merged * frame.pitch
        yield cell, cell, label


def _list_growth_notes(
    document: analysis.GrowthDocument, frame: Frame, screen: Screen
) -> Iterator[str]:
    steps = figures.describe_step(document.step, frame.merged)
    rest = len(document.servers[0].steps) % frame.merged
    last = f", the last one {rest}" if rest else ""
    yield f"average players, each column {steps}{last}, in {document.time_zone}"
    yield from _list_blank_notes(frame.columns, "no observation", screen)
    if any(cell.is_partial and cell.players is not None for one in frame.columns for cell in one):
        yield f"{(_THIRDS if screen.ascii_only else _EIGHTHS)[-1]} is part of {steps}"


_MIN_DAY_WIDTH = 8
"""The least width of a day with a tick at noon."""


def _render_peak_hours(document: analysis.PeakHours, screen: Screen) -> str:
    """Render the average of each hour or weekday, of several hours where they do not fit."""
    hours = [
        [
            analysis.StepCell(1 if document.hold else one.sample_count, 1, one.average_players, 1)
            for one in server.cells
        ]
        for server in document.servers
    ]
    if all(map(_is_empty, hours)):
        return _render_nothing("too few observations", screen)
    mergers = [partial(figures.join_cells, one) for one in hours]
    is_week = document.by == "week-hour"
    frame = _choose_frame(mergers, screen, has_gaps=not is_week, period=24 if is_week else 1)
    panels = [
        Panel(server, _describe_busiest(server), rows)
        for server, rows in zip(document.servers, _draw_rows(frame, screen), strict=True)
    ]
    name, _, period = figures.HOURS[document.by].partition(" ")
    each = f"{figures.describe_step(name, frame.merged)} {period}".strip()
    notes = [
        f"average players, each column {each} on the clock of {document.time_zone}",
        *_list_blank_notes(frame.columns, f"an hour {figures.name_few(document)}", screen),
    ]
    ticks = _iter_hour_ticks(document.servers[0].cells, frame)
    return _render_panels(panels, frame, ticks, notes, screen)


def _describe_busiest(server: analysis.ServerPeakHours) -> str:
    if server.busiest is None:
        return "too few observations"
    if not server.has_hours:
        return "too few averages"
    return f"busiest {text.format_hour(server.busiest.weekday, server.busiest.hour, 3)}"


def _iter_hour_ticks(cells: Sequence[analysis.HourPart], frame: Frame) -> Ticks:
    """Yield a tick at the start of each day, at noon where it fits, and every 3 hours of one."""
    for number, cell in enumerate(cells):
        at = number * frame.pitch // frame.merged
        if cell.weekday is None:
            if cell.hour is not None and cell.hour % 3 == 0:
                yield at, at, f"{cell.hour:02}"
        elif not cell.hour:
            yield at, at, text.WEEKDAYS[cell.weekday - 1][:3]
        elif cell.hour == 12 and 24 * frame.pitch // frame.merged >= _MIN_DAY_WIDTH:  # noqa: PLR2004 - noon
            yield at, at, "12"


def _render_steps(table: analysis.StepTable, screen: Screen) -> str:
    """Render aggregates of steps, of all that the table has: an area for each server or a sum.

    Lines of several servers in one area can't be followed without color, filled areas can be read.
    """
    lines = (*table.first, *table.last)
    if all(_is_empty(line.cells) for line in lines):
        return _render_nothing("no observation", screen)
    edges = _widen_ends([lines[0].start, *(line.end for line in lines)])
    frame = _fit_areas(screen, list(zip(*(line.cells for line in lines), strict=True)))
    # Each of some equal parts of the time has the step in its middle.
    start, length, count = edges[0], edges[-1] - edges[0], frame.width * _COLUMN_DOTS
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    steps = [bisect_right(edges, middle) - 1 for middle in middles]
    panels = []
    for server, cells, scale in zip(table.servers, frame.columns, frame.scales, strict=True):
        rows = [] if _is_empty(cells) else _draw_area([cells[step] for step in steps], scale)
        panels.append(Panel(server, _describe_cells(cells, table.query, edges), rows))
    ticks = _iter_time_ticks(edges, frame.width, ZoneInfo(table.query.zone))
    return _render_panels(panels, frame, ticks, _describe_chart(table, lines), screen)


def _describe_cells(cells: Cells, query: analysis.HistoryQuery, edges: Sequence[int]) -> str:
    """Return the figures of whole steps, and when the highest one began."""
    if _is_empty(cells):
        return "no observation"
    whole = figures.list_whole(cells)
    if not whole:
        return "no whole step"
    # As short as the scale has averages.
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
    """Return the edges with whole steps at the ends, which are too narrow where they are cut."""
    if len(edges) < 4:  # noqa: PLR2004 - no step has two neighbors
        return edges
    first, second, *_, second_last, last = edges
    start = min(first, second - (edges[2] - second))
    return [start, *edges[1:-1], max(last, second_last + (second_last - edges[-3]))]


def _iter_time_ticks(edges: Sequence[int], width: int, zone: ZoneInfo) -> Ticks:
    start, end = edges[0], edges[-1]
    length, parts = end - start, width * _COLUMN_DOTS
    for at, label in choose_time_ticks(start, end, max(width // _LEAST_LABEL_DISTANCE, 1), zone):
        # The first part with its middle at the tick or after it, where a step from then on begins.
        part = -((length - 2 * parts * (at - start)) // (2 * length))
        yield _center(part // _COLUMN_DOTS, label)


_RENDERERS: Renderers = {
    analysis.Distribution: _render_distribution,
    analysis.GrowthDocument: _render_growth,
    analysis.PeakHours: _render_peak_hours,
    analysis.StepTable: _render_steps,
}
