"""Select the rows of a history that its tables show: the first and the last ones."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from srvstat.analysis.history import aggregate_history, read_history, sum_steps
from srvstat.documents.history import (
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
    yield HistoryNotes(query, snapshot.as_of, has_steps=False, has_omitted=has_omitted)


def describe_steps(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    edges: Sequence[int],
    query: HistoryQuery,
) -> Iterator[HistoryPart]:
    """Yield tables of the steps between edges, each of some servers, and notes on all of them.

    Only the steps that a table shows are read.

    Raises SnapshotError.
    """
    count = max(len(edges) - 1, 0)
    has_omitted = count > 2 * _SHOWN
    ends = (edges[: _SHOWN + 1], edges[-_SHOWN - 1 :]) if has_omitted else (edges, ())
    size = len(servers) if query.is_sum else _SERVERS_PER_TABLE
    for start in range(0, len(servers), size):
        selected = servers[start : start + size]
        first, last = (tuple(read_lines(snapshot, selected, end, query)) for end in ends)
        yield StepTable(query, tuple(map(get_name, selected)), first, last, count)
    yield HistoryNotes(query, snapshot.as_of, has_steps=True, has_omitted=has_omitted)


def read_lines(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    edges: Sequence[int],
    query: HistoryQuery,
) -> Iterator[StepLine]:
    """Yield the steps between edges, with a cell for each server or one for their sum.

    Raises SnapshotError.
    """
    columns: list[list[StepCell]]
    if query.is_sum:
        columns = [sum_steps(snapshot, servers, edges, query.aggregate)] if edges else []
    else:
        columns = [
            [StepCell(count, 1, players) for *_, count, players in rows]
            for rows in (
                aggregate_history(snapshot, [server], edges, query.aggregate) for server in servers
            )
        ]
    for (start, end), *cells in zip(pairwise(edges), *columns, strict=True):
        yield StepLine(start, end, tuple(cells))


def get_name(server: ServerRow) -> ServerName:
    """Return the names of a server."""
    return ServerName(server.id, server.cfx_id, server.hostname)
