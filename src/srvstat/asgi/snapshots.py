"""Serve the snapshot at a path, and switch to a new snapshot while the service runs."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing
from enum import IntEnum
from functools import partial
from typing import TypeVar

from srvstat.asgi.log import Log
from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import InternalError, SnapshotError
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import Window, find_window
from srvstat.contract.wire import EncodedJson, encode, encode_once
from srvstat.operations import answers as operations
from srvstat.snapshot.read.snapshot import Snapshot, identify_snapshot, open_snapshot
from srvstat.snapshot.read.verify import check_chain

WORK_SECONDS = 10.0
"""The timeout from a validated request to its response, in seconds, including the wait for a
worker.
"""

_SECONDS_TO_WAIT = 1.0
"""How long requests wait until a new file is verified, in seconds. Then they use the old file."""

_MAX_ATTEMPTS = 100
"""The maximum number of attempts to open one file for all workers while it is being replaced."""

_MAX_CACHED_BYTES = 64 << 20
_BYTES_PER_ANSWER = 400
"""The memory overhead per cached response, in bytes."""
WORKERS = 4
"""The number of threads that read. A slow disk under one of them does not delay the others.

Each has its own open file, which one query uses at a time.
"""

_MAX_COMPARING = WORKERS - 1
"""The maximum number of workers that compare or explore. At least one is left for Get Server."""

_MAX_EXPLORING = 1
"""The maximum number of workers that explore. The others are left for the API."""

_T = TypeVar("_T")


class Work(IntEnum):
    """The kinds of work for workers. `EXPLORE` is a search or chart for `serve --explore`.

    Each kind of work counts toward its own limit and the limits of the kinds after it.
    """

    EXPLORE = 0
    COMPARE = 1
    GET_SERVER = 2


class Cache:
    """Responses from one snapshot. They never expire, because a snapshot does not change.

    Drops the oldest responses if it is full.
    """

    def __init__(self, max_bytes: int = _MAX_CACHED_BYTES) -> None:
        self._bytes_left = max_bytes
        self._answers: dict[Hashable, EncodedJson] = {}

    def find(self, key: Hashable) -> EncodedJson | None:
        """Return the response to a query, or None if it is not cached. Thread-safe."""
        return self._answers.get(key)

    def keep(self, key: Hashable, answer: EncodedJson) -> None:
        """Cache a response."""
        self._drop(key)
        self._answers[key] = answer
        self._bytes_left -= _BYTES_PER_ANSWER + len(answer.text)
        while self._bytes_left < 0:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        if dropped := self._answers.pop(key, None):
            self._bytes_left += _BYTES_PER_ANSWER + len(dropped.text)


class Generation:
    """A snapshot that was at the path, opened for each worker, and the cached responses from it.

    Responses are cached as text, so that no number is formatted twice.
    """

    def __init__(self, files: list[Snapshot]) -> None:
        self.idle = files
        self.answers = Cache()
        self.questions = 0
        self.as_of = files[0].as_of
        self.root = files[0].root

    def close(self) -> None:
        """Close the files, which no query uses."""
        for file in self.idle:
            file.close()


class ServedSnapshot:
    """Answer queries from the current file at a path.

    Create it before the event loop starts, and use it only inside the event loop. A query uses a
    single generation. Free workers serve queries in order of arrival. This is fair because no
    request is expensive: a comparison reads a few rows per server, whatever its range.

    Raises SnapshotError if the first file can't be used.
    """

    def __init__(self, path: str, log: Log, at: tuple[int, float] | None = None) -> None:
        self._log = log
        self._at = at
        self.restart_clock()
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="srvstat-reader")
        # Start all threads now, because a later request could find the limit of threads reached.
        barrier = threading.Barrier(WORKERS)
        for _ in range(WORKERS):
            self._threads.submit(barrier.wait)
        # An asyncio.Semaphore serves waiting requests in order. The tightest limit comes first, so
        # that a request that waits for it holds no other limit.
        self._limits = [*map(asyncio.Semaphore, (_MAX_EXPLORING, _MAX_COMPARING, WORKERS))]
        self._file = ReloadedFile(path, "snapshot", log.add_event, identify=identify_snapshot)
        # Each response verifies the rows that it reads. A new file is verified completely, because
        # a service with a valid file must not switch to a damaged file.
        self._open_new = partial(_open_for_workers, path, check_chain)
        self.current = Generation(_open_for_workers(path))
        """The generation in use, without a check for a new file."""

    def close(self) -> None:
        """Close the files of a service that does not start."""
        self.current.close()

    def restart_clock(self) -> None:
        """Restart the simulated time, if it advances."""
        self._started = time.monotonic()

    def find_time(self, generation: Generation) -> int:
        """Return the time to which responses refer now (D3), in Unix milliseconds.

        An advancing time advances in whole seconds, so that responses within a second are cached.
        """
        if self._at is None:
            return generation.as_of
        start, speed = self._at
        return min(start + int((time.monotonic() - self._started) * speed) * 1_000, LATEST)

    @property
    def has_rejected(self) -> bool:
        """Whether a newer file at the path can't be used. The log has the reason."""
        return self._file.has_rejected

    async def get_generation(self) -> Generation:
        """Return the generation of the file at the path; of the previous file if this is rejected.

        Use it before the next `await`, because a replaced generation may be closed.
        """
        await self._file.refresh(self._open_new, self._switch, _SECONDS_TO_WAIT)
        return self.current

    async def ask(
        self,
        generation: Generation,
        question: Callable[[Snapshot], _T],
        work: Work,
        remember: Callable[[_T], None] = lambda _: None,
    ) -> _T:
        """Call a function with the generation's file in a worker.

        A call that has started always runs to its end, even if this task is cancelled by a deadline
        or a disconnect. `remember` then receives its value, so that a retry succeeds.

        Raises the errors of the function.
        """
        generation.questions += 1
        with ExitStack() as stack:
            stack.callback(self._release, generation)
            for limit in self._limits[work:]:
                await limit.acquire()
                stack.callback(limit.release)
            # Reuse the file used last, because its page cache is the fullest.
            file = generation.idle.pop()
            stack.callback(generation.idle.append, file)
            acquired = stack.pop_all()

        def finish(answer: asyncio.Future[_T]) -> None:
            acquired.close()
            if not answer.cancelled() and not answer.exception():
                remember(answer.result())

        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._threads, question, file)
        answer.add_done_callback(finish)
        return await asyncio.shield(answer)

    async def explore(self, question: Callable[[Snapshot], bytes]) -> bytes:
        """Answer a query of the explore page.

        Raises the errors of the function, and InternalError at the deadline.
        """
        generation = await self.get_generation()
        async with enforce_deadline():
            return await self.ask(generation, question, Work.EXPLORE)

    async def answer_get_server(self, generation: Generation, reference: ServerReference) -> bytes:
        """Return the response of Get Server, and cache it.

        Raises ServerNotFoundError for an unknown server, SnapshotError if data are damaged, and
        InternalError at the deadline.
        """

        def compute(file: Snapshot, missing: Sequence[ServerReference]) -> list[EncodedJson]:
            return [encode_once(operations.get_server(file, one).model_dump()) for one in missing]

        (answer,) = await self._answer(generation, None, [reference], compute, Work.GET_SERVER)
        return encode(answer)

    async def answer_comparison(
        self, generation: Generation, request: CompareRequest, at: int
    ) -> list[EncodedJson]:
        """Return the results of a comparison as of `at`, and cache them.

        Raises ServerNotFoundError for an unknown server, SnapshotError if data are damaged, and
        InternalError at the deadline.
        """

        def compute(file: Snapshot, missing: Sequence[ServerReference]) -> list[EncodedJson]:
            results = operations.compute_results(file, request, missing, at=at)
            return [one.encode_once() for one in results]

        window = find_window(request.range, at)
        return await self._answer(generation, window, request.servers, compute, Work.COMPARE)

    async def _answer(
        self,
        generation: Generation,
        window: Window | None,
        references: Sequence[ServerReference],
        compute: Callable[[Snapshot, Sequence[ServerReference]], list[EncodedJson]],
        work: Work,
    ) -> list[EncodedJson]:
        """Return the response about each server, and compute responses that are not cached."""

        def find_known() -> dict[ServerReference, EncodedJson]:
            found = {one: generation.answers.find((window, one)) for one in references}
            return {one: answer for one, answer in found.items() if answer}

        def complete(file: Snapshot) -> list[EncodedJson]:
            # Some may have been computed while this query waited.
            answers = find_known()
            missing = [one for one in references if one not in answers]
            if missing:
                answers |= zip(missing, compute(file, missing), strict=True)
            return [answers[one] for one in references]

        def remember(answers: list[EncodedJson]) -> None:
            for one, answer in zip(references, answers, strict=True):
                generation.answers.keep((window, one), answer)

        known = find_known()
        if len(known) == len(references):
            return [*known.values()]
        async with enforce_deadline():
            return await self.ask(generation, complete, work, remember)

    def _release(self, generation: Generation) -> None:
        generation.questions -= 1
        self._close_unused(generation)

    def _close_unused(self, generation: Generation) -> None:
        if generation is not self.current and not generation.questions:
            self._threads.submit(generation.close)

    def _switch(self, files: list[Snapshot]) -> None:
        old, new = self.current, Generation(files)
        self.current = new
        self._close_unused(old)
        as_of = format_instant(new.as_of)
        self._log.add_event("new snapshot in use", asOf=as_of, root=new.root)


@asynccontextmanager
async def enforce_deadline() -> AsyncIterator[None]:
    """Raise InternalError in the block after WORK_SECONDS."""
    try:
        async with asyncio.timeout(WORK_SECONDS):
            yield
    except TimeoutError:
        raise InternalError(f"no answer within {WORK_SECONDS:g} s") from None


def _open_for_workers(
    path: str, check: Callable[[Snapshot], object] = lambda _: None
) -> list[Snapshot]:
    """Open the same snapshot for each worker, with all of its files, and check it.

    Raises SnapshotError if it is unusable.
    """
    for _ in range(_MAX_ATTEMPTS):
        with ExitStack() as stack:
            files = [stack.enter_context(closing(open_snapshot(path))) for _ in range(WORKERS)]
            for file in files:
                deque(file.iter_files(), 0)  # other files may be at their paths later
            if all(file.file_row == files[0].file_row for file in files):
                check(files[0])
                stack.pop_all()
                return files
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")
