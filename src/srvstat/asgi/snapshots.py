"""Answer from the snapshot at a path, and switch to a new one while the service runs."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from srvstat.asgi.log import Log
from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import InternalError, SnapshotError
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.time import format_instant
from srvstat.contract.windows import Range
from srvstat.contract.wire import EncodedJson, encode, encode_once
from srvstat.operations import answers as operations
from srvstat.snapshot.read.snapshot import Snapshot, identify_snapshot, open_snapshot
from srvstat.snapshot.read.verify import check_chain

WORK_SECONDS = 10.0
"""Seconds from a validated request to its answer, including the wait for a worker."""

_SECONDS_TO_WAIT = 1.0
"""Requests wait this long until a new file is verified. Then the old file answers them."""

_MAX_ATTEMPTS = 100
"""Attempts to open one file in all workers while other files replace it."""

_MAX_CACHED_BYTES = 64 << 20
_BYTES_PER_ANSWER = 400
"""The memory that an answer takes besides its text."""
WORKERS = 4
"""Threads that read: a slow disk under one of them does not delay the others."""

_MAX_COMPARING = WORKERS - 1
"""Workers that compare or explore at the same time: one is left for Get Server."""

_MAX_EXPLORING = 1
"""Workers that explore at the same time: the others are left for the API."""

_T = TypeVar("_T")

Worker = ThreadPoolExecutor
"""A thread. It has its own connection to each file, which no other thread uses."""


class Work(Enum):
    """What a worker does; `EXPLORE` is a search or a chart of the page of `serve --explore`."""

    GET_SERVER = auto()
    COMPARE = auto()
    EXPLORE = auto()


class Workers:
    """Give each free worker to the question that has waited longest.

    A comparison reads a few rows of each server, whatever its range. So no request is expensive,
    and there is one queue for all. Only a slow disk delays requests.

    Create it before the event loop starts, and use it inside.
    """

    def __init__(self) -> None:
        self.all = [Worker(1, thread_name_prefix="srvstat-reader") for _ in range(WORKERS)]
        # The worker used last is taken first: its page cache is the fullest.
        self._idle = list(self.all)
        # An asyncio.Semaphore serves in the order of waiting. An asyncio.Queue does not: a new task
        # can take an item before the task that was woken for it runs.
        free, comparing, exploring = map(
            asyncio.Semaphore, (WORKERS, _MAX_COMPARING, _MAX_EXPLORING)
        )
        # The tightest limit first: a question that waits for it takes nothing from the others.
        self._limits = {
            Work.GET_SERVER: (free,),
            Work.COMPARE: (comparing, free),
            Work.EXPLORE: (exploring, comparing, free),
        }

    async def acquire(self, work: Work) -> Worker:
        """Wait for a free worker. The caller must release it with the same `work`."""
        async with AsyncExitStack() as acquired:
            for limit in self._limits[work]:
                await acquired.enter_async_context(limit)
            acquired.pop_all()  # the caller releases them
        return self._idle.pop()

    def release(self, worker: Worker, work: Work) -> None:
        """Make a worker available to the next question."""
        self._idle.append(worker)
        for limit in reversed(self._limits[work]):
            limit.release()


class Cache:
    """Answers from one snapshot, which stay valid because it never changes; drops the oldest."""

    def __init__(self, max_bytes: int = _MAX_CACHED_BYTES) -> None:
        self._bytes_left = max_bytes
        self._answers: dict[Hashable, EncodedJson] = {}

    def find(self, key: Hashable) -> EncodedJson | None:
        """Return the answer to a question, None if unknown. Thread-safe."""
        return self._answers.get(key)

    def keep(self, key: Hashable, answer: EncodedJson) -> None:
        """Keep an answer."""
        self._drop(key)
        self._answers[key] = answer
        self._bytes_left -= _BYTES_PER_ANSWER + len(answer.text)
        while self._bytes_left < 0:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        if dropped := self._answers.pop(key, None):
            self._bytes_left += _BYTES_PER_ANSWER + len(dropped.text)


class Generation:
    """A file that was at the path: its connection in each worker, and the answers from it.

    The answers are kept as text, so that no figure is formatted twice.
    """

    def __init__(self, files: Mapping[Worker, Snapshot]) -> None:
        self.files = files
        self.answers = Cache()
        self.questions = 0
        file = next(iter(files.values()))
        self.as_of = file.as_of
        self.root = file.root


class ServedSnapshot:
    """Answer questions from the file that is now at a path.

    Create it before the event loop starts, and use it inside. Each question is answered from one
    generation.

    Raises SnapshotError if the first file can't be used.
    """

    def __init__(self, path: str, log: Log) -> None:
        self._log = log
        self._workers = Workers()
        self._file = ReloadedFile(path, "snapshot", log.add_event, identify=identify_snapshot)
        # Each answer verifies what it reads. A new file is verified completely, because a service
        # that has a valid file need not switch to a damaged one.
        self._open_new = partial(_open_in_workers, path, self._workers.all, check_chain)
        self.current = Generation(_open_in_workers(path, self._workers.all))
        """The generation that is in use, without a check for a new file."""

    def close(self) -> None:
        """Close the files of a service that does not start."""
        _close(self.current.files)

    async def get_generation(self) -> Generation:
        """Return the generation of the file at the path, or the previous one if that is rejected.

        Use it before the next `await`: a replaced generation may be closed.
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

        A started call is completed: `remember` gets its value even if this task is cancelled, at
        its deadline or because the client has left. A retry then succeeds.

        Raises what the function raises.
        """
        generation.questions += 1
        try:
            worker = await self._workers.acquire(work)
        except BaseException:
            self._release(generation)
            raise

        def finish(answer: asyncio.Future[_T]) -> None:
            self._workers.release(worker, work)
            self._release(generation)
            if not answer.cancelled() and not answer.exception():
                remember(answer.result())

        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(worker, question, generation.files[worker])
        answer.add_done_callback(finish)
        return await asyncio.shield(answer)

    async def answer_get_server(self, generation: Generation, reference: ServerReference) -> bytes:
        """Return the answer of Get Server, and remember it.

        Raises ServerNotFoundError, SnapshotError, InternalError at the deadline.
        """

        def compute(file: Snapshot, missing: Sequence[ServerReference]) -> list[EncodedJson]:
            return [encode_once(operations.get_server(file, one).model_dump()) for one in missing]

        (answer,) = await self._answer(generation, None, [reference], compute, Work.GET_SERVER)
        return encode(answer)

    async def answer_comparison(
        self, generation: Generation, request: CompareRequest
    ) -> list[EncodedJson]:
        """Return the results of a comparison, and remember them.

        Raises ServerNotFoundError, SnapshotError, InternalError at the deadline.
        """

        def compute(file: Snapshot, missing: Sequence[ServerReference]) -> list[EncodedJson]:
            return [one.encode_once() for one in operations.compute_results(file, request, missing)]

        return await self._answer(generation, request.range, request.servers, compute, Work.COMPARE)

    async def _answer(
        self,
        generation: Generation,
        range: Range | None,
        references: Sequence[ServerReference],
        compute: Callable[[Snapshot, Sequence[ServerReference]], list[EncodedJson]],
        work: Work,
    ) -> list[EncodedJson]:
        """Return the answer about each server, and compute those that are not known."""

        def find_known() -> dict[ServerReference, EncodedJson]:
            found = {one: generation.answers.find((range, one)) for one in references}
            return {one: answer for one, answer in found.items() if answer}

        def complete(file: Snapshot) -> list[EncodedJson]:
            # Some may have been answered while this question waited.
            answers = find_known()
            missing = [one for one in references if one not in answers]
            if missing:
                answers |= zip(missing, compute(file, missing), strict=True)
            return [answers[one] for one in references]

        def remember(answers: list[EncodedJson]) -> None:
            for one, answer in zip(references, answers, strict=True):
                generation.answers.keep((range, one), answer)

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
            _close(generation.files)

    def _switch(self, files: Mapping[Worker, Snapshot]) -> None:
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


def _open_in_workers(
    path: str, workers: Sequence[Worker], check: Callable[[Snapshot], object] = lambda _: None
) -> dict[Worker, Snapshot]:
    """Check a file, and open the same one in each worker.

    Raises SnapshotError.
    """
    for _ in range(_MAX_ATTEMPTS):
        files: dict[Worker, Snapshot] = {}
        try:
            with closing(_open_completely(path)) as checked:
                check(checked)
                for worker in workers:
                    files[worker] = worker.submit(_open_completely, path).result()
                if all(file.file_row == checked.file_row for file in files.values()):
                    return files
        except BaseException:
            _close(files)
            raise
        _close(files)
    raise SnapshotError(f"{path}: was replaced each time it was opened; try again")


def _open_completely(path: str) -> Snapshot:
    """Open a snapshot with all of its files: other ones may be at their paths later.

    Raises SnapshotError.
    """
    snapshot = open_snapshot(path)
    try:
        deque(snapshot.iter_files(), 0)
    except BaseException:
        snapshot.close()
        raise
    return snapshot


def _close(files: Mapping[Worker, Snapshot]) -> None:
    for worker, file in files.items():
        worker.submit(file.close)
