"""Verify a whole snapshot, the rows that an update wrote, or one server after another."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice

from srvstat.contract.instants import LATEST
from srvstat.contract.windows import DAYS, Window, find_window
from srvstat.documents.snapshot import Verification
from srvstat.snapshot.format.bands import read_bands
from srvstat.snapshot.format.calendar import read_calendar
from srvstat.snapshot.format.days import read_day_observations
from srvstat.snapshot.format.derive import derive, find_observed_span, has_valid_observations
from srvstat.snapshot.format.digest import (
    MANIFEST,
    build_directory,
    digest_directory,
    has_digest,
    seal,
)
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day, ServerRow, Value
from srvstat.snapshot.read.figures import read_indexes
from srvstat.snapshot.read.header import FILE_ROW
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.read.verified_rows import DIRECTORY, VerifiedRows, format_day

_ROWS_AT_ONCE = 500


def count_derived(rows: VerifiedRows, server: ServerRow) -> Counter[str]:
    """Return the number of derived rows of a server by table, according to its own row.

    Raises SnapshotError.
    """
    calendar = read_calendar(server)
    counts = Counter(
        days=calendar.count_days(),
        calendars=calendar.stored_blocks,
        bands=len(read_bands(server).list_rows()),
    )
    if server.summary_digest:
        (index,) = read_indexes(rows, [server])
        blocks = index.last_block + 1
        intervals = len(index.bands.list_rows())
        counts.update(
            summary_index=1, summaries=blocks, interval_counts=blocks, intervals=intervals
        )
    return counts


def verify_rows(rows: VerifiedRows, table: str, digests: Mapping[int, bytes]) -> None:
    """Verify rows of a table by their keys.

    Raises SnapshotError.
    """
    part = f"the table {table}"
    all_keys = list(digests)
    for at in range(0, len(all_keys), _ROWS_AT_ONCE):
        keys = all_keys[at : at + _ROWS_AT_ONCE]
        found = rows.read_by_key(table, "rowid", keys, part=part)
        for key in keys:
            if key not in found or not has_digest(table, found[key], digests[key]):
                raise rows.build_damage_error(part)


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
    (server,) = file.find_rows([("id", server_id)])
    if server is None or not file.has_server(server):
        raise file.build_damage_error("the servers")
    file.get_detail(server)
    for name in DAYS:
        file.compute_statistics([server], find_window(name, as_of))


_PARTS = {
    **dict.fromkeys(("days", "day_digests", "blocks", "block_digests"), "the calendar of "),
    **dict.fromkeys(("band_count", "bands", "band_digests", "cumulative"), "the bands of "),
    "summary_digest": "the summaries of ",
}
"""How messages name the derived columns of `servers`; other columns are the server itself."""

_DERIVED = (
    *("days", "calendars", "bands"),
    *("summary_index", "summaries", "interval_counts", "intervals"),
)

_ALL_TIME = Window(-1, LATEST)

_STRUCTURE = "the structure of the SQLite file"


def verify(
    path: str, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Verification:
    """Verify all rows, recompute derived data from the observations and servers, and compare it.

    The observations are those in the rows of days.

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
    """Verify a file, and return the number of its days; `progress` is called for each server."""
    servers = list(snapshot.iter_servers())
    observations = 0
    counts: Counter[str] = Counter()
    for server in servers:
        days = list(snapshot.iter_days(server))
        instants, players = _read_observations(snapshot, server, days)
        counts += _check_derived(snapshot, server, days, instants, players)
        snapshot.verify_bands(server)
        snapshot.verify_summaries(server)
        snapshot.get_detail(server)
        observations += len(instants)
        progress(len(instants))
    _check_directory(snapshot, servers, observations)
    _check_counts(snapshot, counts)
    # The last check, as it can't name the damaged part.
    _check_structure(snapshot)
    return counts["days"]


def check_chain(snapshot: Snapshot) -> None:
    """Verify every row that an answer can read, the counts of rows, and the structure of files.

    Raises SnapshotError.
    """
    for file in snapshot.iter_files():
        _check_file(file)
    _check_whole(snapshot)


def _check_file(snapshot: SnapshotFile) -> None:
    counts: Counter[str] = Counter()
    for server in snapshot.iter_servers():
        if not snapshot.has_server(server):
            raise snapshot.build_damage_error(DIRECTORY)
        counts["days"] += sum(1 for _ in snapshot.iter_days(server))
        counts["calendars"] += snapshot.count_calendar_blocks(server)
        counts["bands"] += snapshot.verify_bands(server)
        counts += snapshot.verify_summaries(server)
    _check_counts(snapshot, counts)
    _check_structure(snapshot)


def _check_whole(snapshot: Snapshot) -> None:
    """Check what the files of a sharded snapshot have in common; one file has been verified.

    Each server must be in its shard, a cfxId in one shard only, and the manifest must have the
    first and the last observation.

    Raises SnapshotError.
    """
    if isinstance(snapshot, SnapshotFile):
        return
    cfx_ids: set[str] = set()
    for server in snapshot.iter_servers():
        if server.cfx_id in cfx_ids:
            raise snapshot.build_damage_error(f"{server.title}: another shard has its cfxId, too")
        cfx_ids.add(server.cfx_id)
    span = find_observed_span([file.file_row for file in snapshot.iter_files()])
    if span != (snapshot.file_row.first_observed_at, snapshot.file_row.last_observed_at):
        raise snapshot.build_damage_error(f"the first or last observation of {MANIFEST}")


def check_written(snapshot: SnapshotFile, written: Mapping[str, Mapping[int, bytes]]) -> None:
    """Verify the servers, the directory, some rows, and the counts of all rows.

    `written` has the digests of the rows by table and key.

    Raises SnapshotError.
    """
    counts: Counter[str] = Counter()
    for server in snapshot.iter_servers():
        if not snapshot.has_server(server):  # pragma: no cover - needs a write that was lost
            raise snapshot.build_damage_error(DIRECTORY)
        with snapshot.convert_decode_errors(server.title):
            counts += count_derived(snapshot, server)
    _check_counts(snapshot, counts)
    for table, digests in written.items():
        verify_rows(snapshot, table, digests)


def _check_structure(snapshot: SnapshotFile) -> None:
    if not snapshot.is_sound():
        raise snapshot.build_damage_error(_STRUCTURE)


def _read_observations(
    snapshot: SnapshotFile, server: ServerRow, days: Sequence[Day]
) -> "tuple[array[int], array[int]]":
    """Return the instants of all observations of a server, ascending, and the players."""
    part = f"the days of {server.title}"
    instants, players = array("q"), array("q")
    with snapshot.convert_decode_errors(part):
        for day in days:
            instants_of_day, players_of_day = read_day_observations([day], _ALL_TIME)
            instants.extend(instants_of_day)
            players.extend(players_of_day)
    if not has_valid_observations(instants, players, snapshot.as_of):
        raise snapshot.build_damage_error(part)
    return instants, players


def _check_derived(
    snapshot: SnapshotFile,
    server: ServerRow,
    days: Sequence[Day],
    instants: "array[int]",
    players: "array[int]",
) -> Counter[str]:
    """Compare the derived rows of a server with its observations, and count them by table.

    Rows of days are compared one by one, so that a message can name the day. The others are equal
    if their digests in the server's row are: the stored rows were verified by the same digests.
    """
    stored = iter(days)
    counts: Counter[str] = Counter()

    def compare(table: str, row: tuple[Value, ...]) -> None:
        counts[table] += 1
        if isinstance(row, Day) and next(stored, None) != row:
            day = row.server_day % DAYS_PER_SERVER
            raise snapshot.build_damage_error(format_day(server.title, day))

    derived = derive(server.id, server.server, instants, players, compare)
    for name, value in derived._asdict().items():
        if getattr(server, name) != value:
            raise snapshot.build_damage_error(f"{_PARTS.get(name, '')}{server.title}")
    return counts


def _check_directory(
    snapshot: SnapshotFile, servers: Sequence[ServerRow], observations: int
) -> None:
    """Compare the directory and the row of the file with all servers."""
    directory = build_directory(servers)
    if list(islice(snapshot.iter_directory(), len(directory) + 1)) != directory:
        raise snapshot.build_damage_error(DIRECTORY)
    first, last = find_observed_span(servers)
    expected = snapshot.file_row._replace(
        bucket_digests=digest_directory(directory),
        server_count=len(servers),
        observation_count=observations,
        first_observed_at=first,
        last_observed_at=last,
    )
    if seal(expected) != snapshot.file_row:
        raise snapshot.build_damage_error(FILE_ROW)


def _check_counts(snapshot: SnapshotFile, derived: Mapping[str, int]) -> None:
    """Check that no table has rows beyond those of the servers, which were verified before.

    Raises SnapshotError.
    """
    expected = {
        "snapshot": 1,
        "servers": snapshot.file_row.server_count,
        **{table: derived[table] for table in _DERIVED},
    }
    for table, count in expected.items():
        if snapshot.count_rows(table, count + 1) != count:
            raise snapshot.build_damage_error(f"the table {table}")
