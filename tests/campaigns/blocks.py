"""Campaigns in blocks: each block draws its own cases, so that two processes can share them."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from random import Random

from campaigns.campaign import Result

Block = Callable[[Random, int], Result]
"""What runs a number of cases, drawn from a source of its own."""

PROCESSES = 2
MOST_FAILURES = 20
"""How many failures a block finds before it stops."""
_ENOUGH_FOR_PROCESSES = 8


def run_in_blocks(block: Block, seed: int, count: int, size: int) -> Result:
    """Run `count` cases in blocks of `size`: the same ones whatever the number of processes."""
    sizes = [min(size, count - start) for start in range(0, count, size)]
    seeds = [f"{seed} {number}" for number in range(len(sizes))]
    if len(sizes) < _ENOUGH_FOR_PROCESSES:
        return total(map(_run, repeat(block), seeds, sizes))
    with ProcessPoolExecutor(PROCESSES) as processes:
        return total(processes.map(_run, repeat(block), seeds, sizes))


def _run(block: Block, seed: str, size: int) -> Result:
    return block(Random(seed), size)


def total(results: Iterable[Result]) -> Result:
    """Add up what the parts of a campaign found."""
    parts = list(results)
    counts = Counter[str]()
    for part in parts:
        counts.update(part.counts)
    failures = tuple(failure for part in parts for failure in part.failures)
    return Result(sum(part.cases for part in parts), counts, failures)
