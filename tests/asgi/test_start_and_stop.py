"""Start and stop the service, and report why it can't start."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi.small_service import COMPARED, SERVER_A, build_small, format_access
from conftest import Cli
from support.http import (
    HEALTH,
    READY,
    TWO,
    UNAVAILABLE,
    Client,
    compare,
    get,
)
from support.process import Service, serve

pytestmark = pytest.mark.slow

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture
def service(small: str) -> Iterator[Service]:
    with serve(small) as running:
        yield running


PUBLIC = "reachable from other machines, which needs keys; use --access FILE or 127.0.0.1"
ERRORS = [
    (["--host", "0.0.0.0"], 2, f"error: --host 0.0.0.0: {PUBLIC}\n"),  # noqa: S104 - it is refused
    (["--host", ""], 2, "error: --host: empty; use 127.0.0.1 for this machine\n"),
    (["--host", "no host"], 2, "error: --host no host: "),
    (["--access", "bad.toml"], 6, "error: bad.toml, line 3: plans.all.ranges: "),
    (["--access", "none.toml"], 6, "error: none.toml: "),
    (["--snapshot", "none.db"], 3, "error: none.db: no such file"),
    (["--snapshot", "other.db"], 3, "error: other.db: "),
    (["--snapshot", "cut.db"], 3, "error: cut.db: "),
    # Usage is checked before the access file, and that before the snapshot.
    (["--host", "", "--access", "none.toml", "--snapshot", "none.db"], 2, "error: --host: empty"),
    (["--access", "none.toml", "--snapshot", "none.db"], 6, "error: none.toml: "),
]


def test_one_line_says_why_the_service_can_not_start(
    small: str, service: Service, empty_directory: Path, cli: Cli
) -> None:
    bad = "[plans.all]\noperations = []\nranges = 7\n"
    (empty_directory / "bad.toml").write_text(bad, encoding="utf-8")
    (empty_directory / "other.db").write_bytes(b"SQLite format 3\x00".ljust(4_096, b"\x01"))
    (empty_directory / "cut.db").write_bytes(Path(small).read_bytes()[:-16_384])
    taken = f"error: --host 127.0.0.1 --port {service.port}: Address already in use; choose another"

    for options, exit_code, message in [*ERRORS, (["--port", str(service.port)], 2, taken)]:
        ran = cli("serve", "--port", "0", "--snapshot", small, *options)
        assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (exit_code, b"", 1), options
        assert ran.stderr.startswith(message)
    assert cli("serve", "--access", "none.toml").exit_code == 6
    assert cli("serve").exit_code == 3


def test_an_access_file_allows_any_host(small: str, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(format_access({"the-key": "all"}), encoding="utf-8")

    options = ("--access", str(access), "--host", "0.0.0.0")  # noqa: S104 - a key is required
    with serve(small, *options) as service, Client(service) as client:
        client.send(get(b"a"))
        assert client.read_answer().status == 401


def test_a_port_can_be_reused_at_once(service: Service, small: str) -> None:
    with Client(service) as client:
        client.send(get(b"a"))
        client.read_answer()
        service.stop()

    with serve(small, "--port", str(service.port)) as again, Client(again) as client:
        client.send(get(b"a"))
        assert client.read_answer().body == SERVER_A


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_an_idle_service_at_once(number: signal.Signals, small: str) -> None:
    with serve(small, env={}) as service, Client(service) as silent, Client(service) as idle:
        idle.send(get(b"a"))
        idle.read_answer()
        began = time.monotonic()

        assert service.stop(number) == 0
        assert time.monotonic() - began < 3
        for client in (silent, idle):
            assert client.read_rest() == b""
        assert service.read_log()[-1]["event"] == "stopped"


def test_a_request_on_its_way_at_the_signal_is_answered(service: Service) -> None:
    with Client(service) as silent, Client(service) as idle, Client(service) as late:
        idle.send(READY)
        answer = idle.read_answer()
        assert (answer.status, answer.closes) == (200, False)
        late.send(compare(TWO)[:-1])
        time.sleep(0.1)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        for client, sent in ((silent, get(b"a")), (idle, READY), (late, TWO[-1:])):
            client.send(sent)

        found = [client.read_answer() for client in (silent, idle, late)]
        assert [(one.status, one.body) for one in found] == [
            (200, SERVER_A),
            (503, UNAVAILABLE),
            (200, COMPARED),
        ]
        for client, answer in zip((silent, idle, late), found, strict=True):
            assert answer.closes
            assert client.read_rest() == b""
        assert service.process.wait(timeout=5) == 0


def test_pipelined_requests_are_answered_completely_or_not_at_all(service: Service) -> None:
    with Client(service) as client:
        client.send(compare(TWO) * 200)
        client.read_answer()
        service.process.send_signal(signal.SIGTERM)
        rest = client.read_rest()

    heads = rest.split(COMPARED)
    assert heads.pop() == b""
    assert all(head.startswith(b"HTTP/1.1 200 ") for head in heads)
    answered = 1 + len(heads)
    assert service.process.wait(timeout=5) == 0
    assert [entry.get("status") for entry in service.read_log()] == [200] * answered + [None]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_at_once(service: Service, number: int) -> None:
    with Client(service) as client:
        client.send(compare(TWO)[:-1])
        time.sleep(0.1)
        began = time.monotonic()
        service.process.send_signal(number)
        time.sleep(0.2)

        assert service.stop(number) == 128 + number
        assert time.monotonic() - began < 3


def test_closing_standard_output_does_not_stop_the_service(small: str) -> None:
    """The process that started the service may have ended."""
    with serve(small) as service:
        assert service.process.stdout
        service.process.stdout.close()
        with Client(service) as client:
            client.send(HEALTH + get(b"a"))
            assert [client.read_answer().status for _ in range(2)] == [200, 200]
        os.kill(service.process.pid, signal.SIGTERM)
        assert service.process.wait(timeout=5) == 0
