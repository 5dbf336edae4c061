"""Merge staged observations into the servers of a snapshot."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.write.changes import Changes
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.merge_server import Additions, OldFile, merge_server
from srvstat.snapshot.write.server_rows import get_derived
from srvstat.snapshot.write.store import MAX_SHARED, count_repeats

if TYPE_CHECKING:
    from srvstat.snapshot.format.derive import DerivedColumns


class Merge:
    """Merges the staged observations of servers into those of a snapshot.

    `derived` has the derived columns of all servers by number. `kept` and `repeated` count the
    staged observations; one of the snapshot counts as read before all others.
    """

    def __init__(
        self,
        old: SnapshotFile,
        before: Mapping[str, ServerRow],
        intake: Intake,
        changes: Changes,
    ) -> None:
        self._old = OldFile(old)
        self._before = before
        self._intake = intake
        self._changes = changes
        self.derived: dict[int, DerivedColumns] = {}
        self.kept = 0
        self.repeated = 0

    def merge_servers(self, progress: Progress) -> None:
        """Put the rows that change.

        Raises SnapshotError for damaged rows, SourceError for more observations than a snapshot
        holds.
        """
        # Before all new rows, as a new server can't have the number of a removed one.
        for removed in self._before.keys() - self._intake.roster.server_keys.keys():
            self._changes.remove_derived(self._before[removed].server)
        merged = self._intake.second.compute(
            merge_server, self._iter_additions(), is_small=_is_small
        )
        for additions, (columns, rows, replaces_all) in merged:
            if replaces_all:
                self._changes.remove_derived(additions.number)
            for table, row in rows:
                self._changes.put(table, row)
            self.derived[additions.number] = columns
            progress("storing", 0, len(additions.instants))

    def _iter_additions(self) -> Iterator[Additions]:
        """Yield the servers that change, and take over the columns of the others."""
        for server_id, number in self._intake.roster.server_keys.items():
            row = self._before.get(server_id)
            additions = self._find_additions(server_id, number, row)
            if row is None or additions.instants:
                yield additions
            else:
                self.derived[number] = get_derived(row)

    def _find_additions(self, server_id: str, number: int, row: ServerRow | None) -> Additions:
        """Return the new observations of a server; without any, no observations at all."""
        last = -1 if row is None or row.last_observed_at is None else row.last_observed_at
        start, stored = LATEST + 1, 0

        def read_earlier(instant: int) -> tuple[Sequence[int], Sequence[int]]:
            nonlocal start, stored
            if row is None or instant > last:
                return (), ()
            start = instant // DAY_MS * DAY_MS
            found = self._old.read(row, start)
            stored = len(found[0])
            return found

        series = self._intake.staging.take_series(number, read_earlier)
        self.repeated += count_repeats(self._intake, server_id, series)
        instants, players = series.instants, series.players
        added = len(instants) - stored
        self.kept += added
        if not added:
            instants, players = (), ()
        is_later = bisect_right(instants, last) == stored
        later = added if is_later else 0
        return Additions(self._old, server_id, number, row, start, instants, players, later)


def _is_small(additions: Additions) -> bool:
    stored = additions.row.observation_count if additions.row else 0
    return stored + len(additions.instants) <= MAX_SHARED
