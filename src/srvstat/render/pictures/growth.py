"""Draw how the players of servers change from step to step."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.analysis import GrowthDocument, GrowthStepName, GrowthStepPart, ServerGrowth
from srvstat.documents.document import WHOLE_SHARE, WindowPart
from srvstat.render.axes import choose_time_ticks
from srvstat.render.changes import (
    choose_class,
    explain_missing_change,
    format_change,
    format_trend,
    format_window_length,
)
from srvstat.render.pictures.frame import (
    BELOW,
    MARGIN,
    TIME_LABEL_WIDTH,
    Scale,
    choose_player_ticks,
    draw_notes,
    draw_tick,
    draw_value_axis,
    measure_ticks,
)
from srvstat.render.pictures.rows import HEADING, divide_rows, draw_heading
from srvstat.render.pictures.svg import (
    Box,
    Size,
    add,
    add_line,
    add_tooltip,
    create_picture,
    name_servers,
)
from srvstat.render.tables.figures import format_rounded, format_step
from srvstat.render.text import NOTHING, format_count
from srvstat.render.trend_line import find_trend_line

_SHORTEST: dict[GrowthStepName, int] = {"day": DAY_MS, "week": 7 * DAY_MS, "month": 28 * DAY_MS}


def draw_growth(growth: GrowthDocument, size: Size) -> Element:
    """Draw a bar for the average of each step, with a row and a scale for each server.

    Bars of partial steps are pale, and do not determine the scale. A dashed line is the trend.
    """
    names = name_servers(growth.servers)
    title = f"Average players by {growth.step}: {', '.join(names)}"
    sentences = [
        f"{name}: {'; '.join(_list_figures(server, growth.window))}."
        for name, server in zip(names, growth.servers, strict=True)
    ]
    picture = create_picture("growth", size, title, sentences)
    top = draw_notes(picture, list(_list_notes(growth)), size)
    rows = divide_rows(Box(0, top, size.width - MARGIN, size.height - BELOW), len(names))
    highest = [_find_highest(server) for server in growth.servers]
    ticks = [
        choose_player_ticks(one, row.height - HEADING)
        for one, row in zip(highest, rows, strict=True)
    ]
    left = max(map(measure_ticks, ticks), default=0)
    for number, (server, row) in enumerate(zip(growth.servers, rows, strict=True)):
        change = format_change(server.change, server.average_players)
        figures = [f"change {' '.join(change)}"] if change else []
        figures.append(_describe_trend(server))
        css = choose_class(server.change, server.average_players)
        box = draw_heading(picture, row, names[number], figures, css)
        box = box._replace(left=left)
        up = draw_value_axis(picture, box, ticks[number])
        across = _scale_steps(server, box)
        group = add(picture, "g", f"series series-{number + 1}")
        _draw_bars(group, across, up, server, growth)
        _draw_trend(group, across, up, server)
        if number == len(rows) - 1:
            _draw_step_axis(picture, box, across, server, growth)
    return picture


def _list_notes(growth: GrowthDocument) -> Iterator[str]:
    yield f"players, average of each {growth.step}"
    yield f"in {growth.time_zone}"
    steps = [step for server in growth.servers for step in server.steps if step.sample_count]
    if any(step.is_partial for step in steps):
        yield f"pale: less than {WHOLE_SHARE:.0%} observed"
    if any(find_trend_line(server) for server in growth.servers):
        yield "dashed: trend of whole days"
    if any(server.change for server in growth.servers):
        yield f"change: average against the {format_window_length(growth.window)} before"


def _find_highest(server: ServerGrowth) -> float | None:
    """Return the highest average of a whole step; of any step if none is whole."""
    known = [step for step in server.steps if step.average_players is not None]
    scale = [step for step in known if not step.is_partial] or known
    return max((step.average_players or 0 for step in scale), default=None)


def _scale_steps(server: ServerGrowth, box: Box) -> Scale:
    if not server.steps:
        return Scale(0, 1, box.left, box.right)
    return Scale(server.steps[0].from_, server.steps[-1].to, box.left, box.right)


def _draw_bars(
    group: Element, across: Scale, up: Scale, server: ServerGrowth, growth: GrowthDocument
) -> None:
    zone = ZoneInfo(growth.time_zone)
    for step in server.steps:
        if step.average_players is None:
            continue
        left, right = across.place(step.from_), across.place(step.to)
        space = min((right - left) * 0.2, 2)
        top = up.place(min(step.average_players, up.high))
        css = "bar partial" if step.is_partial else "bar"
        place = {"x": left + space / 2, "y": top}
        size = {"width": right - left - space, "height": up.start - top}
        bar = add(group, "rect", css, **place, **size)
        average = format_rounded(step.average_players, 2)
        count = format_count(step.sample_count, "observation")
        partial = f", part of a {growth.step}" if step.is_partial else ""
        name = format_step(step.from_, zone, growth.step)
        add_tooltip(bar, f"{name}: average {average}, {count}{partial}")


def _draw_trend(group: Element, across: Scale, up: Scale, server: ServerGrowth) -> None:
    """Draw the trend between 0 and the top."""
    line = find_trend_line(server)
    if line is None:
        return
    start, end = line.start, line.end
    if line.slope:
        limits = sorted(start + (value - line.base) / line.slope for value in (up.low, up.high))
        start, end = max(start, limits[0]), min(end, limits[1])
    ends = [(across.place(at), up.place(line.find_players(at))) for at in (start, end)]
    add_line(group, "trend", ends[0], ends[1])


def _draw_step_axis(
    picture: Element, box: Box, across: Scale, server: ServerGrowth, growth: GrowthDocument
) -> None:
    """Draw labels of times, those at which a step begins below the middle of its bar.

    Labels are at least a step apart, so that none names an hour within a day.
    """
    if not server.steps:
        return
    zone, least = ZoneInfo(growth.time_zone), _SHORTEST[growth.step]
    steps: dict[int, GrowthStepPart] = {step.from_: step for step in server.steps}
    most = max(int(box.width // TIME_LABEL_WIDTH), 2)
    window = int(across.low), int(across.high)
    for at, label in choose_time_ticks(*window, most, zone, least):
        middle = (at + steps[at].to) / 2 if at in steps else at
        draw_tick(picture, box, across.place(middle), label)


def _describe_trend(server: ServerGrowth) -> str:
    if server.average_players is None:
        return "no observation"
    trend, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    return "no trend" if trend == NOTHING else trend


def _list_figures(server: ServerGrowth, window: WindowPart) -> Iterator[str]:
    if server.average_players is None:
        yield _describe_trend(server)
        return
    yield f"average {format_rounded(server.average_players, 1)}"
    if server.change is None:
        yield explain_missing_change(window, server.coverage, server.previous_coverage)
    else:
        change = " ".join(format_change(server.change, server.average_players))
        yield f"{change} against the {format_window_length(window)} before"
    yield _describe_trend(server)
    yield format_count(server.sample_count, "observation")
