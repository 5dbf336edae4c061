"""Measure `srvstat serve` and a minimal application: requests per second on one core.

All servers run on one core; this process queries one of them at a time from another.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from itertools import cycle
from selectors import EVENT_READ, DefaultSelector
from statistics import median

from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, build_environment, print_progress
from benchmarks.processes import call_without
from benchmarks.questions import Request, check_answers, compute_answers, draw_requests, read_body

HELLO = "Starlette, a small JSON answer"
UNCACHED, CACHED = "srvstat serve, not cached", "srvstat serve, cached"
CONNECTIONS = 16

SETUPS = {
    "serve": "Each request compares five servers. In the uncached test, no request was"
    " sent before. In the cached test, all were.",
    "minimal app": "A Starlette route returns a constant `JSONResponse`, on uvicorn with h11.",
}
"""The setup of each server, for the page."""

_HELLO = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def hello(request):
    return JSONResponse({"hello": "world"})

uvicorn.run(Starlette(routes=[Route("/", hello)]), port=int(sys.argv[1]), http="h11",
    loop="asyncio", ws="none", lifespan="off", log_config=None, access_log=False)
"""
_START_SECONDS = 60.0
_SERVED_EVENT = b'"new snapshot in use"'


def measure_rates(files: FleetFiles, *, rounds: int, seconds: float) -> dict[str, float]:
    """Check the answers of each server; return its requests per second.

    Raises WrongAnswerError, FailedError.
    """
    requests = draw_requests("serve", files, "1y")
    posts = [_build_post(request.body) for request in requests]
    rates: dict[str, list[float]] = defaultdict(list)
    with _start_servers(files) as servers:
        ports = {name: port for name, (port, _) in servers.items()}
        _check(ports[CACHED], posts, requests)
        for number in range(rounds):
            print_progress(f"timing {len(servers)} services, round {number + 1} of {rounds}")
            _replace_snapshot(files, *servers[CACHED])
            rates[UNCACHED].append(_measure(ports[CACHED], posts, None))
            rates[CACHED].append(_measure(ports[CACHED], posts, seconds))
            rates[HELLO].append(_measure(ports[HELLO], [_build_get("/")], seconds))
    return {name: median(found) for name, found in rates.items()}


@contextmanager
def _start_servers(files: FleetFiles) -> Iterator[dict[str, tuple[int, str]]]:
    """Start every server, and yield its port and the path of its log."""
    serve = [*call_without("pandas"), "serve", "--snapshot", files.snapshot]
    lines = {CACHED: [*serve, "--port"], HELLO: [sys.executable, "-c", _HELLO]}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    pinned = ["taskset", "--cpu-list", str(cores[0])] if cores and shutil.which("taskset") else []
    if pinned:
        os.sched_setaffinity(0, {cores[-1]})
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        servers = {}
        for name, line in lines.items():
            with socket.create_server(("127.0.0.1", 0)) as listening:
                port = listening.getsockname()[1]
            log = os.path.join(directory, f"{port}.log")
            with open(log, "wb") as file:
                process = subprocess.Popen(
                    [*pinned, *line, str(port)],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=build_environment(),
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            _wait_for_start(port, log)
            servers[name] = port, log
        yield servers
    if pinned:
        os.sched_setaffinity(0, cores)


def _wait_for_start(port: int, log: str) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    with open(log, encoding="utf-8", errors="replace") as file:
        raise FailedError(f"a server did not start: {file.read()[-500:]}")


def _replace_snapshot(files: FleetFiles, port: int, log: str) -> None:
    """Make the service reopen the snapshot: a new modification time is like a new file."""

    def count_snapshots() -> int:
        with open(log, "rb") as file:
            return file.read().count(_SERVED_EVENT)

    before = count_snapshots()
    os.utime(files.snapshot)
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and count_snapshots() == before:
        with closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        time.sleep(0.05)
    if count_snapshots() == before:
        raise FailedError("srvstat serve did not open the new snapshot")


def _build_get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _build_post(body: bytes) -> bytes:
    head = (
        "POST /gateway/v1/compare HTTP/1.1\r\nHost: localhost\r\nX-Gateway-Key: any\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _check(port: int, messages: Sequence[bytes], requests: Sequence[Request]) -> None:
    """Compare the answers of a server with those of plain Python."""
    with closing(_Connection(port)) as connection:
        for message, request in zip(messages, requests, strict=True):
            connection.send(message)
            body: bytes | None = None
            while body is None:
                body = connection.receive()
            check_answers("srvstat serve", request, read_body(body), compute_answers(request))


def _measure(port: int, messages: Sequence[bytes], seconds: float | None) -> float:
    """Return the requests per second with messages repeated for some seconds, or each sent once."""
    waiting = iter(messages) if seconds is None else cycle(messages)
    answers, open_ones = 0, 0
    with ExitStack() as stack, DefaultSelector() as selector:
        for message in (message for _, message in zip(range(CONNECTIONS), waiting, strict=False)):
            connection = stack.enter_context(closing(_Connection(port)))
            selector.register(connection.socket, EVENT_READ, connection)
            connection.send(message)
            open_ones += 1
        started = time.perf_counter()
        while open_ones and (seconds is None or time.perf_counter() - started < seconds):
            for key, _ in selector.select():
                if key.data.receive() is None:
                    continue
                answers += 1
                if following := next(waiting, None):
                    key.data.send(following)
                else:
                    selector.unregister(key.fileobj)
                    open_ones -= 1
        return answers / (time.perf_counter() - started)


class _Connection:
    """A connection that sends one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self.close = self.socket.close

    def send(self, message: bytes) -> None:
        self.socket.sendall(message)

    def receive(self) -> bytes | None:
        """Receive once; return the body of the response if it is complete.

        Raises FailedError if the response is not a success.
        """
        self._received += self.socket.recv(1 << 16)
        head, ending, body = self._received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        if ending and not head.startswith(b"HTTP/1.1 200"):
            raise FailedError(f"a service answered {head!r}")
        if ending and length and len(body) == int(length):
            self._received = b""
            return body
        return None
