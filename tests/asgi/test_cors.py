"""With `--cors`, answers let pages of other origins read them, and change in nothing else."""

from collections.abc import Iterator

import pytest

from asgi.small_service import SERVER_A, empty_log, serve_small, wait_for_entries
from conftest import Cli
from support.http import HEALTH, HOST, TWO, A, Answer, Client, compare, get, request, send_request
from support.process import Service

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


def preflight(origin: bytes, path: bytes = b"/gateway/v1/compare") -> bytes:
    line = b"OPTIONS %b HTTP/1.1" % path
    asked = (
        b"Access-Control-Request-Method: POST",
        b"Access-Control-Request-Headers: content-type,x-gateway-key",
    )
    return request(line, HOST, b"Origin: " + origin, *asked)


def ask(service: Service, sent: bytes) -> Answer:
    with Client(service) as client:
        client.send(sent)
        return client.read_any_answer()


def list_cors_headers(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if "access-control" in name}


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
WRITE = "--cors: browsers send {} as the origin of {}; write that"
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
