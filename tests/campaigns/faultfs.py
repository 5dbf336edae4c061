"""Builds in which a chosen call to the system fails, by the library of faultfs.c.

Python starts once, with the library preloaded, so that a build takes milliseconds.
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

NEEDS = ("gcc",)
_HERE = Path(__file__).parent


class Kind(IntEnum):
    """In which way calls fail, by the numbers of faultfs.c: the one numbered, or all from it on.

    TORN is half a write and then a kill, SHORT half a write that says so, and LOST none at all that
    says it was done.

    READS and what follows it count reads instead of changes: READ_SHORT gives one byte and
    READ_AGAIN none yet, once each, and READ_END finds the end of the file too early.
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
    READS = 10
    READ_EIO = 11
    READ_SHORT = 12
    READ_AGAIN = 13
    READ_END = 14


KILLING_FAULTS = (Kind.KILL, Kind.TORN)
CHANGE_FAULTS = tuple(kind for kind in Kind if Kind.NONE < kind < Kind.READS)
READ_FAULTS = tuple(kind for kind in Kind if kind > Kind.READS)


class Fault(NamedTuple):
    """Which call that changes or reads a file fails, counted from 1, and how."""

    kind: Kind = Kind.NONE
    at: int = 0


class Call(NamedTuple):
    """A call that is to change or read a file, where, and what became of it.

    The outcome is "done", "failed", "half", "lost" or "killed".
    """

    outcome: str
    name: str
    path: str


class ProcessResult(NamedTuple):
    """What became of a command line; killed by a signal, its exit code is negative."""

    exit_code: int
    stderr: str
    calls: tuple[Call, ...]


def run_preloaded(code: str, *arguments: str) -> str:
    """Run Python code in a process with the library preloaded, and return what it prints."""
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
    """Run a command line while calls fail that change, or read, something in a directory.

    It runs in this process, or where the fault is to kill it in a fork.
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
        told = stderr.read().decode()
    return ProcessResult(exit_code, told, tuple(Call(*line.split(" ", 2)) for line in lines))


def _arm(fault: Fault, directory: Path | None, calls: int) -> None:
    name = os.fsencode(directory) if directory else b""
    ctypes.CDLL(None).faultfs_arm(name, int(fault.kind), fault.at, calls)


def _run_in_process(command: Callable[[], int], stderr: int) -> int:
    ours = os.dup(2)
    os.dup2(stderr, 2)
    try:
        return command()
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _run_in_fork(command: Callable[[], int], stderr: int) -> int:
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    gc.disable()  # A search would copy every page that the fork shares.
    os.dup2(stderr, 2)
    try:
        os._exit(command())
    except BaseException:  # noqa: BLE001 - whatever it is, this is the end of a fork
        traceback.print_exc()
        os._exit(1)
