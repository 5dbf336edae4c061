"""Measure `srvstat serve`, a minimal application and Datasette: requests per second on one core.

All servers run on one core; a client on another core queries one of them at a time.
"""

import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from math import ceil
from statistics import median

from benchmarks import hello, queries
from benchmarks.commands import build_datasette_line, call_without_pandas
from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, print_progress
from benchmarks.questions import (
    SERVERS_PER_REQUEST,
    Request,
    build_request,
    check_answers,
    compute_answers,
    draw_requests,
    read_body,
    read_objects,
)
from benchmarks.servers import LOOPBACK, Ask, Server, start_client, start_server
from srvstat import operations
from srvstat.contract.ranges import Range
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.read.reader import open_file
from support.http import compare, request_target
from support.load import Exchange, deal, rotate

HELLO = "Starlette, a small JSON answer"
FAST_HELLO = "Starlette on httptools and uvloop"
UNCACHED, CACHED = "srvstat serve, 1y, not cached", "srvstat serve, 1y, cached"
UNCACHED_MONTH, CACHED_MONTH = "srvstat serve, 30d, not cached", "srvstat serve, 30d, random"
DATASETTE = "datasette serve, 30d, random"

SETUPS = {
    HELLO: 'A route that returns `JSONResponse({"hello": "world"})`, on uvicorn with the settings'
    " of `srvstat serve`: h11, asyncio, no access log.",
    FAST_HELLO: "The same route with uvicorn's defaults if both are installed. srvstat uses h11,"
    " because its answers to malformed requests are tested.",
    UNCACHED: "Five servers per request; each server is requested once after the snapshot was"
    " replaced, so none is cached. The log goes to a file.",
    CACHED: "The same requests, repeated. Results are cached until the snapshot is replaced.",
    UNCACHED_MONTH: "As for 1y.",
    CACHED_MONTH: "200 requests for random servers, repeated: soon all results are cached, as in a"
    " service that has run for long.",
    DATASETTE: "The same requests; a table of observations as an immutable file, the histogram"
    " SQL as a canned query, 64 MiB of cache, without threads for SQL. numpy is hidden. The log"
    " goes to a file.",
}
"""The setup of each server, for the report."""

Rates = dict[str, float]
"""Requests per second, by name."""

CONNECTIONS = 16
_MIN_UNCACHED = 60
"""Minimum number of comparisons of uncached servers in a round."""
_CHECKED = 10
_DRAWN = 200
_SERVED_EVENT = b'"new snapshot in use"'
_MAX_OPEN_SECONDS = 120.0

_Part = Callable[[], Rates]
"""A part of a round."""


def measure_rates(files: FleetFiles, *, rounds: int, seconds: float) -> Rates:
    """Return the requests per second of each server, as the median of all rounds.

    Checks every answer: srvstat's against the answer to the same request in this process,
    Datasette's against its own earlier answer. Both were compared with the correct answers before.

    Raises WrongAnswerError, FailedError.
    """
    found: dict[str, list[float]] = defaultdict(list)
    with _start_servers(files) as (servers, ask):
        print_progress("comparing the answers of services")
        parts = _list_parts(files, servers, ask, seconds)
        for number in range(rounds):
            print_progress(f"timing {len(parts)} services, round {number + 1} of {rounds}")
            first = number % len(parts)
            for part in (*parts[first:], *parts[:first]):
                for name, rate in part().items():
                    found[name].append(rate)
    order = (HELLO, FAST_HELLO, UNCACHED, CACHED, UNCACHED_MONTH, CACHED_MONTH, DATASETTE)
    return {name: median(found[name]) for name in order if name in found}


@contextmanager
def _start_servers(files: FleetFiles) -> Iterator[tuple[dict[str, Server], Ask]]:
    """Start every server and the client."""
    serve = [*call_without_pandas("srvstat.__main__", "run"), "serve", "--snapshot", files.snapshot]
    bare = [sys.executable, "-m", "benchmarks.hello"]
    lines: dict[str, tuple[Callable[[str], list[str]], str]] = {
        UNCACHED: (lambda port: [*serve, "--port", port], "/healthz"),
        HELLO: (lambda port: [*bare, port], "/"),
        DATASETTE: (
            lambda port: [*build_datasette_line(files), "--port", port],
            "/-/versions.json",
        ),
    }
    if find_spec("httptools") and find_spec("uvloop"):
        lines[FAST_HELLO] = (lambda port: [*bare, port, "fast"], "/")
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {
            name: stack.enter_context(
                start_server(line, os.path.join(directory, f"{place}.log"), path)
            )
            for place, (name, (line, path)) in enumerate(lines.items())
        }
        yield servers, stack.enter_context(start_client())


def _list_parts(
    files: FleetFiles, servers: dict[str, Server], ask: Ask, seconds: float
) -> list[_Part]:
    """Check the answers of each server; return the parts of a round."""
    service, datasette = servers[UNCACHED], servers[DATASETTE]
    requests = draw_requests("service", files, "30d", _DRAWN)
    exchanges = _build_exchanges(files, requests)

    def make_steady_part(name: str, server: Server, exchanges: Sequence[Exchange]) -> _Part:
        turns = rotate(exchanges, CONNECTIONS)
        return lambda: {name: ask(server, turns, seconds).rate}

    def make_uncached_part(name: str, exchanges: Sequence[Exchange]) -> _Part:
        return lambda: {name: _measure_uncached_rate(files, service, ask, exchanges)}

    year, month = (
        _build_exchanges(files, _draw_each_server_once(files, length)) for length in ("1y", "30d")
    )
    hellos = [Exchange(request_target("/"), bodies=(hello.BODY,))]
    parts = [
        make_steady_part(HELLO, servers[HELLO], hellos),
        make_uncached_part(UNCACHED, year),
        make_steady_part(CACHED, service, year),
        make_uncached_part(UNCACHED_MONTH, month),
        make_steady_part(CACHED_MONTH, service, exchanges),
        make_steady_part(
            DATASETTE, datasette, _build_datasette_exchanges(datasette, requests, exchanges)
        ),
    ]
    if FAST_HELLO in servers:
        parts.append(make_steady_part(FAST_HELLO, servers[FAST_HELLO], hellos))
    return parts


def _draw_each_server_once(files: FleetFiles, length: Range) -> list[Request]:
    """Return requests that together contain each server of the fleet once."""
    keys = random.Random("service").sample(range(1, files.size + 1), files.size)
    fives = zip(*[iter(keys)] * SERVERS_PER_REQUEST, strict=True)
    return [build_request(five, length, files.as_of) for five in fives]


def _build_exchanges(files: FleetFiles, requests: Sequence[Request]) -> list[Exchange]:
    """Return requests for the service, with srvstat's answers in this process.

    Raises WrongAnswerError if these differ from those of plain Python.
    """
    found = []
    with closing(open_file(files.snapshot)) as snapshot:
        for number, request in enumerate(requests):
            body = operations.compare(snapshot, parse_compare_request(request.body)).to_json()
            if number < _CHECKED:
                check_answers("srvstat serve", request, read_body(body), compute_answers(request))
            message = compare(request.body)
            found.append(Exchange(message, bodies=(body,)))
    return found


def _build_datasette_exchanges(
    server: Server, requests: Sequence[Request], exchanges: Sequence[Exchange]
) -> list[Exchange]:
    """Return the same requests for Datasette with its answers, after comparing them with ours.

    Raises WrongAnswerError.
    """
    found = []
    with closing(HTTPConnection(LOOPBACK, server.port)) as connection:
        for request, service in zip(requests, exchanges, strict=True):
            path = queries.build_datasette_path(request)
            connection.request("GET", path)
            body = connection.getresponse().read()
            answers = read_objects(body, request)
            check_answers("datasette serve", request, answers, read_body(service.bodies[0]))
            found.append(Exchange(request_target(path), bodies=(body,)))
    return found


def _measure_uncached_rate(
    files: FleetFiles, server: Server, ask: Ask, exchanges: Sequence[Exchange]
) -> float:
    """Return the requests per second of the first requests after the snapshot was replaced."""
    turns = deal(exchanges, min(CONNECTIONS, len(exchanges)))
    answers, seconds = 0, 0.0
    for _ in range(ceil(_MIN_UNCACHED / len(exchanges))):
        _replace_snapshot(files, server)
        outcome = ask(server, turns, None)
        answers += outcome.answers
        seconds += outcome.seconds
    return answers / seconds


def _replace_snapshot(files: FleetFiles, server: Server) -> None:
    """Make the service reopen the snapshot as if it had been replaced.

    Changing the modification time has the same effect as replacing the file by a copy.

    Raises FailedError.
    """
    before = _count_snapshots(server)
    os.utime(files.snapshot)
    until = time.monotonic() + _MAX_OPEN_SECONDS
    while time.monotonic() < until:
        with closing(HTTPConnection(LOOPBACK, server.port)) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        if _count_snapshots(server) > before:
            return
        time.sleep(0.05)
    raise FailedError("srvstat serve did not open the new snapshot")


def _count_snapshots(server: Server) -> int:
    with open(server.log, "rb") as log:
        return log.read().count(_SERVED_EVENT)
