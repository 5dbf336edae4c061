"""Bodies, content types, keys and the order of checks, as bytes on a socket."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from asgi.small_service import (
    COMPARISON,
    INVALID_REQUEST,
    MALFORMED,
    NOT_FOUND,
    POST_ONLY,
    SERVER_FOUND,
    UNAUTHORIZED,
    UNKNOWN_PATH,
    serve_small,
)
from support.http import COMPARE, HOST, JSON, KEY, TWO, A, Expected, check_answer, compare, request
from support.process import Service


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


def compare_as(*headers: bytes) -> bytes:
    """Return a comparison with the given headers about its body."""
    return request(COMPARE, HOST, KEY, *headers, body=TWO)


TYPES = {
    "JSON": (compare_as(JSON), COMPARISON),
    "JSON of UTF-8": (compare_as(JSON + b"; charset=utf-8"), COMPARISON),
    "JSON declared as UTF-16": (compare_as(JSON + b";charset=utf-16"), COMPARISON),
    "JSON in capitals": (compare_as(JSON.upper()), COMPARISON),
    "JSON with an empty parameter": (compare_as(JSON + b" ;"), COMPARISON),
    "nothing": (compare_as(), INVALID_REQUEST),
    "an empty type": (compare_as(b"Content-Type:"), INVALID_REQUEST),
    "JSON twice": (compare_as(JSON, JSON), INVALID_REQUEST),
    "two types in one": (compare_as(JSON + b", application/json"), INVALID_REQUEST),
    "text/json": (compare_as(b"Content-Type: text/json"), INVALID_REQUEST),
    "application/jsonp": (compare_as(JSON + b"p"), INVALID_REQUEST),
    "application/problem+json": (
        compare_as(b"Content-Type: application/problem+json"),
        INVALID_REQUEST,
    ),
    "a form": (compare_as(b"Content-Type: application/x-www-form-urlencoded"), INVALID_REQUEST),
    "anything": (compare_as(b"Content-Type: */*"), INVALID_REQUEST),
    "gzip": (compare_as(JSON, b"Content-Encoding: gzip"), INVALID_REQUEST),
    "identity": (compare_as(JSON, b"Content-Encoding: identity"), INVALID_REQUEST),
    "accepts gzip": (compare_as(JSON, b"Accept-Encoding: gzip, br"), COMPARISON),
    "accepts only HTML": (compare_as(JSON, b"Accept: text/html"), COMPARISON),
    "conditional": (compare_as(JSON, b"If-None-Match: *", b"Range: bytes=0-5"), COMPARISON),
}

DEEP = b'{"servers":' + b"[" * 8_000 + b"]" * 8_000 + b"}"
BODIES = {
    "16,384 bytes": (TWO.ljust(16_384), COMPARISON),
    "16,385 bytes": (TWO.ljust(16_385), INVALID_REQUEST),
    "100,000 bytes": (TWO.ljust(100_000), INVALID_REQUEST),
    "nothing": (b"", INVALID_REQUEST),
    "white space": (b" \r\n\t", INVALID_REQUEST),
    "white space around it": (b" \r\n\t" + TWO + b"\n", COMPARISON),
    "an array": (b"[%b]" % TWO, INVALID_REQUEST),
    "null": (b"null", INVALID_REQUEST),
    "cut off": (TWO[:-1], INVALID_REQUEST),
    "a byte order mark": (b"\xef\xbb\xbf" + TWO, INVALID_REQUEST),
    "UTF-16": (TWO.decode().encode("utf-16"), INVALID_REQUEST),
    "invalid UTF-8": (TWO.replace(b'"a"', b'"\xff"'), INVALID_REQUEST),
    "something after it": (TWO + b"{}", INVALID_REQUEST),
    "NUL after it": (TWO + b"\x00", INVALID_REQUEST),
    "a repeated key": (TWO[:-1] + b',"range":"7d","range":"7d"}', INVALID_REQUEST),
    "NaN": (TWO[:-1] + b',"range":NaN}', INVALID_REQUEST),
    "a range of null": (TWO[:-1] + b',"range":null}', INVALID_REQUEST),
    "an unknown range": (TWO[:-1] + b',"range":"8d"}', INVALID_REQUEST),
    "an unknown property": (TWO[:-1] + b',"more":1}', INVALID_REQUEST),
    "a number for a string": (TWO.replace(b'"a"', b"1"), INVALID_REQUEST),
    "a namespace in capitals": (TWO.replace(b'"id"', b'"ID"'), INVALID_REQUEST),
    "no namespace": (TWO.replace(b',"by":"id"', b""), INVALID_REQUEST),
    "a lone surrogate": (TWO.replace(b'"a"', rb'"\ud800"'), INVALID_REQUEST),
    "a newline after an identifier": (TWO.replace(b'"a"', rb'"a\n"'), INVALID_REQUEST),
    "the same reference twice": (TWO.replace(b'"b"', b'"a"'), INVALID_REQUEST),
    "one server": (b'{"servers":[{"identifier":"a","by":"id"}]}', INVALID_REQUEST),
    "nested too deeply": (DEEP, INVALID_REQUEST),
    "an integer of 9,000 digits": (b'{"servers":%b}' % (b"9" * 9_000), INVALID_REQUEST),
    "an unknown server": (TWO.replace(b'"b"', b'"zz"'), NOT_FOUND),
    "a hidden server": (TWO.replace(b'"b"', b'"hidden"'), NOT_FOUND),
    "escapes": (TWO.replace(b'"a"', rb'"\u0061"'), COMPARISON),
}

GET_BODIES = {
    "a body": (request(A, HOST, KEY, body=b"{}"), INVALID_REQUEST),
    "an empty body": (request(A, HOST, KEY, body=b""), SERVER_FOUND),
    "an empty body of type JSON": (request(A, HOST, KEY, JSON, body=b""), SERVER_FOUND),
    "a chunked body": (
        request(A, HOST, KEY, b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
        INVALID_REQUEST,
    ),
    "a body of two million bytes": (
        request(A, HOST, KEY, body=bytes(2_000_000)),
        INVALID_REQUEST._replace(stays=False),
    ),
    "an expectation": (request(A, HOST, KEY, b"Expect: 100-continue"), SERVER_FOUND),
}


def get_with(*headers: bytes) -> bytes:
    return request(A, HOST, *headers)


KEYS = {
    "no key": (get_with(), UNAUTHORIZED),
    "an empty key": (get_with(b"X-Gateway-Key:"), UNAUTHORIZED),
    "nothing but spaces": (get_with(b"X-Gateway-Key:  \t "), UNAUTHORIZED),
    "a key twice": (get_with(KEY, KEY), UNAUTHORIZED),
    "two keys": (get_with(KEY, b"x-gateway-KEY: other"), UNAUTHORIZED),
    "a key and an empty one": (get_with(KEY, b"X-Gateway-Key:"), UNAUTHORIZED),
    "a key between spaces and tabs": (get_with(b"X-Gateway-Key: \t k \t "), SERVER_FOUND),
    "a key in capitals": (get_with(KEY.upper()), SERVER_FOUND),
    "a key beyond ASCII": (get_with("X-Gateway-Key: schlüssel".encode()), SERVER_FOUND),
    "a key that is not UTF-8": (get_with(b"X-Gateway-Key: \xff\xfe"), SERVER_FOUND),
    "a key of 15,000 bytes": (get_with(b"X-Gateway-Key: " + b"k" * 15_000), SERVER_FOUND),
    "a key of 40,000 bytes": (get_with(b"X-Gateway-Key: " + b"k" * 40_000), MALFORMED),
    "a header with underscores": (get_with(b"X_Gateway_Key: k"), UNAUTHORIZED),
    "a bearer token": (get_with(b"Authorization: Bearer k"), UNAUTHORIZED),
    "a cookie": (get_with(b"Cookie: X-Gateway-Key=k"), UNAUTHORIZED),
}

TABLE = {
    **{f"content type: {name}": row for name, row in TYPES.items()},
    **{f"body: {name}": (compare(body), expected) for name, (body, expected) in BODIES.items()},
    **{f"body of Get Server: {name}": row for name, row in GET_BODIES.items()},
    **{f"key: {name}": row for name, row in KEYS.items()},
}


@pytest.mark.parametrize(("sent", "expected"), TABLE.values(), ids=TABLE)
def test_request_has_the_expected_answer(sent: bytes, expected: Expected, service: Service) -> None:
    check_answer(service, sent, expected)


# Each fault and its answer, in the order of the checks (D11).
FAULTS = {
    "key": UNAUTHORIZED,
    "path": UNKNOWN_PATH,
    "method": POST_ONLY,
    "query": INVALID_REQUEST,
    "type": INVALID_REQUEST,
    "encoding": INVALID_REQUEST,
    "body": INVALID_REQUEST,
    "server": NOT_FOUND,
}


def build_faulty_comparison(*faults: str) -> bytes:
    """Return a comparison with faults."""
    parts = {
        "path": b"/gateway/v1/compare",
        "method": b"POST",
        "query": b"",
        "key": KEY,
        "type": JSON,
        "encoding": b"Accept: */*",
    }
    bad = {
        "path": b"/gateway/v1/comparison",
        "method": b"PUT",
        "query": b"?by=id",
        "key": b"X-Gateway-Key:",
        "type": b"Content-Type: text/plain",
        "encoding": b"Content-Encoding: gzip",
    }
    parts |= {fault: bad[fault] for fault in faults if fault in bad}
    body = TWO
    if "server" in faults:
        body = body.replace(b'"b"', b'"zz"')
    if "body" in faults:
        body = body[:-1]
    line = b"%b %b%b HTTP/1.1" % (parts["method"], parts["path"], parts["query"])
    return request(line, HOST, parts["key"], parts["type"], parts["encoding"], body=body)


PAIRS = list(combinations(FAULTS, 2))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_first_check_that_fails_decides_the_answer(
    first: str, second: str, service: Service
) -> None:
    check_answer(service, build_faulty_comparison(first), FAULTS[first])
    check_answer(service, build_faulty_comparison(second), FAULTS[second])
    check_answer(service, build_faulty_comparison(first, second), FAULTS[first])


def test_the_key_is_checked_first(service: Service) -> None:
    check_answer(service, build_faulty_comparison(*FAULTS), UNAUTHORIZED)
    check_answer(service, build_faulty_comparison(*list(FAULTS)[1:]), UNKNOWN_PATH)
