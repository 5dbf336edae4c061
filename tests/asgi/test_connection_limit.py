"""Exceed the limit of connections: other clients are answered, and descriptors do not run out."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from asgi.small_service import build_small
from support.descriptors import DESCRIPTORS, limit_descriptors
from support.http import TWO, Client, compare, get, send_request
from support.process import Service, serve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture
def service(small: str) -> Iterator[Service]:
    with ExitStack() as stack:
        with limit_descriptors():
            running = stack.enter_context(serve(small, env={}))
        yield running


def open_silent_connections(service: Service, number: int) -> list[socket.socket]:
    """Open many connections at once, and send nothing."""
    connections = []
    for _ in range(number):
        connection = socket.socket()
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.connect(("127.0.0.1", service.port))
        connections.append(connection)
    return connections


def count_descriptors(service: Service) -> int:
    """Return the number of open files and sockets of the service."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux shows how many descriptors another process has")
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def test_silent_connections_do_not_keep_others_out(service: Service) -> None:
    silent = open_silent_connections(service, 2 * DESCRIPTORS)
    began = time.monotonic()

    assert [send_request(service, get(b"a")).status for _ in range(20)] == [200] * 20

    assert time.monotonic() - began < 3, "the service waited for silent connections"
    assert count_descriptors(service) < DESCRIPTORS
    for connection in silent:
        connection.close()
    service.stop()
    assert [entry for entry in service.read_log() if entry.get("event") == "warning"] == []


def test_an_idle_connection_is_closed_to_make_room(service: Service) -> None:
    with Client(service) as idle, Client(service) as busy:
        idle.send(get(b"a"))
        assert idle.read_answer().status == 200
        busy.send(compare(TWO)[:-1])
        silent = open_silent_connections(service, DESCRIPTORS)
        deadline = time.monotonic() + 10
        while idle.socket.recv(1) and time.monotonic() < deadline:
            pass

        assert send_request(service, get(b"a")).status == 200
    for connection in silent:
        connection.close()


def test_clients_that_leave_at_once_leave_no_descriptors_open(service: Service) -> None:
    for _ in range(3 * DESCRIPTORS):
        with service.open_connection() as connection:
            connection.sendall(compare(TWO))

    assert send_request(service, get(b"a")).status == 200
    assert count_descriptors(service) < DESCRIPTORS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_service_stops_while_clients_keep_connecting(service: Service, number: int) -> None:
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            with suppress(OSError), service.open_connection() as connection:
                connection.sendall(get(b"a"))
                connection.recv(4096)

    others = [threading.Thread(target=ask) for _ in range(4)]
    for other in others:
        other.start()
    time.sleep(0.3)
    began = time.monotonic()
    try:
        assert service.stop(number) == 0
        assert time.monotonic() - began < 8
    finally:
        is_over.set()
        for other in others:
            other.join()
    assert service.read_log()[-1]["event"] == "stopped"


def test_a_signal_ignored_at_the_start_stays_ignored(small: str, tmp_path: Path) -> None:
    command = 'trap "" INT HUP; exec "$0" -m srvstat serve -s "$1" --port 0'
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            ["sh", "-c", command, sys.executable, small], stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout
        assert b"serving" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.wait(10) == 0


def test_web_concurrency_is_ignored(small: str) -> None:
    with serve(small, env={"WEB_CONCURRENCY": ""}) as service:
        assert send_request(service, get(b"a")).status == 200
