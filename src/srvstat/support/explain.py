"""Explain an answer: the operands of each of its figures, from the observations themselves."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.instants import LATEST
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.responses import Response
from srvstat.contract.windows import BEFORE_ALL, Range, Window, find_window
from srvstat.documents.document import GapPart, WindowPart
from srvstat.documents.support import (
    BuildCounts,
    ExplainedObservation,
    Explanation,
    ExtremeValue,
    GrowthOperands,
    RankedValue,
    ServerExplanation,
)
from srvstat.operations import compare, find_whole_window, get_server, resolve_servers
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import (
    Statistics,
    compute_coverage,
    compute_durations,
    compute_statistics,
    compute_usual_interval,
    compute_weighted_mean,
    count_intervals,
    find_gaps,
    find_middle_ranks,
    has_uneven_intervals,
)
from srvstat.version import __version__

_MAX_GAPS = 5


def explain_comparison(snapshot: Snapshot, request: CompareRequest, at: int | None) -> Explanation:
    """Answer Compare Servers, and explain each figure of the answer.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of.

    Raises UnknownServerError; SnapshotError, also if the figures contradict the observations.
    """
    response = compare(snapshot, request, at=at)
    as_of = snapshot.as_of if at is None else at
    window = find_window(request.range, as_of)
    servers = resolve_servers(snapshot, request.servers)
    explained = tuple(
        _explain_figures(snapshot, server, window, window.start, statistics)
        for server, statistics in zip(
            servers, snapshot.compute_statistics(servers, window), strict=True
        )
    )
    return _build_explanation(snapshot, as_of, request.range, explained, response)


def explain_server(snapshot: Snapshot, reference: ServerReference, at: int | None) -> Explanation:
    """Answer Get Server, and explain its current count and the observations of the server.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of for the observations.

    Raises UnknownServerError; SnapshotError, also if the observations contradict its totals.
    """
    response = get_server(snapshot, reference)
    as_of = snapshot.as_of if at is None else at
    window = find_whole_window(snapshot, as_of)
    start = None if window.start == BEFORE_ALL else window.start
    (server,) = resolve_servers(snapshot, [reference])
    (statistics,) = snapshot.compute_statistics([server], window)
    explained = _explain_figures(snapshot, server, window, start, statistics)
    return _build_explanation(snapshot, as_of, None, (explained,), response)


def _build_explanation(
    snapshot: Snapshot,
    as_of: int,
    range: Range | None,
    servers: tuple[ServerExplanation, ...],
    response: Response,
) -> Explanation:
    totals = snapshot.read_totals()
    return Explanation(
        as_of=as_of,
        root=snapshot.root,
        snapshot_as_of=snapshot.as_of,
        covered_from=snapshot.covered_from,
        program_version=__version__,
        range=range,
        not_kept=BuildCounts(
            repeated=totals.repeated, conflicting=totals.conflicting, rejected=totals.rejected
        ),
        servers=servers,
        answer=wire.decode(response.to_json()),
    )


class _Observed(NamedTuple):
    """The observations of a server in a window, in ascending order."""

    instants: list[int]
    players: list[int]

    def get(self, position: int) -> ExplainedObservation | None:
        """Return the observation at a position; None without observations."""
        if not self.instants:
            return None
        return ExplainedObservation(
            observed_at=self.instants[position], players=self.players[position]
        )

    def find_first(self, players: int | None) -> ExtremeValue | None:
        """Return a player count with the first instant that has it; None for None."""
        if players is None:
            return None
        return ExtremeValue(players=players, first_at=self.instants[self.players.index(players)])


def _explain_figures(
    snapshot: Snapshot,
    server: ServerRow,
    window: Window,
    start: int | None,
    statistics: Statistics,
) -> ServerExplanation:
    """Explain the statistics of a window; `start` is None if all observations up to its end count.

    Raises SnapshotError if they are not the statistics of the window's observations.
    """
    last = _find_last_in_snapshot(snapshot, server)
    observed = _read_observed(snapshot, server, window, last, statistics)
    players = observed.players
    return ServerExplanation(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        current_players=server.players_current,
        current_is_fallback=bool(server.current_is_fallback),
        first_in_snapshot_at=server.first_observed_at,
        last_in_snapshot=last,
        window=WindowPart(from_=start, to=window.end),
        sample_count=len(players),
        sum=sum(players),
        first=observed.get(0),
        last=observed.get(-1),
        middle=_find_middle(players),
        peak=observed.find_first(statistics.peak),
        lowest=observed.find_first(statistics.lowest),
        growth=GrowthOperands(from_=players[0], to=players[-1]) if len(players) > 1 else None,
        **_explain_intervals(observed, start, window.end),
    )


def _find_last_in_snapshot(snapshot: Snapshot, server: ServerRow) -> ExplainedObservation | None:
    """Return the last observation of a server, as its row has it; None without any.

    Raises SnapshotError if the row contradicts itself.
    """
    first, last, players = server.first_observed_at, server.last_observed_at, server.last_players
    if first is None and last is None and players is None:
        return None
    if first is None or last is None or players is None or not 0 <= first <= last <= LATEST:
        raise snapshot.build_damage_error(server.title)
    return ExplainedObservation(observed_at=last, players=players)


def _read_observed(
    snapshot: Snapshot,
    server: ServerRow,
    window: Window,
    last_in_snapshot: ExplainedObservation | None,
    statistics: Statistics,
) -> _Observed:
    """Return a window's observations.

    Raises SnapshotError if they contradict the row of the server or the
    statistics: a forged file with matching digests can hold anything.
    """
    observed = _Observed(*snapshot.read_observations(server, window))
    is_last_within = last_in_snapshot and window.start < last_in_snapshot.observed_at <= window.end
    is_consistent = compute_statistics(observed.players) == statistics
    if not is_consistent or (is_last_within and observed.get(-1) != last_in_snapshot):
        raise snapshot.build_damage_error(f"the days of {server.title}")
    fallback = last_in_snapshot.players if last_in_snapshot else 0
    # The last observation of a server can be earlier than a bundle.
    is_known = last_in_snapshot or snapshot.covered_from is None
    if server.current_is_fallback and is_known and server.players_current != fallback:
        raise snapshot.build_damage_error(server.title)
    return observed


def _find_middle(players: Sequence[int]) -> tuple[RankedValue, ...]:
    if not players:
        return ()
    ascending = sorted(players)
    ranks = sorted(set(find_middle_ranks(len(players))))
    return tuple(RankedValue(rank=rank + 1, players=ascending[rank]) for rank in ranks)


def _explain_intervals(observed: _Observed, start: int | None, end: int) -> dict[str, Any]:
    """Return the fields that depend on the distances between observations."""
    instants, players = observed
    usual = compute_usual_interval(instants) if instants else None
    durations = compute_durations(instants, end) if instants else []
    edges = chain(() if start is None else (start,), instants, (end,))
    gaps = [] if usual is None else find_gaps(edges, usual)
    length = None if start is None else end - start
    return {
        "usual_interval_seconds": None if usual is None else usual / 1000,
        "expected_count": count_intervals(length, usual) if length and usual else None,
        "coverage": compute_coverage(durations, length) if length and usual else None,
        "gap_count": len(gaps),
        "gaps": tuple(GapPart(from_=first, to=last) for first, last in gaps[:_MAX_GAPS]),
        "time_weighted_average": compute_weighted_mean(players, durations) if instants else None,
        "has_uneven_intervals": usual is not None
        and has_uneven_intervals(players, durations, usual),
    }
