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
    draw_time_axis,
    draw_value_axis,
    measure_ticks,
)
from srvstat.render.pictures.points import (
    Point,
    choose_length,
    find_common_gaps,
    get_window,
    merge_steps,
)
from srvstat.render.pictures.svg import (
    FONT_SIZE,
    Box,
    Size,
    add,
    add_line,
    add_notes,
    add_text,
    create_picture,
    fit_text,
    format_number,
    measure_text,
    name_servers,
)
from srvstat.render.tables.figures import format_rounded
from srvstat.render.text import format_count, format_duration

_LEAST_WIDTH_FOR_LABELS = 560
"""In narrower pictures, names are above the lines and not beside them."""
_MOST_FOR_LABELS = 0.25
"""The share of the width that names beside the lines can take."""
_KEY_WIDTH = 24
"""The width of a piece of line before a name."""
_LINE_HEIGHT = 17


class _Plot(NamedTuple):
    """Where the lines of a timeline are."""

    box: Box
    across: Scale
    up: Scale
    width: int


def draw_timeline(timeline: Timeline, size: Size, zone: ZoneInfo) -> Element:
    """Draw a line for each server, with the band from lowest to peak if there is only one.

    The instants of ticks are on the clock of `zone`. A line has at most two points per pixel; each
    is the exact average of the steps that it covers. A gap of at least a pixel interrupts the line,
    and is shaded where no server has observations.
    """
    names = name_servers(timeline.servers)
    title = f"Players over time: {', '.join(names)}"
    picture = create_picture("timeline", size, title, list(_describe(timeline, names)))
    keys = _measure_keys(names, size.width)
    start, end = get_window(timeline)
    length = choose_length(timeline, size.width - keys)
    notes = add_notes(picture, list(_list_notes(timeline, length)), size.width)
    top = notes + (len(names) * _LINE_HEIGHT if len(names) > 1 and not keys else 0)
    shortest_gap = (end - start) / (size.width - keys)
    runs = [merge_steps(timeline, one, length, shortest_gap) for one in timeline.servers]
    bottom = size.height - BELOW
    ticks = choose_player_ticks(_find_highest(runs), bottom - top)
    box = Box(measure_ticks(ticks), top, size.width - max(keys, MARGIN), bottom)
    across = _draw_frame(picture, timeline, box, zone)
    plot = _Plot(box, across, draw_value_axis(picture, box, ticks), size.width)
    for number, points in enumerate(runs, start=1):
        _draw_series(picture, plot, number, points, has_band=len(runs) == 1)
    if len(names) > 1:
        _draw_keys(picture, plot, names, runs, is_beside=bool(keys))
    return picture


def _draw_frame(picture: Element, timeline: Timeline, box: Box, zone: ZoneInfo) -> Scale:
    """Draw the gaps and, above them, the axis of time."""
    window = get_window(timeline)
    across = Scale(*window, box.left, box.right)
    for start, end in find_common_gaps(timeline):
        left, right = across.place(start), across.place(end)
        add(picture, "rect", "gap", x=left, y=box.top, width=right - left, height=box.height)
    return draw_time_axis(picture, box, window, zone)


def _find_highest(runs: Sequence[Sequence[Sequence[Point]]]) -> float | None:
    """Return the highest value to draw: of a single server its peak, else an average."""
    points = [point for server in runs for run in server for point in run]
    values = [point.peak if len(runs) == 1 else point.average for point in points]
    return max(values, default=None)


def _list_notes(timeline: Timeline, length: int) -> Iterator[str]:
    """Yield what the lines and areas mean."""
    yield f"players, averages of {format_duration(length)}"
    if len(timeline.servers) == 1:
        yield "shaded from lowest to peak"
    if find_common_gaps(timeline):
        yield "gray: no observations"


def _draw_series(
    picture: Element, plot: _Plot, number: int, runs: Sequence[Sequence[Point]], *, has_band: bool
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


def _build_line(run: Sequence[Point], plot: _Plot) -> str:
    return _join_vertices(
        (plot.across.place(point.middle), plot.up.place(point.average)) for point in run
    )


def _build_band(run: Sequence[Point], plot: _Plot) -> str:
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
    return min(max(map(measure_text, names)) + _KEY_WIDTH + MARGIN + 1, width * _MOST_FOR_LABELS)


def _draw_keys(
    picture: Element,
    plot: _Plot,
    names: Sequence[str],
    runs: Sequence[Sequence[Sequence[Point]]],
    *,
    is_beside: bool,
) -> None:
    """Draw the name of each line, beside its end or above all lines."""
    if is_beside:
        ends = [plot.up.place(one[-1][-1].average if one else 0) for one in runs]
        heights = spread_labels(ends, _LINE_HEIGHT, plot.box)
        left, right = plot.box.right + MARGIN, float(plot.width)
    else:
        first = plot.box.top - len(names) * _LINE_HEIGHT
        heights = [first + number * _LINE_HEIGHT for number in range(len(names))]
        left, right = 0.0, plot.box.right
    for number, (name, y) in enumerate(zip(names, heights, strict=True), start=1):
        group = add(picture, "g", f"series series-{number}")
        add_line(group, "line", (left, y), (left + _KEY_WIDTH - 6, y))
        fitting = fit_text(name, right - left - _KEY_WIDTH)
        add_text(group, "label", (left + _KEY_WIDTH, y + FONT_SIZE / 3), fitting)


def spread_labels(wanted: Sequence[float], distance: float, box: Box) -> list[float]:
    """Return the heights of labels: those wanted, moved so that none overlap or leave the box."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    placed = list(wanted)
    floor = box.top
    for at in order:
        placed[at] = max(placed[at], floor)
        floor = placed[at] + distance
    ceiling = box.bottom
    for at in reversed(order):
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - distance
    return placed


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
