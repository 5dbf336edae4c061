"""What appending observations to a server reads of its stored rows."""

from collections.abc import Sequence
from typing import Protocol

from srvstat.snapshot.format.bands import Members
from srvstat.snapshot.format.rows import Day, IntervalCounts, ServerRow, Summaries, SummaryIndex


class StoredRows(Protocol):
    """Reads rows of one server, and verifies each of them."""

    @property
    def server(self) -> ServerRow:
        """The server's own row."""

    def read_last_day(self) -> Day:
        """Return the row of the last day with observations."""

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""

    def read_summaries(self, blocks: range) -> list[Summaries]:
        """Return the rows of `summaries` of some blocks, in order."""

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return the row of `interval_counts` of a block."""

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return the rows of `bands` or `intervals` of some bands, which have one."""
