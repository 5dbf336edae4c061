"""Read the history of servers: their observations, or an aggregate of each step.

Rows are read while they are iterated over, some weeks of one server at a time, so that memory grows
neither with the window nor with the number of servers.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, repeat
from math import lcm
from typing import Any, get_args
from zoneinfo import ZoneInfo

from srvstat.analysis.local_time import Step, find_step_start, list_step_edges, parse_step
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.history import Aggregate, History, StepCell
from srvstat.documents.rows import Column, Kind
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import find_middle_ranks

AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

_READ_MS, _READ_STEPS = 28 * DAY_MS, 5_000
"""The longest time and the most steps that are read at once, unless one step is longer."""

_SERVER, _COUNT = Column("serverId", "text"), Column("sampleCount", "integer")
_TIMES = (Column("from", "instant"), Column("to", "instant"))

_Row = tuple[Any, ...]


def parse_steps(
    step: str | None, aggregate: str | None, *, is_sum: bool, is_chart: bool | None = None
) -> tuple[Step | None, Aggregate]:
    """Return the step of a history, None for observations, and what represents each step.

    The default aggregate is the mean. A chart has steps in any case; `is_chart` is None where there
    can be none.

    Raises UsageError.
    """
    for option, is_given in (("--aggregate", aggregate is not None), ("--sum", is_sum)):
        if is_given and step is None and not is_chart:
            raise UsageError(f"{option}: needs --step{'' if is_chart is None else ' or --chart'}")
    wanted = AGGREGATES[0] if aggregate is None else aggregate
    chosen = next((name for name in AGGREGATES if name == wanted), None)
    if chosen is None:
        names = ", ".join(AGGREGATES)
        raise UsageError(f"--aggregate: {wire.quote_value(wanted)} is not one of {names}")
    return None if step is None else parse_step(step), chosen


def read_history(snapshot: Snapshot, servers: Iterable[ServerRow], window: Window) -> History:
    """Return the observations in a window, one server after the other.

    Iterating over the rows raises SnapshotError.
    """
    columns = (_SERVER, Column("observedAt", "instant"), Column("players", "integer"))
    read_rows = partial(_iter_observations, snapshot, servers, window)
    return History(snapshot.as_of, snapshot.root, columns, read_rows)


def _iter_observations(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window
) -> Iterator[_Row]:
    for server in servers:
        for instants, players in snapshot.iter_observations(server, window):
            yield from zip(repeat(server.id), instants, players)


def list_history_edges(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window, step: Step, zone: ZoneInfo
) -> list[int]:
    """Return the edges of the steps of a window.

    A window of all observations begins with the step of the first observation of the servers. If
    they have none, there is no step, and the list is empty.

    Raises UsageError for too many steps, SnapshotError.
    """
    if window.start == BEFORE_ALL:
        first = find_first_instant(snapshot, servers)
        if first > window.end:
            return []
        window = Window(find_step_start(first, step, zone), window.end)
    return list_step_edges(window, step, zone)


def find_first_instant(snapshot: Snapshot, servers: Iterable[ServerRow]) -> int:
    """Return the instant of the first observation of servers; LATEST if they have none.

    Raises SnapshotError.
    """
    with snapshot.convert_decode_errors("the servers"):
        firsts = [one.first_observed_at for one in servers]
        first = min((at for at in firsts if at is not None), default=LATEST)
        if not 0 <= first <= LATEST:
            raise ValueError("not an instant")
    return first


def aggregate_history(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    edges: Sequence[int],
    aggregate: Aggregate = "mean",
    *,
    is_sum: bool = False,
) -> History:
    """Return an aggregate of each step between edges, one server after the other.

    With `is_sum`, the aggregates of all servers are added up instead. A step without observations
    has no players.

    Iterating over the rows raises SnapshotError.
    """
    columns: tuple[Column, ...]
    if is_sum:
        columns = (*_TIMES, _COUNT, Column("serverCount", "integer"), Column("players", "number"))
        read_rows = partial(_iter_sums, snapshot, servers, edges, aggregate)
    else:
        kind: Kind = "number" if has_fractions(aggregate) else "integer"
        columns = (_SERVER, *_TIMES, _COUNT, Column("players", kind))
        read_rows = partial(_iter_steps, snapshot, servers, edges, aggregate)
    return History(snapshot.as_of, snapshot.root, columns, read_rows)


def has_fractions(aggregate: Aggregate) -> bool:
    """Check whether an aggregate of whole numbers can be a fraction."""
    return aggregate in {"mean", "median"}


def _iter_steps(
    snapshot: Snapshot,
    servers: Iterable[ServerRow],
    edges: Sequence[int],
    aggregate: Aggregate,
) -> Iterator[_Row]:
    compute, is_fraction = _QUOTIENTS[aggregate], has_fractions(aggregate)
    for server in servers:
        for piece in _split_edges(edges):
            positions, players = snapshot.read_steps(server, piece)
            # Four sequences take less time than two of pairs.
            steps = zip(piece, piece[1:], positions, positions[1:], strict=False)
            for start, end, first, last in steps:
                count = last - first
                if count > 0:
                    numerator, denominator = compute(players[first:last])
                    value = numerator / denominator if is_fraction else numerator
                    yield server.id, start, end, count, value
                else:
                    yield server.id, start, end, 0, None


def _iter_sums(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    edges: Sequence[int],
    aggregate: Aggregate,
) -> Iterator[_Row]:
    for piece in _split_edges(edges):
        cells = sum_steps(snapshot, servers, piece, aggregate)
        for (start, end), cell in zip(pairwise(piece), cells, strict=True):
            yield start, end, *cell


def sum_steps(
    snapshot: Snapshot,
    servers: Iterable[ServerRow],
    edges: Sequence[int],
    aggregate: Aggregate,
) -> list[StepCell]:
    """Return the sum of the aggregates of servers in each step between edges.

    Raises SnapshotError.
    """
    compute = _QUOTIENTS[aggregate]
    sums = [_Sum() for _ in edges[1:]]
    for server in servers:
        positions, players = snapshot.read_steps(server, edges)
        for one, (first, last) in zip(sums, pairwise(positions), strict=True):
            if last > first:
                one.add(last - first, *compute(players[first:last]))
    return [one.build_cell() for one in sums]


def _split_edges(edges: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield edges in pieces of some weeks; each begins with the last edge of the one before."""
    start = 0
    while start + 1 < len(edges):
        most = min(start + _READ_STEPS + 1, len(edges))
        end = max(bisect_right(edges, edges[start] + _READ_MS, start, most), start + 2)
        yield edges[start:end]
        start = end - 1


class _Sum:
    """An exact sum of quotients: for each denominator the sum of the numerators."""

    __slots__ = ("_numerators", "_observations", "_servers")

    def __init__(self) -> None:
        self._observations = 0
        self._servers = 0
        self._numerators: dict[int, int] = {}

    def add(self, observations: int, numerator: int, denominator: int) -> None:
        """Add the quotient of a server with observations."""
        self._observations += observations
        self._servers += 1
        self._numerators[denominator] = self._numerators.get(denominator, 0) + numerator

    def build_cell(self) -> StepCell:
        """Return the sum, divided once."""
        if not self._servers:
            return StepCell(0, 0, None)
        common = lcm(*self._numerators)
        total = sum(common // each * part for each, part in self._numerators.items())
        return StepCell(self._observations, self._servers, total / common)


def _find_median(players: Sequence[int]) -> tuple[int, int]:
    ascending = sorted(players)
    lower, upper = find_middle_ranks(len(players))
    return ascending[lower] + ascending[upper], 2


_QUOTIENTS: Mapping[Aggregate, Callable[[Sequence[int]], tuple[int, int]]] = {
    "mean": lambda players: (sum(players), len(players)),
    "median": _find_median,
    "max": lambda players: (max(players), 1),
    "min": lambda players: (min(players), 1),
    "last": lambda players: (players[-1], 1),
}
"""The aggregate of at least one count, as a numerator and a denominator."""
