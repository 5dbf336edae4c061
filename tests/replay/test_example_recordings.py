"""Replay the recordings of docs/examples against the demo."""

import json
from http import HTTPStatus
from pathlib import Path

from conftest import ROOT, Cli

RECORDINGS = ROOT / "docs" / "examples" / "recordings"
NOT_REPRODUCIBLE = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR)


def test_the_snapshot_of_the_demo_gives_the_recorded_answers(cli: Cli, demo_snapshot: str) -> None:
    paths = sorted(RECORDINGS.glob("*.har"))
    access = ("--access", str(RECORDINGS / "access.toml"))

    ran = cli("replay", *map(str, paths), "--snapshot", demo_snapshot, *access, "--json")

    assert ran.exit_code == 0, ran.stderr
    exchanges = ran.json["exchanges"]
    statuses = [status for path in paths for status in read_statuses(path)]
    assert sorted(set(statuses)) == [200, 400, 401, 403, 404, 405, 429, 500]
    assert [each["class"] for each in exchanges] == [
        "notReproducible" if status in NOT_REPRODUCIBLE else "match" for status in statuses
    ]
    assert not any(each["differences"] for each in exchanges)


def read_statuses(path: Path) -> list[int]:
    """Return the statuses of a recording, and check that they are that of its name."""
    entries = json.loads(path.read_bytes())["log"]["entries"]
    statuses = [entry["response"]["status"] for entry in entries]
    assert {f"{status}" for status in statuses} == {path.stem}
    return statuses
