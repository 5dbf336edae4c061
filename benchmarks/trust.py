"""What it costs that a snapshot proves itself: for one answer, and for all of it at once."""

import sqlite3
import time
from contextlib import closing
from hashlib import sha256
from statistics import median
from typing import NamedTuple

from benchmarks.data import FleetFiles
from benchmarks.measure import tell
from benchmarks.questions import Request, UnequalError, mixed
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.format.days import DAYS_PER_SERVER
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.read.verify import verify

_COMPARISONS = 600
_SERVER = "SELECT * FROM servers WHERE id = ?"
_DAYS = "SELECT * FROM days WHERE server_day IN ({})"
_DERIVED = ("directory", "servers", "calendars", "bands", "days")


class Cost(NamedTuple):
    """What digests add to an answer: in seconds, over the rest of it, and the same for 1y alone."""

    added: float
    over_rest: float
    over_rest_of_year: float


def cost_of_digests(files: FleetFiles) -> Cost:
    """Return the cost of the digests for a comparison of five servers, over all ranges in turn.

    The servers were not asked about before, so nothing of them is remembered. Reading alone is five
    rows by the index on `id`, and the days at the window's start by their keys.

    Raises UnequalError where both do not give the same rows.
    """
    tell("timing what the digests cost")
    requests = mixed("trust", files, _COMPARISONS)
    with closing(open_connection(files.snapshot)) as connection:
        snapshot, rows = SnapshotFile(connection), VerifiedRows(connection)
        # Each request comes once before it is timed, so that no time is spent on pages of the file,
        # which are read with digests or without. Both times are taken in the same conditions.
        times = [
            (_added(connection, rows, request), _whole(snapshot, request))
            for request in requests
            if _added(connection, rows, request)
        ]
    over_rest = [added / (whole - added) for added, whole in times]
    year = [cost for cost, asked in zip(over_rest, requests, strict=True) if asked.range == "1y"]
    return Cost(median(added for added, _ in times), median(over_rest), median(year))


def _whole(snapshot: SnapshotFile, request: Request) -> float:
    """Return how long it takes from the body of a request to the bytes of its answer."""
    snapshot.forget_servers()
    started = time.perf_counter()
    operations.compare(snapshot, parse_compare_request(request.body)).to_json()
    return time.perf_counter() - started


def _added(connection: SnapshotConnection, rows: VerifiedRows, request: Request) -> float:
    """Return how much longer it takes to read rows and prove them than to read them."""
    rows.forget_servers()
    references = [(one.by, one.identifier) for one in request.references]
    started = time.perf_counter()
    servers = [server for server in rows.find_servers(references) if server]
    asked = list(zip(servers, rows.find_ends(servers, request.window), strict=True))
    days = rows.read_days(asked)
    proved = time.perf_counter() - started
    keys = [server.server * DAYS_PER_SERVER + entry.day for server, ends in asked for entry in ends]
    read = connection.fetch_rows
    started = time.perf_counter()
    plain_servers = [read(_SERVER, identifier, part="")[0] for _, identifier in references]
    plain_days = read(_DAYS.format(", ".join("?" * len(keys))), *keys, part="")
    plain = time.perf_counter() - started
    if plain_servers != servers or sorted(plain_days) != sorted(
        day for of_server in days for day in of_server
    ):
        raise UnequalError("rows that were proved are not those that were read")
    return proved - plain


class Verified(NamedTuple):
    """How fast `snapshot verify` is: alone, and over reading and hashing the same rows."""

    observations_a_second: float
    over_hashing: float


def time_verify(files: FleetFiles) -> Verified:
    """Time `snapshot verify` beside a program that only reads every row and hashes its text.

    Raises UnequalError where the two do not see as many observations.
    """
    tell("verifying the snapshot")
    started = time.perf_counter()
    found = verify(files.snapshot)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    observations = _hash_all_rows(files.snapshot)
    plain = time.perf_counter() - started
    if not found.observations == observations == files.observation_count:
        raise UnequalError("verify: not all observations were checked")
    return Verified(found.observations / seconds, plain / seconds)


def _hash_all_rows(path: str) -> int:
    """Read and hash each row with sqlite3 and hashlib alone, and count the observations."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        for table in _DERIVED:
            for row in connection.execute(f"SELECT * FROM {table}"):
                sha256(repr(row).encode()).digest()
        count = 0
        for row in connection.execute("SELECT * FROM observations"):
            sha256(repr(row).encode()).digest()
            count += 1
    return count
