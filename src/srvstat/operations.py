"""The questions of the contract, answered. Every door to an answer leads through here."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from srvstat.contract.errors import ServerNotFoundError
from srvstat.contract.ranges import DAY_MS, Range, Window, window_of
from srvstat.contract.requests import NAMESPACES, CompareRequest, ServerReference
from srvstat.contract.responses import (
    CompareResponse,
    GrowthFields,
    ServerResponse,
    ServerResult,
)
from srvstat.snapshot.read import SnapshotFile, StoredServer
from srvstat.stats import Statistics

if TYPE_CHECKING:
    from srvstat.contract.views import ComparisonView, ServerDetailView

_CELLS: dict[Range, int] = {"24h": 24, "7d": 28, "30d": 30, "90d": 30, "1y": 30}
"""How many cells a row of a table shows of each range."""


def get_server(snapshot: SnapshotFile, request: ServerReference) -> ServerResponse:
    """Answer Get Server (specification, section 4.1).

    Raises ServerNotFoundError, SnapshotError.
    """
    return ServerResponse(data=snapshot.detail(_resolve(snapshot, request)).server)


def compare(
    snapshot: SnapshotFile, request: CompareRequest, *, at: int | None = None
) -> CompareResponse:
    """Answer Compare Servers (specification, section 4.2).

    `at`, in Unix milliseconds, takes the place of the snapshot's own as_of (D3).

    Raises ServerNotFoundError, SnapshotError.
    """
    return _comparison(snapshot, request, _window(snapshot, request, at))[0]


def view_server(snapshot: SnapshotFile, request: ServerReference) -> "ServerDetailView":
    """Answer Get Server with the instants that a table shows beside it."""
    from srvstat.contract.views import ServerDetailView  # noqa: PLC0415 - only for a table

    detail = snapshot.detail(_resolve(snapshot, request))
    return ServerDetailView(
        detail.server,
        snapshot.as_of,
        detail.first_seen_at,
        detail.updated_at,
        detail.current_is_stand_in,
    )


def view_comparison(
    snapshot: SnapshotFile, request: CompareRequest, *, at: int | None = None
) -> "ComparisonView":
    """Answer Compare Servers with the names and the course of the range that a table shows."""
    from srvstat.contract.views import ComparisonView, ServerView  # noqa: PLC0415 - only for a table

    window = _window(snapshot, request, at)
    response, servers = _comparison(snapshot, request, window)
    span = DAY_MS // 24 if request.range == "24h" else DAY_MS
    return ComparisonView(
        response,
        tuple(
            ServerView(
                result,
                server.hostname,
                _averages(snapshot, server, window, _CELLS[request.range]),
                len(snapshot.averages(server.key, window, span)),
                snapshot.last_observed_at(server.key, window.end),
            )
            for result, server in zip(response.data, servers, strict=True)
        ),
        window,
        snapshot.as_of,
        span,
    )


def _window(snapshot: SnapshotFile, request: CompareRequest, at: int | None) -> Window:
    return window_of(request.range, snapshot.as_of if at is None else at)


def _comparison(
    snapshot: SnapshotFile, request: CompareRequest, window: Window
) -> tuple[CompareResponse, list[StoredServer]]:
    servers = [
        _resolve(snapshot, reference, f"servers[{position}]: ")
        for position, reference in enumerate(request.servers)
    ]
    figures = snapshot.statistics([server.key for server in servers], window)
    results = tuple(
        _result(server, request.range, statistics)
        for server, statistics in zip(servers, figures, strict=True)
    )
    return CompareResponse(range=request.range, data=results), servers


def suggestion(snapshot: SnapshotFile, references: Iterable[ServerReference]) -> str | None:
    """Return what may have been meant by the first reference to no server, for a person to read."""
    missing = next(one for one in references if snapshot.find(one.by, one.identifier) is None)
    for namespace in NAMESPACES:
        if namespace != missing.by and snapshot.find(namespace, missing.identifier):
            return f"did you mean {namespace}:{missing.identifier}?"
    # Imported here: only a failed look-up needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    known = {name.lower(): name for name in snapshot.identifiers(missing.by)}
    near = get_close_matches(missing.identifier.lower(), known)
    return f"the nearest: {', '.join(known[name] for name in near)}" if near else None


def _resolve(snapshot: SnapshotFile, reference: ServerReference, place: str = "") -> StoredServer:
    server = snapshot.find(reference.by, reference.identifier)
    if server is None:
        raise ServerNotFoundError(f"{place}no {reference.by} {reference.identifier}")
    return server


def _result(server: StoredServer, range: Range, figures: Statistics) -> ServerResult:
    return ServerResult(
        serverId=server.id,
        cfxId=server.cfx_id,
        range=range,
        currentPlayers=server.players_current,
        averagePlayers=figures.mean,
        medianPlayers=figures.median,
        peakPlayers=figures.peak,
        lowestPlayers=figures.lowest,
        growth=GrowthFields(players=figures.growth.players, percentage=figures.growth.percentage),
        sampleCount=figures.observations,
    )


def _averages(
    snapshot: SnapshotFile, server: StoredServer, window: Window, cells: int
) -> tuple[float | None, ...]:
    averages = snapshot.averages(server.key, window, (window.end - window.start) // cells)
    return tuple(averages.get(cell) for cell in range(cells))
