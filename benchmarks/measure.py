"""Measure time and peak memory of calls in this process and of whole processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, NamedTuple

import srvstat

_MIB = 1 << 20
_RSS_UNIT = 1 if sys.platform == "darwin" else 1 << 10

# A separate small process starts the measured one, because the peak of a child includes the memory
# of its parent at the time of the fork.
_MEASURER = """
import json, resource, subprocess, sys, threading, time

def add_up(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            children = file.read().split()
        with open(f"/proc/{process}/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:  # it has ended, or the system is not Linux
        return 0
    return pages + sum(map(add_up, children))

def watch():
    global peak
    while process.returncode is None:
        peak = max(peak, add_up(process.pid) * resource.getpagesize() // 1024)
        time.sleep(0.02)

peak = 0
started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
threading.Thread(target=watch, daemon=True).start()
output, _ = process.communicate()
seconds = time.perf_counter() - started
peak = max(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stdout.buffer.write(json.dumps([process.returncode, seconds, peak]).encode() + b"\\n")
sys.stdout.buffer.write(output)
"""


class Run(NamedTuple):
    """A run of a process."""

    seconds: float
    """Wall time from start to end, including reading its output."""
    peak_mib: float
    """Peak memory of the process and its children together, sampled on Linux; at least that of the
    largest process, and 11 MiB, the size of the process that starts it."""
    output: bytes


class FailedError(Exception):
    """A measured process failed."""


def build_environment() -> dict[str, str]:
    """Return the environment of measured processes: they run the srvstat that this process imports.

    Removes variables that could disable compiled files of Python or select another snapshot.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "SRVSTAT"))
    }
    return variables | {"PYTHONPATH": os.path.dirname(os.path.dirname(srvstat.__file__))}


def run(command: Sequence[str], *, stdin: IO[bytes] | None = None) -> Run:
    """Run a process to its end; its stderr is passed through.

    Raises FailedError.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURER, *command],
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=build_environment(),
        check=True,
    )
    header, _, output = done.stdout.partition(b"\n")
    code, seconds, peak = json.loads(header)
    if code:
        raise FailedError(f"exit code {code}: {' '.join(command)[:500]}")
    return Run(seconds, peak * _RSS_UNIT / _MIB, output)


def find_program(name: str) -> str:
    """Return the path of a program that is installed next to this Python."""
    return os.path.join(os.path.dirname(sys.executable), name)


def time_calls(ask: Callable[[Any], Any], requests: Iterable[Any]) -> list[float]:
    """Return the seconds of each call; discarding the answers is not timed."""
    times = []
    now = time.perf_counter
    for request in requests:
        started = now()
        answer = ask(request)
        times.append(now() - started)
        del answer
    return times


def print_progress(text: str) -> None:
    """Print a line to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
