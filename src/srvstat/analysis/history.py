"""Read the history of servers: their observations, or an aggregate of each step.

Rows are read while they are iterated over, some weeks of one server at a time, so that memory grows
neither with the window nor with the number of servers. A table shows the first and the last rows,
and a chart as many steps as fit.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice, pairwise, repeat
from math import lcm
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

from srvstat.analysis.local_time import Step, parse_step
from srvstat.analysis.steps import (
    Steps,
    bound_window,
    check_server_count,
    divide_window,
    observe_steps,
    observe_sum,
)
from srvstat.contract.errors import ParameterError
from srvstat.contract.parameters import check_choice
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import (
    Aggregate,
    History,
    HistoryNotes,
    HistoryPart,
    HistoryQuery,
    Observation,
    ObservationTable,
    ServerName,
    StepCell,
    StepLine,
    StepTable,
)
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
    for name, is_given in (("aggregate", aggregate is not None), ("sum", is_sum)):
        if is_given and step is None and not is_chart:
            chart = "" if is_chart is None else " or {chart}"
            raise ParameterError(f"{{{name}}}: needs {{step}}{chart}")
    chosen = check_choice(
        "aggregate", AGGREGATES[0] if aggregate is None else aggregate, AGGREGATES
    )
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


_SHOWN = 50
"""The most rows shown at the beginning and at the end of a table."""

_SERVERS_PER_TABLE = 8
"""The most servers that share a table of steps."""


def describe_observations(
    snapshot: Snapshot, servers: Iterable[ServerRow], query: HistoryQuery
) -> Iterator[HistoryPart]:
    """Yield a table of the observations of each server, and notes on all of them.

    Raises SnapshotError.
    """
    has_omitted = False
    for server in servers:
        (figures,) = snapshot.compute_figures([server], query.window)
        rows = (Observation(*row[1:]) for row in read_history(snapshot, [server], query.window))
        first = tuple(islice(rows, _SHOWN))
        rest = deque(enumerate(rows, len(first) + 1), maxlen=_SHOWN)
        table = ObservationTable(
            query=query,
            server=get_name(server),
            first=first,
            last=tuple(row for _, row in rest),
            count=rest[-1][0] if rest else len(first),
            usual_interval=figures.usual_interval,
        )
        has_omitted |= table.omitted_count > 0
        yield table
    yield HistoryNotes(query, snapshot.as_of, has_omitted)


def describe_steps(
    snapshot: Snapshot, servers: Sequence[ServerRow], steps: Steps, query: HistoryQuery
) -> Iterator[HistoryPart]:
    """Yield tables of steps, each of some servers, and notes on all of them.

    Only the steps that a table shows are read.

    Raises SnapshotError.
    """
    has_omitted, has_partial = steps.step_count > 2 * _SHOWN, False
    shown = [range(steps.step_count)]
    if has_omitted:
        shown = [range(_SHOWN), range(steps.step_count - _SHOWN, steps.step_count)]
    size = len(servers) if query.is_sum else _SERVERS_PER_TABLE
    for start in range(0, len(servers), size):
        selected = servers[start : start + size]
        first, *last = (tuple(read_lines(snapshot, selected, steps, query, part)) for part in shown)
        names = tuple(map(get_name, selected))
        table = StepTable(query, names, first, last[0] if last else (), steps.step_count)
        has_partial |= table.has_partial
        yield table
    yield HistoryNotes(query, snapshot.as_of, has_omitted, has_partial)


def read_lines(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    steps: Steps,
    query: HistoryQuery,
    wanted: range,
) -> Iterator[StepLine]:
    """Yield the wanted steps, with a cell for each server or one for their sum.

    Raises SnapshotError.
    """
    columns: list[list[StepCell]]
    if query.is_sum:
        sums = iter_sums(snapshot, servers, steps, query.aggregate, wanted)
        columns = [
            [
                StepCell(count, number, players, share)
                for _, _, count, number, players, share, _ in sums
            ]
        ]
    else:
        columns = [
            [
                StepCell(count, 1, players, share)
                for _, _, _, count, players, share, _ in iter_steps(
                    snapshot, [server], steps, query.aggregate, wanted
                )
            ]
            for server in servers
        ]
    times = steps.iter_times(wanted.start, wanted.stop)
    for (start, end), *cells in zip(times, *columns, strict=True):
        yield StepLine(start, end, tuple(cells))


def describe_cells(snapshot: Snapshot, server: ServerRow, steps: Steps) -> Iterator[StepCell]:
    """Yield the average of each step of a server. Totals of days take less time than observations.

    Raises SnapshotError.
    """
    totals = snapshot.compute_step_totals(server, steps.list_read_edges())
    shares = observe_steps(snapshot, server, steps)
    for number, total, share in zip(totals.counts, totals.sums, shares, strict=True):
        yield StepCell(number, 1, total / number if number else None, share)


def get_name(server: ServerRow) -> ServerName:
    """Return the names of a server."""
    return ServerName(server.id, server.cfx_id, server.hostname)


_WITHIN_DAY = ("1m", "2m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "6h")
"""Without 12h: with two values a day, the difference of day and night hides everything else."""

_INTERVALS_PER_STEP = 2
"""With fewer, polls that are a little early or late would leave steps without an observation."""

_FEW_OBSERVATIONS = 10
"""Fewer observations do not show how often a server is polled."""


def compute_step_chart(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    query: HistoryQuery,
    step: Step | None,
    most: int,
) -> StepTable:
    """Return all steps of a window, at most `most`; by default the shortest step that suits.

    A step chosen by default is at least two usual intervals long, of every server that has more
    than a few observations.

    Raises UsageError for too many steps and for too many servers, SnapshotError.
    """
    if not query.is_sum:
        check_server_count(len(servers))
    zone = ZoneInfo(query.zone)
    if step is None:
        step, steps = _choose_steps(snapshot, servers, query.window, zone, most)
    else:
        steps = divide_window(snapshot, servers, query.window, step, zone)
        if steps.step_count > most:
            raise ParameterError(
                f"{{step}}: {steps.step_count:,} steps, but the chart has room for {most:,}; use a"
                " longer step, a shorter window or a wider terminal"
            )
    lines = tuple(_read_lines(snapshot, servers, steps, query))
    query = replace(query, step=step.name)
    return StepTable(query, tuple(map(get_name, servers)), lines, (), len(lines))


def _read_lines(
    snapshot: Snapshot, servers: Sequence[ServerRow], steps: Steps, query: HistoryQuery
) -> Iterator[StepLine]:
    if query.is_sum or query.aggregate != "mean" or not steps.step_count:
        yield from read_lines(snapshot, servers, steps, query, range(steps.step_count))
        return
    columns = [describe_cells(snapshot, server, steps) for server in servers]
    for (start, end), *line in zip(steps.iter_times(), *columns, strict=True):
        yield StepLine(start, end, tuple(line))


def _choose_steps(
    snapshot: Snapshot, servers: Sequence[ServerRow], window: Window, zone: ZoneInfo, most: int
) -> tuple[Step, Steps]:
    bounded = bound_window(snapshot, servers, window)
    figures = snapshot.compute_figures(servers, bounded)
    intervals = [
        one.usual_interval
        for one in figures
        if one.usual_interval is not None and one.statistics.observations >= _FEW_OBSERVATIONS
    ]
    usual = max(intervals, default=0)
    for step in _iter_steps():
        is_long = step.shortest >= _INTERVALS_PER_STEP * usual
        if is_long and (bounded.end - bounded.start) // step.shortest < most:
            steps = divide_window(snapshot, servers, window, step, zone)
            if steps.step_count <= most:
                return step, steps
    raise AssertionError  # the steps become longer without end


def _iter_steps() -> Iterator[Step]:
    """Yield the steps that a chart can have, in ascending order."""
    yield from map(parse_step, (*_WITHIN_DAY, "1d", "2d", "week", "14d", "month"))
    for power in count():
        for factor in (50, 100, 200):
            days = factor * 10**power
            yield Step(f"{days}d", days * DAY_MS)
