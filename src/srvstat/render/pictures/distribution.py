"""Draw how often servers had how many players."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from srvstat.documents.analysis import Distribution, ServerDistribution
from srvstat.render.axes import choose_ticks, format_ticks
from srvstat.render.pictures.frame import BELOW, MARGIN, Scale, draw_notes, draw_tick
from srvstat.render.pictures.rows import divide_rows, draw_heading
from srvstat.render.pictures.svg import (
    Box,
    Size,
    add,
    add_line,
    add_tooltip,
    create_picture,
    name_servers,
)
from srvstat.render.tables.figures import format_rounded
from srvstat.render.text import format_count, format_share

_TICK_WIDTH = 64
_NOTES = (
    "share of observations by players",
    "each row on its own scale",
    "line: median",
    "strip: middle half",
)
_STRIP = 9
"""The height below the bars, with the line between the quartiles."""


def draw_distribution(distribution: Distribution, size: Size) -> Element:
    """Draw a histogram for each server, one below the other, on one scale of players.

    The bars of a server are scaled to its highest one. A line goes through its median, and one
    below the bars from the lower to the upper quartile.
    """
    names = name_servers(distribution.servers)
    title = f"How often servers had how many players: {', '.join(names)}"
    sentences = [
        f"{name}: {_describe_server(server)}."
        for name, server in zip(names, distribution.servers, strict=True)
    ]
    picture = create_picture("distribution", size, title, sentences)
    top = draw_notes(picture, _NOTES, size)
    area = Box(MARGIN, top, size.width - MARGIN, size.height - BELOW)
    low = distribution.first_players
    bins = max((len(server.counts) for server in distribution.servers), default=1)
    # A count is drawn in the middle of its place, as wide as a bar of one count.
    high = low + max(bins, 1) * distribution.bin_players
    across = Scale(low - 0.5, high - 0.5, area.left, area.right)
    _draw_player_axis(picture, area, across)
    rows = divide_rows(area, len(names))
    for number, (server, name, row) in enumerate(
        zip(distribution.servers, names, rows, strict=True), start=1
    ):
        box = draw_heading(picture, row, name, list(_list_quartiles(server)))
        box = box._replace(bottom=box.bottom - _STRIP)
        group = add(picture, "g", f"series series-{number}")
        _draw_bars(group, box, across, distribution, server)
        _draw_quartiles(picture, box, across, server)
    return picture


def _draw_player_axis(picture: Element, area: Box, across: Scale) -> None:
    most = max(int(area.width // _TICK_WIDTH), 3)
    ticks = choose_ticks(across.low + 0.5, across.high - 0.5, most)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        if across.low <= tick <= across.high:
            x = across.place(tick)
            add_line(picture, "grid", (x, area.top), (x, area.bottom))
            draw_tick(picture, area, x, label)


def _draw_bars(
    group: Element, box: Box, across: Scale, distribution: Distribution, server: ServerDistribution
) -> None:
    add_line(group, "axis", (box.left, box.bottom), (box.right, box.bottom))
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
            bar = add(group, "rect", "bar", **place, width=right - left - space, height=height)
            players = f"{first:,} to {after - 1:,}" if after - first > 1 else f"{first:,}"
            share = f"{format_share(count / total)} of {format_count(total, 'observation')}"
            add_tooltip(bar, f"{players} players: {share}")


def _draw_quartiles(picture: Element, box: Box, across: Scale, server: ServerDistribution) -> None:
    lower, median, upper = server.lower_quartile, server.median_players, server.upper_quartile
    if lower is None or median is None or upper is None:
        return
    y = box.bottom + _STRIP - 4
    add_line(picture, "spread", (across.place(lower), y), (across.place(upper), y))
    x = across.place(median)
    add_line(picture, "marker", (x, box.top), (x, y + 3))


def _list_quartiles(server: ServerDistribution) -> Iterator[str]:
    if server.median_players is None:
        yield "no observation"
        return
    median, lower, upper = (
        format_rounded(value, 1)
        for value in (server.median_players, server.lower_quartile, server.upper_quartile)
    )
    yield f"median {median}"
    yield f"middle half {lower} to {upper}"


def _describe_server(server: ServerDistribution) -> str:
    return "; ".join(_list_figures(server))


def _list_figures(server: ServerDistribution) -> Iterator[str]:
    yield ", ".join(_list_quartiles(server))
    if server.lowest_players is not None and server.peak_players is not None:
        yield f"from {server.lowest_players:,} to {server.peak_players:,}"
        yield format_count(server.sample_count, "observation")
