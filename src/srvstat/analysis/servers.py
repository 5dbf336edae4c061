"""Describe servers and snapshots."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import nsmallest
from typing import Any

from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.statistics import compare_averages, compute_stats, find_current, find_earlier
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.responses import ServerResult
from srvstat.contract.windows import BEFORE_ALL, Window, find_window
from srvstat.documents.analysis import ServerStatistics, Stats
from srvstat.documents.document import GrowthPart, remove_color_codes
from srvstat.documents.snapshot import ListedServer, Servers, ServerTable, SnapshotInfo, SortKey
from srvstat.operations.answers import compare, resolve_servers
from srvstat.snapshot.read import observations
from srvstat.snapshot.read.file import read_texts
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_totals
from srvstat.snapshot.rows import ServerRow

_SORT_VALUES: dict[SortKey, Callable[[Snapshot, ServerRow], Any]] = {
    "id": lambda *_: None,
    "hostname": lambda _, server: remove_color_codes(server.hostname).casefold() or None,
    "game": lambda _, server: server.game.casefold() or None,
    "region": lambda _, server: server.region.casefold() or None,
    "observations": lambda _, server: -server.observation_count,
    "last-seen": lambda _, server: _negate(server.last_observed_at),
    "coverage": lambda snapshot, one: _negate(_find_coverage(_compute_figures(snapshot, one))),
    "current": lambda snapshot, server: _negate(find_current(server, snapshot)),
}


def list_servers(
    snapshot: Snapshot, wanted: FilterOptions, *, sort: SortKey = "id", limit: int | None = None
) -> Servers:
    """Return the servers that match a filter, at most `limit`. Verifies all servers.

    Texts are sorted in ascending order, numbers and times in descending order, and ties by id.
    Servers without the value are last; for `current`, also silent servers.

    Raises SnapshotError if data are damaged.
    """
    matched = 0

    def rank_matches() -> Iterator[tuple[tuple[bool, Any, str], ServerRow]]:
        nonlocal matched
        for server in MatchingServers(snapshot, wanted):
            matched += 1
            value = _SORT_VALUES[sort](snapshot, server)
            yield (value is None, value, server.id), server

    with snapshot.convert_decode_errors("the servers"):
        if limit is None:
            # Keep only the listed fields; whole rows take more memory.
            ranked = sorted((key, describe_listed(snapshot, one)) for key, one in rank_matches())
            listed = [server for _, server in ranked]
        else:
            # Observations are read only for these servers.
            chosen = nsmallest(limit, rank_matches())
            listed = [describe_listed(snapshot, server) for _, server in chosen]
    return Servers(
        as_of=snapshot.as_of,
        root=snapshot.root,
        hold=snapshot.is_held,
        matched=matched,
        servers=(*listed,),
    )


def describe_listed(snapshot: Snapshot, server: ServerRow) -> ListedServer:
    """Describe a server for a list. Raises SnapshotError if data are damaged."""
    figures = _compute_figures(snapshot, server)
    interval = figures.usual_interval
    return ListedServer(
        server.id,
        server.cfx_id,
        server.hostname,
        server.game or None,
        server.region,
        bool(server.offline),
        server.players_current,
        server.observation_count,
        server.first_observed_at,
        server.last_observed_at,
        interval and interval / 1000,
        _find_coverage(figures),
        server.source_id,
        read_texts(server.other_source_ids),
        tuple(read_texts(server.completed)),
    )


def _compute_figures(snapshot: Snapshot, server: ServerRow) -> observations.WindowFigures:
    """Return the statistics of all observations of a server, up to the as-of time.

    Raises SnapshotError if data are damaged.
    """
    window = Window(BEFORE_ALL, max(snapshot.as_of, server.last_observed_at or 0))
    return observations.compute_figures(snapshot, server, window)


def _find_coverage(figures: observations.WindowFigures) -> float | None:
    is_held = isinstance(figures, observations.HeldFigures)
    return figures.coverage if is_held or figures.usual_interval is not None else None


def _negate(value: float | None) -> float | None:
    return None if value is None else -value


def describe_snapshot(
    snapshot: Snapshot, wanted: FilterOptions, *, limit: int | None
) -> SnapshotInfo:
    """Return the totals of a snapshot, and its servers. Verifies all rows of the servers.

    The list contains the servers that match a filter, at most `limit`.

    Raises SnapshotError if data are damaged.
    """
    games: Counter[str] = Counter()
    completed: Counter[str] = Counter()
    fallbacks = matched = 0
    listed: list[ListedServer] = []
    with snapshot.convert_decode_errors("the servers"):
        for server in snapshot.iter_servers():
            games.update(filter(None, [server.game]))
            fallbacks += server.current_is_fallback
            completed.update(read_texts(server.completed))
            if wanted.matches(server, snapshot):
                matched += 1
                if limit is None or matched <= limit:
                    listed.append(describe_listed(snapshot, server))
    row = snapshot.file_row
    return SnapshotInfo(
        as_of=snapshot.as_of,
        first_observed_at=row.first_observed_at,
        last_observed_at=row.last_observed_at,
        servers=row.server_count,
        observations=row.observation_count,
        root=snapshot.root,
        parent_root=snapshot.parent_root,
        covered_from=snapshot.covered_from,
        games=dict(sorted(games.items())),
        fallbacks=fallbacks,
        completed=dict(sorted(completed.items())),
        sources=snapshot.sources,
        reading=snapshot.reading,
        case=snapshot.case,
        repeated=row.repeated,
        conflicting=row.conflicting,
        rejected=row.rejected,
        shards=snapshot.shards,
        matched=matched,
        identifiers=tuple(listed),
    )


def describe_server(
    snapshot: Snapshot, request: ServerReference, *, at: int | None = None
) -> ServerTable:
    """Return the response of Get Server for a table, with the last observation up to `at`.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError for an unknown server, NotInBundleError if a bundle lacks it, and
    SnapshotError if data are damaged.
    """
    (server,) = resolve_servers(snapshot, [request])
    detail = snapshot.get_detail(server)
    as_of = snapshot.as_of if at is None else at
    return ServerTable(
        detail,
        as_of,
        snapshot.as_of,
        observations.find_last_observed_at(snapshot, server, as_of),
        observations.find_last_observed_at(snapshot, server, snapshot.as_of),
        server.first_seen_at,
        server.updated_at,
        bool(server.current_is_fallback),
        snapshot.covered_from,
        server.source_id,
        read_texts(server.other_source_ids),
        read_texts(server.completed),
        snapshot.is_held,
    )


def describe_comparison(
    snapshot: Snapshot, request: CompareRequest, *, at: int | None = None
) -> Stats:
    """Return the response of Compare Servers for a table, with the changes of the averages.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError for an unknown server, NotInBundleError if a bundle lacks a server or
    a part of the window, and SnapshotError if data are damaged.
    """
    response = compare(snapshot, request, at=at)
    window = find_window(request.range, snapshot.as_of if at is None else at)
    servers = resolve_servers(snapshot, request.servers)
    stats = compute_stats(Question(snapshot, servers, window), has_cells=True)
    parts = zip(servers, stats.servers, response.data, strict=True)
    compared = tuple(_replace_figures(snapshot, window, *part) for part in parts)
    return stats.model_copy(update={"servers": compared, "is_answer": True})


def _replace_figures(
    snapshot: Snapshot, window: Window, server: ServerRow, part: ServerStatistics, api: ServerResult
) -> ServerStatistics:
    """Return the API's statistics, which are not time-weighted."""
    change = part.change
    if change is not None and snapshot.is_held:
        windows = [*find_earlier(snapshot, window), window]
        totals = [compute_window_totals(snapshot, [server], one)[0] for one in windows]
        has_counts = all(count for count, _ in totals)
        change = None
        if has_counts:
            (count, total), (later_count, later_total) = totals
            change = compare_averages(total, count, later_total, later_count)
    return replace(
        part,
        current_players=api.current_players,
        average_players=api.average_players,
        median_players=api.median_players,
        peak_players=api.peak_players,
        lowest_players=api.lowest_players,
        growth=GrowthPart(api.growth.players, api.growth.percentage),
        sample_count=api.sample_count,
        change=change,
    )
