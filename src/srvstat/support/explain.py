"""Explain a response: derive the operands of each number from the observations themselves."""

import numpy as np

from srvstat.contract import __version__, wire
from srvstat.contract.arrays import find_ranks
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.stats import Statistics, compute_statistics, find_middle_ranks
from srvstat.contract.time import LATEST
from srvstat.contract.windows import BEFORE_ALL, Window, find_window
from srvstat.documents import support as documents
from srvstat.documents.document import GapPart, WindowPart
from srvstat.documents.support import ExplainedObservation, Explanation, ServerExplanation
from srvstat.operations.answers import compare, find_whole_window, get_server, resolve_servers
from srvstat.snapshot.read.observations import WindowFigures, compute_figures, find_gaps
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics
from srvstat.snapshot.rows import ServerRow

_MAX_GAPS = 5


def explain(
    snapshot: Snapshot, request: ServerReference | CompareRequest, at: int | None
) -> Explanation:
    """Answer a request, and explain the answer and the observations of its servers.

    `at`, in Unix milliseconds, replaces the snapshot's own as_of; for Get Server, only the as_of of
    the observations.

    Raises UnknownServerError for an unknown server, and SnapshotError if data are damaged or the
    statistics contradict the observations.
    """
    end = snapshot.as_of if at is None else at
    if isinstance(request, CompareRequest):
        references, length = request.servers, request.range
        answer, window = compare(snapshot, request, at=at).to_json(), find_window(length, end)
    else:
        references, length = (request,), None
        answer, window = get_server(snapshot, request).to_json(), find_whole_window(snapshot, end)
    row = snapshot.file_row
    is_whole = length is None and window.start == BEFORE_ALL
    servers = resolve_servers(snapshot, references)
    found = compute_window_statistics(snapshot, servers, window)
    not_kept = {name: getattr(row, name) for name in documents.BuildCounts.model_fields}
    return Explanation(
        as_of=window.end,
        root=snapshot.root,
        hold=snapshot.is_held,
        snapshot_as_of=snapshot.as_of,
        covered_from=snapshot.covered_from,
        program_version=__version__,
        range=length,
        not_kept=documents.BuildCounts(**not_kept),
        servers=tuple(
            _explain_figures(snapshot, server, window, None if is_whole else window.start, figures)
            for server, figures in zip(servers, found, strict=True)
        ),
        answer=wire.decode(answer),
    )


def _explain_figures(
    snapshot: Snapshot, server: ServerRow, window: Window, start: int | None, statistics: Statistics
) -> ServerExplanation:
    """Explain the statistics of a window. `start` is None for all observations up to the end.

    Raises SnapshotError if they are not the statistics of the window's observations.
    """
    last = _find_last_in_snapshot(snapshot, server)
    lasting = _read_figures(snapshot, server, window, last, statistics)
    # The API's statistics describe observations, even if counts are held.
    figures = WindowFigures(lasting.observations, window)
    players, peak, lowest = figures.observations.players, figures.peak, figures.lowest
    usual, length = lasting.usual_interval, None if start is None else window.end - start
    edges = np.append(figures.observations.instants, window.end)
    edges = edges if start is None else np.insert(edges, 0, start)
    gaps = [] if usual is None else find_gaps(edges, usual)
    return ServerExplanation(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        current_players=server.players_current,
        current_is_fallback=bool(server.current_is_fallback),
        first_in_snapshot_at=server.first_observed_at,
        last_in_snapshot=last,
        window=WindowPart(from_=start, to=window.end),
        sample_count=figures.count,
        sum=figures.total,
        first=_get_observation(figures, 0),
        last=_get_observation(figures, -1),
        middle=_find_middle(figures),
        peak=peak and documents.ExtremeValue(players=peak.players, first_at=peak.first_at),
        lowest=lowest and documents.ExtremeValue(players=lowest.players, first_at=lowest.first_at),
        growth=(
            documents.GrowthOperands(from_=int(players[0]), to=int(players[-1]))
            if len(players) > 1
            else None
        ),
        usual_interval_seconds=None if usual is None else usual / 1000,
        expected_count=2 * length // int(2 * usual) if length and usual else None,
        coverage=lasting.coverage if length and (usual or snapshot.is_held) else None,
        gap_count=len(gaps),
        gaps=tuple(GapPart(from_=first, to=last) for first, last in gaps[:_MAX_GAPS]),
        time_weighted_average=lasting.weighted_mean,
        has_uneven_intervals=usual is not None and figures.has_uneven_intervals,
    )


def _find_last_in_snapshot(snapshot: Snapshot, server: ServerRow) -> ExplainedObservation | None:
    """Return the last observation stored in a server's row, or None if there is none.

    Raises SnapshotError if the row contradicts itself.
    """
    first, last, players = server.first_observed_at, server.last_observed_at, server.last_players
    if first is None and last is None and players is None:
        return None
    if first is None or last is None or players is None or not 0 <= first <= last <= LATEST:
        raise snapshot.build_damage_error(server.title)
    return ExplainedObservation(observed_at=last, players=players)


def _read_figures(
    snapshot: Snapshot,
    server: ServerRow,
    window: Window,
    last_in_snapshot: ExplainedObservation | None,
    statistics: Statistics,
) -> WindowFigures:
    """Return the statistics of a window's observations.

    Raises SnapshotError if they contradict the server's row or `statistics`, because a forged file
    with matching digests can contain anything.
    """
    figures = compute_figures(snapshot, server, window)
    is_last_within = last_in_snapshot and window.includes(last_in_snapshot.observed_at)
    is_last_wrong = is_last_within and _get_observation(figures, -1) != last_in_snapshot
    if is_last_wrong or compute_statistics(figures.observations.players.tolist()) != statistics:
        raise snapshot.build_damage_error(f"the observations of {server.title}")
    fallback = last_in_snapshot.players if last_in_snapshot else 0
    # A server's last observation can be before the start of a bundle.
    is_known = last_in_snapshot or snapshot.covered_from is None
    if server.current_is_fallback and is_known and server.players_current != fallback:
        raise snapshot.build_damage_error(server.title)
    return figures


def _get_observation(figures: WindowFigures, position: int) -> ExplainedObservation | None:
    """Return the observation at a position, or None if there are no observations."""
    if not figures.count:
        return None
    instants, players = figures.observations
    return ExplainedObservation(observed_at=int(instants[position]), players=int(players[position]))


def _find_middle(figures: WindowFigures) -> tuple[documents.RankedValue, ...]:
    if not figures.count:
        return ()
    ranks = find_middle_ranks(figures.count)
    middle = dict(zip(ranks, find_ranks(figures.observations.players, *ranks), strict=True))
    return tuple(
        documents.RankedValue(rank=rank + 1, players=value) for rank, value in middle.items()
    )
