"""A real pseudo-terminal to run commands in."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

PLAIN = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": "1"}

_KEPT = ("PATH", "HOME", "PYTHONPATH")


def run_in_terminal(
    command: list[str],
    *,
    columns: int,
    env: Mapping[str, str] = PLAIN,
    cwd: str | Path | None = None,
) -> tuple[int, str]:
    """Run a command with all three streams on a terminal; return its exit code and the output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env={**kept, **env}
    ) as process:
        os.close(theirs)
        output = b""
        # Linux ends a terminal whose last writer is gone with an error, macOS with an empty read.
        try:
            while chunk := os.read(ours, 65_536):
                output += chunk
        except OSError:
            pass
        os.close(ours)
    return process.returncode, output.decode("utf-8").replace("\r\n", "\n")


def srvstat_in_terminal(
    *arguments: str,
    columns: int = 100,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> tuple[int, str]:
    """Run srvstat in a terminal without colours; `env` is added to the environment."""
    command = [sys.executable, "-m", "srvstat", *arguments]
    return run_in_terminal(command, columns=columns, env={**PLAIN, **(env or {})}, cwd=cwd)
