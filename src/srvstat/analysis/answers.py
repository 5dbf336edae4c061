"""Describe the answers of the contract for tables: a server, and a comparison."""

from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis.figures import compute_figures, find_last_observed_at
from srvstat.analysis.history import describe_cells
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.steps import Steps, divide_window
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.responses import ServerResult
from srvstat.contract.time import DAY_MS, Range, find_window
from srvstat.documents.analysis import ComparedServer, Comparison
from srvstat.documents.servers import ServerTable
from srvstat.operations.answers import compare, resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.verified_rows import read_texts
from srvstat.snapshot.rows import ServerRow


def describe_server(
    snapshot: Snapshot, request: ServerReference, *, at: int | None = None
) -> ServerTable:
    """Answer Get Server, and find the last observation up to `at`.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError, NotInBundleError, SnapshotError.
    """
    (server,) = resolve_servers(snapshot, [request])
    detail = snapshot.get_detail(server)
    as_of = snapshot.as_of if at is None else at
    return ServerTable(
        detail,
        as_of,
        snapshot.as_of,
        find_last_observed_at(snapshot, server, as_of),
        find_last_observed_at(snapshot, server, snapshot.as_of),
        server.first_seen_at,
        server.updated_at,
        bool(server.current_is_fallback),
        snapshot.covered_from,
        server.source_id,
        read_texts(server.completed),
    )


_HOUR_MS = DAY_MS // 24

_CELL_STEPS: dict[Range, str] = {"24h": "1h", "7d": "6h", "30d": "day", "90d": "3d", "1y": "14d"}
"""The steps of the drawings, by range: about 30 fit beside the figures."""


def describe_comparison(
    snapshot: Snapshot, request: CompareRequest, *, at: int | None = None
) -> Comparison:
    """Answer Compare Servers, and add averages over the steps of the window.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError, NotInBundleError, SnapshotError.
    """
    response = compare(snapshot, request, at=at)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    span = _HOUR_MS if request.range == "24h" else DAY_MS
    servers = resolve_servers(snapshot, request.servers)
    step = parse_step(_CELL_STEPS[request.range])
    steps = divide_window(snapshot, servers, window, step, ZoneInfo("UTC"))
    compared = tuple(
        _describe_server(snapshot, server, result, steps, span)
        for result, server in zip(response.data, servers, strict=True)
    )
    return Comparison(response, compared, window, snapshot.as_of, step.name, span)


def _describe_server(
    snapshot: Snapshot, server: ServerRow, result: ServerResult, steps: Steps, span: int
) -> ComparedServer:
    window = steps.window
    (figures,) = compute_figures(snapshot, server, [window])
    observed = np.unique((window.end - figures.observations.instants) // span)
    return ComparedServer(
        result,
        server.hostname,
        tuple(describe_cells(snapshot, server, steps)),
        len(observed),
        figures.first,
        find_last_observed_at(snapshot, server, snapshot.as_of),
    )
