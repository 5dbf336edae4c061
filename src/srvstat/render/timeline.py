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
from srvstat.render.axes import CalendarStep, choose_highs, convert_to_instant, convert_to_local

_MINUTE = DAY_MS // 1440
STEPS = {
    **{f"{minutes}m": CalendarStep(minutes * _MINUTE) for minutes in (1, 2, 5, 10, 15, 30)},
    **{f"{hours}h": CalendarStep(hours * 60 * _MINUTE) for hours in (1, 2, 3, 6, 12)},
    "day": CalendarStep(DAY_MS),
    "week": CalendarStep(7 * DAY_MS),
    "month": CalendarStep(28 * DAY_MS, 1),
}
"""The available steps of points."""
_LONGEST_WITH_MINUTES = 10 * DAY_MS
"""In a longer window, points are at least an hour long, because more points would hide each
other.
"""
_LONGEST_WITH_HOURS = 45 * DAY_MS
"""In a longer window, points are at least a day long, because daily cycles would look like
noise.
"""
_LEAST_DISTANCE = 0.75
"""The minimum distance between points in pixels; at 960 pixels, 30 days are drawn hourly."""
_FOUR_CENTURIES = timedelta(days=146_097)

Joint = Literal["solid", "dashed"]
"""How a line joins two points: dashed to or from a partial step."""


class Point(NamedTuple):
    """One step, or several merged: `[start, end)`, cut to the window, in Unix milliseconds.

    `observed_share` is the share of its calendar length that observations cover.
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
        """Whether too little of the step was observed for a reliable average."""
        return self.observed_share < WHOLE_SHARE


def get_window(timeline: Timeline) -> tuple[int, int]:
    """Return the window of a timeline. A window of all observations begins with the first step."""
    edges = timeline.list_edges()
    start = edges[0] if timeline.window.from_ is None else timeline.window.from_
    return start, max(timeline.window.to, start + 1)


def choose_step(timeline: Timeline, width: float) -> str:
    """Return the name of a picture's steps, independent of the number of servers.

    Points consist of whole steps of the timeline and are at least 0.75 pixels apart, if there are
    such steps. In a window of more than 10 days, points are at least an hour long, and of more than
    45 days, at least a day.
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
    """Return a server's points, which are the steps with observations, in order of time."""
    zone = ZoneInfo(timeline.time_zone)
    edges = timeline.list_edges()
    start, end = get_window(timeline)
    points = []
    is_merged = timeline.step != step
    single_steps = [range(at, at + 1) for at in range(len(edges) - 1)]
    groups = list(_group_steps(edges, STEPS[step], zone)) if is_merged else single_steps
    for steps in groups:
        first, last = edges[steps.start], edges[steps.stop]
        length = last - first
        # The first and last step, such as a day, may extend beyond the window.
        if is_merged and (steps is groups[0] or steps is groups[-1]):
            length = max(length, _measure(first, STEPS[step], zone))
        merged = _merge(server, steps, edges, length, hold=timeline.hold)
        if merged is not None:
            points.append(Point(max(first, start), min(last, end), *merged))
    return points


def join_points(one: Point, other: Point, gaps: Sequence[GapPart]) -> Joint | None:
    """Return how a line joins successive points of a server, or None if a gap interrupts it.

    A gap of less than a tenth of a step does not interrupt the line.
    """
    is_dashed = one.is_partial or other.is_partial
    if is_dashed or one.end < other.start:
        start, end = one.middle, other.middle
        if any(gap.from_ < end and gap.to > start for gap in gaps):
            return None
    return "dashed" if is_dashed else "solid"


def find_scale(points: Sequence[Point]) -> Sequence[Point]:
    """Return the points that determine an axis: the whole steps, or all if there are none."""
    return [point for point in points if not point.is_partial] or points


def _merge(
    server: ServerTimeline, steps: range, edges: Sequence[int], length: int, *, hold: bool
) -> tuple[float, int, int, float] | None:
    """Return the average, lowest, peak and observed share of steps, or None without counts."""
    at = slice(steps.start, steps.stop)
    lengths = (edges[step + 1] - edges[step] for step in steps)
    shares = zip(server.observed_shares[at], lengths, strict=True)
    # A step is observed for a whole number of half milliseconds.
    observed = [round(2 * share * length) for share, length in shares]
    counts = observed if hold else server.sample_counts[at]
    count = sum(counts)
    if not count:
        return None
    # An average is the float nearest to an integer divided by the count, so the integer can be
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

    The calendar repeats every four centuries, and does not end with the year 9999 there.
    """
    shown = min(at, LATEST - DAY_MS)
    rest = timedelta(milliseconds=at - shown)
    return convert_to_local(shown, zone) - _FOUR_CENTURIES + rest


def _group_steps(edges: Sequence[int], step: CalendarStep, zone: ZoneInfo) -> Iterator[range]:
    """Yield the ranges of steps that fall into the same calendar step, one range per point."""
    begin = 0
    before = _find_place(edges[0], zone)
    current = step.find_number(before)
    for at, (start, end) in enumerate(pairwise(edges)):
        local = _find_place(start, zone)
        number = step.find_number(local)
        # If the clock is set back by a whole step, the repeated time has its own steps.
        if number != current or before - local >= timedelta(milliseconds=step.shortest):
            yield range(begin, at)
            begin, current = at, number
        before = local + timedelta(milliseconds=end - start)
    yield range(begin, len(edges) - 1)


def find_common_gaps(
    timeline: Timeline, servers: Sequence[ServerTimeline] = ()
) -> list[tuple[int, int]]:
    """Return the intervals in which all given servers have a gap, in order.

    The default is all servers.
    """
    start, end = get_window(timeline)
    servers = servers or timeline.servers
    gaps = [gap for server in servers for gap in server.gaps]
    changes = sorted([*((gap.from_, 1) for gap in gaps), *((gap.to, -1) for gap in gaps)])
    common = []
    servers_in_gap = 0
    for (at, change), (after, _) in pairwise(changes):
        servers_in_gap += change
        first, last = max(at, start), min(after, end)
        if servers_in_gap == len(servers) and first < last:
            common.append((first, last))
    return common


_LEAST_WIDTH_FOR_LABELS = 560
"""In narrower pictures, names are above the lines instead of beside them."""
_MOST_FOR_LABELS = 0.25
"""The maximum share of the width for names beside the lines."""
_DOT_RADIUS = 2
_LEAST_DAYS_WITH_WEEKS = 60
"""From this length on, windows with daily steps also have a line of weekly averages."""
_MANY = 4
"""The minimum number of servers for separate panels; more lines in one area are unreadable."""
_MOST_MARK_ROWS = 3
_GAP_MARK = 5
_LEAST_GAP = 2
"""The height of a gap's mark on the axis, and its minimum width, in pixels."""
_ABOVE_PEAK = 5
"""The space between a point and its label."""
_Points = Sequence[Point]

Layout = Literal["lines", "panels", "share"]
"""Lines in one area, a separate area for each server, or lines of the servers' shares."""


class _Area(NamedTuple):
    """The area of a timeline's lines, and its scales."""

    box: svg.Box
    across: svg.Scale
    up: svg.Scale

    def place(self, at: float, players: float) -> svg.Place:
        """Return the pixel of a value. A partial step above the axis is placed at the top."""
        return self.across.place(at), self.up.place(min(players, self.up.high))

    def join(self, values: Iterable[tuple[float, float]]) -> str:
        """Return the path data of a line through values."""
        vertices = (self.place(*value) for value in values)
        return "M" + "L".join(f"{svg.format_number(x)} {svg.format_number(y)}" for x, y in vertices)


def choose_layout(timeline: Timeline) -> Layout:
    """Return the layout in which each server is readable."""
    return "panels" if len(timeline.servers) >= _MANY else "lines"


def _divide_by_total(servers: Sequence[_Points]) -> list[list[Point]]:
    """Return each server's share of the summed averages of each step, in percent.

    A step counts as unobserved if a server lacks it between its first and last point.
    """
    steps = [{point.start: point for point in points} for points in servers]
    shares: list[list[Point]] = [[] for _ in servers]
    for start in sorted({start for of_server in steps for start in of_server}):
        present = [of_server[start] for of_server in steps if start in of_server]
        expected = sum(min(one) <= start <= max(one) for one in steps if one)
        total = sum(point.average for point in present)
        least = min(point.observed_share for point in present)
        observed = least if len(present) == expected else 0.0
        for of_server, found in zip(steps, shares, strict=True):
            if total and (point := of_server.get(start)):
                share = 100 * point.average / total
                found.append(point._replace(average=share, observed_share=observed))
    return shares


def draw_timeline(
    timeline: Timeline,
    size: svg.Size,
    zone: ZoneInfo,
    *,
    step: str | None = None,
    layout: Layout = "lines",
) -> Element:
    """Draw a line for each server, with a band from lowest to peak if there is only one server.

    Ticks are local times of `zone`. Points are calendar steps of the timeline's zone; `step` can
    name the timeline's own steps. Partial steps are pale, with dashed lines, and do not affect the
    axis. A gap interrupts the line. A gap shared by all servers of an area is shaded and marked on
    the axis. From 60 days on, daily points are accompanied by a line of weekly averages.
    """
    drawing = _Drawing(timeline, size, step or choose_step(timeline, size.width), layout)
    picture, marks = drawing.picture, timeline.marks
    rows = min(len(marks), _MOST_MARK_ROWS)
    top = svg.draw_notes(picture, list(drawing.list_notes()), size)
    room = svg.Box(0, top + rows * svg.LINE_HEIGHT + _ABOVE_PEAK, *size)
    areas = drawing.draw_panels(room) if layout == "panels" else drawing.draw_overlay(room)
    box, across, _ = areas[-1]
    for at, label in svg.choose_time_labels(box, get_window(timeline), zone):
        svg.draw_tick(picture, box, across.place(at), label)
    places = [(across.place(mark.at), mark.label) for mark in marks]
    svg.draw_mark_labels(picture, places, (top, size.width), rows)
    for x, _ in places:
        for area in areas:
            svg.add_line(picture, "mark", (x, area.box.top - _ABOVE_PEAK), (x, area.box.bottom))
    return picture


class _Drawing:
    """A picture of a timeline. Servers are identified by their positions."""

    def __init__(self, timeline: Timeline, size: svg.Size, step: str, layout: Layout) -> None:
        words = (", ".join(_list_figures(timeline, server)) for server in timeline.servers)
        title = "Shares of the players over time" if layout == "share" else "Players over time"
        self.timeline = timeline
        self.picture, self.names = svg.create_picture_of(
            "timeline", size, title, timeline.servers, words
        )
        self.step, self.unit = step, "%" if layout == "share" else ""
        start, end = get_window(timeline)
        has_weeks = step == "day" and end - start >= _LEAST_DAYS_WITH_WEEKS * DAY_MS
        self.points = self.merge(step)
        self.weeks = self.merge("week") if has_weeks else [[] for _ in self.names]
        numbers = range(len(self.names))
        # The range from lowest to peak. With several servers, these bands would cover each other.
        is_single = len(numbers) == 1 and layout != "share"
        self.has_band = is_single and any(p.lowest < p.peak for p in find_scale(self.points[0]))
        areas = [[number] for number in numbers] if layout == "panels" else [numbers]
        self.highs = choose_highs([self.find_highest(area) for area in areas])

    def merge(self, step: str) -> list[list[Point]]:
        """Return the points of each server, or of its shares."""
        found = [merge_steps(self.timeline, server, step) for server in self.timeline.servers]
        return _divide_by_total(found) if self.unit else found

    def find_highest(self, numbers: Iterable[int]) -> float | None:
        """Return the highest value that the axis of some servers needs."""
        scale = find_scale([point for number in numbers for point in self.points[number]])
        return max((one.peak if self.has_band else one.average for one in scale), default=None)

    def list_notes(self) -> Iterator[str]:
        """Yield explanations of the lines and areas."""
        timeline = self.timeline
        averages = f"averages of {figures.describe_step(self.step)}"
        yield from ("share of their players", averages) if self.unit else [f"players, {averages}"]
        if any(self.weeks):
            yield "strong: of a week"
        if timeline.time_zone != "UTC":
            yield f"in {timeline.time_zone}"
        if self.has_band:
            yield "shaded: from lowest to peak"
        if any(point.is_partial for points in self.points for point in points):
            yield f"dashed: less than {WHOLE_SHARE:.0%} observed"
        if any(find_common_gaps(timeline, servers) for servers in self.list_areas()):
            yield "gray bar: no observations"
        if len(set(filter(None, self.highs))) > 1:
            yield "scales differ"

    def list_areas(self) -> list[Sequence[ServerTimeline]]:
        """Return the servers of each area."""
        servers = self.timeline.servers
        return [servers] if len(self.highs) == 1 else [(server,) for server in servers]

    def draw_overlay(self, room: svg.Box) -> list[_Area]:
        """Draw the lines of all servers in one area, with names at their ends or above."""
        picture, points = self.picture, self.points
        labels = [
            name if of_server else f"{name}: {svg.NO_OBSERVATIONS}"
            for name, of_server in zip(self.names, points, strict=True)
        ]
        beside = _measure_keys(labels, room.right)
        places: list[svg.Place] = []
        top = room.top
        if len(labels) > 1 and not beside:
            flow = svg.flow_keys(labels, room.right)
            places = [(left, top + row * svg.KEY_HEIGHT) for left, row in flow]
            top = places[-1][1] + svg.KEY_HEIGHT + _ABOVE_PEAK
        right = room.right - max(beside, svg.MARGIN)
        area = self.draw_area(range(len(labels)), svg.Box(0, top, right, room.bottom - svg.BELOW))
        self.draw_peak(area)
        if beside:
            ends = [find_scale(one)[-1].average if one else 0 for one in points]
            heights = svg.spread_keys([area.place(0, end)[1] for end in ends], area.box)
            places = [(area.box.right + svg.MARGIN, height) for height in heights]
        for number, place in enumerate(places):
            color = number + 1 if points[number] else 0
            svg.draw_key(picture, color, labels[number], place, room.right - place[0])
        return [area]

    def draw_panels(self, room: svg.Box) -> list[_Area]:
        """Draw an area for each server, one below the other."""
        within = room._replace(right=room.right - svg.MARGIN, bottom=room.bottom - svg.BELOW)
        rows = svg.divide_rows(within, len(self.names))
        height = rows[0].height - svg.HEADING
        left = max(svg.measure_ticks(svg.choose_player_ticks(one, height)) for one in self.highs)
        areas = []
        for number, row in enumerate(rows):
            server = self.timeline.servers[number]
            shown = _list_figures(self.timeline, server)[:2]
            box = svg.draw_heading(self.picture, row, self.names[number], shown)
            areas.append(self.draw_area([number], box, left))
        return areas

    def draw_area(self, numbers: Sequence[int], box: svg.Box, left: float = 0) -> _Area:
        """Draw the axes, gaps and lines of some servers."""
        timeline = self.timeline
        high = self.highs[numbers[0] if len(self.highs) > 1 else 0]
        ticks = svg.choose_player_ticks(high, box.height)
        box = box._replace(left=max(left, svg.measure_ticks(ticks, self.unit)))
        across = svg.Scale(*get_window(timeline), box.left, box.right)
        for start, end in find_common_gaps(timeline, [timeline.servers[at] for at in numbers]):
            x, width = across.place(start), across.place(end) - across.place(start)
            svg.add_rectangle(self.picture, "gap", (x, box.top, width, box.height))
            mark = (x, box.bottom - _GAP_MARK, max(width, _LEAST_GAP), _GAP_MARK)
            svg.add_rectangle(self.picture, "gap-mark", mark)
        up = svg.draw_value_axis(self.picture, box, ticks, self.unit)
        area = _Area(box, across, up)
        for number in numbers:
            group = svg.add(self.picture, "g", f"series series-{number + 1}")
            steps = svg.add(group, "g", "daily") if self.weeks[number] else group
            gaps = timeline.servers[number].gaps
            _draw_series(steps, area, self.points[number], gaps, has_band=self.has_band)
            _draw_weeks(group, area, self.weeks[number], gaps)
        if not any(self.points[number] for number in numbers):
            svg.draw_words(self.picture, box, svg.NO_OBSERVATIONS)
        return area

    def draw_peak(self, area: _Area) -> None:
        """Label the highest point with its value and time, unless it is a partial step.

        The label avoids the lines of marks if possible.
        """
        timeline = self.timeline
        points = [point for of_server in self.points for point in of_server]
        values = [point.peak if self.has_band else point.average for point in points]
        highest = max(values, default=0)
        if not highest:
            return
        point = points[values.index(highest)]
        shown = f"peak {highest:,}" if self.has_band else text.format_median(highest)
        time = _format_start(point.start, timeline, self.step)
        label = f"{shown}{self.unit} · {time}"
        half = svg.measure_text(label) / 2
        box = area.box
        if point.is_partial or 2 * half > box.width:
            return
        x, y = area.place(point.middle, highest)
        low, high = box.left + half, box.right - half
        marks = [area.across.place(mark.at) for mark in timeline.marks]
        beside = (mark + side * (half + _ABOVE_PEAK) for mark in marks for side in (-1, 1))
        x = min(
            (min(max(each, low), high) for each in (x, *beside)),
            key=lambda each: (any(abs(each - mark) <= half for mark in marks), abs(each - x)),
        )
        svg.add_text(self.picture, "label", (x, y - _ABOVE_PEAK), label, "middle")


def _format_start(at: int, timeline: Timeline, step: str) -> str:
    """Format the start of a step as a day, with the time if steps are shorter than a day."""
    zone = ZoneInfo(timeline.time_zone)
    day = text.format_day(at, timeline.window.to, zone)
    is_short = step in STEPS and STEPS[step].shortest < DAY_MS
    return f"{day}, {text.format_clock(at, zone)[11:16]}" if is_short else day


def _draw_weeks(group: Element, area: _Area, points: _Points, gaps: Sequence[GapPart]) -> None:
    """Draw a line through consecutive whole weeks that no gap divides."""
    joints = [join_points(*pair, gaps) for pair in pairwise(points)]
    runs = [run for run in _split(points, joints, "solid") if len(run) > 1]
    path = "".join(area.join((one.middle, one.average) for one in run) for run in runs)
    if path:
        svg.add(group, "path", "line weekly", d=path)


def _draw_series(
    group: Element, area: _Area, points: _Points, gaps: Sequence[GapPart], *, has_band: bool
) -> None:
    if not points:
        return
    joints = [join_points(*pair, gaps) for pair in pairwise(points)]
    if has_band:
        for run in _split(points, joints, "solid"):
            if not run[0].is_partial:
                svg.add(group, "path", "band", d=_build_band(run, area))
    for css, joint in (("line", "solid"), ("line partial", "dashed")):
        lines = [run for run in _split(points, joints, joint) if len(run) > 1]
        path = "".join(area.join((one.middle, one.average) for one in run) for run in lines)
        if path:
            svg.add(group, "path", css, d=path)
    for point, *around in zip(points, [None, *joints], [*joints, None], strict=True):
        if point.is_partial or not any(around):
            x, y = area.place(point.middle, point.average)
            css = "dot partial" if point.is_partial else "dot"
            svg.add(group, "circle", css, cx=x, cy=y, r=_DOT_RADIUS)


def _split(points: _Points, joints: Sequence[Joint | None], wanted: str) -> Iterator[_Points]:
    """Yield the runs of points joined by one kind of joint. A single point is a run, too."""
    start = 0
    for at, joint in enumerate([*joints, None], start=1):
        if joint != wanted:
            yield points[start:at]
            start = at


def _build_band(run: _Points, area: _Area) -> str:
    """Return the path of the area from lowest to peak, extended to the edges of the end steps."""
    first, last = run[0], run[-1]
    peaks = [(point.middle, point.peak) for point in run]
    lows = [(point.middle, point.lowest) for point in reversed(run)]
    above = [(first.start, first.peak), *peaks, (last.end, last.peak)]
    below = [(last.end, last.lowest), *lows, (first.start, first.lowest)]
    return area.join([*above, *below]) + "Z"


def _measure_keys(names: Sequence[str], width: float) -> float:
    """Return the width of the names beside the lines, or 0 if there is no room for them."""
    if len(names) < 2 or width < _LEAST_WIDTH_FOR_LABELS:  # noqa: PLR2004 - one needs no name
        return 0
    return min(max(map(svg.measure_key, names)) + svg.MARGIN, width * _MOST_FOR_LABELS)


def measure_averages(timeline: Timeline) -> Iterator[tuple[float | None, float]]:
    """Yield the average of each server in the window, and the share of it that was observed."""
    edges = timeline.list_edges()
    start, end = get_window(timeline)
    for server in timeline.servers:
        merged = _merge(server, range(len(edges) - 1), edges, end - start, hold=timeline.hold)
        yield (None, 0) if merged is None else (merged[0], merged[3])


def _list_figures(timeline: Timeline, server: ServerTimeline) -> list[str]:
    """Return a server's statistics in the window, in words."""
    edges = timeline.list_edges()
    merged = _merge(server, range(len(edges) - 1), edges, 1, hold=timeline.hold)
    if merged is None:
        return [svg.NO_OBSERVATIONS]
    average, lowest, peak, _ = merged
    return [
        f"average {text.format_median(average)}",
        f"peak {peak:,}",
        f"lowest {lowest:,}",
        text.format_count(sum(server.sample_counts), "observation"),
        text.format_count(len(server.gaps), "gap"),
    ]
