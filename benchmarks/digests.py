"""Measure the cost of verifying digests: for one answer, and for a whole snapshot."""

import sqlite3
import time
from contextlib import closing
from hashlib import sha256
from statistics import median
from typing import NamedTuple

from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress
from benchmarks.questions import Request, WrongAnswerError, draw_mixed_requests
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.format.rows import DAYS_PER_SERVER
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.read.verify import verify

_COMPARISONS = 600
_SERVER = "SELECT * FROM servers WHERE id = ?"
_DAYS = "SELECT * FROM days WHERE server_day IN ({})"
_DERIVED = (
    *("directory", "servers", "calendars", "bands", "days"),
    *("summary_index", "summaries", "interval_counts", "intervals"),
)


class DigestCost(NamedTuple):
    """The time that digests add to an answer: in seconds, and relative to the rest, also for 1y."""

    added: float
    over_rest: float
    over_rest_of_year: float


def measure_digests(files: FleetFiles) -> DigestCost:
    """Measure the cost of digests for comparisons of five servers, cycling through the ranges.

    Nothing is cached. Without digests, an answer reads five rows by the index on `id`, and the days
    at the start of the window by key.

    Raises WrongAnswerError if the rows with and without digests differ.
    """
    print_progress("timing digests")
    requests = draw_mixed_requests("trust", files, _COMPARISONS)
    with closing(open_connection(files.snapshot)) as connection:
        snapshot, rows = SnapshotFile(connection), VerifiedRows(connection)
        # Send each request once before it is timed, so that the pages of the file are cached.
        times = [
            (_time_digests(connection, rows, request), _time_answer(snapshot, request))
            for request in requests
            if _time_digests(connection, rows, request)
        ]
    over_rest = [added / (whole - added) for added, whole in times]
    year = [
        cost for cost, request in zip(over_rest, requests, strict=True) if request.range == "1y"
    ]
    return DigestCost(median(added for added, _ in times), median(over_rest), median(year))


def _time_answer(snapshot: SnapshotFile, request: Request) -> float:
    """Return the seconds from the body of a request to the bytes of its answer."""
    snapshot.forget_servers()
    started = time.perf_counter()
    operations.compare(snapshot, parse_compare_request(request.body)).to_json()
    return time.perf_counter() - started


def _time_digests(connection: SnapshotConnection, rows: VerifiedRows, request: Request) -> float:
    """Return the additional seconds to verify rows after reading them."""
    rows.forget_servers()
    references = [(one.by, one.identifier) for one in request.references]
    started = time.perf_counter()
    servers = [server for server in rows.find_servers(references) if server]
    ends_of_servers = list(zip(servers, rows.find_ends(servers, request.window), strict=True))
    days = rows.read_days(ends_of_servers)
    verified = time.perf_counter() - started
    keys = [
        server.server * DAYS_PER_SERVER + entry.day
        for server, ends in ends_of_servers
        for entry in ends
    ]
    read = connection.fetch_rows
    started = time.perf_counter()
    plain_servers = [read(_SERVER, identifier, part="")[0] for _, identifier in references]
    plain_days = read(_DAYS.format(", ".join("?" * len(keys))), *keys, part="")
    unverified = time.perf_counter() - started
    if plain_servers != servers or sorted(plain_days) != sorted(
        day for of_server in days for day in of_server
    ):
        raise WrongAnswerError("the rows with and without digests differ")
    return verified - unverified


class VerifyRate(NamedTuple):
    """The rate of `snapshot verify`, and its ratio to reading and hashing rows of a table."""

    observations_per_second: float
    over_hashing: float


def time_verify(files: FleetFiles) -> VerifyRate:
    """Time `snapshot verify`, and a loop that only reads and hashes rows.

    The rows are those of the snapshot, and the observations as those of a plain table.

    Raises WrongAnswerError if the numbers of observations differ.
    """
    print_progress("verifying the snapshot")
    started = time.perf_counter()
    found = verify(files.snapshot)
    seconds = time.perf_counter() - started
    files.sqlite_path()
    started = time.perf_counter()
    observations = _hash_all_rows(files)
    unverified = time.perf_counter() - started
    if not found.observations == observations == files.observation_count:
        raise WrongAnswerError("verify: not all observations were checked")
    return VerifyRate(found.observations / seconds, unverified / seconds)


def _hash_all_rows(files: FleetFiles) -> int:
    """Read and hash each row with only sqlite3 and hashlib; return the number of observations."""
    observations = 0
    for path, tables in ((files.snapshot, _DERIVED), (files.sqlite_path(), ("observations",))):
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            for table in tables:
                observations = 0
                for row in connection.execute(f"SELECT * FROM {table}"):
                    sha256(repr(row).encode()).digest()
                    observations += 1
    return observations
