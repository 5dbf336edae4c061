"""Find when a recorded result was true.

The statistics of a server change only when an observation enters or leaves the window. Between two
such instants they are constant, so all instants of a search cost as much as the observations that
pass the window's ends.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from srvstat.contract import wire
from srvstat.contract.arrays import Numbers
from srvstat.contract.requests import CompareRequest
from srvstat.contract.stats import Growth, Statistics, compute_growth, compute_ranking_statistics
from srvstat.contract.time import DAY_MS, DAYS, Range, Window
from srvstat.documents.support import Difference
from srvstat.operations.answers import resolve_servers
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow
from srvstat.support.comparing import MAX_DIFFERENCES, is_number_equal

Instants = tuple[int, int]
"""The first and the last instant of an interval, in Unix milliseconds."""

Result = Mapping[str, Any] | None
"""The recorded result of a server; None if no instant gives it."""

_RESULT = re.compile(r"/data/([0-9]+)/")
_FIGURE = re.compile(
    r"/data/[0-9]+/(?:(?:average|median|peak|lowest)Players|growth/(?:players|percentage)"
    r"|sampleCount)"
)
"""The pointers of the values that change with time."""


class TrueTimes(NamedTuple):
    """When the whole answer was true, and when each server's result was, with the server's id.

    `servers` is empty if the answer is not that of a comparison.
    """

    whole: list[Instants]
    servers: list[tuple[str, list[Instants]]]


def find_true_times(
    snapshot: Snapshot,
    request: CompareRequest,
    results: Sequence[Result],
    searched: Instants,
    tolerance: Decimal,
) -> TrueTimes:
    """Find the instants within `searched` at which recorded results were true.

    `results` are those of the request's servers, as `read_results` returns them.

    Raises SnapshotError.
    """
    is_equal = partial(is_number_equal, tolerance=tolerance)
    found: list[tuple[str, list[Instants]]] = []
    for server, result in zip(resolve_servers(snapshot, request.servers), results, strict=True):
        intervals = []
        if result is not None:
            intervals = find_true_intervals(
                snapshot, server, result, request.range, *searched, is_equal
            )
        found.append((server.id, intervals))
    return TrueTimes(intersect([intervals for _, intervals in found]), found)


def read_results(body: bytes, differences: Sequence[Difference], count: int) -> list[Result]:
    """Return the recorded results of `count` servers; None for one that was never true.

    `differences` are those from our answer at any instant. Only those in figures depend on it.
    """
    lasting = [
        each.pointer
        for each in differences
        if each.class_ == "value" and not _FIGURE.fullmatch(each.pointer)
    ]
    try:
        results = wire.decode(body)["data"]
    except (wire.JsonError, LookupError, TypeError):
        return [None] * count
    places = {match and int(match[1]) for match in map(_RESULT.match, lasting)}
    if None in places or len(differences) == MAX_DIFFERENCES:
        return [None] * count
    return [None if place in places else result for place, result in enumerate(results)]


def find_true_intervals(  # noqa: PLR0913, PLR0917 - a result, and where to search
    snapshot: Snapshot,
    server: ServerRow,
    recorded: Mapping[str, Any],
    range: Range,
    earliest: int,
    latest: int,
    is_equal: Callable[[Any, Any], bool],
) -> list[Instants]:
    """Return the maximal intervals of as_of in which a recorded result was true, in their order.

    They lie in [earliest, latest], which `limit_search` has limited. `recorded` is a decoded
    ServerResult, of which only the statistics are compared. None equals only None; `is_equal`
    compares a recorded number with a recomputed one. A result without all statistics, or with
    other values than numbers, was never true.

    Raises SnapshotError.
    """
    length = DAYS[range] * DAY_MS
    figures = _read_figures(recorded)
    if figures is None:
        return []
    window = Window(earliest - length, latest)
    instants, players = read_observations(snapshot, server, window)
    sliding = _SlidingWindow(players.tolist())
    found: list[Instants] = []
    for start, last, low, high in _iter_periods(instants, length, earliest, latest):
        sliding.move(low, high)
        if _is_true(figures, sliding.compute_statistics(), is_equal):
            is_adjacent = found and found[-1][1] == start - 1
            found.append((found.pop()[0] if is_adjacent else start, last))
    return found


def limit_search(snapshot: Snapshot, range: Range, searched: Instants) -> Instants:
    """Return the instants of a search whose windows a snapshot covers; a bundle lacks the others.

    It must cover the window of the last one.
    """
    if snapshot.covered_from is None:
        return searched
    earliest, latest = searched
    return max(earliest, snapshot.covered_from + DAYS[range] * DAY_MS), latest


def intersect(lists: Sequence[Sequence[Instants]]) -> list[Instants]:
    """Return the intervals that all lists have in common; each list is ascending and disjoint."""
    if not lists:
        return []
    common, *others = map(list, lists)
    for other in others:
        common = list(_iter_common(common, other))
    return common


def _iter_common(one: Sequence[Instants], other: Sequence[Instants]) -> Iterator[Instants]:
    left = right = 0
    while left < len(one) and right < len(other):
        start = max(one[left][0], other[right][0])
        end = min(one[left][1], other[right][1])
        if start <= end:
            yield start, end
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1


def _iter_periods(
    instants: Numbers, length: int, earliest: int, latest: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the periods of as_of from `earliest` to `latest` whose windows do not change.

    `instants` are those of all observations in these windows, `length` milliseconds long. Yields
    the first and the last instant of a period, and the positions of the first observation in its
    windows and of the first one after it.
    """
    changes = np.concatenate(([earliest], instants, instants + length))
    starts = np.unique(changes[(changes >= earliest) & (changes <= latest)])
    lasts = np.append(starts[1:] - 1, latest)
    lows, highs = (instants.searchsorted(edges, "right") for edges in (starts - length, starts))
    return zip(*(column.tolist() for column in (starts, lasts, lows, highs)), strict=True)


class _SlidingWindow:
    """The player counts in a window that moves forward, in order of time and by rank."""

    def __init__(self, players: Sequence[int]) -> None:
        self._total = 0
        self._players = players
        self._low = self._high = 0
        self._ranked: list[int] = []

    def move(self, low: int, high: int) -> None:
        """Move to the positions from `low` up to but not including `high`."""
        entering, leaving = self._players[self._high : high], self._players[self._low : low]
        self._total += sum(entering) - sum(leaving)
        self._low, self._high = low, high
        if not self._ranked:
            self._ranked = sorted(self._players[low:high])
            return
        for value in entering:
            insort(self._ranked, value)
        for value in leaving:
            del self._ranked[bisect_left(self._ranked, value)]

    def compute_statistics(self) -> Statistics:
        """Return the statistics of the window."""
        growth = Growth(None, None)
        if self._high - self._low > 1:
            growth = compute_growth(self._players[self._low], self._players[self._high - 1])
        return compute_ranking_statistics(
            self._high - self._low, self._total, self._ranked.__getitem__, growth
        )


_FIGURES = ("sampleCount", "averagePlayers", "medianPlayers", "peakPlayers", "lowestPlayers")
"""The members of a result in the order of Statistics; those of its growth follow."""


def _read_figures(recorded: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the figures of a result, None unless it has all of them as numbers or null."""
    growth = recorded.get("growth")
    if not isinstance(growth, Mapping):
        return None
    figures = [recorded.get(name, ...) for name in _FIGURES]
    figures += [growth.get(name, ...) for name in Growth._fields]
    return tuple(figures) if {*map(type, figures)} <= {int, float, NoneType} else None


def _is_true(
    recorded: tuple[Any, ...], computed: Statistics, is_equal: Callable[[Any, Any], bool]
) -> bool:
    return all(
        one is other if one is None or other is None else is_equal(one, other)
        for one, other in zip(recorded, (*computed[:-1], *computed.growth), strict=True)
    )
