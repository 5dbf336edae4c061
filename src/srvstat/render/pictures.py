"""Draw documents as pictures: sheets with timelines, distributions, growth or hours of the week."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import ceil
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract.errors import ParameterError
from srvstat.documents import analysis
from srvstat.documents.document import LEAST_COVERAGE, WHOLE_SHARE, WindowPart
from srvstat.render import figures, svg, text
from srvstat.render.axes import choose_highs, choose_ticks, format_ticks
from srvstat.render.timeline import STEPS, Layout, choose_layout, draw_timeline, measure_averages

_PADDING = 20
_TITLE_SIZE = 18
_TITLE_HEIGHT = 24
_MOST_TITLE_LINES = 3
_HEADING_HEIGHT = 24
_BETWEEN = 12
_FOOTER = 20
_MANY = 3
"""The minimum number of servers whose names are omitted from the title."""
_MOST_NAME = 48
"""The maximum number of characters of a name in a title."""
_LEAST_HEIGHT = 0.6
"""The minimum height of a drawing, relative to its natural height."""

PictureDocument = (
    analysis.Timeline
    | analysis.PeakHours
    | analysis.Distribution
    | analysis.GrowthDocument
    | analysis.Stats
)


@dataclass(frozen=True)
class Look:
    """The user's choices for a picture. Choices that are not made follow from the document.

    - `width`, `height`: the size of the whole picture in pixels.
    - `title`, `subtitle`: the texts above the drawing.
    - `source`: the name of the data.
    - `step`: the name of a timeline's steps if they are drawn unmerged.
    - `layout`: the layout of a timeline.
    """

    width: int = 960
    height: int | None = None
    title: str | None = None
    subtitle: str | None = None
    source: str = "srvstat"
    step: str | None = None
    layout: Layout | None = None


def draw_sheet(document: PictureDocument, zone: ZoneInfo, look: Look = Look()) -> Element:
    """Draw a document with a title, its window on the clock of `zone`, and its source.

    Heat maps of several servers are placed one below the other.

    Raises ParameterError if the height is too low.
    """
    inner = look.width - 2 * _PADDING
    title = look.title or choose_title(document, look.layout)
    subtitle = look.subtitle or figures.format_title_window(document.window, zone)
    notes = [svg.fit_text(subtitle, inner)]
    if isinstance(document, analysis.PeakHours):
        notes.append("players by hour of the week")
        if len(document.servers) > 1:
            notes.append("each on its own scale of colors")
    sheet = svg.create_picture("sheet", svg.Size(look.width, 0), title, [])
    scale = svg.BOLD * _TITLE_SIZE / svg.FONT_SIZE
    y = _PADDING + svg.FONT_SIZE
    for line in svg.wrap_text(title, inner, scale, _MOST_TITLE_LINES):
        svg.add_text(sheet, "title", (_PADDING, y), line)
        y += _TITLE_HEIGHT
    top = svg.add_notes(sheet, notes, (_PADDING, y - 2), inner) + _FOOTER
    source = svg.wrap_text(look.source, inner, 1, _MOST_TITLE_LINES)
    below = _FOOTER + (len(source) - 1) * svg.LINE_HEIGHT + _PADDING - 4
    room = None if look.height is None else look.height - top - below
    panels = list(_draw_panels(document, inner, zone, look, room))
    for name, picture in panels:
        top = _place_panel(sheet, name, picture, top)
    for number, line in enumerate(source):
        place = (_PADDING, top + _FOOTER + number * svg.LINE_HEIGHT)
        svg.add_text(sheet, "unit", place, line)
    sheet.set("viewBox", f"0 0 {look.width} {look.height or top + below:.0f}")
    words = [(f"{name}: " if name else "") + one.findtext("desc", "") for name, one in panels]
    sentences = [f"{', '.join(notes)}.", *words, f"{look.source}."]
    sheet[1].text = text.escape_text(" ".join(sentences))
    return sheet


def choose_title(document: PictureDocument, layout: Layout | None = None) -> str:
    """Return the finding of a picture as a title, or its subject if there is none.

    A title only compares servers with at least 80 % coverage of the window.
    """
    hostnames = svg.name_servers(document.servers)
    names = [text.escape_text(name, max_length=_MOST_NAME) for name in hostnames]
    shown = " and ".join(names) if len(names) < _MANY else f"{len(names)} servers"
    finding = None
    if isinstance(document, analysis.Timeline):
        finding = _describe_averages(names, list(measure_averages(document)), layout)
    elif isinstance(document, analysis.Stats):
        averages = [(one.average_players, one.coverage or 0) for one in document.servers]
        finding = _describe_averages(names, averages, layout)
    elif len(names) == 1:
        finding = _describe_one(document, names[0])
    if isinstance(document, analysis.PeakHours):
        return finding or f"Players of {shown} by hour of the week"
    if isinstance(document, analysis.Distribution):
        return finding or f"How often {shown} had how many players"
    if isinstance(document, analysis.GrowthDocument):
        return finding or f"Average players of {shown} by {document.step}"
    return finding or f"Players of {shown}"


def _describe_averages(
    names: Sequence[str], averages: Sequence[tuple[float | None, float]], layout: Layout | None
) -> str | None:
    """Name the server with the most players, given averages and coverages, or return None."""
    known = {
        name: average
        for name, (average, coverage) in zip(names, averages, strict=True)
        if average is not None and coverage >= LEAST_COVERAGE
    }
    observed = sum(average is not None for average, _ in averages)
    most = max(known.values(), default=0)
    leaders = [name for name, average in known.items() if average == most]
    if len(known) < observed or len(leaders) != 1:
        return None
    if layout == "share":
        share = text.format_share(most / sum(known.values()))
        return f"{leaders[0]} has {share} of the players of {len(names)} servers"
    leads = " leads with" if len(known) > 1 else ":"
    return f"{leaders[0]}{leads} {text.format_median(most)} players on average"


def _describe_one(document: PictureDocument, name: str) -> str | None:
    """Return the finding about a single server, if any."""
    (server,) = document.servers
    if isinstance(server, analysis.ServerPeakHours) and (busiest := find_busiest(server)):
        return f"{name} is busiest on {text.format_hour(busiest.weekday, busiest.hour)}"
    if isinstance(server, analysis.ServerDistribution) and server.median_players is not None:
        _, middle = _describe_quartiles(server)
        return f"{name}: {middle.removeprefix('middle half ')} players in half of the observations"
    if isinstance(server, analysis.ServerGrowth) and server.change:
        *_, change = figures.format_change(server.change, server.average_players)
        length = figures.format_window_length(document.window)
        return f"{name}: average {change} against the {length} before"
    return None


def _draw_panels(
    document: PictureDocument, width: int, zone: ZoneInfo, look: Look, room: float | None
) -> Iterator[tuple[str, Element]]:
    """Yield the pictures of a sheet, each with the name above it or ""."""
    servers = document.servers
    if not any(map(_is_known, servers)):
        size = svg.Size(width, 120 if room is None else round(room))
        picture = svg.create_picture("nothing", size, svg.NO_OBSERVATIONS, [svg.NO_OBSERVATIONS])
        svg.draw_words(picture, svg.Box(0, 0, *size), f"{svg.NO_OBSERVATIONS} in this window")
    elif isinstance(document, analysis.PeakHours):
        names = svg.name_servers(servers) if len(servers) > 1 else [""]
        above = _HEADING_HEIGHT + _BETWEEN if len(servers) > 1 else 0
        each = None if room is None else room / len(servers) - above
        for name, server in zip(names, document.servers, strict=True):
            shown = svg.fit_text(name, width, svg.BOLD)
            size = _fit(choose_size(server, width), each)
            yield shown, draw_heat_map(server, size, few=figures.name_few(document))
        return
    elif isinstance(document, analysis.Timeline):
        layout = look.layout or choose_layout(document)
        size = _fit(choose_size(document, width, layout), room)
        picture = draw_timeline(document, size, zone, step=look.step, layout=layout)
    else:
        size = _fit(choose_size(document, width), room)
        if isinstance(document, analysis.Distribution):
            picture = draw_distribution(document, size)
        elif isinstance(document, analysis.GrowthDocument):
            picture = draw_growth(document, size)
        else:
            picture = draw_comparison(document, size)
    yield "", picture


def _is_known(server: object) -> bool:
    """Return whether there is anything to draw for a server."""
    if isinstance(server, analysis.ServerPeakHours):
        return bool(server.sample_count or _list_averages(server))
    if isinstance(server, analysis.ServerTimeline):
        return any(average is not None for average in server.averages)
    if isinstance(server, analysis.ServerDistribution):
        return server.median_players is not None
    return getattr(server, "average_players", None) is not None


def _fit(size: svg.Size, height: float | None) -> svg.Size:
    """Return a size with the given height, if any.

    Raises ParameterError if the height is too low.
    """
    if height is None:
        return size
    least = _LEAST_HEIGHT * size.height
    if height < least:
        raise ParameterError(f"{{height}}: too low; add at least {ceil(least - height)} pixels")
    return size._replace(height=round(height))


def choose_size(
    document: PictureDocument | analysis.ServerPeakHours, width: int, layout: Layout | None = None
) -> svg.Size:
    """Return a suitable size for the picture of a document."""
    if isinstance(document, analysis.Timeline):
        if layout == "panels":
            return svg.Size(width, 104 * len(document.servers) + 72)
        keys = svg.KEY_HEIGHT * len(document.servers)
        return svg.Size(width, min(max(width // 3, 220 + keys), 480))
    if isinstance(document, analysis.ServerPeakHours):
        row = min(max(width // 36, 20), 34)
        return svg.Size(width, 7 * row + 72)
    if isinstance(document, analysis.Stats):
        return svg.Size(width, len(document.servers) * _COMPARED_HEIGHT + 32)
    row = 96 if isinstance(document, analysis.Distribution) else 132
    return svg.Size(width, max(len(document.servers) * row, 180) + 72)


def _place_panel(sheet: Element, name: str, panel: Element, top: float) -> float:
    """Add a picture and its name below `top`, and return the position below it."""
    if name:
        svg.add_text(sheet, "heading", (_PADDING, top + svg.FONT_SIZE), name)
        top += _HEADING_HEIGHT
    picture = deepcopy(panel)
    _, _, width, height = picture.get("viewBox", "").split()
    place = {"x": str(_PADDING), "y": svg.format_number(top), "width": width, "height": height}
    picture.attrib |= place
    # The sheet is a single image, which has the descriptions of all panels.
    del picture.attrib["role"]
    picture[:] = [child for child in picture if child.tag not in ("title", "desc")]
    sheet.append(picture)
    return top + float(height) + (_BETWEEN if name else 0)


_PLAYER_LABEL_WIDTH = 64
_DISTRIBUTION_NOTES = ("each row on its own scale", "line: median", "strip: middle half")
_STRIP = 9
"""The height below the bars, which contains the line between the quartiles."""


def draw_distribution(distribution: analysis.Distribution, size: svg.Size) -> Element:
    """Draw a histogram for each server, one below the other, on a shared player scale.

    The bars of a server are scaled to its highest bar. A line marks the median, and a line below
    the bars extends from the lower to the upper quartile.
    """
    servers = distribution.servers
    title = "How often servers had how many players"
    words = ("; ".join(_list_figures(server)) for server in servers)
    picture, names = svg.create_picture_of("distribution", size, title, servers, words)
    unit = "time" if distribution.hold else "observations"
    top = svg.draw_notes(picture, [f"share of {unit} by players", *_DISTRIBUTION_NOTES], size)
    left = svg.measure_text("99.9%") + svg.MARGIN
    area = svg.Box(left, top, size.width - svg.MARGIN, size.height - svg.BELOW)
    # A count is drawn in the middle of its place, as wide as a bar of a single count.
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
    if total:
        svg.add_line(group, "grid", (box.left, box.top), (box.right, box.top))
        y = box.top + svg.FONT_SIZE / 3
        share = text.format_share(highest / total)
        svg.add_text(group, "tick", (box.left - svg.MARGIN / 2, y), share, "end")
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
    """Format the player counts of a bin: `20 to 29`, or a single number."""
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
        return [svg.NO_OBSERVATIONS]
    quartiles = (server.lower_quartile, server.median_players, server.upper_quartile)
    lower, median, upper = map(text.format_median, quartiles)
    return [f"median {median}", f"middle half {lower} to {upper}"]


def _list_figures(server: analysis.ServerDistribution) -> Iterator[str]:
    yield ", ".join(_describe_quartiles(server))
    if server.lowest_players is not None and server.peak_players is not None:
        yield f"from {server.lowest_players:,} to {server.peak_players:,}"
        yield text.format_count(server.sample_count, "observation")


def draw_growth(growth: analysis.GrowthDocument, size: svg.Size) -> Element:
    """Draw a bar for each step's average, with a row and a scale for each server.

    Bars of partial steps are pale and do not affect the scale. A dashed line shows the trend.
    """
    title = f"Average players by {growth.step}"
    words = ("; ".join(_list_growth_figures(one, growth.window)) for one in growth.servers)
    picture, names = svg.create_picture_of("growth", size, title, growth.servers, words)
    cells = (figures.list_growth_cells(growth, server) for server in growth.servers)
    highs = choose_highs([figures.find_highest(one) for one in cells])
    notes = list(_list_growth_notes(growth))
    if len(set(filter(None, highs))) > 1:
        notes.append("scales differ")
    top = svg.draw_notes(picture, notes, size)
    area = svg.Box(0, top, size.width - svg.MARGIN, size.height - svg.BELOW)
    rows = svg.divide_rows(area, len(names))
    height = rows[0].height - svg.HEADING
    ticks = [svg.choose_player_ticks(high, height) for high in highs]
    left = max(map(svg.measure_ticks, ticks))
    for number, (server, row) in enumerate(zip(growth.servers, rows, strict=True)):
        change = figures.format_change(server.change, server.average_players)
        shown = [f"change {' '.join(change)}"] if change else []
        shown.append(_describe_trend(server))
        css = figures.choose_class(server.change, server.average_players)
        box = svg.draw_heading(picture, row, names[number], shown, css)._replace(left=left)
        if server.average_players is None:
            svg.draw_words(picture, box, svg.NO_OBSERVATIONS)
            continue
        up = svg.draw_value_axis(picture, box, ticks[number])
        ends = (server.steps[0].from_, server.steps[-1].to) if server.steps else (0, 1)
        across = svg.Scale(*ends, box.left, box.right)
        group = svg.add(picture, "g", f"series series-{number + 1}")
        _draw_steps(group, across, up, server, growth)
        _draw_trend(group, across, up, server)
    if server.steps:
        # A step's label is below the middle of its bar. Labels are at least a step apart, so that
        # none names an hour within a day.
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
    """Draw the part of the trend line within the scale."""
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
        return svg.NO_OBSERVATIONS
    trend = figures.format_trend(server.players_per_week, server.average_players, server.coverage)
    return "no trend" if trend == text.NOTHING else trend


def _list_growth_figures(server: analysis.ServerGrowth, window: WindowPart) -> Iterator[str]:
    if server.average_players is None:
        yield _describe_trend(server)
        return
    yield f"average {text.format_median(server.average_players)}"
    if server.change is None:
        yield figures.explain_missing_change(window, server)
    else:
        change = " ".join(figures.format_change(server.change, server.average_players))
        yield f"{change} against the {figures.format_window_length(window)} before"
    yield _describe_trend(server)
    yield text.format_count(server.sample_count, "observation")


_COMPARED_HEIGHT = 70
_NOW, _BEFORE = 16, 8
"""The heights of the bars of the window and of the previous window."""


def draw_comparison(stats: analysis.Stats, size: svg.Size) -> Element:
    """Draw each server's average as a bar, with a pale bar of the previous window below it.

    All bars share a scale from 0. A previous window that can't be compared has no bar.
    """
    names = svg.name_servers(stats.servers)
    changes = [_describe_change(server, stats.window) for server in stats.servers]
    words = (
        f"average {text.format_average(server.average_players)}, {change}"
        for server, (change, _) in zip(stats.servers, changes, strict=True)
    )
    picture, names = svg.create_picture_of(
        "comparison", size, "Players on average", stats.servers, words
    )
    notes = ["players on average"]
    if any(server.change for server in stats.servers):
        notes.append(f"pale: the {figures.format_window_length(stats.window)} before")
    top = svg.draw_notes(picture, notes, size)
    area = svg.Box(0, top, size.width - svg.MARGIN, size.height)
    pairs = [_list_compared(server) for server in stats.servers]
    highest = max((average for pair in pairs for average, _ in pair), default=0)
    labels = [text.format_average(average) for pair in pairs for average, _ in pair]
    room = area.right - max(map(svg.measure_text, labels), default=0) - svg.MARGIN
    across = svg.Scale(0, highest or 1, 0, room)
    rows = svg.divide_rows(area, len(names))
    for number, (row, pair) in enumerate(zip(rows, pairs, strict=True)):
        shown, css = changes[number]
        box = svg.draw_heading(picture, row, names[number], [shown], css)
        group = svg.add(picture, "g", f"series series-{number + 1}")
        y = box.top - svg.FONT_SIZE / 2
        for (average, bar), height in zip(pair, (_NOW, _BEFORE), strict=False):
            right = across.place(average)
            svg.add_rectangle(group, bar, (0, y, max(right, 1), height))
            label = "tick" if bar != "bar" else "label"
            at = (right + svg.MARGIN, y + height / 2 + svg.FONT_SIZE / 3)
            svg.add_text(group, label, at, text.format_average(average))
            y += height + 3
    return picture


def _list_compared(server: analysis.ServerStatistics) -> list[tuple[float, str]]:
    """Return the averages to compare, each with the CSS classes of its bar."""
    if server.average_players is None:
        return []
    now = (server.average_players, "bar")
    if server.previous is None or server.change is None:
        return [now]
    return [now, (server.previous.average_players or 0, "bar partial")]


def _describe_change(server: analysis.ServerStatistics, window: WindowPart) -> tuple[str, str]:
    """Describe the change of an average, or why there is none; also return its CSS class."""
    if server.average_players is None:
        return svg.NO_OBSERVATIONS, ""
    if server.change is None:
        return figures.explain_missing_change(window, server), ""
    change = " ".join(figures.format_change(server.change, server.average_players))
    return change, figures.choose_class(server.change, server.average_players)


_LEVELS = 7
"""The number of cell colors, `--level-0` to `--level-6` in palette.css."""
_LEFT, _ABOVE = 34, 20
_KEY_HEIGHT = 22
_KEY_BOX = 16
"""The width of a color in the scale if there is enough room."""
_KEY_SPACE = 6
"""The space between the colors and the averages beside them."""
_LEAST_WIDTH_FOR_LINE = 760
"""In narrower pictures, the scale takes several lines."""
_LEAST_HOUR = 20
"""The minimum width of an hour in pixels. Narrower hours get fewer labels."""


def draw_heat_map(
    server: analysis.ServerPeakHours,
    size: svg.Size,
    *,
    few: str = "with fewer than 4 observations",
    is_well_observed: bool = True,
) -> Element:
    """Draw a cell for each hour of the week, from Monday 0:00, with a scale below.

    The hours are on the document's clock. Cells without an average are outlines, which `few`
    explains. If the window is well observed, the busiest hour is framed and named.
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
    """Return the busiest hour, or None if all hours are equal or too few have averages."""
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
    """Draw the colors with the averages at their ends, and return the position after them."""
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
        yield f"{len(server.cells) - len(averages)} of {len(server.cells)} hours have no numbers."
