"""Run srvstat in processes of its own: as a service and in a terminal."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PLAIN = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": "1"}
"""The environment of a terminal without colors."""

_INHERITED = ("PATH", "HOME", "PYTHONPATH")


@contextmanager
def restore_signals() -> Iterator[None]:
    """Let child processes started in the block receive signals that a background job ignores."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Service(NamedTuple):
    """A running service."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def read_log(self) -> list[dict[str, Any]]:
        """Return the log entries so far."""
        lines = self.log_path.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    def open_connection(self) -> socket.socket:
        """Open a connection to the service."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


@contextmanager
def serve(
    snapshot: str | Path, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Serve a snapshot on a free port until the block ends; `env` extends the environment."""
    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", str(snapshot)]
    with tempfile.TemporaryDirectory() as directory:
        log_path = Path(directory, "log")
        with log_path.open("wb") as log, restore_signals():
            started = subprocess.Popen(
                [*command, "--port", "0", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(env or {})},
            )
        with started as process:
            try:
                assert process.stdout
                first = process.stdout.readline().decode()
                found = re.search(r" at http://\S+:(\d+)$", first)
                assert found, log_path.read_text(encoding="utf-8")
                yield Service(process, int(found[1]), log_path)
            finally:
                process.kill()


def run_in_terminal(
    command: list[str],
    *,
    columns: int,
    env: Mapping[str, str] = PLAIN,
    cwd: str | Path | None = None,
) -> tuple[int, str]:
    """Run a command in a pseudo-terminal; return its exit code and its output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env={**inherited, **env}
    ) as process:
        os.close(theirs)
        output = b""
        # When the last writer has closed a terminal, a read fails on Linux and is empty on macOS.
        try:
            while chunk := os.read(ours, 65_536):
                output += chunk
        except OSError:
            pass
        os.close(ours)
    return process.returncode, output.decode("utf-8").replace("\r\n", "\n")


def run_srvstat_in_terminal(
    *arguments: str,
    columns: int = 100,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> tuple[int, str]:
    """Run srvstat in a terminal without colors; `env` extends the environment."""
    command = [sys.executable, "-m", "srvstat", *arguments]
    return run_in_terminal(command, columns=columns, env={**PLAIN, **(env or {})}, cwd=cwd)
