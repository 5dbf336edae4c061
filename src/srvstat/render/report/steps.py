"""The section on growth, and tables of the days, weeks or months of a window."""

from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from srvstat.documents.growth import GrowthDocument, GrowthStep, ServerGrowth
from srvstat.documents.statistics import ServerStatistics, Stats
from srvstat.render.fields import NOTHING
from srvstat.render.local_time import format_local_date, format_local_month
from srvstat.render.pictures import Size, draw_growth
from srvstat.render.report.comparison import build_growth, build_rounded
from srvstat.render.report.drawing import build_drawing
from srvstat.render.report.elements import (
    Child,
    Children,
    build,
    build_details,
    build_number,
    build_section,
    build_table,
    build_time,
)
from srvstat.render.report.labels import Labels
from srvstat.render.tables.figures import SMALL_BASE
from srvstat.render.tables.growth import define_trend, format_trend

_HEADERS = {"day": "Day", "week": "Week from", "month": "Month"}


def build_averages(document: GrowthDocument, labels: Labels) -> Element:
    """Build a table of the averages of all steps."""
    table = _build_steps(f"Average players by {document.step}", document, labels, _build_average)
    return build_details(f"Averages by {document.step}", table)


def build_growth_section(document: GrowthDocument, stats: Stats, labels: Labels) -> Element:
    """Build the section on growth in the window, against the previous window."""
    caption = f"Average players by {document.step}, and growth within each"
    height = 120 + 80 * len(document.servers)
    drawing = build_drawing(
        lambda size: draw_growth(document, size), Size(900, height), Size(360, height)
    )
    return build_section(
        "growth",
        "Growth",
        build("figure", drawing),
        _compare_windows(document, stats, labels),
        *(build("p", *note, class_="note") for note in _list_notes(document, labels)),
        build_details(
            f"Averages and growth by {document.step}",
            _build_steps(caption, document, labels, _build_average_and_growth),
        ),
    )


def _compare_windows(document: GrowthDocument, stats: Stats, labels: Labels) -> Element:
    headers = ["Server", "Average", "Growth", "Trend"]
    if document.previous_window is not None:
        headers[2:2] = ["Previous average", "Change"]
        headers[5:5] = ["Previous growth"]
    rows = [
        (labels.build_name(at), *_list_cells(server, figures, document.previous_window is not None))
        for at, (server, figures) in enumerate(zip(document.servers, stats.servers, strict=True))
    ]
    return build_table("Averages and growth of the servers", headers, rows)


def _list_cells(
    server: ServerGrowth, figures: ServerStatistics, has_previous: bool
) -> Iterator[Child]:
    yield build_rounded(server.average_players, 2)
    previous = None if figures.previous is None else figures.previous.average_players
    if has_previous:
        yield build_rounded(previous, 2)
        yield _build_change(previous, server.average_players)
    yield build_growth(figures.first_players, server.growth)
    if has_previous and server.previous_growth is not None:
        first = None if figures.previous is None else figures.previous.first_players
        yield build_growth(first, server.previous_growth)
    trend = format_trend(server.players_per_week).plain
    yield build_number(server.players_per_week, trend)


def _build_average(step: GrowthStep) -> Element:
    return build_rounded(step.average_players, 2)


def _build_average_and_growth(step: GrowthStep) -> Element:
    players = step.growth_players
    if players is None:
        return _build_average(step)
    growth = build_number(players, f"{players:+,}" if players else "0")
    return build("span", _build_average(step), " ", build("span", growth, class_="note"))


def _build_change(before: float | None, now: float | None) -> Child:
    """Build the change of an average, also in percent if it was at least 10."""
    if before is None or now is None:
        return NOTHING
    change = _format_signed(now - before, ".2f")
    if before < SMALL_BASE:
        return change
    share = _format_signed((now - before) / before, ".1%")
    return build("span", change, " ", build("span", share, class_="note"))


def _format_signed(value: float, form: str) -> str:
    """Format a number with its sign; what is rounded to 0 has none."""
    text = f"{value:z,{form}}"
    return text if value <= 0 or text == f"{0:{form}}" else f"+{text}"


def _build_steps(
    caption: str,
    document: GrowthDocument,
    labels: Labels,
    build_cell: Callable[[GrowthStep], Element],
) -> Element:
    """Build a table with a row for each step, and a column for each server."""
    names = [labels.build_name(at) for at in range(len(document.servers))]
    rows = (
        (_build_step(steps[0], document, labels), *map(build_cell, steps))
        for steps in zip(*(server.steps for server in document.servers), strict=True)
    )
    return build_table(caption, (_HEADERS[document.step], *names), rows, "figures small")


def _build_step(step: GrowthStep, document: GrowthDocument, labels: Labels) -> Child:
    # The first step may begin where the window does, within a day or month.
    format_start = format_local_month if document.step == "month" else format_local_date
    start = build_time(step.from_, format_start(step.from_, labels.zone))
    return build("span", start, " (partial)") if step.is_partial else start


def _list_notes(document: GrowthDocument, labels: Labels) -> Iterator[Children]:
    growth = "Growth is the last observation of a window minus the first."
    yield [f"{growth} The trend is {define_trend(document)}."]
    previous = document.previous_window
    if previous is None or previous.from_ is None:
        yield ["There is no previous window of equal length to compare with."]
        return
    times = labels.build_time(previous.from_), " to ", labels.build_time(previous.to)
    yield ["The previous window is from ", *times, f" ({document.time_zone})."]
