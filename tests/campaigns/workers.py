"""Run cases of damage in separate processes.

A case that crashes or hangs its process is a failure; a new process runs the remaining cases.
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

from campaigns.build_directory import MEMORY
from campaigns.campaign import Result
from campaigns.damage_kinds import PAGE, Originals
from campaigns.small_snapshots import build_small_snapshot
from campaigns.trials import (
    CRASHED,
    NUMBER,
    OUTCOMES,
    SLOWEST,
    TALLY,
    Draw,
    Task,
    describe_case,
    run_cases,
)

PROCESSES = 2
FEW = 100
"""Up to this number of cases, one process is cheaper than two."""

MAX_CASE_SECONDS = 60
"""Seconds after which a case counts as hung."""

Build = Callable[[Path, int], Path]
"""Creates a directory, writes the snapshot of a seed in it, and returns its path."""

_CONTEXT = multiprocessing.get_context("spawn")


def run_trials(
    draw: Draw,
    seed: int,
    count: Callable[[Originals], int],
    build: Build = build_small_snapshot,
) -> Result:
    """Run cases of damage; `count` returns the number of cases for two snapshots."""
    with build_originals(build) as (originals, directory):
        cases = count(originals)
        processes = PROCESSES if cases > FEW else 1
        workers = []
        for first in range(processes):
            own = directory / f"cases-{first}"
            own.mkdir()
            numbers = range(first, cases, processes)
            failures_path = directory / f"failures-{first}"
            workers.append(_Worker(Task(draw, seed, numbers, originals, own, failures_path)))
        while running := [worker for worker in workers if worker.is_running()]:
            wait([worker.process.sentinel for worker in running], timeout=1)
        failures = [failure for worker in workers for failure in worker.read_failures()]
    counts = {
        outcome: sum(worker.board[place] for worker in workers)
        for place, outcome in enumerate(OUTCOMES, TALLY)
    }
    slowest = max(worker.board[SLOWEST] for worker in workers)
    counts["at most {} ms per case"] = round(slowest / 1000)
    return Result(cases, counts, tuple(failures))


@contextmanager
def build_originals(build: Build) -> Iterator[tuple[Originals, Path]]:
    """Build the two small snapshots; yield them and a temporary directory."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        directory = Path(name)
        small, other = (build(directory / f"built-{seed}", seed) for seed in (1, 2))
        originals = Originals(small.read_bytes(), other.read_bytes(), _find_root_page(small))
        assert len(originals.small) == len(originals.other) == originals.pages * PAGE
        assert _find_root_page(other) == originals.root_page
        yield originals, directory


def _find_root_page(path: Path) -> int:
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'snapshot'"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(query).fetchone()
    return int(page) - 1


class _Worker:
    """A process that runs cases; a new process replaces it after a crash."""

    def __init__(self, task: Task) -> None:
        self._task = task
        task.failures.touch()
        self.board: MutableSequence[int] = _CONTEXT.RawArray("q", TALLY + len(OUTCOMES))
        self._number, self._since = -1, time.monotonic()
        self.process = self._start(task.numbers)

    def is_running(self) -> bool:
        """Return whether cases remain; kill a hung process and replace a crashed one."""
        if self.process.is_alive():
            if self.board[NUMBER] != self._number:
                self._number, self._since = self.board[NUMBER], time.monotonic()
            elif time.monotonic() - self._since > MAX_CASE_SECONDS:
                self.process.kill()
            return True
        if self._remaining and self.process.exitcode:
            self._record_crash(self.process.exitcode)
            return bool(self._remaining)
        return False

    def read_failures(self) -> list[str]:
        """Return the failures that the cases wrote to the file."""
        return self._task.failures.read_text(encoding="utf-8").splitlines()

    def _start(self, numbers: range) -> SpawnProcess:
        self._remaining = numbers
        self.board[NUMBER] = self._number = -1
        self._since = time.monotonic()  # a process takes a moment to start
        task = replace(self._task, numbers=numbers)
        process = _CONTEXT.Process(target=run_cases, args=(task, self.board), daemon=True)
        process.start()
        return process

    def _record_crash(self, exit_code: int) -> None:
        """Record the case that crashed the process, and start another with the remaining cases."""
        task, number = self._task, self.board[NUMBER]
        if number < 0:
            raise RuntimeError("a worker process ended before its first case")
        self.board[TALLY + OUTCOMES.index(CRASHED)] += 1
        damage = task.draw(task.originals, task.seed, number)
        with open(task.failures, "a", encoding="utf-8") as failures:
            failures.write(
                f"{describe_case(task, number, damage)}: process ended with code {exit_code}\n"
            )
        self._remaining = self._remaining[self._remaining.index(number) + 1 :]
        if self._remaining:
            self.process = self._start(self._remaining)
