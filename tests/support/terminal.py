"""Run commands in a pseudo-terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from pathlib import Path

from srvstat.cli.app import main
from support.process import replace_descriptor

PLAIN = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": "1"}
"""The environment of a terminal without colors."""

SRVSTAT = [sys.executable, "-m", "srvstat"]
"""The start of a command for `run_in_terminal`."""

_INHERITED = ("PATH", "HOME", "PYTHONPATH")


def run_in_terminal(
    command: list[str],
    *,
    columns: int = 100,
    env: Mapping[str, str] = PLAIN,
    cwd: str | Path | None = None,
    answers: str = "",
) -> tuple[int, str]:
    """Run a command in a pseudo-terminal; return its exit code and its output.

    `answers` are typed at once, and then the end of input.
    """
    ours, theirs = _open_terminal(columns, f"{answers}\x04")
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=_extend_environment(env)
    ) as process:
        os.close(theirs)
        output = _read_all(ours)
    return process.returncode, output


def talk_in_terminal(
    command: list[str], *exchanges: tuple[str, str | int], cwd: str | Path
) -> tuple[int, str]:
    """Run a command in a pseudo-terminal; return its exit code and what it writes at last.

    In each exchange, a text is typed or a signal is sent as soon as another text is shown. The
    command must leave the terminal as it was.
    """
    ours, theirs = _open_terminal(100, "")
    before = termios.tcgetattr(ours)
    output = b""
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=_extend_environment(PLAIN)
    ) as process:
        for shown, answer in exchanges:
            output = b""
            while shown.encode() not in output:
                output += os.read(ours, 65_536)
            if isinstance(answer, int):
                process.send_signal(answer)
            else:
                os.write(ours, answer.encode())
        reader = ThreadPoolExecutor(1)
        rest = reader.submit(_read_all, os.dup(ours))
        exit_code = process.wait(60)
        assert termios.tcgetattr(ours) == before
        os.close(theirs)
    os.close(ours)
    return exit_code, rest.result()


def run_srvstat_in_terminal(
    *arguments: str,
    columns: int = 100,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> tuple[int, str]:
    """Run srvstat in a pseudo-terminal without colors; `env` extends the environment.

    It runs in this process, which saves its start. It shows no progress bars: those need a process
    whose own standard error is a terminal.
    """
    ours, theirs = _open_terminal(columns)
    with ThreadPoolExecutor(1) as reader:
        output = reader.submit(_read_all, ours)
        with (
            replace_environment({**PLAIN, **(env or {})}),
            chdir(cwd or os.curdir),
            replace_descriptor(0, theirs),
            replace_descriptor(1, theirs),
            replace_descriptor(2, theirs),
        ):
            os.close(theirs)
            exit_code = main(list(arguments))
        return exit_code, output.result()


def _open_terminal(columns: int, typed: str = "\x04") -> tuple[int, int]:
    """Return the descriptors of a new terminal: ours and that of its program."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return ours, theirs


def _read_all(terminal: int) -> str:
    """Return what is written to a terminal until its last writer closes it, and close it."""
    output = b""
    # When the last writer has closed a terminal, a read fails on Linux and is empty on macOS.
    try:
        while chunk := os.read(terminal, 65_536):
            output += chunk
    except OSError:
        pass
    os.close(terminal)
    return output.decode("utf-8").replace("\r\n", "\n")


def _extend_environment(env: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **env}


@contextmanager
def replace_environment(env: Mapping[str, str]) -> Iterator[None]:
    before, after = dict(os.environ), _extend_environment(env)
    try:
        os.environ.clear()
        os.environ.update(after)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
