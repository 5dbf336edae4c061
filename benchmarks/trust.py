"""What it costs that a snapshot proves itself: as it is asked, and all of it at once."""

import time
from contextlib import closing
from statistics import median

from benchmarks.data import FleetFiles
from benchmarks.measure import tell
from benchmarks.questions import Request, UnequalError, drawn
from srvstat.snapshot.days import DAYS_A_SERVER
from srvstat.snapshot.proved import ProvedRows
from srvstat.snapshot.read import SnapshotFile, open_file
from srvstat.snapshot.verify import verify

_COMPARISONS = 300
_SERVER = "SELECT * FROM servers WHERE id = ?"
_DAYS = "SELECT * FROM days WHERE server_day IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def milliseconds_a_comparison(files: FleetFiles) -> float:
    """Return what proving the rows of a five-server comparison adds to reading them.

    The servers were not asked about before, so nothing of them is remembered. Reading alone is five
    rows by the index on `id`, and ten days by their keys.

    Raises UnequalError where both do not give the same rows.
    """
    tell("timing what the digests cost")
    with closing(open_file(files.snapshot)) as snapshot:
        added = [
            _added(snapshot, request)
            for _ in range(2)  # the first time everything is read from the file
            for request in drawn("trust", files, "30d", _COMPARISONS)
        ]
    return median(added[_COMPARISONS:]) * 1_000


def _added(snapshot: SnapshotFile, request: Request) -> float:
    """Return how many more seconds it takes to read rows and prove them than to read them."""
    rows = ProvedRows(snapshot.connection)
    references = [(one.by, one.identifier) for one in request.references]
    # The directory stays in memory for all comparisons alike.
    rows.named([("id", "nobody")])
    started = time.perf_counter()
    servers = [server for server in rows.named(references) if server]
    calendars = rows.calendars(servers)
    ends = [(len(calendar.days) - 31, len(calendar.days) - 1) for calendar in calendars]
    days = rows.days_at(list(zip(servers, calendars, ends, strict=True)))
    proved = time.perf_counter() - started
    keys = [
        server.server * DAYS_A_SERVER + calendar.days[end]
        for server, calendar, both in zip(servers, calendars, ends, strict=True)
        for end in both
    ]
    read = snapshot.connection.rows
    started = time.perf_counter()
    plain_servers = [read(_SERVER, identifier, part="")[0] for _, identifier in references]
    plain_days = read(_DAYS, *keys, part="")
    plain = time.perf_counter() - started
    if plain_servers != servers or sorted(plain_days) != sorted(day for two in days for day in two):
        raise UnequalError("rows that were proved are not those that were read")
    return proved - plain


def verified_a_second(files: FleetFiles) -> float:
    """Return how many observations a second `snapshot verify` checks.

    Raises UnequalError where it does not check them all.
    """
    tell("verifying the snapshot")
    started = time.perf_counter()
    found = verify(files.snapshot)
    seconds = time.perf_counter() - started
    if found.observations != files.observation_count:
        raise UnequalError("verify: not all observations were checked")
    return found.observations / seconds
