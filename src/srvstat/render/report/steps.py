"""The section on growth, and tables of the days, weeks or months of a window."""

from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from srvstat.documents.analysis import (
    GrowthDocument,
    GrowthStepPart,
    ServerGrowth,
    ServerStatistics,
    Stats,
)
from srvstat.render.changes import choose_class, format_change, format_trend
from srvstat.render.local_time import format_local_date, format_local_month
from srvstat.render.pictures import Size, draw_growth
from srvstat.render.report.comparison import (
    FIRST_LAST,
    build_change,
    build_first_last,
    build_rounded,
)
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
from srvstat.render.text import NOTHING

_HEADERS = {"day": "Day", "week": "Week from", "month": "Month"}


def build_averages(document: GrowthDocument, labels: Labels) -> Element:
    """Build a table of the averages of all steps."""
    table = _build_steps(f"Average players by {document.step}", document, labels, _build_average)
    return build_details(f"Averages by {document.step}", table)


def build_growth_section(document: GrowthDocument, stats: Stats, labels: Labels) -> Element:
    """Build the section on growth in the window, against the previous window."""
    caption = (
        f"Average players by {document.step}, and the change against the {document.step} before"
    )
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
            f"Averages and changes by {document.step}",
            _build_steps(caption, document, labels, _build_average_and_change),
        ),
    )


def _compare_windows(document: GrowthDocument, stats: Stats, labels: Labels) -> Element:
    headers = ["Server", "Average", "Change", "Trend", FIRST_LAST]
    if document.previous_window is not None:
        headers.insert(2, "Average before")
    rows = [
        (labels.build_name(at), *_list_cells(server, figures, stats))
        for at, (server, figures) in enumerate(zip(document.servers, stats.servers, strict=True))
    ]
    return build_table("Averages and growth of the servers", headers, rows)


def _list_cells(server: ServerGrowth, figures: ServerStatistics, stats: Stats) -> Iterator[Child]:
    yield build_rounded(server.average_players, 2)
    if stats.previous_window is not None:
        previous = figures.previous
        yield build_rounded(None if previous is None else previous.average_players, 2)
    yield build_change(figures, stats.window)
    trend, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    yield build_number(None if trend == NOTHING else server.players_per_week, trend)
    yield build_first_last(figures)


def _build_average(step: GrowthStepPart, part: str) -> Element:
    average = build_rounded(step.average_players, 2)
    if not step.is_partial or step.average_players is None:
        return average
    # The figure is at the end, below the others of its column.
    return build("span", build("span", part, class_="note"), " ", average, class_="partial")


def _build_average_and_change(step: GrowthStepPart, part: str) -> Element:
    average = _build_average(step, part)
    change = step.change
    if change is None:
        return average
    text = format_change(change, step.average_players)[0]
    css = f"note {choose_class(change, step.average_players)}".strip()
    return build(
        "span", average, " ", build("span", build_number(change.players, text), class_=css)
    )


def _build_steps(
    caption: str,
    document: GrowthDocument,
    labels: Labels,
    build_cell: Callable[[GrowthStepPart, str], Element],
) -> Element:
    """Build a table with a row for each step, and a column for each server."""
    names = [labels.build_name(at) for at in range(len(document.servers))]
    part = f"part of a {document.step}"
    rows = (
        (_build_step(steps[0], document, labels), *(build_cell(step, part) for step in steps))
        for steps in zip(*(server.steps for server in document.servers), strict=True)
    )
    return build_table(caption, (_HEADERS[document.step], *names), rows, "figures small")


def _build_step(step: GrowthStepPart, document: GrowthDocument, labels: Labels) -> Child:
    # The first step may begin where the window does, within a day or month.
    format_start = format_local_month if document.step == "month" else format_local_date
    return build_time(step.from_, format_start(step.from_, labels.zone))


def _list_notes(document: GrowthDocument, labels: Labels) -> Iterator[Children]:
    yield [
        (
            "The trend is the median change of the average, in players a week, between any two"
            f" whole days ({document.time_zone})."
        )
    ]
    previous = document.previous_window
    if previous is None or previous.from_ is None:
        yield ["There is no window of equal length before to compare with."]
        return
    times = labels.build_time(previous.from_), " to ", labels.build_time(previous.to)
    yield ["The window before is from ", *times, f" ({document.time_zone})."]
