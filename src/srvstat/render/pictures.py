"""Draw documents as pictures: distributions, growth, hours of the week, and sheets of pictures."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract.time import DAY_MS
from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    GrowthStepName,
    GrowthStepPart,
    HourCellPart,
    HourPart,
    PeakHours,
    ServerDistribution,
    ServerGrowth,
    ServerPeakHours,
    Timeline,
)
from srvstat.documents.document import WHOLE_SHARE, WindowPart
from srvstat.render import svg
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.figures import (
    choose_class,
    describe_shortage,
    explain_missing_change,
    find_highest,
    find_level,
    find_trend_line,
    format_average,
    format_brief_average,
    format_change,
    format_median,
    format_step,
    format_trend,
    format_window_length,
    list_growth_cells,
)
from srvstat.render.text import (
    NOTHING,
    WEEKDAYS,
    format_count,
    format_hour,
    format_local_time,
    format_share,
    format_zoned_time,
)
from srvstat.render.timeline import draw_timeline


def choose_size(
    document: Timeline | ServerPeakHours | Distribution | GrowthDocument, width: int
) -> svg.Size:
    """Return the size that suits a picture of a document."""
    if isinstance(document, Timeline):
        keys = svg.KEY_HEIGHT * len(document.servers)
        return svg.Size(width, min(max(width // 3, 220 + keys), 480))
    if isinstance(document, ServerPeakHours):
        row = min(max(width // 36, 20), 34)
        return svg.Size(width, 7 * row + 72)
    count = len(document.servers)
    rows = count * (96 if isinstance(document, Distribution) else 132)
    return svg.Size(width, max(rows, 180) + 72)


_PADDING = 20
_TITLE_SIZE = 18
_HEADING_HEIGHT = 24
_BETWEEN = 12

PictureDocument = Timeline | PeakHours | Distribution | GrowthDocument


class _Panel(NamedTuple):
    """A picture of a sheet, with the name above it, if any."""

    name: str
    picture: Element


def draw_sheet(document: PictureDocument, width: int, zone: ZoneInfo) -> Element:
    """Draw a document with a title, its window on the clock of `zone`, and its source.

    Heat maps of several servers are one below the other.
    """
    inner = width - 2 * _PADDING
    panels = _draw_panels(document, inner, zone)
    title = f"Players of {_join_names(document.servers)}"
    notes = [_describe_window(document.window, zone), zone.key]
    if isinstance(document, PeakHours):
        notes.insert(0, "by hour of the week")
    descriptions = (
        (f"{one.name}: " if one.name else "") + one.picture.findtext("desc", "") for one in panels
    )
    as_of = format_zoned_time(document.as_of, zone, "minutes")
    source = ["srvstat", f"as of {as_of}", f"root {document.root[:8]}"]
    sentences = [", ".join(notes) + ".", *descriptions, ", ".join(source) + "."]
    sheet = svg.create_picture("sheet", svg.Size(width, 0), title, sentences)
    shown = svg.fit_text(title, inner, svg.BOLD * _TITLE_SIZE / svg.FONT_SIZE)
    svg.add_text(sheet, "title", (_PADDING, _PADDING + svg.FONT_SIZE), shown)
    top = svg.add_notes(sheet, notes, (_PADDING, _PADDING + 2.5 * svg.FONT_SIZE + 4), inner) + 20
    for panel in panels:
        top = _place_panel(sheet, panel, top)
    bottom = svg.add_notes(sheet, source, (_PADDING, top + 20), inner)
    sheet.set("viewBox", f"0 0 {width} {bottom + _PADDING - 4:.0f}")
    return sheet


def _draw_panels(document: PictureDocument, width: int, zone: ZoneInfo) -> list[_Panel]:
    if isinstance(document, PeakHours):
        names = svg.name_servers(document.servers) if len(document.servers) > 1 else [""]
        return [
            _Panel(
                svg.fit_text(name, width, svg.BOLD),
                draw_heat_map(server, choose_size(server, width)),
            )
            for name, server in zip(names, document.servers, strict=True)
        ]
    size = choose_size(document, width)
    if isinstance(document, Timeline):
        return [_Panel("", draw_timeline(document, size, zone))]
    if isinstance(document, Distribution):
        return [_Panel("", draw_distribution(document, size))]
    return [_Panel("", draw_growth(document, size))]


def _place_panel(sheet: Element, panel: _Panel, top: float) -> float:
    """Add a panel below `top`, and return the height below it."""
    if panel.name:
        svg.add_text(sheet, "heading", (_PADDING, top + svg.FONT_SIZE), panel.name)
        top += _HEADING_HEIGHT
    picture = deepcopy(panel.picture)
    _, _, width, height = picture.get("viewBox", "").split()
    place = {"x": str(_PADDING), "y": svg.format_number(top), "width": width, "height": height}
    picture.attrib |= place
    # The sheet is one image, with the descriptions of all panels.
    del picture.attrib["role"]
    for child in [one for one in picture if one.tag in ("title", "desc")]:
        picture.remove(child)
    sheet.append(picture)
    return top + float(height) + (_BETWEEN if panel.name else 0)


def _join_names(servers: Sequence[svg.NamedServer]) -> str:
    """Return the names of one or two servers, else their number."""
    if len(servers) > 2:  # noqa: PLR2004 - the picture has all names
        return f"{len(servers)} servers"
    return " and ".join(svg.name_servers(servers))


def _describe_window(window: WindowPart, zone: ZoneInfo) -> str:
    end = format_local_time(window.to, zone)
    if window.from_ is None:
        return f"all observations to {end}"
    return f"{format_local_time(window.from_, zone)} to {end}"


_TICK_WIDTH = 64
_NOTES = (
    "share of observations by players",
    "each row on its own scale",
    "line: median",
    "strip: middle half",
)
_STRIP = 9
"""The height below the bars, with the line between the quartiles."""


def draw_distribution(distribution: Distribution, size: svg.Size) -> Element:
    """Draw a histogram for each server, one below the other, on one scale of players.

    The bars of a server are scaled to its highest one. A line goes through its median, and one
    below the bars from the lower to the upper quartile.
    """
    names = svg.name_servers(distribution.servers)
    title = f"How often servers had how many players: {', '.join(names)}"
    sentences = [
        f"{name}: {'; '.join(_list_figures(server))}."
        for name, server in zip(names, distribution.servers, strict=True)
    ]
    picture = svg.create_picture("distribution", size, title, sentences)
    top = svg.draw_notes(picture, _NOTES, size)
    area = svg.Box(svg.MARGIN, top, size.width - svg.MARGIN, size.height - svg.BELOW)
    low = distribution.first_players
    bins = max((len(server.counts) for server in distribution.servers), default=1)
    # A count is drawn in the middle of its place, as wide as a bar of one count.
    high = low + max(bins, 1) * distribution.bin_players
    across = svg.Scale(low - 0.5, high - 0.5, area.left, area.right)
    _draw_player_axis(picture, area, across)
    rows = svg.divide_rows(area, len(names))
    for number, (server, name, row) in enumerate(
        zip(distribution.servers, names, rows, strict=True), start=1
    ):
        box = svg.draw_heading(picture, row, name, list(_list_quartiles(server)))
        box = box._replace(bottom=box.bottom - _STRIP)
        group = svg.add(picture, "g", f"series series-{number}")
        _draw_bars(group, box, across, distribution, server)
        _draw_quartiles(picture, box, across, server)
    return picture


def _draw_player_axis(picture: Element, area: svg.Box, across: svg.Scale) -> None:
    most = max(int(area.width // _TICK_WIDTH), 3)
    ticks = choose_ticks(across.low + 0.5, across.high - 0.5, most)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        if across.low <= tick <= across.high:
            x = across.place(tick)
            svg.add_line(picture, "grid", (x, area.top), (x, area.bottom))
            svg.draw_tick(picture, area, x, label)


def _draw_bars(
    group: Element,
    box: svg.Box,
    across: svg.Scale,
    distribution: Distribution,
    server: ServerDistribution,
) -> None:
    svg.add_line(group, "axis", (box.left, box.bottom), (box.right, box.bottom))
    highest = max(server.counts, default=0)
    total = sum(server.counts)
    space = 1 if box.width / max(len(server.counts), 1) > 4 else 0  # noqa: PLR2004 - in pixels
    for number, count in enumerate(server.counts):
        if count:
            first = distribution.first_players + number * distribution.bin_players
            after = first + distribution.bin_players
            left, right = across.place(first - 0.5), across.place(after - 0.5)
            height = max(count / highest * box.height, 0.5)
            place = {"x": left, "y": box.bottom - height}
            bar = svg.add(group, "rect", "bar", **place, width=right - left - space, height=height)
            players = f"{first:,} to {after - 1:,}" if after - first > 1 else f"{first:,}"
            share = f"{format_share(count / total)} of {format_count(total, 'observation')}"
            svg.add_tooltip(bar, f"{players} players: {share}")


def _draw_quartiles(
    picture: Element, box: svg.Box, across: svg.Scale, server: ServerDistribution
) -> None:
    lower, median, upper = server.lower_quartile, server.median_players, server.upper_quartile
    if lower is None or median is None or upper is None:
        return
    y = box.bottom + _STRIP - 4
    svg.add_line(picture, "spread", (across.place(lower), y), (across.place(upper), y))
    x = across.place(median)
    svg.add_line(picture, "marker", (x, box.top), (x, y + 3))


def _list_quartiles(server: ServerDistribution) -> Iterator[str]:
    if server.median_players is None:
        yield "no observation"
        return
    median, lower, upper = (
        format_median(value)
        for value in (server.median_players, server.lower_quartile, server.upper_quartile)
    )
    yield f"median {median}"
    yield f"middle half {lower} to {upper}"


def _list_figures(server: ServerDistribution) -> Iterator[str]:
    yield ", ".join(_list_quartiles(server))
    if server.lowest_players is not None and server.peak_players is not None:
        yield f"from {server.lowest_players:,} to {server.peak_players:,}"
        yield format_count(server.sample_count, "observation")


_SHORTEST: dict[GrowthStepName, int] = {"day": DAY_MS, "week": 7 * DAY_MS, "month": 28 * DAY_MS}


def draw_growth(growth: GrowthDocument, size: svg.Size) -> Element:
    """Draw a bar for the average of each step, with a row and a scale for each server.

    Bars of partial steps are pale, and do not determine the scale. A dashed line is the trend.
    """
    names = svg.name_servers(growth.servers)
    title = f"Average players by {growth.step}: {', '.join(names)}"
    sentences = [
        f"{name}: {'; '.join(_list_growth_figures(server, growth.window))}."
        for name, server in zip(names, growth.servers, strict=True)
    ]
    picture = svg.create_picture("growth", size, title, sentences)
    top = svg.draw_notes(picture, list(_list_notes(growth)), size)
    rows = svg.divide_rows(
        svg.Box(0, top, size.width - svg.MARGIN, size.height - svg.BELOW), len(names)
    )
    highest = [find_highest(list_growth_cells(server.steps)) for server in growth.servers]
    ticks = [
        svg.choose_player_ticks(one, row.height - svg.HEADING)
        for one, row in zip(highest, rows, strict=True)
    ]
    left = max(map(svg.measure_ticks, ticks), default=0)
    for number, (server, row) in enumerate(zip(growth.servers, rows, strict=True)):
        change = format_change(server.change, server.average_players)
        figures = [f"change {' '.join(change)}"] if change else []
        figures.append(_describe_trend(server))
        css = choose_class(server.change, server.average_players)
        box = svg.draw_heading(picture, row, names[number], figures, css)
        box = box._replace(left=left)
        up = svg.draw_value_axis(picture, box, ticks[number])
        ends = (server.steps[0].from_, server.steps[-1].to) if server.steps else (0, 1)
        across = svg.Scale(*ends, box.left, box.right)
        group = svg.add(picture, "g", f"series series-{number + 1}")
        _draw_steps(group, across, up, server, growth)
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


def _draw_steps(
    group: Element, across: svg.Scale, up: svg.Scale, server: ServerGrowth, growth: GrowthDocument
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
        bar = svg.add(group, "rect", css, **place, **size)
        average = format_average(step.average_players)
        count = format_count(step.sample_count, "observation")
        partial = f", part of a {growth.step}" if step.is_partial else ""
        name = format_step(step.from_, zone, growth.step)
        svg.add_tooltip(bar, f"{name}: average {average}, {count}{partial}")


def _draw_trend(group: Element, across: svg.Scale, up: svg.Scale, server: ServerGrowth) -> None:
    """Draw the trend between 0 and the top."""
    line = find_trend_line(server)
    if line is None:
        return
    start, end = line.start, line.end
    if line.slope:
        limits = sorted(start + (value - line.base) / line.slope for value in (up.low, up.high))
        start, end = max(start, limits[0]), min(end, limits[1])
    ends = [(across.place(at), up.place(line.find_players(at))) for at in (start, end)]
    svg.add_line(group, "trend", ends[0], ends[1])


def _draw_step_axis(
    picture: Element, box: svg.Box, across: svg.Scale, server: ServerGrowth, growth: GrowthDocument
) -> None:
    """Draw labels of times, those at which a step begins below the middle of its bar.

    Labels are at least a step apart, so that none names an hour within a day.
    """
    if not server.steps:
        return
    zone, least = ZoneInfo(growth.time_zone), _SHORTEST[growth.step]
    steps: dict[int, GrowthStepPart] = {step.from_: step for step in server.steps}
    most = max(int(box.width // svg.TIME_LABEL_WIDTH), 2)
    window = int(across.low), int(across.high)
    for at, label in choose_time_ticks(*window, most, zone, least):
        middle = (at + steps[at].to) / 2 if at in steps else at
        svg.draw_tick(picture, box, across.place(middle), label)


def _describe_trend(server: ServerGrowth) -> str:
    if server.average_players is None:
        return "no observation"
    trend, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    return "no trend" if trend == NOTHING else trend


def _list_growth_figures(server: ServerGrowth, window: WindowPart) -> Iterator[str]:
    if server.average_players is None:
        yield _describe_trend(server)
        return
    yield f"average {format_brief_average(server.average_players)}"
    if server.change is None:
        yield explain_missing_change(window, server.coverage, server.previous_coverage)
    else:
        change = " ".join(format_change(server.change, server.average_players))
        yield f"{change} against the {format_window_length(window)} before"
    yield _describe_trend(server)
    yield format_count(server.sample_count, "observation")


LEVELS = 7
"""The colors of cells, `--level-0` to `--level-6` in palette.css."""

_LEFT, _ABOVE = 34, 20
_KEY_HEIGHT = 22
_KEY_BOX = 16
"""The width of a color in the scale, if there is room."""
_KEY_SPACE = 6
"""The space between the colors and the averages beside them."""
_LEAST_WIDTH_FOR_LINE = 760
"""In narrower pictures, the scale has several lines."""
_LEAST_HOUR = 20
"""The least width of an hour in pixels; narrower ones have fewer labels."""


class _Range(NamedTuple):
    """The averages of the first and of the last level."""

    lowest: float
    highest: float

    def find_level(self, average: float) -> int:
        """Return the level of an average."""
        return find_level(average, self.lowest, self.highest, LEVELS)


class _Key(NamedTuple):
    """What the lines below a map explain."""

    levels: _Range | None
    busiest: HourPart | None
    has_empty: bool
    lines: int


def draw_heat_map(
    server: ServerPeakHours, size: svg.Size, *, is_well_observed: bool = True
) -> Element:
    """Draw a cell for each hour of the week, from Monday 0:00, with a scale below.

    The hours are on the clock of the document. Cells without an average are outlines. The busiest
    hour has a frame and is named, if the window is well observed.
    """
    busiest = find_busiest(server) if is_well_observed else None
    name = svg.name_servers([server])[0]
    title = f"Players in each hour of the week: {name}"
    picture = svg.create_picture("heat-map", size, title, list(_describe(server, busiest)))
    averages = [one.average_players for one in server.cells if one.average_players is not None]
    levels = _Range(min(averages, default=0), max(averages, default=0))
    has_empty = len(averages) < len(server.cells)
    lines = 1
    if size.width < _LEAST_WIDTH_FOR_LINE and server.busiest is not None:
        lines += (busiest is not None) + has_empty
    box = svg.Box(_LEFT, _ABOVE, size.width - svg.MARGIN, size.height - lines * _KEY_HEIGHT)
    _draw_labels(picture, box)
    for cell in server.cells:
        _draw_cell(picture, box, cell, levels)
    if busiest is not None:
        svg.add(picture, "rect", "marker", **_place_cell(box, busiest).rectangle)
    key = _Key(levels if averages else None, busiest, has_empty, lines)
    _draw_key(picture, (_LEFT, size.height - 6 - (lines - 1) * _KEY_HEIGHT), size.width, key)
    return picture


def find_busiest(server: ServerPeakHours) -> HourPart | None:
    """Return the busiest hour; None if no hour is busier than another, or too few have averages."""
    averages = [cell.average_players for cell in server.cells if cell.average_players is not None]
    return server.busiest if server.has_hours and len(set(averages)) > 1 else None


def _place_cell(box: svg.Box, cell: HourCellPart | HourPart) -> svg.Box:
    width, height = box.width / 24, box.height / len(WEEKDAYS)
    left, top = box.left + cell.hour * width, box.top + (cell.weekday - 1) * height
    return svg.Box(left, top, left + width, top + height)


def _draw_labels(picture: Element, box: svg.Box) -> None:
    row = box.height / len(WEEKDAYS)
    for number, weekday in enumerate(WEEKDAYS):
        y = box.top + (number + 0.5) * row + svg.FONT_SIZE / 3
        svg.add_text(picture, "tick", (0, y), weekday[:3])
    every = 3 if box.width / 24 >= _LEAST_HOUR else 6
    for hour in range(0, 24, every):
        x = box.left + hour * box.width / 24
        svg.add_text(picture, "tick", (x, box.top - 6), f"{hour:02}:00")


def _draw_cell(picture: Element, box: svg.Box, cell: HourCellPart, levels: _Range) -> None:
    spot = _place_cell(box, cell)
    if cell.average_players is None:
        inset = {"x": spot.left + 2, "y": spot.top + 2}
        size = {"width": spot.width - 4, "height": spot.height - 4}
        element = svg.add(picture, "rect", "cell empty", **inset, **size)
        figures = "too few observations"
    else:
        css = f"cell level-{levels.find_level(cell.average_players)}"
        element = svg.add(picture, "rect", css, **spot.rectangle)
        figures = f"average {format_average(cell.average_players)}"
    count = format_count(cell.sample_count, "observation")
    svg.add_tooltip(element, f"{format_hour(cell.weekday, cell.hour)}: {figures}, {count}")


def _draw_key(picture: Element, at: tuple[float, float], width: int, key: _Key) -> None:
    """Draw the scale, what an outline means, and the busiest hour, in one line if it is wide."""
    x, y = at
    if key.levels is not None:
        x = _draw_scale(picture, at, key.levels, width)
    if key.busiest is not None:
        text = f"busiest {format_hour(key.busiest.weekday, key.busiest.hour)}"
        if key.lines == 1:
            svg.add_text(picture, "unit", (width - svg.MARGIN, y), text, "end")
        else:
            x, y = _LEFT, y + _KEY_HEIGHT
            svg.add_text(picture, "unit", (x, y), text)
    if key.has_empty:
        if key.lines > 1:
            x, y = _LEFT, y + _KEY_HEIGHT
        svg.add(picture, "rect", "empty", x=x, y=y - 10, width=_KEY_BOX - 2, height=11)
        svg.add_text(picture, "unit", (x + _KEY_BOX + 4, y), "fewer than 4 observations")


def _draw_scale(picture: Element, at: tuple[float, float], levels: _Range, right: float) -> float:
    """Draw the colors with the averages at their ends, and return the place after them."""
    x, y = at
    low, high = (format_brief_average(value) for value in levels)
    words = f"players {low}"
    svg.add_text(picture, "unit", (x, y), words)
    room = right - x - svg.measure_text(words) - svg.measure_text(high) - 2 * _KEY_SPACE
    box = max(min(_KEY_BOX, room / LEVELS), 1)
    x += svg.measure_text(words) + _KEY_SPACE
    shown = range(LEVELS) if low != high else (LEVELS // 2,)
    for level in shown:
        svg.add(picture, "rect", f"cell level-{level}", x=x, y=y - 11, width=box, height=13)
        x += box
    if low != high:
        svg.add_text(picture, "unit", (x + _KEY_SPACE, y), high)
        x += svg.measure_text(high) + _KEY_SPACE
    return x + 16


def _describe(server: ServerPeakHours, busiest: HourPart | None) -> Iterator[str]:
    if server.busiest is None or server.quietest is None:
        yield f"{describe_shortage(server)}."
        return
    if busiest is not None:
        for name, hour in (("Busiest", busiest), ("Quietest", server.quietest)):
            average = format_average(server.get_cell(hour).average_players)
            yield f"{name}: {format_hour(hour.weekday, hour.hour)}, average {average}."
    known = [cell.average_players for cell in server.cells if cell.average_players is not None]
    if len(set(known)) == 1:
        yield "No hour is busier than another."
    if len(known) < len(server.cells):
        yield f"{len(server.cells) - len(known)} of {len(server.cells)} hours have no figures."
