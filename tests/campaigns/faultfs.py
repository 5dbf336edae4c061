"""Run commands in which a chosen system call fails, with the library of faultfs.c.

Python starts once, with the library preloaded, so a build takes milliseconds.
"""

import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from srvstat.cli.main import main
from support.process import replace_descriptor

NEEDS = ("gcc",)
_HERE = Path(__file__).parent


class Kind(IntEnum):
    """Kinds of faults, with the numbers of faultfs.c: one call fails, or all from that call on.

    TORN writes half of the bytes and kills the process. SHORT writes half and returns that number.
    LOST writes nothing and reports success.
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


KILLING_FAULTS = (Kind.KILL, Kind.TORN)
FAULTS = tuple(kind for kind in Kind if kind > Kind.NONE)


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


def run_preloaded(code: str, *arguments: str) -> str:
    """Run Python code in a process with the library preloaded; return its output."""
    with tempfile.TemporaryDirectory() as directory:
        library = f"{directory}/faultfs.so"
        source = f"{_HERE}/faultfs.c"
        compile_it = ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library]
        subprocess.run([*compile_it, "-ldl"], check=True)
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "LD_PRELOAD": library},
            cwd=_HERE.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout


def run_with_fault(fault: Fault, directory: Path, arguments: Sequence[str]) -> ProcessResult:
    """Run a command with a fault in the calls that change files in a directory.

    Runs it in this process, or in a fork if the fault kills the process.
    """
    run = _run_in_fork if fault.kind in KILLING_FAULTS else _run_in_process
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as calls:

        def run_armed() -> int:
            _arm(fault, directory, calls.fileno())
            try:
                return main(list(arguments))
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
