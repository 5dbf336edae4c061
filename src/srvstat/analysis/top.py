"""Rank servers by a figure: the document `top`."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import nsmallest
from typing import get_args

from srvstat.analysis.change import compare_windows, read_earlier
from srvstat.analysis.selection import ServerFilter, find_matches, iter_batches
from srvstat.analysis.statistics import build_query, build_window_part, describe_servers
from srvstat.analysis.windows import find_previous
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import Window
from srvstat.documents.analysis import Top, TopKey
from srvstat.documents.servers import is_silent
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

TOP_KEYS: tuple[TopKey, ...] = get_args(TopKey)

_Rank = tuple[bool, float]
"""Orders servers: first those with the figure, and of these the greatest first."""


def parse_top_key(text: str) -> TopKey:
    """Return the figure that a text names.

    Raises UsageError.
    """
    for key in TOP_KEYS:
        if key == text:
            return key
    raise UsageError(f"--by: {wire.quote_value(text)} is not one of {', '.join(TOP_KEYS)}")


def rank_servers(  # noqa: PLR0913 - all are parts of the question
    snapshot: Snapshot,
    wanted: ServerFilter,
    window: Window,
    by: TopKey,
    limit: int,
    *,
    quantiles: Sequence[Fraction] = (),
    above: int | None = None,
    versus_previous: bool = False,
    zone: str = "UTC",
) -> Top:
    """Return the `limit` servers that match a filter and have the greatest values of a figure.

    Only this figure is computed for all servers; it is that of `compute_stats`, which has the
    meaning of the other arguments. Only the winners are kept in memory.

    Raises UsageError if there is no previous window, NotInBundleError, SnapshotError.
    """
    query = build_query(snapshot, window, quantiles, above, versus_previous=versus_previous)
    if by == "change":
        find_previous(window)  # without one, no server has a change
    count = 0

    def iter_ranked() -> Iterator[tuple[_Rank, ServerRow]]:
        nonlocal count
        for batch in iter_batches(snapshot, find_matches(snapshot, wanted)):
            count += len(batch)
            values = _find_values(snapshot, batch, window, by, query.earlier)
            for server, value in zip(batch, values, strict=True):
                yield (value is None, -(value or 0)), server

    # Keeps the order of equal servers, which are read in the order of their ids.
    winners = nsmallest(limit, iter_ranked(), key=lambda ranked: ranked[0])
    servers = (server for _, server in winners)
    return Top(
        as_of=snapshot.as_of,
        root=snapshot.root,
        time_zone=zone,
        window=build_window_part(window),
        previous_window=query.previous and build_window_part(query.previous),
        servers=tuple(describe_servers(snapshot, servers, window, query)),
        by=by,
        server_count=count,
    )


def _find_values(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    by: TopKey,
    earlier: Window | None,
) -> list[float | None]:
    """Return the figure of each server, by the cheapest means; None if it has none."""
    if by == "change":
        figures = snapshot.compute_figures(servers, window)
        before = read_earlier(snapshot, servers, earlier)
        changes = map(compare_windows, before, figures)
        return [None if change is None else change.players for change in changes]
    if by == "current":
        return [_find_current(server, snapshot.as_of) for server in servers]
    if by in {"average", "samples"}:
        totals = snapshot.compute_totals(servers, window)
        if by == "samples":
            return [count for count, _ in totals]
        return [total / count if count else None for count, total in totals]
    statistics = snapshot.compute_statistics(servers, window)
    if by == "growth":
        return [one.growth.players for one in statistics]
    return [getattr(one, by) for one in statistics]


def _find_current(server: ServerRow, as_of: int) -> int | None:
    """Return the current count of a server; None if it is silent, and so not online."""
    return None if is_silent(server.last_observed_at, as_of) else server.players_current
