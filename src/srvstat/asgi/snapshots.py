"""The snapshot at a path, and the one that takes its place while the service runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TypeVar

from srvstat.asgi.log import Log
from srvstat.asgi.results import Details, Results
from srvstat.asgi.workers import Worker, Workers
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import format_instant
from srvstat.files.watching import Candidate, WatchedFile
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.read.verify import check_chain

_SECONDS_TO_WAIT = 1.0
"""So long requests wait for a new file to be checked. Then the old one answers until it is."""

_MOST_REPLACED = 100
"""How many times in a row another file may come while the connections to one are opened."""

_T = TypeVar("_T")


class NobodyAsksError(Exception):
    """Whoever asked a question has gone before its turn came."""


class Generation:
    """A file that was at the path: a connection for each worker, and what was answered from it."""

    def __init__(self, files: Mapping[Worker, SnapshotFile]) -> None:
        self.files = files
        self.results = Results()
        self.details = Details()
        self.questions = 0
        self.is_retired = False
        file = next(iter(files.values()))
        self.as_of = format_instant(file.as_of)
        self.root = file.root


class ServedSnapshot:
    """Answers questions from the file at a path, whatever file that is by now.

    Made before the event loop and used inside of it. A question is asked of one generation, from
    its beginning to its end.

    Raises SnapshotError where there is no file to begin with.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._log = log
        self._workers = Workers()
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="srvstat-checker")
        self._file = WatchedFile(path)
        self._generation = Generation(_opened(path, self._workers.all))
        self._change: asyncio.Task[None] | None = None
        self._wait_until = 0.0

    async def current(self) -> Generation:
        """Return the generation of the file that is at the path now, if that is a good one.

        Ask it before anything else is awaited: it may be closed once it is not the current one.
        """
        candidate = self._file.find_candidate()
        if candidate:
            await self._try(candidate)
        return self._generation

    async def ask(
        self,
        generation: Generation,
        question: Callable[[SnapshotFile], _T],
        *,
        keep: Callable[[_T], None],
        is_wanted: Callable[[], bool],
        is_comparison: bool = False,
    ) -> _T:
        """Have a worker answer a question, unless nobody wants to know by then.

        A worker finishes what it has begun. `keep` gets the answer even if nobody waits for it.

        Raises NobodyAsksError, and what the question raises.
        """
        generation.questions += 1
        try:
            worker = await self._workers.take(is_comparison=is_comparison)
        except BaseException:
            self._release(generation)
            raise

        def finish(answer: asyncio.Future[_T] | None) -> None:
            self._workers.give_back(worker, is_comparison=is_comparison)
            self._release(generation)
            if answer and not answer.cancelled() and not answer.exception():
                keep(answer.result())

        if not is_wanted():
            finish(None)
            raise NobodyAsksError
        loop = asyncio.get_running_loop()
        try:
            answer = loop.run_in_executor(worker, question, generation.files[worker])
        except BaseException:
            finish(None)
            raise
        answer.add_done_callback(finish)
        return await asyncio.shield(answer)

    def _release(self, generation: Generation) -> None:
        generation.questions -= 1
        self._close_unused(generation)

    async def _try(self, candidate: Candidate) -> None:
        """Check a file, unless one is being checked; wait a little for one that is new."""
        loop = asyncio.get_running_loop()
        if self._change is None or self._change.done():
            self._change = loop.create_task(self._adopt(candidate))
            self._wait_until = loop.time() + _SECONDS_TO_WAIT
        seconds = self._wait_until - loop.time()
        if seconds > 0 and not candidate.is_retry:
            await asyncio.wait({self._change}, timeout=seconds)

    async def _adopt(self, candidate: Candidate) -> None:
        loop = asyncio.get_running_loop()
        try:
            files = await loop.run_in_executor(
                self._checker, partial(_checked, self._file.path, self._workers.all)
            )
        except SnapshotError as error:
            self._reject(candidate, error.reason)
            return
        except Exception as error:  # noqa: BLE001 - a bug must not end the service
            self._reject(candidate, f"a bug in srvstat: {error!r}")
            return
        self._file.accept(candidate)
        old, self._generation = self._generation, Generation(files)
        old.is_retired = True
        self._close_unused(old)
        new = self._generation
        self._log.notice("a new snapshot is served", asOf=new.as_of, root=new.root)

    def _reject(self, candidate: Candidate, reason: str) -> None:
        if self._file.reject(candidate, reason):
            self._log.notice("a new snapshot is refused; the old one goes on", reason=reason)

    def _close_unused(self, generation: Generation) -> None:
        if generation.is_retired and not generation.questions:
            for worker, file in generation.files.items():
                worker.submit(file.close)


def _opened(path: str, workers: Sequence[Worker]) -> dict[Worker, SnapshotFile]:
    """Open the file at a path in each worker, and the same one in all of them.

    Raises SnapshotError.
    """
    for _ in range(_MOST_REPLACED):
        files: dict[Worker, SnapshotFile] = {}
        try:
            for worker in workers:
                files[worker] = worker.submit(open_file, path).result()
        except BaseException:
            _close(files)
            raise
        first, *others = files.values()
        if all(file.is_same_as(first) for file in others):
            return files
        _close(files)
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _checked(path: str, workers: Sequence[Worker]) -> dict[Worker, SnapshotFile]:
    """Open the file at a path in each worker once all of it that answers read was proved.

    Raises SnapshotError.
    """
    for _ in range(_MOST_REPLACED):
        with closing(open_file(path)) as file:
            check_chain(file)
            files = _opened(path, workers)
            if file.is_same_as(next(iter(files.values()))):
                return files
        _close(files)
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _close(files: Mapping[Worker, SnapshotFile]) -> None:
    for worker, file in files.items():
        worker.submit(file.close)
