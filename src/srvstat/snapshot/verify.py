"""Check a whole snapshot: against its digests, and these against the observations."""

import math
from array import array
from collections.abc import Callable
from contextlib import closing
from itertools import chain, islice

from srvstat.contract.errors import OutputError, SnapshotError
from srvstat.contract.requests import NAMESPACES
from srvstat.contract.views import Verification
from srvstat.snapshot.days import DAYS_A_SERVER, days_of
from srvstat.snapshot.digest import (
    bucket_digests,
    calendar_row,
    directory_of,
    is_row,
    row_digest,
    sealed,
)
from srvstat.snapshot.proved import DIRECTORY, OWN_ROW, day_part
from srvstat.snapshot.read import SnapshotFile, open_file
from srvstat.snapshot.rows import ServerRow
from srvstat.snapshot.staging import is_ascending
from srvstat.sources.batch import MAX_PLAYERS

_BESIDE = "what SQLite keeps beside the rows"


def verify(
    path: str, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Verification:
    """Make all that is derived anew from the observations and the servers, and compare.

    `progress` is told how many observations were just checked, and of how many.

    Raises SnapshotError, which names the first part that differs.
    """
    with closing(open_file(path)) as snapshot:
        connection = snapshot.connection
        servers = list(snapshot.rows.servers())
        spans: list[tuple[int, int]] = []
        observations = days = 0
        for server in servers:
            instants, players = _observations(snapshot, server)
            days += _check_days(snapshot, server, instants, players)
            first, last = (instants[0], instants[-1]) if instants else (None, None)
            if (len(instants), first, last) != (
                server.observation_count,
                server.first_observed_at,
                server.last_observed_at,
            ):
                raise connection.damaged(server.title)
            if first is not None and last is not None:
                spans.append((first, last))
            observations += len(instants)
            progress(len(instants), snapshot.rows.own.observation_count)
        directory = directory_of(servers)
        _check_directory(snapshot, directory)
        own = snapshot.rows.own._replace(
            bucket_digests=bucket_digests(directory),
            server_count=len(servers),
            observation_count=observations,
            first_observed_at=min((first for first, _ in spans), default=None),
            last_observed_at=max((last for _, last in spans), default=None),
        )
        if sealed(own) != snapshot.rows.own:
            raise connection.damaged(OWN_ROW)
        _check_counts(snapshot, days=days)
        # Last, as it can't name the part.
        if not connection.is_sound():
            raise connection.damaged(_BESIDE)
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
    servers = list(snapshot.rows.servers())
    for server in servers:
        references = [(namespace, server.named(namespace)) for namespace in NAMESPACES]
        if snapshot.rows.named(references) != [server, server]:
            raise connection.damaged(DIRECTORY)
    days = sum(1 for server in servers for _ in snapshot.days(server))
    _check_counts(snapshot, days=days)
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
        and max(players) <= MAX_PLAYERS
    )
    if not is_ours:
        raise snapshot.connection.damaged(part)
    return instants, players


def _check_days(
    snapshot: SnapshotFile, server: ServerRow, instants: "array[int]", players: "array[int]"
) -> int:
    """Compare the days of a server with those that its observations make, and count them."""
    damaged = snapshot.connection.damaged
    stored = snapshot.days(server)
    days, digests = [], []
    for day in days_of(server.server, instants, players):
        days.append(day.server_day % DAYS_A_SERVER)
        digests.append(row_digest("days", day))
        if next(stored, None) != day:
            raise damaged(day_part(server, days[-1]))
    calendar = calendar_row(server.server, days, digests)
    if not is_row("calendars", calendar, server.calendar_digest):
        raise damaged(f"the calendar of {server.title}")
    return len(days)


def _check_directory(snapshot: SnapshotFile, directory: list[tuple[int, bytes]]) -> None:
    query = "SELECT * FROM directory ORDER BY bucket"
    rows = islice(snapshot.connection.stream(query, part=DIRECTORY), len(directory) + 1)
    if list(rows) != directory:
        raise snapshot.connection.damaged(DIRECTORY)


def _check_counts(snapshot: SnapshotFile, *, days: int) -> None:
    """Find rows that belong to no server, once whatever belongs to one was read and proved."""
    expected = {
        "snapshot": 1,
        "servers": snapshot.rows.own.server_count,
        "calendars": snapshot.rows.own.server_count,
        "days": days,
        "observations": snapshot.rows.own.observation_count,
    }
    for table, count in expected.items():
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?)"  # noqa: S608 - names of ours
        ((found,),) = snapshot.connection.rows(
            query, count + 1, part=f"the table {table}", seconds=math.inf
        )
        if found != count:
            raise snapshot.connection.damaged(f"the table {table}")
