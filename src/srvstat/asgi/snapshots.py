"""Answer from the snapshot at a path, and switch to a new one while the service runs."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TypeVar

from srvstat import operations
from srvstat.asgi.descriptors import reserve_descriptors
from srvstat.asgi.log import Log
from srvstat.asgi.results import DetailCache, Results
from srvstat.asgi.workers import Work, Worker, Workers
from srvstat.contract.errors import SnapshotError
from srvstat.contract.instants import format_instant
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import EncodedJson
from srvstat.files.identity import Candidate, WatchedFile
from srvstat.snapshot.read.snapshot import Snapshot, identify_snapshot, open_snapshot
from srvstat.snapshot.read.verify import check_chain

_SECONDS_TO_WAIT = 1.0
"""Requests wait this long until a new file is verified. Then the old file answers them."""

_MAX_ATTEMPTS = 100
"""Attempts to open one file in all workers while other files replace it."""

_T = TypeVar("_T")


class ClientGoneError(Exception):
    """The client closed its connection before a worker was free for its question."""


class Generation:
    """A file that was at the path: its connection in each worker, and the answers from it."""

    def __init__(self, files: Mapping[Worker, Snapshot]) -> None:
        self.files = files
        self.results = Results()
        self.details = DetailCache()
        self.questions = 0
        self.is_retired = False
        file = next(iter(files.values()))
        self.as_of = file.as_of
        self.root = file.root
        self.shards = file.shards


class ServedSnapshot:
    """Answer questions from the file that is now at a path.

    Create it before the event loop starts, and use it inside. Each question is answered from one
    generation.

    Raises SnapshotError if the first file can't be used.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._log = log
        self._workers = Workers()
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="srvstat-checker")
        self._file = WatchedFile(path, identify_snapshot)
        self._generation = Generation(_open_in_workers(path, self._workers.all))
        self._adoption: asyncio.Task[None] | None = None
        self._wait_until = 0.0

    @property
    def current(self) -> Generation:
        """The generation that is in use, without a check for a new file."""
        return self._generation

    def close(self) -> None:
        """Close the files of a service that does not start."""
        _close(self._generation.files)

    async def get_generation(self) -> Generation:
        """Return the generation of the file at the path, or the previous one if that is rejected.

        Use it before the next `await`: a replaced generation may be closed.
        """
        candidate = self._file.find_candidate()
        if candidate:
            await self._try_file(candidate)
        return self._generation

    async def ask(
        self,
        generation: Generation,
        question: Callable[[Snapshot], _T],
        *,
        remember: Callable[[_T], None],
        is_wanted: Callable[[], bool],
        work: Work = Work.GET_SERVER,
    ) -> _T:
        """Call a function with the generation's file in a worker.

        The function is not called if `is_wanted` is false once a worker is free. A started call is
        completed: `remember` gets its value even if this task is cancelled.

        Raises ClientGoneError if the answer is no longer wanted, and what the function raises.
        """
        generation.questions += 1
        try:
            worker = await self._workers.acquire(work)
        except BaseException:
            self._release(generation)
            raise

        def finish(answer: asyncio.Future[_T] | None) -> None:
            self._workers.release(worker, work)
            self._release(generation)
            if answer and not answer.cancelled() and not answer.exception():
                remember(answer.result())

        if not is_wanted():
            finish(None)
            raise ClientGoneError
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
        _close_unused(generation)

    async def _try_file(self, candidate: Candidate) -> None:
        """Verify a file, unless one is being verified; wait briefly for one that is not a retry."""
        loop = asyncio.get_running_loop()
        if self._adoption is None or self._adoption.done():
            self._adoption = loop.create_task(self._adopt(candidate))
            self._wait_until = loop.time() + _SECONDS_TO_WAIT
        seconds = self._wait_until - loop.time()
        if seconds > 0 and not candidate.is_retry:
            await asyncio.wait({self._adoption}, timeout=seconds)

    async def _adopt(self, candidate: Candidate) -> None:
        loop = asyncio.get_running_loop()
        try:
            files = await loop.run_in_executor(
                self._checker, partial(_verify_and_open, self._file.path, self._workers.all)
            )
        except SnapshotError as error:
            self._reject(candidate, error.reason)
            return
        except Exception as error:  # noqa: BLE001 - a bug must not stop the service
            self._reject(candidate, f"a bug in srvstat: {error!r}")
            return
        self._file.accept(candidate)
        old, self._generation = self._generation, Generation(files)
        old.is_retired = True
        _close_unused(old)
        new = self._generation
        as_of = format_instant(new.as_of)
        self._log.add_event("new snapshot in use", asOf=as_of, root=new.root)

    def _reject(self, candidate: Candidate, reason: str) -> None:
        if self._file.reject(candidate, reason):
            self._log.add_event(
                "new snapshot rejected; the previous one stays in use", reason=reason
            )


async def answer_get_server(
    snapshot: ServedSnapshot,
    generation: Generation,
    reference: ServerReference,
    is_wanted: Callable[[], bool],
) -> bytes:
    """Return the answer of Get Server, and remember it.

    Raises ServerNotFoundError, SnapshotError, ClientGoneError.
    """

    def answer(file: Snapshot) -> bytes:
        # An equal question may have been answered while this one waited.
        known = generation.details.look_up(reference)
        return operations.get_server(file, reference).to_json() if known is None else known

    return await snapshot.ask(
        generation,
        answer,
        remember=partial(generation.details.remember, reference),
        is_wanted=is_wanted,
    )


async def complete_results(
    snapshot: ServedSnapshot,
    generation: Generation,
    request: CompareRequest,
    results: list[EncodedJson | None],
    is_wanted: Callable[[], bool],
) -> None:
    """Replace the results of a comparison that are None, and remember them.

    Raises ServerNotFoundError, SnapshotError, ClientGoneError.
    """

    def answer(file: Snapshot) -> dict[int, EncodedJson]:
        known = enumerate(generation.results.look_up(request))
        found = {position: result for position, result in known if result is not None}
        missing = [position for position in range(len(results)) if position not in found]
        if not missing:
            return found
        references = [request.servers[position] for position in missing]
        try:
            answers = operations.compute_results(file, references, request.range)
        except operations.UnknownServerError as error:
            raise error.with_place(request) from None
        return found | {
            position: one.encode_once() for position, one in zip(missing, answers, strict=True)
        }

    found = await snapshot.ask(
        generation,
        answer,
        remember=partial(generation.results.remember, request),
        is_wanted=is_wanted,
        work=Work.COMPARE,
    )
    for position, result in found.items():
        results[position] = result


def _open_in_workers(path: str, workers: Sequence[Worker]) -> dict[Worker, Snapshot]:
    """Open the same file in each worker.

    Raises SnapshotError.
    """
    for _ in range(_MAX_ATTEMPTS):
        files: dict[Worker, Snapshot] = {}
        try:
            for worker in workers:
                files[worker] = worker.submit(_open_completely, path).result()
        except BaseException:
            _close(files)
            raise
        first, *others = files.values()
        if all(file.is_same_as(first) for file in others):
            return files
        _close(files)
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _open_completely(path: str) -> Snapshot:
    """Open a snapshot with all of its files: other ones may be at their paths later.

    Raises SnapshotError.
    """
    snapshot = open_snapshot(path)
    try:
        reserve_descriptors(path, snapshot.shards)
        deque(snapshot.iter_files(), 0)
    except BaseException:
        snapshot.close()
        raise
    return snapshot


def _verify_and_open(path: str, workers: Sequence[Worker]) -> dict[Worker, Snapshot]:
    """Verify everything in a file that answers read, and open it in each worker.

    Raises SnapshotError.
    """
    for _ in range(_MAX_ATTEMPTS):
        with closing(_open_completely(path)) as file:
            check_chain(file)
            files = _open_in_workers(path, workers)
            if file.is_same_as(next(iter(files.values()))):
                return files
        _close(files)
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _close_unused(generation: Generation) -> None:
    if generation.is_retired and not generation.questions:
        _close(generation.files)


def _close(files: Mapping[Worker, Snapshot]) -> None:
    for worker, file in files.items():
        worker.submit(file.close)
