"""Headers for pages of other origins, with the reason of an error, and about the rate limit."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asgi.small_service import (
    OVERVIEW,
    SERVER_A,
    ask_page,
    build_small,
    empty_log,
    format_access,
    log_request,
    serve_small,
    wait_for_entries,
)
from conftest import Cli
from srvstat.asgi.auth import Quota, RateLimiter, format_quota
from srvstat.asgi.headers import build_reason_header
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
    compare,
    get,
    request,
    send_request,
)
from support.process import Service, serve
from support.snapshots import change

PAGE = "http://localhost:5173"
FROM_PAGE = b"Origin: " + PAGE.encode()
EXPOSED = (
    "Allow, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate,"
    " X-Request-Id, X-Srvstat-Reason"
)
OF_CORS = {"access-control-allow-origin": PAGE, "access-control-expose-headers": EXPOSED}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small("--cors", PAGE, "--cors", "app://shop", "--explore") as running:
        yield running


def preflight(
    origin: bytes,
    path: bytes = b"/gateway/v1/compare",
    names: bytes = b"content-type,x-gateway-key",
) -> bytes:
    line = b"OPTIONS %b HTTP/1.1" % path
    asked = (b"Access-Control-Request-Method: POST", b"Access-Control-Request-Headers: " + names)
    return request(line, HOST, b"Origin: " + origin, *asked)


def ask(service: Service, sent: bytes) -> Answer:
    with Client(service) as client:
        client.send(sent)
        return client.read_any_answer()


def list_cors_headers(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if "access-control" in name}


DEFAULT_NAMES = "Accept, Cache-Control, Content-Type, Prefer, X-Gateway-Key, X-Request-Id"
REFUSED = [
    b"http://localhost:5174",
    b"http://LOCALHOST:5173",
    b"http://localhost:5173/",
    b"null",
    b"*",
    b"\xff",
    PAGE.encode() + b"\r\nOrigin: " + PAGE.encode(),
    PAGE.encode() + b"\r\nOrigin: http://example.org",
]


@pytest.mark.parametrize("origin", REFUSED)
def test_another_origin_gets_the_answer_without_permission(origin: bytes, service: Service) -> None:
    empty_log(service, HEALTH)

    refused = ask(service, preflight(origin))
    answer = send_request(service, get(b"a", b"Origin: " + origin))

    assert refused.status == 204
    assert (answer.status, answer.body) == (200, SERVER_A)
    for each in (refused, answer):
        assert list_cors_headers(each) == {}
        assert each.headers["vary"] == "Origin"
    entry, _ = wait_for_entries(service, 2)
    assert entry["reason"] == "origin: not one of --cors"


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (b"baggage,sentry-trace,traceparent", "baggage,sentry-trace,traceparent"),
        (b"x" * 1_001, DEFAULT_NAMES),
        (b"a\tb", DEFAULT_NAMES),
        (b"", DEFAULT_NAMES),
    ],
)
def test_a_page_may_send_the_headers_that_it_asks_for(
    names: bytes, allowed: str, service: Service
) -> None:
    """Monitoring adds its own to each request."""
    answer = ask(service, preflight(PAGE.encode(), names=names))
    assert answer.headers["access-control-allow-headers"] == allowed


SENT = {
    "a server": get(b"a", FROM_PAGE),
    "a comparison": compare(TWO, FROM_PAGE),
    "an unknown server": get(b"nobody", FROM_PAGE),
    "no key": request(A, HOST, FROM_PAGE),
    "an unknown path": request(b"GET /x HTTP/1.1", HOST, FROM_PAGE, b"X-Gateway-Key: k"),
    "a wrong method": get(b"a", FROM_PAGE, line=b"OPTIONS %b HTTP/1.1"),
    "no preflight": get(b"a", FROM_PAGE, b"Access-Control-Request-Method: GET"),
    "health": request(b"GET /healthz HTTP/1.1", HOST, FROM_PAGE),
    "the document": request(b"GET /openapi.json HTTP/1.1", HOST, FROM_PAGE),
}


@pytest.fixture(scope="module")
def without_option() -> Iterator[Service]:
    with serve_small() as running:
        yield running


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_the_option_only_adds_headers(
    sent: bytes, service: Service, without_option: Service
) -> None:
    status, body, headers = send_request(without_option, sent).stable_parts

    expected = (status, body, {**headers, **OF_CORS, "vary": "Origin"})
    assert send_request(service, sent).stable_parts == expected


def test_without_the_option_a_preflight_needs_a_key(without_option: Service) -> None:
    answer = send_request(without_option, preflight(PAGE.encode()))

    assert answer.status == 401
    assert not {*list_cors_headers(answer), "vary"} & set(answer.headers)


@pytest.mark.parametrize("path", [b"/", b"/explore/data/servers"])
def test_the_explore_page_is_for_its_own_origin_only(path: bytes, service: Service) -> None:
    local = b"Host: localhost"
    answers = [
        ask(service, request(b"GET %b HTTP/1.1" % path, local, FROM_PAGE, b"X-Gateway-Key: k")),
        ask(service, preflight(PAGE.encode(), path).replace(HOST, local)),
    ]

    assert [answer.status for answer in answers] == [200, 405]
    for answer in answers:
        assert list_cors_headers(answer) == {}


USE = "--cors: {} is not an origin; write scheme://host[:port], such as http://localhost:5173"
WRITE = "--cors: {1} is not an origin; write {0}"
INVALID = {
    "http://localhost:5173/": WRITE.format(PAGE, '"http://localhost:5173/"'),
    "HTTP://Localhost:5173": WRITE.format(PAGE, '"HTTP://Localhost:5173"'),
    "https://example.org:443/shop?x": WRITE.format(
        "https://example.org", '"https://example.org:443/shop?x"'
    ),
    "http://localhost:65536": USE.format('"http://localhost:65536"'),
    "localhost:5173": USE.format('"localhost:5173"'),
    "http://name:secret@example.org": USE.format('"example.org"'),
    "http://*.example.org": USE.format('"http://*.example.org"'),
    "http://b\u00fccher.example": USE.format('"http://b\u00fccher.example"'),
    "http://x\r\nSet-Cookie: a=b": USE.format(r'"http://x\r\nSet-Cookie: a=b"'),
    "": USE.format('""'),
}


@pytest.mark.parametrize(("value", "message"), INVALID.items())
def test_an_invalid_origin_is_refused(cli: Cli, value: str, message: str) -> None:
    ran = cli("serve", "--cors", PAGE, "--cors", value)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr == f"error: {message}\n"


def test_the_variable_has_origins_separated_by_spaces(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_CORS", f"{PAGE} localhost")

    assert cli("serve").stderr.startswith('error: SRVSTAT_CORS: "localhost" is not an origin; ')


ONE_LINE = re.compile(r"[!-~](?:[ -~]{0,498}[!-~])?")


@pytest.fixture(scope="module")
def explained() -> Iterator[Service]:
    with serve_small("--explain-errors", "--explore") as running:
        yield running


def test_without_the_option_no_answer_has_a_reason() -> None:
    with serve_small() as explained:
        assert "x-srvstat-reason" not in send_request(explained, get(b"nobody")).headers


def escape(data: bytes) -> bytes:
    return b"".join(b"%%%02X" % byte for byte in data)


PLACES: list[Callable[[bytes], bytes]] = [
    get,
    compare,
    lambda data: get(escape(data)),
    lambda data: get(b"a?" + escape(data)),
    lambda data: compare(TWO.replace(b"a", data, 1)),
    lambda data: request(COMPARE, HOST, KEY, b"Content-Type: application/" + data, body=TWO),
    lambda data: request(data + A.removeprefix(b"GET"), HOST, KEY),
]
"""Requests with data in the path, the query, the body, the type and the method."""


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(PLACES), st.binary(max_size=99) | st.text().map(str.encode))
@example(PLACES[2], b"a\r\nX-Evil: 1\r\n\r\n")
@example(PLACES[4], "\u2028\x85\u202e".encode())
def test_whatever_a_client_sends_the_header_is_one_line(
    explained: Service, build: Callable[[bytes], bytes], data: bytes
) -> None:
    with Client(explained) as client:
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


def test_the_header_has_the_reason_of_the_log(explained: Service) -> None:
    long = compare(TWO.replace(b'"a"', b'"a_long_and_invalid_identifier"'))
    header = send_request(explained, long).headers["x-srvstat-reason"]

    assert '"..."' in header
    assert log_request(explained, long)["reason"] == header.replace("...", "\u2026")


KEY_FIELD = b"X-Gateway-Key: "
TWELVE = """
[plans.twelve]
operations = ["get-server", "compare-servers"]
ranges = ["7d"]
requests_per_minute = 12
"""


def ask_with_key(
    service: Service, line: bytes, *headers: bytes, body: bytes | None = None, key: bytes = b"a"
) -> Answer:
    more = [JSON, *headers] if body else headers
    sent = request(line + b" HTTP/1.1", HOST, KEY_FIELD + key, *more, body=body)
    return send_request(service, sent, to_head=line.startswith(b"HEAD"))


def test_every_answer_to_a_caller_with_a_limit_says_what_remains(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(TWELVE + format_access({"a": "twelve", "b": "all"}), encoding="utf-8")
    path = build_small(tmp_path)
    get, compare = b"GET /gateway/v1/servers/", b"POST /gateway/v1/compare"
    with serve(path, "--explore", "--access", str(access)) as service:
        change(str(path), "UPDATE servers SET hostname = 'x' WHERE id = 'b'")
        answers = [
            ask_with_key(service, get + b"a"),
            ask_with_key(service, b"HEAD /gateway/v1/servers/a"),
            ask_with_key(service, compare, body=TWO[:-1] + b',"range":"7d"}'),
            ask_with_key(service, get + b"_"),
            ask_with_key(service, compare, body=TWO),
            ask_with_key(service, get + b"zz"),
            ask_with_key(service, b"GET /nowhere"),
            ask_with_key(service, b"DELETE /gateway/v1/compare"),
            ask_page(service, f"{OVERVIEW}?id=!", key="a"),
            ask_page(service, f"{OVERVIEW}?id=a", key="a", method="HEAD"),
        ]
        others = [
            ask_with_key(service, get + b"a", key=b"b"),
            ask_with_key(service, get + b"a", key=b"unknown"),
            ask_with_key(service, b"GET /healthz"),
            ask_page(service, "/", key="a"),
        ]
        answers += [ask_with_key(service, get + b"b") for _ in range(3)]

    statuses = [200, 200, 500, 400, 403, 404, 404, 405, 400, 403, 500, 500, 429]
    assert [answer.status for answer in answers] == statuses
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"twelve";q=12;w=60'}
    remaining = [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers]
    assert remaining == [f'"twelve";r={max(number, 0)}' for number in range(11, -2, -1)]
    assert not any("ratelimit" in name for answer in others for name in answer.headers)


def test_a_simulated_error_has_headers_that_agree_with_it(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(TWELVE + format_access({"a": "twelve"}), encoding="utf-8")
    with serve(build_small(tmp_path), "--allow-prefer", "--access", str(access)) as service:
        limited, unauthorized, failed = (
            ask_with_key(service, b"GET /gateway/v1/servers/a", b"Prefer: code=%d" % code).headers
            for code in (429, 401, 500)
        )

    assert limited["ratelimit-policy"] == '"twelve";q=12;w=60'
    assert limited["ratelimit"] == f'"twelve";r=0;t={limited["retry-after"]}'
    assert not {"ratelimit", "ratelimit-policy"} & set(unauthorized)
    assert failed["ratelimit"].startswith('"twelve";r=9;t=')


SECOND = 1_000_000_000
MINUTE = 60 * SECOND
WAIT = st.integers(0, MINUTE) | st.sampled_from([0, 1, SECOND, MINUTE])


class Clock:
    """A clock that a test sets, in nanoseconds."""

    now = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now


def count_accepted(limiter: RateLimiter, limit: int) -> int:
    """Send requests until one is refused, and return how many were accepted."""
    accepted = 0
    while limiter.count("a", limit).is_accepted:
        accepted += 1
    return accepted


@given(steps=st.lists(st.tuples(WAIT, st.integers(1, 5)), min_size=1, max_size=12))
@example(steps=[(0, 3), (0, 3), (0, 1)])
def test_the_remaining_requests_are_accepted_and_one_more_after_the_seconds(
    steps: list[tuple[int, int]],
) -> None:
    """Each step waits and sends a request under a limit, which can change."""

    def take_steps() -> tuple[Clock, RateLimiter, Quota]:
        clock = Clock()
        limiter = RateLimiter(clock)
        for wait, limit in steps:
            clock.now += wait
            quota = limiter.count("a", limit)
        return clock, limiter, quota

    _, limit = steps[-1]
    clock, limiter, quota = take_steps()
    assert 1 <= quota.seconds <= 60
    assert count_accepted(limiter, limit) == quota.remaining

    clock, limiter, _ = take_steps()
    clock.now += (quota.seconds - 1) * SECOND
    assert count_accepted(limiter, limit) == quota.remaining

    clock, limiter, _ = take_steps()
    clock.now += quota.seconds * SECOND
    assert count_accepted(limiter, limit) > quota.remaining


def test_idle_callers_are_forgotten() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for number in range(100):
        limiter.count(str(number), 9)
    limiter.count("active", 10_000)
    assert len(limiter) == 101

    for second in (59, 61, *range(62, 262)):
        clock.now = second * SECOND
        limiter.count("active", 10_000)

    assert len(limiter) == 1


@pytest.mark.parametrize(
    ("limit", "written"), [(60, "60"), (10**15 - 1, "9" * 15), (2**53 - 1, "9" * 15)]
)
def test_a_header_has_no_integer_that_structured_fields_forbid(limit: int, written: str) -> None:
    headers = format_quota("starter-2", limit, Quota(True, limit - 1, 42))

    assert headers["ratelimit-policy"] == f'"starter-2";q={written};w=60'
    assert headers["ratelimit"] == f'"starter-2";r={min(limit - 1, 10**15 - 1)};t=42'
