"""More connections than there is room for: good clients are answered, and nothing is exhausted."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from asgi.small_service import build_small
from support.http import TWO, Client, compare, get, send_request
from support.process import Service, serve

DESCRIPTORS = 256
"""How many the service may have; its room is for some fewer connections."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Let what is started in the block have few; whoever starts it may have many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def service(small: str) -> Iterator[Service]:
    with ExitStack() as stack:
        with few_descriptors():
            under_way = stack.enter_context(serve(small))
        yield under_way


def silent(service: Service, number: int) -> list[socket.socket]:
    """Connect many times at once, and say nothing."""
    connections = []
    for _ in range(number):
        connection = socket.socket()
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.connect(("127.0.0.1", service.port))
        connections.append(connection)
    return connections


def descriptors(service: Service) -> int:
    """Return how many files and sockets the service has open."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells how many descriptors another process has")
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def test_a_burst_of_silent_connections_keeps_nobody_out(service: Service) -> None:
    crowd = silent(service, 2 * DESCRIPTORS)
    began = time.monotonic()

    assert [send_request(service, get(b"a")).status for _ in range(20)] == [200] * 20

    assert time.monotonic() - began < 3, "they were waited for"
    assert descriptors(service) < DESCRIPTORS
    for connection in crowd:
        connection.close()
    service.stop()
    assert [entry for entry in service.log() if entry.get("event") == "warning"] == []


def test_an_idle_connection_makes_room_and_one_that_is_asked_does_not(service: Service) -> None:
    with Client(service) as idle, Client(service) as asked:
        idle.send(get(b"a"))
        assert idle.read_answer().status == 200
        asked.send(compare(TWO)[:-1])
        crowd = silent(service, DESCRIPTORS)
        deadline = time.monotonic() + 10
        while idle.socket.recv(1) and time.monotonic() < deadline:
            pass

        assert send_request(service, get(b"a")).status == 200
    for connection in crowd:
        connection.close()


def test_whoever_asks_and_leaves_at_once_is_not_worked_for_without_end(service: Service) -> None:
    for _ in range(3 * DESCRIPTORS):
        with service.open_connection() as connection:
            connection.sendall(compare(TWO))

    assert send_request(service, get(b"a")).status == 200
    assert descriptors(service) < DESCRIPTORS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_soon_while_others_go_on_connecting(service: Service, number: int) -> None:
    going_on = threading.Event()

    def ask() -> None:
        while not going_on.is_set():
            with suppress(OSError), service.open_connection() as connection:
                connection.sendall(get(b"a"))
                connection.recv(4096)

    others = [threading.Thread(target=ask) for _ in range(4)]
    for other in others:
        other.start()
    time.sleep(0.3)
    began = time.monotonic()
    try:
        assert service.stop(number) == 128 + number
        assert time.monotonic() - began < 8
    finally:
        going_on.set()
        for other in others:
            other.join()
    assert service.log()[-1]["event"] == "stopped"


def test_a_signal_that_is_ignored_from_the_start_stays_so(small: str, tmp_path: Path) -> None:
    command = 'trap "" INT; exec "$0" -m srvstat serve -s "$1" --port 0'
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            ["sh", "-c", command, sys.executable, small], stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout
        assert b"serving" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        assert process.wait(10) == 143


def test_workers_are_not_what_the_environment_says(small: str) -> None:
    with serve(small, env={"WEB_CONCURRENCY": ""}) as service:
        assert send_request(service, get(b"a")).status == 200
