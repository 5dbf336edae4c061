"""Threads that read, and the order in which questions get one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

WORKERS = 4
"""Threads that read: a slow disk under one of them does not hold up the others."""

_MOST_COMPARING = WORKERS - 1
"""How many of them compare at most: one is left for Get Server."""

Worker = ThreadPoolExecutor
"""A thread. It has a connection of its own to each file, and only it uses that."""


class Workers:
    """Hand each free worker to the question that has waited longest.

    Created before the event loop, used inside it. An asyncio.Semaphore serves in the order of
    waiting. An asyncio.Queue does not: a newcomer can take the item before the waiting task that
    was woken for it runs.
    """

    def __init__(self) -> None:
        self.all = [Worker(1, thread_name_prefix="srvstat-reader") for _ in range(WORKERS)]
        # The last one that was used is taken first: it has the most in its memory.
        self._idle = list(self.all)
        self._free = asyncio.Semaphore(WORKERS)
        self._free_to_compare = asyncio.Semaphore(_MOST_COMPARING)

    async def take(self, *, is_comparison: bool) -> Worker:
        """Wait for a worker, to be given back with the same `is_comparison`."""
        if is_comparison:
            await self._free_to_compare.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            if is_comparison:
                self._free_to_compare.release()
            raise
        return self._idle.pop()

    def give_back(self, worker: Worker, *, is_comparison: bool) -> None:
        """Let the next question have a worker."""
        self._idle.append(worker)
        self._free.release()
        if is_comparison:
            self._free_to_compare.release()
