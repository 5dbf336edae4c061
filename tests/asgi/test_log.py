"""The log: one harmless JSON object a line for each request, without keys.

No answer waits for it. `log_request` checks that an explained error has the reason of the log.
"""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from asgi.small_service import (
    SERVER_A,
    build_small,
    format_access,
    log_request,
    serve_small,
    wait_for_entries,
)
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
from support.process import ForkedCommand, Service, serve


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def service(small: str) -> Iterator[Service]:
    with serve(small) as running:
        yield running


def pop_variable_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Check and remove the fields that vary, and return the others."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert re.fullmatch(r"127\.0\.0\.1:\d+", entry.pop("remote"))
    assert re.fullmatch(r"[0-9a-f]{16}", entry.pop("id"))
    assert isinstance(entry.pop("ms"), float)
    return entry


def test_get_server_is_logged(service: Service) -> None:
    assert pop_variable_fields(log_request(service, get(b"a?by=id"))) == {
        "method": "GET",
        "operation": "getServer",
        "caller": "8254c329",
        "servers": ["id:a"],
        "status": 200,
        "bytes": len(SERVER_A),
    }


def test_an_error_is_logged_with_its_reason(service: Service) -> None:
    assert pop_variable_fields(log_request(service, compare(TWO.replace(b'"b"', b'"zz"')))) == {
        "method": "POST",
        "operation": "compareServers",
        "caller": "8254c329",
        "servers": ["id:a", "id:zz"],
        "range": "30d",
        "code": "SERVER_NOT_FOUND",
        "reason": "servers[1]: no server with id zz",
        "status": 404,
        "bytes": len(ERRORS["SERVER_NOT_FOUND"]),
    }


def test_an_ipv6_address_is_logged_in_brackets(small: str) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no ::1")
    with serve(small, "--host", "::1") as service:
        with socket.create_connection(("::1", service.port), timeout=10) as client:
            client.sendall(get(b"a"))
            assert client.recv(1)
            here = f"[::1]:{client.getsockname()[1]}"
        assert wait_for_entries(service, 1)[0]["remote"] == here


@pytest.mark.parametrize(
    ("line", "method", "operation"),
    [
        (b"GET /nowhere HTTP/1.1", "GET", None),
        (b"DELETE /gateway/v1/compare HTTP/1.1", "DELETE", "compareServers"),
        (b"BREW /gateway/v1/servers/a HTTP/1.1", "other", "getServer"),
        (b"GET http://x/healthz HTTP/1.1", "GET", "getHealth"),
        (b"HEAD /readyz HTTP/1.1", "HEAD", "getReadiness"),
        (b"GET /openapi.json HTTP/1.1", "GET", "getOpenApi"),
    ],
)
def test_only_known_methods_and_paths_are_named(
    line: bytes, method: str, operation: str | None, service: Service
) -> None:
    entry = log_request(service, request(line, HOST, KEY))

    assert (entry["method"], entry.get("operation")) == (method, operation)


def test_a_client_that_leaves_is_logged(service: Service) -> None:
    before = len(service.read_log())
    with Client(service) as client:
        client.send(compare(TWO)[:-1])
        time.sleep(0.1)

    (entry,) = wait_for_entries(service, 1, before)
    assert (entry["method"], entry["operation"]) == ("POST", "compareServers")
    assert entry["reason"] == "the client closed the connection"


@pytest.mark.parametrize("request_id", ["7", "a.B_c~d-9", "x" * 128])
def test_a_harmless_request_id_is_kept(request_id: str, service: Service) -> None:
    entry = log_request(service, get(b"a", b"X-Request-Id: " + request_id.encode()))

    assert entry["id"] == request_id


@pytest.mark.parametrize("request_id", ["", "x" * 129, "a b", 'a"b', "a/b", "a\u00e4", "a\x1b[31m"])
def test_any_other_request_id_is_replaced(request_id: str, service: Service) -> None:
    entry = log_request(service, get(b"a", b"X-Request-Id: " + request_id.encode()))

    pop_variable_fields(entry)


def test_the_log_is_printable_ascii(service: Service) -> None:
    harmful = "\x1b[31m\n\r\x00\x7f\u009b\u202e\u2028"
    log_request(service, get(quote(harmful).encode()))
    log_request(service, get(b"a?" + quote(harmful).encode()))
    log_request(service, compare(TWO[:-1] + f',"{harmful[1:4]}{harmful[-3:]}":1}}'.encode()))

    assert re.fullmatch(rb"[\x20-\x7e\n]+", service.log_path.read_bytes())


STEPS = """
  docs     {url}/docs
  explore  {url}/
  try      curl {url}/gateway/v1/servers/b -H 'X-Gateway-Key: any'
  servers  b
           a
  Ctrl+C stops the service

"""
"""What a terminal shows before the first request."""

REQUESTS = """\
TIME GET /v1/servers/b 200 MS
TIME GET / 200 MS
TIME HEAD /healthz 200 MS
TIME POST /v1/compare 200 MS  a, b; 30d
TIME GET /v1/servers/zz 404 MS  no server with id zz
TIME GET /v1/servers/... 400 MS  identifier: "..." may only contain letters, digits and hyphens
TIME GET another path 401 MS  X-Gateway-Key: missing or empty
"""


def test_a_terminal_shows_what_to_try_and_then_short_lines(small: str) -> None:
    ours, theirs = pty.openpty()
    arguments = ["serve", "--snapshot", small, "--port", "0", "--explore"]
    with ForkedCommand(arguments, theirs) as process:
        os.close(theirs)
        try:
            url = process.stdout.readline().decode().split()[-1]
            said = read_terminal(ours, STEPS.count("\n"))
            assert said == STEPS.format(url=url)
            (example,) = re.findall("curl .*", said)
            ran = subprocess.run(["sh", "-c", f"{example} -sS"], capture_output=True, check=False)
            assert b'{"data":{"id":"b",' in ran.stdout
            with Client(Service(process, int(url.rpartition(":")[2]), Path())) as client:
                for sent in (
                    request(b"GET / HTTP/1.1", b"Host: localhost"),
                    request(b"HEAD /healthz HTTP/1.1", HOST),
                    compare(TWO),
                    get(b"zz"),
                    get(b"%1b[31mred"),
                    request(b"GET /%1b[31mred HTTP/1.1", HOST),
                ):
                    client.send(sent)
                    client.read_any_answer(to_head=sent.startswith(b"HEAD"))
            said = read_terminal(ours, REQUESTS.count("\n"))
        finally:
            process.send_signal(signal.SIGINT)
    os.close(ours)
    plain = re.sub("\x1b\\[[0-9]*m", "", said)
    assert re.sub(r"[\d.]+ ms", "MS", re.sub(r"\d\d:\d\d:\d\d", "TIME", plain)) == REQUESTS


def read_terminal(terminal: int, lines: int) -> str:
    """Read a number of lines that a program writes to a terminal."""
    said = b""
    while said.count(b"\n") < lines:
        said += os.read(terminal, 65_536)
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("stderr", ["2>/dev/full", "<&- 2>&-"])
def test_an_unwritable_log_delays_no_answer(stderr: str, small: str, tmp_path: Path) -> None:
    if stderr == "2>/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", small, "--port", "0"]
    with subprocess.Popen(
        ["sh", "-c", f'exec "$@" {stderr}', "sh", *command], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline().rpartition(b":")[2])
            with Client(Service(process, port, tmp_path)) as client:
                for _ in range(20):  # 85,000 bytes, more than a pipe holds
                    client.send(get(b"a") * 20)
                    assert [client.read_answer().body for _ in range(20)] == [SERVER_A] * 20
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("blocks", [True, False])
def test_a_log_that_nobody_reads_delays_neither_answers_nor_the_stop(
    blocks: bool, small: str
) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, blocks)
    command = [sys.executable, "-m", "srvstat", "serve", "--snapshot", small, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer) as process:
        assert process.stdout
        port = int(process.stdout.readline().rpartition(b":")[2])
        with Client(Service(process, port, Path())) as client:
            for _ in range(20):
                client.send(get(b"a" * 128) * 20)
                assert [client.read_answer().status for _ in range(20)] == [404] * 20
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
    os.close(reader)
    os.close(writer)


GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
"""A key as `srvstat access new-key` generates it."""
REGISTERED = "correct-horse-battery-staple"
"""A key that a person has chosen; the access file has its digest."""
QUOTED = 'gr\u00fcn "und" blau\\rot'
"""Another one, which JSON writes with escapes."""
OWN = "plain-secret-of-a-request"
SECRETS = [GENERATED, REGISTERED, QUOTED, OWN]
SECRET_WORDS = [GENERATED[:8], "Ab3_", "horse", "blau", "plain-secret"]


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    access = tmp_path_factory.mktemp("access") / "access.toml"
    keys = dict.fromkeys((REGISTERED, QUOTED, OWN, "servers"), "all")
    access.write_text(format_access(keys), encoding="utf-8")
    with serve_small("--access", str(access), "--explain-errors") as running:
        yield running


def with_own(line: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    return request(line, HOST, b"X-Gateway-Key: " + OWN.encode(), *headers, body=body)


LINES = [
    b"GET /gateway/v1/servers/%b HTTP/1.1",
    b"GET /gateway/v1/servers/a?by=%b HTTP/1.1",
    b"GET /gateway/v1/servers/a?" + b"x" * 42 + b"%b HTTP/1.1",
    b"GET http://x/%b/%b HTTP/1.1",
]
BODIES = [
    TWO[:-1] + b',"range":%b}',
    TWO[:-1] + b",%b:1}",
    TWO.replace(b'"a"', b"%b"),
    TWO.replace(b'"id"', b"%b", 1),
]


@pytest.mark.parametrize("key", SECRETS)
def test_a_key_in_the_request_line_or_the_body_is_hidden(key: str, explained: Service) -> None:
    escaped = "".join(f"%{byte:02x}" for byte in key.encode())
    for line in LINES:
        for written in (escaped, quote(key)):
            sent = line.replace(b"%b", written.encode())
            entry = log_request(explained, with_own(sent))
            for word in (*SECRET_WORDS, escaped):
                assert word not in str(entry), sent
    for body in BODIES:
        sent = body.replace(b"%b", json.dumps(key).encode())
        entry = log_request(explained, with_own(COMPARE, JSON, body=sent))
        assert not [word for word in SECRET_WORDS if word in str(entry)]
        assert "[key]" in entry["reason"] or '"…"' in entry["reason"]


def test_a_key_in_another_header_is_hidden(explained: Service) -> None:
    for key in (GENERATED, REGISTERED, OWN):
        answer = send_request(explained, with_own(A, b"X-Request-Id: " + key.encode()))
        type_ = b"Content-Type: " + key.encode()
        entry = log_request(explained, with_own(COMPARE, type_, body=TWO))

        assert key not in str(answer.headers)
        assert key not in str(entry)
        assert key not in str(explained.read_log())


def test_what_is_no_key_is_not_hidden(explained: Service) -> None:
    entry = log_request(
        explained,
        with_own(
            b"GET /gateway/v1/servers/%63orrect-horse HTTP/1.1", b"X-Request-Id: correct-horse"
        ),
    )
    short = log_request(explained, with_own(b"GET /gateway/v1/servers/servers HTTP/1.1"))

    assert (entry["servers"], entry["reason"]) == (
        ["id:correct-horse"],
        "no server with id correct-horse",
    )
    assert entry["id"] == "correct-horse"
    assert short["servers"] == ["id:servers"]  # a registered key of few letters


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs Linux's /proc")
def test_a_key_is_not_in_the_status_of_the_process(explained: Service) -> None:
    send_request(
        explained, get(b"a", b"X-Request-Id: 1").replace(b"Key: k", b"Key: " + OWN.encode())
    )

    for name in ("cmdline", "environ", "comm"):
        assert OWN.encode() not in Path(f"/proc/{explained.process.pid}/{name}").read_bytes()
