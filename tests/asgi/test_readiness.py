"""The service is ready as long as it can read the snapshot from the disk."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi.small_service import SERVER_A, InProcess, build_small, log_request
from srvstat.asgi import app
from srvstat.snapshot.digests import name_shard
from srvstat.snapshot.read.verify import SpotCheck
from support.http import HEALTH, READY, UNAVAILABLE, get, send_request
from support.process import Service, serve
from support.snapshots import write_shards

pytestmark = pytest.mark.slow


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
        assert answer.body == send_request(service, HEALTH).body


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


@pytest.fixture
def service(build_path: Path) -> InProcess:
    return InProcess(build_path)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return the event that busy workers wait for; set it at the end."""
    event = threading.Event()
    yield event
    event.set()


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
        for worker in (await service.snapshot.get_generation()).files:
            worker.submit(release.wait)
        async with service.client() as client:
            for _ in range(2):
                answer = await client.get("http://x/readyz")
                assert (answer.status_code, answer.content) == (503, UNAVAILABLE)
            release.set()
            deadline = time.monotonic() + 10
            while (await client.get("http://x/readyz")).status_code != 200:
                assert time.monotonic() < deadline

    service.run(ask_three_times())
