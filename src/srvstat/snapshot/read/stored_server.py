"""Read the rows of a server to which newer observations are appended."""

from collections.abc import Sequence

from srvstat.snapshot.format.append import AppendResult, append
from srvstat.snapshot.format.bands import Members
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    Day,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
)
from srvstat.snapshot.format.summaries import Index, read_index
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.summary_rows import read_blocks, read_count_rows, read_index_rows
from srvstat.snapshot.read.verified_rows import VerifiedRows


def append_observations(
    snapshot: SnapshotFile, server: ServerRow, instants: Sequence[int], players: Sequence[int]
) -> AppendResult | None:
    """Append newer observations to the rows of a server; the file stays as it is.

    Returns what `append` returns. The columns and rows are those for all observations.

    Raises SnapshotError.
    """
    with snapshot.convert_decode_errors(f"the rows of {server.title}"):
        return append(_StoredServer(snapshot.rows, server), instants, players)


class _StoredServer:
    """Implements StoredRows; every method can raise SnapshotError."""

    def __init__(self, rows: VerifiedRows, server: ServerRow) -> None:
        self._rows = rows
        self.server = server
        self._index: Index | None = None

    def read_last_day(self) -> Day:
        """Return the row of the last day with observations."""
        recent = self._rows.get_calendar(self.server).recent
        last = recent.get_entry(len(recent.days) - 1)
        ((day,),) = self._rows.read_days([(self.server, [last])])
        return day

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""
        (row,) = read_index_rows(self._rows, [self.server])
        self._index = read_index(row)
        return row

    def read_summaries(self, blocks: range) -> list[Summaries]:
        """Return the rows of `summaries` of some blocks, in order."""
        (found,) = read_blocks(self._rows, [(self.server, self._get_index(), blocks)])
        return found

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return the row of `interval_counts` of a block."""
        key = self.server.server * BLOCKS_PER_SERVER + block
        return read_count_rows(self._rows, {key: (self.server, self._get_index())})[key]

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return the rows of `bands` or `intervals` of some bands, which have one."""
        of_server = (
            self._rows.get_bands(self.server) if table == "bands" else self._get_index().bands
        )
        found = self._rows.read_members(table, [(self.server, of_server, band) for band in bands])
        return {band: members for (_, band), members in found.items()}

    def _get_index(self) -> Index:
        return self._index or read_index(self.read_index())
