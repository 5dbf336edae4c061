"""Questions share the threads that read the snapshot."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asgi.small_service import COMPARED, SERVER_A, InProcess, build_small
from srvstat.asgi import snapshots
from srvstat.asgi.snapshots import WORKERS, Cache, Work
from srvstat.operations import answers as operations
from support.http import TWO


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


def test_an_answer_finished_too_late_is_remembered(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_twice() -> None:
        files = (await service.snapshot.get_generation()).files
        for worker in files:
            worker.submit(release.wait)
        async with service.client() as client:
            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "WORK_SECONDS", 0.1)
                assert (await client.post("/compare", content=TWO)).status_code == 500
            release.set()
            for worker, file in files.items():  # runs after everything else
                await asyncio.wrap_future(worker.submit(file.close))
            assert (await client.post("/compare", content=TWO)).content == COMPARED

    service.run(ask_twice())


def test_a_remembered_answer_needs_no_worker(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_twice() -> None:
        async with service.client() as client:

            async def ask() -> list[bytes]:
                server, two = client.get("/servers/a"), client.post("/compare", content=TWO)
                return [response.content for response in await asyncio.gather(server, two)]

            assert await ask() == [SERVER_A, COMPARED]
            for worker in (await service.snapshot.get_generation()).files:
                worker.submit(release.wait)
            monkeypatch.setattr(snapshots, "WORK_SECONDS", 0.1)
            assert await ask() == [SERVER_A, COMPARED]
            assert (await client.get("/servers/b")).status_code == 500
            release.set()

    service.run(ask_twice())


def test_answers_are_limited_by_bytes_and_drop_the_oldest() -> None:
    cache = Cache[bytes](max_bytes=10_000)
    for key in range(30):
        cache.keep(key, b"x", 600)
        cache.keep(key, b"y", 600)

    assert [cache.find(key) for key in range(30)] == [None] * 20 + [b"y"] * 10
    cache.keep(0, b"x", 10_000)
    assert [cache.find(key) for key in range(30)] == [None] * 30


def test_equal_waiting_questions_are_computed_once(
    service: InProcess, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    compute = operations.compute_results

    def count(*asked: Any) -> Any:
        computed.append(1)
        return compute(*asked)

    monkeypatch.setattr(operations, "compute_results", count)

    async def ask_in_parallel() -> None:
        for worker in (await service.snapshot.get_generation()).files:
            worker.submit(release.wait)
        async with service.client() as client:
            waiting = [
                asyncio.ensure_future(client.post("/compare", content=TWO)) for _ in range(99)
            ]
            await asyncio.sleep(0.1)
            release.set()
            assert {(await one).content for one in waiting} == {COMPARED}

    service.run(ask_in_parallel())

    assert len(computed) <= WORKERS
