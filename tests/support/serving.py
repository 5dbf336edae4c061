"""A real service in a process of its own, on a free port of this machine."""

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

from support.signals import heard_signals


class Service(NamedTuple):
    """A service under way."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> list[dict[str, Any]]:
        """Return the entries of its log so far."""
        lines = self.log_path.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    def open_connection(self) -> socket.socket:
        """Return a new connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


@contextmanager
def serving(
    snapshot: str | Path, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Serve a snapshot until the block ends; `env` is added to the environment."""
    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", str(snapshot)]
    with tempfile.TemporaryDirectory() as directory:
        log_path = Path(directory, "log")
        with log_path.open("wb") as log, heard_signals():
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
