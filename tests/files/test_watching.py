"""Decide when to read a file again because it was replaced or changed."""

import os
import time
from pathlib import Path

import pytest

from srvstat.files.paths import Candidate, WatchedFile


class Clock:
    """A clock that the test sets."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "watched"
    path.write_text("first", encoding="ascii")
    return path


def replace(path: Path, text: str) -> None:
    path.with_name("next").write_text(text, encoding="ascii")
    os.replace(path.with_name("next"), path)


def find(file: WatchedFile) -> Candidate:
    candidate = file.find_candidate()
    assert candidate
    return candidate


def test_a_file_replaced_while_it_is_read_is_read_again(path: Path) -> None:
    file = WatchedFile(str(path))
    replace(path, "second")
    candidate = find(file)

    replace(path, "third one")
    file.accept(candidate)

    assert find(file).identity != candidate.identity


def test_a_rejected_file_is_retried_after_pauses_that_double_to_five_minutes(
    path: Path, clock: Clock
) -> None:
    file = WatchedFile(str(path))
    path.unlink()
    candidate = find(file)
    assert not candidate.is_retry

    for pause in (5, 10, 20, 40, 80, 160, 300, 300):
        file.reject(candidate, "no such file")
        clock.now += pause - 0.1
        assert file.find_candidate() is None
        clock.now += 0.1
        candidate = find(file)
        assert candidate.is_retry


def test_another_file_is_tried_at_once_and_starts_with_the_first_pause(
    path: Path, clock: Clock
) -> None:
    file = WatchedFile(str(path))
    replace(path, "second")
    file.reject(find(file), "malformed")
    clock.now = 5
    file.reject(find(file), "malformed")

    replace(path, "third one")
    candidate = find(file)
    assert not candidate.is_retry
    file.reject(candidate, "malformed")

    clock.now = 10
    assert find(file).is_retry


def test_a_rejection_is_reported_when_its_reason_or_its_file_changes(
    path: Path, clock: Clock
) -> None:
    file = WatchedFile(str(path))
    replace(path, "second")
    assert file.reject(find(file), "unreadable")
    clock.now = 5
    assert not file.reject(find(file), "unreadable")
    clock.now = 20
    assert file.reject(find(file), "malformed")

    replace(path, "third one")
    assert file.reject(find(file), "malformed")


def test_a_growing_file_is_reported_once(path: Path) -> None:
    file = WatchedFile(str(path))
    replace(path, "second")
    assert file.reject(find(file), "malformed")

    for _ in range(3):
        with path.open("a", encoding="ascii") as growing:
            growing.write("more")
        assert not file.reject(find(file), "malformed")


def test_a_rejection_is_reported_again_after_the_accepted_file_returned(path: Path) -> None:
    file = WatchedFile(str(path))
    for _ in range(2):
        path.rename(path.with_name("away"))
        assert file.reject(find(file), "no such file")
        path.with_name("away").rename(path)
        assert file.find_candidate() is None
