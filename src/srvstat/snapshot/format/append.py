"""Append newer observations of a server to its stored rows.

The result equals what `derive` returns for all observations, but few stored rows are read.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from srvstat.snapshot.format.bands import Members
from srvstat.snapshot.format.derive import DerivedColumns
from srvstat.snapshot.format.rows import (
    Day,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
    Value,
)


class StoredRows(Protocol):
    """Reads verified rows of one server."""

    server: ServerRow

    def read_last_day(self) -> Day:
        """Return the row of the last day with observations."""

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""

    def read_summaries(self, first: int, last: int) -> list[Summaries]:
        """Return the rows of `summaries` from block `first` to block `last`, both included."""

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return the row of `interval_counts` of a block."""

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return the rows of `bands` or `intervals` of some bands that have one."""


class Appended(NamedTuple):
    """The new derived columns of `servers`, and the rows that replace or follow the stored ones.

    Each row has its table. A row with the key of a stored one replaces it.
    """

    columns: DerivedColumns
    rows: Sequence[tuple[str, tuple[Value, ...]]]


def append(stored: StoredRows, instants: Sequence[int], players: Sequence[int]) -> Appended | None:
    """Append observations, at least one, in ascending order of instants, to those of a server.

    Returns None if the rows have to be derived from all observations: the server has fewer than 64
    stored ones, the first instant is not later than the last stored one, a new epoch begins, or
    the usual interval or the long intervals do not follow from the rows that are read.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    raise NotImplementedError
