"""Real builds killed or interrupted at random moments, from before the first line to the last."""

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

from campaigns.build_directory import NOTHING, OLD, BuildDirectory
from campaigns.campaign import Campaign, Result
from srvstat.cli.main import main
from support.signals import heard_signals

MANY = 60_000
"""Observations of the build that is killed: enough for it to take longer than it takes to start."""

FEW = 10
"""Observations of the build after it, which has only to begin to remove what was left."""

EARLY = 0.06
"""Seconds in which an interpreter starts and our first lines run."""

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

START_UP_ERROR = re.compile("^(Fatal Python error: init_|Could not import runpy module)")
"""What an interpreter says that was interrupted before it could run anything."""

SRVSTAT_FRAME = re.compile(r"srvstat/(?!__init__|__main__|cli/(__init__|interruptions))\S+, line ")
"""A line of a traceback that names what is imported once the signals are taken over."""


ROWS_WARNING = re.compile("^warning: [0-9,]+ of [0-9,]+ rows not kept: .+\n")


class Case(NamedTuple):
    """A signal, when it is sent, and whether there are old files.

    The moment is a part of the time a build takes, or before it has really begun, in seconds.
    """

    number: signal.Signals
    part: float
    is_old: bool
    is_early: bool = False


class ProcessResult(NamedTuple):
    """What became of a process; ended by a signal, its exit code is negative."""

    exit_code: int
    stderr: str


class SignaledBuilds:
    """Builds that are sent a signal each, and the build that follows each of them."""

    def __init__(self, root: str) -> None:
        self._place, self._following = BuildDirectory(root, MANY), BuildDirectory(root, FEW)
        # How long a build takes, as the latest one that nothing stopped has shown.
        self._seconds = 10.0
        self.run_case(Case(signal.SIGKILL, 1, is_old=False))

    def run_case(self, case: Case) -> tuple[str, list[str]]:
        """Run a case and the build after it; return how it ended and what it broke."""
        place = self._place
        before = OLD if case.is_old else NOTHING
        place.reset(is_old=case.is_old)
        result = self._run_build(case)
        is_new = place.files() == place.new
        broken = [
            *place.broken(before),
            *_check_exit(case, result, is_new=is_new),
            *_check_leftovers(case, place),
            *_check_next_build(place, self._following),
        ]
        return _describe_outcome(case, result, is_new=is_new), broken

    def _run_build(self, case: Case) -> ProcessResult:
        command = [sys.executable, "-m", "srvstat", *self._place.command("--overwrite")]
        after = EARLY if case.is_early else self._seconds
        started = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            try:
                process.wait(case.part * after)
                self._seconds = time.monotonic() - started
            except subprocess.TimeoutExpired:
                process.send_signal(case.number)
            _, stderr = process.communicate()
        return ProcessResult(process.returncode, stderr.decode())


def kill(seed: int, count: int) -> Result:
    """Kill builds outright."""
    return _run(seed, count, _draw_kill)


def interrupt(seed: int, count: int) -> Result:
    """Interrupt builds in each way, half of them by ^C while they start."""
    return _run(seed, count, _draw_interruption)


def _draw_kill(draw: random.Random) -> Case:
    return Case(signal.SIGKILL, draw.random(), is_old=draw.random() < 1 / 2)


def _draw_interruption(draw: random.Random) -> Case:
    is_old, is_early = draw.random() < 1 / 2, draw.random() < 1 / 2
    number = signal.SIGINT if is_early else draw.choice(STOPPING)
    return Case(number, draw.random(), is_old=is_old, is_early=is_early)


def _run(seed: int, count: int, drawn: Callable[[random.Random], Case]) -> Result:
    counts: Counter[str] = Counter()
    failures: list[str] = []
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as root, heard_signals():
        disturbance = SignaledBuilds(root)
        for _ in range(count):
            case = drawn(draw)
            outcome, broken = disturbance.run_case(case)
            counts[outcome] += 1
            failures += [f"{case}: {why}" for why in broken]
    return Result(count, dict(counts), tuple(failures))


def _check_exit(case: Case, result: ProcessResult, *, is_new: bool) -> Iterator[str]:
    if result.exit_code == 0 and not is_new:
        yield "exit code 0 without the new files"
    if _ended_during_start_up(case, result):
        return
    stopped = -signal.SIGKILL if case.number is signal.SIGKILL else 128 + case.number
    # A build may be complete, and have said what it did not keep, when the signal comes.
    if result.exit_code not in {0, stopped} or ROWS_WARNING.sub("", result.stderr, count=1):
        yield f"exit code {ended.exit_code}: {ended.stderr}"


def _check_leftovers(case: Case, place: BuildDirectory) -> Iterator[str]:
    """Find drafts that are left though the build had the time to remove them."""
    if case.number is not signal.SIGKILL and place.leftovers():
        yield f"left: {place.others()}"


def _ended_during_start_up(case: Case, result: ProcessResult) -> bool:
    """Say whether the interpreter ended, in its own way, before our first lines had run."""
    if case.number is signal.SIGKILL:
        return False
    is_pythons = result.exit_code == -case.number or START_UP_ERROR.search(result.stderr)
    return bool(is_pythons) and not SRVSTAT_FRAME.search(result.stderr)


def _describe_outcome(case: Case, result: ProcessResult, *, is_new: bool) -> str:
    if result.exit_code == 0:
        return "done before that"
    if _ended_during_start_up(case, result):
        return "ended by Python before the first line"
    how = "killed" if case.number is signal.SIGKILL else "interrupted"
    return f"{how}, the files {'new' if is_new else 'as before'}"


def _check_next_build(place: BuildDirectory, following: BuildDirectory) -> Iterator[str]:
    exit_code = main(following.command("--overwrite", into=place.directory))
    if exit_code or place.files() != following.new or place.leftovers():
        yield f"the next build: {exit_code}, left: {place.others()}"


KILLS = Campaign(
    name="kills",
    promise="a build killed at any moment leaves the old files or the new ones, whole, and the next"
    " leaves nothing else",
    run=kill,
    short=60,
    long=2_000,
    unit="builds",
)
INTERRUPTIONS = Campaign(
    name="interruptions",
    promise="an interrupted build ends without a traceback and leaves the old files or the new"
    " ones, whole, and nothing else",
    run=interrupt,
    short=50,
    long=400,
    unit="builds",
)
