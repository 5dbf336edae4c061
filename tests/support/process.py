"""Run srvstat as a service, and restore the signals of child processes."""

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
from typing import Any, NamedTuple


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
        with log_path.open("ab") as log, restore_signals():
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
