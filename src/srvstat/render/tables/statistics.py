"""The tables of the documents `stats` and `top`."""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.documents.statistics import ServerStatistics, Stats, Top
from srvstat.render.fields import NOTHING, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import (
    Change,
    format_current,
    format_growths,
    format_rounded,
    format_whole,
)
from srvstat.render.tables.server_table import ServerLines, build_server_table
from srvstat.render.text import (
    format_count,
    format_minute,
    format_share,
    format_span_length,
    format_time,
    format_window,
)

_HEADERS = ("current", "average", "median", "peak", "lowest", "growth")
_HOUR_MS = 3_600_000


def render_stats(document: Stats | Top, screen: Screen) -> str:
    """Render the figures of servers, and below them notes on the window and the figures."""
    servers = document.servers
    if not servers:
        return screen.render(Text("no server matches"))
    changes = [
        Change(one.first_players, one.growth.players, one.growth.percentage) for one in servers
    ]
    growths = format_growths(changes, ascii_only=screen.ascii_only)
    lines = [
        _build_lines(server, growth, document.window.to, _format_rank(rank, document))
        for rank, (server, growth) in enumerate(zip(servers, growths, strict=True), 1)
    ]
    table = build_server_table(_HEADERS, lines, screen)
    return screen.render(*table, Text(), _build_fields(document, screen))


def _format_rank(rank: int, document: Stats | Top) -> str:
    return f"{rank:>{len(str(len(document.servers)))}} " if isinstance(document, Top) else ""


def _build_lines(server: ServerStatistics, growth: Text, until: int, rank: str) -> ServerLines:
    current = format_current(server.current_players, server.last_observed_at, until)
    figures = (
        format_rounded(server.average_players, 2),
        format_rounded(server.median_players, 1),
        format_whole(server.peak_players),
        format_whole(server.lowest_players),
    )
    return ServerLines(
        server.hostname,
        (server.server_id, server.cfx_id),
        (current, *map(Text, figures), growth),
        tuple(_list_notes(server)),
        rank,
    )


def _list_notes(server: ServerStatistics) -> Iterator[str]:
    yield format_count(server.sample_count, "observation")
    if server.coverage:
        yield f"{format_share(server.coverage)} covered"
    if server.peak_first_at is not None and server.peak_last_at is not None:
        first, last = format_minute(server.peak_first_at), format_minute(server.peak_last_at)
        yield f"peak {first}" + ("" if first == last else f", last {last}")
    for one in server.quantiles:
        yield f"{_format_quantile(one.quantile)} {format_rounded(one.players, 1)}"
    if server.above is not None:
        yield f"above {server.above.players:,}: {_format_hours(server.above.hours)}"
    mean, weighted = server.average_players, server.time_weighted_average
    if mean is not None and weighted is not None and abs(weighted - mean) > mean / 100:
        yield f"time-weighted average {format_rounded(weighted, 2)}"
    if server.previous is not None:
        yield _compare_averages(mean, server.previous.average_players)


def _format_hours(hours: float | None) -> str:
    if hours is None:
        return NOTHING
    return format_span_length(round(hours * _HOUR_MS)) if hours else "never"


def _format_quantile(quantile: float) -> str:
    """Return the name of a quantile, such as p95 or p99.9."""
    percent = (Decimal(wire.format_number(quantile)) * 100).normalize()
    return f"p{percent:f}"


def _compare_averages(mean: float | None, before: float | None) -> str:
    if before is None:
        return "no observation in the previous window"
    text = f"average {format_rounded(mean, 2)}, was {format_rounded(before, 2)}"
    if mean is None or not before:
        return text
    change = f"{100 * (mean - before) / before:+z,.1f}%"
    return f"{text} ({change if change != '+0.0%' else '0.0%'})"


def _build_fields(document: Stats | Top, screen: Screen) -> Table:
    window = document.window
    fields = [("window", format_window(window.from_, window.to))]
    if document.previous_window is not None:
        previous = document.previous_window
        fields.append(("previous", format_window(previous.from_, previous.to)))
    fields.append(("as of", format_time(document.as_of)))
    if isinstance(document, Top):
        shown = f"{len(document.servers):,} of {format_count(document.server_count, 'server')}"
        fields.append(("ranked", f"by {document.by}, the greatest first; {shown}"))
    if window.to != document.as_of:
        fields.append(("current", f"from the server record, as of {format_time(document.as_of)}"))
    fields.append(("growth", "from the first observation in the window to the last"))
    if any(server.coverage for server in document.servers):
        meaning = (
            "the share of the window in which observations last: each until the next one, at most"
            " three usual intervals"
        )
        fields.append(("covered", meaning))
    if any(server.peak_players is not None for server in document.servers):
        fields.append(("peak", "when first reached, and when last if more than once; in UTC"))
    return build_fields_grid(fields, screen)
