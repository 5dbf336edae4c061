"""Run srvstat: as a service, and in forks of one process that has imported it."""

import atexit
import json
import marshal
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, Any, NamedTuple, NoReturn, Self

import srvstat
from srvstat.__main__ import run
from srvstat.cli.app import main
from srvstat.cli.process import start_lean


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


DESCRIPTORS = 256
"""The descriptors of a limited process."""


@contextmanager
def replace_descriptor(number: int, descriptor: int) -> Iterator[None]:
    """Replace a descriptor, such as standard error, until the block ends."""
    kept = os.dup(number)
    os.dup2(descriptor, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


@contextmanager
def limit_descriptors() -> Iterator[None]:
    """Limit the descriptors of processes started in the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


_HEAD_BYTES = 8
_ANSWER_BYTES = 4
_SECONDS_UNTIL_CHECK = 10
# Importing no more than this halves the time of the client.
_CLIENT = """\
import _socket, marshal, posix, sys
arguments = sys.argv[2:]
if arguments[:1] == ["serve"]:  # a shell sends signals to it
    posix.execv(sys.executable, [sys.executable, "-m", "srvstat", *arguments])
client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
client.connect(sys.argv[1])
request = marshal.dumps([arguments, posix.getcwd(), posix.environ, False])
descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)
client.sendmsg([len(request).to_bytes(8, "big")], [rights])
client.sendall(request)
sys.exit(int.from_bytes(client.recv(4), "big"))
"""


@cache
def start_quick_srvstat() -> str:
    """Start the process, unless it runs; return a directory for the search path of a shell.

    It runs until `stop_quick_srvstat`, or the end of this process.
    """
    directory = tempfile.mkdtemp()
    (Path(directory) / "client.py").write_text(_CLIENT)
    command = Path(directory) / "srvstat"
    client = f'exec "{sys.executable}" -IS "{directory}/client.py" "{directory}/socket" "$@"'
    command.write_text(f"#!/bin/sh\n{client}\n")
    command.chmod(0o755)
    with restore_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, f"{directory}/socket"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert process.stdout
    process.stdout.readline()
    _running.append((process, directory))
    return directory


_running: list[tuple[subprocess.Popen[bytes], str]] = []
"""The process and its directory, in the process that has started it."""

os.register_at_fork(after_in_child=_running.clear)


@atexit.register
def stop_quick_srvstat() -> None:
    """End the process, if it runs."""
    start_quick_srvstat.cache_clear()
    while _running:
        process, directory = _running.pop()
        with process, socket.socket(socket.AF_UNIX) as last:
            last.connect(f"{directory}/socket")
        shutil.rmtree(directory)


class ForkedCommand:
    """A command in a fork, with those parts of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: list[str], stderr: int) -> None:
        reading, writing = os.pipe()
        self.stdout = open(reading, "rb")  # noqa: SIM115 - __exit__ closes it
        self._exit_code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(f"{start_quick_srvstat()}/socket")
        request = marshal.dumps([arguments, os.getcwd(), dict(os.environb), True])
        with open(os.devnull, "rb") as stdin:
            head = len(request).to_bytes(_HEAD_BYTES)
            socket.send_fds(self._connection, [head], [stdin.fileno(), writing, stderr])
        os.close(writing)
        self._connection.sendall(request)
        self.pid = int.from_bytes(self._connection.recv(_ANSWER_BYTES))

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        with suppress(TimeoutError):
            self.wait(timeout=0)
        if self._exit_code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the command, if it has not ended."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, negative for a signal. Raises TimeoutError."""
        if self._exit_code is None:
            self._connection.settimeout(timeout)
            try:
                answer = self._connection.recv(_ANSWER_BYTES)
            except BlockingIOError:
                raise TimeoutError from None
            assert answer
            self._exit_code = int.from_bytes(answer, signed=True)
        return self._exit_code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()
        self._connection.close()
        self.stdout.close()


def _listen(address: str) -> None:
    """Run commands until a client sends nothing or the parent ends; then wait for the forks."""
    for module in walk_packages(srvstat.__path__, "srvstat."):
        with suppress(ModuleNotFoundError):  # the extra `spark` may not be installed
            import_module(module.name)
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        listener.settimeout(_SECONDS_UNTIL_CHECK)
        print("ready", flush=True)  # noqa: T201 - for the process that starts this one
        while os.getppid() == parent:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.setblocking(True)
            with connection:
                head, descriptors, _, _ = socket.recv_fds(connection, _HEAD_BYTES, 3)
                if not head:
                    break
                if not os.fork():
                    listener.close()
                    _answer(connection, int.from_bytes(head), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _answer(connection: socket.socket, size: int, descriptors: list[int]) -> NoReturn:
    request = b""
    while len(request) < size:
        request += connection.recv(size - len(request))
    arguments, directory, environment, has_id = marshal.loads(request)  # noqa: S302 - our own
    os.chdir(directory)
    os.environ.clear()
    os.environb.update(environment)
    # A signal can end a command before it sends its exit code, so this process waits for it.
    command = os.fork() if has_id else None
    if command:
        connection.sendall(command.to_bytes(_ANSWER_BYTES))
    else:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    if command is None:
        exit_code = main(arguments)
    elif command:
        exit_code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    else:
        connection.close()
        sys.argv[1:] = arguments
        run()
    connection.sendall(exit_code.to_bytes(_ANSWER_BYTES, signed=True))
    os._exit(0)


if __name__ == "__main__":
    start_lean()
    _listen(sys.argv[1])


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
    arguments: list[str], stderr: IO[bytes], env: Mapping[str, str], listener: socket.socket | None
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
