"""Compute results in other processes."""

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from itertools import islice
from multiprocessing import (
    active_children,
    get_context,
    parent_process,
    popen_spawn_posix,  # noqa: F401 - a later import could swallow an interruption
    synchronize,  # noqa: F401 - likewise
)
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Report = Callable[[int], None]
"""Called with the number of rows just processed."""

_SECONDS_PER_REPORT = 0.1
_SECONDS_TO_END = 5

_MAX_SENT = 2
"""Jobs that the second process has at a time: one to compute, and one to compute next."""

_MAX_WAITING = 8
"""Jobs that wait for an earlier one; more would take memory for little speed."""

_SECONDS_PER_TURN = 0.0002

_MODULES = ("srvstat.snapshot.write.store", "srvstat.sources.csv_observations")
"""Most jobs of the second process need these modules, and no job should wait for them."""

_reports: ContextVar["Connection"] = ContextVar("_reports")


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
    jobs: dict[Future[_Result], _Item] = {}
    children: set[Any] = set()
    try:
        with _open_pool(processes, kills=True) as (pool, reports):
            while True:
                for item in islice(rest, processes - len(jobs)):
                    jobs[_submit(pool, _do_job, function, item)] = item
                if not jobs:
                    return
                children.update(active_children())
                done, _ = wait(jobs, _SECONDS_PER_REPORT, FIRST_COMPLETED)
                while reports.poll():
                    report(reports.recv())
                for future in done:
                    yield jobs.pop(future), future.result()
    except BrokenProcessPool:
        for child in children:
            child.join(_SECONDS_TO_END)
        # The pool ends the other processes by SIGTERM.
        codes = (child.exitcode or -signal.SIGTERM for child in children)
        code = max(codes, default=1)  # without a child, it ended at once
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        raise WorkerError(f"a process ended {how}") from None


def _do_job(
    function: Callable[[Any, Report], _Result], item: object
) -> _Result:  # pragma: no cover - runs in another process
    return function(item, _reports.get().send)


class SecondProcess:
    """Computes results in two processes: in this one and, after `start`, in a second one.

    The second process can start only in a `with` block, and ends with it. If it can't be started,
    or ends early, this process does the rest: only the time of a build depends on it.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._can_start = False
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[None] = Future()

    def __enter__(self) -> Self:
        self._can_start = True
        return self

    def __exit__(self, *_: object) -> None:
        self._can_start = False
        self._pool = None
        self._stack.close()

    def start(self) -> None:
        """Start the second process if there is a core for it. Later calls do nothing."""
        if self._can_start and count_cores() > 1:
            with suppress(WorkerError):
                pool, _ = self._stack.enter_context(_open_pool(1))
                # The pool's threads send large jobs in many pieces, each of which waits for a turn.
                self._stack.callback(sys.setswitchinterval, sys.getswitchinterval())
                sys.setswitchinterval(_SECONDS_PER_TURN)
                self._ready = _submit(pool, _load_modules)
                self._pool = pool
        self._can_start = False

    def compute(
        self,
        function: Callable[[_Item], _Result],
        items: Iterable[_Item],
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, in order.

        Both processes must be able to import the function, and pickle to copy items and results.
        Reads some items ahead; an error from `items` or from the function is raised after all
        earlier results. The function may be called twice for an item.
        """
        jobs: deque[tuple[_Item, Future[_Result]]] = deque()
        found = _ErrorCatcher(items)
        for item in found:
            jobs.append((item, self._begin(function, item, jobs)))
            while jobs and (jobs[0][1].done() or len(jobs) > _MAX_WAITING):
                yield self._finish(function, *jobs.popleft())
        while jobs:
            yield self._finish(function, *jobs.popleft())
        if found.error:
            raise found.error

    def _begin(
        self,
        function: Callable[[_Item], _Result],
        item: _Item,
        jobs: Iterable[tuple[_Item, "Future[_Result]"]],
    ) -> "Future[_Result]":
        """Send an item to the second process if it waits for one; otherwise, compute it here."""
        sent = sum(not future.done() for _, future in jobs)
        if self._pool and self._ready.done() and sent < _MAX_SENT:
            with suppress(BrokenProcessPool, WorkerError):
                return _submit(self._pool, function, item)
            self._pool = None
        future: Future[_Result] = Future()
        try:
            future.set_result(function(item))
        except Exception as error:  # noqa: BLE001 - raised when the function is called again
            future.set_exception(error)
        return future

    def _finish(
        self, function: Callable[[_Item], _Result], item: _Item, future: "Future[_Result]"
    ) -> tuple[_Item, _Result]:
        # After an error, the second call raises it here, where it belongs.
        return item, function(item) if future.exception() else future.result()


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


@contextmanager
def _open_pool(
    processes: int, *, kills: bool = False
) -> Iterator[tuple[ProcessPoolExecutor, "Connection"]]:
    """Yield a pool of processes, which end with the block and with this process, and their reports.

    At the end of the block, they finish their jobs, or with `kills`, are killed.

    Raises WorkerError.
    """
    context = get_context("spawn")
    with _convert_start_errors():
        # The processes write their small reports to one pipe, which needs no lock.
        reports, writing = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(processes, context, _prepare_process, (writing,))
    try:
        yield pool, reports
    finally:
        if kills:
            for child in active_children():
                child.kill()
        ending = Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
        queue = pool._call_queue  # type: ignore[attr-defined] # noqa: SLF001 - see below
        ending.start()
        ending.join(_SECONDS_TO_END)
        if ending.is_alive():  # pragma: no cover - before Python 3.11.8 and 3.12.2
            # The pool waits to send a job to a killed process, until nothing can read it.
            queue._reader.close()  # noqa: SLF001


def _submit(
    pool: ProcessPoolExecutor, function: Callable[..., _Result], *arguments: object
) -> "Future[_Result]":
    """Submit a call, for which the pool may start a process.

    Raises BrokenProcessPool, WorkerError.
    """
    # This process alone decides what an interruption from the terminal means.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        with _convert_start_errors():
            return pool.submit(function, *arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def _convert_start_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkerError(f"a process can't be started: {error.strerror}") from None


def _prepare_process(reports: "Connection") -> None:  # pragma: no cover - runs in another process
    _reports.set(reports)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:  # pragma: no cover - runs in another process
    if parent := parent_process():
        parent.join()
    os._exit(1)


def _load_modules() -> None:  # pragma: no cover - runs in another process
    gc.disable()  # rows have no cycles
    for name in _MODULES:
        import_module(name)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover - not on Linux
