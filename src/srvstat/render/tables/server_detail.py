"""The table of one server: all of its fields, in groups."""

from collections.abc import Iterator

from rich.text import Text

from srvstat.documents.document import remove_color_codes
from srvstat.documents.servers import ServerTable, is_silent
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import format_last_seen
from srvstat.render.text import format_duration, format_time


def render_server(detail: ServerTable, screen: Screen) -> str:
    """Render all fields of a server."""
    server = detail.server
    # The record is that of the snapshot; --at changes only the last observation.
    is_snapshot_time = detail.as_of == detail.snapshot_as_of
    fields: Fields = [
        ("id", screen.escape(server.id)),
        ("cfxId", screen.escape(server.cfxId)),
        *_list_source_id(detail, screen),
        ("game", server.game),
        *_list_completed(detail, screen),
        None,
        ("projectName", screen.escape(remove_color_codes(server.projectName))),
        ("projectDescription", screen.escape_lines(remove_color_codes(server.projectDescription))),
        ("region", screen.escape(server.region)),
        ("tags", screen.escape(", ".join(map(remove_color_codes, server.tags)))),
        ("flags", screen.escape(" ".join(server.flags))),
        ("chatUrl", screen.escape(server.chatUrl)),
        ("iconUrl", screen.escape(server.iconUrl or "")),
        None,
        ("players", _format_players(detail)),
        ("offline", "yes" if server.offline else "no"),
        None,
        ("firstSeenAt", _format_moment(detail.first_seen_at, detail.snapshot_as_of)),
        ("updatedAt", _format_moment(detail.updated_at, detail.snapshot_as_of)),
        *([] if is_snapshot_time else [("as of", format_time(detail.as_of))]),
        ("last seen", _format_last_seen(detail)),
    ]
    return screen.render(
        screen.escape(remove_color_codes(server.hostname), "bold"),
        build_fields_grid(fields, screen),
    )


def _list_source_id(detail: ServerTable, screen: Screen) -> Iterator[tuple[str, Text]]:
    if detail.source_id is not None:
        yield "sourceId", screen.escape(detail.source_id)


def _list_completed(detail: ServerTable, screen: Screen) -> Iterator[tuple[str, Text]]:
    if detail.completed:
        yield "completed", screen.escape(", ".join(detail.completed))


def _format_players(detail: ServerTable) -> str:
    players = detail.server.players
    time = "" if detail.as_of == detail.snapshot_as_of else ", as of the snapshot"
    fallback = (
        " (fallback: the last observation, or 0 without one)" if detail.current_is_fallback else ""
    )
    silence = ""
    if is_silent(detail.last_in_snapshot_at, detail.snapshot_as_of):
        silence = f", {format_last_seen(detail.last_in_snapshot_at, detail.snapshot_as_of)}"
    return f"{players.current:,} of {players.max:,}{time}{silence}{fallback}"


def _format_last_seen(detail: ServerTable) -> str:
    at = detail.last_observed_at
    if at is None:
        return _format_absence(detail)
    if detail.as_of == detail.snapshot_as_of:
        return _format_moment(at, detail.snapshot_as_of)
    if at == detail.as_of:
        return format_time(at)
    return f"{format_time(at)} ({format_duration(detail.as_of - at)} before the as-of time)"


def _format_absence(detail: ServerTable) -> str:
    if detail.covered_from is None:
        return "never"
    start = format_time(detail.covered_from)
    if detail.as_of < detail.covered_from:
        return f"unknown: this bundle begins {start}"
    return f"none since {start}, where this bundle begins"


def _format_moment(at: int, as_of: int) -> str:
    if at == as_of:
        return f"{format_time(at)} (the time of the snapshot)"
    side = "before" if at < as_of else "after"
    return f"{format_time(at)} ({format_duration(abs(as_of - at))} {side} the snapshot)"
