"""Check every engine and every command, then time them in turn.

The load of a machine varies, so tools are timed in alternation: a round goes through all ranges
and, for each, through all tools, and starts with a different tool each time.
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
from benchmarks.measure import Run, print_progress, run, time_calls
from benchmarks.questions import RANGES, check_answers, compute_answers, draw_requests
from srvstat.contract.ranges import Range

_CHECKED = 10
"""Number of requests per range to check an engine with; a command, which is slower, gets one."""

_MAX_CALLS = 200


class Medians(NamedTuple):
    """Medians of all runs of a command."""

    seconds: float
    peak_mib: float


Latencies = dict[Range, float]
"""Median seconds from request to answer."""


def check_engines(engines: Sequence[Engine]) -> None:
    """Compare every engine's answers with the correct ones.

    Raises WrongAnswerError.
    """
    for range in RANGES:
        for engine in engines:
            for request in draw_requests("check", engine.files, range, _CHECKED):
                answers = engine.read(engine.ask(request), request)
                check_answers(engine.name, request, answers, compute_answers(request))


def check_commands(commands: Sequence[Command], files: FleetFiles) -> None:
    """Compare every command's answers with the correct ones; this also warms them up.

    Raises WrongAnswerError.
    """
    for range in RANGES:
        for request in draw_requests("check", files, range, 1):
            for command in commands:
                ran = run(command.line(request))
                if command.read:
                    answers = command.read(ran.output, request)
                    check_answers(command.name, request, answers, compute_answers(request))


def time_engines(
    engines: Sequence[Engine], *, rounds: int, seconds: float
) -> dict[tuple[str, int], Latencies]:
    """Return the latencies of every engine, by name and size of the fleet.

    Spends about `seconds` on each engine and range, with at most _MAX_CALLS calls and at least one
    call per round.
    """
    # Keeps the garbage collector from scanning existing objects in the middle of a call.
    gc.collect()
    gc.freeze()
    calls = {
        (engine, range): _count_calls(engine, range, seconds, rounds)
        for engine in engines
        for range in RANGES
    }
    times: dict[tuple[Engine, Range], list[float]] = defaultdict(list)
    for number, turn in enumerate(rotate_order(engines, rounds), 1):
        print_progress(f"timing {len(engines)} engines, round {number} of {rounds}")
        # During a long run the system drops cached files that were not read for a while.
        for files in {engine.files for engine in engines}:
            files.warm_cache()
        for range in RANGES:
            for engine in turn:
                requests = draw_requests(
                    f"round {number}", engine.files, range, calls[engine, range]
                )
                times[engine, range] += time_calls(engine.ask, requests)
    gc.unfreeze()
    return {
        (engine.name, engine.files.size): {range: median(times[engine, range]) for range in RANGES}
        for engine in engines
    }


def time_commands(
    commands: Sequence[Command], files: FleetFiles, *, rounds: int
) -> dict[str, dict[Range, Medians]]:
    """Return the latencies of every command, by name."""
    runs: dict[tuple[str, Range], list[Run]] = defaultdict(list)
    for number, turn in enumerate(rotate_order(commands, rounds), 1):
        print_progress(f"timing {len(commands)} commands, round {number} of {rounds}")
        for range in RANGES:
            (request,) = draw_requests(f"round {number}", files, range, 1)
            for command in turn:
                runs[command.name, range].append(run(command.line(request)))
    return {
        command.name: {range: _take_medians(runs[command.name, range]) for range in RANGES}
        for command in commands
    }


def _count_calls(engine: Engine, range: Range, seconds: float, rounds: int) -> int:
    """Return the number of calls per round, from the time of the second of two calls."""
    *_, taken = time_calls(engine.ask, draw_requests("warm", engine.files, range, 2))
    return ceil(min(_MAX_CALLS, seconds / taken) / rounds)


def _take_medians(runs: Sequence[Run]) -> Medians:
    return Medians(median(ran.seconds for ran in runs), median(ran.peak_mib for ran in runs))


_Some = TypeVar("_Some")


def rotate_order(some: Sequence[_Some], rounds: int) -> Iterator[Sequence[_Some]]:
    """Yield the items once per round, each time rotated by one."""
    for number in range(rounds):
        first = number % len(some)
        yield [*some[first:], *some[:first]]
