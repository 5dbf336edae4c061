"""Every code of the contract, and what comes with it."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from asgi.log_entries import logged
from asgi.small_service import (
    ANSWERED,
    NOT_FOUND,
    NOT_TO_POST,
    REFUSED,
    SHOWN,
    UNAUTHORIZED,
    access_text,
    build_small,
)
from srvstat.asgi import app as asgi_app
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.log import Log
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.asgi.workers import WORKERS
from support.http import (
    COMPARE,
    ERRORS,
    HOST,
    JSON,
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

NOT_IN_PLAN = Expected(403, ERRORS["FEATURE_NOT_AVAILABLE"])
BROKEN_DOWN = Expected(500, ERRORS["INTERNAL_ERROR"])
KEYS = {f"key-of-{plan}": plan for plan in ("all", "short", "get", "compare")}
LIMITED = [f"limited-key-{number}" for number in range(5)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("small")
    access = directory / "access.toml"
    access.write_text(access_text({**KEYS, **dict.fromkeys(LIMITED, "three")}), encoding="utf-8")
    with serve(build_small(directory), "--access", str(access)) as under_way:
        yield under_way


def header(key: str) -> bytes:
    return b"X-Gateway-Key: " + key.encode()


def shown_to(key: str, identifier: bytes = b"a", method: bytes = b"GET") -> bytes:
    line = b"%b /gateway/v1/servers/%b HTTP/1.1" % (method, identifier)
    return request(line, HOST, header(key))


def compared_for(key: str, range: bytes = b"30d", body: bytes = TWO) -> bytes:
    with_range = body[:-1] + b',"range":"%b"}' % range
    return request(COMPARE, HOST, header(key), JSON, body=with_range)


@pytest.mark.parametrize(
    "key", ["key-of-al", "key-of-alll", "KEY-OF-ALL", "all", "\u00e9", "x" * 99]
)
def test_a_key_that_is_not_in_the_file_is_not_good(key: str, service: Service) -> None:
    check_answer(service, shown_to(key), UNAUTHORIZED)
    check_answer(service, compared_for(key), UNAUTHORIZED)


def test_a_digest_is_no_key(service: Service) -> None:
    check_answer(service, shown_to("0" * 64), UNAUTHORIZED)


@pytest.mark.parametrize(
    ("key", "range", "expected"),
    [
        ("key-of-all", b"30d", ANSWERED),
        ("key-of-compare", b"30d", ANSWERED),
        ("key-of-compare", b"7d", NOT_IN_PLAN),
        ("key-of-short", b"30d", NOT_IN_PLAN),
        ("key-of-short", b"1y", NOT_IN_PLAN),
        ("key-of-get", b"30d", NOT_IN_PLAN),
        ("key-of-get", b"8d", REFUSED),
    ],
)
def test_a_plan_says_what_may_be_compared(
    key: str, range: bytes, expected: Expected, service: Service
) -> None:
    check_answer(service, compared_for(key, range), expected)


def test_a_range_that_is_left_out_is_one_all_the_same(service: Service) -> None:
    sent = request(COMPARE, HOST, header("key-of-short"), JSON, body=TWO)

    check_answer(service, sent, NOT_IN_PLAN)
    assert logged(service, sent)["reason"] == "the plan short does not include 30d, only 24h, 7d"


def test_a_plan_says_whether_servers_are_shown(service: Service) -> None:
    check_answer(service, shown_to("key-of-get"), SHOWN)
    check_answer(service, shown_to("key-of-compare"), NOT_IN_PLAN)
    check_answer(service, shown_to("key-of-compare", method=b"HEAD"), NOT_IN_PLAN)


def test_a_plan_is_judged_after_the_request_and_before_the_server(service: Service) -> None:
    check_answer(service, shown_to("key-of-compare", b"_"), REFUSED)
    check_answer(service, shown_to("key-of-compare", b"zz"), NOT_IN_PLAN)
    check_answer(
        service, compared_for("key-of-get", body=TWO.replace(b'"b"', b'"zz"')), NOT_IN_PLAN
    )
    check_answer(service, compared_for("key-of-get", b"30"), REFUSED)
    wrong = request(b"GET /gateway/v1/compare HTTP/1.1", HOST, header("key-of-get"))
    check_answer(service, wrong, NOT_TO_POST)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_unknown_and_hidden_servers_cannot_be_told_apart(method: bytes, service: Service) -> None:
    def told(identifier: bytes, by: bytes) -> object:
        sent = shown_to("key-of-all", b"%b?by=%b" % (identifier, by), method)
        return send_request(service, sent, to_head=method == b"HEAD").told

    unknown = told(b"secret", b"id")
    assert told(b"hidden", b"id") == unknown
    assert told(b"x-hidden", b"cfxId") == unknown
    assert told(b"x-secret", b"cfxId") == unknown


def test_no_comparison_tells_them_apart_either(service: Service) -> None:
    answers = [
        send_request(service, compared_for("key-of-all", body=TWO.replace(b'"b"', b'"%b"' % name)))
        for name in (b"secret", b"hidden")
    ]
    assert answers[0].told == answers[1].told
    assert answers[0].status == 404


def limited(service: Service, key: str) -> Answer:
    return send_request(service, shown_to(key))


def test_more_requests_than_the_plan_has_a_minute_are_told_to_wait(service: Service) -> None:
    key = LIMITED[0]
    began = time.monotonic()
    assert [limited(service, key).status for _ in range(3)] == [200, 200, 200]

    refused = limited(service, key)
    assert (refused.status, refused.body) == (429, ERRORS["RATE_LIMITED"])
    seconds = int(refused.headers["retry-after"])
    assert 60 - (time.monotonic() - began) <= seconds <= 60

    time.sleep(1.1)
    later = int(limited(service, key).headers["retry-after"])
    assert 60 - (time.monotonic() - began) <= later < seconds
    assert logged(service, shown_to(key))["reason"] == "more than 3 requests a minute"


def test_each_key_has_its_own_requests(service: Service) -> None:
    for _ in range(3):
        limited(service, LIMITED[1])

    assert limited(service, LIMITED[1]).status == 429
    assert limited(service, LIMITED[2]).status == 200
    assert send_request(service, shown_to("key-of-all")).status == 200


def test_every_request_with_a_key_counts_and_none_without(service: Service) -> None:
    key = LIMITED[3]
    for _ in range(9):
        send_request(service, shown_to(key + "x"))
        send_request(service, request(A, HOST))
        send_request(service, request(b"GET /healthz HTTP/1.1", HOST, header(key)))
    refused = [shown_to(key, b"_"), shown_to(key, b"zz"), request(COMPARE, HOST, header(key))]
    assert [send_request(service, sent).status for sent in refused] == [400, 404, 400]

    assert limited(service, key).status == 429
    assert send_request(service, request(b"GET /nowhere HTTP/1.1", HOST, header(key))).status == 429


def test_fifty_requests_at_once_are_not_more_than_the_plan_has(service: Service) -> None:
    with Client(service) as client:
        client.send(shown_to(LIMITED[4]) * 50)
        statuses = [client.read_answer().status for _ in range(50)]

    assert statuses == [200] * 3 + [429] * 47


@pytest.mark.parametrize(
    ("sql", "broken", "whole"),
    [
        ("UPDATE servers SET hostname = 'x' WHERE id = 'a'", get(b"a"), get(b"b")),
        ("UPDATE servers SET hostname = 'x' WHERE id = 'a'", compare(TWO), get(b"b")),
        ("UPDATE days SET prefix_count = prefix_count + 7", compare(TWO), get(b"a")),
        ("DELETE FROM days", compare(TWO), get(b"a")),
    ],
    ids=["a server that is shown", "a server that is compared", "days", "no days"],
)
def test_a_snapshot_damaged_under_the_service_gives_an_error_where_it_is_read(
    sql: str, broken: bytes, whole: bytes, tmp_path: Path
) -> None:
    path = build_small(tmp_path)
    with serve(path) as service:
        change(str(path), sql)

        check_answer(service, broken, BROKEN_DOWN)
        assert send_request(service, whole).status == 200
        check_answer(service, get(b"zz"), NOT_FOUND)
        check_answer(service, get(b"_"), REFUSED)
        reason = logged(service, broken)["reason"]
        assert reason.startswith(f"{path}: damaged (")
        assert str(tmp_path) not in str(send_request(service, compare(TWO)))


def test_work_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    snapshot = ServedSnapshot(os.fspath(build_small(tmp_path)), log)
    app = asgi_app.Service(snapshot, Authenticator(None, log), log)

    async def ask(client: httpx.AsyncClient) -> tuple[int, bytes]:
        response = await client.get("/gateway/v1/servers/a", headers={"X-Gateway-Key": "k"})
        return response.status_code, response.content

    async def ask_in_vain() -> list[tuple[int, bytes]]:
        generation = await snapshot.current()
        slow = [
            snapshot.ask(
                generation,
                lambda _: time.sleep(0.4),
                remember=lambda _: None,
                is_wanted=lambda: True,
            )
            for _ in range(WORKERS)
        ]
        waiting = asyncio.gather(*slow)
        await asyncio.sleep(0)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            with monkeypatch.context() as patched:
                patched.setattr(asgi_app, "WORK_SECONDS", 0.1)
                answers = [await ask(client)]
            await waiting
            answers.append(await ask(client))
        for worker, file in generation.files.items():
            worker.submit(file.close).result()
        log.close()
        return answers

    late, in_time = asyncio.run(ask_in_vain())

    assert late == (500, ERRORS["INTERNAL_ERROR"])
    assert in_time[0] == 200
    assert '"reason": "no answer within 0.1 s"' in capfd.readouterr().err
