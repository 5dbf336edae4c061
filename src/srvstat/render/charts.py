"""Draw documents as charts for a terminal: panels of columns or areas, on common axes."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.documents import analysis
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.figures import (
    describe_step,
    find_highest,
    find_trend_line,
    format_brief_average,
    format_median,
    format_step,
    format_trend,
    join_cells,
    list_growth_cells,
    list_whole,
)
from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING, WEEKDAYS, format_count

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
    lines.append(Text((indent + labels).rstrip(), AXIS_STYLE))
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


ChartDocument = (
    analysis.Distribution | analysis.GrowthDocument | analysis.PeakHours | analysis.StepTable
)


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    if isinstance(document, analysis.StepTable):
        return render_step_chart(document, screen)
    if isinstance(document, analysis.Distribution):
        return render_distribution(document, screen)
    if isinstance(document, analysis.GrowthDocument):
        return render_growth(document, screen)
    return render_peak_hours(document, screen)


_PLAYER_TICK_WIDTH = 9
"""The usual distance of ticks, in cells."""


def render_distribution(document: analysis.Distribution, screen: Screen) -> str:
    """Render a histogram of the observations of each server, and below it its quartiles."""
    if not any(server.sample_count for server in document.servers):
        return render_nothing("no observation", screen)

    def merge(length: int) -> list[Columns]:
        return [Columns(_merge_shares(server, length)) for server in document.servers]

    frame = choose_frame(merge, screen, unit="%")
    drawn = zip(document.servers, merge(frame.layout.merged), frame.scales, strict=True)
    panels = [
        Panel(
            build_title(server.hostname, server.server_id, _describe_quartiles(server), screen),
            draw_rows(columns, scale, frame.layout, screen),
            _draw_quartiles(server, document, frame),
        )
        for server, columns, scale in drawn
    ]
    players = format_count(document.bin_players * frame.layout.merged, "player")
    note = (
        f"share of observations by number of players, each column {players};"
        " the line below is from the lowest to the peak, ━ between the quartiles, ┃ at the median"
    )
    return render_panels(panels, frame, _list_player_ticks(document, frame), [note], screen)


def _merge_shares(server: analysis.ServerDistribution, length: int) -> list[float | None]:
    """Return the share of each column in percent; None for 0, which is drawn as nothing."""
    sums = (sum(server.counts[at : at + length]) for at in range(0, len(server.counts), length))
    return [100 * count / server.sample_count if count else None for count in sums]


def _describe_quartiles(server: analysis.ServerDistribution) -> str:
    if server.median_players is None:
        return "no observation"
    figures = (server.median_players, server.lower_quartile, server.upper_quartile)
    median, lower, upper = (format_median(one) for one in figures)
    return f"median {median}, quartiles {lower} and {upper}"


def _draw_quartiles(
    server: analysis.ServerDistribution, document: analysis.Distribution, frame: Frame
) -> str:
    """Draw a line from the lowest count to the peak, thick between the quartiles."""
    figures = (
        server.lowest_players,
        server.lower_quartile,
        server.median_players,
        server.upper_quartile,
        server.peak_players,
    )
    cells = [_find_cell(one, document, frame) for one in figures if one is not None]
    if len(cells) < len(figures):
        return ""
    lowest, lower, median, upper, peak = cells
    line = " " * lowest + "├" + "─" * (peak - lowest - 1) + "┤" * (peak > lowest)
    line = line[:lower] + "━" * (upper - lower + 1) + line[upper + 1 :]
    return line[:median] + "┃" + line[median + 1 :]


def _find_cell(players: float, document: analysis.Distribution, frame: Frame) -> int:
    """Return the cell of a count, which takes the place from itself to the next one."""
    players_per_cell = document.bin_players * frame.layout.merged / frame.layout.pitch
    return int((players + 0.5 - document.first_players) / players_per_cell)


def _list_player_ticks(document: analysis.Distribution, frame: Frame) -> Iterator[Tick]:
    first = document.first_players
    last = first + len(document.servers[0].counts) * document.bin_players - 1
    ticks = choose_ticks(first, last, max(frame.width // _PLAYER_TICK_WIDTH, 3))
    for value, label in zip(ticks, format_ticks(ticks), strict=True):
        if first <= value <= last and float(value).is_integer():
            yield Tick(_find_cell(value, document, frame), label, is_centered=True)


_LABEL_WIDTH = 9
"""The usual distance of labels, in cells."""
_LEAST_STEPS_BETWEEN = 3
"""From this distance on, ticks can be inside of steps."""


def render_growth(document: analysis.GrowthDocument, screen: Screen) -> str:
    """Render the average of each step, of several where they do not fit, and the trend."""
    if not any(one.sample_count for one in document.servers):
        return render_nothing("no observation", screen)

    def merge(length: int) -> list[Columns]:
        return [_build_columns(server, length) for server in document.servers]

    frame = choose_frame(merge, screen, has_gaps=True)
    columns = merge(frame.layout.merged)
    trends = [
        list(_draw_trend(one, frame, scale))
        for one, scale in zip(document.servers, frame.scales, strict=True)
    ]
    panels = [
        Panel(
            build_title(one.hostname, one.server_id, _describe_trend(one), screen),
            draw_rows(drawn, scale, frame.layout, screen, trend),
        )
        for one, drawn, scale, trend in zip(
            document.servers, columns, frame.scales, trends, strict=True
        )
    ]
    notes = [*_list_growth_notes(document, columns, frame.layout.merged, screen)]
    notes += ["─ is the trend"] if any(trends) else []
    return render_panels(panels, frame, _list_step_ticks(document, frame), notes, screen)


def _build_columns(server: analysis.ServerGrowth, length: int) -> Columns:
    """Return a column for each `length` steps; those of which too little was observed are light."""
    cells = join_cells(list_growth_cells(server.steps), length)
    light = (at for at, one in enumerate(cells) if one.is_partial and one.players is not None)
    return Columns([one.players for one in cells], frozenset(light))


def _describe_trend(server: analysis.ServerGrowth) -> str:
    if not server.sample_count:
        return "no observation"
    trend, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    return "" if trend == NOTHING else f"trend {trend}"


def _draw_trend(server: analysis.ServerGrowth, frame: Frame, scale: Scale) -> Iterator[int | None]:
    """Yield the row of the trend in each cell; None outside of the chart."""
    line = find_trend_line(server)
    if line is None:
        return
    for at in range(frame.width):
        time = _find_time(server.steps, at, frame)
        players = line.find_players(time)
        is_inside = line.start <= time <= line.end and 0 <= players < scale.top
        yield int(players / scale.top * scale.height) if is_inside else None


def _find_time(steps: Sequence[analysis.GrowthStepPart], cell: int, frame: Frame) -> float:
    """Return the instant at the middle of a cell."""
    column, rest = divmod(cell, frame.layout.pitch)
    length = frame.layout.merged
    inside = steps[column * length : (column + 1) * length]
    start, end = inside[0].from_, inside[-1].to
    return start + (end - start) * (rest + 0.5) / frame.layout.pitch


def _list_step_ticks(document: analysis.GrowthDocument, frame: Frame) -> list[Tick]:
    """Return ticks at round times where steps start, or else at every n-th column."""
    zone = ZoneInfo(document.time_zone)
    steps, layout = document.servers[0].steps, frame.layout
    starts = [step.from_ for step in steps]
    most = max(frame.width // _LABEL_WIDTH, 2)
    found = choose_time_ticks(starts[0], steps[-1].to - 1, most, zone)
    between = len(starts) / max(len(found), 1)
    if len(found) > 1 and (
        between >= _LEAST_STEPS_BETWEEN or {one.at for one in found} <= {*starts}
    ):
        places = [(bisect_right(starts, one.at) - 1, one.label) for one in found]
    else:
        places = [(at, format_step(start, zone, document.step)) for at, start in enumerate(starts)]
    return [Tick(at // layout.merged * layout.pitch, label) for at, label in places]


def _list_growth_notes(
    document: analysis.GrowthDocument, columns: Sequence[Columns], length: int, screen: Screen
) -> Iterator[str]:
    step = document.step
    steps = describe_step(step) if length == 1 else format_count(length, step)
    rest = len(document.servers[0].steps) % length
    last = f", the last one {rest}" if rest else ""
    yield f"average players, each column {steps}{last}, in {document.time_zone}"
    yield from list_notes(columns, "no observation", screen)
    if any(one.light for one in columns):
        yield f"{get_light_mark(ascii_only=screen.ascii_only)} is part of {steps}"


_MIN_DAY_WIDTH = 8
"""The least width of a day with a tick at noon."""


def render_peak_hours(document: analysis.PeakHours, screen: Screen) -> str:
    """Render the average of each hour of the week, of several where they do not fit."""

    def merge(length: int) -> list[Columns]:
        cells = (
            [analysis.StepCell(one.sample_count, 1, one.average_players, 1) for one in server.cells]
            for server in document.servers
        )
        return [Columns([one.players for one in join_cells(each, length)]) for each in cells]

    frame = choose_frame(merge, screen, period=24)
    length = frame.layout.merged
    columns = merge(length)
    if all(one.is_empty for one in columns):
        return render_nothing("too few observations", screen)
    panels = [
        Panel(
            build_title(one.hostname, one.server_id, _describe_busiest(one), screen),
            draw_rows(drawn, scale, frame.layout, screen),
        )
        for one, drawn, scale in zip(document.servers, columns, frame.scales, strict=True)
    ]
    hours = "an hour" if length == 1 else format_count(length, "hour")
    notes = [
        f"average players, each column {hours} of the week on the clock of {document.time_zone}",
        *list_notes(columns, "fewer than 4 observations an hour", screen),
    ]
    return render_panels(panels, frame, _list_day_ticks(frame), notes, screen)


def _describe_busiest(server: analysis.ServerPeakHours) -> str:
    if server.busiest is None:
        return "too few observations"
    if not server.has_hours:
        return "too few hours of the week"
    return f"busiest {WEEKDAYS[server.busiest.weekday - 1][:3]} {server.busiest.hour:02}:00"


def _list_day_ticks(frame: Frame) -> Iterator[Tick]:
    """Yield a tick at the start of each day, and at noon where it fits."""
    layout = frame.layout
    for number, weekday in enumerate(WEEKDAYS):
        hours = 24 * number
        yield Tick(hours * layout.pitch // layout.merged, weekday[:3])
        if 24 * layout.pitch // layout.merged >= _MIN_DAY_WIDTH:
            yield Tick((hours + 12) * layout.pitch // layout.merged, "12")


_TICK_WIDTH = 9
"""The least distance of two ticks of the time axis."""

_AGGREGATES = {
    "mean": "average players",
    "median": "median players",
    "max": "highest count",
    "min": "lowest count",
    "last": "last count",
}


def render_step_chart(table: analysis.StepTable, screen: Screen) -> str:
    """Render aggregates of steps, of all that the table has: an area for each server or a sum."""
    lines = (*table.first, *table.last)
    if not any(cell.observations for line in lines for cell in line.cells):
        return render_nothing("no observation", screen)
    edges = _widen_ends([lines[0].start, *(line.end for line in lines)])
    columns = list(zip(*(line.cells for line in lines), strict=True))
    frame = fit_areas(screen, [find_highest(cells) or 0 for cells in columns])
    steps = _assign_steps(edges, frame.width * COLUMN_DOTS)
    panels = []
    for title, cells, scale in zip(_list_titles(table), columns, frame.scales, strict=True):
        points = [Point(cell.players, cell.is_partial) for cell in cells]
        is_observed = any(cell.observations for cell in cells)
        rows = draw_area([points[step] for step in steps], scale) if is_observed else []
        panels.append(Panel(build_title(*title, _describe_cells(cells), screen), rows))
    ticks = _iter_ticks(edges, frame.width, ZoneInfo(table.query.zone))
    return render_panels(panels, frame, ticks, _describe_chart(table, lines), screen)


def _list_titles(table: analysis.StepTable) -> list[tuple[str, str]]:
    """Return the hostname and the identifier of each area."""
    if table.query.is_sum:
        title = f"sum of {format_count(len(table.servers), 'server')}"
        return [(title, title)]
    return [(server.hostname, server.server_id) for server in table.servers]


def _describe_cells(cells: Sequence[analysis.StepCell]) -> str:
    """Return the figures of whole steps."""
    if not any(cell.observations for cell in cells):
        return "no observation"
    whole = list_whole(cells)
    figures = {
        "lowest": min(whole, default=None),
        "highest": max(whole, default=None),
        "last": whole[-1] if whole else None,
    }
    return ", ".join(f"{name} {format_brief_average(value)}" for name, value in figures.items())


def _describe_chart(table: analysis.StepTable, lines: Sequence[analysis.StepLine]) -> Iterator[str]:
    added = ", added up" if table.query.is_sum else ""
    step = describe_step(table.query.step or "step")
    what = f"{_AGGREGATES[table.query.aggregate]} in steps of {step}"
    yield f"{what}{added}, in {table.query.zone}"
    if table.query.is_sum:
        partial = sum(0 < line.cells[0].servers < len(table.servers) for line in lines)
        if partial:
            yield f"without some servers in {partial:,} of {format_count(len(lines), 'value')}"
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


def _assign_steps(edges: Sequence[int], count: int) -> list[int]:
    """Return the step in the middle of each of some equal parts of the time between edges."""
    start, length = edges[0], edges[-1] - edges[0]
    middles = (start + length * (2 * part + 1) / (2 * count) for part in range(count))
    return [bisect_right(edges, middle) - 1 for middle in middles]


def _iter_ticks(edges: Sequence[int], width: int, zone: ZoneInfo) -> Iterator[Tick]:
    start, end = edges[0], edges[-1]
    length, parts = end - start, width * COLUMN_DOTS
    for at, label in choose_time_ticks(start, end, max(width // _TICK_WIDTH, 1), zone):
        # The first part with its middle at the tick or after it, where a step from then on begins.
        part = -((length - 2 * parts * (at - start)) // (2 * length))
        yield Tick(part // COLUMN_DOTS, label, is_centered=True)
