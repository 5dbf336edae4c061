"""The comparison of a report: a column for each server, a row for each figure."""

from collections.abc import Iterator
from decimal import Decimal
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.documents.analysis import ServerStatistics, Stats
from srvstat.documents.document import WindowPart, remove_color_codes
from srvstat.documents.servers import is_silent
from srvstat.render.changes import (
    choose_class,
    explain_missing_change,
    format_change,
    format_first_last,
)
from srvstat.render.report.elements import (
    Child,
    Children,
    build,
    build_number,
    build_section,
    build_share,
    build_table,
)
from srvstat.render.report.labels import Labels
from srvstat.render.tables.figures import format_last_seen, format_rounded, format_whole
from srvstat.render.text import format_interval

FIRST_LAST = "First → last"
"""The heading of the first and the last count of a window."""


def build_comparison(stats: Stats, labels: Labels) -> Element:
    """Build the section with the figures of all servers."""
    names = [_build_server(server, number) for number, server in enumerate(stats.servers, 1)]
    return build_section(
        "comparison",
        "Comparison",
        build_table("Figures of the servers", ("Figure", *names), _list_rows(stats, labels)),
        *_build_notes(stats, labels),
    )


def _build_server(server: ServerStatistics, number: int) -> Element:
    shown = remove_color_codes(server.hostname)
    hostname = build("bdi", shown if shown.strip() else server.server_id)
    identifiers = build("span", f"{server.server_id} {server.cfx_id}", class_="note")
    return build("span", _build_key(number), hostname, " ", identifiers, class_="server")


def _build_key(number: int) -> Element:
    """Build a piece of the line that a server has in pictures."""
    line = build("g", build("path", class_="line", d="M0 5H28"), class_=f"series series-{number}")
    return build("svg", line, class_="key", viewBox="0 0 28 10", aria_hidden="true")


def _list_rows(stats: Stats, labels: Labels) -> Iterator[Children]:
    servers = stats.servers
    yield ["Players"]
    yield ["Current", *(_build_current(one, stats) for one in servers)]
    yield ["Average", *(build_rounded(one.average_players, 2) for one in servers)]
    yield ["Change", *(build_change(one, stats.window) for one in servers)]
    yield ["Median", *(build_rounded(one.median_players, 1) for one in servers)]
    yield ["Peak", *(_build_peak(one, labels) for one in servers)]
    yield ["Lowest", *(build_whole(one.lowest_players) for one in servers)]
    yield [FIRST_LAST, *map(build_first_last, servers)]
    quantiles = [[one.quantiles[at] for one in servers] for at in range(len(servers[0].quantiles))]
    if quantiles:
        yield ["Quantiles"]
    for values in quantiles:
        percent = (Decimal(wire.format_number(values[0].quantile)) * 100).normalize()
        yield [f"{percent:f}%", *(build_rounded(one.players, 1) for one in values)]
    yield ["Observations"]
    yield ["Count", *(build_whole(one.sample_count) for one in servers)]
    yield ["Usual interval", *(_build_interval(one.usual_interval_seconds) for one in servers)]
    yield ["Coverage", *(build_coverage(one.coverage) for one in servers)]


def _build_current(server: ServerStatistics, stats: Stats) -> Element | str:
    if is_silent(server.last_observed_at, stats.as_of):
        return format_last_seen(server.last_observed_at, stats.as_of, ZoneInfo(stats.time_zone))
    return build_whole(server.current_players)


def build_whole(value: int | None) -> Element:
    """Build a count of players or observations."""
    return build_number(value, format_whole(value))


def build_rounded(value: float | None, digits: int) -> Element:
    """Build a figure with at most `digits` digits after the point."""
    return build_number(value, format_rounded(value, digits))


def build_coverage(value: float | None) -> Element:
    """Build a share that may be unknown."""
    return build_number(None, "") if value is None else build_share(value)


def build_change(server: ServerStatistics, window: WindowPart) -> Element:
    """Build the change of an average, in players and in percent, or the reason why there is none.

    It has a color.
    """
    change = server.change
    if change is None:
        reason = explain_missing_change(window, server.coverage, server.previous_coverage)
        return build("span", build_number(None, ""), " ", build("span", reason, class_="note"))
    players, *percent = format_change(change, server.average_players)
    parts: list[Child] = [build_number(change.players, players)]
    parts += [child for text in percent for child in (" ", build_number(change.percentage, text))]
    return build("span", *parts, class_=choose_class(change, server.average_players) or "same")


def build_first_last(server: ServerStatistics) -> Element:
    """Build the first and the last count of a window, without a color."""
    rise = server.growth.players
    return build_number(rise, format_first_last(server.first_players, rise))


def _build_interval(seconds: float | None) -> Element:
    return build_number(seconds, "" if seconds is None else format_interval(seconds))


def _build_peak(server: ServerStatistics, labels: Labels) -> Element:
    """Build the peak with the times at which it was first and last observed."""
    first, last = server.peak_first_at, server.peak_last_at
    times: list[Child] = []
    if first is not None:
        times = [" ", build("span", labels.build_time(first), class_="note")]
    if last is not None and last != first:
        times += [" ", build("span", "last ", labels.build_time(last), class_="note")]
    return build("span", build_whole(server.peak_players), *times)


def _build_notes(stats: Stats, labels: Labels) -> Iterator[Element]:
    if stats.window.to != stats.as_of:
        record = "Current counts are those of the server records, as of "
        yield build("p", record, labels.build_time(stats.as_of), ".", class_="note")
