"""Do long jobs in several processes at once.

Each is another Python that gets one job after another over a socket. Unlike the second process of a
build, they do all the work, and the end of one is an error. They end when this process ends, even
if it is killed.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self, TypeVar, cast

from srvstat.snapshot.write.second_process import spawn_python

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Report = Callable[[int], None]
"""Called with the number of rows just processed."""

_PROGRAM = """
import os, sys
from multiprocessing.connection import Connection
connection = Connection(0)
try:
    sys.path = connection.recv()
except (EOFError, ConnectionError):
    os._exit(1)
from srvstat.snapshot.write.worker_processes import serve
serve(connection)
"""

_STDERR = 2


class WorkerError(Exception):
    """A process could not be started, or ended in the middle of a job; the text says why."""


def do_jobs(
    function: Callable[[_Item, Report], _Result],
    items: Iterable[_Item],
    *,
    processes: int,
    report: Report,
) -> Iterator[tuple[_Item, _Result]]:
    """Yield each item with the result of a function, in the order in which they are done.

    The processes must be able to import the function, and pickle to copy items, results and errors.
    They are killed when the iterator ends or is closed.

    Raises the errors of the function, and WorkerError.
    """
    rest = iter(items)
    with ExitStack() as stack:
        workers: dict[Connection, _Worker] = {}
        for item in islice(rest, processes):
            worker = stack.enter_context(_Worker())
            worker.send_job(function, item)
            workers[worker.connection] = worker
        while workers:
            for connection in cast("list[Connection]", wait(workers)):
                worker = workers[connection]
                kind, content = worker.receive()
                if kind == "rows":
                    report(content)
                    continue
                if kind == "error":
                    raise content
                yield worker.item, content
                for item in islice(rest, 1):
                    worker.send_job(function, item)
                    break
                else:
                    del workers[connection]


class _Worker:
    """A process, the connection to it, and the item of its job."""

    item: Any

    def __init__(self) -> None:
        """Start the process. Raises WorkerError."""
        try:
            self.connection, theirs = Pipe()
            with theirs:
                # Its standard output is our standard error: nothing of it is an answer.
                self._id = spawn_python(_PROGRAM, theirs.fileno(), _STDERR)
        except OSError as error:
            raise WorkerError(f"a process can't be started: {error.strerror}") from None

    def __enter__(self) -> Self:
        self._send(sys.path)
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process and wait for its end, after which it writes no file."""
        if self._id:
            self._kill()
        self.connection.close()

    def send_job(self, function: Callable[[Any, Report], Any], item: object) -> None:
        """Send a job to do next.

        Raises WorkerError.
        """
        self.item = item
        self._send((function, item))

    def _send(self, message: object) -> None:
        try:
            self.connection.send(message)
        except ConnectionError:
            raise self._build_error() from None

    def receive(self) -> tuple[str, Any]:
        """Return the kind of the next message and its content.

        Raises WorkerError.
        """
        try:
            kind, content = self.connection.recv()
        except (EOFError, ConnectionError):
            raise self._build_error() from None
        return kind, content

    def _build_error(self) -> WorkerError:
        code = self._kill()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return WorkerError(f"a process ended {how}")

    def _kill(self) -> int:
        """Kill the process, and return its exit code, which it has if it ended earlier."""
        os.kill(self._id, signal.SIGKILL)
        _, status = os.waitpid(self._id, 0)
        self._id = 0
        return os.waitstatus_to_exitcode(status)


def serve(connection: "Connection", end: Callable[[int], object] = os._exit) -> None:
    """Do the jobs of another process until it ends, then end this one with an exit code."""
    jobs: SimpleQueue[Any] = SimpleQueue()
    # This thread notices in the middle of a job that the other process has ended.
    Thread(target=_receive, args=(connection, jobs, end), daemon=True).start()

    def report(rows: int) -> None:
        connection.send(("rows", rows))

    with suppress(ConnectionError):
        for function, item in iter(jobs.get, None):
            try:
                message = "result", function(item, report)
            except Exception as error:  # noqa: BLE001 - raised in the other process
                message = "error", error
            connection.send(message)


def _receive(
    connection: "Connection", jobs: "SimpleQueue[Any]", end: Callable[[int], object]
) -> None:
    """Receive jobs until the other process ends."""
    with suppress(EOFError, ConnectionError):
        while True:
            jobs.put(connection.recv())
    end(1)
    jobs.put(None)
