"""Compute the players of servers over time, in steps of equal length: the document `timeline`."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from srvstat.analysis.drawing import bound_window
from srvstat.analysis.statistics import build_window_part
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.documents.document import GapPart
from srvstat.documents.timeline import ServerTimeline, Timeline
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

_MINUTE, _HOUR = DAY_MS // 1440, DAY_MS // 24
_WITHIN_DAY = (
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
)
"""The lengths of steps of less than a day, in milliseconds. They divide a day."""

_INTERVALS_OF_GAP = 3
"""Observations further apart, in usual intervals, have a gap; as in the coverage of `stats`."""

_LEAST_INTERVALS = 0.95
"""The least length of a step in usual intervals: hourly polls, a second late, have steps of 1h."""


class _Steps(NamedTuple):
    """Steps of equal length from `start` on; `edges` are cut to the window.

    The time after `known_end` is unknown, as the snapshot ends there.
    """

    start: int
    length: int
    edges: list[int]
    known_end: int


def compute_timeline(
    snapshot: Snapshot, servers: Sequence[ServerRow], window: Window, most_steps: int
) -> Timeline:
    """Return the players of servers in at most `most_steps` steps (at least 2), in their order.

    A step is at least about as long as the shortest usual interval of the servers. Needs memory for
    the observations of one server, besides the document.

    Raises SnapshotError.
    """
    window = bound_window(snapshot, servers, window)
    figures = snapshot.compute_figures(servers, window)
    usual = [one.usual_interval for one in figures]
    known = [interval for interval in usual if interval is not None]
    steps = _divide_window(window, most_steps, min(known, default=0), snapshot.as_of)
    return Timeline(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        steps_from=steps.start,
        step_seconds=steps.length // 1000,
        servers=tuple(
            _describe_server(snapshot, server, window, steps, interval)
            for server, interval in zip(servers, usual, strict=True)
        ),
    )


def _divide_window(window: Window, most: int, shortest: float, as_of: int) -> _Steps:
    """Divide a window at multiples of a length counted from 1970-01-01 (UTC)."""
    for length in _iter_lengths():
        first, last = window.start // length, -(-window.end // length)
        if length >= _LEAST_INTERVALS * shortest and last - first <= most:
            break
    inner = range((first + 1) * length, last * length, length)
    known_end = min(window.end, as_of)
    return _Steps(first * length, length, [window.start, *inner, window.end], known_end)


def _iter_lengths() -> Iterator[int]:
    """Yield the lengths that steps can have, in ascending order."""
    yield from _WITHIN_DAY
    for power in count():
        yield from (factor * 10**power * DAY_MS for factor in (1, 2, 5))


def _describe_server(
    snapshot: Snapshot,
    server: ServerRow,
    window: Window,
    steps: _Steps,
    usual_interval: float | None,
) -> ServerTimeline:
    instants, players = snapshot.read_observations(server, window)
    positions = [bisect_right(instants, edge) for edge in steps.edges]
    cells = [players[first:last] for first, last in pairwise(positions)]
    return ServerTimeline(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_counts=tuple(map(len, cells)),
        averages=tuple(sum(cell) / len(cell) if cell else None for cell in cells),
        lowest=tuple(min(cell) if cell else None for cell in cells),
        peak=tuple(max(cell) if cell else None for cell in cells),
        gaps=tuple(_find_gaps(instants, steps, usual_interval)),
    )


def _find_gaps(
    instants: Sequence[int], steps: _Steps, usual_interval: float | None
) -> Iterator[GapPart]:
    """Yield the runs of steps without observations, between observations that are far apart."""
    edges, known_end = steps.edges, steps.known_end
    longest = _INTERVALS_OF_GAP * (usual_interval or 0)
    last = edges[0]
    for before, after in pairwise([last, *instants]):
        last = after
        if after - before > longest:
            start = edges[bisect_left(edges, before)]
            end = edges[bisect_left(edges, after) - 1]
            if start < end:
                yield GapPart(from_=start, to=end)
    if known_end - last > longest:
        start = edges[bisect_left(edges, last)]
        if start < known_end:
            yield GapPart(from_=start, to=known_end)
