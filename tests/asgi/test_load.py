"""Many clients at once, and restarts under load: every answer has the bytes of the command line."""

import resource
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from asgi.small_service import build_small, list_comparisons, list_gets
from conftest import Cli
from srvstat.asgi.server import STOP_SECONDS
from support.http import rotate, run_load
from support.process import serve

pytestmark = pytest.mark.slow

CLIENTS = 1_000
SECONDS = 0.5
MAX_ROUNDS = 4
"""Answers that each other client may get while a client waits for one."""


@contextmanager
def allow_descriptors(number: int) -> Iterator[None]:
    """Raise the limit of open files; skip the test if the system does not permit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        pytest.skip(f"needs {number} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_clients_get_the_answers_of_the_command_line(tmp_path: Path, cli: Cli) -> None:
    snapshot = build_small(tmp_path)
    known, unknown = (list_gets(snapshot, cli, known=known) for known in (True, False))
    mixed = [*list_comparisons(snapshot, cli), *known, *unknown]
    with allow_descriptors(CLIENTS + 200), serve(snapshot, env={}) as service:
        assert run_load(service.port, rotate(mixed, CLIENTS), SECONDS).failures == []
        for equal_cost in (known, unknown):
            outcome = run_load(service.port, rotate(equal_cost, CLIENTS), SECONDS)
            assert outcome.failures == []
            assert outcome.most_between <= MAX_ROUNDS * CLIENTS
        assert service.stop() == 0


@pytest.mark.parametrize("single", [True, False], ids=["one request each", "open connections"])
def test_no_request_is_lost_while_a_service_restarts_on_the_same_socket(
    single: bool, tmp_path: Path, cli: Cli
) -> None:
    snapshot = build_small(tmp_path)
    exchanges = list_gets(snapshot, cli, known=True)
    if single:
        close = b"\r\nConnection: close\r\n"
        exchanges = [
            one._replace(request=one.request.replace(b"\r\n", close, 1)) for one in exchanges
        ]
    with (
        socket.create_server(("127.0.0.1", 0), backlog=200) as listener,
        ThreadPoolExecutor(1) as client,
    ):
        port = listener.getsockname()[1]
        with serve(snapshot, listener=listener) as first:
            running = client.submit(
                run_load, port, rotate(exchanges, 20), 1.5, pause=0.05, grace=STOP_SECONDS
            )
            time.sleep(0.5)
            assert first.stop(signal.SIGHUP) == 0
        with serve(snapshot, listener=listener):
            outcome = running.result()

    assert outcome.failures == []
    assert outcome.answers > 100
