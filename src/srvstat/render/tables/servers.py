"""The tables of a comparison, of records of servers, and of a snapshot and its build."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.documents import snapshot
from srvstat.documents.analysis import ComparedServer, Comparison
from srvstat.documents.document import ServerName, remove_color_codes
from srvstat.render import figures, layout, text
from srvstat.render.layout import GAP, join_at_columns
from srvstat.render.screen import Fields, Renderers, Screen, build_fields_grid, start_table

_USUAL_WIDTHS = (7, 7, 6, 5, 6, 14)
"""The minimum width of each column of figures in a comparison."""


class _ComparedRow(NamedTuple):
    """The parts of one server; `observed` has its usual lines and its narrow ones."""

    cells: layout.ServerCells
    drawing: Text
    observed: tuple[list[str], list[str]]


class _Widths(NamedTuple):
    """The widths of ids and figures, and the column of drawings: beside figures or below them."""

    widths: Sequence[int]
    name_width: int
    drawing_at: int
    is_beside: bool = False
    is_narrow: bool = False


def render_comparison(comparison: Comparison, screen: Screen) -> str:
    """Render a comparison, and below it notes on the figures and drawings."""
    first_last = figures.name_first_last(screen)
    headers = ("current", "average", "median", "peak", "lowest", first_last)
    rows = [_build_row(server, comparison, screen) for server in comparison.servers]
    places = _find_layout(headers, rows, screen)
    if places is None:
        endings = (_list_card_lines(row, screen.width) for row in rows)
        lines = layout.build_cards(headers, [row.cells for row in rows], endings, screen.width)
    else:
        lines = _build_lines(headers, rows, places, comparison, screen)
    notes = build_fields_grid(_list_notes(comparison, screen), screen)
    return screen.render(*lines, Text(), notes)


def _build_row(server: ComparedServer, comparison: Comparison, screen: Screen) -> _ComparedRow:
    result, as_of = server.result, comparison.snapshot_as_of
    shown = (
        figures.format_current(
            result.current_players, server.last_observed_at, as_of, hold=comparison.hold
        ),
        text.format_average(result.average_players),
        text.format_median(result.median_players),
        text.format_whole(result.peak_players),
        text.format_whole(result.lowest_players),
        figures.format_first_last(server.first_players, result.growth.players, screen.arrow),
    )
    names = ServerName(result.server_id, result.cfx_id, server.hostname)
    drawing = Text(figures.draw_averages(server.cells, screen))
    for at, cell in enumerate(server.cells, 1):  # after the frame
        if cell.is_partial:
            drawing.stylize("dim", at, at + 1)
    observed = _describe_observations(server, comparison)
    return _ComparedRow(layout.escape_server(screen, names, shown), drawing, observed)


def _describe_observations(
    server: ComparedServer, comparison: Comparison
) -> tuple[list[str], list[str]]:
    """Return lines that say how much of the window was observed, and the same in less width.

    Polling intervals differ, so an expected number of observations would be a guess. `496 in 25 of
    30 days` means that 25 of the 30 days have at least one of the 496 observations.
    """
    observations = text.format_count(server.result.sample_count, "observation")
    if not server.result.sample_count or server.observed_spans >= comparison.span_count:
        return [observations], [observations]
    unit = "hours" if comparison.response.range == "24h" else "days"
    spans = f"in {server.observed_spans} of {comparison.span_count} {unit}"
    return [f"{server.result.sample_count:,} {spans}"], [observations, spans]


def _find_layout(
    headers: Sequence[str], rows: Sequence[_ComparedRow], screen: Screen
) -> _Widths | None:
    """Return the first layout that fits the screen; None if no table fits."""
    cells = [row.cells for row in rows]
    longest_title = max(row.title.cell_len for row in cells)
    if screen.width < max(layout.MIN_TABLE_WIDTH, longest_title):
        return None
    widths = [*map(max, layout.measure_columns(headers, cells), _USUAL_WIDTHS)]
    names = max(layout.USUAL_NAME_WIDTH, longest_title)
    identifiers = max(GAP + row.names_width for row in cells)
    drawing = max(len(row.drawing) for row in rows)
    columns = GAP + layout.measure_figures(widths)
    candidates = []
    room = screen.width - columns - GAP - drawing
    if room >= layout.USUAL_NAME_WIDTH:
        name_width = min(room, max(names, identifiers - columns))
        candidates.append(_Widths(widths, name_width, name_width + columns + GAP, is_beside=True))
    room = screen.width - columns
    for is_narrow in (False, True) if room >= layout.MIN_NAME_WIDTH else ():
        observed = max(len(line) for row in rows for line in row.observed[is_narrow])
        name_width = min(room, max(names, identifiers))
        most = screen.width - drawing - GAP - observed
        drawing_at = min(max(name_width, identifiers) + GAP, most)
        candidates.append(_Widths(widths, name_width, drawing_at, is_narrow=is_narrow))
    for places in candidates:
        room = places.drawing_at - 2 * GAP
        if all(line.cell_len <= room for row in cells for line in row.list_names(room, screen)):
            return places
    return None


def _build_lines(
    headers: Sequence[str],
    rows: Sequence[_ComparedRow],
    places: _Widths,
    comparison: Comparison,
    screen: Screen,
) -> Iterator[Text]:
    drawing_at = observed_at = places.drawing_at
    header = layout.build_line(Text("server"), map(Text, headers), places.name_width, places.widths)
    if places.is_beside:
        header = join_at_columns((0, header), (drawing_at, Text(comparison.response.range)))
    else:
        observed_at += max(len(row.drawing) for row in rows) + GAP
    header.stylize("bold")
    yield header
    for row in rows:
        lines, rest = row.cells.build_figures(places.name_width, places.widths, screen)
        drawn = [(drawing_at, row.drawing)]
        yield from lines[:-1]
        yield join_at_columns((0, lines[-1]), *(drawn if places.is_beside else []))
        names = rest.list_names(drawing_at - 2 * GAP, screen)
        below = zip_longest(names, row.observed[places.is_narrow])
        for number, (name, seen) in enumerate(below):
            beside = [] if number or places.is_beside else drawn
            yield join_at_columns((GAP, name or Text()), *beside, (observed_at, Text(seen or "")))


def _list_card_lines(row: _ComparedRow, width: int) -> Iterator[Text]:
    """Yield the drawing and the observations of a server, on one line where they fit."""
    observed = row.observed[False]
    beside = len(row.drawing) + GAP
    if beside + max(map(len, observed)) <= width:
        yield join_at_columns((0, row.drawing), (beside, Text(observed[0])))
    else:
        yield from row.drawing.divide(range(width, len(row.drawing), width))
        yield from map(Text, observed)


def _list_notes(comparison: Comparison, screen: Screen) -> Iterator[tuple[str, str | None]]:
    start, end = comparison.window
    yield "window", text.format_window(start, end)
    yield "as of", text.format_time(end)
    if end != comparison.snapshot_as_of:
        record = f"from the server record, as of {text.format_time(comparison.snapshot_as_of)}"
        yield "current", record
    yield figures.name_first_last(screen), figures.FIRST_LAST_MEANING
    if comparison.hold:
        yield "held", "the figures are the API's, of observations; stats weights counts by time"
    drawn = [(server.result.server_id, server.cells) for server in comparison.servers]
    step = figures.describe_step(comparison.cell_step)
    marks, scale = figures.describe_drawings(drawn, step, screen)
    dates = f"{text.format_date(start)} to {text.format_date(end)}"
    yield comparison.response.range, f"{dates}, {marks}"
    yield "scale", scale


_LIST_HEADERS = ("current", "observations", "interval", "coverage")

_MAX_PROPERTY_WIDTH = 20
_MAX_SOURCE_ID_WIDTH = 40

_NOTES = (
    ("interval", "the median distance between successive observations"),
    ("coverage", "the share of the time since the first observation that observations cover"),
)
"""What the columns mean that other tables do not have."""


def render_servers(found: snapshot.Servers, screen: Screen) -> str:
    """Render the servers that match a filter."""
    shown = len(found.servers)
    matched = text.format_count(found.matched, "server")
    if shown < found.matched:
        matched += f", the first {shown:,} listed; --limit lists more"
    fields = [("matched", matched), ("as of", text.format_time(found.as_of))]
    if found.servers:
        fields += [_NOTES[1], figures.HELD] if found.hold else _NOTES
    lines = _list_servers(found.servers, found.as_of, screen, hold=found.hold)
    return screen.render_blocks(lines, [build_fields_grid(fields, screen)])


def _list_servers(
    servers: Iterable[snapshot.ListedServer], as_of: int, screen: Screen, *, hold: bool
) -> list[RenderableType]:
    rows = [_build_cells(server, as_of, screen, hold=hold) for server in servers]
    return layout.build_server_table(_LIST_HEADERS, rows, screen)


def _build_cells(
    server: snapshot.ListedServer, as_of: int, screen: Screen, *, hold: bool
) -> layout.ServerCells:
    interval, coverage = server.usual_interval_seconds, server.coverage
    shown = (
        figures.format_current(server.current_players, server.last_observed_at, as_of, hold=hold),
        f"{server.sample_count:,}",
        text.NOTHING if interval is None else text.format_interval(interval),
        text.NOTHING if coverage is None else text.format_share(coverage),
    )
    names = ServerName(server.id, server.cfx_id, server.hostname)
    return layout.escape_server(screen, names, shown, _list_properties(server, screen))


def _list_properties(server: snapshot.ListedServer, screen: Screen) -> Iterator[str]:
    """Yield short notes; foreign text is cut."""

    def cut(value: str, width: int = _MAX_PROPERTY_WIDTH) -> str:
        return screen.truncate(screen.escape_cell(value), width).plain

    properties = [cut(value) for value in (server.game, server.region) if value]
    if properties := [*properties, "offline"] if server.offline else properties:
        yield ", ".join(properties)
    if server.first_observed_at is not None and server.last_observed_at is not None:
        first = text.format_date(server.first_observed_at)
        yield f"seen {first} to {text.format_date(server.last_observed_at)}"
    source_ids = ", ".join(filter(None, (server.source_id, *server.other_source_ids)))
    if source_ids and source_ids != server.hostname:
        yield f"sourceId {cut(source_ids, _MAX_SOURCE_ID_WIDTH)}"
    if server.completed:
        yield f"completed: {', '.join(map(cut, server.completed))}"


def render_server(detail: snapshot.ServerTable, screen: Screen) -> str:
    """Render all fields of a server."""
    server = detail.server
    completed = ", ".join(detail.completed)
    source_ids = ", ".join(filter(None, (detail.source_id, *detail.other_source_ids)))
    # The record is part of the snapshot; --at changes only the last observation.
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
    title = screen.escape(remove_color_codes(server.hostname), "bold")
    return screen.render(title, build_fields_grid(fields, screen))


def _format_players(detail: snapshot.ServerTable) -> str:
    players = detail.server.players
    shown = f"{players.current:,} of {players.max:,}"
    if detail.as_of != detail.snapshot_as_of:
        shown += ", as of the snapshot"
    last, as_of = detail.last_in_snapshot_at, detail.snapshot_as_of
    shown += figures.describe_silence(last, as_of, hold=detail.hold)
    if detail.current_is_fallback:
        shown += " (fallback: the last observation, or 0 without one)"
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


def render_info(info: snapshot.SnapshotInfo, screen: Screen) -> str:
    """Render the totals of a snapshot and the first of its servers."""
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


def render_dry_run(dry_run: snapshot.DryRun, screen: Screen) -> str:
    """Render what a build would do."""
    dropped = [[*_build_reason(reason, screen)] for reason in dry_run.dropped[:_MAX_REASONS]]
    others = len(dry_run.dropped) - _MAX_REASONS
    fields: Fields = [
        ("servers", f"{dry_run.servers:,}{text.format_withheld(dry_run.withheld)}"),
        ("span", text.format_span(dry_run.first_observed_at, dry_run.last_observed_at)),
        ("interval", _format_intervals(dry_run)),
        ("read", text.format_count(dry_run.read, "row")),
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
    # Identifiers are folded where the screen is narrow, and times are not.
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
    """Format the usual intervals between the observations of a server."""
    shown = [
        f"{text.format_interval(length / 1000)} ({text.format_count(servers, 'server')})"
        for length, servers in dry_run.intervals[:_MAX_INTERVALS]
    ]
    if len(dry_run.intervals) > _MAX_INTERVALS:
        shown.append("others")
    return ", ".join(shown)


def _build_reason(dropped: snapshot.DroppedRows, screen: Screen) -> Iterator[RenderableType]:
    what = "rejected" if dropped.is_rejected else "skipped"
    rows = text.format_count(dropped.rows, "row")
    yield screen.escape(f"{rows} {what}: {dropped.reason}", "yellow")
    for place, row in dropped.examples:
        example = screen.escape(f"{place}: " if row else place, "dim")
        yield Padding(example + screen.escape_cell(row), (0, 0, 0, 2))


def render_verification(verification: snapshot.Verification, screen: Screen) -> str:
    """Render the root and the totals of a verified snapshot."""
    fields = [
        ("verified", "all rows are as built, and derived data matches the observations"),
        ("root", verification.root),
        ("as of", text.format_time(verification.as_of)),
        ("servers", f"{verification.servers:,}"),
        ("observations", f"{verification.observations:,}"),
        ("server days", f"{verification.days:,}"),
    ]
    return screen.render(build_fields_grid(fields, screen))


RENDERERS: Renderers = {
    Comparison: render_comparison,
    snapshot.DryRun: render_dry_run,
    snapshot.Servers: render_servers,
    snapshot.ServerTable: render_server,
    snapshot.SnapshotInfo: render_info,
    snapshot.Verification: render_verification,
}
