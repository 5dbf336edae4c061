"""`srvstat serve` beside a bare application and Datasette: answers a second on one core.

All servers run, on one core; one of them is asked at a time, by a client on another core.
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
from benchmarks.commands import datasette, without_pandas
from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, tell
from benchmarks.questions import (
    SERVERS_A_REQUEST,
    Request,
    answers_of_body,
    answers_of_objects,
    check,
    drawn,
    expected,
    request_of,
)
from benchmarks.servers import LOOPBACK, Ask, Server, asking, started
from srvstat import operations
from srvstat.contract.ranges import Range
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.read.reader import open_file
from support.http import compare, request_target
from support.load import Exchange, deal, rotate

HELLO = "Starlette, a small JSON answer"
FAST_HELLO = "the same on httptools and uvloop"
NEW, AGAIN = "srvstat serve, 1y, not asked before", "srvstat serve, 1y, asked again"
NEW_MONTH, MONTH = "srvstat serve, 30d, not asked before", "srvstat serve, 30d, any five servers"
DATASETTE = "datasette serve, 30d, any five servers"

GIVEN = {
    HELLO: 'A route that returns `JSONResponse({"hello": "world"})`, on uvicorn with the settings'
    " of `srvstat serve`: h11, asyncio, no access log.",
    FAST_HELLO: "uvicorn's own choice where both are installed. srvstat keeps to h11, whose"
    " answers to malformed requests are tested.",
    NEW: "Five servers a request, none of which was asked about since the snapshot was put in its"
    " place: nothing of them is remembered. The log goes to a file.",
    AGAIN: "The same requests, again and again: results are remembered as long as the snapshot is"
    " the same.",
    MONTH: "200 random requests, again and again: soon every server's result is remembered, as in a"
    " service that runs for long.",
    DATASETTE: "The same requests; the snapshot as an immutable file, the histogram SQL as a canned"
    " query, 64 MiB of cache. SQL runs without threads. numpy is hidden from it. Its log goes to a"
    " file.",
}
"""What each was given, for the report."""

Rates = dict[str, float]
"""Answers a second, by name."""

CONNECTIONS = 16
_LEAST_NEW = 60
"""How many comparisons of servers not asked before a round has at least."""
_CHECKED = 10
_DRAWN = 200
_ADOPTED = b'"a new snapshot is served"'
_LONGEST_ADOPTION = 120.0

_Work = Callable[[], Rates]
"""One part of a round."""


def rates(files: FleetFiles, *, rounds: int, seconds: float) -> Rates:
    """Return how many requests a second each answers, the median of all rounds.

    Every answer is compared: ours with what the same request is answered with in this process,
    those of Datasette with what it answered before. Both were found to be right.

    Raises UnequalError, FailedError.
    """
    found: dict[str, list[float]] = defaultdict(list)
    with _running(files) as (servers, ask):
        tell("comparing the answers of services")
        works = _works(files, servers, ask, seconds)
        for number in range(rounds):
            tell(f"timing {len(works)} services, round {number + 1} of {rounds}")
            first = number % len(works)
            for work in (*works[first:], *works[:first]):
                for name, rate in work().items():
                    found[name].append(rate)
    order = (HELLO, FAST_HELLO, NEW, AGAIN, NEW_MONTH, MONTH, DATASETTE)
    return {name: median(found[name]) for name in order if name in found}


@contextmanager
def _running(files: FleetFiles) -> Iterator[tuple[dict[str, Server], Ask]]:
    """Start every server, and the client."""
    serve = [*without_pandas("srvstat.__main__", "run"), "serve", "--snapshot", files.snapshot]
    bare = [sys.executable, "-m", "benchmarks.hello"]
    lines: dict[str, tuple[Callable[[str], list[str]], str]] = {
        NEW: (lambda port: [*serve, "--port", port], "/healthz"),
        HELLO: (lambda port: [*bare, port], "/"),
        DATASETTE: (lambda port: [*datasette(files), "--port", port], "/-/versions.json"),
    }
    if find_spec("httptools") and find_spec("uvloop"):
        lines[FAST_HELLO] = (lambda port: [*bare, port, "fast"], "/")
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {
            name: stack.enter_context(started(line, os.path.join(directory, f"{place}.log"), path))
            for place, (name, (line, path)) in enumerate(lines.items())
        }
        yield servers, stack.enter_context(asking())


def _works(files: FleetFiles, servers: dict[str, Server], ask: Ask, seconds: float) -> list[_Work]:
    """Return the parts of a round, once each server has shown right answers."""
    ours, theirs = servers[NEW], servers[DATASETTE]
    asked = drawn("service", files, "30d", _DRAWN)
    right = _right(files, asked)

    def steady(name: str, server: Server, exchanges: Sequence[Exchange]) -> _Work:
        turns = rotate(exchanges, CONNECTIONS)
        return lambda: {name: ask(server, turns, seconds).rate}

    def new(name: str, exchanges: Sequence[Exchange]) -> _Work:
        return lambda: {name: _rate_of_new(files, ours, ask, exchanges)}

    year, month = (_right(files, _each_server_once(files, length)) for length in ("1y", "30d"))
    hellos = [Exchange(request_target("/"), bodies=(hello.BODY,))]
    works = [
        steady(HELLO, servers[HELLO], hellos),
        new(NEW, year),
        steady(AGAIN, ours, year),
        new(NEW_MONTH, month),
        steady(MONTH, ours, right),
        steady(DATASETTE, theirs, _same(theirs, asked, right)),
    ]
    if FAST_HELLO in servers:
        works.append(steady(FAST_HELLO, servers[FAST_HELLO], hellos))
    return works


def _each_server_once(files: FleetFiles, length: Range) -> list[Request]:
    """Return requests that together name each server of the fleet once."""
    keys = random.Random("service").sample(range(1, files.size + 1), files.size)
    fives = zip(*[iter(keys)] * SERVERS_A_REQUEST, strict=True)
    return [request_of(five, length, files.as_of) for five in fives]


def _right(files: FleetFiles, requests: Sequence[Request]) -> list[Exchange]:
    """Return requests for the service, with the bytes that srvstat answers in this process.

    Raises UnequalError where these are not what plain Python computes.
    """
    found = []
    with closing(open_file(files.snapshot)) as snapshot:
        for number, request in enumerate(requests):
            body = operations.compare(snapshot, parse_compare_request(request.body)).to_json()
            if number < _CHECKED:
                check("srvstat serve", request, answers_of_body(body), expected(request))
            asked = compare(request.body)
            found.append(Exchange(asked, bodies=(body,)))
    return found


def _same(server: Server, requests: Sequence[Request], right: Sequence[Exchange]) -> list[Exchange]:
    """Return the same requests for Datasette, with its bytes, which must say the same.

    Raises UnequalError.
    """
    found = []
    with closing(HTTPConnection(LOOPBACK, server.port)) as connection:
        for request, ours in zip(requests, right, strict=True):
            path = queries.datasette_path(request)
            connection.request("GET", path)
            body = connection.getresponse().read()
            answers = answers_of_objects(body, request)
            check("datasette serve", request, answers, answers_of_body(ours.bodies[0]))
            found.append(Exchange(request_target(path), bodies=(body,)))
    return found


def _rate_of_new(
    files: FleetFiles, server: Server, ask: Ask, exchanges: Sequence[Exchange]
) -> float:
    """Return the answers a second to requests that a new snapshot is asked for the first time."""
    turns = deal(exchanges, min(CONNECTIONS, len(exchanges)))
    answers, seconds = 0, 0.0
    for _ in range(ceil(_LEAST_NEW / len(exchanges))):
        _have_it_adopted(files, server)
        outcome = ask(server, turns, None)
        answers += outcome.answers
        seconds += outcome.seconds
    return answers / seconds


def _have_it_adopted(files: FleetFiles, server: Server) -> None:
    """Have the service take the snapshot for a new one, which is checked, and opened anew.

    A new time makes it another file for the service, as a copy in its place would be, and spares
    copying it. Raises FailedError.
    """
    before = _adoptions(server)
    os.utime(files.snapshot)
    until = time.monotonic() + _LONGEST_ADOPTION
    while time.monotonic() < until:
        with closing(HTTPConnection(LOOPBACK, server.port)) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        if _adoptions(server) > before:
            return
        time.sleep(0.05)
    raise FailedError("srvstat serve does not take up a new snapshot")


def _adoptions(server: Server) -> int:
    with open(server.log, "rb") as log:
        return log.read().count(_ADOPTED)
