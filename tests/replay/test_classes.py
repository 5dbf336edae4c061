"""The class of an exchange: what can be compared, for whom, and what differs."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from conftest import AS_OF, DAY, build_in, server
from replay.exchanges import record_comparison, record_get
from srvstat.contract.errors import ApiError, RateLimitedError, ServerNotFoundError
from srvstat.contract.http import Head
from srvstat.contract.requests import build_compare_request, build_server_reference
from srvstat.contract.responses import ErrorResponse
from srvstat.documents.support import ReplayedExchange
from srvstat.operations import answers as operations
from srvstat.operations.access import Access, read_access
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable
from srvstat.support.replay import ReplaySettings, replay
from support.records import PLANS, format_key_table

KEY = b"a-customers-own-key"
SENT_KEY = [(b"x-gateway-key", KEY)]
Replaying = Callable[..., ReplayedExchange]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    times = range(AS_OF - 3 * DAY, AS_OF + 1, DAY // 4)
    rows = [(name, at, at // DAY % 7 + 1) for name in ("a", "b") for at in times]
    path = build_in(tmp_path_factory.mktemp("replayed"), [server("a"), server("b")], rows)
    with closing(open_file(str(path))) as file:
        yield file


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    path = tmp_path_factory.mktemp("access") / "access.toml"
    path.write_text(PLANS + format_key_table(hashlib.sha256(KEY).hexdigest()), encoding="utf-8")
    return read_access(str(path))


@pytest.fixture
def replay_one(snapshot: SnapshotFile) -> Replaying:
    def run(exchange: Exchange | Unreadable, **settings: Any) -> ReplayedExchange:
        document = replay(snapshot, [exchange], ReplaySettings(**settings))
        (replayed,) = document.exchanges
        counts = document.counts.model_dump()
        assert counts == dict.fromkeys(counts, 0) | {replayed.class_: 1}
        return replayed

    return run


def compare(snapshot: SnapshotFile, range: str = "7d", at: int | None = None) -> bytes:
    request = build_compare_request(["a", "b"], range=range)
    return operations.compare(snapshot, request, at=at).to_json()


def get(snapshot: SnapshotFile) -> bytes:
    return operations.get_server(snapshot, build_server_reference("a")).to_json()


def error(kind: type[ApiError]) -> bytes:
    return ErrorResponse.from_error(kind).to_json()


def list_differences(replayed: ReplayedExchange) -> list[tuple[str, Any, Any]]:
    return [(each.pointer, each.recorded, each.recomputed) for each in replayed.differences]


def test_another_status_is_the_only_difference_besides_the_code(
    snapshot: SnapshotFile, replay_one: Replaying
) -> None:
    lost = replay_one(record_get("a", error(ServerNotFoundError), status=404))
    found = replay_one(record_get("x", get(snapshot)))
    other = replay_one(record_get("a?x=1", error(ServerNotFoundError), status=404))
    proxy = replay_one(record_get("x", b"<html>", status=413))

    assert list_differences(lost) == [
        ("/status", 404, 200),
        ("/error/code", "SERVER_NOT_FOUND", None),
    ]
    assert lost.differences[1].absent_in == "recomputed"
    assert list_differences(found) == [("/status", 200, 404)]
    assert found.reason == "no id x"
    assert list_differences(other) == [
        ("/status", 404, 400),
        ("/error/code", "SERVER_NOT_FOUND", "INVALID_REQUEST"),
    ]
    assert list_differences(proxy) == [("/status", 413, 404)]
    assert {each.class_ for each in (lost, found, other, proxy)} == {"differs"}


def test_what_was_not_recorded_is_answered(snapshot: SnapshotFile, replay_one: Replaying) -> None:
    silent = replay_one(replace(record_get("a", None), response=None))
    bodiless = replay_one(record_get("a", None))
    head = record_get("a", None)
    head = replace(head, head=head.head._replace(method="HEAD"))

    unknown = replay_one(replace(record_get("x", None), response=None))

    assert silent.class_ == bodiless.class_ == unknown.class_ == "unrecorded"
    assert unknown.reason == "the response was not recorded; the answer is an error: no id x"
    assert silent.answer
    assert silent.answer.body.text.encode() == get(snapshot)
    assert (silent.reason, bodiless.reason) == (
        "the response was not recorded",
        "the body of the response was not recorded",
    )
    assert replay_one(record_get("x", None)).class_ == "differs"
    assert replay_one(head).class_ == "match"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", b"/healthz"),
        ("GET", b"/gateway/v1/servers/a/stats"),
        ("POST", b"/collect?id=1"),
        ("OPTIONS", b"/gateway/v1/compare"),
    ],
)
def test_other_requests_are_foreign(method: str, path: bytes, replay_one: Replaying) -> None:
    path, _, query = path.partition(b"?")
    exchange = replace(record_get("a", b""), head=Head(method, path, query, []), host="h:80")
    replayed = replay_one(exchange)

    assert (replayed.class_, replayed.answer, replayed.as_of) == ("foreign", None, None)
    assert replayed.path == f"h:80{path.decode()}"


@pytest.mark.parametrize("status", [302, 304, 401, 403, 408, 429, 500, 502, 503])
def test_a_status_that_only_the_service_knows_is_not_reproducible(
    status: int, replay_one: Replaying
) -> None:
    for exchange in (
        record_get("a", error(RateLimitedError), status=status),
        record_comparison(["a", "b"], "7d", None, status=status),
    ):
        replayed = replay_one(exchange)
        assert (replayed.class_, replayed.answer) == ("notReproducible", None)
        assert (replayed.reason or "").startswith(f"status {status}: ")


ANY = record_comparison(["a", "b"], "30d", b"")
SERVED = replace(ANY, is_from_service=True)


def with_key(*keys: bytes) -> Exchange:
    headers = [*ANY.head.headers, *((b"x-gateway-key", key) for key in keys)]
    return replace(ANY, head=ANY.head._replace(headers=headers))


@pytest.mark.parametrize(
    ("exchange", "recorded", "answer"),
    [
        (with_key(KEY), 200, 403),
        (with_key(KEY), 401, 403),
        (with_key(b"unknown-key"), 200, 401),
        (with_key(b""), 200, 401),
        (with_key(KEY, KEY), 200, 401),
        (ANY, 200, 200),
        (ANY, 403, 200),
        (ANY, 401, 401),
        (replace(SERVED, plan="starter"), 200, 403),
        (replace(SERVED, plan="details"), 403, 403),
        (replace(SERVED, plan="deleted"), 200, None),
        (SERVED, 401, 401),
        (SERVED, 200, 200),
        (with_key(KEY), 429, None),
        (with_key(KEY), 500, None),
    ],
)
def test_an_access_file_selects_the_plan(
    exchange: Exchange, recorded: int, answer: int | None, access: Access, replay_one: Replaying
) -> None:
    response = RecordedResponse(recorded, b"{}")
    replayed = replay_one(replace(exchange, response=response), access=access)

    assert (replayed.answer and replayed.answer.status) == answer
    assert (replayed.class_ == "notReproducible") == (answer is None)
    assert ("/status" in [each.pointer for each in replayed.differences]) == (
        answer not in {None, recorded}
    )


def test_a_given_plan_replaces_that_of_the_caller(access: Access, replay_one: Replaying) -> None:
    plan = access.get_plan("details")
    for exchange in (ANY, with_key(b"unknown-key"), replace(SERVED, plan="starter")):
        replayed = replay_one(exchange, access=access, plan=plan)
        assert replayed.answer
        assert replayed.answer.status == 403
    rejected = replace(ANY, response=RecordedResponse(401, b"{}"))
    assert replay_one(rejected, access=access, plan=plan).class_ == "notReproducible"


def test_a_tolerance_hides_small_differences(snapshot: SnapshotFile, replay_one: Replaying) -> None:
    answer = json.loads(compare(snapshot))
    answer["data"][1]["averagePlayers"] += 0.25
    exchange = record_comparison(["a", "b"], "7d", json.dumps(answer).encode())

    assert replay_one(exchange).class_ == "differs"
    assert replay_one(exchange, tolerance=Decimal("0.3")).class_ == "match"


def test_a_key_is_hidden_before_a_value_is_cut(
    snapshot: SnapshotFile, replay_one: Replaying
) -> None:
    key = "own/secret~0123456789"
    long = f"{'x' * 190}{key}{'x' * 20_000}"
    member = f'"{key}":"{long}","uptime":'.encode()
    named = compare(snapshot).replace(b'"uptime":', member, 1)
    (of_body,), (of_member,) = (
        replay_one(
            record_comparison(["a", "b"], "7d", body, headers=[(b"x-gateway-key", key.encode())])
        ).differences
        for body in (long.encode(), named)
    )

    assert (of_body.pointer, of_member.pointer) == ("", "/data/0/\u2026")
    shown = f"{'x' * 190}\u2026{'x' * 9}\u2026"
    assert (of_body.recorded, of_member.recorded) == (shown, shown)
