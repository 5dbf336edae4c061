"""Assign questions to the threads that read the snapshot, in the order of arrival."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto

WORKERS = 4
"""Threads that read: a slow disk under one of them does not delay the others."""

_MAX_COMPARING = WORKERS - 1
"""Workers that compare or explore at the same time: one is left for Get Server."""

_MAX_EXPLORING = 1
"""Workers that explore at the same time: the others are left for the API."""

Worker = ThreadPoolExecutor
"""A thread. It has its own connection to each file, which no other thread uses."""


class Work(Enum):
    """What a worker does; `EXPLORE` is a search or a chart of the page of `serve --explore`."""

    GET_SERVER = auto()
    COMPARE = auto()
    EXPLORE = auto()


class Workers:
    """Give each free worker to the question that has waited longest.

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
        acquired = []
        try:
            for limit in self._limits[work]:
                await limit.acquire()
                acquired.append(limit)
        except BaseException:
            for limit in acquired:
                limit.release()
            raise
        return self._idle.pop()

    def release(self, worker: Worker, work: Work) -> None:
        """Make a worker available to the next question."""
        self._idle.append(worker)
        for limit in reversed(self._limits[work]):
            limit.release()
