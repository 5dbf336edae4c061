"""Share the work of a long build with a second process.

The second process is another Python that gets jobs over a pipe, each a function and its argument.
If it can't be started, or ends early, this process does the rest. So a build never depends on it,
only its time does.
"""

import fcntl
import os
import pickle
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, BinaryIO, Self, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MAX_SENT = 2
"""Jobs that the second process has at a time: one to compute, and one to compute next."""

_MAX_WAITING = 8
"""Jobs that wait for an earlier one; more would take memory for little speed."""

_PIPE_BYTES = 1 << 20
"""Capacity of a pipe, so that most jobs fit in it. Larger ones are passed in pieces."""

_LENGTH_BYTES = 8
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux only

# Most jobs need these modules, and no job should wait for them.
_PROGRAM = """
import gc, os, pickle, sys
gc.disable()
jobs, results = open(0, "rb"), open(1, "wb")
sys.path = pickle.load(jobs)
from srvstat.snapshot.write import second_process, store
from srvstat.sources import csv_observations
second_process.serve(jobs, results)
os._exit(0)
"""


# Each thread has its own.
_current: ContextVar["_Process | None"] = ContextVar("_current", default=None)


def pass_messages() -> None:
    """Pass on what waits to be sent or received. Long jobs call this now and then."""
    process = _current.get()
    if process:
        process.exchange(wait=False)


class _Job:
    """A call of a function; `outcome` is its result in a tuple, or empty after an error."""

    def __init__(self, function: Callable[[Any], Any], item: Any) -> None:
        self.function = function
        self.item = item
        self.outcome: tuple[Any, ...] | None = None

    def do(self) -> None:
        """Call the function here."""
        try:
            self.outcome = (self.function(self.item),)
        except Exception:  # noqa: BLE001 - raised when the function is called again
            self.outcome = ()


class SecondProcess:
    """Computes results in two processes: in this one and, after `start`, in a second one.

    It can start only in a `with` block, and ends with it.
    """

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._can_start = False

    def __enter__(self) -> Self:
        self._can_start = True
        return self

    def __exit__(self, *_: object) -> None:
        self._can_start = False
        if self._process:
            self._process.end()

    @property
    def id(self) -> int | None:
        """The id of the second process, or None if it does not run."""
        return self._process.id if self._process else None

    def start(self) -> None:
        """Start the second process if there is a core for it. Later calls do nothing."""
        if self._can_start and count_cores() > 1:
            with suppress(OSError):
                self._process = _Process()
        self._can_start = False

    def compute(
        self,
        function: Callable[[_Item], _Result],
        items: Iterable[_Item],
        *,
        is_small: Callable[[_Item], bool] = lambda _: True,
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, in order.

        Both processes must be able to import the function, and pickle to copy items and results.
        Reads some items ahead; an error from `items` or from the function is raised after all
        earlier results. The function may be called twice for an item. Items that are not small
        stay in this process.
        """
        jobs: deque[_Job] = deque()
        found = _ErrorCatcher(items)
        for item in found:
            jobs.append(_Job(function, item))
            self._begin(jobs[-1], may_send=is_small(item))
            while jobs and (jobs[0].outcome is not None or len(jobs) > _MAX_WAITING):
                yield jobs[0].item, self._finish(jobs.popleft())
        while jobs:
            yield jobs[0].item, self._finish(jobs.popleft())
        if found.error:
            raise found.error

    def _begin(self, job: _Job, *, may_send: bool) -> None:
        """Send a job to the second process if it waits for one; otherwise, do it here."""
        process = self._process
        if process:
            process.exchange(wait=False)
            if may_send and process.is_idle:
                process.send(job)
                return
        job.do()
        if process:
            process.exchange(wait=False)

    def _finish(self, job: _Job) -> Any:
        """Return the result of a job."""
        while self._process and job.outcome is None and job in self._process.jobs:
            last = self._process.jobs[-1]
            if last is not job and last.outcome is None:
                # Rather than wait, do the job that the second process would do last.
                last.do()
            else:
                self._process.exchange(wait=True)
        # After an error, the second call raises it here, where it belongs.
        return job.outcome[0] if job.outcome else job.function(job.item)


class _ErrorCatcher:
    """Iterates until an error, and keeps the error."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._items
        except Exception as error:  # noqa: BLE001 - the caller raises it
            self.error = error


class _Process:
    """The second process, and what has not passed through its pipes yet.

    Writing and reading never block each other, so that the two processes can't wait for each other.
    """

    def __init__(self) -> None:
        """Start the process. Raises OSError."""
        self.jobs: deque[_Job] = deque()
        self._unsent = bytearray(pickle.dumps(sys.path))
        self._received = bytearray()
        self._is_ready = False
        descriptors: list[int] = []
        try:
            descriptors += os.pipe()
            descriptors += os.pipe()
            jobs, self._output, self._input, results = descriptors
            self.id: int | None = spawn_python(_PROGRAM, jobs, results)
        except OSError:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        os.close(jobs)
        os.close(results)
        for descriptor in (self._output, self._input):
            os.set_blocking(descriptor, False)
            if _SET_PIPE_SIZE is not None:  # pragma: no branch - other systems
                with suppress(OSError):
                    fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _PIPE_BYTES)
        _current.set(self)
        self.exchange(wait=False)

    @property
    def is_idle(self) -> bool:
        """Whether to send another job."""
        return self._is_ready and len(self.jobs) < _MAX_SENT

    def send(self, job: _Job) -> None:
        """Send a job, as much of it as fits in the pipe."""
        message = pickle.dumps((job.function, job.item), pickle.HIGHEST_PROTOCOL)
        self.jobs.append(job)
        self._unsent += len(message).to_bytes(_LENGTH_BYTES)
        self._unsent += message
        self.exchange(wait=False)

    def exchange(self, *, wait: bool) -> None:
        """Write and read as much as the pipes allow; with `wait`, wait until they allow some.

        If the process has ended, it has no jobs any more.
        """
        try:
            if wait:
                self._wait()
            self._write()
            self._read()
        except OSError:
            self.end()

    def end(self) -> None:
        """Kill the process, if it runs, and forget its jobs."""
        self.jobs.clear()
        self._is_ready = False
        if self.id is None:
            return
        os.kill(self.id, signal.SIGKILL)
        os.waitpid(self.id, 0)
        self.id = None
        _current.set(None)
        os.close(self._output)
        os.close(self._input)

    def _wait(self) -> None:
        pipes = select.poll()
        pipes.register(self._input, select.POLLIN)
        pipes.register(self._output, select.POLLOUT if self._unsent else 0)
        pipes.poll()

    def _write(self) -> None:
        with suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: os.write(self._output, self._unsent)]

    def _read(self) -> None:
        """Read results into their jobs. Raises OSError if the process has ended."""
        with suppress(BlockingIOError):
            while True:
                received = os.read(self._input, _PIPE_BYTES)
                if not received:
                    raise ConnectionResetError
                self._received += received
                self._take_results()

    def _take_results(self) -> None:
        # With less than a length, the end is beyond it, too.
        start = _LENGTH_BYTES
        while len(self._received) >= (end := start + int.from_bytes(self._received[:start])):
            outcome = pickle.loads(self._received[start:end])  # noqa: S301 - from our own process
            del self._received[:end]
            if self._is_ready:
                self.jobs.popleft().outcome = outcome
            self._is_ready = True


def spawn_python(program: str, jobs: int, results: int) -> int:
    """Start a Python program with two descriptors as its standard input and output; return its id.

    It can import only the standard library until it sets `sys.path`.

    Raises OSError.
    """
    # Isolated and without `site`, which takes longer to load than all of our modules: it gets our
    # `sys.path`. This process decides what an interruption means.
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", program],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, jobs, 0), (os.POSIX_SPAWN_DUP2, results, 1)],
        setsigmask=[signal.SIGINT, signal.SIGHUP],
    )


def serve(jobs: BinaryIO, results: BinaryIO) -> None:
    """Do the jobs of another process until it closes its pipes."""
    with suppress(BrokenPipeError):
        _write_message(results, None)
        while message := _read_message(jobs):
            function, item = pickle.loads(message)  # noqa: S301 - from our own process
            job = _Job(function, item)
            job.do()
            _write_message(results, job.outcome)


def _read_message(pipe: BinaryIO) -> bytes | None:
    """Read a message; return None if the other process has ended before or in the middle of it."""
    length = int.from_bytes(pipe.read(_LENGTH_BYTES))
    message = pipe.read(length)
    return message if len(message) == length else None


def _write_message(pipe: BinaryIO, content: object) -> None:
    message = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    pipe.write(len(message).to_bytes(_LENGTH_BYTES))
    pipe.write(message)
    pipe.flush()


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover - not on Linux
