"""Assign questions to the threads that read the snapshot, in the order of arrival."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

WORKERS = 4
"""Threads that read: a slow disk under one of them does not delay the others."""

_MAX_COMPARING = WORKERS - 1
"""Workers that compare at the same time: one is left for Get Server."""

Worker = ThreadPoolExecutor
"""A thread. It has its own connection to each file, which no other thread uses."""


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
        self._free = asyncio.Semaphore(WORKERS)
        self._free_to_compare = asyncio.Semaphore(_MAX_COMPARING)

    async def acquire(self, *, is_comparison: bool) -> Worker:
        """Wait for a free worker. The caller must release it with the same `is_comparison`."""
        if is_comparison:
            await self._free_to_compare.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            if is_comparison:
                self._free_to_compare.release()
            raise
        return self._idle.pop()

    def release(self, worker: Worker, *, is_comparison: bool) -> None:
        """Make a worker available to the next question."""
        self._idle.append(worker)
        self._free.release()
        if is_comparison:
            self._free_to_compare.release()
