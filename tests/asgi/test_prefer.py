"""A request selects its error by `Prefer: code=429`, with `serve --allow-prefer`."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi.small_service import COMPARED, SERVER_A, serve_small
from srvstat.asgi.rehearsal import find_preference
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
TOKENS = st.text("!#$%&'*+-.^_`|~09AZaz", min_size=1, max_size=5)
QUOTED = st.text('ab,;=\\" ', max_size=6)
SPACES = st.sampled_from(["", " ", "\t "])


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


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"code",
        b"code=",
        b"code=405",
        b"code=4290",
        b"code=abc, code=429",
        b"xcode=429",
        b'wait="code=429, code=429"',
        b'"code=429',
        b"code 429",
        b"code==429",
    ],
)
def test_other_preferences_are_ignored(value: bytes) -> None:
    found = find_preference([(b"prefer", value)], b"code")

    assert found not in {str(status).encode() for status in ERRORS_BY_STATUS}


def test_a_preference_needs_the_option_and_a_request_that_is_counted() -> None:
    prefer = b"Prefer: code=429"
    health, anonymous = HEALTH[:-2] + prefer + b"\r\n\r\n", request(A, HOST, prefer)
    with serve_small() as without, serve_small("--allow-prefer") as service:
        found = ask(without, get(b"a", prefer))
        assert (found.body, "preference-applied" in found.headers) == (SERVER_A, False)
        sent = (health, anonymous, get(b"a/b", prefer))
        assert [ask(service, one).status for one in sent] == [200, 401, 404]


@given(
    preferences=st.lists(
        st.tuples(TOKENS, TOKENS | QUOTED.map(lambda text: (text,)) | st.none(), SPACES),
        min_size=1,
        max_size=4,
    ),
    places=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_the_first_preference_of_a_name_is_found_in_any_form(
    preferences: list[tuple[str, str | tuple[str] | None, str]], places: list[bool]
) -> None:
    lines = [""]
    for (name, value, space), splits in zip(preferences, [False, *places], strict=False):
        text = name.upper() + format_value(value, space)
        if splits:
            lines.append(text)
        else:
            lines[-1] += f",{space}{text}" if lines[-1] else text
    headers = [(b"prefer", line.encode()) for line in lines]

    for wanted in {name.lower() for name, _, _ in preferences}:
        first = next(value for name, value, _ in preferences if name.lower() == wanted)
        plain = first[0] if isinstance(first, tuple) else first or ""
        assert find_preference(headers, wanted.encode()) == plain.encode()
    assert find_preference(headers, b"absent!") is None


def format_value(value: str | tuple[str] | None, space: str) -> str:
    if value is None:
        return f"{space};p=1"
    if isinstance(value, tuple):
        quoted = value[0].replace("\\", "\\\\").replace('"', '\\"')
        return f'{space}={space}"{quoted}"{space}'
    return f"{space}={space}{value}{space}; q; r=2"


def test_a_hostile_preference_takes_linear_time() -> None:
    hostile = (b'"' + b'\\"' * 7_000, b'"' * 14_000, b"code" + b" " * 14_000 + b"x", b",;" * 7_000)
    began = time.process_time()

    assert [find_preference([(b"prefer", value)], b"code") for value in hostile] == [None] * 4
    assert time.process_time() - began < 0.5
