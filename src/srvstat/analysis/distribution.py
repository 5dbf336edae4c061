"""Count how often servers had how many players: the document `distribution`."""

from collections.abc import Sequence
from fractions import Fraction

from srvstat.analysis.statistics import build_window_part
from srvstat.contract.ranges import Window
from srvstat.documents.distribution import Distribution, ServerDistribution
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import WindowFigures
from srvstat.snapshot.read.reader import SnapshotFile

MOST_BINS = 40

_QUARTILES = (Fraction(1, 4), Fraction(3, 4))


def compute_distribution(
    snapshot: SnapshotFile,
    servers: Sequence[ServerRow],
    window: Window,
    most_bins: int = MOST_BINS,
) -> Distribution:
    """Return the observations of servers in at most `most_bins` bins of players, in their order.

    The bins are 1, 2, 5, 10, 20, … players wide, and begin at a multiple of their width.

    Raises SnapshotError.
    """
    figures = snapshot.compute_figures(servers, window, _QUARTILES)
    observed = [one.statistics for one in figures if one.statistics.observations]
    lowest = min((one.lowest for one in observed if one.lowest is not None), default=0)
    peak = max((one.peak for one in observed if one.peak is not None), default=0)
    width = _choose_width(lowest, peak, most_bins)
    first = lowest // width
    bins = range(first, peak // width + 1)
    return Distribution(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        first_players=first * width,
        bin_players=width,
        servers=tuple(
            _describe_server(snapshot, server, window, one, width, bins)
            for server, one in zip(servers, figures, strict=True)
        ),
    )


def _choose_width(lowest: int, peak: int, most_bins: int) -> int:
    scale = 1
    while True:
        for width in (scale, 2 * scale, 5 * scale):
            if peak // width - lowest // width < most_bins:
                return width
        scale *= 10


def _describe_server(  # noqa: PLR0913, PLR0917 - all come from compute_distribution
    snapshot: SnapshotFile,
    server: ServerRow,
    window: Window,
    figures: WindowFigures,
    width: int,
    bins: range,
) -> ServerDistribution:
    _, players = snapshot.read_observations(server, window)
    counts = [0] * len(bins)
    for count in players:
        counts[count // width - bins.start] += 1
    lower, upper = figures.quantiles or (None, None)
    statistics = figures.statistics
    return ServerDistribution(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=statistics.observations,
        lowest_players=statistics.lowest,
        lower_quartile=lower,
        median_players=statistics.median,
        upper_quartile=upper,
        peak_players=statistics.peak,
        counts=tuple(counts),
    )
