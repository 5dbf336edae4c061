"""The key of a request never appears in the log, in an answer or in the process's status.

The service explains errors, so answers have the reasons that the log has.
"""

import os
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import pytest

from asgi.log_entries import log_request, wait_for_entries
from asgi.small_service import serve_small
from support.http import COMPARE, HOST, JSON, TWO, A, get, request, send_request
from support.process import Service

GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
"""A key as `srvstat access new-key` generates it."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small("--explain-errors") as running:
        yield running


REQUEST_LINES = {
    "the path": b"GET /gateway/v1/servers/%b HTTP/1.1",
    "an unknown path": b"GET /%b HTTP/1.1",
    "the name of a parameter": b"GET /gateway/v1/servers/a?%b HTTP/1.1",
    "a parameter": b"GET /gateway/v1/servers/a?by=%b HTTP/1.1",
    "a long parameter": b"GET /gateway/v1/servers/a?" + b"x" * 42 + b"%b HTTP/1.1",
    "the method": b"%b /gateway/v1/servers/a HTTP/1.1",
}
BODIES = {
    "a range": TWO[:-1] + b',"range":"%b"}',
    "a number as the range": TWO[:-1] + b',"range":%b}',
    "the name of a property": TWO[:-1] + b',"%b":1}',
    "an identifier": TWO.replace(b'"a"', b'"%b"'),
    "an invalid identifier": TWO.replace(b'"a"', b'"%b_"'),
    "a long identifier": TWO.replace(b'"a"', b'"' + b"x" * 42 + b'%b_"'),
    "a namespace": TWO.replace(b'"id"', b'"%b"', 1),
}


def check_hidden(secret: str, service: Service, sent: bytes) -> None:
    """Check that a secret is neither in the answer to a request nor in the log."""
    answer = send_request(service, sent)
    assert secret not in f"{answer.headers}{answer.body.decode()}"
    assert secret[:8] not in answer.headers.get("x-srvstat-reason", "")
    assert ("x-srvstat-reason" in answer.headers) == (answer.status != HTTPStatus.OK)
    deadline = time.monotonic() + 5
    while answer.headers["x-request-id"] not in str(service.read_log()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert secret[:8] not in str(service.read_log())


@pytest.mark.parametrize("line", REQUEST_LINES.values(), ids=REQUEST_LINES)
@pytest.mark.parametrize(
    "headers", [[b"X-Gateway-Key: " + GENERATED.encode()], []], ids=["with header", "without"]
)
def test_a_key_in_the_request_line_is_hidden(
    line: bytes, headers: list[bytes], service: Service
) -> None:
    check_hidden(GENERATED, service, request(line % GENERATED.encode(), HOST, *headers))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    "key", [GENERATED, "another-key-of-30-characters-X", "secretive_name", "9" * 16, "8" * 70]
)
def test_a_key_in_the_body_is_hidden(body: bytes, key: str, service: Service) -> None:
    header = b"X-Gateway-Key: " + key.encode()

    check_hidden(key, service, request(COMPARE, HOST, header, JSON, body=body % key.encode()))


def test_a_percent_encoded_key_is_hidden(service: Service) -> None:
    encoded = "".join(f"%{ord(character):02x}" for character in GENERATED)
    line = b"GET /gateway/v1/servers/%b HTTP/1.1" % encoded.encode()

    check_hidden(encoded, service, request(line, HOST, b"X-Gateway-Key: " + GENERATED.encode()))
    check_hidden(GENERATED, service, request(line, HOST))


def test_a_key_within_a_valid_identifier_is_hidden(service: Service) -> None:
    header = b"X-Gateway-Key: plain-secret"

    entry = log_request(
        service, request(b"GET /gateway/v1/servers/x-plain-secret-y HTTP/1.1", HOST, header)
    )

    assert entry["servers"] == ["id:[key]"]
    assert entry["reason"] == "no id [key]"


def test_a_key_as_the_request_id_is_replaced(service: Service) -> None:
    request_id = b"X-Request-Id: another-key"

    check_hidden(GENERATED, service, get(b"a", b"X-Request-Id: " + GENERATED.encode()))
    check_hidden(
        "another-key", service, request(A, HOST, b"X-Gateway-Key: another-key", request_id)
    )


def test_a_key_with_quotes_and_letters_beyond_ascii_is_hidden(service: Service) -> None:
    key = 'g"eheim\\nis-schl\u00fcssel'
    in_json = key.replace("\\", "\\\\").replace('"', '\\"')
    body = TWO.replace(b'"a"', f'"{in_json}"'.encode())
    header = b"X-Gateway-Key: " + key.encode()
    line = f"GET /gateway/v1/servers/{quote(key)} HTTP/1.1".encode()
    before = len(service.read_log())

    send_request(service, request(COMPARE, HOST, header, JSON, body=body))
    send_request(service, request(line, HOST, header))

    assert "eheim" not in str(wait_for_entries(service, 2, before))


def test_a_short_key_is_not_hidden(service: Service) -> None:
    entry = log_request(service, request(A, HOST, b"X-Gateway-Key: a"))

    assert entry["servers"] == ["id:a"]


def test_a_key_as_the_content_type_is_hidden(service: Service) -> None:
    header, type_ = b"X-Gateway-Key: " + GENERATED.encode(), b"Content-Type: " + GENERATED.encode()

    check_hidden(GENERATED, service, request(COMPARE, HOST, header, type_, body=TWO))


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs Linux's /proc")
def test_a_key_is_not_in_the_status_of_the_process(service: Service) -> None:
    log_request(service, request(A, HOST, b"X-Gateway-Key: " + GENERATED.encode()))

    for name in ("cmdline", "environ", "comm"):
        shown = Path(f"/proc/{service.process.pid}/{name}").read_bytes()
        assert GENERATED.encode() not in shown
