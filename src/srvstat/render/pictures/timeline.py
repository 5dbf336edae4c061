"""Draw the players of servers over time."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.documents.analysis import ServerTimeline, Timeline
from srvstat.documents.document import WHOLE_SHARE, GapPart
from srvstat.render.changes import describe_step
from srvstat.render.pictures.frame import (
    BELOW,
    MARGIN,
    Scale,
    choose_player_ticks,
    draw_notes,
    draw_time_axis,
    draw_value_axis,
    measure_ticks,
)
from srvstat.render.pictures.keys import (
    KEY_HEIGHT,
    draw_key,
    flow_keys,
    measure_key,
    spread_keys,
)
from srvstat.render.pictures.points import (
    Joint,
    Point,
    choose_step,
    find_common_gaps,
    find_scale,
    get_window,
    join_points,
    merge_steps,
)
from srvstat.render.pictures.svg import (
    Box,
    Size,
    add,
    create_picture,
    format_number,
    name_servers,
)
from srvstat.render.tables.figures import format_rounded
from srvstat.render.text import format_count

_LEAST_WIDTH_FOR_LABELS = 560
"""In narrower pictures, names are above the lines and not beside them."""
_MOST_FOR_LABELS = 0.25
"""The share of the width that names beside the lines can take."""
_DOT_RADIUS = 2
_Points = Sequence[Point]


class _Plot(NamedTuple):
    """Where the lines of a timeline are."""

    box: Box
    across: Scale
    up: Scale

    def place(self, at: float, players: float) -> tuple[float, float]:
        """Return the pixels of a value; one above the axis, of a partial step, is at its top."""
        return self.across.place(at), self.up.place(min(players, self.up.high))


def draw_timeline(timeline: Timeline, size: Size, zone: ZoneInfo) -> Element:
    """Draw a line for each server, with the band from lowest to peak if there is only one.

    The instants of ticks are on the clock of `zone`. Points are calendar steps of the timeline's
    zone. Partial steps are pale, lines to and from them are dashed, and they do not determine the
    axis. A gap interrupts the line, and is shaded where no server has observations.
    """
    names = name_servers(timeline.servers)
    title = f"Players over time: {', '.join(names)}"
    picture = create_picture("timeline", size, title, list(_describe(timeline, names)))
    beside = _measure_keys(names, size.width)
    step = choose_step(timeline, size.width)
    points = [merge_steps(timeline, server, step) for server in timeline.servers]
    drawn = [one for of_server in points for one in of_server]
    scale = find_scale(drawn)
    has_band = len(points) == 1 and any(one.lowest < one.peak for one in scale)
    top = draw_notes(picture, list(_list_notes(timeline, step, drawn, has_band=has_band)), size)
    if len(names) > 1 and not beside:
        top = _draw_keys_above(picture, names, top, size.width)
    bottom = size.height - BELOW
    values = [one.peak if len(points) == 1 else one.average for one in scale]
    ticks = choose_player_ticks(max(values, default=None), bottom - top)
    box = Box(measure_ticks(ticks), top, size.width - max(beside, MARGIN), bottom)
    across = _draw_frame(picture, timeline, box, zone)
    plot = _Plot(box, across, draw_value_axis(picture, box, ticks))
    for number, (server, line) in enumerate(zip(timeline.servers, points, strict=True), start=1):
        group = add(picture, "g", f"series series-{number}")
        _draw_series(group, plot, line, server.gaps, has_band=has_band)
    if beside:
        _draw_keys_beside(picture, plot, names, points, size.width)
    return picture


def _draw_frame(picture: Element, timeline: Timeline, box: Box, zone: ZoneInfo) -> Scale:
    """Draw the gaps and, above them, the axis of time."""
    window = get_window(timeline)
    across = Scale(*window, box.left, box.right)
    for start, end in find_common_gaps(timeline):
        left, right = across.place(start), across.place(end)
        add(picture, "rect", "gap", x=left, y=box.top, width=right - left, height=box.height)
    return draw_time_axis(picture, box, window, zone)


def _list_notes(timeline: Timeline, step: str, points: _Points, *, has_band: bool) -> Iterator[str]:
    """Yield what the lines and areas mean."""
    yield f"players, averages of {describe_step(step)}"
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
                add(group, "path", "band", d=_build_band(run, plot))
    styles: tuple[tuple[str, Joint], ...] = (("line", "solid"), ("line partial", "dashed"))
    for css, joint in styles:
        lines = [run for run in _split(points, joints, joint) if len(run) > 1]
        if lines:
            add(group, "path", css, d="".join(_build_line(run, plot) for run in lines))
    for point, *around in zip(points, [None, *joints], [*joints, None], strict=True):
        if point.is_partial or not any(around):
            x, y = plot.place(point.middle, point.average)
            css = "dot partial" if point.is_partial else "dot"
            add(group, "circle", css, cx=x, cy=y, r=_DOT_RADIUS)


def _split(points: _Points, joints: Sequence[Joint | None], wanted: Joint) -> Iterator[_Points]:
    """Yield the runs of points with one kind of joint between them; a single point is a run."""
    start = 0
    for at, joint in enumerate([*joints, None], start=1):
        if joint != wanted:
            yield points[start:at]
            start = at


def _build_line(run: _Points, plot: _Plot) -> str:
    return _join_vertices(plot.place(point.middle, point.average) for point in run)


def _build_band(run: _Points, plot: _Plot) -> str:
    """Return the area from lowest to peak, which begins and ends with the steps."""
    peaks = [(point.middle, point.peak) for point in run]
    lows = [(point.middle, point.lowest) for point in run]
    ring = [
        (run[0].start, run[0].peak),
        *peaks,
        (run[-1].end, run[-1].peak),
        (run[-1].end, run[-1].lowest),
        *reversed(lows),
        (run[0].start, run[0].lowest),
    ]
    return _join_vertices(plot.place(at, value) for at, value in ring) + "Z"


def _join_vertices(vertices: Iterator[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{format_number(x)} {format_number(y)}" for x, y in vertices)


def _measure_keys(names: Sequence[str], width: int) -> float:
    """Return the width of the names beside the lines; 0 if they have no room there."""
    if len(names) < 2 or width < _LEAST_WIDTH_FOR_LABELS:  # noqa: PLR2004 - one needs no name
        return 0
    return min(max(map(measure_key, names)) + MARGIN, width * _MOST_FOR_LABELS)


def _draw_keys_beside(
    picture: Element, plot: _Plot, names: Sequence[str], points: Sequence[_Points], right: int
) -> None:
    """Draw the name of each line beside its end."""
    ends = [plot.place(0, one[-1].average if one else 0)[1] for one in points]
    left = plot.box.right + MARGIN
    for number, y in enumerate(spread_keys(ends, plot.box)):
        draw_key(picture, number + 1, names[number], (left, y), right - left)


def _draw_keys_above(picture: Element, names: Sequence[str], top: float, width: int) -> float:
    """Draw the names in rows, and return the height below."""
    places = flow_keys(names, width)
    for number, (left, row) in enumerate(places):
        y = top + row * KEY_HEIGHT
        draw_key(picture, number + 1, names[number], (left, y), width - left)
    return top + (places[-1][1] + 1) * KEY_HEIGHT


def _describe(timeline: Timeline, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each server."""
    for server, name in zip(timeline.servers, names, strict=True):
        yield f"{name}: {_describe_server(server)}."


def _describe_server(server: ServerTimeline) -> str:
    lowest = [value for value in server.lowest if value is not None]
    peaks = [value for value in server.peak if value is not None]
    if not lowest or not peaks:
        return "no observation"
    count = sum(server.sample_counts)
    total = sum(
        average * steps
        for average, steps in zip(server.averages, server.sample_counts, strict=True)
        if average is not None
    )
    return (
        f"average {format_rounded(total / count, 1)}, lowest {min(lowest):,}, peak {max(peaks):,},"
        f" {format_count(count, 'observation')}, {format_count(len(server.gaps), 'gap')}"
    )
