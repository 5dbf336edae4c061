"""Draw the players of servers over time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.documents.timeline import ServerTimeline, Timeline
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
    Point,
    choose_length,
    find_common_gaps,
    get_window,
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
from srvstat.render.text import format_count, format_duration

_LEAST_WIDTH_FOR_LABELS = 560
"""In narrower pictures, names are above the lines and not beside them."""
_MOST_FOR_LABELS = 0.25
"""The share of the width that names beside the lines can take."""
_Run = Sequence[Point]
_Runs = Sequence[_Run]
"""The points of a server, with a gap after each run."""


class _Plot(NamedTuple):
    """Where the lines of a timeline are."""

    box: Box
    across: Scale
    up: Scale


def draw_timeline(timeline: Timeline, size: Size, zone: ZoneInfo) -> Element:
    """Draw a line for each server, with the band from lowest to peak if there is only one.

    The instants of ticks are on the clock of `zone`. A line has at most two points per pixel; each
    is the exact average of the steps that it covers. A gap of at least a pixel interrupts the line,
    and is shaded where no server has observations.
    """
    names = name_servers(timeline.servers)
    title = f"Players over time: {', '.join(names)}"
    picture = create_picture("timeline", size, title, list(_describe(timeline, names)))
    beside = _measure_keys(names, size.width)
    start, end = get_window(timeline)
    width = size.width - beside
    length = choose_length(timeline, width)
    runs = [merge_steps(timeline, one, length, (end - start) / width) for one in timeline.servers]
    has_band = len(runs) == 1 and any(one.lowest < one.peak for run in runs[0] for one in run)
    top = draw_notes(picture, list(_list_notes(timeline, length, has_band=has_band)), size)
    if len(names) > 1 and not beside:
        top = _draw_keys_above(picture, names, top, size.width)
    bottom = size.height - BELOW
    ticks = choose_player_ticks(_find_highest(runs), bottom - top)
    box = Box(measure_ticks(ticks), top, size.width - max(beside, MARGIN), bottom)
    across = _draw_frame(picture, timeline, box, zone)
    plot = _Plot(box, across, draw_value_axis(picture, box, ticks))
    for number, points in enumerate(runs, start=1):
        _draw_series(picture, plot, number, points, has_band=has_band)
    if beside:
        _draw_keys_beside(picture, plot, names, runs, size.width)
    return picture


def _draw_frame(picture: Element, timeline: Timeline, box: Box, zone: ZoneInfo) -> Scale:
    """Draw the gaps and, above them, the axis of time."""
    window = get_window(timeline)
    across = Scale(*window, box.left, box.right)
    for start, end in find_common_gaps(timeline):
        left, right = across.place(start), across.place(end)
        add(picture, "rect", "gap", x=left, y=box.top, width=right - left, height=box.height)
    return draw_time_axis(picture, box, window, zone)


def _find_highest(runs: Sequence[_Runs]) -> float | None:
    """Return the highest value to draw: of a single server its peak, else an average."""
    points = [point for server in runs for run in server for point in run]
    values = [point.peak if len(runs) == 1 else point.average for point in points]
    return max(values, default=None)


def _list_notes(timeline: Timeline, length: int, *, has_band: bool) -> Iterator[str]:
    """Yield what the lines and areas mean."""
    yield f"players, averages of {format_duration(length)}"
    if has_band:
        yield "shaded from lowest to peak"
    if find_common_gaps(timeline):
        yield "gray: no observations"


def _draw_series(
    picture: Element, plot: _Plot, number: int, runs: _Runs, *, has_band: bool
) -> None:
    group = add(picture, "g", f"series series-{number}")
    if has_band:
        for run in runs:
            add(group, "path", "band", d=_build_band(run, plot))
    lines = [run for run in runs if len(run) > 1]
    if lines:
        add(group, "path", "line", d="".join(_build_line(run, plot) for run in lines))
    for run in runs:
        if len(run) == 1:
            x, y = plot.across.place(run[0].middle), plot.up.place(run[0].average)
            add(group, "circle", "dot", cx=x, cy=y, r=2)


def _build_line(run: _Run, plot: _Plot) -> str:
    return _join_vertices(
        (plot.across.place(point.middle), plot.up.place(point.average)) for point in run
    )


def _build_band(run: _Run, plot: _Plot) -> str:
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
    return _join_vertices((plot.across.place(at), plot.up.place(value)) for at, value in ring) + "Z"


def _join_vertices(vertices: Iterator[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{format_number(x)} {format_number(y)}" for x, y in vertices)


def _measure_keys(names: Sequence[str], width: int) -> float:
    """Return the width of the names beside the lines; 0 if they have no room there."""
    if len(names) < 2 or width < _LEAST_WIDTH_FOR_LABELS:  # noqa: PLR2004 - one needs no name
        return 0
    return min(max(map(measure_key, names)) + MARGIN, width * _MOST_FOR_LABELS)


def _draw_keys_beside(
    picture: Element, plot: _Plot, names: Sequence[str], runs: Sequence[_Runs], right: int
) -> None:
    """Draw the name of each line beside its end."""
    ends = [plot.up.place(one[-1][-1].average if one else 0) for one in runs]
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
