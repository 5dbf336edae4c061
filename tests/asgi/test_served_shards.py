"""Serve a folder of shards, and replace it while the service runs."""

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asgi.small_service import build_small, empty_log, wait_for_events
from srvstat.snapshot.digests import find_shard, name_shard
from support.http import compare, get, send_request
from support.process import Service, limit_descriptors, serve
from support.snapshots import change, write_shards

pytestmark = pytest.mark.slow

SHARDS = 2
BOTH = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-b","by":"cfxId"}]}'


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return folders of shards by the last observation of their server `a`."""
    directory = tmp_path_factory.mktemp("built")
    return {
        players: write_shards(
            build_small(directory, f"{players}.db", players=players),
            directory / str(players),
            SHARDS,
        )
        for players in (6, 8)
    }


@pytest.fixture
def path(folders: dict[int, Path], tmp_path: Path) -> Path:
    """Return the folder that is served."""
    shutil.copytree(folders[6], tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture
def service(path: Path) -> Iterator[Service]:
    with ExitStack() as stack:
        with limit_descriptors():
            service = stack.enter_context(serve(path))
        yield service


def read_players(service: Service) -> int:
    """Return the players of the server `a`, and check that both answers agree."""
    current: int = send_request(service, get(b"a")).json["data"]["players"]["current"]
    answer = send_request(service, compare(BOTH))
    assert [one["currentPlayers"] for one in answer.json["data"]] == [current, 7]
    return current


def wait_until_served(service: Service, players: int) -> None:
    deadline = time.monotonic() + 10
    while read_players(service) != players:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_replaced_folder_is_used_once_it_is_whole(
    service: Service, path: Path, folders: dict[int, Path]
) -> None:
    assert read_players(service) == 6

    path.rename(path.with_name("old"))
    shutil.copytree(folders[8], path)
    damaged = str(path / name_shard(find_shard("a", SHARDS)))
    change(damaged, "UPDATE blocks SET time_unit = time_unit + 1")
    assert read_players(service) == 6
    (event,) = wait_for_events(service, 1)
    assert event["event"] == "new snapshot rejected; the previous one stays in use"
    assert f"{damaged}: damaged (" in event["reason"]

    shutil.rmtree(path)
    path.symlink_to(folders[8])
    wait_until_served(service, 8)

    empty_log(service, get(b"a"))
    path.unlink()
    path.with_name("old").rename(path)
    wait_until_served(service, 6)
    assert [event["event"] for event in wait_for_events(service, 1)] == ["new snapshot in use"]
