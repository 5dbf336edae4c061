"""Find the times at which a recorded result was correct.

A server's statistics change only when an observation enters or leaves the window, and are constant
in between. So searching all times costs as much as processing the observations that pass the ends
of the window.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np

from srvstat.contract import wire
from srvstat.contract.requests import CompareRequest
from srvstat.contract.stats import Growth, Statistics, compute_growth, compute_ranking_statistics
from srvstat.contract.windows import DAY_MS, DAYS, Range, Window
from srvstat.documents import support as documents
from srvstat.operations.answers import resolve_servers
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow
from srvstat.support.comparing import MAX_DIFFERENCES

Instants = tuple[int, int]
"""The first and the last time of an interval, in Unix milliseconds."""

Result = Mapping[str, Any] | None
"""The recorded result of a server, or None if it was never correct."""

_RESULT = re.compile(r"/data/([0-9]+)/")
_FIGURE = re.compile(
    r"/data/\d+/(?:(?:average|median|peak|lowest)Players|growth/(?:players|percentage)|sampleCount)"
)
"""The pointers of the values that change over time."""


def find_true_times(
    snapshot: Snapshot,
    request: CompareRequest,
    results: Sequence[Result],
    searched: Instants,
    tolerance: Decimal,
) -> tuple[tuple[documents.Interval, ...], tuple[documents.ServerIntervals, ...]]:
    """Find the times within `searched` at which all results were correct, and at which each was.

    `results`: one per server of the request, from `read_results`.

    Raises SnapshotError if data are damaged.
    """
    servers = resolve_servers(snapshot, request.servers)
    dated = [
        _date_figures(snapshot, server, request.range, _read_figures(result, tolerance), searched)
        for server, result in zip(servers, results, strict=True)
    ]
    return _intersect_times(dated), tuple(
        documents.ServerIntervals(server_id=one.server_id, true_during=one.true_during)
        for one in dated
    )


def describe_intervals(intervals: Iterable[Instants]) -> tuple[documents.Interval, ...]:
    """Convert intervals to parts of the document."""
    return tuple(documents.Interval(from_=start, to=end) for start, end in intervals)


def read_results(
    body: bytes, differences: Sequence[documents.Difference], count: int
) -> list[Result]:
    """Return the recorded results of `count` servers, each None if it was never correct.

    `differences`: between the body and our response at any time. Only statistics change over time.
    """
    pointers = [each.pointer for each in differences if each.class_ == "value"]
    lasting = [pointer for pointer in pointers if not _FIGURE.fullmatch(pointer)]
    try:
        results = wire.decode(body)["data"]
    except (wire.JsonError, LookupError, TypeError):
        return [None] * count
    places = {match and int(match[1]) for match in map(_RESULT.match, lasting)}
    if None in places or len(differences) == MAX_DIFFERENCES:
        return [None] * count
    return [None if place in places else result for place, result in enumerate(results)]


def _iter_statistics(
    snapshot: Snapshot, server: ServerRow, range: Range, searched: Instants
) -> Iterator[tuple[int, int, Statistics]]:
    """Yield the as_of intervals in which no statistic changes, ascending, with the statistics.

    Raises SnapshotError if data are damaged.
    """
    length = DAYS[range] * DAY_MS
    earliest, latest = searched
    instants, players = read_observations(snapshot, server, Window(earliest - length, latest))
    # An observation enters the window at its time, and leaves it when the window starts there.
    changes = np.concatenate(([earliest], instants, instants + length))
    starts = np.unique(changes[(changes >= earliest) & (changes <= latest)]).tolist()
    sliding = _SlidingWindow(players.tolist())
    for start, following in pairwise([*starts, latest + 1]):
        yield start, following - 1, sliding.move(Window(start - length, start).locate(instants))


def find_when(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    range: Range,
    wanted: Sequence[Sequence[documents.Figure]],
) -> documents.When:
    """Find the times at which the wanted statistics of each server were correct.

    Searches from the first observation on. The snapshot must cover the window at its end.

    Raises SnapshotError if data are damaged.
    """
    first = snapshot.file_row.first_observed_at
    whole = (snapshot.as_of if first is None else min(first, snapshot.as_of), snapshot.as_of)
    searched = limit_search(snapshot, range, whole)
    dated = [
        _date_figures(snapshot, server, range, figures, searched)
        for server, figures in zip(servers, wanted, strict=True)
    ]
    return documents.When(
        as_of=snapshot.as_of,
        root=snapshot.root,
        range=range,
        searched=documents.Interval(from_=searched[0], to=searched[1]),
        servers=tuple(dated),
        true_during=_intersect_times(dated),
    )


def _intersect_times(dated: Iterable[documents.DatedServer]) -> tuple[documents.Interval, ...]:
    times = [[(one.from_, one.to) for one in each.true_during] for each in dated]
    return describe_intervals(intersect(times))


def _date_figures(
    snapshot: Snapshot,
    server: ServerRow,
    range: Range,
    wanted: Sequence[documents.Figure],
    searched: Instants,
) -> documents.DatedServer:
    """Find the times at which the wanted statistics of a server were correct.

    The intervals of `true_during` are maximal. They are empty without wanted statistics.
    `searched` must be limited by `limit_search`.

    Raises SnapshotError if data are damaged.
    """
    found: list[Instants] = []
    nearest, least = None, (len(wanted) + 1, 0.0)
    intervals = _iter_statistics(snapshot, server, range, searched) if wanted else ()
    for start, end, statistics in intervals:
        known = dict(zip(documents.FIGURES, (*statistics[:-1], *statistics.growth), strict=True))
        distances = (each.measure(known[each.figure]) for each in wanted)
        missed = [distance for distance in distances if distance is not None]
        if not missed:
            is_adjacent = found and found[-1][1] == start - 1
            found.append((found.pop()[0] if is_adjacent else start, end))
        elif (miss := (len(missed), sum(missed))) < least:
            least = miss
            values = tuple(
                documents.Figure(figure=each.figure, value=known[each.figure]) for each in wanted
            )
            nearest = documents.Miss(from_=start, to=end, figures=values)
    return documents.DatedServer(
        server_id=server.id,
        figures=tuple(wanted),
        true_during=describe_intervals(found),
        nearest=None if found else nearest,
    )


def limit_search(snapshot: Snapshot, range: Range, searched: Instants) -> Instants:
    """Limit a search to the times whose windows a snapshot covers. A bundle lacks earlier windows.

    The snapshot must cover the window of the last time.
    """
    if snapshot.covered_from is None:
        return searched
    earliest, latest = searched
    return max(earliest, snapshot.covered_from + DAYS[range] * DAY_MS), latest


def intersect(lists: Sequence[list[Instants]]) -> list[Instants]:
    """Return the intersection of all lists of intervals, which must be ascending and disjoint."""
    pairs = (pair for intervals in lists for pair in intervals)
    edges = sorted(edge for start, end in pairs for edge in ((start, 1), (end + 1, -1)))
    common = []
    depth = begin = 0
    for at, change in edges:
        if depth == len(lists):  # one of the intervals ends
            common.append((begin, at - 1))
        depth += change
        begin = at
    return common


class _SlidingWindow:
    """The player counts in a window that moves forward, ordered by time and by rank."""

    def __init__(self, players: Sequence[int]) -> None:
        self._total = 0
        self._players = players
        self._low = self._high = 0
        self._ranked: list[int] = []

    def move(self, places: slice) -> Statistics:
        """Move to the observations at these positions, and return their statistics."""
        low, high = places.start, places.stop
        entering, leaving = self._players[self._high : high], self._players[self._low : low]
        self._total += sum(entering) - sum(leaving)
        self._low, self._high = low, high
        if self._ranked:
            for value in entering:
                insort(self._ranked, value)
            for value in leaving:
                del self._ranked[bisect_left(self._ranked, value)]
        else:
            self._ranked = sorted(self._players[low:high])
        growth = Growth(None, None)
        if high - low > 1:
            growth = compute_growth(self._players[low], self._players[high - 1])
        return compute_ranking_statistics(high - low, self._total, self._ranked.__getitem__, growth)


_MEMBERS = ("sampleCount", "averagePlayers", "medianPlayers", "peakPlayers", "lowestPlayers")
"""The JSON names of the first five FIGURES. The other FIGURES are members of `growth`."""


def _read_figures(recorded: Result, tolerance: Decimal) -> list[documents.Figure]:
    """Return the statistics of a decoded ServerResult, or none unless all are numbers or null."""
    growth = recorded.get("growth") if recorded else None
    if not recorded or not isinstance(growth, Mapping):
        return []
    values = [recorded.get(name, ...) for name in _MEMBERS]
    values += [growth.get(name, ...) for name in Growth._fields]
    if not {*map(type, values)} <= {int, float, NoneType}:
        return []
    return [
        documents.Figure(figure=figure, value=value, tolerance=float(tolerance))
        for figure, value in zip(documents.FIGURES, values, strict=True)
    ]
