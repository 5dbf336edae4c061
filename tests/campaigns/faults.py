"""A fault at every call of a build that changes a file: killed, refused, or half done."""

import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import NamedTuple

from campaigns.build_directory import MEMORY, NOTHING, OLD, SETTINGS, Files, BuildDirectory, Setting
from campaigns.campaign import Campaign, Result
from campaigns.faultfs import (
    NEEDS,
    CHANGE_FAULTS,
    ProcessResult,
    Fault,
    Kind,
    run_preloaded,
    run_with_fault,
)

KILLED = -9
OUTPUT_ERROR = 4

FEW = 300
"""Observations of the small build, all of whose calls are tried."""

MANY = 20_000
"""Observations of the build from whose calls more cases are drawn."""

CALLS_BY_KIND = {Kind.TORN: "write", Kind.SHORT: "write", Kind.FSYNC_ON: "sync", Kind.LOST: "pwrite"}
"""The names of the calls that alone can have some kinds of fault."""


class Case(NamedTuple):
    """One build with one fault."""

    observations: int
    setting: Setting
    fault: Fault


def run(seed: int, count: int) -> Result:
    """Try every call of a small build in every way, however many cases are asked for.

    Those beyond are drawn from the calls of a larger build.
    """
    code = "import sys; from campaigns import faults; faults.report(*map(int, sys.argv[1:]))"
    told = json.loads(run_preloaded(code, str(seed), str(count)))
    return Result(told["cases"], told["counts"], tuple(told["failures"]))


def report(seed: int, count: int) -> None:
    """Run the campaign, in a process with the library of faults, and print the result as JSON."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        places = {number: BuildDirectory(root, number) for number in (FEW, MANY)}
        for case in _cases(places, random.Random(seed), count):
            outcome, broken = _run_case(places[case.observations], case)
            counts[outcome] += 1
            failures += [f"{case}: {why}" for why in broken]
    print(json.dumps(asdict(Result(counts.total(), dict(counts), tuple(failures)))))


def _cases(places: dict[int, BuildDirectory], draw: random.Random, count: int) -> Iterator[Case]:
    faults = {
        (number, setting): _faults(place, setting)
        for (number, place), setting in product(places.items(), SETTINGS)
    }
    small = [Case(FEW, setting, fault) for setting in SETTINGS for fault in faults[FEW, setting]]
    yield from small
    for _ in range(count - len(small)):
        setting = draw.choice(SETTINGS)
        yield Case(MANY, setting, draw.choice(faults[MANY, setting]))


def _faults(place: BuildDirectory, setting: Setting) -> list[Fault]:
    """Return every call of a build with each kind of fault that it can have."""
    place.reset(is_old=setting.is_old)
    calls = _run(place, Fault(), *setting.options).calls
    return [
        Fault(kind, at)
        for kind in CHANGE_FAULTS
        for at, call in enumerate(calls, 1)
        if re.search(CALLS_BY_KIND.get(kind, ""), call.name)
    ]


def _run(place: BuildDirectory, fault: Fault, *options: str) -> ProcessResult:
    return run_with_fault(fault, place.directory, place.command(*options))


def _run_case(place: BuildDirectory, case: Case) -> tuple[str, list[str]]:
    """Run a case and the build after it; return how it ended and what of the promise it broke."""
    before = OLD if case.setting.is_old else NOTHING
    place.reset(is_old=case.setting.is_old)
    result = _run(place, case.fault, *case.setting.options)
    after = place.files()
    broken = [
        *place.broken(before),
        *_check_exit(result, after, place.new),
        *_check_leftovers(result, place),
    ]
    if place.leftovers():  # otherwise the next build begins as this one did
        broken += _check_next_build(place)
    how = {0: "built", KILLED: "killed"}.get(result.exit_code, "refused")
    what = "new" if after.snapshot == place.new.snapshot else "as before"
    return f"{how}, the snapshot {what}", broken


def _check_exit(result: ProcessResult, after: Files, new: Files) -> Iterator[str]:
    if result.exit_code == 0 and after != new:
        yield "exit code 0 without the new files"
    if result.exit_code not in {0, KILLED, OUTPUT_ERROR}:
        yield f"exit code {ended.exit_code}: {ended.stderr}"
    # A write that was lost is found or, where a later one goes to the same place, does not matter.
    outcomes = {call.outcome for call in result.calls if call.name != "unlink"}
    is_told = result.exit_code == OUTPUT_ERROR
    if is_told != ("failed" in outcomes) and "lost" not in outcomes:
        yield f"exit code {ended.exit_code} after calls {outcomes}: {ended.stderr}"
    if result.exit_code == OUTPUT_ERROR and not re.fullmatch("error: .+\n", result.stderr):
        yield f"not one line: {ended.stderr}"


def _check_leftovers(result: ProcessResult, place: BuildDirectory) -> Iterator[str]:
    """Find drafts that are left though nothing kept the build from removing them."""
    failed = {
        os.path.basename(call.path)
        for call in result.calls
        if call.name == "unlink" and call.outcome == "failed"
    }
    if result.exit_code != KILLED:
        yield from (f"left: {name}" for name in place.leftovers() - failed)


def _check_next_build(place: BuildDirectory) -> Iterator[str]:
    result = _run(place, Fault(), "--overwrite")
    if result.exit_code or place.files() != place.new or place.leftovers():
        yield f"the next build: {ended.exit_code}, {ended.stderr}, left: {place.others()}"


CAMPAIGN = Campaign(
    name="faults",
    promise="whatever call fails, both files are the old or the new ones, whole; exit code 0 is for"
    " the new ones; and the next build leaves nothing else",
    run=run,
    short=500,
    long=2_000,
    needs=NEEDS,
)
