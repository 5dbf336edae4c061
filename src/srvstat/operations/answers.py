"""Compute the API's two responses, for the command line, the service and the Python API."""

from collections.abc import Sequence

from srvstat.contract import responses
from srvstat.contract.errors import ServerNotFoundError, SnapshotError
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.time import format_instant
from srvstat.contract.windows import BEFORE_ALL, Range, Window, find_window
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics
from srvstat.snapshot.rows import ServerRow


class UnknownServerError(ServerNotFoundError):
    """The snapshot has no server for a reference."""

    def __init__(self, reference: ServerReference, place: str = "") -> None:
        super().__init__(f"{place}no server with {reference.by} {reference.identifier}")
        self.reference = reference


class NotInBundleError(SnapshotError):
    """The snapshot is a bundle that lacks the server or a part of the window.

    Only the bundle's parent shows whether the server or earlier observations exist.
    """


def get_server(snapshot: Snapshot, request: ServerReference) -> responses.ServerResponse:
    """Return the response of Get Server (specification, section 4.1).

    Raises UnknownServerError for an unknown server, NotInBundleError if the bundle lacks it, and
    SnapshotError if data are damaged.
    """
    (server,) = resolve_servers(snapshot, [request])
    return responses.ServerResponse(data=snapshot.get_detail(server))


def compare(
    snapshot: Snapshot, request: CompareRequest, *, at: int | None = None
) -> responses.CompareResponse:
    """Return the response of Compare Servers (specification, section 4.2).

    `at`, in Unix milliseconds, replaces the snapshot's own as_of (D3).

    Raises UnknownServerError for an unknown server, NotInBundleError if the bundle lacks a server
    or a part of the window, and SnapshotError if data are damaged.
    """
    results = compute_results(snapshot, request, request.servers, at=at)
    return responses.CompareResponse(range=request.range, data=tuple(results))


def compute_results(
    snapshot: Snapshot,
    request: CompareRequest,
    references: Sequence[ServerReference],
    *,
    at: int | None = None,
) -> list[responses.ServerResult]:
    """Compute the results of some of a request's servers, in the order of `references`.

    `at` and the errors are as in `compare`.
    """
    window = find_window(request.range, snapshot.as_of if at is None else at)
    check_coverage(snapshot, window)
    try:
        servers = resolve_servers(snapshot, references)
    except UnknownServerError as error:
        place = f"servers[{request.servers.index(error.reference)}]: "
        raise UnknownServerError(error.reference, place) from None
    return compute_server_results(snapshot, servers, request.range, at=window.end)


def compute_server_results(
    snapshot: Snapshot, servers: Sequence[ServerRow], range: Range, *, at: int
) -> list[responses.ServerResult]:
    """Compute the results of servers of a snapshot over a range, as of `at`.

    The caller checks that a bundle covers the window.

    Raises SnapshotError.
    """
    statistics = compute_window_statistics(snapshot, servers, find_window(range, at))
    return [
        responses.build_result(server.id, server.cfx_id, server.players_current, range, figures)
        for server, figures in zip(servers, statistics, strict=True)
    ]


def check_coverage(snapshot: Snapshot, window: Window) -> None:
    """Check that a bundle covers a window, even if the bundle lacks no observation of it.

    Raises NotInBundleError if the window begins before the bundle.
    """
    if snapshot.covered_from is not None and window.start < snapshot.covered_from:
        raise NotInBundleError(
            f"{snapshot.path}: a bundle that covers {format_instant(snapshot.covered_from)} and"
            f" later, but the window begins at {format_instant(window.start)}; use a shorter range,"
            " or the snapshot that the bundle comes from"
        )


def find_whole_window(snapshot: Snapshot, end: int) -> Window:
    """Return the window of all observations up to `end`, or of all that a bundle covers.

    Raises NotInBundleError if `end` is before the bundle.
    """
    if snapshot.covered_from is None:
        return Window(BEFORE_ALL, end)
    check_coverage(snapshot, Window(end, end))
    return Window.from_first(snapshot.covered_from, end)


def resolve_servers(snapshot: Snapshot, references: Sequence[ServerReference]) -> list[ServerRow]:
    """Return the server of each reference, in order.

    Raises UnknownServerError for the first unknown reference, or for a bundle NotInBundleError; and
    SnapshotError if data are damaged.
    """
    servers = []
    for reference, server in zip(references, snapshot.find_servers(references), strict=True):
        if server is None:
            raise build_unknown_error(snapshot, reference)
        servers.append(server)
    return servers


def build_unknown_error(
    snapshot: Snapshot, reference: ServerReference
) -> UnknownServerError | NotInBundleError:
    """Return the error for a reference to a server that the snapshot does not have."""
    if snapshot.parent_root is None:
        return UnknownServerError(reference)
    return NotInBundleError(
        f"{snapshot.path}: a bundle without {reference.by} {reference.identifier}; use the snapshot"
        " that the bundle comes from"
    )
