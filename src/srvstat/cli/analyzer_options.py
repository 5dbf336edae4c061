"""Define the options that the commands of the analyzer share, and interpret their values."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import typer

from srvstat.analysis.selection import (
    FilterOptions,
    Reference,
    ServerFilter,
    count_record_values,
    find_matches,
    find_references,
)
from srvstat.analysis.windows import WindowQuery, check_query
from srvstat.cli.options import (
    RANGES,
    complete_identifier,
    find_snapshot,
    parse_count,
    parse_instant_option,
)
from srvstat.cli.output import Form, report
from srvstat.contract import wire
from srvstat.contract.errors import SrvstatError, UsageError
from srvstat.contract.ranges import DEFAULT_RANGE, Window
from srvstat.render.local_time import format_zoned_time
from srvstat.render.text import format_count, format_span
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot

_LIST_LENGTH = 50

_MAX_LISTED = 10
_SERVERS_FOR_COMPLETION = 10_000
"""The servers whose values are completed; reading them takes 0.1 s."""

_PLAIN_WORD = re.compile(r"[\w.@%+-]+")
"""Text that every shell leaves as it is."""

ServersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IDENTIFIER",
        help="Servers: ID, name, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]


def complete_window_range(incomplete: str) -> list[str]:
    """Complete the length of a window."""
    return [name for name in (*RANGES, "all") if name.startswith(incomplete)]


WindowRangeOption = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="Nh|Nd|1y|all",
        help=f"The length of the window: hours, days, a year, or all [default: {DEFAULT_RANGE}].",
        autocompletion=complete_window_range,
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="The start of the window, exclusive: a date such as 2026-01-31, an instant such as"
        " 2026-01-31T12:00Z, or Unix milliseconds.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TIME",
        help="The end of the window, inclusive [default: the end of the snapshot].",
    ),
]
ZoneOption = Annotated[
    str,
    typer.Option(
        "--tz", metavar="ZONE", help="The time zone of dates and of times, such as Europe/Berlin."
    ),
]
StepZoneOption = Annotated[
    str,
    typer.Option(
        "--tz", metavar="ZONE", help="The time zone of dates and of steps, such as Europe/Berlin."
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="All servers of the snapshot that match the filters.")
]


def _complete_game(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete_value(ctx, "games", incomplete)


def _complete_region(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete_value(ctx, "regions", incomplete)


def _complete_tag(ctx: typer.Context, incomplete: str) -> list[str]:
    return _complete_value(ctx, "tags", incomplete)


def _complete_value(
    ctx: typer.Context, kind: Literal["games", "regions", "tags"], incomplete: str
) -> list[str]:
    """Complete a value that servers of the snapshot have. Omits those that need quotes."""
    name = ctx.params.get("snapshot") or ctx.params.get("path")
    try:
        with closing(open_snapshot(find_snapshot(name))) as snapshot:
            counts = count_record_values(snapshot, most=_SERVERS_FOR_COMPLETION)
    except SrvstatError:
        return []
    values = filter(_PLAIN_WORD.fullmatch, getattr(counts, kind))
    return sorted(value for value in values if value.startswith(incomplete))


_TEXT_HELP = (
    "Only servers with all of these words in their identifiers, hostname, project, description or"
    " tags."
)

TextArgument = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=_TEXT_HELP)]
TextOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help=_TEXT_HELP,
    ),
]
GameOption = Annotated[
    str | None,
    typer.Option(metavar="GAME", help="Only servers of this game.", autocompletion=_complete_game),
]
RegionOption = Annotated[
    str | None,
    typer.Option(
        metavar="REGION", help="Only servers of this region.", autocompletion=_complete_region
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG",
        help="Only servers with this tag (repeatable: with all of them).",
        autocompletion=_complete_tag,
    ),
]
OfflineOption = Annotated[
    bool | None,
    typer.Option(
        "--offline/--online",
        help="Only servers that are online, or offline: by their record, or because the last day"
        " has no observation of them.",
    ),
]
SeenWithinOption = Annotated[
    str | None,
    typer.Option(
        metavar="Nh|Nd",
        help="Only servers observed in this time before the end of the snapshot.",
    ),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="N",
        help=f"List at most this many servers [default: {_LIST_LENGTH} in a table, else all].",
    ),
]


def check_selection(
    identifiers: Sequence[str] | None, filters: FilterOptions, *, by: str | None, all: bool
) -> None:
    """Check that a command selects servers in one way: by identifiers, or with --all.

    Raises UsageError.
    """
    if not identifiers and not all:
        raise UsageError("give IDENTIFIER… or --all")
    if all and (identifiers or by is not None):
        raise UsageError("--all can't be combined with identifiers or --by")
    if identifiers and not filters.is_empty:
        raise UsageError("filters can't be combined with identifiers; they need --all")


def parse_limit(text: str | None, form: Form) -> int | None:
    """Return the most servers to list; None for all of them.

    Raises UsageError.
    """
    if text is None:
        return _LIST_LENGTH if form is Form.TABLE else None
    return parse_count("--limit", text, least=1)


def build_window_query(
    range: str | None, start: str | None, end: str | None, zone: str, default: str = DEFAULT_RANGE
) -> WindowQuery:
    """Return the window of the options, checked as far as that needs no snapshot.

    Warns of instants that look like seconds.

    Raises UsageError.
    """
    query = WindowQuery(range, start, end, zone, default)
    check_query(query)
    for option, text in (("--from", start), ("--to", end)):
        if text is not None and text.isdecimal():
            parse_instant_option(option, text)
    return query


def report_missing_data(
    snapshot: Snapshot, window: Window, servers: Iterable[ServerRow] = (), zone: str = "UTC"
) -> None:
    """Say on standard error why a window has no observation, or that it ends after all data.

    `servers` are those that the user names; of many without observations, the first are reported.

    Raises SnapshotError.
    """
    format_at = partial(format_zoned_time, zone=ZoneInfo(zone))
    totals = snapshot.read_totals()
    first, last = totals.first_observed_at, totals.last_observed_at
    if first is None or last is None:
        report("note: the snapshot has no observation")
        return
    if window.end < first or window.start >= last:
        span = format_span(first, last, format_at)
        report(f"note: no observation in the window; the snapshot has {span}")
        return
    if window.end > snapshot.as_of:
        end = format_at(snapshot.as_of)
        report(f"note: the window ends after the snapshot, which ends {end}")
    named = list(servers)
    counts = snapshot.compute_totals(named, window)
    empty = [server for server, (count, _) in zip(named, counts, strict=True) if not count]
    for server in empty[:_MAX_LISTED]:
        first, last = server.first_observed_at, server.last_observed_at
        if first is None or last is None:
            file = "snapshot" if snapshot.parent_root is None else "bundle"
            report(f"note: {server.title}: no observation in the {file}")
            continue
        with snapshot.convert_decode_errors(server.title):
            span = format_span(first, last, format_at)
        report(f"note: {server.title}: no observation in the window; it has {span}")
    if len(empty) > _MAX_LISTED:
        more = format_count(len(empty) - _MAX_LISTED, "more server")
        report(f"note: {more} without observations in the window")


def select_servers(
    snapshot: Snapshot,
    references: Sequence[Reference],
    filters: FilterOptions,
    *,
    all: bool,
) -> Iterable[ServerRow]:
    """Return the servers of references, or with `all` those that match; none is reported.

    Raises ServerNotFoundError, NotInBundleError, SnapshotError.
    """
    if all:
        return _iter_matches(snapshot, filters.build_filter(snapshot.as_of))
    return find_references(snapshot, references)


def _iter_matches(snapshot: Snapshot, wanted: ServerFilter) -> Iterator[ServerRow]:
    has_match = False
    for server in find_matches(snapshot, wanted):
        has_match = True
        yield server
    if not has_match:
        report_no_match(snapshot, wanted)


def report_no_match(snapshot: Snapshot, wanted: ServerFilter) -> None:
    """Say on standard error that no server matches a filter, and what exists if a value does not.

    Raises SnapshotError.
    """
    if wanted.game is None and wanted.region is None and not wanted.tags:
        report("note: no server matches")
        return
    values = count_record_values(snapshot)
    unknown = [
        f"note: --{name}: no server has {wire.quote_value(value)}; {_list_values(name, counts)}"
        for name, given, counts in (
            ("game", (wanted.game,), values.games),
            ("region", (wanted.region,), values.regions),
            ("tag", wanted.tags, values.tags),
        )
        for value in given
        if value is not None and value.casefold() not in map(str.casefold, counts)
    ]
    report(*(unknown or ["note: no server matches all options"]))


def _list_values(name: str, counts: Counter[str]) -> str:
    """Return the most frequent values, each with the number of its servers."""
    known = [(value, count) for value, count in counts.most_common() if value]
    if not known:
        return f"no server has a {name}"
    first = [f"{wire.quote_value(value)} ({count:,})" for value, count in known[:_MAX_LISTED]]
    more = len(known) - len(first)
    return f"{name}s are {', '.join(first)}" + (f" and {more:,} more" if more else "")
