"""Read the history of servers: their observations, or an aggregate of each step.

Rows are read while they are iterated over, some weeks of one server at a time, so that memory grows
neither with the window nor with the number of servers.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, repeat
from math import lcm
from typing import Any, NamedTuple, get_args

from srvstat.analysis.local_time import Step, parse_step
from srvstat.analysis.steps import Steps, observe_steps, observe_sum
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.documents.analysis import Aggregate, History
from srvstat.documents.document import WHOLE_SHARE
from srvstat.documents.rows import Column, Kind
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import find_middle_ranks

AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

_READ_MS, _READ_STEPS = 28 * DAY_MS, 5_000
"""The longest time and the most steps that are read at once, unless one step is longer."""

_SERVER, _COUNT = Column("serverId", "text"), Column("sampleCount", "integer")
_TIMES = (Column("from", "instant"), Column("to", "instant"))
_SHARE = (Column("observedShare", "number"), Column("isPartial", "boolean"))

_Row = tuple[Any, ...]
_SumCell = tuple[int, int, float | None]


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


def aggregate_history(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    steps: Steps,
    aggregate: Aggregate = "mean",
    *,
    is_sum: bool = False,
) -> History:
    """Return an aggregate of each step, one server after the other.

    With `is_sum`, the aggregates of all servers are added up instead. A step without observations
    has no players.

    Iterating over the rows raises SnapshotError.
    """
    columns: tuple[Column, ...]
    if is_sum:
        servers_column = Column("serverCount", "integer")
        columns = (*_TIMES, _COUNT, servers_column, Column("players", "number"), *_SHARE)
    else:
        kind: Kind = "number" if has_fractions(aggregate) else "integer"
        columns = (_SERVER, *_TIMES, _COUNT, Column("players", kind), *_SHARE)
    iter_rows = iter_sums if is_sum else iter_steps
    read_rows = partial(iter_rows, snapshot, servers, steps, aggregate, range(steps.step_count))
    return History(snapshot.as_of, snapshot.root, columns, read_rows)


def has_fractions(aggregate: Aggregate) -> bool:
    """Check whether an aggregate of whole numbers can be a fraction."""
    return aggregate in {"mean", "median"}


def iter_steps(
    snapshot: Snapshot,
    servers: Iterable[ServerRow],
    steps: Steps,
    aggregate: Aggregate,
    wanted: range,
) -> Iterator[_Row]:
    """Yield the rows of the wanted steps of servers.

    Raises SnapshotError.
    """
    compute, is_fraction = _QUOTIENTS[aggregate], has_fractions(aggregate)
    for server in servers:
        shares = observe_steps(snapshot, server, steps)
        for piece in _split_steps(steps, wanted):
            positions, players = snapshot.read_steps(server, piece.edges)
            times = steps.iter_times(piece.start, piece.end)
            # Four sequences take less time than two of pairs.
            rows = zip(times, shares[piece.start :], positions, positions[1:], strict=False)
            for (start, end), share, first, last in rows:
                count, value = last - first, None
                if count:
                    numerator, denominator = compute(players[first:last])
                    value = numerator / denominator if is_fraction else numerator
                yield server.id, start, end, count, value, share, share < WHOLE_SHARE


def iter_sums(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    steps: Steps,
    aggregate: Aggregate,
    wanted: range,
) -> Iterator[_Row]:
    """Yield the rows of the wanted steps of the sum of servers.

    Raises SnapshotError.
    """
    shares = observe_sum(snapshot, servers, steps)
    for piece in _split_steps(steps, wanted):
        cells = _sum_piece(snapshot, servers, piece.edges, aggregate)
        times = steps.iter_times(piece.start, piece.end)
        for (start, end), share, cell in zip(times, shares[piece.start :], cells, strict=False):
            yield start, end, *cell, share, share < WHOLE_SHARE


def _sum_piece(
    snapshot: Snapshot, servers: Iterable[ServerRow], edges: Sequence[int], aggregate: Aggregate
) -> list[_SumCell]:
    """Return the sums of the steps between edges, which are those of `Steps.list_read_edges`."""
    if not edges:
        return []
    compute = _QUOTIENTS[aggregate]
    sums = [_Sum() for _ in edges[1:]]
    for server in servers:
        positions, players = snapshot.read_steps(server, edges)
        for one, (first, last) in zip(sums, pairwise(positions), strict=True):
            if last > first:
                one.add(last - first, *compute(players[first:last]))
    return [one.build_cell() for one in sums]


class _Piece(NamedTuple):
    """Some successive steps, from number `start` up to `end`, and their edges for a snapshot."""

    start: int
    end: int
    edges: Sequence[int]


def _split_steps(steps: Steps, wanted: range) -> Iterator[_Piece]:
    """Yield the wanted steps in pieces of some weeks."""
    edges = steps.list_read_edges()
    start = wanted.start
    while start < wanted.stop:
        most = min(start + _READ_STEPS, wanted.stop) + 1
        end = max(bisect_right(edges, edges[start] + _READ_MS, start, most), start + 2)
        yield _Piece(start, end - 1, edges[start:end])
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

    def build_cell(self) -> _SumCell:
        """Return the numbers of observations and of servers, and the sum, divided once."""
        if not self._servers:
            return 0, 0, None
        common = lcm(*self._numerators)
        total = sum(common // each * part for each, part in self._numerators.items())
        return self._observations, self._servers, total / common


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
