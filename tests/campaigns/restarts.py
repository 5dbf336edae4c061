"""Restart the service on one socket again and again while clients send requests.

The parent keeps the listening socket, as systemd does. Some clients open a connection for each
request, some keep theirs busy, and some are idle for longer than a stopping service waits.
"""

import random
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from campaigns.campaign import Campaign, Result
from campaigns.service_questions import build_two_snapshots, list_exchanges
from srvstat.asgi.connection import ANSWER_SECONDS, STOP_SECONDS
from srvstat.asgi.descriptors import MAX_CONNECTIONS
from support import load_client
from support.http import split_answer
from support.load import Cut, Exchange, Load, Outcome, rotate
from support.load_client import Client
from support.process import Service, serve

_FEW = 10
_CLIENTS = 8
"""Clients with new connections, and busy ones."""
_IDLE_CLIENTS = 40
_SECONDS = 1.6
"""Seconds of load for each restart; it takes about as long."""
_PAUSE_SHORT_FORM = 0.02
_IDLE_PAUSE = 3 * STOP_SECONDS
_MAX_DELAY = 0.5
"""Maximum number of seconds from the start of a service to the signal."""
_MAX_STOP_SECONDS = 2.0
_HALF_SECONDS = 0.2
"""Seconds from the signal to the second half of a request."""


def run(seed: int, count: int) -> Result:
    """Restart the service while clients send requests; more often if there is time."""
    rng = random.Random(seed)
    restarts: list[_Restart] = []
    with (
        build_two_snapshots() as (snapshot, _),
        socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS) as listener,
        _start_clients(3) as clients,
    ):
        exchanges = list_exchanges(snapshot, seed)
        half = next(one for one in exchanges if one.request.startswith(b"POST"))
        loads = _list_loads(listener.getsockname()[1], exchanges, count)
        asking = [client(load) for client, load in zip(clients, loads, strict=True)]
        while len(restarts) < count or not all(load.done() for load in asking):
            with serve(snapshot, listener=listener) as service:
                restarts.append(_stop(service, half, rng.random() * _MAX_DELAY))
        outcomes = [load.result() for load in asking]
    return _summarize(restarts, outcomes)


@contextmanager
def _start_clients(number: int) -> Iterator[list[Client]]:
    """Start clients, each in a process of its own."""
    with ExitStack() as stack:
        yield [stack.enter_context(load_client.start_client()) for _ in range(number)]


def _list_loads(port: int, exchanges: Sequence[Exchange], count: int) -> list[Load]:
    """Return a load of connections for one request each, of busy ones, and of idle ones."""
    seconds = _SECONDS * count
    pause = _PAUSE_SHORT_FORM if count < _FEW else 0.0
    single = [
        one._replace(request=one.request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        for one in exchanges
    ]
    return [
        Load(port, rotate(single, _CLIENTS), seconds, pause=pause),
        Load(port, rotate(exchanges, _CLIENTS), seconds, pause=pause),
        Load(port, rotate(exchanges, _IDLE_CLIENTS), seconds, pause=_IDLE_PAUSE),
    ]


class _Restart(NamedTuple):
    """What a stopped service did."""

    seconds: float
    """From the signal to the end."""
    logged: int
    """Answers in the log."""
    problems: list[str]


def _stop(service: Service, half: Exchange, after: float) -> _Restart:
    """Stop a service after some seconds, in the middle of a request."""
    with closing(service.open_connection()) as connection:
        connection.sendall(half.request[:-10])
        time.sleep(after)
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        time.sleep(_HALF_SECONDS)
        problems = _finish_half_request(connection, half)
        exit_code = service.process.wait(timeout=2 * ANSWER_SECONDS)
        seconds = time.monotonic() - began
    if exit_code:
        problems.append(f"exit code {exit_code}")
    if seconds > _MAX_STOP_SECONDS:
        problems.append(f"ended {seconds:.1f} s after the signal")
    where = f"after {after:.3f} s: "
    logged = sum("status" in entry for entry in service.read_log())
    return _Restart(seconds, logged, [where + problem for problem in problems])


def _finish_half_request(connection: socket.socket, exchange: Exchange) -> list[str]:
    """Send the second half of a request after the signal; return problems with its answer."""
    received = b""
    try:
        connection.sendall(exchange.request[-10:])
        while part := connection.recv(1 << 16):
            received += part
    except OSError as error:
        return [f"half request: {error}"]
    found = split_answer(received, is_head=False)
    if found is None:
        return [f"half request: closed after {len(received)} bytes of an answer"]
    answer, _ = found
    problem = exchange.find_problem(answer.status, answer.body)
    return [f"half request: {problem}"] if problem else []


def _summarize(restarts: Sequence[_Restart], outcomes: Sequence[Outcome]) -> Result:
    failures = [
        f"restart {number}, {problem}"
        for number, restart in enumerate(restarts)
        for problem in restart.problems
    ]
    crossed = 0
    for outcome in outcomes:
        errors = [cut for cut in outcome.cuts if not _has_crossed(cut)]
        crossed += len(outcome.cuts) - len(errors)
        failures += outcome._replace(cuts=errors).list_failures()
    answers = sum(outcome.answers for outcome in outcomes)
    logged = sum(restart.logged for restart in restarts) - len(restarts)
    if logged != answers:  # besides the half requests
        failures.append(f"{logged} answers in the logs, but {answers} received")
    counts = {
        "answers": answers,
        "connection errors": sum(len(outcome.cuts) + outcome.refused for outcome in outcomes)
        - crossed,
        "idle connections closed": sum(outcome.reopened for outcome in outcomes),
        "requests crossed the end of an idle connection": crossed,
        "at most {} ms for an answer": round(max(one.quantile(1) for one in outcomes)),
        "at most {} ms from the signal to the end": round(
            max(restart.seconds for restart in restarts) * 1000
        ),
    }
    return Result(len(restarts), counts, tuple(failures))


def _has_crossed(cut: Cut) -> bool:
    """Return whether a request and the end of its connection, which was idle, crossed on the way.

    HTTP/1.1 can't prevent this. The connection was idle for as long as a stopping service waits.
    """
    return not cut.received and cut.idle is not None and cut.idle >= STOP_SECONDS


CAMPAIGN = Campaign(
    name="restarts",
    promise="while a service is restarted on a socket of its parent, no connection is refused, and"
    " each request is answered, unless it was sent on an idle connection at the moment of its end",
    run=run,
    short=2,
    long=100,
    unit="restarts",
    needs=("bash",),
)
