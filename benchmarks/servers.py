"""Servers in processes of their own, on one core; the client that asks them is on another."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.measure import FailedError, environment
from benchmarks.questions import UnequalError
from support import load_client
from support.http import request_target
from support.load import Exchange, Load, Outcome

_REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_LONGEST = 600.0
"""Seconds in which each exchange has been asked once."""
_BUSIEST = 0.95


class Server(NamedTuple):
    """A server that waits to be asked."""

    port: int
    log: str
    """The path of what it writes on standard output and standard error."""
    first: Exchange
    """What each connection asks before the time begins: then it is open."""


Ask = Callable[[Server, Sequence[Sequence[Exchange]], float | None], Outcome]
"""Asks what each connection is given: again and again for some seconds, or once."""


@contextmanager
def asking() -> Iterator[Ask]:
    """Start the client.

    What it returns raises UnequalError for an answer that is not right, FailedError where the
    figure would be the client's own.
    """
    with load_client.start_client(_cores()[1]) as client:

        def ask(
            server: Server, turns: Sequence[Sequence[Exchange]], seconds: float | None
        ) -> Outcome:
            is_repeated = seconds is not None
            load = Load(server.port, turns, seconds or _LONGEST, is_repeated, first=server.first)
            outcome = client(load).result()
            if failures := outcome.failures():
                raise UnequalError(failures[0])
            if outcome.busy > _BUSIEST:
                raise FailedError("the client has no core to itself: its figure would be its own")
            return outcome

        yield ask


@contextmanager
def started(line: Callable[[str], Sequence[str]], log: str, path: str) -> Iterator[Server]:
    """Start a server whose command line is made for a port; it takes requests once this returns.

    It answers 200 at the path.

    Raises FailedError.
    """
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
    core, _ = _cores()
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [*pinned, *line(str(port))],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=_REPOSITORY,
        )
    try:
        _await_start(process, port, log)
        yield Server(port, log, Exchange(request_target(path)))
    finally:
        process.kill()
        process.wait()


def _cores() -> tuple[int | None, int | None]:
    """Return the core of the servers and that of the client, where they can be chosen."""
    if not hasattr(os, "sched_getaffinity") or not shutil.which("taskset"):
        return None, None
    cores = os.sched_getaffinity(0)
    return min(cores), max(cores)


def _await_start(process: "subprocess.Popen[bytes]", port: int, log: str) -> None:
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
