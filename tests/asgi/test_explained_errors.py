"""With `--explain-errors`, every error answer has its reason as one harmless line in a header."""

import re
from collections.abc import Callable, Iterator

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asgi.small_service import log_request, serve_small
from srvstat.asgi.headers import build_reason_header
from support.http import (
    COMPARE,
    ERRORS,
    HOST,
    KEY,
    TWO,
    A,
    Client,
    compare,
    get,
    request,
    send_request,
)
from support.process import Service

ONE_LINE = re.compile(r"[!-~](?:[ -~]{0,498}[!-~])?")
INVALID = ERRORS["INVALID_REQUEST"]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small("--explain-errors", "--explore") as running:
        yield running


def test_without_the_option_no_answer_has_a_reason() -> None:
    with serve_small() as service:
        assert "x-srvstat-reason" not in send_request(service, get(b"nobody")).headers


def escape_path(data: bytes) -> bytes:
    return b"".join(b"%%%02X" % byte for byte in data)


def escape_json(data: bytes) -> bytes:
    return b"".join(b"\\u%04x" % byte for byte in data)


Build = Callable[[bytes], bytes]

PLACES: dict[str, Build] = {
    "the path": lambda data: get(escape_path(data)),
    "the query": lambda data: get(b"a?by=" + escape_path(data)),
    "a name": lambda data: get(b"a?" + escape_path(data)),
    "the path, as it is": get,
    "the body": compare,
    "a string": lambda data: compare(TWO[:-1] + b',"range":"' + escape_json(data) + b'"}'),
    "an identifier, as it is": lambda data: compare(TWO.replace(b"a", data, 1)),
    "the type": lambda data: request(
        COMPARE, HOST, KEY, b"Content-Type: application/" + data, body=TWO
    ),
    "the method": lambda data: request(data + A.removeprefix(b"GET"), HOST, KEY),
    "the page": lambda data: request(
        b"GET /explore/data/servers?" + escape_path(data) + b"=1 HTTP/1.1", b"Host: localhost", KEY
    ),
}


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(list(PLACES.values())), st.binary(max_size=99) | st.text().map(str.encode))
@example(PLACES["the path"], b"a\r\nX-Evil: 1\r\n\r\n")
@example(PLACES["an identifier, as it is"], "\u2028\x85\u202e".encode())
def test_whatever_a_client_sends_the_header_is_one_line(
    service: Service, build: Build, data: bytes
) -> None:
    with Client(service) as client:
        client.send(build(data))
        try:
            answer = client.read_any_answer()
        except ValueError:  # uvicorn's answer to malformed HTTP
            return

    if answer.status == 200 or answer.body == b"Invalid HTTP request received.":
        assert "x-srvstat-reason" not in answer.headers
    else:
        assert ONE_LINE.fullmatch(answer.headers["x-srvstat-reason"])
        assert answer.body in ERRORS.values()


@given(st.text(st.characters(), min_size=1))
@example("x" * 9_999)
@example("é" * 500)
@example(" \r\n\x00\x7f\ud800 ")
def test_every_reason_becomes_a_valid_header(reason: str) -> None:
    ((name, value),) = build_reason_header(reason).items()

    assert len(value) <= 500
    assert value.isascii()
    assert value.isprintable()
    h11.Response(status_code=400, headers=[(name, value)])


def test_the_header_has_the_reason_of_the_log(service: Service) -> None:
    long = compare(TWO.replace(b'"a"', b'"a_long_and_invalid_identifier"'))
    header = send_request(service, long).headers["x-srvstat-reason"]

    assert '"..."' in header
    assert log_request(service, long)["reason"] == header.replace("...", "\u2026")
