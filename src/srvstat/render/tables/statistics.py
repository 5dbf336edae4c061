"""The tables of the documents `stats` and `top`."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from zoneinfo import ZoneInfo

from rich.table import Table
from rich.text import Text

from srvstat.contract import wire
from srvstat.documents.analysis import FiguresPart, ServerStatistics, Stats, Top
from srvstat.render.changes import format_first_last
from srvstat.render.fields import build_fields_grid
from srvstat.render.local_time import format_clock, format_local_window
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import (
    format_changes,
    format_current,
    format_rounded,
    format_whole,
    list_change_fields,
    name_first_last,
)
from srvstat.render.tables.server_table import (
    MIN_TABLE_WIDTH,
    ServerLines,
    build_server_table,
    fits,
)
from srvstat.render.text import (
    NOTHING,
    format_count,
    format_share,
    format_span_length,
)

_HEADERS = ("current", "average", "change", "median", "peak", "lowest")
_HOUR_MS = 3_600_000


def render_stats(document: Stats | Top, screen: Screen) -> str:
    """Render the figures of servers, and below them notes on the window and the figures."""
    servers = document.servers
    if not servers:
        return screen.render(Text("no server matches"))
    first_last = name_first_last(ascii_only=screen.ascii_only)
    headers: Sequence[str] = (*_HEADERS, first_last)
    lines = _list_lines(document, screen)
    if screen.width and screen.width >= MIN_TABLE_WIDTH and not fits(headers, lines, screen):
        headers = _HEADERS
        lines = [_move_last_figure(line, first_last) for line in lines]
    table = build_server_table(headers, lines, screen)
    return screen.render(*table, Text(), _build_fields(document, screen))


def _list_lines(document: Stats | Top, screen: Screen) -> list[ServerLines]:
    servers, zone = document.servers, ZoneInfo(document.time_zone)
    digits = len(str(len(servers)))
    return [
        ServerLines(
            server.hostname,
            (server.server_id, server.cfx_id),
            _list_figures(server, change, document.as_of, zone, screen),
            tuple(_list_notes(server, zone)),
            f"{rank:>{digits}} " if isinstance(document, Top) else "",
        )
        for rank, (server, change) in enumerate(
            zip(servers, format_changes(servers), strict=True), 1
        )
    ]


def _list_figures(
    server: ServerStatistics, change: Text, as_of: int, zone: ZoneInfo, screen: Screen
) -> tuple[Text, ...]:
    ends = server.first_players, server.growth.players
    return (
        format_current(server.current_players, server.last_observed_at, as_of, zone),
        Text(format_rounded(server.average_players, 2)),
        change,
        Text(format_rounded(server.median_players, 1)),
        Text(format_whole(server.peak_players)),
        Text(format_whole(server.lowest_players)),
        Text(format_first_last(*ends, ascii_only=screen.ascii_only)),
    )


def _move_last_figure(line: ServerLines, name: str) -> ServerLines:
    """Return the parts of a server with its last figure among the notes, where there is room."""
    *figures, last = line.figures
    return line._replace(figures=tuple(figures), notes=(f"{name} {last.plain}", *line.notes))


def _list_notes(server: ServerStatistics, zone: ZoneInfo) -> Iterator[str]:
    yield format_count(server.sample_count, "observation")
    if server.coverage:
        yield f"{format_share(server.coverage)} covered"
    if server.peak_first_at is not None and server.peak_last_at is not None:
        times = server.peak_first_at, server.peak_last_at
        first, last = (format_clock(at, zone, "minutes") for at in times)
        yield f"peak {first}" + ("" if first == last else f", last {last}")
    for one in server.quantiles:
        yield f"{_format_quantile(one.quantile)} {format_rounded(one.players, 1)}"
    if server.above is not None:
        yield f"above {server.above.players:,}: {_format_hours(server.above.hours)}"
    mean, weighted = server.average_players, server.time_weighted_average
    if mean is not None and weighted is not None and abs(weighted - mean) > mean / 100:
        yield f"time-weighted average {format_rounded(weighted, 2)}"
    if server.previous is not None:
        yield _describe_previous(server.previous)


def _format_hours(hours: float | None) -> str:
    if hours is None:
        return NOTHING
    return format_span_length(round(hours * _HOUR_MS)) if hours else "never"


def _format_quantile(quantile: float) -> str:
    """Return the name of a quantile, such as p95 or p99.9."""
    percent = (Decimal(wire.format_number(quantile)) * 100).normalize()
    return f"p{percent:f}"


def _describe_previous(before: FiguresPart) -> str:
    if not before.sample_count:
        return "no observation in the previous window"
    figures = {
        "average": format_rounded(before.average_players, 2),
        "median": format_rounded(before.median_players, 1),
        "peak": format_whole(before.peak_players),
        "lowest": format_whole(before.lowest_players),
    }
    quantiles = (
        f"{_format_quantile(one.quantile)} {format_rounded(one.players, 1)}"
        for one in before.quantiles
    )
    shown = [*(f"{name} {figure}" for name, figure in figures.items()), *quantiles]
    return f"before: {', '.join(shown)}"


def _build_fields(document: Stats | Top, screen: Screen) -> Table:
    window, zone = document.window, ZoneInfo(document.time_zone)
    fields = [("window", format_local_window(window, zone))]
    if document.previous_window is not None:
        fields.append(("previous", format_local_window(document.previous_window, zone)))
    as_of = format_clock(document.as_of, zone)
    fields += [("as of", as_of), ("times", zone.key)]
    if isinstance(document, Top):
        shown = f"{len(document.servers):,} of {format_count(document.server_count, 'server')}"
        fields.append(("ranked", f"by {document.by}, the greatest first; {shown}"))
    if window.to != document.as_of:
        fields.append(("current", f"from the server record, as of {as_of}"))
    fields += list_change_fields(document.servers, window, screen)
    if any(server.coverage for server in document.servers):
        meaning = (
            "the share of the window in which observations last: each until the next one, at most"
            " three usual intervals"
        )
        fields.append(("covered", meaning))
    if any(server.peak_players is not None for server in document.servers):
        fields.append(("peak", "when first reached, and when last if more than once"))
    return build_fields_grid(fields, screen)
