"""The table of a snapshot: its totals and the first of its servers."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from srvstat.documents.servers import SnapshotInfo
from srvstat.documents.snapshot import ManifestShard
from srvstat.render.fields import Fields, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.tables.server_list import build_server_list
from srvstat.render.text import (
    format_completed,
    format_count,
    format_fallbacks,
    format_span,
    format_time,
)


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
        build_fields_grid(_list_fields(info, screen), screen),
        *([Text(), *lines] if lines else []),
        *([Text(), *map(Text, notes)] if notes else []),
    )


def _list_coverage(info: SnapshotInfo) -> Iterator[tuple[str, str]]:
    """Yield what a bundle covers and its parent's root."""
    if info.covered_from is not None and info.parent_root is not None:
        yield "parent root", info.parent_root
        yield "covered from", format_time(info.covered_from)


def _describe_shards(shards: Sequence[ManifestShard]) -> str:
    least, most = (choose(shard.servers for shard in shards) for choose in (min, max))
    span = "" if least == most else f"{least:,} to "
    each = "" if len(shards) == 1 else " each"
    return f"{len(shards):,} with {span}{format_count(most, 'server')}{each}"


def _list_fields(info: SnapshotInfo, screen: Screen) -> Fields:
    games = ", ".join(f"{game} {count:,}" for game, count in info.games.items())
    dropped = (
        f"{info.repeated:,} repeated, {info.conflicting:,} conflicting, {info.rejected:,} rejected"
    )
    completed = screen.escape(format_completed(info.completed))
    return [
        ("as of", format_time(info.as_of)),
        ("root", info.root),
        *_list_coverage(info),
        *([("shards", _describe_shards(info.shards))] if info.shards else []),
        ("observed", format_span(info.first_observed_at, info.last_observed_at)),
        ("observations", f"{info.observations:,}"),
        ("servers", f"{info.servers:,}" + (f" ({games})" if games else "")),
        ("fallbacks", format_fallbacks(info.fallbacks)),
        *([("completed", completed)] if info.completed else []),
        ("sources", screen.escape(", ".join(info.sources))),
        ("not kept", dropped),
    ]
