"""The sections with pictures. Each picture has its figures in a table below it."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from srvstat.documents.analysis import (
    Distribution,
    HourPart,
    PeakHours,
    Report,
    ServerPeakHours,
    Stats,
)
from srvstat.documents.document import LEAST_COVERAGE
from srvstat.render.local_time import WEEKDAYS, format_hour
from srvstat.render.pictures import (
    Size,
    draw_distribution,
    draw_heat_map,
    draw_timeline,
    find_busiest,
)
from srvstat.render.report.comparison import build_rounded, build_whole
from srvstat.render.report.drawing import build_drawing
from srvstat.render.report.elements import (
    Children,
    build,
    build_details,
    build_section,
    build_table,
)
from srvstat.render.report.labels import Labels
from srvstat.render.report.steps import build_averages
from srvstat.render.tables.figures import describe_shortage
from srvstat.render.text import format_share

_MAP = Size(400, 220)
"""Wide pages have two maps in a row, so that one size is enough."""


def build_players(report: Report, labels: Labels) -> Element:
    """Build the section on the players over time, which a script makes interactive."""
    timeline = report.timeline
    picture = build_drawing(
        lambda size: draw_timeline(timeline, size, labels.zone), Size(900, 320), Size(360, 280)
    )
    note = (
        f"Each point is the average of a step on the clock of {report.time_zone}. A step of which"
        " less than 90% was observed is pale; lines to and from it are dashed, and the axis"
        " disregards it. A line breaks at a gap, unless the gap is within whole steps."
    )
    return build_section(
        "players",
        "Players over time",
        build(
            "figure",
            build("div", picture, data_chart=""),
            build("figcaption", note),
        ),
        build_averages(report.growth, labels),
    )


def build_hours(document: PeakHours, stats: Stats, labels: Labels) -> Element:
    """Build the section on the hours of the week."""
    note = (
        "The average number of players in each hour of the week, on the clock of"
        f" {document.time_zone}. An hour with fewer than 4 observations is empty. Each map has"
        " its own scale."
    )
    maps = [
        _build_map(server, name, figures.coverage or 0)
        for server, name, figures in zip(document.servers, labels.names, stats.servers, strict=True)
    ]
    return build_section(
        "hours",
        "Hours of the week",
        build("p", note, class_="note"),
        build("div", *maps, class_="maps"),
    )


def _build_map(server: ServerPeakHours, name: str, coverage: float) -> Element:
    heading = build("h3", build("bdi", name))
    if server.busiest is None or server.quietest is None:
        few = f"{describe_shortage(server)}; use a longer window."
        return build("div", heading, build("p", few), class_="map")
    is_well_observed = coverage >= LEAST_COVERAGE
    extremes: Children = (
        *("Busiest: ", *_describe_hour(server.busiest, server), ". "),
        *("Quietest: ", *_describe_hour(server.quietest, server), "."),
    )
    if not is_well_observed:
        few = f"{format_share(coverage)} of the window was observed"
        extremes = [f"Only {few}, so no hour is named the busiest."]
    elif find_busiest(server) is None:
        known = {cell.average_players for cell in server.cells} - {None}
        extremes = ["No hour is busier than another."]
        if len(known) > 1:
            extremes = ["Too few hours have an average to name the busiest."]
    drawing = draw_heat_map(server, _MAP, is_well_observed=is_well_observed)
    picture = build("div", drawing, class_="drawing")
    headers = ("Hour", *(day[:3] for day in WEEKDAYS))
    table = build_table(
        f"Average players of {name} by hour and weekday",
        headers,
        _list_hours(server),
        "figures small",
    )
    figure = build("figure", picture, build("figcaption", *extremes))
    return build("div", heading, figure, build_details("Figures of this map", table), class_="map")


def _list_hours(server: ServerPeakHours) -> Iterator[Children]:
    for hour in range(24):
        cells = server.cells[hour::24]
        yield f"{hour:02}:00", *(build_rounded(cell.average_players, 1) for cell in cells)


def _describe_hour(hour: HourPart, server: ServerPeakHours) -> Children:
    average = build_rounded(server.get_cell(hour).average_players, 2)
    return [format_hour(hour.weekday, hour.hour), ", average ", average]


def build_distribution(document: Distribution, labels: Labels) -> Element:
    """Build the section on how often servers had how many players."""
    note = (
        "How often each number of players was observed, with the median and the middle half of the"
        " observations, from the lower to the upper quartile."
    )
    height = 150 + 55 * len(document.servers)
    picture = build_drawing(
        lambda size: draw_distribution(document, size), Size(900, height), Size(360, height)
    )
    names = [labels.build_name(at) for at in range(len(document.servers))]
    table = build_table(
        "Observations by number of players",
        ("Players", *names),
        _list_bins(document),
        "figures small",
    )
    return build_section(
        "distribution",
        "Distribution",
        build("figure", picture, build("figcaption", note)),
        build_details("Figures of the distribution", table),
    )


def _list_bins(document: Distribution) -> Iterator[Children]:
    for at, counts in enumerate(zip(*(one.counts for one in document.servers), strict=True)):
        first = document.first_players + at * document.bin_players
        last = first + document.bin_players - 1
        name = f"{first:,}" if first == last else f"{first:,} to {last:,}"
        yield name, *map(build_whole, counts)
