"""Many clients at once, and restarts under load: every answer has the bytes of the command line."""

import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asgi.exchanges import list_comparisons, list_gets
from asgi.small_service import build_small
from conftest import Cli
from srvstat.asgi.server import STOP_SECONDS
from support.http import HEALTH
from support.load import Exchange, Load, Outcome, rotate
from support.load_client import start_client
from support.process import serve

pytestmark = pytest.mark.slow

CLIENTS = 1_000
SECONDS = 0.5
MAX_ROUNDS = 4
"""Answers that each other client may get while a client waits for one."""
OPEN = Exchange(HEALTH)


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
    with (
        allow_descriptors(CLIENTS + 200),
        serve(snapshot, env={}) as service,
        start_client() as client,
    ):

        def ask(exchanges: list[Exchange]) -> Outcome:
            turns = rotate(exchanges, CLIENTS)
            return client(Load(service.port, turns, SECONDS, first=OPEN)).result()

        assert ask(mixed).list_failures() == []
        for equal_cost in (known, unknown):
            outcome = ask(equal_cost)
            assert outcome.list_failures() == []
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
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener, start_client() as client:
        port = listener.getsockname()[1]
        with serve(snapshot, listener=listener) as first:
            running = client(Load(port, rotate(exchanges, 20), 3.0, pause=0.05))
            time.sleep(1)
            assert first.stop(signal.SIGHUP) == 0
        with serve(snapshot, listener=listener):
            outcome = running.result()

    # HTTP/1.1 can't prevent that a request and the end of its idle connection cross on the way.
    cuts = [cut for cut in outcome.cuts if cut.received or (cut.idle or 0) < STOP_SECONDS]
    assert outcome._replace(cuts=cuts).list_failures() == []
    assert outcome.answers > 100
