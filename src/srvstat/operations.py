"""The questions of the contract, answered. Every door to an answer leads through here."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

from srvstat.contract.errors import ServerNotFoundError
from srvstat.contract.ranges import DAY_MS, Range, Window, find_window
from srvstat.contract.requests import NAMESPACES, CompareRequest, Namespace, ServerReference
from srvstat.contract.responses import (
    CompareResponse,
    GrowthFields,
    ServerResponse,
    ServerResult,
)
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.stats import Statistics

if TYPE_CHECKING:
    from srvstat.documents.views import ComparisonView, ServerDetailView, ServerView

_CELLS: dict[Range, int] = {"24h": 24, "7d": 28, "30d": 30, "90d": 30, "1y": 30}
"""How many cells a row of a table shows of each range."""

_MOST_COMPARED = 12_000
"""How many characters of identifiers a hint is compared with, about; they take some 20 ms."""


def get_server(snapshot: SnapshotFile, request: ServerReference) -> ServerResponse:
    """Answer Get Server (specification, section 4.1).

    Raises ServerNotFoundError, SnapshotError.
    """
    (server,) = _resolve(snapshot, {0: request})
    return ServerResponse(data=snapshot.get_detail(server).server)


def compare(
    snapshot: SnapshotFile, request: CompareRequest, *, at: int | None = None
) -> CompareResponse:
    """Answer Compare Servers (specification, section 4.2).

    `at`, in Unix milliseconds, takes the place of the snapshot's own as_of (D3).

    Raises ServerNotFoundError, SnapshotError.
    """
    return _comparison(snapshot, request, _window(snapshot, request, at))[0]


def results(
    snapshot: SnapshotFile, request: CompareRequest, positions: Sequence[int]
) -> list[ServerResult]:
    """Answer a part of Compare Servers: the servers at some positions of the request.

    Raises ServerNotFoundError, SnapshotError.
    """
    return _results(snapshot, request, _window(snapshot, request, None), positions)[0]


def view_server(
    snapshot: SnapshotFile, request: ServerReference, *, at: int | None = None
) -> "ServerDetailView":
    """Answer Get Server with the instants that a table shows beside it."""
    from srvstat.documents.views import ServerDetailView  # noqa: PLC0415 - only for a table

    (server,) = _resolve(snapshot, {0: request})
    detail = snapshot.get_detail(server)
    as_of = snapshot.as_of if at is None else at
    return ServerDetailView(
        detail.server,
        as_of,
        snapshot.as_of,
        snapshot.find_last_observed_at(server, as_of),
        detail.first_seen_at,
        detail.updated_at,
        detail.current_is_fallback,
    )


def view_comparison(
    snapshot: SnapshotFile, request: CompareRequest, *, at: int | None = None
) -> "ComparisonView":
    """Answer Compare Servers with the names and the course of the range that a table shows."""
    from srvstat.documents.views import ComparisonView  # noqa: PLC0415 - only for a table

    window = _window(snapshot, request, at)
    response, servers = _comparison(snapshot, request, window)
    span = DAY_MS // 24 if request.range == "24h" else DAY_MS
    return ComparisonView(
        response,
        tuple(
            _server_view(snapshot, server, result, window, (window.end - window.start) // span)
            for result, server in zip(response.data, servers, strict=True)
        ),
        window,
        snapshot.as_of,
        span,
    )


def _server_view(
    snapshot: SnapshotFile, server: ServerRow, result: ServerResult, window: Window, spans: int
) -> "ServerView":
    from srvstat.documents.views import ServerView  # noqa: PLC0415 - only for a table

    instants, players = snapshot.read_observations(server, window)
    averages = _averages(instants, players, window, _CELLS[result.range])
    observed = _averages(instants, players, window, spans)
    last = instants[-1] if instants else snapshot.find_last_observed_at(server, window.end)
    return ServerView(
        result,
        server.hostname,
        averages,
        sum(average is not None for average in observed),
        players[0] if players else None,
        last,
    )


def _window(snapshot: SnapshotFile, request: CompareRequest, at: int | None) -> Window:
    return find_window(request.range, snapshot.as_of if at is None else at)


def _comparison(
    snapshot: SnapshotFile, request: CompareRequest, window: Window
) -> tuple[CompareResponse, list[ServerRow]]:
    positions = range(len(request.servers))
    found, servers = _results(snapshot, request, window, positions)
    return CompareResponse(range=request.range, data=tuple(found)), servers


def _results(
    snapshot: SnapshotFile, request: CompareRequest, window: Window, positions: Iterable[int]
) -> tuple[list[ServerResult], list[ServerRow]]:
    asked = {position: request.servers[position] for position in positions}
    servers = _resolve(snapshot, asked, "servers[{}]: ")
    figures = snapshot.compute_statistics(servers, window)
    found = [
        _result(server, request.range, statistics)
        for server, statistics in zip(servers, figures, strict=True)
    ]
    return found, servers


def suggest_servers(snapshot: SnapshotFile, references: Iterable[ServerReference]) -> str | None:
    """Return what may have been meant by the first reference to no server, for a person to read."""
    asked = list(references)
    missing = asked[snapshot.find_servers(asked).index(None)]
    for namespace in NAMESPACES:
        if namespace != missing.by and _exist(snapshot, namespace, [missing.identifier]):
            return f"did you mean {namespace}:{missing.identifier}?"
    # Imported here: only a failed look-up needs it.
    from difflib import get_close_matches  # noqa: PLC0415

    known = {name.lower(): name for name in _neighbours(snapshot, missing)}
    near = [known[name] for name in get_close_matches(missing.identifier.lower(), known)]
    near = _exist(snapshot, missing.by, near)
    return f"the nearest: {', '.join(near)}" if near else None


def _neighbours(snapshot: SnapshotFile, missing: ServerReference) -> list[str]:
    """Return the few identifiers before and after a missing one, in their order.

    Upper case comes before lower case, so its other spellings have other neighbours.
    """
    text = missing.identifier
    spellings = {text, text.lower(), text.upper()}
    most = _MOST_COMPARED // len(text) // (2 * len(spellings))
    found: set[str] = set()
    for spelling, backwards in product(spellings, (False, True)):
        around = snapshot.iter_identifiers(missing.by, spelling, backwards=backwards)
        found.update(islice(around, most))
    return sorted(found)


def _exist(snapshot: SnapshotFile, by: Namespace, identifiers: Iterable[str]) -> list[str]:
    """Return those of some identifiers that name a server."""
    return [name for name in identifiers if snapshot.has_identifier(by, name)]


def _resolve(
    snapshot: SnapshotFile, references: Mapping[int, ServerReference], place: str = ""
) -> list[ServerRow]:
    """Return the servers that references name; `place` tells where one stands in the request."""
    servers = []
    found = snapshot.find_servers(references.values())
    for (position, reference), server in zip(references.items(), found, strict=True):
        if server is None:
            missing = f"no {reference.by} {reference.identifier}"
            raise ServerNotFoundError(f"{place.format(position)}{missing}")
        servers.append(server)
    return servers


def _result(server: ServerRow, range: Range, figures: Statistics) -> ServerResult:
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
    instants: Sequence[int], players: Sequence[int], window: Window, parts: int
) -> tuple[float | None, ...]:
    """Return the average of each of the equal parts of a window; None where nothing was observed.

    Each part is closed at its end, as the window is.
    """
    length = (window.end - window.start) // parts
    ends = [bisect_right(instants, window.start + part * length) for part in range(parts + 1)]
    return tuple(
        sum(players[first:last]) / (last - first) if first < last else None
        for first, last in pairwise(ends)
    )
