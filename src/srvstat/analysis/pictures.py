"""Compute what pictures show: players over time, and how often servers had how many players."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

from srvstat.analysis.figures import WindowFigures, compute_figures
from srvstat.analysis.local_time import HOUR_MS, Step, parse_step
from srvstat.analysis.statistics import build_window_part
from srvstat.analysis.steps import (
    Steps,
    bound_window,
    compute_shares,
    divide_window,
    find_unobserved,
)
from srvstat.contract.errors import ParameterError
from srvstat.contract.windows import Window
from srvstat.documents.analysis import (
    Distribution,
    ServerDistribution,
    ServerTimeline,
    Timeline,
    build_runs,
)
from srvstat.documents.document import GapPart
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import compute_quantiles
from srvstat.snapshot.read.snapshot import Snapshot

_MINUTES = ("1m", "2m", "5m", "10m", "15m", "30m")
_STEPS = [*map(parse_step, (*_MINUTES, "1h", "2h", "3h", "6h", "12h", "day", "week", "month"))]

_LEAST_INTERVALS = 0.95
"""The least length of a step in usual intervals: hourly polls, a second late, have steps of 1h."""


def compute_timeline(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    most_steps: int,
    zone: ZoneInfo,
) -> Timeline:
    """Return the players of servers in at most `most_steps` steps of a time zone, in their order.

    A step is at least about as long as the shortest usual interval of the servers. Needs memory for
    the observations of one server, besides the document.

    Raises UsageError if the months of the window are more than `most_steps`, SnapshotError.
    """
    window = bound_window(snapshot, servers, window)
    figures = [compute_figures(snapshot, server, [window])[0] for server in servers]
    usual = [one.usual_interval for one in figures]
    shortest = min((interval for interval in usual if interval is not None), default=HOUR_MS)
    step, steps = _choose_steps(snapshot, servers, window, (most_steps, shortest), zone)
    return Timeline(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        time_zone=zone.key,
        step=step.name,
        steps=build_runs(steps.edges),
        servers=tuple(
            _describe_timeline(snapshot, server, steps, one)
            for server, one in zip(servers, figures, strict=True)
        ),
    )


def _choose_steps(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    limits: tuple[int, float],
    zone: ZoneInfo,
) -> tuple[Step, Steps]:
    """Return the shortest step that is at least so long and divides a window so many times."""
    most, shortest = limits
    for step in _STEPS:
        if step.shortest < _LEAST_INTERVALS * shortest and step is not _STEPS[-1]:
            continue
        if (window.end - window.start) // (2 * step.shortest) <= most:
            steps = divide_window(snapshot, servers, window, step, zone)
            if steps.step_count <= most:
                return step, steps
    raise ParameterError(f"{{most_steps}}: {most} is too few for the months of the window")


def _describe_timeline(
    snapshot: Snapshot, server: ServerRow, steps: Steps, figures: WindowFigures
) -> ServerTimeline:
    positions, players = snapshot.read_steps(server, steps.list_read_edges())
    cells = [players[first:last] for first, last in pairwise(positions)]
    unobserved = find_unobserved(snapshot, server, figures)
    return ServerTimeline(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_counts=tuple(map(len, cells)),
        averages=tuple(sum(cell) / len(cell) if cell else None for cell in cells),
        lowest=tuple(min(cell) if cell else None for cell in cells),
        peak=tuple(max(cell) if cell else None for cell in cells),
        observed_shares=tuple(compute_shares(steps, unobserved)),
        gaps=tuple(_find_gaps(snapshot, server, steps.window, figures.usual_interval)),
    )


def _find_gaps(
    snapshot: Snapshot, server: ServerRow, window: Window, usual_interval: float | None
) -> Iterator[GapPart]:
    """Yield the gaps of a window."""
    usual = int(2 * (usual_interval or 0))
    start, end = window.start, min(window.end, snapshot.as_of)
    first = server.first_observed_at
    last = snapshot.find_last_observed_at(server, window.end)
    if first is None or last is None:
        found = [(start, end)]
    else:
        found = [(start, first)] if 2 * (first - start) > 3 * usual else []
        found += snapshot.find_long_intervals(server, window, usual)
        found += [(last, end)] if 2 * (end - last) > 3 * usual else []
    for before, after in found:
        if max(before, start) < min(after, end):
            yield GapPart(from_=max(before, start), to=min(after, end))


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
            _describe_distribution(server, players, edges)
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


def _describe_distribution(
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
