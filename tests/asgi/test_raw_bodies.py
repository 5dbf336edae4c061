"""Bodies and what is said of them, keys, and which of two faults is told, as bytes on a socket."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from asgi.small_service import (
    ANSWERED,
    BROKEN,
    NO_SUCH_PATH,
    NOT_FOUND,
    NOT_TO_POST,
    REFUSED,
    SHOWN,
    UNAUTHORIZED,
    serving_small,
)
from support.http import COMPARE, HOST, JSON, KEY, TWO, A, Expected, check_answer, compare, request
from support.process import Service


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving_small() as under_way:
        yield under_way


def typed(*headers: bytes) -> bytes:
    """Return a comparison with headers of its own about what its body is."""
    return request(COMPARE, HOST, KEY, *headers, body=TWO)


TYPES = {
    "JSON": (typed(JSON), ANSWERED),
    "JSON of UTF-8": (typed(JSON + b"; charset=utf-8"), ANSWERED),
    "JSON of UTF-16, as it says": (typed(JSON + b";charset=utf-16"), ANSWERED),
    "JSON in capitals": (typed(JSON.upper()), ANSWERED),
    "JSON with an empty parameter": (typed(JSON + b" ;"), ANSWERED),
    "nothing": (typed(), REFUSED),
    "an empty type": (typed(b"Content-Type:"), REFUSED),
    "JSON twice": (typed(JSON, JSON), REFUSED),
    "two types in one": (typed(JSON + b", application/json"), REFUSED),
    "text/json": (typed(b"Content-Type: text/json"), REFUSED),
    "application/jsonp": (typed(JSON + b"p"), REFUSED),
    "application/problem+json": (typed(b"Content-Type: application/problem+json"), REFUSED),
    "a form": (typed(b"Content-Type: application/x-www-form-urlencoded"), REFUSED),
    "anything": (typed(b"Content-Type: */*"), REFUSED),
    "gzip": (typed(JSON, b"Content-Encoding: gzip"), REFUSED),
    "identity": (typed(JSON, b"Content-Encoding: identity"), REFUSED),
    "an answer that may be gzip": (typed(JSON, b"Accept-Encoding: gzip, br"), ANSWERED),
    "an answer that must be HTML": (typed(JSON, b"Accept: text/html"), ANSWERED),
    "only if it changed": (typed(JSON, b"If-None-Match: *", b"Range: bytes=0-5"), ANSWERED),
}

DEEP = b'{"servers":' + b"[" * 8_000 + b"]" * 8_000 + b"}"
BODIES = {
    "16,384 bytes": (TWO.ljust(16_384), ANSWERED),
    "16,385 bytes": (TWO.ljust(16_385), REFUSED),
    "100,000 bytes": (TWO.ljust(100_000), REFUSED),
    "nothing": (b"", REFUSED),
    "white space": (b" \r\n\t", REFUSED),
    "white space around it": (b" \r\n\t" + TWO + b"\n", ANSWERED),
    "an array": (b"[%b]" % TWO, REFUSED),
    "null": (b"null", REFUSED),
    "cut off": (TWO[:-1], REFUSED),
    "a byte order mark": (b"\xef\xbb\xbf" + TWO, REFUSED),
    "UTF-16": (TWO.decode().encode("utf-16"), REFUSED),
    "no UTF-8": (TWO.replace(b'"a"', b'"\xff"'), REFUSED),
    "something after it": (TWO + b"{}", REFUSED),
    "NUL after it": (TWO + b"\x00", REFUSED),
    "a repeated key": (TWO[:-1] + b',"range":"7d","range":"7d"}', REFUSED),
    "NaN": (TWO[:-1] + b',"range":NaN}', REFUSED),
    "a range of null": (TWO[:-1] + b',"range":null}', REFUSED),
    "a range that is none": (TWO[:-1] + b',"range":"8d"}', REFUSED),
    "an unknown property": (TWO[:-1] + b',"more":1}', REFUSED),
    "a number for a string": (TWO.replace(b'"a"', b"1"), REFUSED),
    "a namespace in capitals": (TWO.replace(b'"id"', b'"ID"'), REFUSED),
    "no namespace": (TWO.replace(b',"by":"id"', b""), REFUSED),
    "a lone surrogate": (TWO.replace(b'"a"', rb'"\ud800"'), REFUSED),
    "a newline after an identifier": (TWO.replace(b'"a"', rb'"a\n"'), REFUSED),
    "the same reference twice": (TWO.replace(b'"b"', b'"a"'), REFUSED),
    "one server": (b'{"servers":[{"identifier":"a","by":"id"}]}', REFUSED),
    "nested too deeply": (DEEP, REFUSED),
    "an integer of 9,000 digits": (b'{"servers":%b}' % (b"9" * 9_000), REFUSED),
    "an unknown server": (TWO.replace(b'"b"', b'"zz"'), NOT_FOUND),
    "a server that is not published": (TWO.replace(b'"b"', b'"hidden"'), NOT_FOUND),
    "escapes": (TWO.replace(b'"a"', rb'"\u0061"'), ANSWERED),
}

UNASKED = {
    "a body": (request(A, HOST, KEY, body=b"{}"), REFUSED),
    "an empty body": (request(A, HOST, KEY, body=b""), SHOWN),
    "an empty body of type JSON": (request(A, HOST, KEY, JSON, body=b""), SHOWN),
    "a chunked body": (
        request(A, HOST, KEY, b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
        REFUSED,
    ),
    "a body of two million bytes": (
        request(A, HOST, KEY, body=bytes(2_000_000)),
        REFUSED._replace(stays=False),
    ),
    "something to continue": (request(A, HOST, KEY, b"Expect: 100-continue"), SHOWN),
}


def keyed(*headers: bytes) -> bytes:
    return request(A, HOST, *headers)


KEYS = {
    "no key": (keyed(), UNAUTHORIZED),
    "an empty key": (keyed(b"X-Gateway-Key:"), UNAUTHORIZED),
    "nothing but spaces": (keyed(b"X-Gateway-Key:  \t "), UNAUTHORIZED),
    "a key twice": (keyed(KEY, KEY), UNAUTHORIZED),
    "two keys": (keyed(KEY, b"x-gateway-KEY: other"), UNAUTHORIZED),
    "a key and an empty one": (keyed(KEY, b"X-Gateway-Key:"), UNAUTHORIZED),
    "a key beside spaces and tabs": (keyed(b"X-Gateway-Key: \t k \t "), SHOWN),
    "a key in capitals": (keyed(KEY.upper()), SHOWN),
    "a key beyond ASCII": (keyed("X-Gateway-Key: schlüssel".encode()), SHOWN),
    "a key of no UTF-8": (keyed(b"X-Gateway-Key: \xff\xfe"), SHOWN),
    "a key of 15,000 bytes": (keyed(b"X-Gateway-Key: " + b"k" * 15_000), SHOWN),
    "a key of 40,000 bytes": (keyed(b"X-Gateway-Key: " + b"k" * 40_000), BROKEN),
    "a key as others spell it": (keyed(b"X_Gateway_Key: k"), UNAUTHORIZED),
    "a bearer": (keyed(b"Authorization: Bearer k"), UNAUTHORIZED),
    "a cookie": (keyed(b"Cookie: X-Gateway-Key=k"), UNAUTHORIZED),
}

TABLE = {
    **{f"said to be: {name}": row for name, row in TYPES.items()},
    **{f"posted: {name}": (compare(body), expected) for name, (body, expected) in BODIES.items()},
    **{f"unasked: {name}": row for name, row in UNASKED.items()},
    **{f"keys: {name}": row for name, row in KEYS.items()},
}


@pytest.mark.parametrize(("sent", "expected"), TABLE.values(), ids=TABLE)
def test_each_request_has_its_answer(sent: bytes, expected: Expected, service: Service) -> None:
    check_answer(service, sent, expected)


# In the order of the checks (D11): each fault, and what is told of it.
FAULTS = {
    "key": UNAUTHORIZED,
    "path": NO_SUCH_PATH,
    "method": NOT_TO_POST,
    "query": REFUSED,
    "type": REFUSED,
    "encoding": REFUSED,
    "body": REFUSED,
    "server": NOT_FOUND,
}


def faulty(*faults: str) -> bytes:
    """Return a comparison with some faults."""
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
def test_of_two_faults_the_one_that_is_judged_first_is_told(
    first: str, second: str, service: Service
) -> None:
    check_answer(service, faulty(first), FAULTS[first])
    check_answer(service, faulty(second), FAULTS[second])
    check_answer(service, faulty(first, second), FAULTS[first])


def test_of_all_faults_the_key_is_told(service: Service) -> None:
    check_answer(service, faulty(*FAULTS), UNAUTHORIZED)
    check_answer(service, faulty(*list(FAULTS)[1:]), NO_SUCH_PATH)
