"""Time the comparison of five servers in this process: srvstat's, and DuckDB's on the same rows.

srvstat's file was just opened, and each server is asked for once: no answer uses a result or a
check of an earlier one. DuckDB's file is open and cached, and its statement is prepared.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from statistics import median

import duckdb

from benchmarks.data import WIDE_SERVERS, FleetFiles, generate_wide
from benchmarks.measure import print_progress, time_calls
from benchmarks.questions import (
    Request,
    Row,
    build_request,
    check_answers,
    compute_answer,
    compute_answers,
    draw_requests,
    read_body,
    read_rows,
)
from srvstat.contract.requests import parse_compare_request
from srvstat.contract.windows import Range
from srvstat.operations import answers as operations
from srvstat.snapshot.read.file import open_file

SRVSTAT = "srvstat"
TIMED: tuple[Range, ...] = ("24h", "30d", "1y")

_CHECKED = 10

_ROWS = """FROM observations
WHERE server IN ($1, $2, $3, $4, $5) AND observed_at > $6 AND observed_at <= $7"""

_MEDIAN = f"""
SELECT server, count(*), avg(players), median(players), max(players), min(players),
    arg_min(players, observed_at), arg_max(players, observed_at)
{_ROWS} GROUP BY server"""

_HISTOGRAM = f"""
WITH histogram AS (
    SELECT server, players, count(*) AS number,
        min(observed_at) AS first_at, max(observed_at) AS last_at
    {_ROWS} GROUP BY server, players
), ranked AS (
    SELECT *, sum(number) OVER (PARTITION BY server ORDER BY players) AS upto,
        sum(number) OVER (PARTITION BY server) AS total
    FROM histogram
)
SELECT server, any_value(total)::BIGINT, sum(players * number) / any_value(total),
    (min(players) FILTER (upto > (total - 1) // 2)
        + min(players) FILTER (upto > total // 2)) / 2,
    max(players), min(players), arg_min(players, first_at), arg_max(players, last_at)
FROM ranked GROUP BY server"""

DUCKDB = {"DuckDB, median()": _MEDIAN, "DuckDB, histogram": _HISTOGRAM}

SETUPS = {
    SRVSTAT: "We measure from the bytes of a request to the bytes of the response, with the"
    " snapshot open.",
    "DuckDB": "It reads a native table, sorted by server and time, with two threads. We measure the"
    " faster of two prepared statements.",
}
"""The setup of each engine, for the page."""


def time_engines(files: FleetFiles, *, rounds: int) -> dict[tuple[str, Range], float]:
    """Check the answers of each engine, and return its median seconds for each range.

    Raises WrongAnswerError.
    """
    times: dict[tuple[str, Range], list[float]] = defaultdict(list)
    with _open_duckdb(files) as engines, open_ours(files.snapshot) as ask_ours:
        print_progress("comparing the answers of srvstat and DuckDB")
        for length in TIMED:
            for request in draw_requests("check", files, length)[:_CHECKED]:
                correct = compute_answers(request)
                check_answers(SRVSTAT, request, read_body(ask_ours(request)), correct)
                for name, ask in engines.items():
                    check_answers(name, request, read_rows(ask(request), request), correct)
        freeze_garbage()
        print_progress(f"timing srvstat and DuckDB, {rounds} rounds")
        for number in range(rounds):
            files.warm_cache()
            for length in TIMED:
                requests = draw_requests(f"round {number}", files, length)
                times[SRVSTAT, length] += time_calls(ask_ours, requests)
                for name, ask in engines.items():
                    times[name, length] += time_calls(ask, requests)
    return {key: median(found) for key, found in times.items()}


def compare_sizes(large: FleetFiles, small: FleetFiles, *, rounds: int) -> float:
    """Return the time of a comparison over 1y in a large file as a multiple of a small one's."""
    times: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for files in (large, small):
            requests = draw_requests(f"size {number}", files, "1y")[: small.size // 5]
            times[files.snapshot] += time_first_answers(files.snapshot, requests)
    return median(times[large.snapshot]) / median(times[small.snapshot])


def time_wide(path: str, *, rounds: int) -> float:
    """Check the answer about the servers of the wide file, and return its median seconds.

    Raises WrongAnswerError.
    """
    course = generate_wide()
    request = build_request(range(1, WIDE_SERVERS + 1), "1y", int(course.instants.max()))
    correct = [
        compute_answer(course.players[course.servers == key - 1].tolist()) for key in request.keys
    ]
    with open_ours(path) as ask:
        check_answers(SRVSTAT, request, read_body(ask(request)), correct)
    return median(time_first_answers(path, [request])[0] for _ in range(rounds))


def freeze_garbage() -> None:
    """Keep the garbage collector from scanning existing objects in the middle of a call."""
    gc.collect()
    gc.freeze()


def time_first_answers(path: str, requests: Sequence[Request]) -> list[float]:
    """Return the seconds of requests to a file that was just opened."""
    with open_ours(path) as ask:
        return time_calls(ask, requests)


@contextmanager
def open_ours(path: str) -> Iterator[Callable[[Request], bytes]]:
    """Open a snapshot, and yield a function that answers a request."""
    with closing(open_file(path)) as snapshot:
        yield lambda one: operations.compare(snapshot, parse_compare_request(one.body)).to_json()


@contextmanager
def _open_duckdb(files: FleetFiles) -> Iterator[dict[str, Callable[[Request], list[Row]]]]:
    with duckdb.connect(files.duckdb_path(), read_only=True, config={"threads": 2}) as connection:

        def prepare(statement: str, query: str) -> Callable[[Request], list[Row]]:
            connection.execute(f"PREPARE {statement} AS {query}")

            def ask(request: Request) -> list[Row]:
                literals = ", ".join(map(str, (*request.keys, *request.window)))
                return list(connection.execute(f"EXECUTE {statement}({literals})").fetchall())

            return ask

        yield {
            name: prepare(f"form_{place}", query)
            for place, (name, query) in enumerate(DUCKDB.items())
        }
