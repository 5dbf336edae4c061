"""The chart of the document `distribution`: a histogram of each server."""

from collections.abc import Iterator

from srvstat.documents.analysis import Distribution, ServerDistribution
from srvstat.render.axes import choose_ticks, format_ticks
from srvstat.render.charts.panels import (
    Columns,
    Frame,
    Panel,
    choose_frame,
    render_panels,
)
from srvstat.render.charts.texts import build_title, render_nothing
from srvstat.render.charts.ticks import Tick
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_rounded
from srvstat.render.text import format_count

_TICK_WIDTH = 9
"""The usual distance of ticks, in cells."""


def render_distribution(document: Distribution, screen: Screen) -> str:
    """Render a histogram of the observations of each server, and below it its quartiles."""
    if not any(server.sample_count for server in document.servers):
        return render_nothing("no observation", screen)

    def merge(length: int) -> list[Columns]:
        return [Columns(_merge_shares(server, length)) for server in document.servers]

    frame = choose_frame(merge, screen, unit="%")
    panels = [
        Panel(
            build_title(server.hostname, server.server_id, _describe_quartiles(server), screen),
            columns,
            below=_draw_quartiles(server, document, frame),
        )
        for server, columns in zip(document.servers, merge(frame.layout.merged), strict=True)
    ]
    ticks = _list_ticks(document, frame)
    notes = [_describe_chart(document, frame)]
    return render_panels(panels, frame, ticks, notes, screen)


def _merge_shares(server: ServerDistribution, length: int) -> list[float | None]:
    """Return the share of each column in percent; None for 0, which is drawn as nothing."""
    sums = (sum(server.counts[at : at + length]) for at in range(0, len(server.counts), length))
    return [100 * count / server.sample_count if count else None for count in sums]


def _describe_quartiles(server: ServerDistribution) -> str:
    if server.median_players is None:
        return "no observation"
    lower, upper = (
        format_rounded(server.lower_quartile, 1),
        format_rounded(server.upper_quartile, 1),
    )
    return f"median {format_rounded(server.median_players, 1)}, quartiles {lower} and {upper}"


def _draw_quartiles(server: ServerDistribution, document: Distribution, frame: Frame) -> str:
    """Draw a line from the lowest count to the peak, thick between the quartiles."""
    figures = (
        server.lowest_players,
        server.lower_quartile,
        server.median_players,
        server.upper_quartile,
        server.peak_players,
    )
    cells = [_find_cell(one, document, frame) for one in figures if one is not None]
    if len(cells) < len(figures):
        return ""
    lowest, lower, median, upper, peak = cells
    line = " " * lowest + "├" + "─" * (peak - lowest - 1) + "┤" * (peak > lowest)
    line = line[:lower] + "━" * (upper - lower + 1) + line[upper + 1 :]
    return line[:median] + "┃" + line[median + 1 :]


def _find_cell(players: float, document: Distribution, frame: Frame) -> int:
    """Return the cell of a count, which takes the place from itself to the next one."""
    players_per_cell = document.bin_players * frame.layout.merged / frame.layout.pitch
    return int((players + 0.5 - document.first_players) / players_per_cell)


def _list_ticks(document: Distribution, frame: Frame) -> Iterator[Tick]:
    first = document.first_players
    last = first + len(document.servers[0].counts) * document.bin_players - 1
    ticks = choose_ticks(first, last, max(frame.width // _TICK_WIDTH, 3))
    for value, label in zip(ticks, format_ticks(ticks), strict=True):
        if first <= value <= last and float(value).is_integer():
            yield Tick(_find_cell(value, document, frame), label, is_centered=True)


def _describe_chart(document: Distribution, frame: Frame) -> str:
    players = format_count(document.bin_players * frame.layout.merged, "player")
    return (
        f"share of observations by number of players, each column {players};"
        " the line below is from the lowest to the peak, ━ between the quartiles, ┃ at the median"
    )
