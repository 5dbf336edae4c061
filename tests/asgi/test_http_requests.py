"""Requests and their answers (D10 to D12), by methods, targets, keys, headers and bodies."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from asgi.small_service import (
    COMPARISON,
    GET_ONLY,
    INVALID_REQUEST,
    NOT_FOUND,
    POST_ONLY,
    SERVER_A,
    SERVER_FOUND,
    UNAUTHORIZED,
    UNKNOWN_PATH,
    serve_small,
)
from srvstat.contract.http import read_openapi
from support.http import (
    COMPARE,
    HOST,
    JSON,
    KEY,
    TWO,
    A,
    Expected,
    check_answer,
    compare,
    request,
    send_request,
)
from support.process import Service

PATH = b"/gateway/v1/servers/"
SERVER, COMPARE_PATH = PATH + b"a", b"/gateway/v1/compare"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


METHODS = {
    ("HEAD", SERVER): SERVER_FOUND,
    ("HEAD", PATH + b"zz"): NOT_FOUND,
    ("HEAD", b"/nowhere"): UNKNOWN_PATH,
    **{(method, SERVER): GET_ONLY for method in ("POST", "DELETE", "OPTIONS", "get", "FOO")},
    **{(method, COMPARE_PATH): POST_ONLY for method in ("GET", "HEAD", "OPTIONS", "post")},
    **{("POST", path): GET_ONLY for path in (b"/healthz", b"/readyz", b"/openapi.json")},
    ("POST", b"/nowhere"): UNKNOWN_PATH,
    ("OPTIONS", b"*"): UNKNOWN_PATH,
    ("CONNECT", b"x:80"): UNKNOWN_PATH,
}
UNKNOWN = [
    *(b"/", b"//", PATH[:-1], SERVER + b"/", PATH + b"/a", b"/" + SERVER, COMPARE_PATH + b"/"),
    *(b"/gateway//v1/servers/a", b"/GATEWAY/v1/servers/a", PATH + b"../servers/a"),
    *(b"/gateway/v1/%63ompare", b"/gateway%2Fv1/servers/a", COMPARE_PATH + b"#x"),
    *(b"gateway/v1/servers/a", b"http://elsewhere", b"ftp://elsewhere" + SERVER),
    *(b"/healthz/", b"/%68ealthz", b"/openapi.json/", b"/docsx"),
]
TARGETS = {
    **dict.fromkeys(UNKNOWN, UNKNOWN_PATH),
    **{
        PATH + identifier: INVALID_REQUEST
        for identifier in (b"", b"..", b"a%2Fb", b"a%00", b"%FF", b"%2561", b"%", b"%zz", b"a;b")
    },
    PATH + b"%61": SERVER_FOUND,
    PATH + b"A": NOT_FOUND,
    PATH + b"hidden": NOT_FOUND,
    PATH + b"x-a": NOT_FOUND,
    b"HTTPS://user:pass@elsewhere:99" + SERVER: SERVER_FOUND,
    **{SERVER + b"?" + query: SERVER_FOUND for query in (b"", b"&&by=id&", b"b%79=i%64")},
    **{
        SERVER + b"?" + query: INVALID_REQUEST
        for query in (
            b"by=",
            b"by=ID",
            b"by=id&by=id",
            b"by=id;by=id",
            b"range=7d",
            b"=",
            b"by=%ff",
        )
    },
    SERVER + b"?by=cfxId": NOT_FOUND,
    PATH + b"x-a?b%79=cfx%49d": Expected(200, SERVER_A),
}


def with_type(*headers: bytes) -> bytes:
    return request(COMPARE, HOST, KEY, *headers, body=TWO)


def with_key(*headers: bytes) -> bytes:
    return request(A, HOST, *headers)


def with_query(query: bytes) -> bytes:
    line = COMPARE.replace(COMPARE_PATH, COMPARE_PATH + query)
    return request(line, HOST, KEY, JSON, body=TWO)


ACCEPTED = {
    "JSON in capitals, of UTF-8": with_type(JSON.upper() + b"; charset=utf-8"),
    "conditional": with_type(JSON, b"If-None-Match: *", b"Range: bytes=0-5", b"Accept: text/html"),
    "16,384 bytes": compare(TWO.ljust(16_384)),
    "an empty query": with_query(b"?&"),
}
REFUSED = {
    "JSON twice": with_type(JSON, JSON),
    "an encoding": with_type(JSON, b"Content-Encoding: identity"),
    "16,385 bytes": compare(TWO.ljust(16_385)),
    "an empty body": compare(b""),
    "no body": request(COMPARE, HOST, KEY, JSON),
    "nested too deeply": compare(b'{"servers":' + b"[" * 8_000 + b"]" * 8_000 + b"}"),
    "a query": with_query(b"?range=7d"),
}
KEYLESS = {
    "no key": with_key(),
    "an empty key": with_key(b"X-Gateway-Key:  \t "),
    "two keys": with_key(KEY, b"x-gateway-KEY: other"),
    "a header with underscores": with_key(b"X_Gateway_Key: k"),
    "a bearer token": with_key(b"Authorization: Bearer k"),
    **{f"no key, {target!r}": request(b"GET %b HTTP/1.1" % target, HOST) for target in UNKNOWN[:5]},
}
KEYS = {
    "a key between spaces and tabs": with_key(b"X-Gateway-Key: \t k \t "),
    "a key that is not UTF-8": with_key(b"X-Gateway-Key: \xff\xfe"),
    "a key of 15,000 bytes": with_key(b"X-Gateway-Key: " + b"k" * 15_000),
}
TABLE = {
    **{
        f"{method} {target!r}": (
            request(f"{method} ".encode() + target + b" HTTP/1.1", HOST, KEY),
            expected,
        )
        for (method, target), expected in METHODS.items()
    },
    **{
        f"GET {target!r}": (request(b"GET %b HTTP/1.1" % target, HOST, KEY), expected)
        for target, expected in TARGETS.items()
    },
    **{name: (sent, COMPARISON) for name, sent in ACCEPTED.items()},
    **{name: (sent, INVALID_REQUEST) for name, sent in REFUSED.items()},
    **{name: (sent, UNAUTHORIZED) for name, sent in KEYLESS.items()},
    **{name: (sent, SERVER_FOUND) for name, sent in KEYS.items()},
    "an unknown server": (compare(TWO.replace(b'"b"', b'"zz"')), NOT_FOUND),
    "a hidden server": (compare(TWO.replace(b'"b"', b'"hidden"')), NOT_FOUND),
}


def test_each_request_has_its_answer(service: Service) -> None:
    for sent, expected in TABLE.values():
        check_answer(service, sent, expected)


def test_operational_paths_need_no_key(service: Service) -> None:
    for target in (b"/healthz?x=1", b"http://x/readyz"):
        sent = request(b"GET %b HTTP/1.1" % target, HOST)
        answer = send_request(service, sent)
        assert answer.json.keys() == {"status", "asOf", "root"}
        assert (answer.json["status"], answer.json["asOf"]) == ("ok", "2026-03-01T12:00:00.000Z")
        check_answer(service, sent.replace(b"GET", b"HEAD"), Expected(200, answer.body))
    sent = request(b"GET /openapi.json HTTP/1.1", HOST)
    check_answer(service, sent, Expected(200, read_openapi()))
    check_answer(service, sent.replace(b"GET", b"HEAD"), Expected(200, read_openapi()))


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


def test_the_first_check_that_fails_decides_the_answer(service: Service) -> None:
    for first, second in combinations(FAULTS, 2):
        check_answer(service, build_faulty_comparison(first), FAULTS[first])
        check_answer(service, build_faulty_comparison(first, second), FAULTS[first])
    check_answer(service, build_faulty_comparison(*FAULTS), UNAUTHORIZED)
    check_answer(service, build_faulty_comparison(*list(FAULTS)[1:]), UNKNOWN_PATH)
