"""Merge new observations into those of one server, in this process or in a second one."""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import Window
from srvstat.snapshot.format.calendar import read_calendar
from srvstat.snapshot.format.derive import DerivedColumns, has_valid_observations
from srvstat.snapshot.format.rows import Day, ServerRow, Value
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.read.stored_server import append_observations
from srvstat.snapshot.write.limits import check_day, derive_within_limits

Columns = tuple["array[int]", "array[int]"]
"""Ascending instants, and the players of each."""


class OldFile:
    """The open snapshot that is updated; a copy in another process opens it again."""

    def __init__(self, snapshot: SnapshotFile) -> None:
        self._snapshot = snapshot

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process needs to open the same file."""
        return _open_again, (self._snapshot.path, self._snapshot.file_row.digest)

    def read(self, row: ServerRow, start: int, end: int = LATEST) -> Columns:
        """Return the observations of a server from `start` to `end`, both included.

        Raises SnapshotError.
        """
        old = self._snapshot
        instants, players = array("q"), array("q")
        for more_instants, more_players in old.iter_observations(row, Window(start - 1, end)):
            instants.extend(more_instants)
            players.extend(more_players)
        # The digests of a forged file match, whatever its values are.
        if not has_valid_observations(instants, players, old.as_of):
            raise old.build_damage_error(f"the days of {row.title}")
        return instants, players

    def append(
        self, row: ServerRow, instants: Sequence[int], players: Sequence[int]
    ) -> "MergeResult | None":
        """Append later observations to a server; return None if that is not possible.

        Raises SnapshotError, SourceError for more observations than a snapshot holds.
        """
        appended = append_observations(self._snapshot, row, instants, players)
        if appended is None:
            return None
        days = read_calendar(row._replace(**appended.columns._asdict())).count_days()
        for _, values in appended.rows:
            if isinstance(values, Day):
                check_day(row.id, values, days)
        return MergeResult(appended.columns, appended.rows, replaces_all=False)


@lru_cache(maxsize=1)
def _open_again(path: str, digest: bytes) -> OldFile:
    """Open a snapshot with a given row of the file; it stays open until the process ends."""
    snapshot = open_file(path)
    if snapshot.file_row.digest != digest:
        snapshot.close()
        raise ValueError("another file")
    return OldFile(snapshot)


class Additions(NamedTuple):
    """New observations of a server, after all those that the snapshot has from `start` on.

    Without a row, the server is new. With `later`, its last so many observations are the new ones,
    and later than all in the snapshot.
    """

    old: OldFile
    server_id: str
    number: int
    row: ServerRow | None
    start: int
    instants: Sequence[int]
    players: Sequence[int]
    later: int


class MergeResult(NamedTuple):
    """The derived columns of a server, and rows with their tables: all, or those that change."""

    columns: DerivedColumns
    rows: Sequence[tuple[str, tuple[Value, ...]]]
    replaces_all: bool


def merge_server(additions: Additions) -> MergeResult:
    """Merge new observations into those of a server.

    Raises SnapshotError for damaged rows, SourceError for more observations than a snapshot holds.
    """
    old, server_id, number, row, start, instants, players, later = additions
    if row is not None:
        if later and (merged := old.append(row, instants[-later:], players[-later:])):
            return merged
        earlier_instants, earlier_players = old.read(row, 0, start - 1)
        instants = earlier_instants + array("q", instants)
        players = earlier_players + array("q", players)
    rows: list[tuple[str, tuple[Value, ...]]] = []
    columns = derive_within_limits(
        server_id, number, instants, players, lambda table, values: rows.append((table, values))
    )
    return MergeResult(columns, rows, replaces_all=True)
