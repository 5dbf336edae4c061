"""Define the options that the commands of the analyzer share, and interpret their values."""

from collections.abc import Sequence
from typing import Annotated

import typer

from srvstat.analysis.selection import ServerFilter
from srvstat.analysis.windows import parse_range
from srvstat.cli.options import RANGES, complete_identifier
from srvstat.cli.output import report
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import DEFAULT_RANGE, Window
from srvstat.contract.requests import ServerReference, build_server_reference
from srvstat.render.text import format_span, format_time
from srvstat.snapshot.read.reader import SnapshotFile

ServersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IDENTIFIER",
        help="Servers: ID, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]


def _complete_window_range(incomplete: str) -> list[str]:
    return [name for name in (*RANGES, "all") if name.startswith(incomplete)]


WindowRangeOption = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="Nh|Nd|1y|all",
        help=f"The length of the window: hours, days, a year, or all [default: {DEFAULT_RANGE}].",
        autocompletion=_complete_window_range,
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
    str, typer.Option("--tz", metavar="ZONE", help="The time zone of dates, such as Europe/Berlin.")
]
AllOption = Annotated[
    bool, typer.Option("--all", help="All servers of the snapshot that match the filters.")
]
GameOption = Annotated[str | None, typer.Option(metavar="GAME", help="Only servers of this game.")]
RegionOption = Annotated[
    str | None, typer.Option(metavar="REGION", help="Only servers of this region.")
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TAG", help="Only servers with this tag (repeatable: with all of them)."),
]
OfflineOption = Annotated[
    bool | None,
    typer.Option("--offline/--online", help="Only servers whose record says so."),
]
SeenWithinOption = Annotated[
    str | None,
    typer.Option(
        metavar="Nh|Nd",
        help="Only servers observed in this time before the end of the snapshot.",
    ),
]


class FilterOptions:
    """The values of the filter options. Their instants follow from the snapshot."""

    def __init__(
        self,
        *,
        text: str | None = None,
        game: str | None = None,
        region: str | None = None,
        tags: Sequence[str] | None = None,
        offline: bool | None = None,
        seen_within: str | None = None,
    ) -> None:
        self._values = ServerFilter(text, game, region, tuple(tags or ()), offline)
        self._seen_within = None if seen_within is None else _parse_length(seen_within)

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches all servers."""
        return self._values == ServerFilter() and self._seen_within is None

    def build_filter(self, as_of: int) -> ServerFilter:
        """Return the filter for a snapshot."""
        since = None if self._seen_within is None else as_of - self._seen_within
        values = self._values
        return ServerFilter(
            values.text, values.game, values.region, values.tags, values.is_offline, since
        )


def _parse_length(text: str) -> int:
    try:
        length = parse_range(text)
    except UsageError as error:
        raise UsageError(str(error).replace("--range", "--seen-within", 1)) from None
    if length is None:
        raise UsageError("--seen-within: give hours or days, such as 36h or 7d")
    return length


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


def build_references(identifiers: Sequence[str] | None, by: str | None) -> list[ServerReference]:
    """Return the references of the identifiers on the command line.

    Raises InvalidRequestError.
    """
    return [build_server_reference(text, by=by) for text in identifiers or ()]


def report_missing_data(snapshot: SnapshotFile, window: Window) -> None:
    """Say on standard error why a window has no observation, or that it ends after all data."""
    totals = snapshot.read_totals()
    first, last = totals.first_observed_at, totals.last_observed_at
    if first is None or last is None:
        report("note: the snapshot has no observation")
    elif window.end < first or window.start >= last:
        report(f"note: no observation in the window; the snapshot has {format_span(first, last)}")
    elif window.end > snapshot.as_of:
        report(
            f"note: the window ends after the snapshot, which ends {format_time(snapshot.as_of)}"
        )
