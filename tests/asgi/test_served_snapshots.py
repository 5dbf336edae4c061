"""Answers from a snapshot: as the command line gives them, by few threads, and while it is read."""

import asyncio
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from asgi.small_service import (
    COMPARED,
    SERVER_A,
    InProcess,
    build_small,
    format_access,
    log_request,
)
from campaigns.requests import draw_body
from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat.asgi import app, snapshots
from srvstat.asgi.snapshots import WORKERS, Cache, Work
from srvstat.contract.wire import EncodedJson
from srvstat.operations import answers as operations
from srvstat.snapshot.read.verify import SpotCheck
from srvstat.snapshot.rows import name_shard
from support import http
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    READY,
    TWO,
    UNAVAILABLE,
    Answer,
    Client,
    get,
    send_request,
)
from support.process import Service, serve
from support.snapshots import write_shards


@pytest.fixture
def service(tmp_path: Path) -> InProcess:
    return InProcess(build_small(tmp_path))


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return the event that slow questions wait for; set it at the end."""
    event = threading.Event()
    yield event
    event.set()


def test_questions_get_a_worker_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "WORKERS", 1)
    service, served = InProcess(build_small(tmp_path)), list[int]()

    async def ask(number: int) -> None:
        await service.ask(lambda _: served.append(number))

    async def ask_in_parallel() -> None:
        await asyncio.gather(*[ask(number) for number in range(1_000)])

    service.run(ask_in_parallel())

    assert served == list(range(1_000))


def test_get_server_does_not_wait_for_comparisons(
    service: InProcess, release: threading.Event
) -> None:
    def wait(_: Any) -> bool:
        return release.wait()

    async def ask_in_parallel() -> None:
        slow = [service.ask(wait, Work.COMPARE) for _ in range(2 * WORKERS)]
        waiting = asyncio.gather(*slow)
        async with service.client() as client:
            assert (await client.get("/servers/a")).content == SERVER_A
        assert [await service.ask(lambda _: "soon") for _ in range(100)] == ["soon"] * 100
        assert not waiting.done()
        release.set()
        assert await waiting == [True] * (2 * WORKERS)

    service.run(ask_in_parallel())


def test_an_answer_finished_too_late_is_an_internal_error_and_remembered(
    tmp_path: Path,
    release: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    service, compute, computed = InProcess(build_small(tmp_path)), operations.compute_results, []

    def compute_slowly(*asked: Any, **at: Any) -> Any:
        computed.append(release.wait())
        return compute(*asked, **at)

    monkeypatch.setattr(operations, "compute_results", compute_slowly)

    async def ask_twice() -> None:
        async with service.client() as client:
            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "WORK_SECONDS", 0.1)
                late = await client.post("/compare", content=TWO)
            assert (late.status_code, late.content) == (500, ERRORS["INTERNAL_ERROR"])
            release.set()
            await asyncio.sleep(0.1)
            assert (await client.post("/compare", content=TWO)).content == COMPARED
            assert computed == [True]

    service.run(ask_twice())

    assert '"reason": "no answer within 0.1 s"' in capfd.readouterr().err


def test_a_remembered_answer_needs_no_worker(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_twice() -> None:
        async with service.client() as client:

            async def ask() -> list[bytes]:
                server, two = client.get("/servers/a"), client.post("/compare", content=TWO)
                return [response.content for response in await asyncio.gather(server, two)]

            assert await ask() == [SERVER_A, COMPARED]
            await service.occupy(release)
            monkeypatch.setattr(snapshots, "WORK_SECONDS", 0.1)
            assert await ask() == [SERVER_A, COMPARED]
            assert (await client.get("/servers/b")).status_code == 500
            release.set()

    service.run(ask_twice())


def test_answers_are_limited_by_bytes_and_drop_the_oldest() -> None:
    cache, old, new = Cache(max_bytes=10_000), EncodedJson("x" * 600), EncodedJson("y" * 600)
    for key in range(30):
        cache.keep(key, old)
        cache.keep(key, new)

    assert [cache.find(key) for key in range(30)] == [None] * 20 + [new] * 10
    cache.keep(0, EncodedJson("x" * 10_000))
    assert [cache.find(key) for key in range(30)] == [None] * 30


def test_equal_waiting_questions_are_computed_once(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    compute = operations.compute_results

    def count(*asked: Any, **at: Any) -> Any:
        computed.append(1)
        return compute(*asked, **at)

    monkeypatch.setattr(operations, "compute_results", count)

    async def ask_in_parallel() -> None:
        await service.occupy(release)
        async with service.client() as client:
            waiting = [
                asyncio.ensure_future(client.post("/compare", content=TWO)) for _ in range(99)
            ]
            await asyncio.sleep(0.1)
            release.set()
            assert {(await one).content for one in waiting} == {COMPARED}

    service.run(ask_in_parallel())

    assert len(computed) <= WORKERS


@pytest.fixture(scope="module")
def build_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small(tmp_path_factory.mktemp("built"))


def wait_for_status(service: Service, status: int) -> None:
    """Wait until the readiness check has a status; a result holds for a second."""
    deadline = time.monotonic() + 10
    while (answer := send_request(service, READY)).status != status:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if status == 503:
        assert answer.body == UNAVAILABLE
        assert answer.headers["content-type"] == "application/json"
    else:
        body = answer.body.replace(b"outdated", b"ok")  # until the repaired file is read again
        assert body == send_request(service, HEALTH).body


def test_damage_on_the_disk_is_noticed_and_so_is_its_repair(
    build_path: Path, tmp_path: Path
) -> None:
    """Answers in memory stay right, and the service stays alive."""
    path = tmp_path / "served.db"
    shutil.copy(build_path, path)
    with serve(path, "--explain-errors") as service:
        assert send_request(service, get(b"a")).body == SERVER_A
        wait_for_status(service, 200)
        os.truncate(path, path.stat().st_size // 2)
        wait_for_status(service, 503)
        assert send_request(service, get(b"a")).body == SERVER_A
        assert send_request(service, HEALTH).status == 200
        entry = log_request(service, READY)
        assert "served.db: damaged" in entry["reason"]
        assert (entry["operation"], entry.get("code")) == ("getReadiness", None)

        path.unlink()
        wait_for_status(service, 503)
        shutil.copy(build_path, tmp_path / "next.db")
        (tmp_path / "next.db").rename(path)
        wait_for_status(service, 200)
        path.unlink()  # the open file can still be read
        wait_for_status(service, 200)


def test_damage_of_any_shard_is_noticed(build_path: Path, tmp_path: Path) -> None:
    folder = write_shards(build_path, tmp_path / "shards", 2)
    with serve(folder) as service:
        wait_for_status(service, 200)
        shard = folder / name_shard(1)
        shard.write_bytes(bytes(shard.stat().st_size))
        wait_for_status(service, 503)


def test_many_requests_share_a_check(service: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    check_next = SpotCheck.check_next
    monkeypatch.setattr(SpotCheck, "check_next", lambda *given: checked.append(check_next(*given)))

    async def ask_often() -> None:
        async with service.client() as client:
            asked = [client.get("http://x/readyz") for _ in range(100)]
            assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}
            assert (await client.get("http://x/readyz")).status_code == 200

    service.run(ask_often())

    assert len(checked) == 1


def test_a_request_gets_the_result_that_it_waited_for(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request can start the next check before it has the result."""
    monkeypatch.setattr(app, "SECONDS_BETWEEN_CHECKS", 0.0)

    async def ask_one_after_another() -> None:
        async with service.client() as client:
            asked = []
            for _ in range(200):
                asked.append(asyncio.ensure_future(client.get("http://x/readyz")))
                await asyncio.sleep(0)
            assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}

    service.run(ask_one_after_another())


def test_a_service_whose_workers_are_all_busy_is_not_ready(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "READY_SECONDS", 0.1)
    monkeypatch.setattr(app, "SECONDS_BETWEEN_CHECKS", 0.0)

    async def ask_three_times() -> None:
        await service.occupy(release)
        async with service.client() as client:
            for _ in range(2):
                answer = await client.get("http://x/readyz")
                assert (answer.status_code, answer.content) == (503, UNAVAILABLE)
            release.set()
            deadline = time.monotonic() + 10
            while (await client.get("http://x/readyz")).status_code != 200:
                assert time.monotonic() < deadline

    service.run(ask_three_times())


SEED = 20
BODIES = 100
IDENTIFIERS = 50
EXIT_CODES = {200: 0, 400: 40, 403: 43, 404: 44}

# Almost all drawn identifiers name a server, some of them two servers.
SERVERS = [
    server("a", cfxId="A"),
    server("A", cfxId="x-1"),
    server("b", cfxId="C"),
    server("C", cfxId="b"),
    server("-", cfxId="0", hostname="\u202e\x7f\u2028", projectName='"\\\n'),
    server("0", cfxId="-", tags=["\U0001f680", "\u00e9"]),
    server("id", cfxId="by"),
    server("by", cfxId="id"),
    server("srv-1", cfxId="srv-1"),
    server("--5", cfxId="null"),
    server("1e5", cfxId="x-2", publishable=False),
    server("x" * 128, cfxId="x-3"),
]
PLANS = [None, None, None, "all", "short", "compare", "get"]


class Both(NamedTuple):
    """The command line's files and the service that uses them."""

    snapshot: str
    access: str
    service: Service


@pytest.fixture(scope="module", params=["one file", "shards"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    """Serve a snapshot of about a year with random numbers of players; the command reads a file."""
    directory = tmp_path_factory.mktemp("parity")
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    rows = [
        (of["id"], AS_OF - at * DAY // 3, random.randrange(1_000) ** (1 + at % 2))
        for of in SERVERS[:9]
        for at in range(0, 1_200, random.randrange(1, 40))
    ]
    snapshot = build_in(directory, SERVERS, rows)
    access = directory / "access.toml"
    keys = {f"key-of-{plan}": plan for plan in PLANS if plan}
    access.write_text(format_access(keys), encoding="utf-8")
    served = snapshot
    if request.param == "shards":
        served = write_shards(snapshot, directory / "shards", 3)
    with serve(served, "--access", str(access)) as service:
        yield Both(str(snapshot), str(access), service)


def build_key_header(plan: str | None) -> bytes:
    return b"X-Gateway-Key: key-of-" + (plan or "all").encode()


def list_options(both: Both, plan: str | None) -> list[str]:
    with_plan = ["--plan", plan, "--access", both.access] if plan else []
    return ["--json", "--snapshot", both.snapshot, *with_plan]


def ask_both(client: Client, cli: Cli, arguments: list[str], sent: bytes) -> Answer:
    """Ask the service and the command line, check that they agree, and return the answer."""
    client.send(sent)
    answer = client.read_answer()
    ran = cli(*arguments)
    assert (ran.stdout, ran.exit_code) == (answer.body + b"\n", EXIT_CODES[answer.status]), sent
    return answer


def check_statuses(statuses: Counter[int]) -> None:
    assert statuses.keys() == EXIT_CODES.keys()
    assert min(statuses.values()) >= 5, statuses


def test_compare_answers_as_the_command_line_does(both: Both, cli: Cli, tmp_path: Path) -> None:
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    path = tmp_path / "body.json"
    statuses = Counter[int]()
    with Client(both.service) as client:
        for _ in range(BODIES):
            body, plan = draw_body(random), random.choice(PLANS)
            path.write_bytes(body)
            arguments = ["compare", "--request", str(path), *list_options(both, plan)]
            sent = http.request(COMPARE, HOST, build_key_header(plan), JSON, body=body)
            answer = ask_both(client, cli, arguments, sent)
            client.send(sent)  # answered from memory
            assert client.read_answer().stable_parts == answer.stable_parts
            statuses[answer.status] += 1
    check_statuses(statuses)


def draw_identifiers() -> Iterator[str]:
    """Draw identifiers: known ones, changed ones, and odd texts."""
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    known = [of[name] for of in SERVERS for name in ("id", "cfxId")]
    yield from known
    odd = ["", "x" * 129, "a/b", "..", "a\n", "\x00", "%61", "a b", "+", "id:a", "\ufeffa", "a?b"]
    yield from odd
    for _ in range(IDENTIFIERS - len(known) - len(odd)):
        text = random.choice(known)
        at = random.randrange(len(text) + 1)
        new = random.choice(["", "", "-", "a", "7", "_", "/", "\u00e9", "\U0001f680", "\r"])
        yield text if random.random() < 0.4 else text[:at] + new + text[at + 1 :]


def test_get_server_answers_as_the_command_line_does(both: Both, cli: Cli) -> None:
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    statuses = Counter[int]()
    with Client(both.service) as client:
        for number, identifier in enumerate(draw_identifiers()):
            for by in ("id", "cfxId", *((None, "ID", "") if number % 10 == 0 else ())):
                plan = random.choice(PLANS)
                target = "/gateway/v1/servers/" + quote(identifier, safe="")
                target += "" if by is None else f"?by={by}"
                # The command line takes one namespace in front of an identifier.
                namespace = by if by in {"id", "cfxId"} else "id"
                of_by = [] if by in {"id", "cfxId", None} else ["--by", str(by)]
                arguments = ["get", *of_by, *list_options(both, plan), "--"]
                line = f"GET {target} HTTP/1.1".encode()
                sent = http.request(line, HOST, build_key_header(plan))
                answer = ask_both(client, cli, [*arguments, f"{namespace}:{identifier}"], sent)
                statuses[answer.status] += 1
    check_statuses(statuses)
