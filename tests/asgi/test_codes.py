"""Every error code of the contract, with its status and headers."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi.small_service import (
    INVALID_REQUEST,
    NOT_FOUND,
    POST_ONLY,
    InProcess,
    build_small,
    format_access,
    log_request,
)
from srvstat.asgi import snapshots
from srvstat.asgi.snapshots import WORKERS
from support.http import (
    COMPARE,
    ERRORS,
    HOST,
    JSON,
    TWO,
    A,
    Answer,
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
INTERNAL_ERROR = Expected(500, ERRORS["INTERNAL_ERROR"])
KEYS = {f"key-of-{plan}": plan for plan in ("all", "short", "get", "compare")}
LIMITED = [f"limited-key-{number}" for number in range(5)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
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


def test_the_plan_is_checked_after_the_request_and_before_the_server(service: Service) -> None:
    check_answer(service, get_with("key-of-compare", b"_"), INVALID_REQUEST)
    check_answer(service, get_with("key-of-compare", b"zz"), NOT_IN_PLAN)
    check_answer(
        service, compare_with("key-of-get", body=TWO.replace(b'"b"', b'"zz"')), NOT_IN_PLAN
    )
    check_answer(service, compare_with("key-of-get", b"30"), INVALID_REQUEST)
    wrong = request(b"GET /gateway/v1/compare HTTP/1.1", HOST, build_key_header("key-of-get"))
    check_answer(service, wrong, POST_ONLY)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_get_server_answers_unknown_and_hidden_servers_alike(
    method: bytes, service: Service
) -> None:
    def ask_about(identifier: bytes, by: bytes) -> object:
        sent = get_with("key-of-all", b"%b?by=%b" % (identifier, by), method)
        return send_request(service, sent, to_head=method == b"HEAD").stable_parts

    unknown = ask_about(b"secret", b"id")
    assert ask_about(b"hidden", b"id") == unknown
    assert ask_about(b"x-hidden", b"cfxId") == unknown
    assert ask_about(b"x-secret", b"cfxId") == unknown


def ask(service: Service, key: str) -> Answer:
    return send_request(service, get_with(key))


def test_requests_over_the_limit_of_the_plan_are_refused_with_retry_after(service: Service) -> None:
    key = LIMITED[0]
    began = time.monotonic()
    assert [ask(service, key).status for _ in range(3)] == [200, 200, 200]

    refused = ask(service, key)
    assert (refused.status, refused.body) == (429, ERRORS["RATE_LIMITED"])
    seconds = int(refused.headers["retry-after"])
    assert 60 - (time.monotonic() - began) <= seconds <= 60

    time.sleep(1.1)
    later = int(ask(service, key).headers["retry-after"])
    assert 60 - (time.monotonic() - began) <= later < seconds
    assert log_request(service, get_with(key))["reason"] == "more than 3 requests a minute"


def test_only_requests_with_a_valid_key_count(service: Service) -> None:
    key = LIMITED[3]
    for _ in range(9):
        send_request(service, get_with(key + "x"))
        send_request(service, request(A, HOST))
        send_request(service, request(b"GET /healthz HTTP/1.1", HOST, build_key_header(key)))
    refused = [
        get_with(key, b"_"),
        get_with(key, b"zz"),
        request(COMPARE, HOST, build_key_header(key)),
    ]
    assert [send_request(service, sent).status for sent in refused] == [400, 404, 400]

    assert ask(service, key).status == 429
    assert (
        send_request(service, request(b"GET /nowhere HTTP/1.1", HOST, build_key_header(key))).status
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
    with serve(path) as service:
        change(str(path), sql)

        check_answer(service, broken, INTERNAL_ERROR)
        assert send_request(service, whole).status == 200
        check_answer(service, get(b"zz"), NOT_FOUND)
        check_answer(service, get(b"_"), INVALID_REQUEST)
        reason = log_request(service, broken)["reason"]
        assert reason.startswith(f"{path}: damaged (")
        assert str(tmp_path) not in str(send_request(service, compare(TWO)))


def test_a_late_answer_is_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    service = InProcess(build_small(tmp_path))

    async def ask_while_workers_are_busy() -> None:
        slow = asyncio.gather(*[service.ask(lambda _: time.sleep(0.4)) for _ in range(WORKERS)])
        await asyncio.sleep(0)
        async with service.client() as client:
            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "WORK_SECONDS", 0.1)
                late = await client.get("/servers/a")
            await slow
            in_time = await client.get("/servers/a")
        assert (late.status_code, late.content) == (500, ERRORS["INTERNAL_ERROR"])
        assert in_time.status_code == 200

    service.run(ask_while_workers_are_busy())

    assert '"reason": "no answer within 0.1 s"' in capfd.readouterr().err
