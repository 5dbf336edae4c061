"""Keys stand nowhere but in their header: not in the log, nor in an answer, nor at the process."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from asgi.log_entries import entries, logged
from asgi.small_service import serving_small
from support.http import COMPARE, HOST, JSON, TWO, A, get, request, send_request
from support.process import Service

OURS = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
"""A key of the form that `srvstat access new-key` makes."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving_small() as under_way:
        yield under_way


PLACES = {
    "the path": b"GET /gateway/v1/servers/%b HTTP/1.1",
    "an unknown path": b"GET /%b HTTP/1.1",
    "the name of a parameter": b"GET /gateway/v1/servers/a?%b HTTP/1.1",
    "a parameter": b"GET /gateway/v1/servers/a?by=%b HTTP/1.1",
    "a long parameter": b"GET /gateway/v1/servers/a?" + b"x" * 42 + b"%b HTTP/1.1",
    "the method": b"%b /gateway/v1/servers/a HTTP/1.1",
}
BODIES = {
    "a range": TWO[:-1] + b',"range":"%b"}',
    "the name of a property": TWO[:-1] + b',"%b":1}',
    "an identifier": TWO.replace(b'"a"', b'"%b_"'),
    "a long identifier": TWO.replace(b'"a"', b'"' + b"x" * 42 + b'%b_"'),
    "a namespace": TWO.replace(b'"id"', b'"%b"', 1),
}


def is_without(secret: str, service: Service, sent: bytes) -> None:
    """See that a secret stands neither in the answer to a request nor in its entry."""
    answer = send_request(service, sent)
    assert secret not in f"{answer.headers}{answer.body.decode()}"
    deadline = time.monotonic() + 5
    while answer.headers["x-request-id"] not in str(service.log()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert secret[:8] not in str(service.log())


@pytest.mark.parametrize("line", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("headers", [[b"X-Gateway-Key: " + OURS.encode()], []], ids=["and", "not"])
def test_a_key_in_the_first_line_is_not_told(
    line: bytes, headers: list[bytes], service: Service
) -> None:
    is_without(OURS, service, request(line % OURS.encode(), HOST, *headers))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("key", [OURS, "another-key-of-30-characters-X"])
def test_a_key_in_the_body_is_not_told(body: bytes, key: str, service: Service) -> None:
    header = b"X-Gateway-Key: " + key.encode()

    is_without(key, service, request(COMPARE, HOST, header, JSON, body=body % key.encode()))


def test_an_encoded_key_is_not_told_either(service: Service) -> None:
    encoded = "".join(f"%{ord(character):02x}" for character in OURS)
    line = b"GET /gateway/v1/servers/%b HTTP/1.1" % encoded.encode()

    is_without(encoded, service, request(line, HOST, b"X-Gateway-Key: " + OURS.encode()))
    is_without(OURS, service, request(line, HOST))


@pytest.mark.parametrize("before", range(940, 1_000, 7))
def test_a_key_where_a_path_is_cut_is_not_told(before: int, service: Service) -> None:
    path = b"x" * before + OURS.encode()

    is_without(OURS, service, request(b"GET /%b HTTP/1.1" % path, HOST))


def test_a_key_as_the_name_of_a_request_is_not_told(service: Service) -> None:
    name = b"X-Request-Id: another-key"

    is_without(OURS, service, get(b"a", b"X-Request-Id: " + OURS.encode()))
    is_without("another-key", service, request(A, HOST, b"X-Gateway-Key: another-key", name))


def test_a_key_of_other_characters_is_not_told(service: Service) -> None:
    key = 'g"eheim\\nis-schl\u00fcssel'
    in_json = key.replace("\\", "\\\\").replace('"', '\\"')
    body = TWO.replace(b'"a"', f'"{in_json}"'.encode())
    header = b"X-Gateway-Key: " + key.encode()
    line = f"GET /gateway/v1/servers/{quote(key)} HTTP/1.1".encode()
    before = len(service.log())

    send_request(service, request(COMPARE, HOST, header, JSON, body=body))
    send_request(service, request(line, HOST, header))

    assert "eheim" not in str(entries(service, 2, before))


def test_a_short_key_is_no_secret(service: Service) -> None:
    entry = logged(service, request(A, HOST, b"X-Gateway-Key: servers"))

    assert entry["path"] == "/gateway/v1/servers/a"


def test_a_key_as_the_type_of_a_body_is_not_told(service: Service) -> None:
    header, of = b"X-Gateway-Key: " + OURS.encode(), b"Content-Type: " + OURS.encode()

    is_without(OURS, service, request(COMPARE, HOST, header, of, body=TWO))


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="Linux shows processes there")
def test_a_key_is_nowhere_to_be_seen_at_the_process(service: Service) -> None:
    logged(service, request(A, HOST, b"X-Gateway-Key: " + OURS.encode()))

    for name in ("cmdline", "environ", "comm"):
        shown = Path(f"/proc/{service.process.pid}/{name}").read_bytes()
        assert OURS.encode() not in shown
