"""List the servers of a snapshot: those that match a filter, and its totals."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import Any

from srvstat.analysis.figures import compute_figures
from srvstat.analysis.selection import FilterOptions, find_matches
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.document import remove_color_codes
from srvstat.documents.servers import ListedServer, Servers, SnapshotInfo, SortKey, is_silent
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.header import read_texts
from srvstat.snapshot.read.snapshot import Snapshot

_HALF_MS_PER_SECOND = 2_000


_SORT_VALUES: dict[SortKey, Callable[[ListedServer], Any]] = {
    "hostname": lambda server: remove_color_codes(server.hostname).casefold() or None,
    "game": lambda server: server.game.casefold() or None,
    "region": lambda server: server.region.casefold() or None,
    "observations": lambda server: -server.sample_count,
    "last-seen": lambda server: _negate(server.last_observed_at),
    "coverage": lambda server: _negate(server.coverage),
    "current": lambda server: -server.current_players,
}


def list_servers(
    snapshot: Snapshot,
    wanted: FilterOptions,
    *,
    sort: SortKey = "id",
    limit: int | None = None,
) -> Servers:
    """Return the servers that match a filter, at most `limit` of them. Verifies all servers.

    Texts are sorted in ascending order, numbers and instants in descending order, ties by id.
    Servers without the value are last; by `current`, also silent ones.

    Raises SnapshotError.
    """
    matched = 0

    def count_matches() -> Iterator[ListedServer]:
        nonlocal matched
        for server in find_matches(snapshot, wanted):
            matched += 1
            if sort != "id" or limit is None or matched <= limit:
                yield describe_listed(snapshot, server)

    with snapshot.convert_decode_errors("the servers"):
        listed = tuple(_sort_servers(count_matches(), sort, limit, snapshot.as_of))
    return Servers(as_of=snapshot.as_of, root=snapshot.root, matched=matched, servers=listed)


def describe_listed(snapshot: Snapshot, server: ServerRow) -> ListedServer:
    """Return a server for a list.

    Raises SnapshotError.
    """
    end = max(snapshot.as_of, server.last_observed_at or 0)
    (figures,) = compute_figures(snapshot, server, [Window(BEFORE_ALL, end)])
    usual = figures.usual_interval
    return ListedServer(
        server.id,
        server.cfx_id,
        server.hostname,
        server.game,
        server.region,
        bool(server.offline),
        server.players_current,
        server.observation_count,
        server.first_observed_at,
        server.last_observed_at,
        None if usual is None else int(2 * usual) / _HALF_MS_PER_SECOND,
        None if usual is None else figures.coverage,
        server.source_id,
        tuple(read_texts(server.completed)),
    )


def _sort_servers(
    servers: Iterator[ListedServer], sort: SortKey, limit: int | None, as_of: int
) -> Iterable[ListedServer]:
    if sort == "id":
        return servers
    read_value = _SORT_VALUES[sort]

    def build_key(server: ListedServer) -> tuple[bool, Any, str]:
        is_last = sort == "current" and is_silent(server.last_observed_at, as_of)
        value = None if is_last else read_value(server)
        return value is None, value, server.id

    if limit is None:
        return sorted(servers, key=build_key)
    return nsmallest(limit, servers, key=build_key)


def _negate(value: float | None) -> float | None:
    return None if value is None else -value


def describe_snapshot(
    snapshot: Snapshot, wanted: FilterOptions | None = None, *, limit: int | None = None
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
            if wanted is None or wanted.matches(server, snapshot.as_of):
                matched += 1
                if limit is None or matched <= limit:
                    listed.append(describe_listed(snapshot, server))
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
