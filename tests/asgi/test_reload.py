"""Decide when to read a file again because it was replaced or changed."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from srvstat.asgi.reload import ReloadedFile
from srvstat.contract.errors import SourceError


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
