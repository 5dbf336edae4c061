"""Define what an engine returns: integers that are exact and can be merged.

An engine counts. It never divides, so that no definition can differ between engines; `finish.py`
computes the figures with `srvstat.stats`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import pyarrow as pa

from srvstat.contract.ranges import Window
from srvstat.sources.source import Source

Conflicts = Literal["first", "lowest"]
"""Which of several unequal observations of a server at one instant stands (D16).

`first` is the first one by source, then by row; `lowest` is the one with the fewest players.
"""

ORDER_BITS = 40
"""The position of a row is `number of its source << ORDER_BITS | place`.

Sources count from 0. A place is a line of a text, or a row of any other source; both count from 1.
All rows of a source without an order, such as a database, have place 0.
Of rows in one position, the one with the fewest players is the first.
"""

ROWS = pa.schema(
    [
        ("identifier", pa.string()),  # as the source writes it
        ("at", pa.int64()),  # Unix milliseconds
        ("players", pa.int64()),
        ("position", pa.int64()),
    ]
)
"""The columns of observations before they are counted."""

SURVEY = pa.schema(
    [
        ("identifier", pa.string()),  # as the source writes it
        ("rows", pa.int64()),  # well-formed rows, also those after the as-of time
        ("late", pa.int64()),  # those after the as-of time
        ("last_at", pa.int64()),  # the latest instant up to the as-of time, null without one
        ("last_position", pa.int64()),  # the position of the row that stands at that instant
        ("last_players", pa.int64()),  # its players
    ]
)
"""The columns of a survey: one row for each distinct identifier."""

COUNTS = pa.schema(
    [
        ("server", pa.int32()),
        ("values", pa.list_(pa.int64())),  # the distinct values in the window, in any order
        ("counts", pa.list_(pa.int64())),  # how often each of them was observed
        ("first", pa.int64()),  # the players of the first observation in the window
        ("last", pa.int64()),  # and of the last one
    ]
)
"""The columns of counts: one row for each server with an observation in the window."""

FIGURES = pa.schema(
    [
        ("server", pa.int32()),
        ("observations", pa.int64()),
        ("mean", pa.float64()),
        ("median", pa.float64()),
        ("peak", pa.int64()),
        ("lowest", pa.int64()),
        ("growth_players", pa.int64()),
        ("growth_percentage", pa.float64()),
    ]
)
"""The columns of figures, which are those of `srvstat.stats.Statistics`."""


class Job(NamedTuple):
    """What to read, and how.

    Each file of a folder is a source of its own, in the order of names. `as_of`, in Unix
    milliseconds, defaults to the latest observation of a known server.
    """

    sources: Sequence[Source]
    as_of: int | None
    conflicts: Conflicts


class Rejected(NamedTuple):
    """The rows of a source that were rejected for one reason.

    `first` is the place of the first of them, and `value` and `column` are those of its reject. If
    the row as a whole is malformed, the value is its text, and the column empty.
    """

    source: int
    reason: str
    rows: int
    first: int
    value: str | None = None
    column: str | None = None


LOCATED = pa.schema(
    [
        ("source", pa.int64()),
        ("rows", pa.int64()),
        ("first", pa.int64()),  # the position of the first of these rows
        ("identifier", pa.string()),  # of that row
    ]
)
"""The columns of the rows of some identifiers: one row for each source that has any."""


class Survey(NamedTuple):
    """The identifiers of all sources, and the rows that are no observations.

    `sources` are those of the job, with the files at a URL as sources of their own. `identifiers`
    has the columns of SURVEY. `rows` has the number of all rows of each source by its
    number. `skipped` counts rows by reason.
    """

    sources: Sequence[Source]
    identifiers: pa.Table
    rows: Mapping[int, int]
    rejects: Sequence[Rejected]
    skipped: Mapping[str, int]
    warnings: Sequence[str] = ()


class Servers(NamedTuple):
    """The publishable servers: their ids, and the server that each identifier means.

    A server's number is the position of its id in `ids`, which ascend. `numbers` has the number of
    each identifier to keep, and `shards` the shard of each server, if there are any.
    """

    ids: Sequence[str]
    numbers: Mapping[str, int]
    shards: Sequence[int] = ()


class Resolved(NamedTuple):
    """How repeated and conflicting observations were resolved (D16).

    `conflict` describes one of the conflicts, for messages.
    """

    kept: int
    repeated: int
    conflicting: int
    conflict: str | None = None


class Count(NamedTuple):
    """The result of a count: a table with the columns of FIGURES, in any order."""

    figures: pa.Table
    resolved: Resolved


Progress = Callable[[str, float, str], None]
"""Called with the name of a step, the share of it that is done, and a detail, such as tasks."""


class Engine(Protocol):
    """An engine that is open for one job.

    All methods raise SourceError if a source can't be read, if its rows changed, or if unequal
    observations have no order in which one is the first; EngineError if the engine itself fails.
    """

    def survey(self) -> Survey:
        """Read all rows, and return their identifiers."""

    def locate(self, identifiers: Sequence[str]) -> pa.Table:
        """Return the rows of some identifiers by source, with the columns of LOCATED."""

    def count(self, servers: Servers, window: Window) -> Count:
        """Count the observations of servers in a window, and finish them to figures."""

    def write_rows(self, servers: Servers, until: int, folder: str) -> Resolved:
        """Write the resolved observations up to an instant as Parquet files, by shard.

        The folder is new. The files of shard 3 are `folder/shard=3/*.parquet`, with the columns
        `serverId` (the id of the server), `observedAt` (Unix milliseconds) and `players`. A shard
        is built faster if most of its rows are in the order of servers and instants.
        """
