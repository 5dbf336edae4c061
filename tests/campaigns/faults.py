"""Inject a fault at every call of a command that changes a file: build, update, bundle, export.

A fault is a kill, an error, or a write of a part.
"""

import ctypes
import gc
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import IntEnum
from functools import partial
from pathlib import Path
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
from srvstat.cli.app import main
from support.process import replace_descriptor

NEEDS = ("gcc",)
_HERE = Path(__file__).parent


class Kind(IntEnum):
    """Kinds of faults, with the numbers of faultfs.c: one call fails, or all from that call on.

    TORN writes half of the bytes and kills the process. SHORT writes half and returns that number.
    LOST writes nothing and reports success. The last three refuse all threads or processes, or once
    memory.
    """

    NONE = 0
    KILL = 1
    TORN = 2
    SHORT = 3
    ENOSPC_ONCE = 4
    ENOSPC_ON = 5
    EIO_ONCE = 6
    EIO_ON = 7
    FSYNC_ON = 8
    LOST = 9
    NO_THREAD = 10
    NO_PROCESS = 11
    NO_MEMORY = 12


LIMITS = (Kind.NO_THREAD, Kind.NO_PROCESS, Kind.NO_MEMORY)
KILLING_FAULTS = (Kind.KILL, Kind.TORN, *LIMITS)
FAULTS = tuple(kind for kind in Kind if Kind.NONE < kind < Kind.NO_THREAD)


class Fault(NamedTuple):
    """A kind of fault and the number, from 1, of the call that fails."""

    kind: Kind = Kind.NONE
    at: int = 0


class Call(NamedTuple):
    """A call that changes a file.

    `outcome` is "done", "failed", "half", "lost" or "killed".
    """

    outcome: str
    name: str
    path: str


class ProcessResult(NamedTuple):
    """The result of a command; the exit code is negative if a signal killed it."""

    exit_code: int
    stderr: str
    calls: tuple[Call, ...]


def compile_library(directory: str | Path) -> str:
    """Compile the library and return its path."""
    library = f"{directory}/faultfs.so"
    source = f"{_HERE}/faultfs.c"
    compile_it = ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library]
    subprocess.run([*compile_it, "-ldl"], check=True)
    return library


def run_preloaded(code: str, *arguments: str) -> str:
    """Run Python code in a process with the library preloaded; return its output."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "LD_PRELOAD": compile_library(directory)},
            cwd=_HERE.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout


def run_with_fault(
    fault: Fault,
    directory: Path,
    arguments: Sequence[str],
    finish: Callable[[], None] = lambda: None,
) -> ProcessResult:
    """Run a command with a fault in the calls that change files in a directory, then `finish`.

    Runs it in this process, or in a fork if the fault kills the process.
    """
    run = _run_in_fork if fault.kind in KILLING_FAULTS else _run_in_process
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as calls:

        def run_armed() -> int:
            _arm(fault, directory, calls.fileno())
            try:
                exit_code = main(list(arguments))
                finish()
                return exit_code
            finally:
                _arm(Fault(), None, calls.fileno())

        exit_code = run(run_armed, stderr.fileno())
        stderr.seek(0)
        calls.seek(0)
        lines = os.fsdecode(calls.read()).splitlines()
        messages = stderr.read().decode()
    return ProcessResult(exit_code, messages, tuple(Call(*line.split(" ", 2)) for line in lines))


def _arm(fault: Fault, directory: Path | None, calls: int) -> None:
    name = os.fsencode(directory) if directory else b""
    ctypes.CDLL(None).faultfs_arm(name, int(fault.kind), fault.at, calls)


def _run_in_process(command: Callable[[], int], stderr: int) -> int:
    with replace_descriptor(2, stderr):
        return command()


def _run_in_fork(command: Callable[[], int], stderr: int) -> int:
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    gc.disable()  # A collection would copy every page that the fork shares.
    os.dup2(stderr, 2)
    try:
        os._exit(command())
    except BaseException:  # noqa: BLE001 - a fork must not return from here
        traceback.print_exc()
        os._exit(1)


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
