"""Describe a comparison: the answer of Compare Servers, and averages over time."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from srvstat.contract.ranges import DAY_MS, Window, find_window
from srvstat.contract.requests import CompareRequest
from srvstat.contract.responses import ServerResult
from srvstat.documents.comparison import ComparedServer, Comparison
from srvstat.operations import compare, resolve_servers
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

_HOUR_MS = DAY_MS // 24


def describe_comparison(
    snapshot: Snapshot, request: CompareRequest, cells: int, *, at: int | None = None
) -> Comparison:
    """Answer Compare Servers, and add averages over `cells` equal parts of the window.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError, NotInBundleError, SnapshotError.
    """
    response = compare(snapshot, request, at=at)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    span = _HOUR_MS if request.range == "24h" else DAY_MS
    spans = (window.end - window.start) // span
    servers = resolve_servers(snapshot, request.servers)
    compared = tuple(
        _describe_server(snapshot, server, result, window, cells, spans)
        for result, server in zip(response.data, servers, strict=True)
    )
    return Comparison(response, compared, window, snapshot.as_of, span, snapshot.covered_from)


def _describe_server(  # noqa: PLR0913, PLR0917 - all come from describe_comparison
    snapshot: Snapshot,
    server: ServerRow,
    result: ServerResult,
    window: Window,
    cells: int,
    spans: int,
) -> ComparedServer:
    instants, players = snapshot.read_observations(server, window)
    observed = _compute_averages(instants, players, window, spans)
    last = instants[-1] if instants else snapshot.find_last_observed_at(server, window.end)
    return ComparedServer(
        result,
        server.hostname,
        _compute_averages(instants, players, window, cells),
        sum(average is not None for average in observed),
        players[0] if players else None,
        last,
    )


def _compute_averages(
    instants: Sequence[int], players: Sequence[int], window: Window, parts: int
) -> tuple[float | None, ...]:
    """Return the average of each of the equal parts of a window; None without observations.

    Like the window, a part excludes its start and includes its end.
    """
    length = (window.end - window.start) // parts
    ends = [bisect_right(instants, window.start + part * length) for part in range(parts + 1)]
    return tuple(
        sum(players[first:last]) / (last - first) if first < last else None
        for first, last in pairwise(ends)
    )
