"""The table of a dry run: the first rows, totals, the rows that are not kept, and what helps."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from srvstat.documents.snapshot import DroppedRows, DryRun
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.text import (
    format_completed,
    format_count,
    format_interval,
    format_span,
    format_time,
)

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
    parts.append(build_fields_grid(_list_fields(dry_run, screen), screen))
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
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    # Identifiers are folded where the screen is narrow, and times are not.
    table.add_column("identifier", overflow="fold")
    table.add_column("server", overflow="fold")
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


def _list_fields(dry_run: DryRun, screen: Screen) -> Fields:
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
