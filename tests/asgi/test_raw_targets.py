"""Methods, paths and queries, as bytes on a socket. Paths are not normalized."""

from collections.abc import Iterator

import pytest

from asgi.small_service import (
    COMPARISON,
    GET_ONLY,
    INVALID_REQUEST,
    MALFORMED,
    NOT_FOUND,
    POST_ONLY,
    SERVER_A,
    SERVER_FOUND,
    UNAUTHORIZED,
    UNKNOWN_PATH,
    serve_small,
)
from srvstat.contract.openapi import read_openapi
from support.http import (
    COMPARE,
    HOST,
    JSON,
    KEY,
    TWO,
    Expected,
    check_answer,
    request,
    send_request,
)
from support.process import Service

PATH = b"/gateway/v1/servers/"
SERVER_PATH, COMPARE_PATH = PATH + b"a", b"/gateway/v1/compare"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


def build_request(method: bytes, target: bytes) -> bytes:
    return request(b"%b %b HTTP/1.1" % (method, target), HOST, KEY)


METHODS = {
    ("HEAD", SERVER_PATH): SERVER_FOUND,
    ("HEAD", PATH + b"zz"): NOT_FOUND,
    ("HEAD", PATH + b"_"): INVALID_REQUEST,
    ("HEAD", b"/nowhere"): UNKNOWN_PATH,
    **{(method, SERVER_PATH): GET_ONLY for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS")},
    **{
        (method, SERVER_PATH): GET_ONLY for method in ("TRACE", "CONNECT", "get", "Get", "FOO", "!")
    },
    **{(method, COMPARE_PATH): POST_ONLY for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")},
    **{(method, COMPARE_PATH): POST_ONLY for method in ("TRACE", "CONNECT", "post", "PROPFIND")},
    **{("POST", path): GET_ONLY for path in (b"/healthz", b"/readyz", b"/openapi.json")},
    ("POST", b"/nowhere"): UNKNOWN_PATH,
    ("OPTIONS", b"*"): UNKNOWN_PATH,
    ("CONNECT", b"x:80"): UNKNOWN_PATH,
}

PATHS = {
    b"/": UNKNOWN_PATH,
    b"//": UNKNOWN_PATH,
    b"/gateway/v1/servers": UNKNOWN_PATH,
    PATH: INVALID_REQUEST,
    SERVER_PATH + b"/": UNKNOWN_PATH,
    PATH + b"/a": UNKNOWN_PATH,
    PATH + b"/": UNKNOWN_PATH,
    b"/" + SERVER_PATH: UNKNOWN_PATH,
    b"/gateway//v1/servers/a": UNKNOWN_PATH,
    COMPARE_PATH + b"/": UNKNOWN_PATH,
    b"/GATEWAY/v1/servers/a": UNKNOWN_PATH,
    b"/gateway/v2/servers/a": UNKNOWN_PATH,
    PATH + b"../servers/a": UNKNOWN_PATH,
    PATH + b"..": INVALID_REQUEST,
    PATH + b"%2E%2E": INVALID_REQUEST,
    b"/gateway/v1/server%73/a": UNKNOWN_PATH,
    b"/gateway/v1/%63ompare": UNKNOWN_PATH,
    b"/gateway%2Fv1/servers/a": UNKNOWN_PATH,
    PATH + b"a%2Fb": INVALID_REQUEST,
    PATH + b"%2F": INVALID_REQUEST,
    PATH + b"a%00": INVALID_REQUEST,
    PATH + b"a%0A": INVALID_REQUEST,
    PATH + b"a%20": INVALID_REQUEST,
    PATH + b"%FF": INVALID_REQUEST,
    PATH + b"%C3%A4": INVALID_REQUEST,
    PATH + b"%61": SERVER_FOUND,
    PATH + b"%2561": INVALID_REQUEST,
    PATH + b"%": INVALID_REQUEST,
    PATH + b"a%6": INVALID_REQUEST,
    PATH + b"%zz": INVALID_REQUEST,
    PATH + b"%+1": INVALID_REQUEST,
    PATH + b"%u0061": INVALID_REQUEST,
    PATH + b"a;b": INVALID_REQUEST,
    PATH + b"a+b": INVALID_REQUEST,
    PATH + b"id:a": INVALID_REQUEST,
    PATH + b"a#": INVALID_REQUEST,
    COMPARE_PATH + b"#x": UNKNOWN_PATH,
    PATH + b"A": NOT_FOUND,
    PATH + b"hidden": NOT_FOUND,
    PATH + b"x-a": NOT_FOUND,
    PATH + b"-": NOT_FOUND,
    PATH + b"x" * 128: NOT_FOUND,
    PATH + b"%78" * 128: NOT_FOUND,
    PATH + b"x" * 129: INVALID_REQUEST,
    PATH + b"x" * 8_192: INVALID_REQUEST,
    b"/" + b"x" * 8_192: UNKNOWN_PATH,
    b"/" + b"x" * 100_000: MALFORMED,
    b"gateway/v1/servers/a": UNKNOWN_PATH,
    b"http://elsewhere" + SERVER_PATH: SERVER_FOUND,
    b"HTTPS://user:pass@elsewhere:99" + SERVER_PATH: SERVER_FOUND,
    b"http://elsewhere": UNKNOWN_PATH,
    b"http://" + SERVER_PATH: UNKNOWN_PATH,
    b"ftp://elsewhere" + SERVER_PATH: UNKNOWN_PATH,
    b"/healthz/": UNKNOWN_PATH,
    b"/readyz/": UNKNOWN_PATH,
    b"/%68ealthz": UNKNOWN_PATH,
    b"/openapi.json/": UNKNOWN_PATH,
    b"/docsx": UNKNOWN_PATH,
    b"/favicon.ico": UNKNOWN_PATH,
}

QUERIES = {
    b"": SERVER_FOUND,
    b"&": SERVER_FOUND,
    b"&&by=id&": SERVER_FOUND,
    b"by=id": SERVER_FOUND,
    b"b%79=i%64": SERVER_FOUND,
    b"by=": INVALID_REQUEST,
    b"by": INVALID_REQUEST,
    b"by=ID": INVALID_REQUEST,
    b"BY=id": INVALID_REQUEST,
    b"by=id%20": INVALID_REQUEST,
    b"by=id+": INVALID_REQUEST,
    b"by=id%00": INVALID_REQUEST,
    b"by=i=d": INVALID_REQUEST,
    b"by=id&by=id": INVALID_REQUEST,
    b"by=id&by=cfxId": INVALID_REQUEST,
    b"by=id&b%79=id": INVALID_REQUEST,
    b"by=&by=id": INVALID_REQUEST,
    b"by=id;by=id": INVALID_REQUEST,
    b"by=id?by=id": INVALID_REQUEST,
    b"by=id#": INVALID_REQUEST,
    b"range=7d": INVALID_REQUEST,
    b"by=id&x": INVALID_REQUEST,
    b"=": INVALID_REQUEST,
    b"by=%": INVALID_REQUEST,
    b"by=%zz": INVALID_REQUEST,
    b"by=%ff": INVALID_REQUEST,
    b"%ff=id": INVALID_REQUEST,
    b"x" * 8_192: INVALID_REQUEST,
    b"by=cfxId": NOT_FOUND,
}


def check_target(service: Service, method: str, target: bytes, expected: Expected) -> None:
    check_answer(service, build_request(method.encode(), target), expected)


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [(*pair, expected) for pair, expected in METHODS.items()],
)
def test_method_has_the_expected_answer(
    method: str, target: bytes, expected: Expected, service: Service
) -> None:
    check_target(service, method, target, expected)


@pytest.mark.parametrize(("target", "expected"), PATHS.items(), ids=lambda of: repr(of)[:50])
def test_path_is_not_normalized(target: bytes, expected: Expected, service: Service) -> None:
    check_target(service, "GET", target, expected)


@pytest.mark.parametrize("target", [*PATHS, PATH + b"a?x", b"*"], ids=lambda of: repr(of)[:50])
def test_every_path_needs_a_key(target: bytes, service: Service) -> None:
    is_broken = PATHS.get(target) is MALFORMED

    sent = request(b"GET %b HTTP/1.1" % target, HOST)
    check_answer(service, sent, MALFORMED if is_broken else UNAUTHORIZED)


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=lambda of: repr(of)[:50])
def test_query_of_get_server_has_the_expected_answer(
    query: bytes, expected: Expected, service: Service
) -> None:
    check_target(service, "GET", SERVER_PATH + b"?" + query, expected)


@pytest.mark.parametrize("query", [b"by=cfxId", b"b%79=cfx%49d", b"&by=cfxId"])
def test_a_cfx_id_is_found_by_its_namespace(query: bytes, service: Service) -> None:
    check_target(service, "GET", PATH + b"x-a?" + query, Expected(200, SERVER_A))
    check_target(service, "GET", PATH + b"?" + query, INVALID_REQUEST)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        *((query, COMPARISON) for query in (b"?", b"?&")),
        *(
            (query, INVALID_REQUEST)
            for query in (b"?by=id", b"?range=7d", b"?x", b"?=", b"?%", b"?%ff")
        ),
    ],
)
def test_a_query_of_a_comparison_is_refused(
    query: bytes, expected: Expected, service: Service
) -> None:
    line = COMPARE.replace(COMPARE_PATH, COMPARE_PATH + query)

    check_answer(service, request(line, HOST, KEY, JSON, body=TWO), expected)


@pytest.mark.parametrize(
    "target", [b"/healthz", b"/healthz?x=1", b"http://x/healthz", b"/readyz", b"http://x/readyz"]
)
def test_health_and_readiness_checks_need_no_key(target: bytes, service: Service) -> None:
    answer = send_request(service, request(b"GET %b HTTP/1.1" % target, HOST))

    assert answer.status == 200
    assert answer.json.keys() == {"status", "asOf", "root"}
    assert (answer.json["status"], answer.json["asOf"]) == ("ok", "2026-03-01T12:00:00.000Z")
    check_answer(service, request(b"HEAD %b HTTP/1.1" % target, HOST), Expected(200, answer.body))


def test_the_document_needs_no_key(service: Service) -> None:
    sent = request(b"GET /openapi.json HTTP/1.1", HOST)

    check_answer(service, sent, Expected(200, read_openapi()))
    check_answer(service, sent.replace(b"GET", b"HEAD"), Expected(200, read_openapi()))
