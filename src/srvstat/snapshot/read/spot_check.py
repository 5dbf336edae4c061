"""Check one server after another of an open snapshot."""

from collections import defaultdict

from srvstat.contract.ranges import DAYS, find_window
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.snapshot import Snapshot


class SpotCheck:
    """Check the next server each time: of each file of the snapshot in turn, in order of their ids.

    One thread at a time may use it, with any open snapshot: a later one is checked from the same
    place on.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._last: defaultdict[int, str] = defaultdict(str)
        """The last id checked in each file, by the number of the file."""

    def check_next(self, snapshot: Snapshot) -> str | None:
        """Check the next server on the disk, and return its id; None for a file without servers.

        All rows are read that answers about the server need. After an error, the next check reads
        the same server again.

        Raises SnapshotError.
        """
        files = list(snapshot.iter_files())
        number = self._turn % len(files)
        file = files[number].reread()
        found = _find_next(file, self._last[number])
        if found is not None:
            _check_server(file, found, snapshot.as_of)
            self._last[number] = found
        elif file.file_row.server_count:
            raise file.build_damage_error("the servers")
        self._turn += 1
        return found


def _find_next(file: SnapshotFile, last: str) -> str | None:
    """Return the unverified id of the server after another, or else of the first one."""
    for start in (f"{last}\0", ""):
        for found in file.iter_identifiers("id", start):
            return found
    return None


def _check_server(file: SnapshotFile, server_id: str, as_of: int) -> None:
    """Compute what all answers about a server contain; this verifies each row that they need."""
    (server,) = file.rows.find_servers([("id", server_id)])
    if server is None or not file.has_server(server):
        raise file.build_damage_error("the servers")
    file.get_detail(server)
    for name in DAYS:
        file.compute_statistics([server], find_window(name, as_of))
