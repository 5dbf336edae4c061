"""`serve` simulates failures, by chance, by the rules of a file, or as a request prefers."""

import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi.small_service import COMPARED, SERVER_A, serve_small, wait_for_entries
from srvstat.asgi import SimulationSettings
from srvstat.asgi.faults import draw_fault
from srvstat.asgi.server import FINISH_SECONDS
from srvstat.operations.faults import MAX_DELAY_SECONDS, Fault, parse_preferences
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
from support.process import Service

pytestmark = pytest.mark.slow

COUNTED = [get(b"a"), get(b"a", line=b"HEAD %b HTTP/1.1"), compare(TWO), get(b"zz"), get(b"b")]
UNHARMED = get(b"a", b"Prefer: code=200")
"""It counts as well."""
NOT_COUNTED = [HEALTH, request(A, HOST), get(b"a/b"), get(b"_")]
"""Health, no key, an unknown path, an invalid identifier."""

SHARES = st.floats(0, 1)


def draw_numbers(seed: int, number: int) -> list[tuple[float, float, float]]:
    """Return what decides about the first requests: the delay, a failure, a drop."""
    draw = random.Random(seed).random  # noqa: S311 - as the service
    return [(draw(), draw(), draw()) for _ in range(number)]


def draw_outcomes(seed: int, number: int, *, fail: float, drop: float) -> list[str]:
    """Return the outcomes of the first requests."""
    return [
        "drop" if for_drop < drop else "fail" if for_fail < fail else "real"
        for _, for_fail, for_drop in draw_numbers(seed, number)
    ]


def send(service: Service, sent: bytes) -> str:
    """Send a request on a new connection, and return the outcome."""
    to_head = sent.startswith(b"HEAD")
    with Client(service) as client:
        client.send(sent)
        try:
            answer = client.read_answer(to_head=to_head)
        except EOFError as error:
            return "drop" if error.args == (b"",) else "a part of an answer"
    return "fail" if answer.status == 500 else "real"


@pytest.mark.parametrize("seed", [None, 42])
def test_the_seed_decides_what_happens_to_each_counted_request(seed: int | None) -> None:
    shares = ("--fail", "30%", "--drop", "22.5%", "--delay", "0ms..10ms", "--allow-prefer")
    options = shares if seed is None else (*shares, "--seed", str(seed))
    drawn_from = 1 if seed is None else seed
    expected = draw_outcomes(drawn_from, 36, fail=0.3, drop=0.225)
    expected[5::6] = ["real"] * 6
    assert {"real", "fail", "drop"} == set(expected)

    with serve_small(*options) as service:
        found = []
        for sent, other in zip([*COUNTED, UNHARMED] * 6, NOT_COUNTED * 9, strict=True):
            found.append(send(service, sent))
            assert send(service, other) == "real"
        entries = wait_for_entries(service, 72)

    assert found == expected
    counted = [entry for entry in entries if "delay" in entry]
    named = {"fail": "code=500"}
    assert [entry.get("simulated", "real") for entry in counted] == [
        named.get(outcome, outcome) for outcome in expected
    ]
    assert [entry["delay"] for entry in counted] == [
        round(10 * for_delay) for for_delay, _, _ in draw_numbers(drawn_from, 36)
    ]
    assert all("status" in entry for entry in entries if entry.get("simulated") != "drop")


@given(numbers=st.tuples(SHARES, SHARES, SHARES), one=st.tuples(SHARES, SHARES), more=SHARES)
def test_a_greater_share_keeps_all_failures_and_no_option_affects_another(
    numbers: tuple[float, float, float], one: tuple[float, float], more: float
) -> None:
    fail, drop = one
    settings = SimulationSettings((1, 3), fail, drop)
    drawn = draw_fault(iter(numbers).__next__, settings)
    greater = draw_fault(iter(numbers).__next__, settings._replace(fail=max(fail, more)))
    rest = iter(numbers)
    alone = draw_fault(rest.__next__, SimulationSettings(fail=fail))

    assert greater in (drawn, drawn._replace(outcome="code=500"))
    assert drawn.delay is not None
    assert 1_000 <= drawn.delay <= 3_000
    assert alone in (Fault(), Fault("code=500"))
    assert drawn.outcome in {alone.outcome, "drop"}
    assert list(rest) == []


def test_a_drop_ends_a_connection_after_the_earlier_answers() -> None:
    seed = next(
        seed
        for seed in count()
        if draw_outcomes(seed, 4, fail=0, drop=0.5) == ["real", "real", "drop", "real"]
    )
    with serve_small("--drop", "50%", "--seed", str(seed)) as service, Client(service) as client:
        client.send(get(b"a") + compare(TWO) + get(b"a") + get(b"zz"))

        assert [client.read_answer().body for _ in range(2)] == [SERVER_A, COMPARED]
        assert client.read_rest() == b""
        assert send(service, get(b"a")) == "real"  # what followed the drop was not counted
        *answered, dropped, last = wait_for_entries(service, 4)
        assert [entry["status"] for entry in (*answered, last)] == [200] * 3
        assert dropped.keys().isdisjoint({"status", "bytes", "code", "event"})


def test_delayed_requests_wait_at_the_same_time_and_delay_no_other() -> None:
    with serve_small("--delay", "1s") as service, ThreadPoolExecutor(20) as threads:
        answers = [threads.submit(send_request, service, get(b"a")) for _ in range(20)]
        assert send_request(service, HEALTH).status == 200
        assert {answer.result().body for answer in answers} == {SERVER_A}
        first, *delayed = wait_for_entries(service, 21)

    assert first["operation"] == "getHealth"
    assert all(entry["delay"] == 1_000 <= entry["ms"] < 15_000 for entry in delayed)


@pytest.fixture
def slow_service() -> Iterator[Service]:
    with serve_small("--delay", f"{MAX_DELAY_SECONDS}s") as running:
        yield running


def test_no_delay_reaches_the_deadline_of_an_answer() -> None:
    assert MAX_DELAY_SECONDS + 5 <= FINISH_SECONDS


def test_a_stop_ends_all_delays(slow_service: Service) -> None:
    """It also ends the delay of a request whose body arrives after the signal."""
    with Client(slow_service) as one, Client(slow_service) as two:
        one.send(request(COMPARE, HOST, KEY, JSON, b"Expect: 100-continue", b"Content-Length: 71"))
        two.send(get(b"a"))
        one.wait_for_continue()
        time.sleep(0.1)
        began = time.monotonic()
        slow_service.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        one.send(TWO)
        slow_service.process.wait(timeout=30)

        assert time.monotonic() - began < 3
        assert [one.read_answer().body, two.read_answer().body] == [COMPARED, SERVER_A]
        assert one.read_rest() == two.read_rest() == b""
    assert [entry.get("status") for entry in slow_service.read_log()][-3:] == [200, 200, None]


STATUSES = dict(zip((400, 401, 403, 404, 429, 500), ERRORS, strict=True))


@pytest.fixture(scope="module")
def preferring() -> Iterator[Service]:
    with serve_small("--allow-prefer", "--explain-errors") as running:
        yield running


def ask(preferring: Service, sent: bytes) -> Answer:
    to_head = sent.startswith(b"HEAD")
    with Client(preferring) as client:
        client.send(sent + HEALTH)
        answer = client.read_any_answer(to_head=to_head)
        assert client.read_any_answer().status == 200  # the connection stays open
    return answer


@pytest.mark.parametrize("status", STATUSES)
def test_each_error_of_the_contract_can_be_selected(status: int, preferring: Service) -> None:
    prefer = b"Prefer: code=%d" % status
    head = get(b"a", prefer, line=b"HEAD %b HTTP/1.1")
    answers = [ask(preferring, sent) for sent in (get(b"a", prefer), compare(TWO, prefer), head)]

    body = ERRORS[STATUSES[status]]
    assert [answer.status for answer in answers] == [status] * 3
    assert [answer.body for answer in answers] == [body, body, b""]
    for answer in answers:
        headers = answer.headers
        assert headers["preference-applied"] == f"code={status}"
        assert headers["x-srvstat-reason"] == "simulated by Prefer"
        assert headers["content-length"] == str(len(body))
        assert headers.get("retry-after") == ("1" if status == 429 else None)
        assert ("www-authenticate" in headers) == (status == 401)


@pytest.mark.parametrize(
    ("status", "code"),
    [(408, "INVALID_REQUEST"), (499, "INVALID_REQUEST")]
    + [(status, "INTERNAL_ERROR") for status in (501, 502, 503, 504, 599)],
)
def test_a_request_can_prefer_an_error_that_the_contract_lacks(
    status: int, code: str, preferring: Service
) -> None:
    answer = ask(preferring, get(b"a", b"Prefer: code=%d" % status))

    assert (answer.status, answer.body) == (status, ERRORS[code])
    assert answer.headers["preference-applied"] == f"code={status}"


def test_a_request_can_prefer_to_wait(preferring: Service) -> None:
    started = time.monotonic()
    waited = ask(preferring, get(b"a", b"Prefer: delay=200"))
    failed = ask(preferring, get(b"a", b"Prefer: code=503, delay=200"))

    assert time.monotonic() - started > 0.4
    assert (waited.status, waited.headers["preference-applied"]) == (200, "delay=200")
    assert (failed.status, failed.headers["preference-applied"]) == (503, "delay=200, code=503")


def test_a_request_can_prefer_a_broken_connection(preferring: Service) -> None:
    started = count_entries(preferring)
    with Client(preferring) as client:
        client.send(get(b"a", b"Prefer: drop"))
        assert client.read_rest() == b""
    with Client(preferring) as client:
        client.send(get(b"a", b"Prefer: cut"))
        head, _, body = client.read_rest().partition(b"\r\n\r\n")
    assert b"content-length: %d\r\n" % len(SERVER_A) in head
    assert b"preference-applied: cut\r\n" in head
    assert body == SERVER_A[: len(SERVER_A) // 2]
    with Client(preferring) as client:
        client.send(get(b"a", b"Prefer: reset"))
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)

    dropped, cut, reset = wait_for_entries(preferring, 3, after=started)
    assert [one["simulated"] for one in (dropped, cut, reset)] == ["drop", "cut", "reset"]
    assert (cut["status"], cut["bytes"]) == (200, len(SERVER_A) // 2)
    assert {"status", "bytes"}.isdisjoint(dropped | reset)


def count_entries(service: Service) -> int:
    """Return the number of log entries once the last request has one."""
    send_request(service, HEALTH)
    time.sleep(0.05)
    return len(service.read_log())


def test_a_request_that_prefers_success_does_not_fail_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    options = ("--allow-prefer", "--fail", "100%", "--record", str(path))
    with serve_small(*options) as preferring:
        failed = ask(preferring, get(b"a"))
        limited = ask(preferring, get(b"a", b"Prefer: code=429"))
        found = ask(preferring, get(b"a", b"Prefer: code=200"))
        prefer = (b"Prefer: wait=5", b'pReFeR: foo="1,2";x=y, code="200"')
        compared = ask(preferring, compare(TWO, *prefer))
        missing = ask(preferring, get(b"zz", b"Prefer: code=200; example=b, code=500"))
        preferring.stop()

    assert (failed.status, limited.status) == (500, 429)
    assert (found.body, compared.body, missing.status) == (SERVER_A, COMPARED, 404)
    assert "preference-applied" not in found.headers
    assert path.read_bytes().count(b"\n") == 3  # only what was not simulated


NO_CODES = [
    "",
    "code",
    "code=",
    "code=429000",
    "drop=1",
    "delay",
    "xcode=429",
    'wait="1, code=429"',
    '"code=429',
]
HOSTILE_VALUES = ['"' * 14_000, "code" + " " * 14_000 + "x", ",;" * 7_000]


@pytest.mark.parametrize("value", ['wait=5;x="1", code="429"', "CODE = 429 ; q=1, code=500"])
def test_the_first_code_counts(value: str) -> None:
    assert parse_preferences(value) == Fault("code=429")


@pytest.mark.parametrize("value", [*NO_CODES, *HOSTILE_VALUES, "code 429", "code==429"])
def test_nothing_else_is_a_code(value: str) -> None:
    assert parse_preferences(value) == Fault()


def test_a_preference_needs_the_option_and_a_request_that_is_counted() -> None:
    prefer = b"Prefer: code=429"
    health, anonymous = HEALTH[:-2] + prefer + b"\r\n\r\n", request(A, HOST, prefer)
    with serve_small() as without, serve_small("--allow-prefer") as preferring:
        found = ask(without, get(b"a", prefer))
        assert (found.body, "preference-applied" in found.headers) == (SERVER_A, False)
        sent = (health, anonymous, get(b"a/b", prefer))
        assert [ask(preferring, one).status for one in sent] == [200, 401, 404]
