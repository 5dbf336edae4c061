"""Replace the access file and the snapshot while the service runs."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asgi.small_service import InProcess, build_small, empty_log, format_access, wait_for_events
from conftest import Cli
from srvstat.asgi import reload
from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import SourceError
from srvstat.snapshot.digests import find_shard, name_shard
from support.http import COMPARE, HOST, JSON, TWO, A, Client, compare, get, request, send_request
from support.process import Service, limit_descriptors, serve
from support.snapshots import change, write_shards


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


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


OLD_KEYS = {"old-key": "all", "lasting-key": "get"}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an access file with two keys."""
    path = tmp_path_factory.mktemp("served") / "access.toml"
    path.write_text(format_access(OLD_KEYS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def running_with_access(small: str, access: Path) -> Iterator[Service]:
    with serve(small, "--access", str(access)) as running_with_access:
        yield running_with_access


@pytest.fixture
def guarded(running_with_access: Service, access: Path) -> Service:
    """Return the service with an empty log; it accepts the two keys."""
    replace_text(access, format_access(OLD_KEYS))
    empty_log(running_with_access, request(A, HOST, b"X-Gateway-Key: old-key"))
    return running_with_access


def replace_text(path: Path, text: str) -> None:
    path.with_name("next").write_text(text, encoding="utf-8")
    os.replace(path.with_name("next"), path)


def get_status(guarded: Service, key: str) -> int:
    """Return the status of Get Server with a key."""
    return send_request(guarded, request(A, HOST, b"X-Gateway-Key: " + key.encode())).status


def test_a_replaced_access_file_is_used_by_the_next_request(guarded: Service, access: Path) -> None:
    assert (get_status(guarded, "old-key"), get_status(guarded, "new-key")) == (200, 401)

    replace_text(access, format_access({"new-key": "all", "lasting-key": "get"}))

    assert (get_status(guarded, "old-key"), get_status(guarded, "new-key")) == (401, 200)
    assert get_status(guarded, "lasting-key") == 200
    assert wait_for_events(guarded, 1)[0]["event"] == "new access file in use"


def test_a_key_added_by_the_command_is_valid_at_once(
    guarded: Service, access: Path, cli: Cli
) -> None:
    ran = cli("access", "new-key", "--plan", "all", "--access", str(access))
    assert ran.exit_code == 0, ran.stderr

    assert get_status(guarded, ran.stdout.decode().strip()) == 200
    assert get_status(guarded, "old-key") == 200


def test_a_changed_plan_is_used(guarded: Service, access: Path) -> None:
    sent = request(COMPARE, HOST, b"X-Gateway-Key: lasting-key", JSON, body=TWO)
    assert send_request(guarded, sent).status == 403

    replace_text(access, format_access({"lasting-key": "compare"}))

    assert send_request(guarded, sent).status == 200
    assert get_status(guarded, "lasting-key") == 403


def test_a_raised_limit_keeps_the_count(guarded: Service, access: Path) -> None:
    text = format_access({"limited-key": "three"})
    replace_text(access, text)
    assert [get_status(guarded, "limited-key") for _ in range(4)] == [200] * 3 + [429]

    replace_text(access, text.replace("requests_per_minute = 3", "requests_per_minute = 5"))

    assert [get_status(guarded, "limited-key") for _ in range(4)] == [200] * 2 + [429] * 2


def remove_access(access: Path) -> None:
    access.unlink()


def make_access_pipe(access: Path) -> None:
    access.unlink()
    os.mkfifo(access)


def write_malformed_toml(access: Path) -> None:
    replace_text(access, "[plans.all\n")


def write_invalid_utf_8(access: Path) -> None:
    access.write_bytes(b"\xff\xfe")


ACCESS_CHANGES = [remove_access, make_access_pipe, write_malformed_toml, write_invalid_utf_8]


@pytest.mark.parametrize("change", ACCESS_CHANGES, ids=lambda change: change.__name__)
def test_a_bad_access_file_is_rejected_once_and_the_previous_one_stays(
    change: Callable[[Path], None], guarded: Service, access: Path
) -> None:
    change(access)
    for _ in range(3):
        assert (get_status(guarded, "old-key"), get_status(guarded, "new-key")) == (200, 401)

    (event,) = wait_for_events(guarded, 1)
    assert event["event"] == "new access file rejected; the previous one stays in use"
    assert event["reason"].startswith(str(access))
    assert "old-key" not in event["reason"]

    replace_text(access, format_access({"new-key": "all"}))
    assert (get_status(guarded, "old-key"), get_status(guarded, "new-key")) == (401, 200)
    assert wait_for_events(guarded, 2)[1]["event"] == "new access file in use"


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


def wait_until_served(service: Service, players: int) -> None:
    """Wait until a snapshot is served: a slow machine takes long to verify it."""
    deadline = time.monotonic() + 10
    while _read_players_or_none(service) != players:
        assert time.monotonic() < deadline
        time.sleep(0.02)
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
    snapshots: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "FIRST_PAUSE", 0.0)
    path, journal = tmp_path / "served.db", tmp_path / "served.db-journal"
    shutil.copy(snapshots[6], path)
    service = InProcess(path)

    async def replace() -> None:
        old = (await service.snapshot.get_generation()).root
        journal.write_bytes(b"left by another program")
        replace_with(snapshots[8], path)
        assert (await service.snapshot.get_generation()).root == old
        await finish_others()
        journal.unlink()
        await service.snapshot.get_generation()  # it does not wait for a retry
        await finish_others()
        assert (await service.snapshot.get_generation()).root != old

    service.run(replace())


SHARDS = 2
ONE_OF_EACH_SHARD = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-b","by":"cfxId"}]}'


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
def folder(folders: dict[int, Path], tmp_path: Path) -> Path:
    """Return the folder that is served."""
    shutil.copytree(folders[6], tmp_path / "served")
    return tmp_path / "served"


@pytest.fixture
def sharded(folder: Path) -> Iterator[Service]:
    with ExitStack() as stack:
        with limit_descriptors():
            sharded = stack.enter_context(serve(folder))
        yield sharded


def read_players_of_shards(sharded: Service) -> int:
    """Return the players of the server `a`, and check that both answers agree."""
    current: int = send_request(sharded, get(b"a")).json["data"]["players"]["current"]
    answer = send_request(sharded, compare(ONE_OF_EACH_SHARD))
    assert [one["currentPlayers"] for one in answer.json["data"]] == [current, 7]
    return current


def wait_until_shards_serve(sharded: Service, players: int) -> None:
    deadline = time.monotonic() + 10
    while read_players_of_shards(sharded) != players:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_replaced_folder_is_used_once_it_is_whole(
    sharded: Service, folder: Path, folders: dict[int, Path]
) -> None:
    assert read_players_of_shards(sharded) == 6

    folder.rename(folder.with_name("old"))
    shutil.copytree(folders[8], folder)
    damaged = str(folder / name_shard(find_shard("a", SHARDS)))
    change(damaged, "UPDATE blocks SET time_unit = time_unit + 1")
    assert read_players_of_shards(sharded) == 6
    (event,) = wait_for_events(sharded, 1)
    assert event["event"] == "new snapshot rejected; the previous one stays in use"
    assert f"{damaged}: damaged (" in event["reason"]

    shutil.rmtree(folder)
    folder.symlink_to(folders[8])
    wait_until_shards_serve(sharded, 8)

    empty_log(sharded, get(b"a"))
    folder.unlink()
    folder.with_name("old").rename(folder)
    wait_until_shards_serve(sharded, 6)
    assert [event["event"] for event in wait_for_events(sharded, 1)] == ["new snapshot in use"]
