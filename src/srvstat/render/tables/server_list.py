"""The list of servers, as in `servers` and `snapshot info`."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from srvstat.documents.servers import ListedServer, Servers
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_current
from srvstat.render.tables.server_table import ServerLines, build_server_table
from srvstat.render.text import (
    NOTHING,
    format_count,
    format_date,
    format_interval,
    format_share,
    format_time,
)

_HEADERS = ("current", "observations", "interval", "coverage")

_MAX_PROPERTY_WIDTH = 20
_MAX_SOURCE_ID_WIDTH = 40

_NOTES: Fields = (
    ("interval", "the median distance between successive observations"),
    ("coverage", "the share of the time since the first observation that observations cover"),
)
"""What the columns mean that other tables do not have."""


def render_servers(found: Servers, screen: Screen) -> str:
    """Render the servers that match a filter."""
    shown = len(found.servers)
    matched = format_count(found.matched, "server")
    if shown < found.matched:
        matched += f", the first {shown:,} listed; --limit lists more"
    fields: Fields = [("matched", matched), ("as of", format_time(found.as_of))]
    lines = build_server_list(found.servers, found.as_of, screen)
    if not lines:
        return screen.render(build_fields_grid(fields, screen))
    return screen.render(*lines, Text(), build_fields_grid([*fields, *_NOTES], screen))


def build_server_list(
    servers: Iterable[ListedServer], as_of: int, screen: Screen
) -> list[RenderableType]:
    """Return the lines that list servers of a snapshot; none without servers."""
    return build_server_table(
        _HEADERS, [_build_lines(server, as_of, screen) for server in servers], screen
    )


def _build_lines(server: ListedServer, as_of: int, screen: Screen) -> ServerLines:
    interval, coverage = server.usual_interval_seconds, server.coverage
    figures = (
        f"{server.sample_count:,}",
        NOTHING if interval is None else format_interval(interval),
        NOTHING if coverage is None else format_share(coverage),
    )
    return ServerLines(
        server.hostname,
        (server.id, server.cfx_id),
        (
            format_current(server.current_players, server.last_observed_at, as_of),
            *map(Text, figures),
        ),
        tuple(_list_notes(server, screen)),
    )


def _list_notes(server: ListedServer, screen: Screen) -> Iterator[str]:
    """Yield short notes; foreign text is cut."""

    def cut(text: str, width: int = _MAX_PROPERTY_WIDTH) -> str:
        return screen.truncate(screen.escape_cell(text), width).plain

    properties = [cut(text) for text in (server.game, server.region) if text]
    yield ", ".join([*properties, "offline"] if server.offline else properties)
    if server.first_observed_at is not None and server.last_observed_at is not None:
        first, last = format_date(server.first_observed_at), format_date(server.last_observed_at)
        yield f"seen {first} to {last}"
    if server.source_id is not None and server.source_id != server.hostname:
        yield f"sourceId {cut(server.source_id, _MAX_SOURCE_ID_WIDTH)}"
    if server.completed:
        yield f"completed: {', '.join(map(cut, server.completed))}"
