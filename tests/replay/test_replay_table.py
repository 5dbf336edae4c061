"""The table of `srvstat replay`."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from replay.recording_files import Line, describe_exchange, write_ndjson
from srvstat import operations
from srvstat.contract.instants import parse_instant
from srvstat.contract.requests import build_compare_request, build_server_reference
from srvstat.render.screen import Screen
from srvstat.render.tables.support import render_replay
from srvstat.snapshot.read.reader import open_file
from srvstat.support.recordings import read_recording
from srvstat.support.replay import ReplaySettings, replay

pytestmark = pytest.mark.slow

HOSTILE = "\x1b[2J[red]\u202eb\n"
COMPARE = "/gateway/v1/compare"
REQUESTED = "2026-03-01T12:00:00Z"
SERVERS = ["harbor-city", "night-shift"]


def describe_comparison(range: str, answer: str, **fields: Any) -> Line:
    servers = [{"identifier": name, "by": "id"} for name in SERVERS]
    body = json.dumps({"servers": servers, "range": range})
    return describe_exchange(COMPARE, answer, body=body, requestedAt=REQUESTED, **fields)


def describe_get(target: str, answer: str | None, **fields: Any) -> Line:
    return describe_exchange(
        f"/gateway/v1/servers/{target}", answer, requestedAt=REQUESTED, **fields
    )


@pytest.fixture
def case(demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a recording with all classes of exchanges and of differences."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    file = open_file(demo_snapshot)
    older = parse_instant("2026-03-01T11:40:00Z")

    def compare(range: str, at: int | None = None) -> str:
        request = build_compare_request(SERVERS, range=range)
        return operations.compare(file, request, at=at).to_json().decode()

    reference = build_server_reference("night-shift")
    detail = operations.get_server(file, reference).to_json().decode()
    week = compare("7d")
    altered = week.replace('"peakPlayers":', '"peakPlayers":1').replace(
        '"currentPlayers":', '"currentPlayers":2'
    )
    lines = [
        describe_comparison("7d", week),
        describe_comparison("30d", compare("30d", older)),
        describe_comparison("7d", altered.replace('"sampleCount":169', '"sampleCount":169.0')),
        describe_comparison("7d", json.dumps(json.loads(week))),
        describe_comparison("24h", week.replace('"uptime":null,', "", 1)),
        describe_comparison("24h", compare("24h", older).replace('"night-shift"', '"day-shift"')),
        describe_get("night-shift", detail),
        describe_get("night-shift?by=cfxId", detail),
        describe_get("night-shift", '{"error":{"code":"SERVER_NOT_FOUND"}}', status=404),
        describe_get("night-shift", HOSTILE),
        describe_get("night-shift", "{}", status=429),
        describe_get("night-shift", None),
        describe_exchange(f"/{HOSTILE.strip()}", "", requestedAt=REQUESTED),
        describe_get("night-shift", json.dumps({HOSTILE: "\u202e" * 300})),
        {"request": HOSTILE},
    ]  # fmt: skip
    file.close()
    return write_ndjson(Path("case.ndjson"), lines)


def test_explanations_are_under_their_exchanges(case: str, cli: Cli) -> None:
    explained = cli("replay", case, "--explain", "--table").stdout.decode()
    text = cli("compare", *SERVERS, "--range", "7d", "--explain", "--table", "--at", REQUESTED)

    assert " ".join(explained.split()).count(" ".join(text.stdout.decode().split())) == 3
    shown = explained[explained.index("    This explains") : explained.index("    program:")]
    assert all(line[:4].isspace() for line in shown.split("\n") if line)
    assert max(map(len, shown.split("\n"))) <= 78


def test_a_run_of_matches_is_shortened(case: str, demo_snapshot: str) -> None:
    (exchange, *_) = read_recording(case)
    (*_, damaged) = read_recording(case)
    exchanges = [damaged, *[exchange] * 99, damaged, exchange]
    file = open_file(demo_snapshot)
    shown = render_replay(replay(file, exchanges, ReplaySettings()), Screen(80, ascii_only=True))
    file.close()

    assert shown.startswith("102 exchanges: 100 match, 2 unreadable\n\nunreadable ")
    assert "\n  and 98 more that match\n\nunreadable " in shown
    assert shown.count("harbor-city, night-shift; 7d") == 2


def test_a_recording_without_exchanges_has_a_line(
    tmp_path: Path, cli: Cli, demo_snapshot: str
) -> None:
    empty = tmp_path / "empty.ndjson"
    empty.write_bytes(b"")

    ran = cli("replay", str(empty), "-s", demo_snapshot, "--table")
    assert (ran.exit_code, ran.stdout) == (0, b"0 exchanges: nothing to compare\n")
