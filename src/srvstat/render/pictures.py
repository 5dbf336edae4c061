"""Draw documents as pictures: a sheet, with a distribution, growth, or the hours of the week."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.documents import analysis
from srvstat.documents.document import WHOLE_SHARE, WindowPart
from srvstat.render import figures, svg, text
from srvstat.render.axes import choose_ticks, format_ticks
from srvstat.render.timeline import STEPS, choose_layout, draw_timeline

_PADDING = 20
_TITLE_SIZE = 18
_HEADING_HEIGHT = 24
_BETWEEN = 12
_MANY = 3
"""The least servers whose names are not in the title."""

PictureDocument = (
    analysis.Timeline | analysis.PeakHours | analysis.Distribution | analysis.GrowthDocument
)


def draw_sheet(document: PictureDocument, width: int, zone: ZoneInfo) -> Element:
    """Draw a document with a title, its window on the clock of `zone`, and its source.

    Heat maps of several servers are one below the other.
    """
    inner = width - 2 * _PADDING
    panels = list(_draw_panels(document, inner, zone))
    names = svg.name_servers(document.servers)
    # The picture has all names.
    shown = " and ".join(names) if len(names) < _MANY else f"{len(names)} servers"
    title = f"Players of {shown}"
    window = document.window
    start = None if window.from_ is None else text.format_local_time(window.from_, zone)
    times = f"{start or 'all observations'} to {text.format_local_time(window.to, zone)}"
    notes = [times, zone.key]
    if isinstance(document, analysis.PeakHours):
        notes.insert(0, "by hour of the week")
    descriptions = (
        (f"{name}: " if name else "") + picture.findtext("desc", "") for name, picture in panels
    )
    as_of = text.format_zoned_time(document.as_of, zone, "minutes")
    source = ["srvstat", f"as of {as_of}", f"root {document.root[:8]}"]
    sentences = [", ".join(notes) + ".", *descriptions, ", ".join(source) + "."]
    sheet = svg.create_picture("sheet", svg.Size(width, 0), title, sentences)
    shown = svg.fit_text(title, inner, svg.BOLD * _TITLE_SIZE / svg.FONT_SIZE)
    svg.add_text(sheet, "title", (_PADDING, _PADDING + svg.FONT_SIZE), shown)
    top = svg.add_notes(sheet, notes, (_PADDING, _PADDING + 2.5 * svg.FONT_SIZE + 4), inner) + 20
    for name, picture in panels:
        top = _place_panel(sheet, name, picture, top)
    bottom = svg.add_notes(sheet, source, (_PADDING, top + 20), inner)
    sheet.set("viewBox", f"0 0 {width} {bottom + _PADDING - 4:.0f}")
    return sheet


def _draw_panels(
    document: PictureDocument, width: int, zone: ZoneInfo
) -> Iterator[tuple[str, Element]]:
    """Yield the pictures of a sheet, with the name above each, if any."""
    if isinstance(document, analysis.PeakHours):
        names = svg.name_servers(document.servers) if len(document.servers) > 1 else [""]
        for name, server in zip(names, document.servers, strict=True):
            shown = svg.fit_text(name, width, svg.BOLD)
            size = choose_size(server, width)
            yield shown, draw_heat_map(server, size, few=figures.name_few(document))
    elif isinstance(document, analysis.Timeline):
        size = choose_size(document, width)
        yield "", draw_timeline(document, size, zone, layout=choose_layout(document))
    elif isinstance(document, analysis.Distribution):
        yield "", draw_distribution(document, choose_size(document, width))
    else:
        yield "", draw_growth(document, choose_size(document, width))


def choose_size(document: PictureDocument | analysis.ServerPeakHours, width: int) -> svg.Size:
    """Return the size that suits a picture of a document."""
    if isinstance(document, analysis.Timeline):
        keys = svg.KEY_HEIGHT * len(document.servers)
        if choose_layout(document) == "panels":
            return svg.Size(width, 104 * len(document.servers) + 72)
        return svg.Size(width, min(max(width // 3, 220 + keys), 480))
    if isinstance(document, analysis.ServerPeakHours):
        row = min(max(width // 36, 20), 34)
        return svg.Size(width, 7 * row + 72)
    row = 96 if isinstance(document, analysis.Distribution) else 132
    return svg.Size(width, max(len(document.servers) * row, 180) + 72)


def _place_panel(sheet: Element, name: str, panel: Element, top: float) -> float:
    """Add a picture and its name below `top`, and return the height below it."""
    if name:
        svg.add_text(sheet, "heading", (_PADDING, top + svg.FONT_SIZE), name)
        top += _HEADING_HEIGHT
    picture = deepcopy(panel)
    _, _, width, height = picture.get("viewBox", "").split()
    place = {"x": str(_PADDING), "y": svg.format_number(top), "width": width, "height": height}
    picture.attrib |= place
    # The sheet is one image, with the descriptions of all panels.
    del picture.attrib["role"]
    picture[:] = [child for child in picture if child.tag not in ("title", "desc")]
    sheet.append(picture)
    return top + float(height) + (_BETWEEN if name else 0)


_PLAYER_LABEL_WIDTH = 64
_DISTRIBUTION_NOTES = ("each row on its own scale", "line: median", "strip: middle half")
_STRIP = 9
"""The height below the bars, with the line between the quartiles."""


def draw_distribution(distribution: analysis.Distribution, size: svg.Size) -> Element:
    """Draw a histogram for each server, one below the other, on one scale of players.

    The bars of a server are scaled to its highest one. A line goes through its median, and one
    below the bars from the lower to the upper quartile.
    """
    servers = distribution.servers
    title = "How often servers had how many players"
    words = ("; ".join(_list_figures(server)) for server in servers)
    picture, names = svg.create_picture_of("distribution", size, title, servers, words)
    unit = "time" if distribution.hold else "observations"
    top = svg.draw_notes(picture, [f"share of {unit} by players", *_DISTRIBUTION_NOTES], size)
    area = svg.Box(svg.MARGIN, top, size.width - svg.MARGIN, size.height - svg.BELOW)
    # A count is drawn in the middle of its place, as wide as a bar of one count.
    low = distribution.first_players
    high = low + max(len(servers[0].counts), 1) * distribution.bin_players
    across = svg.Scale(low - 0.5, high - 0.5, area.left, area.right)
    most = max(int(area.width // _PLAYER_LABEL_WIDTH), 3)
    ticks = choose_ticks(across.low + 0.5, across.high - 0.5, most)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        if across.low <= tick <= across.high:
            x = across.place(tick)
            svg.add_line(picture, "grid", (x, area.top), (x, area.bottom))
            svg.draw_tick(picture, area, x, label)
    rows = svg.divide_rows(area, len(names))
    for number, (server, name, row) in enumerate(zip(servers, names, rows, strict=True), start=1):
        box = svg.draw_heading(picture, row, name, _describe_quartiles(server))
        box = box._replace(bottom=box.bottom - _STRIP)
        group = svg.add(picture, "g", f"series series-{number}")
        _draw_bins(group, box, across, distribution, server)
        _draw_quartiles(picture, box, across, server)
    return picture


def _draw_bins(
    group: Element,
    box: svg.Box,
    across: svg.Scale,
    distribution: analysis.Distribution,
    server: analysis.ServerDistribution,
) -> None:
    svg.add_line(group, "axis", (box.left, box.bottom), (box.right, box.bottom))
    highest = max(server.counts, default=0)
    total = sum(server.counts)
    whole = "the time" if distribution.hold else text.format_count(total, "observation")
    space = 1 if box.width / max(len(server.counts), 1) > 4 else 0  # noqa: PLR2004 - in pixels
    for number, count in enumerate(server.counts):
        if count:
            first = distribution.first_players + number * distribution.bin_players
            after = first + distribution.bin_players
            left, right = across.place(first - 0.5), across.place(after - 0.5)
            height = max(count / highest * box.height, 0.5)
            bar = (left, box.bottom - height, right - left - space, height)
            share = f"{text.format_share(count / total)} of {whole}"
            tooltip = f"{format_bin(first, distribution.bin_players)} players: {share}"
            svg.add_rectangle(group, "bar", bar, tooltip)


def format_bin(first: int, width: int) -> str:
    """Format the numbers of players of a bin: `20 to 29`, or one number."""
    return f"{first:,} to {first + width - 1:,}" if width > 1 else f"{first:,}"


def _draw_quartiles(
    picture: Element, box: svg.Box, across: svg.Scale, server: analysis.ServerDistribution
) -> None:
    lower, median, upper = server.lower_quartile, server.median_players, server.upper_quartile
    if lower is None or median is None or upper is None:
        return
    y = box.bottom + _STRIP - 4
    svg.add_line(picture, "spread", (across.place(lower), y), (across.place(upper), y))
    x = across.place(median)
    svg.add_line(picture, "marker", (x, box.top), (x, y + 3))


def _describe_quartiles(server: analysis.ServerDistribution) -> list[str]:
    if server.median_players is None:
        return ["no observation"]
    quartiles = (server.lower_quartile, server.median_players, server.upper_quartile)
    lower, median, upper = map(text.format_median, quartiles)
    return [f"median {median}", f"middle half {lower} to {upper}"]


def _list_figures(server: analysis.ServerDistribution) -> Iterator[str]:
    yield ", ".join(_describe_quartiles(server))
    if server.lowest_players is not None and server.peak_players is not None:
        yield f"from {server.lowest_players:,} to {server.peak_players:,}"
        yield text.format_count(server.sample_count, "observation")


def draw_growth(growth: analysis.GrowthDocument, size: svg.Size) -> Element:
    """Draw a bar for the average of each step, with a row and a scale for each server.

    Bars of partial steps are pale, and do not determine the scale. A dashed line is the trend.
    """
    title = f"Average players by {growth.step}"
    words = ("; ".join(_list_growth_figures(one, growth.window)) for one in growth.servers)
    picture, names = svg.create_picture_of("growth", size, title, growth.servers, words)
    top = svg.draw_notes(picture, list(_list_growth_notes(growth)), size)
    area = svg.Box(0, top, size.width - svg.MARGIN, size.height - svg.BELOW)
    rows = svg.divide_rows(area, len(names))
    cells = (figures.list_growth_cells(growth, server) for server in growth.servers)
    height = rows[0].height - svg.HEADING
    ticks = [svg.choose_player_ticks(figures.find_highest(one), height) for one in cells]
    left = max(map(svg.measure_ticks, ticks))
    for number, (server, row) in enumerate(zip(growth.servers, rows, strict=True)):
        change = figures.format_change(server.change, server.average_players)
        shown = [f"change {' '.join(change)}"] if change else []
        shown.append(_describe_trend(server))
        css = figures.choose_class(server.change, server.average_players)
        box = svg.draw_heading(picture, row, names[number], shown, css)._replace(left=left)
        up = svg.draw_value_axis(picture, box, ticks[number])
        ends = (server.steps[0].from_, server.steps[-1].to) if server.steps else (0, 1)
        across = svg.Scale(*ends, box.left, box.right)
        group = svg.add(picture, "g", f"series series-{number + 1}")
        _draw_steps(group, across, up, server, growth)
        _draw_trend(group, across, up, server)
    if server.steps:
        # The label of a step is below the middle of its bar. Labels are at least a step apart, so
        # that none names an hour within a day.
        middles = {step.from_: (step.from_ + step.to) / 2 for step in server.steps}
        zone, least = ZoneInfo(growth.time_zone), STEPS[growth.step].shortest
        for at, label in svg.choose_time_labels(box, ends, zone, least):
            svg.draw_tick(picture, box, across.place(middles.get(at, at)), label)
    return picture


def _list_growth_notes(growth: analysis.GrowthDocument) -> Iterator[str]:
    yield f"players, average of each {growth.step}"
    yield f"in {growth.time_zone}"
    steps = [step for server in growth.servers for step in server.steps]
    if any(step.is_partial and step.average_players is not None for step in steps):
        yield f"pale: less than {WHOLE_SHARE:.0%} observed"
    if any(map(figures.find_trend_line, growth.servers)):
        yield "dashed: trend of whole days"
    if any(server.change for server in growth.servers):
        yield f"change: average against the {figures.format_window_length(growth.window)} before"


def _draw_steps(
    group: Element,
    across: svg.Scale,
    up: svg.Scale,
    server: analysis.ServerGrowth,
    growth: analysis.GrowthDocument,
) -> None:
    zone = ZoneInfo(growth.time_zone)
    for step in server.steps:
        if step.average_players is None:
            continue
        left, right = across.place(step.from_), across.place(step.to)
        space = min((right - left) * 0.2, 2)
        top = up.place(min(step.average_players, up.high))
        bar = (left + space / 2, top, right - left - space, up.start - top)
        average = text.format_average(step.average_players)
        count = text.format_count(step.sample_count, "observation")
        partial = f", part of a {growth.step}" if step.is_partial else ""
        name = figures.format_step(step.from_, zone, growth.step)
        css = "bar partial" if step.is_partial else "bar"
        svg.add_rectangle(group, css, bar, f"{name}: average {average}, {count}{partial}")


def _draw_trend(
    group: Element, across: svg.Scale, up: svg.Scale, server: analysis.ServerGrowth
) -> None:
    """Draw the trend between 0 and the top."""
    line = figures.find_trend_line(server)
    if line is None:
        return
    start, end = line.start, line.end
    if line.slope:
        limits = sorted(start + (value - line.base) / line.slope for value in (up.low, up.high))
        start, end = max(start, limits[0]), min(end, limits[1])
    ends = [(across.place(at), up.place(line.find_players(at))) for at in (start, end)]
    svg.add_line(group, "trend", ends[0], ends[1])


def _describe_trend(server: analysis.ServerGrowth) -> str:
    if server.average_players is None:
        return "no observation"
    trend = figures.format_trend(server.players_per_week, server.average_players, server.coverage)
    return "no trend" if trend == text.NOTHING else trend


def _list_growth_figures(server: analysis.ServerGrowth, window: WindowPart) -> Iterator[str]:
    if server.average_players is None:
        yield _describe_trend(server)
        return
    yield f"average {text.format_median(server.average_players)}"
    if server.change is None:
        yield figures.explain_missing_change(window, server.coverage, server.previous_coverage)
    else:
        change = " ".join(figures.format_change(server.change, server.average_players))
        yield f"{change} against the {figures.format_window_length(window)} before"
    yield _describe_trend(server)
    yield text.format_count(server.sample_count, "observation")


_LEVELS = 7
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


def draw_heat_map(
    server: analysis.ServerPeakHours,
    size: svg.Size,
    *,
    few: str = "with fewer than 4 observations",
    is_well_observed: bool = True,
) -> Element:
    """Draw a cell for each hour of the week, from Monday 0:00, with a scale below.

    The hours are on the clock of the document. Cells without an average are outlines, which `few`
    explains. The busiest hour has a frame and is named, if the window is well observed.
    """
    busiest = find_busiest(server) if is_well_observed else None
    (name,) = svg.name_servers([server])
    title = f"Players in each hour of the week: {name}"
    picture = svg.create_picture("heat-map", size, title, list(_describe_hours(server, busiest)))
    averages = _list_averages(server)
    has_empty = len(averages) < len(server.cells)
    lines = 1
    if size.width < _LEAST_WIDTH_FOR_LINE and averages:
        lines += (busiest is not None) + has_empty
    box = svg.Box(_LEFT, _ABOVE, size.width - svg.MARGIN, size.height - lines * _KEY_HEIGHT)
    _draw_labels(picture, box)
    for cell in server.cells:
        _draw_cell(picture, box, cell, averages)
    if busiest is not None:
        svg.add_rectangle(picture, "marker", _place_cell(box, busiest))
    x: float = _LEFT
    y = size.height - 6 - (lines - 1) * _KEY_HEIGHT
    if averages:
        x = _draw_scale(picture, (x, y), averages, size.width)
    if busiest is not None:
        words = f"busiest {text.format_hour(busiest.weekday, busiest.hour)}"
        if lines == 1:
            svg.add_text(picture, "unit", (size.width - svg.MARGIN, y), words, "end")
        else:
            x, y = _LEFT, y + _KEY_HEIGHT
            svg.add_text(picture, "unit", (x, y), words)
    if has_empty:
        if lines > 1:
            x, y = _LEFT, y + _KEY_HEIGHT
        svg.add_rectangle(picture, "empty", (x, y - 10, _KEY_BOX - 2, 11))
        svg.add_text(picture, "unit", (x + _KEY_BOX + 4, y), few.removeprefix("with "))
    return picture


def find_busiest(server: analysis.ServerPeakHours) -> analysis.HourPart | None:
    """Return the busiest hour; None if no hour is busier than another, or too few have averages."""
    return server.busiest if server.has_hours and len(set(_list_averages(server))) > 1 else None


def _list_averages(server: analysis.ServerPeakHours) -> list[float]:
    return [cell.average_players for cell in server.cells if cell.average_players is not None]


def _place_cell(box: svg.Box, cell: analysis.HourPart) -> tuple[float, float, float, float]:
    width, height = box.width / 24, box.height / len(text.WEEKDAYS)
    column, row = cell.hour or 0, (cell.weekday or 1) - 1
    return box.left + column * width, box.top + row * height, width, height


def _draw_labels(picture: Element, box: svg.Box) -> None:
    row = box.height / len(text.WEEKDAYS)
    for number, weekday in enumerate(text.WEEKDAYS):
        y = box.top + (number + 0.5) * row + svg.FONT_SIZE / 3
        svg.add_text(picture, "tick", (0, y), weekday[:3])
    every = 3 if box.width / 24 >= _LEAST_HOUR else 6
    for hour in range(0, 24, every):
        x = box.left + hour * box.width / 24
        svg.add_text(picture, "tick", (x, box.top - 6), f"{hour:02}:00")


def _draw_cell(
    picture: Element, box: svg.Box, cell: analysis.HourCellPart, averages: Sequence[float]
) -> None:
    left, top, width, height = spot = _place_cell(box, cell)
    if cell.average_players is None:
        spot = (left + 2, top + 2, width - 4, height - 4)
        css, words = "cell empty", "too few observations"
    else:
        ends = min(averages), max(averages)
        css = f"cell level-{figures.find_level(cell.average_players, *ends, _LEVELS)}"
        words = f"average {text.format_average(cell.average_players)}"
    count = text.format_count(cell.sample_count, "observation")
    tooltip = f"{text.format_hour(cell.weekday, cell.hour)}: {words}, {count}"
    svg.add_rectangle(picture, css, spot, tooltip)


def _draw_scale(picture: Element, at: svg.Place, averages: Sequence[float], right: float) -> float:
    """Draw the colors with the averages at their ends, and return the place after them."""
    x, y = at
    low, high = map(text.format_median, (min(averages), max(averages)))
    words = f"players {low}"
    svg.add_text(picture, "unit", (x, y), words)
    room = right - x - svg.measure_text(words) - svg.measure_text(high) - 2 * _KEY_SPACE
    box = max(min(_KEY_BOX, room / _LEVELS), 1)
    x += svg.measure_text(words) + _KEY_SPACE
    shown = range(_LEVELS) if low != high else (_LEVELS // 2,)
    for level in shown:
        svg.add_rectangle(picture, f"cell level-{level}", (x, y - 11, box, 13))
        x += box
    if low != high:
        svg.add_text(picture, "unit", (x + _KEY_SPACE, y), high)
        x += svg.measure_text(high) + _KEY_SPACE
    return x + 16


def _describe_hours(
    server: analysis.ServerPeakHours, busiest: analysis.HourPart | None
) -> Iterator[str]:
    if server.busiest is None or server.quietest is None:
        yield f"{figures.describe_shortage(server)}."
        return
    if busiest is not None:
        for name, hour in (("Busiest", busiest), ("Quietest", server.quietest)):
            average = text.format_average(server.get_cell(hour).average_players)
            yield f"{name}: {text.format_hour(hour.weekday, hour.hour)}, average {average}."
    averages = _list_averages(server)
    if len(set(averages)) == 1:
        yield "No hour is busier than another."
    if len(averages) < len(server.cells):
        yield f"{len(server.cells) - len(averages)} of {len(server.cells)} hours have no figures."
