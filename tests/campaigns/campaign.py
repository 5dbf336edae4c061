"""A campaign: many cases drawn from a seed that test one promise.

The text of a failure says how to run its case again.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from random import Random

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - only as a parent of temporary directories
"""A file system in memory, if there is one: campaigns do not test the disk."""

MAX_FAILURES = 20
_PROCESSES = 2
_MIN_BLOCKS_FOR_PROCESSES = 8


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a campaign; `counts` maps each outcome to its number of cases."""

    cases: int
    counts: Mapping[str, int]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign and the number of cases in its short and its long form.

    `run` takes the seed and the number of cases. `needs` names required programs.
    """

    name: str
    promise: str
    run: Callable[[int, int], Result]
    short: int
    long: int
    unit: str = "cases"
    needs: tuple[str, ...] = ()

    def list_missing_programs(self) -> list[str]:
        """Return the required programs that are not installed."""
        return [program for program in self.needs if not shutil.which(program)]


Block = Callable[[Random, int], Result]
"""Runs a number of cases drawn from a random generator."""


def run_in_blocks(block: Block, seed: int, count: int, size: int) -> Result:
    """Run `count` cases in blocks of `size`; they do not depend on the number of processes."""
    sizes = [min(size, count - start) for start in range(0, count, size)]
    seeds = [f"{seed} {number}" for number in range(len(sizes))]
    if len(sizes) < _MIN_BLOCKS_FOR_PROCESSES:
        return _add_results(map(_run_block, repeat(block), seeds, sizes))
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as processes:
        return _add_results(processes.map(_run_block, repeat(block), seeds, sizes))


def _run_block(block: Block, seed: str, size: int) -> Result:
    return block(Random(seed), size)


def _add_results(results: Iterable[Result]) -> Result:
    parts = list(results)
    counts = Counter[str]()
    for part in parts:
        counts.update(part.counts)
    failures = tuple(failure for part in parts for failure in part.failures)
    return Result(sum(part.cases for part in parts), counts, failures)
