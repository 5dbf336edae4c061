"""Merge staged observations into the servers of a snapshot."""

from bisect import bisect_right
from collections.abc import Sequence

from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.calendar import read_calendar
from srvstat.snapshot.format.derive import DerivedColumns, has_valid_observations
from srvstat.snapshot.format.rows import Day, ServerRow
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.stored_server import append_observations
from srvstat.snapshot.write.changes import Changes
from srvstat.snapshot.write.ingest import Intake
from srvstat.snapshot.write.limits import check_day, derive_within_limits
from srvstat.snapshot.write.server_rows import get_derived
from srvstat.snapshot.write.staging import Series
from srvstat.snapshot.write.store import count_repeats

_Observations = tuple[Sequence[int], Sequence[int]]
"""Ascending instants, and the players of each."""


class Merge:
    """Merges the staged observations of one server after another into those of a snapshot.

    `kept` and `repeated` count the staged observations. An observation of the snapshot counts as
    read before all others.
    """

    def __init__(self, old: SnapshotFile, intake: Intake, changes: Changes) -> None:
        self._old = old
        self._intake = intake
        self._changes = changes
        self.kept = 0
        self.repeated = 0

    def merge_server(self, server_id: str, number: int, row: ServerRow | None) -> DerivedColumns:
        """Put the changed rows of a server, and return its derived columns.

        `row` is that of the server in the snapshot, if it is there.

        Raises SnapshotError for damaged rows, SourceError for more observations than a snapshot
        holds.
        """
        stored = _StoredSeries(self._old, row)
        series = self._intake.staging.take_series(number, stored.read_from_day)
        self.repeated += count_repeats(self._intake, server_id, series)
        added = len(series.instants) - stored.count
        self.kept += added
        if row is None:
            return self._derive(server_id, number, series.instants, series.players)
        if not added:
            return get_derived(row)
        late = bisect_right(series.instants, row.last_observed_at or -1) - stored.count
        if not late and (columns := self._append(row, series, added)):
            return columns
        instants, players = stored.read_earlier()
        self._changes.remove_derived(number)
        return self._derive(
            server_id, number, [*instants, *series.instants], [*players, *series.players]
        )

    def _append(self, row: ServerRow, series: Series, added: int) -> DerivedColumns | None:
        """Append the last observations of a series; return None if that is not possible."""
        last = series.instants[-added:], series.players[-added:]
        appended = append_observations(self._old, row, *last)
        if appended is None:
            return None
        days = read_calendar(row._replace(**appended.columns._asdict())).count_days()
        for table, values in appended.rows:
            if isinstance(values, Day):
                check_day(row.id, values, days)
            self._changes.put(table, values)
        return appended.columns

    def _derive(
        self, server_id: str, number: int, instants: Sequence[int], players: Sequence[int]
    ) -> DerivedColumns:
        return derive_within_limits(server_id, number, instants, players, self._changes.put)


class _StoredSeries:
    """The observations that a snapshot has of a server, read as far as staged ones need them.

    `count` is the number of those that `read_from_day` returned.
    """

    def __init__(self, old: SnapshotFile, row: ServerRow | None) -> None:
        self._old = old
        self._row = row
        self._start = LATEST + 1
        self.count = 0

    def read_from_day(self, instant: int) -> _Observations:
        """Return the observations from the start of the UTC day of an instant on.

        None are returned if all are before the instant.
        """
        row = self._row
        if row is None or row.last_observed_at is None or instant > row.last_observed_at:
            return (), ()
        self._start = instant // DAY_MS * DAY_MS
        instants, players = self._read(row, Window(self._start - 1, LATEST))
        self.count = len(instants)
        return instants, players

    def read_earlier(self) -> _Observations:
        """Return the observations that `read_from_day` did not."""
        return ((), ()) if self._row is None else self._read(self._row, Window(-1, self._start - 1))

    def _read(self, row: ServerRow, window: Window) -> _Observations:
        instants, players = self._old.read_observations(row, window)
        # The digests of a forged file match, whatever its values are.
        if not has_valid_observations(instants, players, self._old.as_of):
            raise self._old.build_damage_error(f"the days of {row.title}")
        return instants, players
