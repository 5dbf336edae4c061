"""Describe a snapshot: its totals and its servers."""

from collections import Counter

from srvstat.documents.snapshot_info import ListedServer, ServerList, SnapshotInfo
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile


def describe_snapshot(snapshot: SnapshotFile, *, list_all: bool) -> SnapshotInfo:
    """Return the totals and the servers of a snapshot. Verifies all rows of the servers.

    The list has the first servers for a table and, with `list_all`, all servers as JSON.

    Raises SnapshotError.
    """
    games: Counter[str] = Counter()
    fallbacks = 0
    listed = ServerList(keep_json=list_all)
    for server in snapshot.iter_servers():
        games[server.game] += 1
        fallbacks += server.current_is_fallback
        listed.append(_describe_server(server))
    totals = snapshot.read_totals()
    return SnapshotInfo(
        as_of=snapshot.as_of,
        first_observed_at=totals.first_observed_at,
        last_observed_at=totals.last_observed_at,
        servers=games.total(),
        observations=totals.observations,
        root=snapshot.root,
        parent_root=snapshot.parent_root,
        covered_from=snapshot.covered_from,
        games=dict(sorted(games.items())),
        fallbacks=fallbacks,
        sources=totals.sources,
        repeated=totals.repeated,
        conflicting=totals.conflicting,
        rejected=totals.rejected,
        identifiers=listed,
    )


def _describe_server(server: ServerRow) -> ListedServer:
    return ListedServer(
        id=server.id,
        cfx_id=server.cfx_id,
        game=server.game,
        hostname=server.hostname,
        observations=server.observation_count,
        first_observed_at=server.first_observed_at,
        last_observed_at=server.last_observed_at,
    )
