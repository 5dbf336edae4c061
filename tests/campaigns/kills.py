"""Kill or interrupt real builds at random moments, from the start of Python to the end."""

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from campaigns.build_directory import NOTHING, OLD, BuildDirectory, Files
from campaigns.campaign import Campaign, Result
from srvstat.cli.app import main
from support.process import restore_signals

MANY = 60_000
"""Number of observations of the build to kill, which takes longer than Python's start-up."""

FEW = 10
"""Number of observations of the next build, which only has to remove leftovers."""

EARLY = 0.06
"""Seconds in which Python starts and runs the first lines of srvstat."""

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

START_UP_ERROR = re.compile("^(Fatal Python error: init_|Could not import runpy module)")
"""The message of an interpreter that was interrupted during its start-up."""

SRVSTAT_FRAME = re.compile(r"src/srvstat/(?!__init__|__main__|cli/(__init__|process))\S+, line ")
"""A line of a traceback in code that runs after srvstat has installed its signal handlers.

The repository may be in a directory named srvstat, with the interpreter and its libraries.
"""

ROWS_WARNING = re.compile("^warning: [0-9,]+ of [0-9,]+ rows not kept: .+\n")


class Case(NamedTuple):
    """A signal, when to send it, and whether there are old files.

    `part` is a fraction of the duration of a build; with `is_early`, of the start-up of Python.
    """

    number: signal.Signals
    part: float
    is_old: bool
    is_early: bool = False


class ProcessResult(NamedTuple):
    """The result of a process; the exit code is negative if a signal ended it."""

    exit_code: int
    stderr: str
    paused: Files | None = None
    """What others could read while the process was stopped."""


class SignaledBuilds:
    """Run builds, send each a signal, and run another build after each."""

    def __init__(self, root: str) -> None:
        self._directory, self._following = BuildDirectory(root, MANY), BuildDirectory(root, FEW)
        self._seconds = 10.0  # duration of the latest build that no signal stopped
        self.run_case(Case(signal.SIGKILL, 1, is_old=False))

    def run_case(self, case: Case) -> tuple[str, list[str]]:
        """Run a case and another build after it; return the outcome and the problems."""
        directory = self._directory
        before = OLD if case.is_old else NOTHING
        directory.reset(is_old=case.is_old)
        result = self._run_build(case)
        is_new = directory.read_files() == directory.new
        problems = [
            *directory.check_files(before),
            *_check_exit(case, result, is_new=is_new),
            *_check_pause(result, before, directory.new),
            *_check_leftovers(case, directory),
            *_check_next_build(directory, self._following),
        ]
        return _describe_outcome(case, result, is_new=is_new), problems

    def _run_build(self, case: Case) -> ProcessResult:
        command = [sys.executable, "-m", "srvstat", *self._directory.build_command("--overwrite")]
        after = EARLY if case.is_early else self._seconds
        paused = None
        started = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            try:
                process.wait(case.part * after)
                self._seconds = time.monotonic() - started
            except subprocess.TimeoutExpired:
                process.send_signal(case.number)
                if case.number is signal.SIGSTOP:
                    paused = self._directory.read_files()
                    process.send_signal(signal.SIGCONT)
            _, stderr = process.communicate()
        return ProcessResult(process.returncode, stderr.decode(), paused)


def kill(seed: int, count: int) -> Result:
    """Kill builds with SIGKILL."""
    return _run_campaign(seed, count, _draw_kill)


def interrupt(seed: int, count: int) -> Result:
    """Interrupt builds with each signal, half of them by ^C during start-up."""
    return _run_campaign(seed, count, _draw_interruption)


def pause(seed: int, count: int) -> Result:
    """Stop builds, look at their files, and continue them."""
    return _run_campaign(seed, count, lambda rng: _draw_kill(rng)._replace(number=signal.SIGSTOP))


def _draw_kill(rng: random.Random) -> Case:
    return Case(signal.SIGKILL, rng.random(), is_old=rng.random() < 1 / 2)


def _draw_interruption(rng: random.Random) -> Case:
    is_old, is_early = rng.random() < 1 / 2, rng.random() < 1 / 2
    number = signal.SIGINT if is_early else rng.choice(STOPPING)
    return Case(number, rng.random(), is_old=is_old, is_early=is_early)


def _run_campaign(seed: int, count: int, draw_case: Callable[[random.Random], Case]) -> Result:
    counts: Counter[str] = Counter()
    failures: list[str] = []
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as root, restore_signals():
        builds = SignaledBuilds(root)
        for _ in range(count):
            case = draw_case(rng)
            outcome, problems = builds.run_case(case)
            counts[outcome] += 1
            failures += [f"{case}: {why}" for why in problems]
    return Result(count, dict(counts), tuple(failures))


def _check_exit(case: Case, result: ProcessResult, *, is_new: bool) -> Iterator[str]:
    if result.exit_code == 0 and not is_new:
        yield "exit code 0 without the new files"
    if _has_ended_during_start_up(case, result):
        return
    stopped = {signal.SIGKILL: -signal.SIGKILL, signal.SIGSTOP: 0}.get(
        case.number, 128 + case.number
    )
    # When the signal arrives, the build may be complete and have printed its warning.
    if result.exit_code not in {0, stopped} or ROWS_WARNING.sub("", result.stderr, count=1):
        yield f"exit code {result.exit_code}: {result.stderr}"


def _check_pause(result: ProcessResult, before: Files, new: Files) -> Iterator[str]:
    for name, *allowed, seen in zip(Files._fields, before, new, result.paused or new, strict=True):
        if seen not in allowed:
            yield f"{name} was neither the old nor the new one while the build was stopped"


def _check_leftovers(case: Case, directory: BuildDirectory) -> Iterator[str]:
    """Yield drafts that the build could have removed but did not."""
    if case.number is not signal.SIGKILL and directory.list_leftovers():
        yield f"left: {directory.list_leftovers()}"


def _has_ended_during_start_up(case: Case, result: ProcessResult) -> bool:
    """Return whether Python ended before the first lines of srvstat had run."""
    if case.number is signal.SIGKILL:
        return False
    is_pythons = result.exit_code == -case.number or START_UP_ERROR.search(result.stderr)
    return bool(is_pythons) and not SRVSTAT_FRAME.search(result.stderr)


def _describe_outcome(case: Case, result: ProcessResult, *, is_new: bool) -> str:
    if result.paused:
        return "stopped and continued"
    if result.exit_code == 0:
        return "finished before the signal"
    if _has_ended_during_start_up(case, result):
        return "interrupted before srvstat started"
    how = "killed" if case.number is signal.SIGKILL else "interrupted"
    return f"{how} (files {'new' if is_new else 'unchanged'})"


def _check_next_build(directory: BuildDirectory, following: BuildDirectory) -> Iterator[str]:
    exit_code = main(following.build_command("--overwrite", into=directory.path))
    if exit_code or directory.read_files() != following.new or directory.list_leftovers():
        yield f"the next build: {exit_code}, left: {directory.list_leftovers()}"


KILLS = Campaign(
    name="kills",
    promise="a build killed at any moment leaves either the old or the new files, complete, and the"
    " next build removes all leftovers",
    run=kill,
    short=6,
    long=200,
    unit="builds",
)
INTERRUPTIONS = Campaign(
    name="interruptions",
    promise="an interrupted build ends without a traceback and leaves either the old or the new"
    " files, complete, and nothing else",
    run=interrupt,
    short=5,
    long=150,
    unit="builds",
)
PAUSES = Campaign(
    name="pauses",
    promise="while a build is stopped, others read either the old or the new files, complete, and a"
    " build that continues writes the new ones",
    run=pause,
    short=4,
    long=100,
    unit="builds",
)
