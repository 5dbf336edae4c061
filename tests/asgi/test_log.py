"""The log: one JSON object a line for each request, harmless, whole, and in nobody's way."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asgi.log_entries import entries, logged
from asgi.small_service import SERVER_A, build_small
from support.http import (
    COMPARE,
    ERRORS,
    HOST,
    JSON,
    KEY,
    TWO,
    A,
    Client,
    compare,
    get,
    request,
    send_request,
)
from support.process import Service, serve


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def service(small: str) -> Iterator[Service]:
    with serve(small) as under_way:
        yield under_way


def told(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what can be known of an entry before."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert re.fullmatch(r"127\.0\.0\.1:\d+", entry.pop("remote"))
    assert re.fullmatch(r"[0-9a-f]{16}", entry.pop("id"))
    assert isinstance(entry.pop("ms"), float)
    return entry


def test_an_answer_has_its_entry(service: Service) -> None:
    assert told(logged(service, get(b"a?by=id"))) == {
        "method": "GET",
        "path": "/gateway/v1/servers/a",
        "caller": "8254c329",
        "status": 200,
        "bytes": len(SERVER_A),
    }


def test_an_error_says_what_is_wrong_in_the_log_alone(service: Service) -> None:
    assert told(logged(service, compare(TWO.replace(b'"b"', b'"zz"')))) == {
        "method": "POST",
        "path": "/gateway/v1/compare",
        "caller": "8254c329",
        "code": "SERVER_NOT_FOUND",
        "reason": "servers[1]: no id zz",
        "status": 404,
        "bytes": len(ERRORS["SERVER_NOT_FOUND"]),
    }


def test_whoever_has_no_key_has_no_name(service: Service) -> None:
    assert told(logged(service, request(A, HOST))) == {
        "method": "GET",
        "path": "/gateway/v1/servers/a",
        "code": "GATEWAY_UNAUTHORIZED",
        "reason": "X-Gateway-Key: missing or empty",
        "status": 401,
        "bytes": len(ERRORS["GATEWAY_UNAUTHORIZED"]),
    }


def test_the_answer_to_head_has_no_bytes(service: Service) -> None:
    entry = logged(service, request(A.replace(b"GET", b"HEAD"), HOST, KEY))

    assert (entry["method"], entry["status"], entry["bytes"]) == ("HEAD", 200, 0)


def test_what_is_no_http_has_one_entry(service: Service) -> None:
    before = len(service.log())
    send_request(service, b"GET / / HTTP/1.1\r\n\r\n")

    (entry,) = entries(service, 1, before)
    assert (entry["status"], entry["code"]) == (400, "INVALID_REQUEST")
    assert entry["reason"] == "not HTTP/1.1, or a head that is too long"


def test_the_port_of_a_client_is_told_apart_from_its_address(small: str) -> None:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no ::1")
    with serve(small, "--host", "::1") as service:
        for before, sent in enumerate((get(b"a"), b"GET / / HTTP/1.1\r\n\r\n")):
            with socket.create_connection(("::1", service.port), timeout=10) as client:
                client.sendall(sent)
                assert client.recv(1)
                here = f"[::1]:{client.getsockname()[1]}"
            assert entries(service, 1, before)[0]["remote"] == here


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("path", b"GET /%b HTTP/1.1"),
        ("method", b"%b /gateway/v1/servers/a HTTP/1.1"),
    ],
)
def test_what_is_long_is_cut(field: str, sent: bytes, service: Service) -> None:
    begun = "/" if field == "path" else ""

    told_whole = logged(service, request(sent % (b"x" * (1_000 - len(begun))), HOST, KEY))
    told_in_part = logged(service, request(sent % (b"x" * (1_001 - len(begun))), HOST, KEY))

    assert told_whole[field] == begun.ljust(1_000, "x")
    assert told_in_part[field] == begun.ljust(999, "x") + "…"


@pytest.mark.parametrize("status", [400, 401])
def test_a_body_of_no_http_has_one_entry(status: int, service: Service) -> None:
    key = KEY if status == 400 else b"X-Gateway-Key:"
    before = len(service.log())
    sent = request(COMPARE, HOST, key, JSON, b"Transfer-Encoding: chunked") + b"zz\r\n"
    send_request(service, sent)

    (entry,) = entries(service, 1, before)
    assert entry["status"] == status


def test_a_client_that_leaves_has_its_entry(service: Service) -> None:
    before = len(service.log())
    with Client(service) as client:
        client.send(compare(TWO)[:-1])
        time.sleep(0.1)

    (entry,) = entries(service, 1, before)
    assert (entry["method"], entry["path"]) == ("POST", "/gateway/v1/compare")
    assert entry["reason"] == "body: broken off, or chunks that are none"


@pytest.mark.parametrize("name", ["7", "a.B_c~d-9", "x" * 128])
def test_a_harmless_name_of_a_request_is_taken_over(name: str, service: Service) -> None:
    entry = logged(service, get(b"a", b"X-Request-Id: " + name.encode()))

    assert entry["id"] == name


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", 'a"b', "a/b", "a\u00e4", "a\x1b[31m"])
def test_any_other_name_is_made_anew(name: str, service: Service) -> None:
    told(logged(service, get(b"a", b"X-Request-Id: " + name.encode())))


def test_two_names_are_none(service: Service) -> None:
    told(logged(service, get(b"a", b"X-Request-Id: 7", b"X-Request-Id: 8")))


def test_nothing_in_the_log_can_drive_a_terminal(service: Service) -> None:
    harmful = "\x1b[31m\n\r\x00\x7f\u009b\u202e\u2028"
    logged(service, get(quote(harmful).encode()))
    logged(service, get(b"a?" + quote(harmful).encode()))
    logged(service, compare(TWO[:-1] + f',"{harmful[1:4]}{harmful[-3:]}":1}}'.encode()))
    before = len(service.log())
    send_request(service, b"GET /\x1b[31m HTTP/1.1\r\n\r\n")
    entries(service, 1, before)

    assert re.fullmatch(rb"[\x20-\x7e\n]+", service.log_path.read_bytes())


def test_each_of_many_clients_has_its_entries_whole(service: Service) -> None:
    before = len(service.log())

    def ask(number: int) -> None:
        with Client(service) as client:
            for turn in range(50):
                client.send(get(b"a", b"X-Request-Id: %d-%d" % (number, turn)))
                assert client.read_answer().status == 200

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(ask, range(8)))

    names = {entry["id"] for entry in entries(service, 400, before)}
    assert names == {f"{number}-{turn}" for number in range(8) for turn in range(50)}


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "<&- 2>&-", ""])
def test_a_log_that_cannot_be_written_holds_nothing_up(
    stderr: str, small: str, tmp_path: Path
) -> None:
    if stderr == "2>/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", small, "--port", "0"]
    with subprocess.Popen(
        ["sh", "-c", f'exec "$@" {stderr}', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # nobody reads it, and it is soon full
    ) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline().rpartition(b":")[2])
            with Client(Service(process, port, tmp_path)) as client:
                for _ in range(40):
                    client.send(get(b"a") * 20)
                    assert [client.read_answer().body for _ in range(20)] == [SERVER_A] * 20
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5) == 143
        finally:
            process.kill()
