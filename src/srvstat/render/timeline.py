"""Draw the players of servers over time.

web/timeline.js merges steps into the same points for charts in a browser.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAY_MS
from srvstat.documents.analysis import ServerTimeline, Timeline
from srvstat.documents.document import WHOLE_SHARE, GapPart
from srvstat.render import figures, svg, text
from srvstat.render.axes import CalendarStep, convert_to_instant, convert_to_local

_MINUTE = DAY_MS // 1440
STEPS = {
    **{f"{minutes}m": CalendarStep(minutes * _MINUTE) for minutes in (1, 2, 5, 10, 15, 30)},
    **{f"{hours}h": CalendarStep(hours * 60 * _MINUTE) for hours in (1, 2, 3, 6, 12)},
    "day": CalendarStep(DAY_MS),
    "week": CalendarStep(7 * DAY_MS),
    "month": CalendarStep(28 * DAY_MS, 1),
}
"""The steps that points can have."""
_LONGEST_WITH_MINUTES = 10 * DAY_MS
"""In a longer window, points are not shorter than an hour: more would hide each other."""
_LONGEST_WITH_HOURS = 45 * DAY_MS
"""In a longer window, daily cycles would look like noise: points are not shorter than a day."""
_LEAST_DISTANCE = 0.75
"""The least distance of points in pixels: in 960 pixels, 30 days of several servers have hours."""
_FOUR_CENTURIES = timedelta(days=146_097)

Joint = Literal["solid", "dashed"]
"""How a line joins two points: dashed to or from a partial step."""


class Point(NamedTuple):
    """One step, or several merged: `[start, end)`, cut to the window, in Unix milliseconds.

    `observed_share` is the part of its calendar length that observations cover.
    """

    start: int
    end: int
    average: float
    lowest: int
    peak: int
    observed_share: float

    @property
    def middle(self) -> float:
        """The instant at which the point is drawn."""
        return (self.start + self.end) / 2

    @property
    def is_partial(self) -> bool:
        """Whether much of the step was not observed, so that its average may mislead."""
        return self.observed_share < WHOLE_SHARE


def get_window(timeline: Timeline) -> tuple[int, int]:
    """Return the window of a timeline; one of all observations begins with the first step."""
    edges = timeline.list_edges()
    start = edges[0] if timeline.window.from_ is None else timeline.window.from_
    return start, max(timeline.window.to, start + 1)


def choose_step(timeline: Timeline, width: float) -> str:
    """Return the name of the step of the points in a picture, whatever the number of servers.

    Points consist of whole steps of the timeline and are at least 0.75 pixels apart, as far as
    there are such steps. In more than 10 days, they are not shorter than an hour, and in more than
    45, not shorter than a day.
    """
    start, end = get_window(timeline)
    shortest = (end - start) / width * _LEAST_DISTANCE
    if end - start > _LONGEST_WITH_MINUTES:
        shortest = max(shortest, DAY_MS / 24)
    if end - start > _LONGEST_WITH_HOURS:
        shortest = max(shortest, DAY_MS)
    base = STEPS[timeline.step].shortest
    # 3h does not consist of 2h, nor a month of weeks.
    divisible = [
        name
        for name, step in STEPS.items()
        if name == timeline.step
        or (step.shortest % base == 0 and (not step.months or base <= DAY_MS))
    ]
    return next((name for name in divisible if STEPS[name].shortest >= shortest), divisible[-1])


def merge_steps(timeline: Timeline, server: ServerTimeline, step: str) -> list[Point]:
    """Return the points of a server: the steps with observations, in order of time."""
    calendar, zone = STEPS[step], ZoneInfo(timeline.time_zone)
    edges = timeline.list_edges()
    start, end = get_window(timeline)
    points = []
    is_merged = timeline.step != step
    single_steps = [range(at, at + 1) for at in range(len(edges) - 1)]
    groups = list(_group_steps(edges, calendar, zone)) if is_merged else single_steps
    for steps in groups:
        first, last = edges[steps.start], edges[steps.stop]
        length = last - first
        # The first and the last day, say, can lack hours that are not in the window.
        if is_merged and (steps is groups[0] or steps is groups[-1]):
            length = max(length, _measure(first, calendar, zone))
        merged = _merge(server, steps, edges, length, hold=timeline.hold)
        if merged is not None:
            points.append(Point(max(first, start), min(last, end), *merged))
    return points


def join_points(one: Point, other: Point, gaps: Sequence[GapPart]) -> Joint | None:
    """Return how a line joins successive points of a server; None where a gap interrupts it.

    A gap of less than a tenth of a step does not interrupt the line.
    """
    is_dashed = one.is_partial or other.is_partial
    if is_dashed or one.end < other.start:
        start, end = one.middle, other.middle
        if any(gap.from_ < end and gap.to > start for gap in gaps):
            return None
    return "dashed" if is_dashed else "solid"


def find_scale(points: Sequence[Point]) -> Sequence[Point]:
    """Return the points that determine an axis: the whole ones, or all of them if none is whole."""
    return [point for point in points if not point.is_partial] or points


def _merge(
    server: ServerTimeline, steps: range, edges: Sequence[int], length: int, *, hold: bool
) -> tuple[float, int, int, float] | None:
    """Return the average, lowest, peak and observed share of steps; None without a count."""
    at = slice(steps.start, steps.stop)
    lengths = (edges[step + 1] - edges[step] for step in steps)
    shares = zip(server.observed_shares[at], lengths, strict=True)
    # A step is observed for a whole number of half milliseconds.
    observed = [round(2 * share * length) for share, length in shares]
    counts = observed if hold else server.sample_counts[at]
    count = sum(counts)
    if not count:
        return None
    # An average is the float nearest to an integer divided by the count, so that the integer can be
    # recovered if it has fewer than 52 bits.
    averages = zip(server.averages[at], counts, strict=True)
    total = sum(round(average * number) for average, number in averages if average is not None)
    return (
        server.averages[steps.start] or 0.0 if len(steps) == 1 else total / count,
        min(value for value in server.lowest[at] if value is not None),
        max(value for value in server.peak[at] if value is not None),
        sum(observed) / (2 * length),
    )


def _measure(at: int, step: CalendarStep, zone: ZoneInfo) -> int:
    """Return the length of the step that contains an instant."""
    starts = islice(step.iter_starts(convert_to_local(at, zone)), 2)
    start, *ends = (convert_to_instant(local, zone) for local in starts)
    return (ends[0] if ends else LATEST) - start


def _find_place(at: int, zone: ZoneInfo) -> datetime:
    """Return the local time of an instant, four centuries earlier.

    The calendar repeats after these, and does not end with the year 9999 there.
    """
    shown = min(at, LATEST - DAY_MS)
    rest = timedelta(milliseconds=at - shown)
    return convert_to_local(shown, zone) - _FOUR_CENTURIES + rest


def _group_steps(edges: Sequence[int], step: CalendarStep, zone: ZoneInfo) -> Iterator[range]:
    """Yield the numbers of the steps of each point, which the calendar has in common."""
    begin = 0
    before = _find_place(edges[0], zone)
    current = step.find_number(before)
    for at, (start, end) in enumerate(pairwise(edges)):
        local = _find_place(start, zone)
        number = step.find_number(local)
        # Where the clock is set back by a whole step, the repeated time has steps of its own.
        if number != current or before - local >= timedelta(milliseconds=step.shortest):
            yield range(begin, at)
            begin, current = at, number
        before = local + timedelta(milliseconds=end - start)
    yield range(begin, len(edges) - 1)


def find_common_gaps(timeline: Timeline) -> list[tuple[int, int]]:
    """Return the intervals that are in a gap of every server, in order."""
    start, end = get_window(timeline)
    gaps = [gap for server in timeline.servers for gap in server.gaps]
    changes = sorted([*((gap.from_, 1) for gap in gaps), *((gap.to, -1) for gap in gaps)])
    common = []
    servers_in_gap = 0
    for (at, change), (after, _) in pairwise(changes):
        servers_in_gap += change
        first, last = max(at, start), min(after, end)
        if servers_in_gap == len(timeline.servers) and first < last:
            common.append((first, last))
    return common


_LEAST_WIDTH_FOR_LABELS = 560
"""In narrower pictures, names are above the lines and not beside them."""
_MOST_FOR_LABELS = 0.25
"""The share of the width that names beside the lines can take."""
_DOT_RADIUS = 2
_Points = Sequence[Point]


class _Plot(NamedTuple):
    """Where the lines of a timeline are."""

    across: svg.Scale
    up: svg.Scale

    def place(self, at: float, players: float) -> svg.Place:
        """Return the pixels of a value; one above the axis, of a partial step, is at its top."""
        return self.across.place(at), self.up.place(min(players, self.up.high))

    def join(self, values: Iterable[tuple[float, float]]) -> str:
        """Return a line through values, as the data of a path."""
        vertices = (self.place(*value) for value in values)
        return "M" + "L".join(f"{svg.format_number(x)} {svg.format_number(y)}" for x, y in vertices)


def draw_timeline(timeline: Timeline, size: svg.Size, zone: ZoneInfo) -> Element:
    """Draw a line for each server, with the band from lowest to peak if there is only one.

    The instants of ticks are on the clock of `zone`. Points are calendar steps of the timeline's
    zone. Partial steps are pale, lines to and from them are dashed, and they do not determine the
    axis. A gap interrupts the line, and is shaded where no server has observations.
    """
    words = (_describe_server(timeline, server) for server in timeline.servers)
    title = "Players over time"
    picture, names = svg.create_picture_of("timeline", size, title, timeline.servers, words)
    beside = _measure_keys(names, size.width)
    step = choose_step(timeline, size.width)
    points = [merge_steps(timeline, server, step) for server in timeline.servers]
    drawn = [one for of_server in points for one in of_server]
    scale = find_scale(drawn)
    has_band = len(points) == 1 and any(one.lowest < one.peak for one in scale)
    top = svg.draw_notes(picture, list(_list_notes(timeline, step, drawn, has_band=has_band)), size)
    if len(names) > 1 and not beside:
        for number, (left, row) in enumerate(places := svg.flow_keys(names, size.width)):
            y = top + row * svg.KEY_HEIGHT
            svg.draw_key(picture, number + 1, names[number], (left, y), size.width - left)
        top += (places[-1][1] + 1) * svg.KEY_HEIGHT
    bottom = size.height - svg.BELOW
    values = [one.peak if len(points) == 1 else one.average for one in scale]
    ticks = svg.choose_player_ticks(max(values, default=None), bottom - top)
    box = svg.Box(svg.measure_ticks(ticks), top, size.width - max(beside, svg.MARGIN), bottom)
    window = get_window(timeline)
    across = svg.Scale(*window, box.left, box.right)
    for start, end in find_common_gaps(timeline):
        left, right = across.place(start), across.place(end)
        svg.add_rectangle(picture, "gap", (left, box.top, right - left, box.height))
    for at, label in svg.choose_time_labels(box, window, zone):
        svg.draw_tick(picture, box, across.place(at), label)
    plot = _Plot(across, svg.draw_value_axis(picture, box, ticks))
    for number, (server, line) in enumerate(zip(timeline.servers, points, strict=True), start=1):
        group = svg.add(picture, "g", f"series series-{number}")
        _draw_series(group, plot, line, server.gaps, has_band=has_band)
    for mark in timeline.marks:
        svg.draw_mark(picture, box, across.place(mark.at), mark.label)
    if beside:
        left, ends = box.right + svg.MARGIN, [one[-1].average if one else 0 for one in points]
        heights = svg.spread_keys([plot.place(0, end)[1] for end in ends], box)
        for number, (name, y) in enumerate(zip(names, heights, strict=True), start=1):
            svg.draw_key(picture, number, name, (left, y), size.width - left)
    return picture


def _list_notes(timeline: Timeline, step: str, points: _Points, *, has_band: bool) -> Iterator[str]:
    """Yield what the lines and areas mean."""
    yield f"players, averages of {figures.describe_step(step)}"
    yield f"in {timeline.time_zone}"
    if has_band:
        yield "shaded from lowest to peak"
    if any(point.is_partial for point in points):
        yield f"pale and dashed: less than {WHOLE_SHARE:.0%} observed"
    if find_common_gaps(timeline):
        yield "gray: no observations"


def _draw_series(
    group: Element, plot: _Plot, points: _Points, gaps: Sequence[GapPart], *, has_band: bool
) -> None:
    if not points:
        return
    joints = [join_points(*pair, gaps) for pair in pairwise(points)]
    if has_band:
        for run in _split(points, joints, "solid"):
            if not run[0].is_partial:
                svg.add(group, "path", "band", d=_build_band(run, plot))
    for css, joint in (("line", "solid"), ("line partial", "dashed")):
        lines = [run for run in _split(points, joints, joint) if len(run) > 1]
        path = "".join(plot.join((one.middle, one.average) for one in run) for run in lines)
        if path:
            svg.add(group, "path", css, d=path)
    for point, *around in zip(points, [None, *joints], [*joints, None], strict=True):
        if point.is_partial or not any(around):
            x, y = plot.place(point.middle, point.average)
            css = "dot partial" if point.is_partial else "dot"
            svg.add(group, "circle", css, cx=x, cy=y, r=_DOT_RADIUS)


def _split(points: _Points, joints: Sequence[Joint | None], wanted: str) -> Iterator[_Points]:
    """Yield the runs of points with one kind of joint between them; a single point is a run."""
    start = 0
    for at, joint in enumerate([*joints, None], start=1):
        if joint != wanted:
            yield points[start:at]
            start = at


def _build_band(run: _Points, plot: _Plot) -> str:
    """Return the area from lowest to peak, which begins and ends with the steps."""
    first, last = run[0], run[-1]
    peaks = [(point.middle, point.peak) for point in run]
    lows = [(point.middle, point.lowest) for point in reversed(run)]
    above = [(first.start, first.peak), *peaks, (last.end, last.peak)]
    below = [(last.end, last.lowest), *lows, (first.start, first.lowest)]
    return plot.join([*above, *below]) + "Z"


def _measure_keys(names: Sequence[str], width: int) -> float:
    """Return the width of the names beside the lines; 0 if they have no room there."""
    if len(names) < 2 or width < _LEAST_WIDTH_FOR_LABELS:  # noqa: PLR2004 - one needs no name
        return 0
    return min(max(map(svg.measure_key, names)) + svg.MARGIN, width * _MOST_FOR_LABELS)


def _describe_server(timeline: Timeline, server: ServerTimeline) -> str:
    edges = timeline.list_edges()
    merged = _merge(server, range(len(edges) - 1), edges, 1, hold=timeline.hold)
    if merged is None:
        return "no observation"
    average, lowest, peak, _ = merged
    return (
        f"average {text.format_median(average)}, lowest {lowest:,}, peak {peak:,},"
        f" {text.format_count(sum(server.sample_counts), 'observation')},"
        f" {text.format_count(len(server.gaps), 'gap')}"
    )
