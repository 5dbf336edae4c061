"""Start and stop the service, and report why it can't start."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asgi.small_service import COMPARED, SERVER_A, build_small, format_access
from conftest import Cli, Ran
from support.http import (
    COMPARE,
    HEALTH,
    HOST,
    JSON,
    KEY,
    READY,
    TWO,
    UNAVAILABLE,
    Client,
    compare,
    get,
    request,
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


FailToServe = Callable[..., Ran]


@pytest.fixture
def fail_to_serve(cli: Cli) -> FailToServe:
    """Try to serve, and check that one line gives the reason."""

    def run(*options: str, snapshot: str) -> Ran:
        ran = cli("serve", "--port", "0", "--snapshot", snapshot, *options)
        assert ran.stdout == b""
        assert ran.stderr.startswith("error: ")
        assert ran.stderr.count("\n") == 1
        return ran

    return run


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - it is refused
def test_a_public_address_needs_an_access_file(
    fail_to_serve: FailToServe, host: str, small: str
) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    ran = fail_to_serve("--host", host, snapshot=small)

    assert ran.exit_code == 2
    assert ran.stderr == (
        f"error: --host {host}: reachable from other machines, which needs keys; use --access FILE"
        " or 127.0.0.1\n"
    )


@pytest.mark.parametrize("port", ["1_0", "+10", " 10", "010", "-1", "65536", "１０", "", "http"])  # noqa: RUF001 - other digits
def test_a_port_consists_of_plain_digits(fail_to_serve: FailToServe, port: str, small: str) -> None:
    ran = fail_to_serve(f"--port={port}", snapshot=small)

    assert ran.exit_code == 2
    assert ran.stderr.endswith(" is not a number from 0 to 65535\n")


def test_an_empty_host_is_refused(fail_to_serve: FailToServe, small: str) -> None:
    ran = fail_to_serve("--host", "", snapshot=small)

    assert ran.exit_code == 2
    assert ran.stderr == "error: --host: empty; use 127.0.0.1 for this machine\n"


def test_an_access_file_allows_any_host(small: str, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(format_access({"the-key": "all"}), encoding="utf-8")

    options = ("--access", str(access), "--host", "0.0.0.0")  # noqa: S104 - a key is required
    with serve(small, *options) as service, Client(service) as client:
        client.send(get(b"a"))
        assert client.read_answer().status == 401


def test_standard_output_warns_that_every_key_is_accepted(service: Service) -> None:
    assert service.process.stdout
    assert service.process.stdout.readline() == (
        b"without --access, any key is valid, and only this machine can connect\n"
    )


def test_a_port_in_use_is_refused(fail_to_serve: FailToServe, service: Service, small: str) -> None:
    ran = fail_to_serve("--port", str(service.port), snapshot=small)

    assert ran.exit_code == 2
    assert f"--port {service.port}: Address already in use; choose another " in ran.stderr


def test_a_port_can_be_reused_at_once(service: Service, small: str) -> None:
    with Client(service) as client:
        client.send(get(b"a"))
        client.read_answer()
        service.stop()

    with serve(small, "--port", str(service.port)) as again, Client(again) as client:
        client.send(get(b"a"))
        assert client.read_answer().body == SERVER_A


def test_a_missing_snapshot_is_refused(fail_to_serve: FailToServe, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.db")
    other = tmp_path / "other.db"
    other.write_bytes(b"SQLite format 3\x00".ljust(4_096, b"\x01"))

    assert fail_to_serve(snapshot=missing).exit_code == 3
    assert fail_to_serve(snapshot=str(tmp_path)).exit_code == 3
    assert fail_to_serve(snapshot=str(other)).exit_code == 3


def test_a_damaged_snapshot_is_refused(
    fail_to_serve: FailToServe, small: str, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.db"
    content = bytearray(Path(small).read_bytes())
    content[-16_384:] = bytes(16_384)
    damaged.write_bytes(content[: 16_384 * 2])

    assert fail_to_serve(snapshot=str(damaged)).exit_code == 3


def test_a_bad_access_file_is_refused(
    fail_to_serve: FailToServe, small: str, tmp_path: Path
) -> None:
    access = tmp_path / "access.toml"
    access.write_text("[plans.all]\noperations = []\nranges = 7\n", encoding="utf-8")

    ran = fail_to_serve("--access", str(access), snapshot=small)
    assert ran.exit_code == 6
    assert f"{access}, line 3: plans.all.ranges: " in ran.stderr
    assert fail_to_serve("--access", str(tmp_path / "none"), snapshot=small).exit_code == 6
    assert fail_to_serve("--access", str(tmp_path), snapshot=small).exit_code == 6


def test_usage_is_checked_before_the_access_file_and_that_before_the_snapshot(
    fail_to_serve: FailToServe, service: Service, tmp_path: Path
) -> None:
    no_access, no_snapshot = ("--access", str(tmp_path / "none")), str(tmp_path / "none.db")

    taken = ("--port", str(service.port))
    assert fail_to_serve(*taken, *no_access, snapshot=no_snapshot).exit_code == 2
    assert fail_to_serve(*no_access, snapshot=no_snapshot).exit_code == 6


def test_usage_and_the_access_file_are_checked_before_the_snapshot_is_searched(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    (tmp_path / "good.toml").write_text(format_access({}), encoding="utf-8")

    assert cli("serve", "--port", "0", "--host", "").exit_code == 2
    assert cli("serve", "--port", "0", "--host", "0.0.0.0").exit_code == 2  # noqa: S104 - it is refused
    assert cli("serve", "--port", "0", "--access", "none.toml").exit_code == 6
    assert cli("serve", "--port", "0", "--access", "good.toml").exit_code == 3
    assert cli("serve", "--port", "0").exit_code == 3


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


def test_a_partial_request_delays_the_stop_until_its_deadline(service: Service) -> None:
    with Client(service) as client:
        client.send(request(COMPARE, HOST, KEY, JSON, b"Content-Length: 71"))
        time.sleep(0.1)
        began = time.monotonic()

        assert service.stop() == 0
        assert time.monotonic() - began < 7
        assert client.read_answer().status == 400
        assert client.read_rest() == b""


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
