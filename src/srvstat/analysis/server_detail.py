"""Describe one server: the answer of Get Server, and when it was last observed."""

from srvstat.contract.requests import ServerReference
from srvstat.documents.servers import ServerTable
from srvstat.operations import resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot


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
        detail.server,
        as_of,
        snapshot.as_of,
        snapshot.find_last_observed_at(server, as_of),
        snapshot.find_last_observed_at(server, snapshot.as_of),
        detail.first_seen_at,
        detail.updated_at,
        detail.current_is_fallback,
        snapshot.covered_from,
        server.source_id,
        detail.completed,
    )
