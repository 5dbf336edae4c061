"""A request selects its error by `Prefer: code=429`, with `serve --allow-prefer`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi.small_service import COMPARED, SERVER_A, serve_small
from srvstat.asgi.rehearsal import find_preferred_code
from support.http import ERRORS, HEALTH, HOST, TWO, A, Answer, Client, compare, get, request
from support.process import Service

ERRORS_BY_STATUS = {
    400: "INVALID_REQUEST",
    401: "GATEWAY_UNAUTHORIZED",
    403: "FEATURE_NOT_AVAILABLE",
    404: "SERVER_NOT_FOUND",
    429: "RATE_LIMITED",
    500: "INTERNAL_ERROR",
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small("--allow-prefer", "--explain-errors") as running:
        yield running


def ask(service: Service, sent: bytes) -> Answer:
    to_head = sent.startswith(b"HEAD")
    with Client(service) as client:
        client.send(sent + HEALTH)
        answer = client.read_any_answer(to_head=to_head)
        assert client.read_any_answer().status == 200  # the connection stays open
    return answer


@pytest.mark.parametrize("status", ERRORS_BY_STATUS)
def test_each_error_of_the_contract_can_be_selected(status: int, service: Service) -> None:
    prefer = b"Prefer: code=%d" % status
    head = get(b"a", prefer, line=b"HEAD %b HTTP/1.1")
    answers = [ask(service, sent) for sent in (get(b"a", prefer), compare(TWO, prefer), head)]

    body = ERRORS[ERRORS_BY_STATUS[status]]
    assert [answer.status for answer in answers] == [status] * 3
    assert [answer.body for answer in answers] == [body, body, b""]
    for answer in answers:
        headers = answer.headers
        assert headers["preference-applied"] == f"code={status}"
        assert headers["x-srvstat-reason"] == "rehearsed by Prefer"
        assert headers["content-length"] == str(len(body))
        assert headers.get("retry-after") == ("1" if status == 429 else None)
        assert ("www-authenticate" in headers) == (status == 401)


def test_a_request_that_prefers_success_does_not_fail_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    options = ("--allow-prefer", "--fail", "100%", "--record", str(path))
    with serve_small(*options) as service:
        failed = ask(service, get(b"a"))
        limited = ask(service, get(b"a", b"Prefer: code=429"))
        found = ask(service, get(b"a", b"Prefer: code=200"))
        prefer = (b"Prefer: wait=5", b'pReFeR: foo="1,2";x=y, code="200"')
        compared = ask(service, compare(TWO, *prefer))
        missing = ask(service, get(b"zz", b"Prefer: code=200; example=b, code=500"))
        service.stop()

    assert (failed.status, limited.status) == (500, 429)
    assert (found.body, compared.body, missing.status) == (SERVER_A, COMPARED, 404)
    assert "preference-applied" not in found.headers
    assert path.read_bytes().count(b"\n") == 3  # only what was not rehearsed


NO_CODES = [b"", b"code", b"code=", b"code=4290", b"xcode=429", b'wait="1, code=429"', b'"code=429']
HOSTILE = [b'"' * 14_000, b"code" + b" " * 14_000 + b"x", b",;" * 7_000]


@pytest.mark.parametrize("value", [b'wait=5;x="1", code="429"', b"CODE = 429 ; q=1, code=500"])
def test_the_first_code_counts(value: bytes) -> None:
    assert find_preferred_code([(b"prefer", value)]) == b"429"


@pytest.mark.parametrize("value", [*NO_CODES, *HOSTILE, b"code 429", b"code==429"])
def test_nothing_else_is_a_code(value: bytes) -> None:
    assert find_preferred_code([(b"prefer", value)]) == b""


def test_a_preference_needs_the_option_and_a_request_that_is_counted() -> None:
    prefer = b"Prefer: code=429"
    health, anonymous = HEALTH[:-2] + prefer + b"\r\n\r\n", request(A, HOST, prefer)
    with serve_small() as without, serve_small("--allow-prefer") as service:
        found = ask(without, get(b"a", prefer))
        assert (found.body, "preference-applied" in found.headers) == (SERVER_A, False)
        sent = (health, anonymous, get(b"a/b", prefer))
        assert [ask(service, one).status for one in sent] == [200, 401, 404]
