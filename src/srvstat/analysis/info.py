"""Describe a snapshot: its totals and its servers."""

from collections import Counter

from srvstat.analysis.selection import ServerFilter
from srvstat.analysis.server_list import describe_listed
from srvstat.documents.servers import ListedServer, SnapshotInfo
from srvstat.snapshot.read.header import read_texts
from srvstat.snapshot.read.snapshot import Snapshot


def describe_snapshot(
    snapshot: Snapshot, wanted: ServerFilter | None = None, *, limit: int | None = None
) -> SnapshotInfo:
    """Return the totals of a snapshot, and its servers. Verifies all rows of the servers.

    The list has the servers that match a filter, at most `limit` of them.

    Raises SnapshotError.
    """
    games: Counter[str] = Counter()
    completed: Counter[str] = Counter()
    fallbacks = matched = 0
    listed: list[ListedServer] = []
    with snapshot.convert_decode_errors("the servers"):
        for server in snapshot.iter_servers():
            games[server.game] += 1
            fallbacks += server.current_is_fallback
            completed.update(read_texts(server.completed))
            if wanted is None or wanted.matches(server):
                matched += 1
                if limit is None or matched <= limit:
                    listed.append(describe_listed(server, snapshot.as_of))
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
        completed=dict(sorted(completed.items())),
        sources=totals.sources,
        repeated=totals.repeated,
        conflicting=totals.conflicting,
        rejected=totals.rejected,
        shards=snapshot.shards,
        matched=matched,
        identifiers=tuple(listed),
    )
