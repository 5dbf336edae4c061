"""Answer questions through the Python API."""

import os
import re
from pathlib import Path

import pytest

import srvstat
from conftest import Cli


def test_an_answer_is_typed_and_encodes_to_the_bytes_of_the_api(
    cli: Cli, demo_snapshot: str
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        answer = snapshot.compare(["id:harbor-city", "cfxId:nf8q1z"], range="7d")
        detail = snapshot.get("id:harbor-city")

    assert answer.data[1].serverId == "new-frontier"
    assert answer.data[0].growth.players == -4
    assert detail.data.players.max == 400
    command = ("compare", "harbor-city", "cfxId:nf8q1z", "--range", "7d", "-s", demo_snapshot)
    assert answer.to_json() + b"\n" == cli(*command).stdout
    assert detail.to_json() + b"\n" == cli("get", "harbor-city", "-s", demo_snapshot).stdout


def test_errors_of_the_api_are_exceptions(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        with pytest.raises(srvstat.InvalidRequestError, match="1 given, 2 to 5 needed") as invalid:
            snapshot.compare(["harbor-city"])
        with pytest.raises(srvstat.ServerNotFoundError, match="no cfxId nobody"):
            snapshot.get("cfxId:nobody")

    assert isinstance(invalid.value, srvstat.ApiError)
    assert (invalid.value.code, invalid.value.http_status) == ("INVALID_REQUEST", 400)
    assert str(invalid.value).startswith("INVALID_REQUEST: Invalid request (")


def test_at_overrides_the_instant_of_the_snapshot(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        assert snapshot.as_of == "2026-03-01T12:00:00.000Z"
        assert re.fullmatch("[0-9a-f]{64}", snapshot.root)
        earlier = snapshot.compare(["harbor-city", "old-guard"], at="2025-12-16T13:30Z")
        with pytest.raises(ValueError, match="no time zone"):
            snapshot.compare(["harbor-city", "old-guard"], at="2025-12-16T13:30")

    assert [result.sampleCount for result in earlier.data] == [2, 2]


def test_a_path_may_be_str_bytes_or_path(demo_snapshot: str) -> None:
    for path in (demo_snapshot, os.fsencode(demo_snapshot), Path(demo_snapshot)):
        with srvstat.open_snapshot(path) as snapshot:
            assert snapshot.get("harbor-city").data.id == "harbor-city"


def test_a_missing_snapshot_is_an_error_and_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(srvstat.SnapshotError, match="no such file"):
        srvstat.open_snapshot(tmp_path / "none.db")

    assert not list(tmp_path.iterdir())


def test_all_public_names_can_be_loaded() -> None:
    assert dir(srvstat) == sorted(srvstat.__all__)
    assert all(getattr(srvstat, name) is not None for name in srvstat.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        srvstat.nonsense  # noqa: B018 - the look-up is the test


def test_a_path_with_a_nul_is_an_error() -> None:
    with pytest.raises(srvstat.SnapshotError, match="not a file name"):
        srvstat.open_snapshot("a\0b")
