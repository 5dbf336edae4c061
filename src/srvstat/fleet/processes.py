"""Do jobs in other processes.

They are spawned: a fork would copy locks that threads of pyarrow may hold. Each watches its parent,
and ends with it. After SIGKILL of the command, Python's resource tracker removes the semaphores of
the pool, and says so on standard error.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from multiprocessing import (
    active_children,
    get_context,
    parent_process,
    popen_spawn_posix,  # noqa: F401 - a later import could swallow an interruption
    synchronize,  # noqa: F401 - likewise
)
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Report = Callable[[int], None]
"""Called with the number of rows just processed."""

_SECONDS_PER_REPORT = 0.1
_SECONDS_TO_END = 5

_reports: ContextVar[Connection] = ContextVar("_reports")


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
        with _open_pool(processes) as (pool, reports):
            while True:
                for item in islice(rest, processes - len(jobs)):
                    jobs[_submit(pool, function, item)] = item
                if not jobs:
                    return
                # `active_children()` would lack one that has just been killed.
                children.update([*pool._processes.values()])  # noqa: SLF001
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


@contextmanager
def _open_pool(processes: int) -> Iterator[tuple[ProcessPoolExecutor, Connection]]:
    """Yield a pool of processes, and their reports; all are killed at the end of the block.

    Raises WorkerError.
    """
    # A fork would copy locks that threads of pyarrow may hold.
    context = get_context("spawn")
    with _convert_start_errors():
        # The processes write their small reports to one pipe, which needs no lock.
        reports, writing = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(processes, context, _prepare_process, (writing,))
    try:
        yield pool, reports
    finally:
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
    pool: ProcessPoolExecutor, function: Callable[[_Item, Report], _Result], item: _Item
) -> Future[_Result]:
    """Submit a job, for which the pool may start a process.

    Raises BrokenProcessPool, WorkerError.
    """
    # This process alone decides what an interruption from the terminal means.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        with _convert_start_errors():
            return pool.submit(_do_job, function, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def _convert_start_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkerError(f"a process can't be started: {error.strerror}") from None


def _prepare_process(reports: Connection) -> None:  # pragma: no cover - runs in another process
    _reports.set(reports)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:  # pragma: no cover - runs in another process
    if parent := parent_process():
        parent.join()
    os._exit(1)


def _do_job(
    function: Callable[[Any, Report], _Result], item: object
) -> _Result:  # pragma: no cover - runs in another process
    return function(item, _reports.get().send)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover - not on Linux
