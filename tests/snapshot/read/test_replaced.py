"""Open a snapshot that a new build replaces at that moment."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import srvstat

Replacing = Callable[[int], None]


@pytest.fixture
def replace_before_opening(
    demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Replacing:
    """Replace the snapshot a number of times just before SQLite opens it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(demo_snapshot, "snapshot.db")
    connect = sqlite3.connect
    times_left = 0

    def late(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal times_left
        if times_left:
            times_left -= 1
            shutil.copy("snapshot.db", "new.db")
            os.replace("new.db", "snapshot.db")
        connection: sqlite3.Connection = connect(*arguments, **options)
        return connection

    def replace(times: int) -> None:
        nonlocal times_left
        times_left = times
        monkeypatch.setattr(sqlite3, "connect", late)

    return replace


def test_a_snapshot_replaced_while_opening_is_opened_again(
    replace_before_opening: Replacing,
) -> None:
    replace_before_opening(3)

    with srvstat.open_snapshot("snapshot.db") as snapshot:
        assert snapshot.get("harbor-city").data.id == "harbor-city"


def test_a_snapshot_replaced_at_every_attempt_is_refused(replace_before_opening: Replacing) -> None:
    replace_before_opening(1000)

    with pytest.raises(srvstat.SnapshotError) as given_up:
        srvstat.open_snapshot("snapshot.db")

    assert given_up.value.reason == "snapshot.db: was replaced each time it was opened; try again"
