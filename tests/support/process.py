"""Run srvstat as a service."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from support.quick_start import ForkedCommand
from support.signals import restore_signals


class Service(NamedTuple):
    """A running service."""

    process: subprocess.Popen[bytes] | ForkedCommand
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
    snapshot: str | Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    listener: socket.socket | None = None,
) -> Iterator[Service]:
    """Serve a snapshot on a free port until the block ends, or on a socket that it inherits.

    The service is a fork of a process that has imported srvstat. With `env`, which extends the
    environment and can be empty, or with `listener`, it is a new process.
    """
    port = [] if listener else ["--port", "0"]  # an option can replace it
    arguments = ["serve", "--snapshot", str(snapshot), *port, *options]
    with tempfile.TemporaryDirectory() as directory:
        log_path = Path(directory, "log")
        with log_path.open("ab") as log:
            started = (
                ForkedCommand(arguments, log.fileno())
                if env is None and listener is None
                else _start_process(arguments, log, env or {}, listener)
            )
        with started as process:
            try:
                assert process.stdout
                first = process.stdout.readline().decode()
                found = re.search(r" at (?:http://\S+:(\d+)|unix:.*)$", first)
                assert found, log_path.read_text(encoding="utf-8")
                yield Service(process, int(found[1] or 0), log_path)
            finally:
                process.kill()


def _start_process(
    arguments: list[str],
    stderr: IO[bytes],
    env: Mapping[str, str],
    listener: socket.socket | None,
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "srvstat", *arguments]
    if listener:
        number = listener.fileno()
        # As systemd does it; only the process itself knows its id.
        script = f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&{number}'
        command = ["bash", "-c", script, "bash", *command]
    with restore_signals():
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **env},
            pass_fds=(listener.fileno(),) if listener else (),
        )
