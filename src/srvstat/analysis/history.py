"""Read the history of servers: their observations, or an aggregate of each step.

Rows are read lazily: observations a block at a time, steps a server at a time. A table shows the
first and the last rows, and a chart as many steps as fit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice, repeat
from typing import Any, NamedTuple, get_args

import numpy as np

from srvstat.analysis import questions
from srvstat.analysis.parameters import check_choice
from srvstat.analysis.questions import Step, StepCounts, Steps
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Series, Total, compute_figures, get_name
from srvstat.contract import arrays
from srvstat.contract.errors import ParameterError
from srvstat.contract.windows import DAY_MS
from srvstat.documents import analysis as documents
from srvstat.documents.document import WHOLE_SHARE
from srvstat.documents.rows import Column, Kind
from srvstat.snapshot.read.observations import WindowFigures, iter_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow

AGGREGATES: tuple[documents.Aggregate, ...] = get_args(documents.Aggregate)

WITHIN_DAY = ("1m", "2m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "6h")
"""Chart steps shorter than half a day."""

_SERVER, _COUNT = Column("serverId", "text"), Column("sampleCount", "integer")
_TIMES = (Column("from", "instant"), Column("to", "instant"))
_SHARE = (Column("observedShare", "number"), Column("isPartial", "boolean"))

_Rows = Iterable[tuple[Any, ...]]


def parse_steps(
    step: str | None, aggregate: str | None, *, is_sum: bool, is_chart: bool | None = None
) -> tuple[Step | None, documents.Aggregate]:
    """Return the step of a history, or None for raw observations, and the aggregate.

    The default aggregate is the mean. A chart always has steps; `is_chart` is None if the command
    has no charts.

    Raises UsageError if an option is invalid or needs a step.
    """
    for name, is_given in (("aggregate", aggregate is not None), ("sum", is_sum)):
        if is_given and step is None and not is_chart:
            chart = "" if is_chart is None else " or {chart}"
            raise ParameterError(f"{{{name}}} requires {{step}}{chart}")
    named = AGGREGATES[0] if aggregate is None else aggregate
    chosen = check_choice("aggregate", named, AGGREGATES)
    if is_sum and documents.name_figure(chosen) != "players":
        raise ParameterError(f"{{sum}}: a {chosen} compares servers; leave out {{sum}}")
    return None if step is None else questions.parse_step(step), chosen


def read_history(question: Question) -> documents.History:
    """Return the observations in a window, server by server.

    Iterating over the rows raises SnapshotError if data are damaged.
    """
    snapshot, _, window, _ = question

    def iter_pieces() -> Iterator[_Rows]:
        for server in question.iter_rows():
            for instants, players in iter_observations(snapshot, server, window):
                yield zip(repeat(server.id), instants.tolist(), players.tolist(), strict=False)

    columns = (_SERVER, Column("observedAt", "instant"), Column("players", "integer"))
    return _build_history(question, columns, iter_pieces)


def aggregate_history(
    question: Question, steps: Steps, aggregate: documents.Aggregate = "mean"
) -> documents.History:
    """Return an aggregate of each step, server by server.

    Steps of a total have the number of servers in place of an id. Steps without observations have
    no players.

    Iterating over the rows raises SnapshotError if data are damaged.
    """
    snapshot, servers, _, _ = question

    def iter_pieces() -> Iterator[_Rows]:
        times = list(steps.iter_times())
        starts, ends = [start for start, _ in times], [end for _, end in times]
        selected = servers if documents.name_figure(aggregate) == "players" else list(servers)
        for one, columns in zip(
            selected, _iter_columns(snapshot, selected, steps, aggregate), strict=True
        ):
            counts, present, *others = columns.list_values()
            if isinstance(one, Total):
                yield zip(starts, ends, counts, present, *others, strict=True)
            else:
                yield zip(repeat(one.id), starts, ends, counts, *others, strict=False)

    kind: Kind = "number" if _has_fractions(aggregate) else "integer"
    figures = (Column(documents.name_figure(aggregate), kind), *_SHARE)
    if question.is_sum:
        columns = (*_TIMES, _COUNT, Column("serverCount", "integer"), *figures)
    else:
        columns = (_SERVER, *_TIMES, _COUNT, *figures)
    return _build_history(question, columns, iter_pieces)


def _build_history(
    question: Question, columns: tuple[Column, ...], iter_pieces: Callable[[], Iterator[_Rows]]
) -> documents.History:
    # `chain` avoids a Python generator over all rows, which would take a quarter of the total time.
    return documents.History(
        **question.describe("hold"),
        columns=columns,
        read_rows=lambda: chain.from_iterable(iter_pieces()),
    )


def _has_fractions(aggregate: documents.Aggregate) -> bool:
    """Return whether an aggregate of whole numbers can be a fraction."""
    return aggregate in {"mean", "median", "share"}


class _StepColumns(NamedTuple):
    """The fields of `StepCell`, each as a column over all steps."""

    counts: arrays.Numbers
    servers: arrays.Numbers
    players: arrays.Exact
    shares: arrays.Doubles

    def build_cell(self, step: int) -> documents.StepCell:
        """Return the cell of a step."""
        return documents.StepCell._make(column.item(step) for column in self)

    def list_values(self) -> list[list[Any]]:
        """Return the values of all columns, and whether each step is partial."""
        return [column.tolist() for column in (*self, self.shares < WHOLE_SHARE)]


def _aggregate_steps(
    snapshot: Snapshot, series: Series, steps: Steps, aggregate: documents.Aggregate
) -> _StepColumns:
    figures = compute_figures(snapshot, series, steps.window)
    counts = questions.count_steps(snapshot, series, figures, steps)
    values = aggregate_steps(counts, aggregate)
    return _StepColumns(counts.samples, counts.present, values, counts.shares)


def _iter_columns(
    snapshot: Snapshot, servers: Iterable[Series], steps: Steps, aggregate: documents.Aggregate
) -> Iterator[_StepColumns]:
    """Return the columns of each server."""
    if documents.name_figure(aggregate) != "players":
        return _compare_steps(snapshot, list(servers), steps, aggregate)
    return (_aggregate_steps(snapshot, one, steps, aggregate) for one in servers)


def _compare_steps(
    snapshot: Snapshot, servers: Sequence[Series], steps: Steps, aggregate: documents.Aggregate
) -> Iterator[_StepColumns]:
    """Yield each server's share or rank in each step, by its average.

    Equal averages share the better rank. As in a total, the coverage of a step is the lowest
    coverage of any expected server.
    """
    total = Total(snapshot, [one for one in servers if isinstance(one, ServerRow)])
    least = _aggregate_steps(snapshot, total, steps, "mean").shares
    found = [
        questions.count_steps(snapshot, one, compute_figures(snapshot, one, steps.window), steps)
        for one in servers
    ]
    quotients = [tuple(each.astype(object) for each in one.sum_players()) for one in found]
    # With their common denominator, the averages of a step become integers. -1 means no average.
    common = np.ones(steps.step_count, object)
    for _, weights in quotients:
        common = np.lcm(common, np.maximum(weights, 1))
    averages = [
        np.where(weights > 0, sums * (common // np.maximum(weights, 1)), -1)
        for sums, weights in quotients
    ]
    added = sum((one.clip(0) for one in averages), np.zeros(steps.step_count, object))
    for counts, average in zip(found, averages, strict=True):
        values = np.full(steps.step_count, None, object)
        if aggregate == "rank":
            greater = sum((each > average for each in averages), np.ones(len(values), np.int64))
            values[average >= 0] = greater[average >= 0]
        else:
            is_known = (average >= 0) & (added > 0)
            values[is_known] = average[is_known] / added[is_known]
        yield _StepColumns(counts.samples, counts.present, values, least)


def aggregate_steps(counts: StepCounts, aggregate: documents.Aggregate) -> arrays.Exact:
    """Return the aggregate of each step, or None for an empty step."""
    quotients = _compute_quotients(counts, aggregate)
    is_filled = quotients[1] > 0
    numerators, denominators = (each[is_filled] for each in quotients)
    values = np.full(len(is_filled), None, object)
    values[is_filled] = (
        arrays.divide(numerators, denominators) if _has_fractions(aggregate) else numerators
    )
    return values


def _compute_quotients(
    observed: StepCounts, aggregate: documents.Aggregate
) -> tuple[arrays.Exact, arrays.Numbers]:
    """Return the exact aggregates of steps: numerators, and denominators (0 for an empty step)."""
    players, edges = observed.players, observed.edges
    starts, counts = edges[:-1], np.diff(edges)
    ones = (counts > 0).astype(np.int64)
    padded = np.append(players, 0)  # so that each edge is a position
    match aggregate:
        case "mean" | "share" | "rank":
            return observed.sum_players()
        case "median":
            groups = np.repeat(np.arange(len(counts)), counts)
            if observed.weights is not None:
                weighted = groups, players, observed.weights, len(counts)
                totals, doubles = arrays.compute_double_medians(*weighted)
                return doubles, 2 * (totals > 0)
            ranked = np.append(arrays.sort_groups(groups, players), 0)
            return ranked[starts + (counts - 1) // 2] + ranked[starts + counts // 2], 2 * ones
        case "max":
            return np.maximum.reduceat(padded, edges)[:-1], ones
        case "min":
            return np.minimum.reduceat(padded, edges)[:-1], ones
        case "last":
            return padded[edges[1:] - 1], ones


_SHOWN = 50
"""The maximum number of rows shown at each end of a table."""

_SERVERS_PER_TABLE = 8
"""The maximum number of servers in a table of steps."""


def describe_observations(
    question: Question, query: documents.HistoryQuery
) -> Iterator[documents.HistoryPart]:
    """Yield the query, a table of observations for each server, and notes on all tables.

    Raises SnapshotError if data are damaged.
    """
    snapshot, _, window, _ = question
    has_omitted = False
    yield query
    for server in question.iter_rows():
        figures = compute_figures(snapshot, server, window)
        first, last = _list_shown(figures.count)
        rows = np.transpose(figures.observations)
        table = documents.ObservationTable(
            query=query,
            server=get_name(server),
            first=tuple(map(documents.Observation._make, rows[first].tolist())),
            last=tuple(map(documents.Observation._make, rows[last].tolist())),
            count=figures.count,
            usual_interval=figures.usual_interval,
        )
        has_omitted |= table.omitted_count > 0
        yield table
    yield documents.HistoryNotes(has_omitted, snapshot.is_held)


def _list_shown(count: int) -> tuple[range, range]:
    """Return the row numbers at the beginning and at the end of a table."""
    first = range(min(count, _SHOWN))
    return first, range(max(count - _SHOWN, len(first)), count)


def describe_steps(
    question: Question, steps: Steps, query: documents.HistoryQuery
) -> Iterator[documents.HistoryPart]:
    """Yield the query, tables of steps for groups of servers, and notes on all tables.

    Raises SnapshotError if data are damaged.
    """
    snapshot, servers = question.snapshot, list(question.servers)
    yield query
    shown = _list_shown(steps.step_count)
    columns = _iter_columns(snapshot, servers, steps, query.aggregate)
    for start in range(0, len(servers), _SERVERS_PER_TABLE):
        selected = servers[start : start + _SERVERS_PER_TABLE]
        first, last = _list_lines([*islice(columns, _SERVERS_PER_TABLE)], steps, shown)
        names = tuple(map(get_name, selected))
        yield documents.StepTable(query, names, first, last, steps.step_count)
    yield documents.HistoryNotes(steps.step_count > 2 * _SHOWN, snapshot.is_held)


def _list_lines(
    columns: Sequence[_StepColumns], steps: Steps, shown: Iterable[range]
) -> list[tuple[documents.StepLine, ...]]:
    """Return the lines of some steps, with a cell for each server or total."""
    times = list(steps.iter_times())
    return [
        tuple(
            documents.StepLine(*times[at], tuple(one.build_cell(at) for one in columns))
            for at in numbers
        )
        for numbers in shown
    ]


def describe_cells(
    snapshot: Snapshot, series: Series, figures: WindowFigures, steps: Steps
) -> tuple[documents.StepCell, ...]:
    """Return the average of each step of a server. The cell's observations are its weight.

    Raises SnapshotError if data are damaged.
    """
    counts = questions.count_steps(snapshot, series, figures, steps)
    values, (_, weights) = aggregate_steps(counts, "mean"), counts.sum_players()
    columns = (weights, counts.present, values, counts.shares)
    return (*map(documents.StepCell, *(column.tolist() for column in columns)),)


_INTERVALS_PER_STEP = 2
"""The minimum step in polling intervals; shorter steps could be empty when polls jitter."""

_FEW_OBSERVATIONS = 10
"""The minimum number of observations for estimating a polling interval."""


def compute_step_chart(
    question: Question, query: documents.HistoryQuery, step: Step | None, most: int
) -> documents.StepTable:
    """Return a table of all steps of a window.

    - `step`: by default the shortest step that suits the servers and gives at most `most` steps.
    - `most`: the maximum number of steps.

    The default step is at least two polling intervals of each server that has more than a few
    observations.

    Raises UsageError for too many steps or servers, and SnapshotError if data are damaged.
    """
    snapshot, servers = question.snapshot, list(question.servers)
    questions.check_server_count(len(servers))
    if step is None:
        step, steps = _choose_steps(question, most)
    else:
        steps = questions.divide_window(question, step)
        if steps.step_count > most:
            raise ParameterError(
                f"{{step}}: {steps.step_count:,} steps, but the chart has room for {most:,}; use a"
                " longer step, a shorter window or a wider terminal"
            )
    columns = [*_iter_columns(snapshot, servers, steps, query.aggregate)]
    (lines,) = _list_lines(columns, steps, [range(steps.step_count)])
    query = replace(query, step=step.name)
    return documents.StepTable(query, tuple(map(get_name, servers)), lines, (), len(lines))


def _choose_steps(question: Question, most: int) -> tuple[Step, Steps]:
    bounded = questions.bound_window(question)
    figures = [compute_figures(question.snapshot, one, bounded) for one in question.servers]
    usual = max(
        (one.usual_interval or 0 for one in figures if one.count >= _FEW_OBSERVATIONS), default=0
    )
    for step in _iter_chart_steps():
        is_long = step.shortest >= _INTERVALS_PER_STEP * usual
        if is_long and (bounded.end - bounded.start) // step.shortest < most:
            steps = questions.divide_window(question, step)
            if steps.step_count <= most:
                return step, steps
    raise AssertionError  # unbounded: the loop ends when the steps fit


def _iter_chart_steps() -> Iterator[Step]:
    """Yield the possible chart steps in ascending order, without end.

    Steps of 12h are not offered, because the difference of day and night would hide everything
    else.
    """
    yield from map(questions.parse_step, (*WITHIN_DAY, "1d", "2d", "week", "14d", "month"))
    for power in count():
        for factor in (50, 100, 200):
            days = factor * 10**power
            yield Step(f"{days}d", days * DAY_MS)
