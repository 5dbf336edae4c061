"""Serve on a socket that the parent process has opened."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from asgi.small_service import SERVER_A, build_small
from conftest import Cli
from srvstat.asgi.server import inherit_listener
from srvstat.cli.serve import take_inherited_descriptor
from srvstat.contract.errors import UsageError
from support.http import Client, get
from support.process import serve


@pytest.mark.slow
def test_connections_wait_for_the_next_process_on_the_socket(tmp_path: Path) -> None:
    small = build_small(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with serve(small, listener=listener, env={"SRVSTAT_PORT": "1"}) as first:
            with Client(first) as client:
                client.send(get(b"a"))
                assert client.read_answer().body == SERVER_A
            assert first.stop() == 0
        with Client(first) as waiting:
            waiting.send(get(b"a"))
            with serve(small, listener=listener) as second:
                assert waiting.read_answer().body == SERVER_A
                assert second.port == listener.getsockname()[1]


@pytest.mark.slow
def test_a_unix_socket_needs_no_access_file(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with serve(build_small(tmp_path), listener=listener) as service:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(get(b"a", b"Connection: close"))
                assert connection.makefile("rb").read().endswith(SERVER_A)
            assert service.stop() == 0
            assert [entry.get("remote") for entry in service.read_log()] == ["", None]


def open_public() -> socket.socket:
    return socket.create_server(("0.0.0.0", 0))  # noqa: S104 - it is refused


def open_datagrams() -> socket.socket:
    return socket.socket(type=socket.SOCK_DGRAM)


def open_silent() -> socket.socket:
    return socket.socket()


@pytest.mark.parametrize(
    ("open_socket", "problem"),
    [
        (open_public, "0.0.0.0 is reachable from other machines, which needs keys"),
        (open_datagrams, "not a listening stream socket; use ListenStream= and Accept=no"),
        (open_silent, "not a listening stream socket; use ListenStream= and Accept=no"),
    ],
)
def test_another_socket_is_refused(open_socket: Callable[[], socket.socket], problem: str) -> None:
    with open_socket() as opened, pytest.raises(UsageError, match=f"^LISTEN_FDS: {problem}"):
        inherit_listener(os.dup(opened.fileno()), loopback_only=True)


def test_a_descriptor_that_is_no_socket_is_refused(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("wb") as file,
        pytest.raises(UsageError, match=r"^LISTEN_FDS: descriptor \d+ is not a socket$"),
    ):
        inherit_listener(file.fileno(), loopback_only=True)


def test_the_variables_are_for_one_process_and_one_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(process: int, sockets: str) -> int | None:
        monkeypatch.setenv("LISTEN_PID", str(process))
        monkeypatch.setenv("LISTEN_FDS", sockets)
        monkeypatch.setenv("LISTEN_FDNAMES", "http")
        found = take_inherited_descriptor()
        assert not [name for name in os.environ if name.startswith("LISTEN_")]
        return found

    assert take_inherited_descriptor() is None
    assert take(os.getpid(), "1") == 3
    assert take(os.getpid(), "0") is None
    assert take(os.getpid() + 1, "2") is None
    with pytest.raises(UsageError, match=r'^LISTEN_FDS: "2" sockets; pass exactly one'):
        take(os.getpid(), "2")


def test_an_address_is_refused_beside_an_inherited_socket(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("host", "port"):
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "1")
        ran = cli("serve", f"--{name}", "8000")

        assert ran.exit_code == 2
        assert ran.stderr == (
            f"error: --{name}: can't be combined with an inherited socket (LISTEN_FDS)\n"
        )
