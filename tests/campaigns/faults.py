"""Inject a fault at every call of a command that changes a file: build, update, bundle, export.

A fault is a kill, an error, or a write of a part.
"""

import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from campaigns.build_directory import (
    BUNDLE_SETTINGS,
    EXPORT_SETTINGS,
    NOTHING,
    SETTINGS,
    UPDATE_SETTINGS,
    BuildDirectory,
    BundleDirectory,
    ExportDirectory,
    Files,
    Setting,
    UpdateDirectory,
)
from campaigns.campaign import MEMORY, Campaign, Result
from campaigns.faultfs import (
    FAULTS,
    NEEDS,
    Fault,
    Kind,
    ProcessResult,
    run_preloaded,
    run_with_fault,
)

KILLED = -9
OUTPUT_ERROR = 4

FEW = 300
"""Number of observations of the build."""

CALLS_BY_KIND = {
    Kind.TORN: "write",
    Kind.SHORT: "write",
    Kind.FSYNC_ON: "sync",
    Kind.LOST: "pwrite",
}
"""Patterns of the calls that can have a fault; other kinds of faults suit all calls."""


class Case(NamedTuple):
    """One build with one fault."""

    setting: Setting
    fault: Fault


COMMANDS: Mapping[str, tuple[type[BuildDirectory], Sequence[Setting]]] = {
    "build": (BuildDirectory, SETTINGS),
    "update": (UpdateDirectory, UPDATE_SETTINGS),
    "bundle": (BundleDirectory, BUNDLE_SETTINGS),
    "export": (ExportDirectory, EXPORT_SETTINGS),
}
"""The directory to run a command in, and how it can start."""


def run(command: str, seed: int, count: int) -> Result:
    """Try some faults at every call of a build or an update, or all if `count` is large enough."""
    code = "import sys; from campaigns import faults; faults.report(*sys.argv[1:])"
    result = json.loads(run_preloaded(code, command, str(seed), str(count)))
    return Result(result["cases"], result["counts"], tuple(result["failures"]))


def report(command: str, seed: str, count: str) -> None:
    """Run the campaign in a process with the library preloaded, and print the result as JSON."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        for directory, case in _draw_cases(root, command, random.Random(int(seed)), int(count)):
            outcome, problems = _run_case(directory, case)
            counts[outcome] += 1
            failures += [f"{case}: {why}" for why in problems]
    print(json.dumps(asdict(Result(counts.total(), dict(counts), tuple(failures)))))


def _draw_cases(
    root: str, command: str, rng: random.Random, count: int
) -> Iterator[tuple[BuildDirectory, Case]]:
    """Yield cases, each with the directory to build in."""
    make, settings = COMMANDS[command]
    directory = make(root, FEW)
    cases = [
        Case(setting, fault) for setting in settings for fault in _list_faults(directory, setting)
    ]
    yield from ((directory, case) for case in rng.sample(cases, min(count, len(cases))))


def _list_faults(directory: BuildDirectory, setting: Setting) -> list[Fault]:
    """Return every possible fault at every call of a build."""
    directory.reset(is_old=setting.is_old)
    calls = _run_build(directory, Fault(), *setting.options).calls
    return [
        Fault(kind, at)
        for kind in FAULTS
        for at, call in enumerate(calls, 1)
        if re.search(CALLS_BY_KIND.get(kind, ""), call.name)
    ]


def _run_build(directory: BuildDirectory, fault: Fault, *options: str) -> ProcessResult:
    return run_with_fault(fault, directory.path, directory.build_command(*options))


def _run_case(directory: BuildDirectory, case: Case) -> tuple[str, list[str]]:
    """Run a case and another build after it; return the outcome and the problems."""
    before = directory.old if case.setting.is_old else NOTHING
    directory.reset(is_old=case.setting.is_old)
    result = _run_build(directory, case.fault, *case.setting.options)
    if not _has_suitable_loss(result):
        return "at a call of another kind", []
    after = directory.read_files()
    problems = [
        *directory.check_files(before),
        *_check_exit(result, after, directory.new),
        *_check_leftovers(result, directory),
    ]
    if directory.list_leftovers():  # without leftovers the next build starts as this one did
        problems += _check_next_build(directory)
    how = {0: "built", KILLED: "killed"}.get(result.exit_code, "refused")
    what = "new" if after.snapshot == directory.new.snapshot else "unchanged"
    return f"{how} (snapshot {what})", problems


def _has_suitable_loss(result: ProcessResult) -> bool:
    """Return whether a lost write was one that its kind of fault is for.

    An update copies the file in a thread, so its calls are not always in the same order.
    """
    lost = [call.name for call in result.calls if call.outcome == "lost"]
    return all(re.search(CALLS_BY_KIND[Kind.LOST], name) for name in lost)


def _check_exit(result: ProcessResult, after: Files, new: Files) -> Iterator[str]:
    if result.exit_code == 0 and after != new:
        yield "exit code 0 without the new files"
    if result.exit_code not in {0, KILLED, OUTPUT_ERROR}:
        yield f"exit code {result.exit_code}: {result.stderr}"
    # A lost write is either detected or overwritten by a later write to the same place.
    # A leftover is no error, and what the system can't copy is read and written.
    harmless = {("failed", "unlink"), ("failed", "copy_by_pwrite")}
    outcomes = {call.outcome for call in result.calls if call[:2] not in harmless}
    is_reported = result.exit_code == OUTPUT_ERROR
    if is_reported != ("failed" in outcomes) and "lost" not in outcomes:
        yield f"exit code {result.exit_code} after calls {outcomes}: {result.stderr}"
    if result.exit_code == OUTPUT_ERROR and not re.fullmatch("error: .+\n", result.stderr):
        yield f"not one line: {result.stderr}"


def _check_leftovers(result: ProcessResult, directory: BuildDirectory) -> Iterator[str]:
    """Yield drafts that the build could have removed but did not."""
    failed = {
        os.path.basename(call.path)
        for call in result.calls
        if call.name == "unlink" and call.outcome == "failed"
    }
    if result.exit_code != KILLED:
        yield from (f"left: {name}" for name in directory.list_leftovers() - failed)


def _check_next_build(directory: BuildDirectory) -> Iterator[str]:
    result = run_with_fault(Fault(), directory.path, directory.build_last_command())
    left = directory.list_leftovers()
    if result.exit_code or directory.read_files() != directory.new or left:
        yield f"the next build: {result.exit_code}, {result.stderr}, left: {left}"


_PROMISE = (
    "if any call fails, all files are either the old or the new ones, complete; exit code 0 means"
    " the new ones; the next {} removes all leftovers"
)


def _define_campaign(name: str, command: str, short: int) -> Campaign:
    promise = _PROMISE.format(command)
    return Campaign(name, promise, partial(run, command), short=short, long=2_000, needs=NEEDS)


BUILDS = _define_campaign("faults", "build", 40)
UPDATES = _define_campaign("updates", "update", 20)
BUNDLES = _define_campaign("bundles", "bundle", 20)
EXPORTS = _define_campaign("exports", "export", 60)
