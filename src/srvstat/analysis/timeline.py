"""Compute the players of servers over time, in steps of equal length: the document `timeline`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from srvstat.analysis.statistics import build_window_part
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.document import GapPart
from srvstat.documents.timeline import ServerTimeline, Timeline
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile

MAX_SERVERS = 5
"""The most servers that a picture shows, as many as a comparison."""

_MINUTE, _HOUR = DAY_MS // 1440, DAY_MS // 24
_LENGTHS = (
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
"""The lengths of steps, in milliseconds."""

_INTERVALS_OF_GAP = 3
"""A longer time without observations is a gap, in usual intervals."""


class _Steps(NamedTuple):
    """Steps of equal length from `start` on; `edges` are cut to the window."""

    start: int
    length: int
    edges: list[int]


def check_server_count(count: int) -> None:
    """Check that a picture can show so many servers.

    Raises UsageError.
    """
    if count > MAX_SERVERS:
        raise UsageError(f"a picture shows at most {MAX_SERVERS} servers, not {count:,}")


def compute_timeline(
    snapshot: SnapshotFile, servers: Sequence[ServerRow], window: Window, most_steps: int
) -> Timeline:
    """Return the players of servers in at most `most_steps` steps, in their order.

    Steps are not shorter than the shortest usual interval of the servers. A window without a
    beginning begins with their first observation.

    Raises SnapshotError.
    """
    window = _bound_window(servers, window)
    figures = snapshot.compute_figures(servers, window)
    usual = [one.usual_interval for one in figures]
    known = [interval for interval in usual if interval is not None]
    steps = _divide_window(window, most_steps, min(known, default=0))
    return Timeline(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        steps_from=steps.start,
        step_seconds=steps.length // 1000,
        servers=tuple(
            _describe_server(snapshot, server, steps, interval)
            for server, interval in zip(servers, usual, strict=True)
        ),
    )


def _bound_window(servers: Sequence[ServerRow], window: Window) -> Window:
    if window.start != BEFORE_ALL:
        return window
    firsts = [one.first_observed_at for one in servers if one.first_observed_at is not None]
    return Window(min(min(firsts, default=window.end), window.end) - 1, window.end)


def _divide_window(window: Window, most: int, shortest: float) -> _Steps:
    """Divide a window at multiples of a length counted from 1970-01-01 (UTC)."""
    for length in _LENGTHS:
        first, last = window.start // length, -(-window.end // length)
        if length >= shortest and last - first <= most:
            break
    inner = range((first + 1) * length, last * length, length)
    return _Steps(first * length, length, [window.start, *inner, window.end])


def _describe_server(
    snapshot: SnapshotFile, server: ServerRow, steps: _Steps, usual_interval: float | None
) -> ServerTimeline:
    positions, players = snapshot.read_steps(server, steps.edges)
    cells = [players[first:last] for first, last in pairwise(positions)]
    return ServerTimeline(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_counts=tuple(map(len, cells)),
        averages=tuple(sum(cell) / len(cell) if cell else None for cell in cells),
        lowest=tuple(min(cell) if cell else None for cell in cells),
        peak=tuple(max(cell) if cell else None for cell in cells),
        gaps=tuple(_find_gaps(steps.edges, cells, usual_interval)),
    )


def _find_gaps(
    edges: Sequence[int], cells: Sequence[Sequence[int]], usual_interval: float | None
) -> Iterator[GapPart]:
    longest = _INTERVALS_OF_GAP * (usual_interval or 0)
    start = edges[0]
    for at, cell in enumerate([*cells, [0]]):
        end = edges[at]
        if cell:
            if end > start and end - start > longest:
                yield GapPart(from_=start, to=end)
            start = edges[min(at + 1, len(cells))]
