"""Run a campaign in blocks, each with its own seed, so that processes can share the work."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from random import Random

from campaigns.campaign import Result

Block = Callable[[Random, int], Result]
"""Runs a number of cases drawn from a random generator."""

PROCESSES = 2
MAX_FAILURES = 20
"""Number of failures after which a block stops."""
_MIN_BLOCKS_FOR_PROCESSES = 8


def run_in_blocks(block: Block, seed: int, count: int, size: int) -> Result:
    """Run `count` cases in blocks of `size`; they do not depend on the number of processes."""
    sizes = [min(size, count - start) for start in range(0, count, size)]
    seeds = [f"{seed} {number}" for number in range(len(sizes))]
    if len(sizes) < _MIN_BLOCKS_FOR_PROCESSES:
        return add_results(map(_run_block, repeat(block), seeds, sizes))
    with ProcessPoolExecutor(PROCESSES) as processes:
        return add_results(processes.map(_run_block, repeat(block), seeds, sizes))


def _run_block(block: Block, seed: str, size: int) -> Result:
    return block(Random(seed), size)


def add_results(results: Iterable[Result]) -> Result:
    """Add the results of the parts of a campaign."""
    parts = list(results)
    counts = Counter[str]()
    for part in parts:
        counts.update(part.counts)
    failures = tuple(failure for part in parts for failure in part.failures)
    return Result(sum(part.cases for part in parts), counts, failures)
