"""Select the rows of a history that its tables show: the first and the last ones."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from srvstat.analysis.history import iter_steps, iter_sums, read_history
from srvstat.analysis.steps import Steps, observe_steps
from srvstat.documents.analysis import (
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
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

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
    for count, total, share in zip(totals.counts, totals.sums, shares, strict=True):
        yield StepCell(count, 1, total / count if count else None, share)


def get_name(server: ServerRow) -> ServerName:
    """Return the names of a server."""
    return ServerName(server.id, server.cfx_id, server.hostname)
