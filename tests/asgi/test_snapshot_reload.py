"""Replace the snapshot while the service runs."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asgi.small_service import build_small, empty_log, wait_for_events
from support.http import Client, compare, get, send_request
from support.process import Service, serve
from support.snapshots import change

pytestmark = pytest.mark.slow

BOTH = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-a","by":"cfxId"}]}'
"""Compares the server `a` with itself, to detect an answer from two snapshots."""

SECONDS_TO_WAIT = 1.0
"""A request waits this long until a new snapshot is verified. Then the old one answers."""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return snapshots by the last observation of their server `a`."""
    directory = tmp_path_factory.mktemp("built")
    return {
        players: build_small(directory, f"{players}.db", players=players) for players in (6, 8, 9)
    }


@pytest.fixture(scope="module")
def path(snapshots: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path that is served."""
    served = tmp_path_factory.mktemp("served") / "served.db"
    shutil.copy(snapshots[6], served)
    return served


@pytest.fixture(scope="module")
def running(path: Path) -> Iterator[Service]:
    with serve(path) as running:
        yield running


@pytest.fixture
def service(running: Service, path: Path, snapshots: dict[int, Path]) -> Service:
    """Return the service with an empty log; it serves the snapshot with 6 players."""
    replace_with(snapshots[6], path)
    wait_until_served(running, 6)
    empty_log(running, get(b"a"))
    return running


def replace_with(new: Path, path: Path) -> None:
    """Replace a file with a copy of another in one step."""
    shutil.copy(new, path.with_name("next"))
    os.replace(path.with_name("next"), path)


def read_players(service: Service) -> int:
    """Return the players of the server `a`, and check that all answers agree."""
    current: int = send_request(service, get(b"a")).json["data"]["players"]["current"]
    results = send_request(service, compare(BOTH)).json["data"]
    assert [result["currentPlayers"] for result in results] == [current] * 2
    assert [result["peakPlayers"] for result in results] == [current] * 2
    return current


def wait_until_served(
    service: Service, players: int, *, seconds: float = 10, pause: float = 0.02
) -> None:
    """Wait until a snapshot is served: a slow machine takes long to verify it."""
    deadline = time.monotonic() + seconds
    while _read_players_or_none(service) != players:
        assert time.monotonic() < deadline
        time.sleep(pause)
    assert read_players(service) == players


def _read_players_or_none(service: Service) -> int | None:
    answer = send_request(service, get(b"a"))
    # The old snapshot is damaged while the file is written over.
    return answer.json["data"]["players"]["current"] if answer.status == 200 else None


def test_a_new_snapshot_answers_the_next_request(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    for players in (6, 8, 9, 6):
        replace_with(snapshots[players], path)
        began = time.monotonic()
        current = _read_players_or_none(service)
        if time.monotonic() - began < SECONDS_TO_WAIT:
            assert current == players
        wait_until_served(service, players)

    events = [event["event"] for event in wait_for_events(service, 4)]
    assert events == ["new snapshot in use"] * 4


def test_each_answer_comes_from_one_snapshot(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    seen = set()
    is_over = threading.Event()

    def replace() -> None:
        for turn in range(20):
            replace_with(snapshots[(6, 8, 9)[turn % 3]], path)
            time.sleep(0.05)
        is_over.set()

    replacing = threading.Thread(target=replace)
    replacing.start()
    with Client(service) as client:
        while not is_over.is_set():
            client.send(compare(BOTH) * 20)
            for _ in range(20):
                answer = client.read_answer()
                assert answer.status == 200
                figures = {
                    (one["currentPlayers"], one["peakPlayers"]) for one in answer.json["data"]
                }
                assert len(figures) == 1, figures
                seen |= figures
    replacing.join()
    assert seen == {(6, 6), (8, 8), (9, 9)}


def remove(path: Path) -> None:
    path.unlink()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def cut_in_half(path: Path) -> None:
    _rewrite(path, path.read_bytes()[: path.stat().st_size // 2])


def damage(path: Path) -> None:
    shutil.copy(path, path.with_name("damaged.db"))
    change(str(path.with_name("damaged.db")), "UPDATE blocks SET time_unit = time_unit + 1")
    os.replace(path.with_name("damaged.db"), path)


def _rewrite(path: Path, content: bytes) -> None:
    path.with_name("next").write_bytes(content)
    os.replace(path.with_name("next"), path)


CHANGES: list[tuple[Callable[[Path], None], str]] = [
    (remove, "no such file"),
    (make_pipe, "a pipe, socket or device, not a snapshot"),
    (cut_in_half, "truncated or extended since it was built"),
    (damage, "damaged (observations of server a from "),
]


@pytest.mark.parametrize(
    ("change_file", "reason"), CHANGES, ids=[change_file.__name__ for change_file, _ in CHANGES]
)
def test_a_bad_snapshot_is_rejected_once_and_the_previous_one_stays(
    change_file: Callable[[Path], None],
    reason: str,
    service: Service,
    path: Path,
    snapshots: dict[int, Path],
) -> None:
    change_file(path)
    for _ in range(3):
        assert read_players(service) == 6

    (event,) = wait_for_events(service, 1)
    assert event["event"] == "new snapshot rejected; the previous one stays in use"
    assert reason in event["reason"]
    assert event["reason"].startswith(f"{path}: ")

    replace_with(snapshots[8], path)
    wait_until_served(service, 8)
    assert wait_for_events(service, 2)[1]["event"] == "new snapshot in use"


def test_a_link_may_change_its_target(snapshots: dict[int, Path], tmp_path: Path) -> None:
    link = tmp_path / "current.db"
    link.symlink_to(snapshots[6])
    with serve(link) as service:
        assert read_players(service) == 6
        for players in (8, 6):
            link.with_name("next").symlink_to(snapshots[players])
            os.replace(link.with_name("next"), link)
            wait_until_served(service, players)


def test_a_snapshot_copied_over_the_old_one_is_used(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    """Requests meanwhile may get errors, but no wrong answers."""
    assert read_players(service) == 6
    shutil.copyfile(snapshots[8], path)

    wait_until_served(service, 8)


def test_a_snapshot_rejected_for_its_journal_is_used_once_that_is_gone(
    service: Service, snapshots: dict[int, Path], path: Path
) -> None:
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(b"left by another program")
    replace_with(snapshots[8], path)
    assert read_players(service) == 6
    journal.unlink()
    wait_until_served(service, 8, seconds=30, pause=0.5)
