"""Tables of server records, of a snapshot and of its build."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.documents import snapshot
from srvstat.documents.document import ServerName, remove_color_codes
from srvstat.render import figures, layout, text
from srvstat.render.screen import Fields, Screen, build_fields_grid, render_table, start_table

_MAX_PROPERTY_WIDTH = 20


@render_table.register
def render_servers(found: snapshot.Servers, screen: Screen) -> str:
    """Render the servers that match a filter."""
    at = text.format_zoned_time(found.as_of, text.UTC, "minutes")
    title = f"{text.format_count(found.matched, 'server')} at {at}"
    facts = [figures.HELD] if found.hold else []
    if len(found.servers) < found.matched:
        facts.append(f"the first {len(found.servers):,} listed; --limit lists more")
    lines = _list_servers(found.servers, found.as_of, screen, hold=found.hold)
    return screen.render(layout.build_title(title), *lines, *layout.build_footer(facts, screen))


def _list_servers(
    servers: Sequence[snapshot.ListedServer], as_of: int, screen: Screen, *, hold: bool
) -> list[RenderableType]:
    columns: dict[str, Sequence[str | Text]] = {
        "current": [
            figures.format_current(one.current_players, one.last_observed_at, as_of, hold=hold)
            for one in servers
        ],
        "interval": [
            text.NOTHING
            if one.usual_interval_seconds is None
            else text.format_interval(one.usual_interval_seconds)
            for one in servers
        ],
        "coverage": [
            text.NOTHING if one.coverage is None else text.format_share(one.coverage)
            for one in servers
        ],
        "observations": [f"{one.sample_count:,}" for one in servers],
    }
    properties = {
        "game": [one.game or "" for one in servers],
        "region": [one.region for one in servers],
        "state": ["offline" if one.offline else "" for one in servers],
    }
    for name, values in properties.items():
        if any(values):
            columns[name] = _align_left(name, values, screen)
    columns["since"] = [
        text.NOTHING if one.first_observed_at is None else text.format_date(one.first_observed_at)
        for one in servers
    ]
    rows = [
        layout.escape_server(screen, ServerName(one.id, one.cfx_id, one.hostname), texts)
        for one, *texts in zip(servers, *columns.values(), strict=True)
    ]
    return layout.build_server_table([*columns], rows, screen, optional=1)


def _align_left(name: str, values: Sequence[str], screen: Screen) -> list[Text]:
    """Return untrusted texts for a column, cut if they are long and padded to equal width."""
    cells = [screen.truncate(screen.escape_cell(one), _MAX_PROPERTY_WIDTH) for one in values]
    width = max(len(name), *(cell.cell_len for cell in cells))
    for cell in cells:
        cell.pad_right(width - cell.cell_len)
    return cells


@render_table.register
def render_server(detail: snapshot.ServerTable, screen: Screen) -> str:
    """Render all fields of a server."""
    server = detail.server
    completed = ", ".join(detail.completed)
    source_ids = ", ".join(filter(None, (detail.source_id, *detail.other_source_ids)))
    # The record belongs to the snapshot; --at changes only the last observation.
    as_of = None if detail.as_of == detail.snapshot_as_of else text.format_time(detail.as_of)
    fields: Fields = [
        ("id", screen.escape(server.id)),
        ("cfxId", screen.escape(server.cfx_id)),
        ("sourceId", screen.escape(source_ids) if source_ids else None),
        ("game", server.game),
        ("completed", screen.escape(completed) if completed else None),
        None,
        ("projectName", screen.escape(remove_color_codes(server.project_name))),
        ("projectDescription", screen.escape_lines(remove_color_codes(server.project_description))),
        ("region", screen.escape(server.region)),
        ("tags", screen.escape(", ".join(map(remove_color_codes, server.tags)))),
        ("flags", screen.escape(" ".join(server.flags))),
        ("chatUrl", screen.escape(server.chat_url)),
        ("iconUrl", screen.escape(server.icon_url or "")),
        None,
        ("players", _format_players(detail)),
        ("offline", "yes" if server.offline else "no"),
        None,
        ("firstSeenAt", _format_moment(detail.first_seen_at, detail.snapshot_as_of)),
        ("updatedAt", _format_moment(detail.updated_at, detail.snapshot_as_of)),
        ("as of", as_of),
        ("last seen", _format_last_seen(detail)),
    ]
    title = screen.escape(remove_color_codes(server.hostname) or server.id, "bold")
    return screen.render(title, build_fields_grid(fields, screen))


def _format_players(detail: snapshot.ServerTable) -> str:
    players = detail.server.players
    shown = f"{players.current:,} of {players.max:,}"
    if detail.as_of != detail.snapshot_as_of:
        shown += ", as of the snapshot"
    last, as_of = detail.last_in_snapshot_at, detail.snapshot_as_of
    shown += figures.describe_silence(last, as_of, hold=detail.hold)
    if detail.current_is_fallback:
        shown += " (no observation)" if last is None else " (from the last observation)"
    return shown


def _format_last_seen(detail: snapshot.ServerTable) -> str:
    at = detail.last_observed_at
    if at is None:
        if detail.covered_from is None:
            return "never"
        start = text.format_time(detail.covered_from)
        if detail.as_of < detail.covered_from:
            return f"unknown: this bundle begins {start}"
        return f"none since {start}, where this bundle begins"
    if detail.as_of == detail.snapshot_as_of:
        return _format_moment(at, detail.snapshot_as_of)
    if at == detail.as_of:
        return text.format_time(at)
    before = text.format_duration(detail.as_of - at)
    return f"{text.format_time(at)} ({before} before the as-of time)"


def _format_moment(at: int, as_of: int) -> str:
    if at == as_of:
        return f"{text.format_time(at)} (the time of the snapshot)"
    side = "before" if at < as_of else "after"
    return f"{text.format_time(at)} ({text.format_duration(abs(as_of - at))} {side} the snapshot)"


@render_table.register
def render_info(info: snapshot.SnapshotInfo, screen: Screen) -> str:
    """Render the totals of a snapshot and its first servers."""
    more = info.matched - len(info.identifiers)
    notes = []
    if info.matched < info.servers:
        servers = text.format_count(info.servers, "server")
        notes.append(Text(f"{info.matched:,} of {servers} match"))
    if more:
        rest = f"{text.format_count(more, 'more server')} not listed; --limit lists more"
        notes.append(Text(rest))
    games = ", ".join(f"{game} {count:,}" for game, count in info.games.items())
    covered_from = None if info.covered_from is None else text.format_time(info.covered_from)
    completed = text.format_completed(info.completed)
    conflicting = f"{info.conflicting:,} conflicting"
    case = info.case
    fields: Fields = [
        ("as of", text.format_time(info.as_of)),
        ("root", info.root),
        ("parent root", info.parent_root),
        ("covered from", covered_from),
        ("shards", _describe_shards(info.shards) if info.shards else None),
        ("observed", text.format_span(info.first_observed_at, info.last_observed_at)),
        ("observations", f"{info.observations:,}"),
        ("servers", f"{info.servers:,}" + (f" ({games})" if games else "")),
        ("fallbacks", text.format_fallbacks(info.fallbacks)),
        ("completed", screen.escape(completed) if completed else None),
        ("sources", screen.escape(", ".join(info.sources))),
        ("read with", screen.escape(_format_options(info.reading)) if info.reading else None),
        ("verdict", screen.escape(case["verdict"]) if case else None),
        ("shown by", screen.escape(case["command"]) if case else None),
        ("explained by", screen.escape(case["explanation"]) if case else None),
        ("not kept", f"{info.repeated:,} repeated, {conflicting}, {info.rejected:,} rejected"),
    ]
    grid = build_fields_grid(fields, screen)
    return screen.render_blocks(
        [grid],
        _list_servers(info.identifiers, info.as_of, screen, hold=info.reading.get("hold") is True),
        notes,
    )


def _format_options(options: Mapping[str, Any]) -> str:
    words = []
    for name, value in options.items():
        columns = value.items() if isinstance(value, Mapping) else ()
        shown = ",".join(f"{key}={column}" for key, column in columns) or str(value)
        words.append(f"--{name}" if value is True else f"--{name} {shown}")
    return " ".join(words)


def _describe_shards(shards: Sequence[snapshot.ManifestShard]) -> str:
    least, most = (choose(shard.servers for shard in shards) for choose in (min, max))
    span = "" if least == most else f"{least:,} to "
    each = "" if len(shards) == 1 else " each"
    return f"{len(shards):,} with {span}{text.format_count(most, 'server')}{each}"


_MAX_REASONS = 10
_MAX_INTERVALS = 4


@render_table.register
def render_dry_run(dry_run: snapshot.DryRun, screen: Screen) -> str:
    """Render what a build would do."""
    dropped = [
        [*_build_reason(reason, dry_run.unit, screen)] for reason in dry_run.dropped[:_MAX_REASONS]
    ]
    others = len(dry_run.dropped) - _MAX_REASONS
    fields: Fields = [
        ("servers", f"{dry_run.servers:,}{text.format_withheld(dry_run.withheld)}"),
        ("span", text.format_span(dry_run.first_observed_at, dry_run.last_observed_at)),
        ("interval", _format_intervals(dry_run)),
        ("read", text.format_count(dry_run.read, dry_run.unit)),
        ("kept", f"{dry_run.kept:,}"),
        ("repeated", f"{dry_run.repeated:,}"),
        ("completed", text.format_completed(dry_run.completed) or None),
        *(("warning", screen.escape(warning)) for warning in dry_run.warnings),
    ]
    return screen.render_blocks(
        [_build_rows(dry_run, screen)] if dry_run.rows else [],
        [build_fields_grid(fields, screen)],
        *dropped,
        [Text(text.format_count(others, "other reason"))] if others > 0 else [],
        [Text(sentence, "bold") for sentence in dry_run.advice],
    )


def _build_rows(dry_run: snapshot.DryRun, screen: Screen) -> Table:
    # On a narrow screen, identifiers are folded, but times are not.
    table = start_table("identifier", "server", header_style="dim")
    table.add_column("observed at (UTC)", no_wrap=True)
    table.add_column("players", justify="right", no_wrap=True)
    for row in dry_run.rows:
        table.add_row(
            screen.escape_cell(row.source_id),
            screen.escape_cell(row.server_id) if row.server_id else Text("not kept", "dim"),
            text.format_time(row.observed_at).removesuffix(" UTC"),
            f"{row.players:,}",
        )
    return table


def _format_intervals(dry_run: snapshot.DryRun) -> str:
    """Format the polling intervals of the servers."""
    shown = [
        f"{text.format_interval(length / 1000)} ({text.format_count(servers, 'server')})"
        for length, servers in dry_run.intervals[:_MAX_INTERVALS]
    ]
    if len(dry_run.intervals) > _MAX_INTERVALS:
        shown.append("others")
    return ", ".join(shown)


def _build_reason(
    dropped: snapshot.DroppedRows, unit: str, screen: Screen
) -> Iterator[RenderableType]:
    what = "rejected" if dropped.is_rejected else "skipped"
    rows = text.format_count(dropped.rows, unit)
    yield screen.escape(f"{rows} {what}: {dropped.reason}", "yellow")
    for place, row in dropped.examples:
        example = screen.escape(f"{place}: " if row else place, "dim")
        yield Padding(example + screen.escape_cell(row), (0, 0, 0, 2))


@render_table.register
def render_verification(verification: snapshot.Verification, screen: Screen) -> str:
    """Render the root and the totals of a verified snapshot."""
    fields = [
        ("verified", "all rows are intact, and derived data matches the observations"),
        ("root", verification.root),
        ("as of", text.format_time(verification.as_of)),
        ("servers", f"{verification.servers:,}"),
        ("observations", f"{verification.observations:,}"),
        ("days of data", f"{verification.days:,}"),
    ]
    return screen.render(build_fields_grid(fields, screen))
