"""Requests and their answers, each error included, in the order of the checks (D10 to D12)."""

import gzip
import re
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

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
    ask_page,
    build_small,
    format_access,
    log_request,
    serve_small,
)
from srvstat.contract.http import read_openapi
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    KEY,
    TWO,
    A,
    Answer,
    Client,
    Expected,
    check_answer,
    compare,
    get,
    request,
    send_request,
)
from support.process import Service, serve
from support.snapshots import change

PATH = b"/gateway/v1/servers/"
SERVER, COMPARE_PATH = PATH + b"a", b"/gateway/v1/compare"


@pytest.fixture(scope="module")
def plain() -> Iterator[Service]:
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
    *(b"//", PATH[:-1], SERVER + b"/", PATH + b"/a", b"/" + SERVER, COMPARE_PATH + b"/"),
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
ODD_KEYS = {
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
    **{name: (sent, SERVER_FOUND) for name, sent in ODD_KEYS.items()},
    "an unknown server": (compare(TWO.replace(b'"b"', b'"zz"')), NOT_FOUND),
    "a hidden server": (compare(TWO.replace(b'"b"', b'"hidden"')), NOT_FOUND),
}


def test_each_request_has_its_answer(plain: Service) -> None:
    for sent, expected in TABLE.values():
        check_answer(plain, sent, expected)


def test_operational_paths_need_no_key(plain: Service) -> None:
    for target in (b"/healthz?x=1", b"http://x/readyz"):
        sent = request(b"GET %b HTTP/1.1" % target, HOST)
        answer = send_request(plain, sent)
        assert answer.json.keys() == {"status", "asOf", "root"}
        assert (answer.json["status"], answer.json["asOf"]) == ("ok", "2026-03-01T12:00:00.000Z")
        check_answer(plain, sent.replace(b"GET", b"HEAD"), Expected(200, answer.body))
    sent = request(b"GET /openapi.json HTTP/1.1", HOST)
    check_answer(plain, sent, Expected(200, read_openapi()))
    check_answer(plain, sent.replace(b"GET", b"HEAD"), Expected(200, read_openapi()))


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
    good_and_bad = {
        "path": (b"/gateway/v1/compare", b"/gateway/v1/comparison"),
        "method": (b"POST", b"PUT"),
        "query": (b"", b"?by=id"),
        "key": (KEY, b"X-Gateway-Key:"),
        "type": (JSON, b"Content-Type: text/plain"),
        "encoding": (b"Accept: */*", b"Content-Encoding: gzip"),
    }
    parts = {name: pair[name in faults] for name, pair in good_and_bad.items()}
    body = TWO
    if "server" in faults:
        body = body.replace(b'"b"', b'"zz"')
    if "body" in faults:
        body = body[:-1]
    line = b"%b %b%b HTTP/1.1" % (parts["method"], parts["path"], parts["query"])
    return request(line, HOST, parts["key"], parts["type"], parts["encoding"], body=body)


def test_the_first_check_that_fails_decides_the_answer(plain: Service) -> None:
    for first, second in combinations(FAULTS, 2):
        check_answer(plain, build_faulty_comparison(first), FAULTS[first])
        check_answer(plain, build_faulty_comparison(first, second), FAULTS[first])
    check_answer(plain, build_faulty_comparison(*FAULTS), UNAUTHORIZED)
    check_answer(plain, build_faulty_comparison(*list(FAULTS)[1:]), UNKNOWN_PATH)


NOT_IN_PLAN = Expected(403, ERRORS["FEATURE_NOT_AVAILABLE"])
INTERNAL_ERROR = Expected(500, ERRORS["INTERNAL_ERROR"])
KEYS = {f"key-of-{plan}": plan for plan in ("all", "short", "get", "compare")}
LIMITED = [f"limited-key-{number}" for number in range(5)]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("small")
    access = directory / "access.toml"
    access.write_text(format_access({**KEYS, **dict.fromkeys(LIMITED, "three")}), encoding="utf-8")
    with serve(build_small(directory), "--access", str(access)) as running:
        yield running


def build_key_header(key: str) -> bytes:
    return b"X-Gateway-Key: " + key.encode()


def get_with(key: str, identifier: bytes = b"a", method: bytes = b"GET") -> bytes:
    line = b"%b /gateway/v1/servers/%b HTTP/1.1" % (method, identifier)
    return request(line, HOST, build_key_header(key))


def compare_with(key: str, range: bytes = b"30d", body: bytes = TWO) -> bytes:
    with_range = body[:-1] + b',"range":"%b"}' % range
    return request(COMPARE, HOST, build_key_header(key), JSON, body=with_range)


def test_the_plan_is_checked_after_the_request_and_before_the_server(guarded: Service) -> None:
    check_answer(guarded, get_with("key-of-compare", b"_"), INVALID_REQUEST)
    check_answer(guarded, get_with("key-of-compare", b"zz"), NOT_IN_PLAN)
    check_answer(
        guarded, compare_with("key-of-get", body=TWO.replace(b'"b"', b'"zz"')), NOT_IN_PLAN
    )
    check_answer(guarded, compare_with("key-of-get", b"30"), INVALID_REQUEST)
    wrong = request(b"GET /gateway/v1/compare HTTP/1.1", HOST, build_key_header("key-of-get"))
    check_answer(guarded, wrong, POST_ONLY)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_get_server_answers_unknown_and_hidden_servers_alike(
    method: bytes, guarded: Service
) -> None:
    def ask_about(identifier: bytes, by: bytes) -> object:
        sent = get_with("key-of-all", b"%b?by=%b" % (identifier, by), method)
        return send_request(guarded, sent, to_head=method == b"HEAD").stable_parts

    unknown = ask_about(b"secret", b"id")
    assert ask_about(b"hidden", b"id") == unknown
    assert ask_about(b"x-hidden", b"cfxId") == unknown
    assert ask_about(b"x-secret", b"cfxId") == unknown


def test_requests_over_the_limit_of_the_plan_are_refused_with_retry_after(guarded: Service) -> None:
    key = LIMITED[0]
    began = time.monotonic()
    sent = get_with(key)
    assert [send_request(guarded, sent).status for _ in range(3)] == [200, 200, 200]

    refused = send_request(guarded, sent)
    assert (refused.status, refused.body) == (429, ERRORS["RATE_LIMITED"])
    seconds = int(refused.headers["retry-after"])
    assert 60 - (time.monotonic() - began) <= seconds <= 60
    assert log_request(guarded, sent)["reason"] == "more than 3 requests a minute"


def test_only_requests_with_a_valid_key_count(guarded: Service) -> None:
    key = LIMITED[3]
    for _ in range(9):
        send_request(guarded, get_with(key + "x"))
        send_request(guarded, request(A, HOST))
        send_request(guarded, request(b"GET /healthz HTTP/1.1", HOST, build_key_header(key)))
    refused = [
        get_with(key, b"_"),
        get_with(key, b"zz"),
        request(COMPARE, HOST, build_key_header(key)),
    ]
    assert [send_request(guarded, sent).status for sent in refused] == [400, 404, 400]

    assert send_request(guarded, get_with(key)).status == 429
    assert (
        send_request(guarded, request(b"GET /nowhere HTTP/1.1", HOST, build_key_header(key))).status
        == 429
    )


@pytest.mark.parametrize(
    ("sql", "broken", "whole"),
    [
        ("UPDATE servers SET hostname = 'x' WHERE id = 'a'", get(b"a"), get(b"b")),
        ("UPDATE servers SET hostname = 'x' WHERE id = 'a'", compare(TWO), get(b"b")),
        ("UPDATE blocks SET time_unit = time_unit + 7", compare(TWO), get(b"a")),
        ("DELETE FROM blocks", compare(TWO), get(b"a")),
    ],
    ids=["server, get", "server, compare", "blocks", "no blocks"],
)
def test_a_damaged_snapshot_gives_an_error_only_where_it_is_damaged(
    sql: str, broken: bytes, whole: bytes, tmp_path: Path
) -> None:
    path = build_small(tmp_path)
    with serve(path) as guarded:
        change(str(path), sql)

        check_answer(guarded, broken, INTERNAL_ERROR)
        assert send_request(guarded, whole).status == 200
        check_answer(guarded, get(b"zz"), NOT_FOUND)
        check_answer(guarded, get(b"_"), INVALID_REQUEST)
        reason = log_request(guarded, broken)["reason"]
        assert reason.startswith(f"{path}: damaged (")
        assert str(tmp_path) not in str(send_request(guarded, compare(TWO)))


def test_the_page_and_its_files_are_compressed_and_run_no_foreign_code(plain: Service) -> None:
    def ask(path: bytes, *headers: bytes) -> Answer:
        client.send(request(b"GET %b HTTP/1.1" % path, HOST, *headers))
        return client.read_any_answer()

    with Client(plain) as client:
        page = ask(b"http://x/docs?x")
        assert b'id="key-form"' not in page.body
        assert b'id="explore"' not in page.body
        paths = re.findall(rb'(?:src|href)="(docs/[^"]+)"', page.body)
        assert {path.rpartition(b".")[2] for path in paths} == {b"css", b"js"}
        for path in (b"docs", *paths):
            answer = ask(b"/" + path)
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            kind = "javascript" if path.endswith(b".js") else "css" if b"." in path else "html"
            assert answer.headers["content-type"] == f"text/{kind}; charset=utf-8"
            compressed = ask(b"/" + path, b"Accept-Encoding: br, gzip;q=0.5")
            assert compressed.headers["content-encoding"] == "gzip"
            assert gzip.decompress(compressed.body) == answer.body
            assert ask(b"/" + path, b"Accept-Encoding: gzip;q=0, br").body == answer.body


def test_its_examples_are_servers_of_the_snapshot_and_need_a_key(
    plain: Service, tmp_path: Path
) -> None:
    access = tmp_path / "access.toml"
    access.write_text(format_access({"key-of-all": "all"}), encoding="utf-8")

    assert ask_page(plain, "/docs/servers").json == {"ids": ["b", "a"]}
    assert ask_page(plain, "/docs/servers", key=None).status == 401
    with serve_small("--access", str(access), "--explore") as service:
        page = ask_page(service, "/docs", key=None).body
        assert (page.count(b'id="key-form"'), page.count(b'id="explore"')) == (1, 1)
        assert ask_page(service, "/docs/servers", key="wrong").status == 401
        assert ask_page(service, "/docs/servers", key="key-of-all").json == {"ids": ["b", "a"]}


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"HEAD http://x/?x HTTP/1.1"])
def test_the_root_leads_to_the_page_without_a_key(line: bytes, plain: Service) -> None:
    with Client(plain) as client:
        client.send(request(line, HOST))
        answer = client.read_any_answer(to_head=line.startswith(b"HEAD"))

    # Relative, so that it also holds below the path of a proxy.
    assert (answer.status, answer.headers["location"], answer.body) == (307, "docs", b"")


def test_other_paths_and_methods_have_errors_and_the_log_names_them(plain: Service) -> None:
    sent = {
        request(b"GET / HTTP/1.1", HOST, b"X-Request-Id: 1"): (307, "redirectToDocs"),
        request(b"GET /docs/ HTTP/1.1", HOST, b"X-Request-Id: 2"): (404, "getDocsAsset"),
        request(b"POST /docs HTTP/1.1", HOST, b"X-Request-Id: 3", body=b""): (405, "getDocs"),
        request(b"POST / HTTP/1.1", HOST, b"X-Request-Id: 4"): (405, "redirectToDocs"),
    }
    with Client(plain) as client:
        for number, (one, (status, operation)) in enumerate(sent.items(), 1):
            client.send(one)
            assert client.read_any_answer().status == status
            log_request(plain, HEALTH)  # its entry follows all earlier ones
            (entry,) = (each for each in plain.read_log() if each["id"] == str(number))
            assert (entry["operation"], entry["status"]) == (operation, status)
