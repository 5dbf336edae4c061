"""Start servers on one core, and the client that queries them on another."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.measure import FailedError, build_environment
from benchmarks.questions import WrongAnswerError
from support import load_client
from support.http import request_target
from support.load import Exchange, Load, Outcome

_REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_LONGEST = 600.0
"""Maximum number of seconds to send every exchange once."""
_BUSIEST = 0.95


class Server(NamedTuple):
    """A running server."""

    port: int
    log: str
    """Path of the file with its stdout and stderr."""
    first: Exchange
    """Sent by each connection before timing starts, to open it."""


Ask = Callable[[Server, Sequence[Sequence[Exchange]], float | None], Outcome]
"""Sends the exchanges of each connection: repeatedly for some seconds, or once."""


@contextmanager
def start_client() -> Iterator[Ask]:
    """Start the client.

    The yielded function raises WrongAnswerError for a wrong answer, and FailedError if the client
    is the bottleneck.
    """
    with load_client.start_client(_choose_cores()[1]) as client:

        def ask(
            server: Server, turns: Sequence[Sequence[Exchange]], seconds: float | None
        ) -> Outcome:
            is_repeated = seconds is not None
            load = Load(server.port, turns, seconds or _LONGEST, is_repeated, first=server.first)
            outcome = client(load).result()
            if failures := outcome.list_failures():
                raise WrongAnswerError(failures[0])
            if outcome.busy > _BUSIEST:
                raise FailedError("the client is the bottleneck; give it a core of its own")
            return outcome

        yield ask


@contextmanager
def start_server(line: Callable[[str], Sequence[str]], log: str, path: str) -> Iterator[Server]:
    """Start a server and wait until it accepts requests.

    `line` returns its command line for a port. It must answer 200 at `path`.

    Raises FailedError.
    """
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
    core, _ = _choose_cores()
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [*pinned, *line(str(port))],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=build_environment(),
            cwd=_REPOSITORY,
        )
    try:
        _wait_for_start(process, port, log)
        yield Server(port, log, Exchange(request_target(path)))
    finally:
        process.kill()
        process.wait()


def _choose_cores() -> tuple[int | None, int | None]:
    """Return the cores of the servers and of the client; None if they can't be chosen."""
    if not hasattr(os, "sched_getaffinity") or not shutil.which("taskset"):
        return None, None
    cores = os.sched_getaffinity(0)
    return min(cores), max(cores)


def _wait_for_start(process: "subprocess.Popen[bytes]", port: int, log: str) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    with open(log, encoding="utf-8", errors="replace") as file:
        raise FailedError(f"a server did not start: {file.read()[-500:]}")
