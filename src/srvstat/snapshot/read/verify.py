"""Verify a whole snapshot, the rows written by an update, or one server at a time."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice

from srvstat.contract.windows import DAY_MS, DAYS, find_window
from srvstat.documents.snapshot import Verification
from srvstat.snapshot import rows
from srvstat.snapshot.read.file import DIRECTORY, FILE_ROW, SnapshotFile
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics


class SpotCheck:
    """Check one server per call, cycling through files and ids.

    Not thread-safe. Each call may pass another open snapshot; checking continues at the same place.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._last: defaultdict[int, str] = defaultdict(str)
        """The last id checked in each file, by the number of the file."""

    def check_next(self, snapshot: Snapshot) -> str | None:
        """Check the next server on the disk and return its id, or None if the file has no servers.

        Reads all rows that responses about the server need. After an error, the next call checks
        the same server again.

        Raises SnapshotError if data are damaged.
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
    """Return the unverified id of the server after `last`, or the first id if there is none."""
    following = file.iter_identifiers("id", f"{last}\0")
    return next(chain(following, file.iter_identifiers("id")), None)


def _check_server(file: SnapshotFile, server_id: str, as_of: int) -> None:
    """Compute all that responses about a server contain, which verifies each row they need."""
    server = file.find_server("id", server_id)
    if server is None or not file.has_server(server):
        raise file.build_damage_error("the servers")
    file.describe_record(server)
    for name in DAYS:
        compute_window_statistics(file, [server], find_window(name, as_of))


def verify(
    path: str, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Verification:
    """Verify all rows, and compare derived data with data recomputed from observations and servers.

    Calls `progress` with the number of observations just checked and the total number.

    Raises SnapshotError, which names the first part that differs.
    """
    with closing(open_snapshot(path)) as snapshot:
        total = snapshot.file_row.observation_count
        days = sum(
            _verify_file(file, lambda observations: progress(observations, total))
            for file in snapshot.iter_files()
        )
        _check_whole(snapshot)
        return Verification(
            root=snapshot.root,
            as_of=snapshot.as_of,
            servers=snapshot.file_row.server_count,
            observations=total,
            days=days,
        )


def _verify_file(snapshot: SnapshotFile, progress: Callable[[int], None]) -> int:
    """Verify a file and return the number of its days. Calls `progress` after each server."""
    servers = list(snapshot.iter_servers())
    days = 0
    for server in servers:
        days += _verify_server(snapshot, server)
        snapshot.describe_record(server)
        progress(server.observation_count)
    _check_directory(snapshot, servers)
    _check_counts(snapshot, sum(len(rows.read_block_ends(server)) for server in servers))
    # This check is last, because it can't name the damaged part.
    snapshot.connection.check_structure()
    return days


def _verify_server(snapshot: SnapshotFile, server: rows.ServerRow) -> int:
    """Derive a server's rows again, compare them, and return the number of days."""
    # Imported here because a fleet engine only checks chains, without numpy.
    import numpy as np  # noqa: PLC0415

    from srvstat.snapshot.blocks import decode_blocks, derive, join  # noqa: PLC0415

    part = f"the observations of {server.title}"
    with snapshot.convert_decode_errors(part):
        ends = rows.read_block_ends(server)
        blocks = list(snapshot.iter_blocks(server, has_counts=True))
        observations = join([*decode_blocks(server, blocks)])
    if ends and ends[-1] > snapshot.as_of:
        raise snapshot.build_damage_error(part)
    stored = iter(blocks)

    def compare(block: rows.Block) -> None:
        if next(stored, None) != block:
            raise snapshot.build_block_error(server, block.number)

    if derive(server, observations, compare) != server:
        raise snapshot.build_damage_error(server.title)
    return int(np.count_nonzero(np.diff(observations.instants // DAY_MS, prepend=-1)))


def check_chain(snapshot: Snapshot) -> None:
    """Verify every row that responses can need, the row counts, and the structure of files.

    Raises SnapshotError if data are damaged.
    """
    for file in snapshot.iter_files():
        check_written(file, None)
        file.connection.check_structure()
    _check_whole(snapshot)


def _check_whole(snapshot: Snapshot) -> None:
    """Check consistency across the files of a sharded snapshot. A single file needs no such check.

    Each server must be in its shard, a cfxId in one shard only, and the manifest must state the
    times of the first and the last observation.

    Raises SnapshotError if any of these is violated.
    """
    if isinstance(snapshot, SnapshotFile):
        return
    cfx_ids: set[str] = set()
    for server in snapshot.iter_servers():
        if server.cfx_id in cfx_ids:
            raise snapshot.build_damage_error(f"{server.title}: another shard has its cfxId, too")
        cfx_ids.add(server.cfx_id)
    span = rows.find_observed_span([file.file_row for file in snapshot.iter_files()])
    if span != (snapshot.file_row.first_observed_at, snapshot.file_row.last_observed_at):
        raise snapshot.build_damage_error(f"the first or last observation of {rows.MANIFEST}")


def check_written(snapshot: SnapshotFile, first_blocks: Mapping[str, int] | None) -> None:
    """Verify the servers, the directory, the row counts, and blocks.

    `first_blocks`: server id → the number of the first block to verify; servers not listed have no
    blocks to verify. None means all blocks of all servers.

    Raises SnapshotError if data are damaged.
    """
    blocks = 0
    for server in snapshot.iter_servers():
        if not snapshot.has_server(server):
            raise snapshot.build_damage_error(DIRECTORY)
        with snapshot.convert_decode_errors(server.title):
            count = len(rows.read_block_ends(server))
            first = 0 if first_blocks is None else first_blocks.get(server.id, count)
            deque(snapshot.iter_blocks(server, first, has_counts=True), 0)
        blocks += count
    _check_counts(snapshot, blocks)


def _check_directory(snapshot: SnapshotFile, servers: Sequence[rows.ServerRow]) -> None:
    """Compare the directory and the file's row with all servers."""
    row, directory = rows.describe_servers(snapshot.file_row, servers)
    if list(islice(snapshot.iter_directory(), len(directory) + 1)) != directory:
        raise snapshot.build_damage_error(DIRECTORY)
    if row != snapshot.file_row:
        raise snapshot.build_damage_error(FILE_ROW)


def _check_counts(snapshot: SnapshotFile, blocks: int) -> None:
    """Check that no table has additional rows. The servers must be verified already.

    Raises SnapshotError if a table has a different number of rows.
    """
    expected = {"snapshot": 1, "servers": snapshot.file_row.server_count, "blocks": blocks}
    for table, count in expected.items():
        if snapshot.connection.count_rows(table, count + 1) != count:
            raise snapshot.build_damage_error(f"the table {table}")
