"""Count how often servers had how many players: the document `distribution`."""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from srvstat.analysis.statistics import build_window_part
from srvstat.contract.ranges import Window
from srvstat.documents.analysis import Distribution, ServerDistribution
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import compute_quantiles
from srvstat.snapshot.read.snapshot import Snapshot

MOST_BINS = 40

_QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def compute_distribution(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    most_bins: int = MOST_BINS,
) -> Distribution:
    """Return the observations of servers in at most `most_bins` bins of players, in their order.

    The bins are 1, 2, 5, 10, 20, … players wide, and begin at a multiple of their width. Needs the
    memory for the players of all observations.

    Raises SnapshotError.
    """
    ranked = [_rank_players(snapshot, server, window) for server in servers]
    lowest = min((players[0] for players in ranked if players), default=0)
    peak = max((players[-1] for players in ranked if players), default=0)
    width = _choose_width(lowest, peak, most_bins)
    first = lowest // width * width
    edges = range(first, peak + width + 1, width)
    return Distribution(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        first_players=first,
        bin_players=width,
        servers=tuple(
            _describe_server(server, players, edges)
            for server, players in zip(servers, ranked, strict=True)
        ),
    )


def _rank_players(snapshot: Snapshot, server: ServerRow, window: Window) -> list[int]:
    # The players of one step take less time than observations, whose instants are not needed.
    (first, last), players = snapshot.read_steps(server, (window.start, window.end))
    return sorted(players[first:last])


def _choose_width(lowest: int, peak: int, most_bins: int) -> int:
    """Return the smallest width with which `most_bins` bins cover all player counts."""
    scale = 1
    while True:
        for width in (scale, 2 * scale, 5 * scale):
            if peak // width - lowest // width < most_bins:
                return width
        scale *= 10


def _describe_server(
    server: ServerRow, ranked: Sequence[int], edges: Sequence[int]
) -> ServerDistribution:
    """Return the distribution of player counts, given in ascending order."""
    quartiles = compute_quantiles(len(ranked), ranked.__getitem__, _QUARTILES) if ranked else None
    lower, median, upper = quartiles or (None, None, None)
    positions = [bisect_left(ranked, edge) for edge in edges]
    return ServerDistribution(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=len(ranked),
        lowest_players=ranked[0] if ranked else None,
        lower_quartile=lower,
        median_players=median,
        upper_quartile=upper,
        peak_players=ranked[-1] if ranked else None,
        counts=tuple(last - first for first, last in pairwise(positions)),
    )
