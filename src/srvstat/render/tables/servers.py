"""The tables of one server, of a list of servers, and of a snapshot and its build."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.documents.document import is_silent, remove_color_codes
from srvstat.documents.snapshot import (
    DroppedRows,
    DryRun,
    ListedServer,
    ManifestShard,
    Servers,
    ServerTable,
    SnapshotInfo,
    Verification,
)
from srvstat.render.figures import format_current, format_last_seen
from srvstat.render.screen import Fields, Renderers, Screen, build_fields_grid, start_table
from srvstat.render.tables.server_table import ServerCells, build_server_table, escape_server
from srvstat.render.text import (
    NOTHING,
    format_completed,
    format_count,
    format_date,
    format_duration,
    format_fallbacks,
    format_interval,
    format_share,
    format_span,
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
        _HEADERS, [_build_cells(server, as_of, screen) for server in servers], screen
    )


def _build_cells(server: ListedServer, as_of: int, screen: Screen) -> ServerCells:
    interval, coverage = server.usual_interval_seconds, server.coverage
    figures = (
        f"{server.sample_count:,}",
        NOTHING if interval is None else format_interval(interval),
        NOTHING if coverage is None else format_share(coverage),
    )
    return escape_server(
        screen,
        (server.hostname, server.id, server.cfx_id),
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


def render_server(detail: ServerTable, screen: Screen) -> str:
    """Render all fields of a server."""
    server = detail.server
    # The record is that of the snapshot; --at changes only the last observation.
    is_snapshot_time = detail.as_of == detail.snapshot_as_of
    fields: Fields = [
        ("id", screen.escape(server.id)),
        ("cfxId", screen.escape(server.cfxId)),
        *([] if detail.source_id is None else [("sourceId", screen.escape(detail.source_id))]),
        ("game", server.game),
        *([("completed", screen.escape(", ".join(detail.completed)))] if detail.completed else []),
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


def render_info(info: SnapshotInfo, screen: Screen) -> str:
    """Render the totals of a snapshot and the first of its servers."""
    lines = build_server_list(info.identifiers, info.as_of, screen)
    more = info.matched - len(info.identifiers)
    notes = []
    if info.matched < info.servers:
        notes.append(f"{info.matched:,} of {format_count(info.servers, 'server')} match")
    if more:
        notes.append(f"{format_count(more, 'more server')} not listed; --limit lists more")
    return screen.render(
        build_fields_grid(_list_info_fields(info, screen), screen),
        *([Text(), *lines] if lines else []),
        *([Text(), *map(Text, notes)] if notes else []),
    )


def _describe_shards(shards: Sequence[ManifestShard]) -> str:
    least, most = (choose(shard.servers for shard in shards) for choose in (min, max))
    span = "" if least == most else f"{least:,} to "
    each = "" if len(shards) == 1 else " each"
    return f"{len(shards):,} with {span}{format_count(most, 'server')}{each}"


def _list_info_fields(info: SnapshotInfo, screen: Screen) -> Fields:
    bundle = []
    if info.covered_from is not None and info.parent_root is not None:
        bundle = [
            ("parent root", info.parent_root),
            ("covered from", format_time(info.covered_from)),
        ]
    games = ", ".join(f"{game} {count:,}" for game, count in info.games.items())
    dropped = (
        f"{info.repeated:,} repeated, {info.conflicting:,} conflicting, {info.rejected:,} rejected"
    )
    completed = screen.escape(format_completed(info.completed))
    return [
        ("as of", format_time(info.as_of)),
        ("root", info.root),
        *bundle,
        *([("shards", _describe_shards(info.shards))] if info.shards else []),
        ("observed", format_span(info.first_observed_at, info.last_observed_at)),
        ("observations", f"{info.observations:,}"),
        ("servers", f"{info.servers:,}" + (f" ({games})" if games else "")),
        ("fallbacks", format_fallbacks(info.fallbacks)),
        *([("completed", completed)] if info.completed else []),
        ("sources", screen.escape(", ".join(info.sources))),
        ("not kept", dropped),
    ]


_MAX_REASONS = 10
_MAX_INTERVALS = 4


def render_dry_run(dry_run: DryRun, screen: Screen) -> str:
    """Render what a build would do."""
    parts: list[RenderableType] = []
    for obstacle in dry_run.obstacles:
        parts += [*_build_reason(obstacle, screen), Text()]
    if dry_run.obstacles:
        parts += [Text("With the options below:"), Text()]
    if dry_run.rows:
        parts += [_build_rows(dry_run, screen), Text()]
    parts.append(build_fields_grid(_list_dry_run_fields(dry_run, screen), screen))
    for dropped in dry_run.dropped[:_MAX_REASONS]:
        parts += [Text(), *_build_reason(dropped, screen)]
    if len(dry_run.dropped) > _MAX_REASONS:
        others = format_count(len(dry_run.dropped) - _MAX_REASONS, "other reason")
        parts += [Text(), Text(others)]
    if dry_run.advice:
        parts += [Text(), *(Text(sentence, "bold") for sentence in dry_run.advice)]
    table = screen.render(*parts)
    if dry_run.command is None:
        return table
    # Not wrapped, so that it can be copied.
    return f"{table}  {screen.escape(dry_run.command).plain}\n"


def _build_rows(dry_run: DryRun, screen: Screen) -> Table:
    # Identifiers are folded where the screen is narrow, and times are not.
    table = start_table("identifier", "server", header_style="dim")
    table.add_column("observed at (UTC)", no_wrap=True)
    table.add_column("players", justify="right", no_wrap=True)
    for row in dry_run.rows:
        server = screen.escape_cell(row.server_id) if row.server_id else Text("not kept", "dim")
        table.add_row(
            screen.escape_cell(row.source_id),
            server,
            format_time(row.observed_at).removesuffix(" UTC"),
            f"{row.players:,}",
        )
    return table


def _list_dry_run_fields(dry_run: DryRun, screen: Screen) -> Fields:
    withheld = f" ({dry_run.withheld:,} not publishable, skipped)" if dry_run.withheld else ""
    fields: list[tuple[str, str | Text] | None] = [
        ("servers", f"{dry_run.servers:,}{withheld}"),
        ("span", format_span(dry_run.first_observed_at, dry_run.last_observed_at)),
        ("interval", _format_intervals(dry_run)),
        ("read", format_count(dry_run.read, "row")),
        ("kept", f"{dry_run.kept:,}"),
        ("repeated", f"{dry_run.repeated:,}"),
    ]
    if dry_run.completed:
        fields.append(("completed", format_completed(dry_run.completed)))
    fields += [("warning", screen.escape(warning)) for warning in dry_run.warnings]
    return fields


def _format_intervals(dry_run: DryRun) -> str:
    """Format the usual intervals between the observations of a server."""
    shown = [
        f"{format_interval(length / 1000)} ({format_count(servers, 'server')})"
        for length, servers in dry_run.intervals[:_MAX_INTERVALS]
    ]
    if len(dry_run.intervals) > _MAX_INTERVALS:
        shown.append("others")
    return ", ".join(shown)


def _build_reason(dropped: DroppedRows, screen: Screen) -> Iterator[RenderableType]:
    what = "rejected" if dropped.is_rejected else "skipped"
    rows = f"{format_count(dropped.rows, 'row')} {what}: " if dropped.rows else ""
    yield screen.escape(f"{rows}{dropped.reason}", "yellow")
    for place, text in dropped.examples:
        example = screen.escape(f"{place}: " if text else place, "dim")
        yield Padding(example + screen.escape_cell(text), (0, 0, 0, 2))


_FINDING = "all rows are as built, and derived data matches the observations"


def render_verification(verification: Verification, screen: Screen) -> str:
    """Render the root and the totals of a verified snapshot."""
    fields: Fields = [
        ("verified", _FINDING),
        ("root", verification.root),
        ("as of", format_time(verification.as_of)),
        ("servers", f"{verification.servers:,}"),
        ("observations", f"{verification.observations:,}"),
        ("server days", f"{verification.days:,}"),
    ]
    return screen.render(build_fields_grid(fields, screen))


RENDERERS: Renderers = {
    DryRun: render_dry_run,
    Servers: render_servers,
    ServerTable: render_server,
    SnapshotInfo: render_info,
    Verification: render_verification,
}
