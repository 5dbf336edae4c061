"""Run srvstat in forks of one process that has imported it, for shells that run many commands.

A small client named `srvstat` sends its arguments, directory, environment and standard descriptors
to the process, and ends with the exit code of the fork. A command takes a tenth of the processor
time of a start. `serve` starts as usual, because shells send signals to it.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

import srvstat
from srvstat.cli.main import main
from srvstat.cli.start_up import start_lean

_HEAD_BYTES = 8
_CLIENT = """\
import json, os, socket, sys
if sys.argv[2:3] == ["serve"]:
    os.execv(sys.executable, [sys.executable, "-m", "srvstat", *sys.argv[2:]])
with socket.socket(socket.AF_UNIX) as client:
    client.connect(sys.argv[1])
    request = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(client, [len(request).to_bytes(8)], [0, 1, 2])
    client.sendall(request)
    sys.exit(client.recv(1)[0])
"""


@contextmanager
def start_quick_srvstat() -> Iterator[str]:
    """Start the process; yield a directory for the search path of a shell."""
    with tempfile.TemporaryDirectory() as directory:
        address = os.path.join(directory, "socket")
        (Path(directory) / "client.py").write_text(_CLIENT)
        command = Path(directory) / "srvstat"
        client = f'exec "{sys.executable}" -IS "{directory}/client.py" "{address}" "$@"'
        command.write_text(f"#!/bin/sh\n{client}\n")
        command.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-m", __name__, address],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:
            assert process.stdout
            process.stdout.readline()
            try:
                yield directory
            finally:
                with socket.socket(socket.AF_UNIX) as last:
                    last.connect(address)


def _serve(address: str) -> None:
    """Run commands until a client sends nothing; then wait for the forks."""
    for module in walk_packages(srvstat.__path__, "srvstat."):
        if not module.name.startswith(("srvstat.asgi", "srvstat.__main__")):
            import_module(module.name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)  # noqa: T201 - for the process that starts this one
        while True:
            connection, _ = listener.accept()
            with connection:
                head, descriptors, _, _ = socket.recv_fds(connection, _HEAD_BYTES, 3)
                if not head:
                    break
                if not os.fork():
                    _run(connection, int.from_bytes(head), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _run(connection: socket.socket, size: int, descriptors: list[int]) -> NoReturn:
    request = b""
    while len(request) < size:
        request += connection.recv(size - len(request))
    arguments, directory, environment = json.loads(request)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    connection.sendall(bytes([main(arguments)]))
    os._exit(0)


if __name__ == "__main__":
    start_lean()
    _serve(sys.argv[1])
