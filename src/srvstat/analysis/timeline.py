"""Compute the players of servers over time, in steps of a calendar: the document `timeline`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

from srvstat.analysis.drawing import bound_window
from srvstat.analysis.local_time import HOUR_MS, Step, parse_step
from srvstat.analysis.statistics import build_window_part
from srvstat.analysis.steps import Steps, compute_shares, divide_window, find_unobserved
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import Window
from srvstat.documents.analysis import ServerTimeline, Timeline, build_runs
from srvstat.documents.document import GapPart
from srvstat.snapshot.format.rows import ServerRow
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
    usual = [one.usual_interval for one in snapshot.compute_figures(servers, window)]
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
            _describe_server(snapshot, server, steps, interval)
            for server, interval in zip(servers, usual, strict=True)
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
    raise UsageError(f"most_steps: {most} is too few for the months of the window")


def _describe_server(
    snapshot: Snapshot, server: ServerRow, steps: Steps, usual_interval: float | None
) -> ServerTimeline:
    positions, players = snapshot.read_steps(server, steps.list_read_edges())
    cells = [players[first:last] for first, last in pairwise(positions)]
    unobserved = find_unobserved(snapshot, server, steps.window, usual_interval)
    return ServerTimeline(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_counts=tuple(map(len, cells)),
        averages=tuple(sum(cell) / len(cell) if cell else None for cell in cells),
        lowest=tuple(min(cell) if cell else None for cell in cells),
        peak=tuple(max(cell) if cell else None for cell in cells),
        observed_shares=tuple(compute_shares(steps, unobserved)),
        gaps=tuple(_find_gaps(snapshot, server, steps.window, usual_interval)),
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
