"""Run a real Redis on a unix socket."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NEEDS_REDIS = pytest.mark.skipif(
    not shutil.which("redis-server"), reason="redis-server is not installed"
)

_SECONDS = 20


class RedisServer:
    """A Redis that can be stopped, suspended and started again. It keeps nothing on disk.

    `options` are added to those of redis-server.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self._socket = directory / "redis.sock"
        self._options = ["--port", "0", "--unixsocket", str(self._socket), "--save", ""]
        self._options += ["--dir", str(directory), "--logfile", str(directory / "redis.log")]
        self._options += options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL, without a password."""
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        self._process = subprocess.Popen(["redis-server", *self._options])
        for _ in range(_SECONDS * 50):
            if self._socket.exists():
                return
            time.sleep(0.02)
        pytest.fail(f"Redis is not ready after {_SECONDS} s")

    def stop(self) -> None:
        """Kill it, if it runs."""
        if self._process:
            self._process.kill()
            self._process.wait(timeout=_SECONDS)
            self._socket.unlink(missing_ok=True)
            self._process = None

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Keep it from answering until the block ends."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def run_redis(directory: Path, *options: str) -> Iterator[RedisServer]:
    """Run a Redis with more options until the block ends."""
    server = RedisServer(directory, *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()
