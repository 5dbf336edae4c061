"""Take times and peak memory: of calls in this process, and of whole processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, NamedTuple

_MIB = 1 << 20
_RSS_UNIT = 1 if sys.platform == "darwin" else 1 << 10

# A process of its own starts what is measured: the peak of a child counts what its parent held
# when it started it, and the benchmark holds a lot.
_MEASURER = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.stdout.buffer.write(json.dumps([done.returncode, seconds, peak]).encode() + b"\\n")
sys.stdout.buffer.write(done.stdout)
"""


class Ran(NamedTuple):
    """One run of a process."""

    seconds: float
    """Wall time from its start to its end, its output read."""
    peak_mib: float
    """The most memory it held; about 11 MiB at least, which is what starts it."""
    output: bytes


class FailedError(Exception):
    """A process that is measured ended with an error."""


def environment() -> dict[str, str]:
    """Return the environment of every process that is measured.

    A variable that is in the benchmark's own may keep Python from using compiled files, or tell
    srvstat of another snapshot.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "SRVSTAT"))
    }


def run(command: Sequence[str], *, stdin: IO[bytes] | None = None) -> Ran:
    """Run a process to its end; what it writes to standard error is seen.

    Raises FailedError.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURER, *command],
        stdin=stdin or subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
        check=True,
    )
    header, _, output = done.stdout.partition(b"\n")
    code, seconds, peak = json.loads(header)
    if code:
        raise FailedError(f"exit code {code}: {' '.join(command)[:500]}")
    return Ran(seconds, peak * _RSS_UNIT / _MIB, output)


def program(name: str) -> str:
    """Return the path of a program that is installed beside this Python."""
    return os.path.join(os.path.dirname(sys.executable), name)


def clock(ask: Callable[[Any], Any], requests: Iterable[Any]) -> list[float]:
    """Return how many seconds each request took; what it returns is thrown away in between."""
    times = []
    now = time.perf_counter
    for request in requests:
        started = now()
        answer = ask(request)
        times.append(now() - started)
        del answer
    return times


def tell(text: str) -> None:
    """Say on standard error what is under way."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
