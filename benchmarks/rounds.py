"""Check every engine and every command, then time them in turn.

A machine has quiet and busy minutes. Whoever is compared is timed in the same ones: a round goes
over all ranges and, for each, over all that answer, beginning with another one each time.
"""

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import ceil
from statistics import median
from typing import NamedTuple, TypeVar

from benchmarks.commands import Command
from benchmarks.data import FleetFiles
from benchmarks.engines import Engine
from benchmarks.measure import Ran, clock, run, tell
from benchmarks.questions import RANGES, check, drawn, expected
from srvstat.contract.ranges import Range

_CHECKED = 10
"""How many requests a range an engine must answer rightly; a command, which is slower, one."""

_MOST_CALLS = 200


class Timed(NamedTuple):
    """Medians of all runs of a command."""

    seconds: float
    peak_mib: float


Latencies = dict[Range, float]
"""Median seconds from request to answer."""


def check_engines(engines: Sequence[Engine]) -> None:
    """Compare every engine's answers with the right ones.

    Raises UnequalError.
    """
    for range in RANGES:
        for engine in engines:
            for request in drawn("check", engine.files, range, _CHECKED):
                answers = engine.read(engine.ask(request), request)
                check(engine.name, request, answers, expected(request))


def check_commands(commands: Sequence[Command], files: FleetFiles) -> None:
    """Compare every command's answers with the right ones; this also warms them up.

    Raises UnequalError.
    """
    for range in RANGES:
        for request in drawn("check", files, range, 1):
            for command in commands:
                ran = run(command.line(request))
                if command.read:
                    answers = command.read(ran.output, request)
                    check(command.name, request, answers, expected(request))


def time_engines(
    engines: Sequence[Engine], *, rounds: int, seconds: float
) -> dict[tuple[str, int], Latencies]:
    """Return the latencies of every engine, by its name and the size of its fleet.

    About `seconds` are spent on each engine and range, but for those that are so fast that
    _MOST_CALLS take less, or so slow that one call a round takes more.
    """
    # What is alive now stays alive: the collector need not look through it in the middle of a call.
    gc.collect()
    gc.freeze()
    calls = {
        (engine, range): _calls(engine, range, seconds, rounds)
        for engine in engines
        for range in RANGES
    }
    times: dict[tuple[Engine, Range], list[float]] = defaultdict(list)
    for number, turn in enumerate(_turns(engines, rounds), 1):
        tell(f"timing {len(engines)} engines, round {number} of {rounds}")
        # In the course of a long run the system lets go of what was not read for a while.
        for files in {engine.files for engine in engines}:
            files.read_through()
        for range in RANGES:
            for engine in turn:
                asked = drawn(f"round {number}", engine.files, range, calls[engine, range])
                times[engine, range] += clock(engine.ask, asked)
    gc.unfreeze()
    return {
        (engine.name, engine.files.size): {range: median(times[engine, range]) for range in RANGES}
        for engine in engines
    }


def time_commands(
    commands: Sequence[Command], files: FleetFiles, *, rounds: int
) -> dict[str, dict[Range, Timed]]:
    """Return the latencies of every command by its name."""
    runs: dict[tuple[str, Range], list[Ran]] = defaultdict(list)
    for number, turn in enumerate(_turns(commands, rounds), 1):
        tell(f"timing {len(commands)} commands, round {number} of {rounds}")
        for range in RANGES:
            (request,) = drawn(f"round {number}", files, range, 1)
            for command in turn:
                runs[command.name, range].append(run(command.line(request)))
    return {
        command.name: {range: _medians(runs[command.name, range]) for range in RANGES}
        for command in commands
    }


def _calls(engine: Engine, range: Range, seconds: float, rounds: int) -> int:
    """Return how many calls a round may have, from what the second one of two takes."""
    *_, taken = clock(engine.ask, drawn("warm", engine.files, range, 2))
    return ceil(min(_MOST_CALLS, seconds / taken) / rounds)


def _medians(runs: Sequence[Ran]) -> Timed:
    return Timed(median(ran.seconds for ran in runs), median(ran.peak_mib for ran in runs))


_Some = TypeVar("_Some")


def _turns(some: Sequence[_Some], rounds: int) -> Iterator[Sequence[_Some]]:
    """Yield some things in order, once a round, beginning with another one each time."""
    for number in range(rounds):
        first = number % len(some)
        yield [*some[first:], *some[:first]]
