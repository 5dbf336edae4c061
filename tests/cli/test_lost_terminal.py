"""A terminal that closes while it shows a progress bar changes no result."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv
from support.snapshots import COMMAND
from support.terminal import PLAIN

HUNG_UP = 129
OBSERVATIONS = [("ab"[at % 2], AS_OF - at * 1000, at % 50) for at in range(200_000)]
ROWS = csv(OBSERVATIONS)
BUILD = [*COMMAND, "--observations", "-", "--format", "csv"]

# Sets the handler of SIGHUP: in a shell's background job, the tests would inherit an ignored one.
START = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.Handlers(int(sys.argv[1])))
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "srvstat", *sys.argv[2:]])
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("here"),
    pytest.mark.parametrize(
        ("hang_up", "exit_code"),
        [(signal.SIG_DFL, HUNG_UP), (signal.SIG_IGN, 0)],
        ids=["default", "ignored"],
    ),
]


@contextmanager
def run_in_own_terminal(
    command: list[str], hang_up: signal.Handlers
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """Run a command in its own terminal; yield the process and a function that closes the terminal.

    The system sends SIGHUP when the terminal closes. Standard input is a pipe, and standard output
    is the file `answer`.
    """
    ours, theirs = pty.openpty()

    with Path("answer").open("wb") as answer:
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(int(hang_up)), *command],
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=theirs,
            env={**os.environ, **PLAIN},
            start_new_session=True,
        )

    def close() -> None:
        drawn, _, _ = select.select([ours], [], [], 60)
        assert drawn
        # Stop the output, so that the command can't end before its terminal closes.
        termios.tcflow(theirs, termios.TCOOFF)
        os.close(ours)
        os.close(theirs)

    with process:
        try:
            yield process, close
        finally:
            process.kill()


def test_a_build_survives_or_ends_with_its_terminal(
    hang_up: signal.Handlers, exit_code: int, cli: Cli
) -> None:
    with run_in_own_terminal(BUILD, hang_up) as (process, close_terminal):
        assert process.stdin is not None
        process.stdin.write(ROWS[:100])
        process.stdin.flush()
        close_terminal()
        if exit_code:
            assert process.wait(60) == exit_code
        else:
            process.stdin.write(ROWS[100:])
            process.stdin.close()
            assert process.wait(60) == 0

    assert not [name for name in os.listdir() if name.startswith(".out.db")]
    assert Path("out.db").exists() == (not exit_code)
    if not exit_code:
        assert cli("snapshot", "verify", "out.db").exit_code == 0
