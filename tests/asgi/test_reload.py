"""Replace the access file and the snapshot while the service runs."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from asgi.small_service import InProcess, build_small, empty_log, format_access, wait_for_events
from conftest import Cli
from srvstat.asgi import reload
from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import SourceError
from srvstat.snapshot.rows import find_shard, name_shard
from support.http import HOST, READY, A, Client, compare, get, request, send_request
from support.process import Service, limit_descriptors, serve
from support.snapshots import change, write_shards

pytestmark = pytest.mark.slow


class Watched:
    """A file whose content is in use, with a clock that the test sets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 0.0
        self.reads = 0
        self.used: list[str] = []
        self.reasons: list[str] = []
        self.problem = "malformed"
        self.file = ReloadedFile(str(path), "file", self._report, clock=lambda: self.now)

    def _report(self, event: str, reason: str) -> None:
        assert event == "new file rejected; the previous one stays in use"
        self.reasons.append(reason)

    def read(self) -> str:
        """Read the file, whose content must begin with a certain word."""
        self.reads += 1
        text = self.path.read_text("ascii") if self.path.exists() else ""
        if not text.startswith("valid"):
            raise SourceError(self.problem)
        return text

    def refresh(self, read: Callable[[], str] | None = None) -> int:
        """Refresh the file as a request does, and return how often it was read."""
        before = self.reads

        async def refresh() -> None:
            await self.file.refresh(read or self.read, self.used.append)
            await finish_others()  # a retry, for which no request waits

        asyncio.run(refresh())
        return self.reads - before

    def replace(self, text: str) -> None:
        """Put another file at the path."""
        self.path.with_name("next").write_text(text, encoding="ascii")
        os.replace(self.path.with_name("next"), self.path)


async def finish_others() -> None:
    current = asyncio.current_task()
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not current))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    path = tmp_path / "watched"
    path.write_text("valid", encoding="ascii")
    return Watched(path)


def test_a_file_replaced_while_it_is_read_is_read_again(watched: Watched) -> None:
    def read_and_replace() -> str:
        text = watched.read()
        if watched.reads == 1:
            watched.replace("valid third")
        return text

    watched.replace("valid second")

    assert watched.refresh(read_and_replace) == 2
    assert watched.used == ["valid second", "valid third"]
    assert watched.refresh() == 0


def test_a_rejected_file_is_retried_after_pauses_that_double_to_five_minutes(
    watched: Watched,
) -> None:
    watched.path.unlink()
    assert watched.refresh() == 1

    for pause in (5, 10, 20, 40, 80, 160, 300, 300):
        watched.now += pause - 0.1
        assert watched.refresh() == 0
        watched.now += 0.1
        assert watched.refresh() == 1


def test_another_file_is_tried_at_once_and_starts_with_the_first_pause(watched: Watched) -> None:
    watched.replace("second")
    assert watched.refresh() == 1
    watched.now = 5
    assert watched.refresh() == 1

    watched.replace("third one")
    assert (watched.refresh(), watched.refresh()) == (1, 0)
    watched.now = 10
    assert watched.refresh() == 1


def test_a_rejection_is_reported_when_its_reason_or_its_file_changes(watched: Watched) -> None:
    watched.replace("second")
    watched.problem = "unreadable"
    watched.refresh()
    watched.now = 5
    assert watched.refresh() == 1
    assert watched.reasons == ["unreadable"]
    watched.now = 20
    watched.problem = "malformed"
    watched.refresh()
    watched.replace("third one")
    watched.refresh()

    assert watched.reasons == ["unreadable", "malformed", "malformed"]


def test_a_growing_file_is_reported_once(watched: Watched) -> None:
    watched.replace("second")
    for _ in range(4):
        assert watched.refresh() == 1
        with watched.path.open("a", encoding="ascii") as growing:
            growing.write("more")

    assert watched.reasons == ["malformed"]


def test_a_rejection_is_reported_again_after_the_accepted_file_returned(watched: Watched) -> None:
    for _ in range(2):
        watched.path.rename(watched.path.with_name("away"))
        assert watched.refresh() == 1
        watched.path.with_name("away").rename(watched.path)
        assert watched.refresh() == 0

    assert watched.reasons == ["malformed"] * 2


def test_a_request_waits_no_longer_than_its_patience(watched: Watched) -> None:
    released = threading.Event()

    def read_later() -> str:
        released.wait(10)
        return watched.read()

    async def check() -> None:
        watched.replace("valid second")
        await watched.file.refresh(read_later, watched.used.append, 0.01)
        watched.now = 1
        await watched.file.refresh(read_later, watched.used.append, 0.01)
        assert (watched.reads, watched.used) == (0, [])
        released.set()
        await finish_others()
        assert (watched.reads, watched.used) == (1, ["valid second"])

    asyncio.run(check())


KEYS = {"k": "all", "old-key": "all", "lasting-key": "get"}
BOTH = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-a","by":"cfxId"}]}'
"""Compares the server `a` with itself, to detect an answer from two snapshots."""

SECONDS_TO_WAIT = 1.0
"""A request waits this long until a new snapshot is verified. Then the old one answers."""


class Served(NamedTuple):
    """A service with its files, and snapshots by the last observation of their server `a`."""

    service: Service
    path: Path
    access: Path
    built: Mapping[int, Path]

    def copy(self, players: int) -> None:
        """Replace the snapshot in one step."""
        shutil.copy(self.built[players], self.path.with_name("next"))
        os.replace(self.path.with_name("next"), self.path)

    def set_keys(self, keys: Mapping[str, str]) -> None:
        """Replace the access file in one step."""
        replace(self.access, format_access(keys).encode())

    def get_status(self, key: str) -> int:
        """Return the status of Get Server with a key."""
        sent = request(A, HOST, b"X-Gateway-Key: " + key.encode())
        return send_request(self.service, sent).status


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("served")
    built = {
        players: build_small(directory, f"{players}.db", players=players) for players in (6, 8, 9)
    }
    path, access = directory / "served.db", directory / "access.toml"
    shutil.copy(built[6], path)
    access.write_text(format_access(KEYS), encoding="utf-8")
    with serve(path, "--access", str(access)) as service:
        yield Served(service, path, access, built)


@pytest.fixture
def served(running: Served) -> Served:
    """Return the service with an empty log, the keys, and the snapshot with 6 players."""
    running.set_keys(KEYS)
    running.copy(6)
    wait_until_served(running.service, 6)
    empty_log(running.service, get(b"a"))
    return running


def replace(path: Path, content: bytes) -> None:
    path.with_name("next").write_bytes(content)
    os.replace(path.with_name("next"), path)


def read_players(service: Service) -> int:
    """Return the players of the server `a`, and check that all answers agree."""
    current: int = send_request(service, get(b"a")).json["data"]["players"]["current"]
    results = send_request(service, compare(BOTH)).json["data"]
    assert [result["currentPlayers"] for result in results] == [current] * 2
    assert [result["peakPlayers"] for result in results] == [current] * 2
    return current


def wait_until_served(service: Service, players: int) -> None:
    """Wait until a snapshot is served: a slow machine takes long to verify it."""
    deadline = time.monotonic() + 10
    while read_players_or_none(service) != players:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert read_players(service) == players


def read_players_or_none(service: Service) -> int | None:
    answer = send_request(service, get(b"a"))
    # The old snapshot is damaged while the file is written over.
    return answer.json["data"]["players"]["current"] if answer.status == 200 else None


def list_names(service: Service, number: int) -> list[str]:
    """Wait for events in the log, and return their names."""
    return [event["event"] for event in wait_for_events(service, number)]


def test_a_replaced_access_file_is_used_by_the_next_request(served: Served) -> None:
    assert (served.get_status("old-key"), served.get_status("new-key")) == (200, 401)

    served.set_keys({"new-key": "all", "lasting-key": "get"})

    assert (served.get_status("old-key"), served.get_status("new-key")) == (401, 200)
    assert served.get_status("lasting-key") == 200
    assert list_names(served.service, 1) == ["new access file in use"]


def test_a_key_added_by_the_command_is_valid_at_once(served: Served, cli: Cli) -> None:
    ran = cli("access", "new-key", "--plan", "all", "--access", str(served.access))
    assert ran.exit_code == 0, ran.stderr

    assert served.get_status(ran.stdout.decode().strip()) == 200
    assert served.get_status("old-key") == 200


def test_a_raised_limit_keeps_the_count(served: Served) -> None:
    served.set_keys({"limited-key": "three"})
    assert [served.get_status("limited-key") for _ in range(4)] == [200] * 3 + [429]

    five = served.access.read_bytes().replace(b"minute = 3", b"minute = 5")
    replace(served.access, five)

    assert [served.get_status("limited-key") for _ in range(4)] == [200] * 2 + [429] * 2


def remove(path: Path) -> None:
    path.unlink()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def write_nonsense(path: Path) -> None:
    replace(path, b"[plans.all\n")


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def cut_in_half(path: Path) -> None:
    replace(path, path.read_bytes()[: path.stat().st_size // 2])


def damage(path: Path) -> None:
    shutil.copy(path, path.with_name("damaged.db"))
    change(str(path.with_name("damaged.db")), "UPDATE blocks SET time_unit = time_unit + 1")
    os.replace(path.with_name("damaged.db"), path)


@pytest.mark.parametrize("change_file", [remove, make_pipe, write_nonsense, overwrite])
def test_a_bad_access_file_is_rejected_once_and_the_previous_one_stays(
    change_file: Callable[[Path], None], served: Served
) -> None:
    change_file(served.access)
    for _ in range(3):
        assert (served.get_status("old-key"), served.get_status("new-key")) == (200, 401)

    (event,) = wait_for_events(served.service, 1)
    assert event["event"] == "new access file rejected; the previous one stays in use"
    assert event["reason"].startswith(str(served.access))
    assert "old-key" not in event["reason"]

    served.set_keys({"new-key": "all"})
    assert (served.get_status("old-key"), served.get_status("new-key")) == (401, 200)
    assert list_names(served.service, 2)[1] == "new access file in use"


@pytest.mark.parametrize(
    ("change_file", "reason"),
    [
        (remove, "no such file"),
        (make_pipe, "a pipe, socket or device, not a snapshot"),
        (cut_in_half, "damaged; copy or build it again"),
        (damage, "damaged (observations of server a from "),
    ],
)
def test_a_bad_snapshot_is_rejected_once_and_the_previous_one_stays(
    change_file: Callable[[Path], None], reason: str, served: Served
) -> None:
    change_file(served.path)
    for _ in range(3):
        assert read_players(served.service) == 6

    (event,) = wait_for_events(served.service, 1)
    assert event["event"] == "new snapshot rejected; the previous one stays in use"
    assert reason in event["reason"]
    assert event["reason"].startswith(f"{served.path}: ")
    assert send_request(served.service, READY).json["status"] == "outdated"

    served.copy(8)
    wait_until_served(served.service, 8)
    assert send_request(served.service, READY).json["status"] == "ok"
    assert list_names(served.service, 2)[1] == "new snapshot in use"


def test_a_new_snapshot_answers_the_next_request(served: Served) -> None:
    for players in (8, 9, 6):
        served.copy(players)
        began = time.monotonic()
        current = read_players_or_none(served.service)
        if time.monotonic() - began < SECONDS_TO_WAIT:
            assert current == players
        wait_until_served(served.service, players)

    assert list_names(served.service, 3) == ["new snapshot in use"] * 3


def test_each_answer_comes_from_one_snapshot(served: Served) -> None:
    seen = set()
    is_over = threading.Event()

    def replace_often() -> None:
        for turn in range(15):
            served.copy((6, 8, 9)[turn % 3])
            time.sleep(0.05)
        is_over.set()

    replacing = threading.Thread(target=replace_often)
    replacing.start()
    with Client(served.service) as client:
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


def test_a_snapshot_copied_over_the_old_one_is_used(served: Served) -> None:
    """Requests meanwhile may get errors, but no wrong answers."""
    assert read_players(served.service) == 6
    shutil.copyfile(served.built[8], served.path)

    wait_until_served(served.service, 8)


def test_a_snapshot_rejected_for_its_journal_is_used_once_that_is_gone(
    running: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "FIRST_PAUSE", 0.0)
    path, journal = tmp_path / "served.db", tmp_path / "served.db-journal"
    shutil.copy(running.built[6], path)
    service = InProcess(path)

    async def check() -> None:
        old = (await service.snapshot.get_generation()).root
        journal.write_bytes(b"left by another program")
        replace(path, running.built[8].read_bytes())
        assert (await service.snapshot.get_generation()).root == old
        await finish_others()
        journal.unlink()
        await service.snapshot.get_generation()  # it does not wait for a retry
        await finish_others()
        assert (await service.snapshot.get_generation()).root != old

    service.run(check())


def test_a_replaced_folder_is_used_once_it_is_whole(running: Served, tmp_path: Path) -> None:
    old, new = (
        write_shards(running.built[players], tmp_path / str(players), 2) for players in (6, 8)
    )
    path = tmp_path / "served"
    shutil.copytree(old, path)
    with ExitStack() as stack:
        with limit_descriptors():
            service = stack.enter_context(serve(path))
        assert read_players(service) == 6

        path.rename(path.with_name("old"))
        shutil.copytree(new, path)
        damaged = str(path / name_shard(find_shard("a", 2)))
        change(damaged, "UPDATE blocks SET time_unit = time_unit + 1")
        assert read_players(service) == 6
        (event,) = wait_for_events(service, 1)
        assert event["event"] == "new snapshot rejected; the previous one stays in use"
        assert f"{damaged}: damaged (" in event["reason"]

        shutil.rmtree(path)
        path.symlink_to(new)
        wait_until_served(service, 8)

        empty_log(service, get(b"a"))
        path.unlink()
        path.with_name("old").rename(path)
        wait_until_served(service, 6)
        assert list_names(service, 1) == ["new snapshot in use"]
