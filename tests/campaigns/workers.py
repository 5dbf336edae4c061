"""Try cases of damage in processes of their own.

A case that ends its process, or never ends, is told like any other, and the rest is tried by
another process.
"""

import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import closing, contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from campaigns.campaign import Result
from campaigns.damages import PAGE, Originals
from campaigns.places import MEMORY
from campaigns.small_snapshots import build_small_snapshot
from campaigns.trials import (
    CRASHED,
    NUMBER,
    OUTCOMES,
    SLOWEST,
    TALLY,
    Draw,
    Task,
    told,
    try_cases,
)

PROCESSES = 2
LONGEST_WAIT = 60
"""Seconds after which a case is taken for one without end."""

_CONTEXT = multiprocessing.get_context("spawn")


def run_trials(draw: Draw, seed: int, count: Callable[[Originals], int]) -> Result:
    """Try as many cases as `count` says of the snapshot, and return what became of them."""
    with small_snapshots() as (originals, directory):
        cases = count(originals)
        workers = []
        for first in range(min(PROCESSES, cases)):
            own = directory / f"cases-{first}"
            own.mkdir()
            numbers = range(first, cases, PROCESSES)
            told_in = directory / f"failures-{first}"
            workers.append(_Worker(Task(draw, seed, numbers, originals, own, told_in)))
        while running := [worker for worker in workers if worker.is_running()]:
            wait([worker.process.sentinel for worker in running], timeout=1)
        failures = [failure for worker in workers for failure in worker.failures()]
    counts = {
        outcome: sum(worker.board[place] for worker in workers)
        for place, outcome in enumerate(OUTCOMES, TALLY)
    }
    slowest = max(worker.board[SLOWEST] for worker in workers)
    counts["milliseconds in the slowest case"] = round(slowest / 1000)
    return Result(cases, counts, tuple(failures))


@contextmanager
def small_snapshots() -> Iterator[tuple[Originals, Path]]:
    """Build the two small snapshots, and hand out a directory to work in."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        directory = Path(name)
        small, other = (build_small_snapshot(directory / f"built-{seed}", seed) for seed in (1, 2))
        originals = Originals(small.read_bytes(), other.read_bytes(), _root_page(small))
        assert len(originals.small) == len(originals.other) == originals.pages * PAGE
        assert _root_page(other) == originals.root_page
        yield originals, directory


def _root_page(path: Path) -> int:
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'snapshot'"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(query).fetchone()
    return int(page) - 1


class _Worker:
    """A process that tries cases, and the next one where a case has ended it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        task.failures.touch()
        self.board: MutableSequence[int] = _CONTEXT.RawArray("q", TALLY + len(OUTCOMES))
        self._number, self._since = -1, time.monotonic()
        self.process = self._started(task.numbers)

    def is_running(self) -> bool:
        """Say whether cases are left; one without end is ended, and one that ended badly told."""
        if self.process.is_alive():
            if self.board[NUMBER] != self._number:
                self._number, self._since = self.board[NUMBER], time.monotonic()
            elif time.monotonic() - self._since > LONGEST_WAIT:
                self.process.kill()
            return True
        if self._left and self.process.exitcode:
            self._tell_and_go_on(self.process.exitcode)
            return bool(self._left)
        return False

    def failures(self) -> list[str]:
        """Return what broke the promise."""
        return self._task.failures.read_text(encoding="utf-8").splitlines()

    def _started(self, numbers: range) -> SpawnProcess:
        self._left = numbers
        self.board[NUMBER] = self._number = -1
        self._since = time.monotonic()  # a process takes a moment to begin
        task = replace(self._task, numbers=numbers)
        process = _CONTEXT.Process(target=try_cases, args=(task, self.board), daemon=True)
        process.start()
        return process

    def _tell_and_go_on(self, exit_code: int) -> None:
        """Tell of the case that ended the process, and start another one with the rest."""
        task, number = self._task, self.board[NUMBER]
        if number < 0:
            raise RuntimeError("a process ended before its first case")
        self.board[TALLY + OUTCOMES.index(CRASHED)] += 1
        damage = task.draw(task.originals, task.seed, number)
        with open(task.failures, "a", encoding="utf-8") as failures:
            failures.write(f"{told(task, number, damage)}: ended its process with {exit_code}\n")
        self._left = self._left[self._left.index(number) + 1 :]
        if self._left:
            self.process = self._started(self._left)
