"""Another snapshot in the place of the one that is served."""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from asgi.log_entries import notices, notices_so_far
from asgi.small_service import SERVER_A, build_small
from support.http import HOST, Client, compare, get, request, send_request
from support.process import Service, serve
from support.snapshots import change

BOTH = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-a","by":"cfxId"}]}'
"""The server `a` compared with itself: an answer from two snapshots would show."""

SECONDS_TO_WAIT = 1.0
"""So long a request waits for a new snapshot to be checked. Then the old one answers."""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return snapshots by the last players of their server `a`."""
    directory = tmp_path_factory.mktemp("built")
    return {
        players: build_small(directory, f"{players}.db", players=players) for players in (6, 8, 9)
    }


@pytest.fixture
def path(snapshots: dict[int, Path], tmp_path: Path) -> Path:
    """Return where the snapshot lies that is served: the one with 6 players."""
    served = tmp_path / "served.db"
    shutil.copy(snapshots[6], served)
    return served


@pytest.fixture
def service(path: Path) -> Iterator[Service]:
    with serve(path) as under_way:
        yield under_way


def renamed(new: Path, path: Path) -> None:
    """Put a copy of a file in the place of another at once."""
    shutil.copy(new, path.with_name("next"))
    os.replace(path.with_name("next"), path)


def players(service: Service) -> int:
    """Return the players of the server `a`, which all answers agree on."""
    current: int = send_request(service, get(b"a")).json["data"]["players"]["current"]
    results = send_request(service, compare(BOTH)).json["data"]
    assert [result["currentPlayers"] for result in results] == [current] * 2
    assert [result["peakPlayers"] for result in results] == [current] * 2
    return current


def served(service: Service, of: int, *, seconds: float = 10) -> None:
    """See that a snapshot is served, if not at once: this machine may be slow to check it."""
    deadline = time.monotonic() + seconds
    while _current(service) != of:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert players(service) == of


def _current(service: Service) -> int | None:
    answer = send_request(service, get(b"a"))
    # Of a file that was written over even the old one may be told to be damaged.
    return answer.json["data"]["players"]["current"] if answer.status == 200 else None


def test_a_new_snapshot_is_served_from_the_next_request_on(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    for of in (6, 8, 9, 6):
        renamed(snapshots[of], path)
        began = time.monotonic()
        current = _current(service)
        if time.monotonic() - began < SECONDS_TO_WAIT:
            assert current == of
        served(service, of)

    events = [notice["event"] for notice in notices(service, 4)]
    assert events == ["new snapshot in use"] * 4


def test_the_health_of_the_service_names_the_snapshot(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    sent = request(b"GET /healthz HTTP/1.1", HOST)
    before = send_request(service, sent).json
    renamed(snapshots[8], path)
    served(service, 8)

    after = send_request(service, sent).json
    assert after["root"] != before["root"]
    assert notices(service, 1)[0]["root"] == after["root"]


def test_open_connections_see_the_new_snapshot_too(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    with Client(service) as client:
        client.send(get(b"a"))
        assert client.read_answer().body == SERVER_A
        renamed(snapshots[8], path)
        served(service, 8)
        client.send(get(b"a"))
        assert client.read_answer().json["data"]["players"]["current"] == 8


def test_a_request_that_came_in_half_before_is_answered_whole(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    with Client(service) as client:
        client.send(compare(BOTH)[:-1])
        time.sleep(0.05)
        renamed(snapshots[8], path)
        served(service, 8)
        client.send(BOTH[-1:])
        results = client.read_answer().json["data"]

    assert [result["currentPlayers"] for result in results] == [8, 8]


def test_each_answer_under_way_is_of_one_snapshot(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    seen = set()
    is_over = threading.Event()

    def replace() -> None:
        for turn in range(20):
            renamed(snapshots[(6, 8, 9)[turn % 3]], path)
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
                figures = {(of["currentPlayers"], of["peakPlayers"]) for of in answer.json["data"]}
                assert len(figures) == 1, figures
                seen |= figures
    replacing.join()
    assert seen == {(6, 6), (8, 8), (9, 9)}


def to_nothing(path: Path) -> None:
    path.unlink()


def to_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_text(path: Path) -> None:
    _rewritten(path, b"not a snapshot")


def to_an_empty_file(path: Path) -> None:
    _rewritten(path, b"")


def to_half_of_it(path: Path) -> None:
    _rewritten(path, path.read_bytes()[: path.stat().st_size // 2])


def to_a_file_of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE servers (id)")


def to_a_damaged_one(path: Path) -> None:
    shutil.copy(path, path.with_name("damaged.db"))
    change(str(path.with_name("damaged.db")), "UPDATE days SET prefix_count = prefix_count + 1")
    os.replace(path.with_name("damaged.db"), path)


def to_a_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def to_a_link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _rewritten(path: Path, content: bytes) -> None:
    path.with_name("next").write_bytes(content)
    os.replace(path.with_name("next"), path)


CHANGES: list[tuple[Callable[[Path], None], str]] = [
    (to_nothing, "no such file"),
    (to_a_directory, "a directory, not a snapshot"),
    (to_a_pipe, "a pipe, socket or device, not a snapshot"),
    (to_text, "not a snapshot and not a SQLite file"),
    (to_an_empty_file, "an empty file, not a snapshot"),
    (to_half_of_it, "truncated or extended since it was built"),
    (to_a_file_of_another_program, "a SQLite file of another program"),
    (to_a_damaged_one, "damaged (day "),
    (to_a_link_to_nothing, "no such file"),
    (to_a_link_to_itself, "symbolic links"),
]


@pytest.fixture(scope="module")
def lasting(
    snapshots: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Path]]:
    """Serve a snapshot that takes all the turns, one after the other."""
    served = tmp_path_factory.mktemp("lasting") / "served.db"
    shutil.copy(snapshots[8], served)
    with serve(served) as under_way:
        yield under_way, served


@pytest.mark.parametrize(("turn", "reason"), CHANGES, ids=[turn.__name__ for turn, _ in CHANGES])
def test_a_bad_snapshot_is_refused_once_and_the_old_one_goes_on(
    turn: Callable[[Path], None],
    reason: str,
    lasting: tuple[Service, Path],
    snapshots: dict[int, Path],
) -> None:
    service, path = lasting
    renamed(snapshots[6], path)
    served(service, 6)
    time.sleep(0.07)
    before = len(notices_so_far(service))

    turn(path)
    for _ in range(3):
        assert players(service) == 6

    (notice,) = notices(service, 1, before)
    assert notice["event"] == "new snapshot rejected; the previous one stays in use"
    assert reason in notice["reason"]
    assert notice["reason"].startswith(f"{path}: ")

    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    renamed(snapshots[8], path)
    served(service, 8)
    assert notices(service, 2, before)[1]["event"] == "new snapshot in use"


def test_a_bad_snapshot_that_grows_is_refused_once(service: Service, path: Path) -> None:
    path.unlink()
    for _ in range(5):
        with path.open("ab") as file:
            file.write(b"not a snapshot")
        assert players(service) == 6

    assert len(notices(service, 1)) == 1


def test_the_same_snapshot_may_come_back_and_go_again(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    for times in (1, 2):
        path.rename(path.with_name("away.db"))
        assert players(service) == 6
        assert len(notices(service, times)) == times
        path.with_name("away.db").rename(path)
        assert players(service) == 6

    renamed(snapshots[8], path)
    served(service, 8)


def test_a_link_may_be_turned_to_another_snapshot(
    snapshots: dict[int, Path], tmp_path: Path
) -> None:
    link = tmp_path / "current.db"
    link.symlink_to(snapshots[6])
    with serve(link) as service:
        assert players(service) == 6
        for of in (8, 6):
            link.with_name("next").symlink_to(snapshots[of])
            os.replace(link.with_name("next"), link)
            served(service, of)


def test_a_linked_directory_may_be_turned(snapshots: dict[int, Path], tmp_path: Path) -> None:
    for of in (6, 8):
        (tmp_path / str(of)).mkdir()
        shutil.copy(snapshots[of], tmp_path / str(of) / "snapshot.db")
    (tmp_path / "current").symlink_to("6")
    with serve(tmp_path / "current" / "snapshot.db") as service:
        assert players(service) == 6
        (tmp_path / "next").symlink_to("8")
        os.replace(tmp_path / "next", tmp_path / "current")
        served(service, 8)


def test_a_snapshot_copied_over_the_old_one_is_served_too(
    service: Service, path: Path, snapshots: dict[int, Path]
) -> None:
    """Not how to do it: whoever asks meanwhile may be told of damage, though nothing wrong."""
    assert players(service) == 6
    shutil.copyfile(snapshots[8], path)

    served(service, 8)


def test_a_path_is_the_one_it_was_wherever_the_service_was_started(
    snapshots: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(snapshots[6], tmp_path / "served.db")
    monkeypatch.chdir(tmp_path)
    with serve("served.db") as service:
        assert players(service) == 6
        renamed(snapshots[8], tmp_path / "served.db")
        served(service, 8)


def test_a_file_that_was_refused_for_what_stood_beside_it_is_taken_once_that_is_gone(
    service: Service, snapshots: dict[int, Path], path: Path
) -> None:
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(b"left by another program")
    renamed(snapshots[8], path)
    assert players(service) == 6

    journal.unlink()

    served(service, 8, seconds=30)
