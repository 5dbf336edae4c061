"""Check a whole snapshot: against its digests, and these against the observations."""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import chain, islice

from srvstat.contract.errors import OutputError, SnapshotError
from srvstat.contract.requests import NAMESPACES
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.documents.views import Verification
from srvstat.snapshot.format.days import DAYS_A_SERVER, is_ascending
from srvstat.snapshot.format.derive import derive, span_observed
from srvstat.snapshot.format.digest import bucket_digests, build_directory, seal
from srvstat.snapshot.format.rows import Day, ServerRow, Value
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.read.verified_rows import DIRECTORY, OWN_ROW, day_part

_PARTS = {
    **dict.fromkeys(("days", "day_digests", "blocks", "block_digests"), "the calendar of "),
    **dict.fromkeys(("band_count", "bands", "band_digests", "cumulative"), "the bands of "),
}
"""What a message calls the derived columns of servers; the others are the server itself."""

_BESIDE = "what SQLite keeps beside the rows"


def verify(
    path: str, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Verification:
    """Recompute all derived data from the observations and the servers, and compare.

    `progress` is told how many observations were just checked, and of how many.

    Raises SnapshotError, which names the first part that differs.
    """
    with closing(open_file(path)) as snapshot:
        connection = snapshot.connection
        servers = list(snapshot.rows.servers())
        observations = 0
        counts: Counter[str] = Counter()
        for server in servers:
            instants, players = _observations(snapshot, server)
            counts += _check_derived(snapshot, server, instants, players)
            snapshot.rows.prove_bands(server)
            snapshot.detail(server)
            observations += len(instants)
            progress(len(instants), snapshot.rows.own.observation_count)
        directory = build_directory(servers)
        _check_directory(snapshot, directory)
        first, last = span_observed(servers)
        own = snapshot.rows.own._replace(
            bucket_digests=bucket_digests(directory),
            server_count=len(servers),
            observation_count=observations,
            first_observed_at=first,
            last_observed_at=last,
        )
        if seal(own) != snapshot.rows.own:
            raise connection.damaged(OWN_ROW)
        _check_counts(snapshot, counts)
        # Last, as it can't name the part.
        if not connection.is_sound():
            raise connection.damaged(_BESIDE)
        days = counts["days"]
        return Verification(snapshot.root, snapshot.as_of, len(servers), observations, days)


def check_draft(output: str, draft: str, observations: int) -> None:
    """Read back what a build wrote for an output, as any reader will, before it gets its name.

    Raises OutputError where it is not sound, or does not have so many observations.
    """
    try:
        with closing(open_file(draft)) as snapshot:
            check_chain(snapshot)
            is_complete = snapshot.rows.own.observation_count == observations
    except SnapshotError:
        is_complete = False
    if not is_complete:
        raise OutputError(f"{output}: what was written does not read back; is the disk failing?")


def check_chain(snapshot: SnapshotFile) -> None:
    """Read all that an answer could read, count the rows of each table, and let SQLite check."""
    connection = snapshot.connection
    counts: Counter[str] = Counter()
    for server in snapshot.rows.servers():
        references = [(namespace, server.named(namespace)) for namespace in NAMESPACES]
        if snapshot.rows.named(references) != [server, server]:
            raise connection.damaged(DIRECTORY)
        counts["days"] += sum(1 for _ in snapshot.days(server))
        counts["calendars"] += snapshot.rows.calendar(server).stored_blocks
        counts["bands"] += snapshot.rows.prove_bands(server)
    _check_counts(snapshot, counts)
    if not connection.is_sound():
        raise connection.damaged(_BESIDE)


def _observations(snapshot: SnapshotFile, server: ServerRow) -> "tuple[array[int], array[int]]":
    """Return the instants of all observations of a server, ascending, and the players."""
    part = f"the observations of {server.title}"
    query = "SELECT observed_at, players FROM observations WHERE server = ?"
    rows = snapshot.connection.stream(query, server.server, part=part)
    with snapshot.connection.decoding(part):
        # Pages that point to each other could give rows without end.
        most = snapshot.rows.own.observation_count + 1
        both = array("q", chain.from_iterable(islice(rows, most)))
    instants, players = both[::2], both[1::2]
    is_ours = not instants or (
        is_ascending(instants)
        and instants[0] >= 0
        and instants[-1] <= snapshot.as_of
        and min(players) >= 0
        and max(players) <= MAX_SAFE_INTEGER
    )
    if not is_ours:
        raise snapshot.connection.damaged(part)
    return instants, players


def _check_derived(
    snapshot: SnapshotFile, server: ServerRow, instants: "array[int]", players: "array[int]"
) -> Counter[str]:
    """Compare the rows of a server with those that its observations make, and count them by table.

    Those of days are compared here, so that a message can name the day. The others agree where the
    server's row has their digests: the rows read were proved by the same ones.
    """
    damaged = snapshot.connection.damaged
    stored = snapshot.days(server)
    counts: Counter[str] = Counter()

    def compare(table: str, row: tuple[Value, ...]) -> None:
        counts[table] += 1
        if isinstance(row, Day) and next(stored, None) != row:
            raise damaged(day_part(server, row.server_day % DAYS_A_SERVER))

    derived = derive(server.server, instants, players, compare)
    for name, value in derived._asdict().items():
        if getattr(server, name) != value:
            raise damaged(f"{_PARTS.get(name, '')}{server.title}")
    return counts


def _check_directory(snapshot: SnapshotFile, directory: list[tuple[int, bytes]]) -> None:
    query = "SELECT * FROM directory ORDER BY bucket"
    rows = islice(snapshot.connection.stream(query, part=DIRECTORY), len(directory) + 1)
    if list(rows) != directory:
        raise snapshot.connection.damaged(DIRECTORY)


def _check_counts(snapshot: SnapshotFile, derived: Mapping[str, int]) -> None:
    """Find rows that belong to no server, once whatever belongs to one was read and proved."""
    expected = {
        "snapshot": 1,
        "servers": snapshot.rows.own.server_count,
        "calendars": derived["calendars"],
        "days": derived["days"],
        "bands": derived["bands"],
        "observations": snapshot.rows.own.observation_count,
    }
    for table, count in expected.items():
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?)"  # noqa: S608 - names of ours
        ((found,),) = snapshot.connection.rows(
            query, count + 1, part=f"the table {table}", seconds=math.inf
        )
        if found != count:
            raise snapshot.connection.damaged(f"the table {table}")
