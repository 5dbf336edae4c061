"""Run commands on a snapshot, and measure the time and memory of each.

Each set of commands runs in a fork of one process that has already imported srvstat, so that a
set does not include the start of Python. In a fork, the peak of memory only grows, so the value
after a command is the peak of that command and those before it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

# The first set runs in the process itself, so that it imports all modules.
_FORKS = """
import gc, json, os, resource, sys, time
from srvstat.cli.process import start_lean
start_lean()
from srvstat.cli.app import main

MAX_SECONDS = 30
UNITS_PER_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10
answers = os.fdopen(os.dup(1), "w", buffering=1)

def run(directory, commands):
    os.chdir(directory)
    for command in commands:
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        started = time.process_time()
        exit_code = main(command)
        seconds = time.process_time() - started
        gc.collect()  # a command runs without; its garbage must not count for the next one
        texts = [open(name, "rb").read(100_000) for name in ("stdout", "stderr")]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS_PER_MIB
        shown = [text.decode("utf-8", "replace") for text in texts]
        print(json.dumps([exit_code, *shown, seconds, peak]), file=answers)

run(*json.loads(sys.stdin.readline()))
print(file=answers)
for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print(file=answers)
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
        run(*json.loads(line))
        os._exit(0)
"""
# The peak of a process includes what its parent held when it started it, so a shell starts it.
_FROM_SHELL = ["sh", "-c", '"$@"; exit $?', "sh"]


class Measured(NamedTuple):
    """The outcome of a command, its processor time in seconds, and the peak of memory in MiB."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    memory: float


class Forks:
    """A process that runs each set of commands in a fork."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, commands: Sequence[Sequence[str]], directory: Path) -> list[Measured]:
        """Run commands in a directory, one after another."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(directory), commands]) + "\n")
        self._process.stdin.flush()
        lines = iter(self._process.stdout.readline, "\n")
        found = [Measured(*json.loads(line)) for line in lines]
        assert len(found) == len(commands), found
        return found


@contextmanager
def start_forks() -> Iterator[Forks]:
    """Start the process."""
    command = [*_FROM_SHELL, sys.executable, "-c", _FORKS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Forks(process)
