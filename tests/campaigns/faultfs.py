"""Builds in which a chosen call to the system fails, by the library of faultfs.c.

Python starts once, with the library preloaded; each build is a fork of it and takes milliseconds.
"""

import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from srvstat.cli.main import main

NEEDS = ("gcc",)
_HERE = Path(__file__).parent


class Kind(IntEnum):
    """In which way calls fail, by the numbers of faultfs.c: the one numbered, or all from it on."""

    NONE = 0
    KILL = 1
    TORN = 2
    SHORT = 3
    ENOSPC_ONCE = 4
    ENOSPC_ON = 5
    EIO_ONCE = 6
    EIO_ON = 7
    FSYNC_ON = 8


class Fault(NamedTuple):
    """Which call that changes a file fails, counted from 1, and how."""

    kind: Kind = Kind.NONE
    at: int = 0


class Call(NamedTuple):
    """A call that changed a file or failed to: "done", "failed", "half" or "killed", and where."""

    outcome: str
    name: str
    path: str


class Ended(NamedTuple):
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


def run_with(fault: Fault, directory: str, arguments: Sequence[str]) -> Ended:
    """Run a command line in a directory, where alone calls are counted and fail."""
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as calls:
        child = os.fork()
        if not child:
            _end_as_srvstat(fault, directory, arguments, stderr.fileno(), calls.fileno())
        _, status = os.waitpid(child, 0)
        for file in (stderr, calls):
            file.seek(0)
        lines = os.fsdecode(calls.read()).splitlines()
        return Ended(
            os.waitstatus_to_exitcode(status),
            stderr.read().decode(),
            tuple(Call(*line.split(" ", 2)) for line in lines),
        )


def _end_as_srvstat(
    fault: Fault, directory: str, arguments: Sequence[str], stderr: int, calls: int
) -> None:
    try:
        gc.disable()  # A search would copy every page that the fork shares.
        os.dup2(stderr, 2)
        os.chdir(directory)
        arm = ctypes.CDLL(None).faultfs_arm
        arm(os.fsencode(directory), int(fault.kind), fault.at, calls)
        os._exit(main(list(arguments)))
    except BaseException:  # noqa: BLE001 - whatever it is, this is the end of a fork
        traceback.print_exc()
        os._exit(1)
