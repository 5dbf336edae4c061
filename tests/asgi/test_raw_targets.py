"""Methods, paths and queries, as bytes on a socket. The raw path decides; nothing is tidied up."""

from collections.abc import Iterator

import pytest

from asgi.small_service import (
    ANSWERED,
    BROKEN,
    NO_SUCH_PATH,
    NOT_FOUND,
    NOT_TO_GET,
    NOT_TO_POST,
    REFUSED,
    SERVER_A,
    SHOWN,
    UNAUTHORIZED,
    serving_small,
)
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
GETTING, COMPARING = PATH + b"a", b"/gateway/v1/compare"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving_small() as under_way:
        yield under_way


def asked(method: bytes, target: bytes) -> bytes:
    return request(b"%b %b HTTP/1.1" % (method, target), HOST, KEY)


METHODS = {
    ("HEAD", GETTING): SHOWN,
    ("HEAD", PATH + b"zz"): NOT_FOUND,
    ("HEAD", PATH + b"_"): REFUSED,
    ("HEAD", b"/nowhere"): NO_SUCH_PATH,
    **{(method, GETTING): NOT_TO_GET for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS")},
    **{(method, GETTING): NOT_TO_GET for method in ("TRACE", "CONNECT", "get", "Get", "FOO", "!")},
    **{(method, COMPARING): NOT_TO_POST for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")},
    **{(method, COMPARING): NOT_TO_POST for method in ("TRACE", "CONNECT", "post", "PROPFIND")},
    ("POST", b"/healthz"): NOT_TO_GET,
    ("POST", b"/nowhere"): NO_SUCH_PATH,
    ("OPTIONS", b"*"): NO_SUCH_PATH,
    ("CONNECT", b"x:80"): NO_SUCH_PATH,
}

PATHS = {
    b"/": NO_SUCH_PATH,
    b"//": NO_SUCH_PATH,
    b"/gateway/v1/servers": NO_SUCH_PATH,
    PATH: REFUSED,
    GETTING + b"/": NO_SUCH_PATH,
    PATH + b"/a": NO_SUCH_PATH,
    PATH + b"/": NO_SUCH_PATH,
    b"/" + GETTING: NO_SUCH_PATH,
    b"/gateway//v1/servers/a": NO_SUCH_PATH,
    COMPARING + b"/": NO_SUCH_PATH,
    b"/GATEWAY/v1/servers/a": NO_SUCH_PATH,
    b"/gateway/v2/servers/a": NO_SUCH_PATH,
    PATH + b"../servers/a": NO_SUCH_PATH,
    PATH + b"..": REFUSED,
    PATH + b"%2E%2E": REFUSED,
    b"/gateway/v1/server%73/a": NO_SUCH_PATH,
    b"/gateway/v1/%63ompare": NO_SUCH_PATH,
    b"/gateway%2Fv1/servers/a": NO_SUCH_PATH,
    PATH + b"a%2Fb": REFUSED,
    PATH + b"%2F": REFUSED,
    PATH + b"a%00": REFUSED,
    PATH + b"a%0A": REFUSED,
    PATH + b"a%20": REFUSED,
    PATH + b"%FF": REFUSED,
    PATH + b"%C3%A4": REFUSED,
    PATH + b"%61": SHOWN,
    PATH + b"%2561": REFUSED,
    PATH + b"%": REFUSED,
    PATH + b"a%6": REFUSED,
    PATH + b"%zz": REFUSED,
    PATH + b"%+1": REFUSED,
    PATH + b"%u0061": REFUSED,
    PATH + b"a;b": REFUSED,
    PATH + b"a+b": REFUSED,
    PATH + b"id:a": REFUSED,
    PATH + b"a#": REFUSED,
    COMPARING + b"#x": NO_SUCH_PATH,
    PATH + b"A": NOT_FOUND,
    PATH + b"hidden": NOT_FOUND,
    PATH + b"x-a": NOT_FOUND,
    PATH + b"-": NOT_FOUND,
    PATH + b"x" * 128: NOT_FOUND,
    PATH + b"%78" * 128: NOT_FOUND,
    PATH + b"x" * 129: REFUSED,
    PATH + b"x" * 8_192: REFUSED,
    b"/" + b"x" * 8_192: NO_SUCH_PATH,
    b"/" + b"x" * 100_000: BROKEN,
    b"gateway/v1/servers/a": NO_SUCH_PATH,
    b"http://elsewhere" + GETTING: SHOWN,
    b"HTTPS://user:pass@elsewhere:99" + GETTING: SHOWN,
    b"http://elsewhere": NO_SUCH_PATH,
    b"http://" + GETTING: NO_SUCH_PATH,
    b"ftp://elsewhere" + GETTING: NO_SUCH_PATH,
    b"/healthz/": NO_SUCH_PATH,
    b"/%68ealthz": NO_SUCH_PATH,
    b"/openapi.json": NO_SUCH_PATH,
    b"/docs": NO_SUCH_PATH,
    b"/favicon.ico": NO_SUCH_PATH,
}

QUERIES = {
    b"": SHOWN,
    b"&": SHOWN,
    b"&&by=id&": SHOWN,
    b"by=id": SHOWN,
    b"b%79=i%64": SHOWN,
    b"by=": REFUSED,
    b"by": REFUSED,
    b"by=ID": REFUSED,
    b"BY=id": REFUSED,
    b"by=id%20": REFUSED,
    b"by=id+": REFUSED,
    b"by=id%00": REFUSED,
    b"by=i=d": REFUSED,
    b"by=id&by=id": REFUSED,
    b"by=id&by=cfxId": REFUSED,
    b"by=id&b%79=id": REFUSED,
    b"by=&by=id": REFUSED,
    b"by=id;by=id": REFUSED,
    b"by=id?by=id": REFUSED,
    b"by=id#": REFUSED,
    b"range=7d": REFUSED,
    b"by=id&x": REFUSED,
    b"=": REFUSED,
    b"by=%": REFUSED,
    b"by=%zz": REFUSED,
    b"by=%ff": REFUSED,
    b"%ff=id": REFUSED,
    b"x" * 8_192: REFUSED,
    b"by=cfxId": NOT_FOUND,
}


def judge(service: Service, method: str, target: bytes, expected: Expected) -> None:
    check_answer(service, asked(method.encode(), target), expected)


@pytest.mark.parametrize(
    ("method", "target", "expected"), [(*asked, of) for asked, of in METHODS.items()]
)
def test_a_method_is_one_that_the_path_has(
    method: str, target: bytes, expected: Expected, service: Service
) -> None:
    judge(service, method, target, expected)


@pytest.mark.parametrize(("target", "expected"), PATHS.items(), ids=lambda of: repr(of)[:50])
def test_a_path_is_taken_as_it_was_sent(
    target: bytes, expected: Expected, service: Service
) -> None:
    judge(service, "GET", target, expected)


@pytest.mark.parametrize("target", [*PATHS, PATH + b"a?x", b"*"], ids=lambda of: repr(of)[:50])
def test_no_path_tells_anything_without_a_key(target: bytes, service: Service) -> None:
    is_broken = PATHS.get(target) is BROKEN

    sent = request(b"GET %b HTTP/1.1" % target, HOST)
    check_answer(service, sent, BROKEN if is_broken else UNAUTHORIZED)


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=lambda of: repr(of)[:50])
def test_a_query_names_a_namespace_once_or_not_at_all(
    query: bytes, expected: Expected, service: Service
) -> None:
    judge(service, "GET", GETTING + b"?" + query, expected)


@pytest.mark.parametrize("query", [b"by=cfxId", b"b%79=cfx%49d", b"&by=cfxId"])
def test_a_network_id_is_asked_for_by_its_namespace(query: bytes, service: Service) -> None:
    judge(service, "GET", PATH + b"x-a?" + query, Expected(200, SERVER_A))
    judge(service, "GET", PATH + b"?" + query, REFUSED)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        *((query, ANSWERED) for query in (b"?", b"?&")),
        *((query, REFUSED) for query in (b"?by=id", b"?range=7d", b"?x", b"?=", b"?%", b"?%ff")),
    ],
)
def test_a_comparison_has_no_query(query: bytes, expected: Expected, service: Service) -> None:
    line = COMPARE.replace(COMPARING, COMPARING + query)

    check_answer(service, request(line, HOST, KEY, JSON, body=TWO), expected)


@pytest.mark.parametrize("target", [b"/healthz", b"/healthz?x=1", b"http://x/healthz"])
def test_the_health_of_the_service_needs_no_key(target: bytes, service: Service) -> None:
    answer = send_request(service, request(b"GET %b HTTP/1.1" % target, HOST))

    assert answer.status == 200
    assert answer.json.keys() == {"status", "asOf", "root"}
    assert (answer.json["status"], answer.json["asOf"]) == ("ok", "2026-03-01T12:00:00.000Z")
    check_answer(service, request(b"HEAD %b HTTP/1.1" % target, HOST), Expected(200, answer.body))
