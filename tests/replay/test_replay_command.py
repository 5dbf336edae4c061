"""`srvstat replay`: its recordings, options, exit codes and warnings."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from conftest import AS_OF, DAY, ROOT, Build, Cli, server
from replay.recording_files import describe_exchange, write_har, write_ndjson
from srvstat.contract.time import format_instant
from support.http import KEY, Client, compare, get
from support.process import serve
from support.records import PLANS, format_key_table

NOW = format_instant(AS_OF)
BODY = '{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-b","by":"cfxId"}],"range":"7d"}'
COMPARE = "/gateway/v1/compare"
SERVER = "/gateway/v1/servers/a"


@pytest.fixture
def snapshot(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    rows = [(name, AS_OF - day * DAY // 2, day + 3) for name in ("a", "b") for day in range(9)]
    path = build([server("a"), server("b")], rows)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


@pytest.fixture
def lines(cli: Cli, snapshot: str) -> list[dict[str, Any]]:
    """Record a comparison and a request for a server, both answered at the snapshot's as of."""
    compared = cli("compare", "a", "cfxId:x-b", "--range", "7d").stdout.decode().strip()
    detail = cli("get", "a", "-s", snapshot).stdout.decode().strip()
    return [
        describe_exchange(COMPARE, compared, body=BODY, requestedAt=NOW),
        describe_exchange(SERVER, detail, requestedAt=NOW),
    ]


def test_recordings_of_all_kinds_match(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    har = write_har(tmp_path / "x.har", lines)
    hand_written = write_ndjson(tmp_path / "x.ndjson", lines)
    commands = tmp_path / "mail.txt"
    commands.write_text(f"curl https://api.example{SERVER}\n", encoding="utf-8")
    ran = cli("replay", har, hand_written, str(commands))

    assert (ran.exit_code, ran.stderr) == (0, "")
    counts = ran.json["counts"]
    assert counts == dict.fromkeys(counts, 0) | {"match": 4, "unrecorded": 1}
    assert [each["place"] for each in ran.json["exchanges"]] == [
        f"{har}, entry 1",
        f"{har}, entry 2",
        f"{hand_written}, line 1",
        f"{hand_written}, line 2",
        f"{commands}, line 1",
    ]
    first = ran.json["exchanges"][0]
    assert (first["asOf"], first["path"], first["method"]) == (NOW, COMPARE, "POST")
    assert first["request"] == {"servers": ["id:a", "cfxId:x-b"], "range": "7d"}
    jsonschema_rs.Draft202012Validator(cli("schema", "replay").json).validate(ran.json)
    stored = lines[0]["response"]["body"]
    assert f'"answer":{{"status":200,"body":{stored}}}' in ran.stdout.decode()


def test_a_recording_of_the_service_matches(cli: Cli, snapshot: str, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    digest = hashlib.sha256(KEY.partition(b": ")[2]).hexdigest()
    access.write_text(PLANS + format_key_table(digest), encoding="utf-8")
    recording = str(tmp_path / "served.ndjson")
    with serve(snapshot, "--record", recording, "--access", str(access)) as service:
        with Client(service) as client:
            for sent in (
                compare(BODY.encode()),
                compare(BODY.replace("7d", "30d").encode()),
                get(b"a"),
                get(b"unknown"),
                get(b"a").replace(KEY, KEY + b"-unknown"),
            ):
                client.send(sent)
                client.read_answer()
        service.stop()
    alone = cli("replay", recording)
    ran = cli("replay", recording, "--access", str(access), "--at", "snapshot")

    assert alone.json["counts"]["match"] == 3
    assert alone.json["counts"]["notReproducible"] == 2
    assert (ran.exit_code, ran.json["counts"]["match"]) == (0, 5)
    assert [each["answer"]["status"] for each in ran.json["exchanges"]] == [200, 403, 200, 404, 401]


def test_a_search_is_true_or_exits_with_5(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    old = cli("compare", "a", "cfxId:x-b", "--range", "7d", "--at", str(AS_OF - DAY)).stdout
    lines[0]["response"]["body"] = old.decode().strip()
    name = write_ndjson(tmp_path / "old.ndjson", lines)
    found, late = (
        cli("replay", name, "--at", "search", "--within", within) for within in ("1d", "719m")
    )

    assert (found.exit_code, found.json["counts"]["match"]) == (0, 2)
    assert found.json["exchanges"][0]["trueDuring"] == [
        {"from": format_instant(AS_OF - DAY), "to": format_instant(AS_OF - DAY // 2 - 1)}
    ]
    assert [each["serverId"] for each in found.json["exchanges"][0]["servers"]] == ["a", "b"]
    assert (late.exit_code, late.json["exchanges"][0]["trueDuring"]) == (5, [])
    assert late.json["exchanges"][1]["trueDuring"] == [
        {"from": format_instant(AS_OF - 719 * 60_000), "to": NOW}
    ]


def test_later_requests_are_warned_of(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    for line in lines:
        line["requestedAt"] = format_instant(AS_OF + DAY)
    name = write_ndjson(tmp_path / "late.ndjson", lines)

    ends = "which ends 2026-03-01 12:00:00 UTC"
    warning = f"warning: 2 answers for an instant later than the snapshot, {ends}"
    assert cli("replay", name).stderr == (
        f"{warning}; use --at snapshot if the service answered from this snapshot, or --at search"
        " to find when the answers were true\n"
    )
    assert cli("replay", name, "--at", "search").stderr == f"{warning}\n"
    assert cli("replay", name, "--at", "2027-01-01T00:00Z").stderr == f"{warning}\n"
    assert cli("replay", name, "--at", "snapshot").stderr == ""


def test_a_search_of_requests_after_the_data_ends_with_the_data(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    old = cli("compare", "a", "cfxId:x-b", "--range", "7d", "--at", str(AS_OF - DAY)).stdout
    for line in lines:
        line["requestedAt"] = format_instant(AS_OF + 3 * DAY)
    lines[0]["response"]["body"] = old.decode().strip()
    lines[0]["asOf"] = None
    lines[1]["asOf"] = format_instant(AS_OF - DAY)
    name = write_ndjson(tmp_path / "late.ndjson", lines)
    ran = cli("replay", name, "--at", "search")
    shown = cli("replay", name, "--at", "search", "--table").stdout.decode()

    assert [each["searched"]["to"] for each in ran.json["exchanges"]] == [
        format_instant(AS_OF),
        format_instant(AS_OF - DAY),
    ]
    assert ran.exit_code == 0
    assert ran.stderr == (
        "warning: 2 requests more than --within later than the snapshot, which ends 2026-03-01"
        " 12:00:00 UTC; searched up to the recorded as-of time, or up to the end of the snapshot\n"
    )
    assert "12 hours before 2026-03-01 12:00:00 UTC: a stale answer" in shown


@pytest.mark.parametrize(
    "options",
    [
        ["--at", "yesterday"],
        ["--at", "2026-01-01T00:00"],
        ["--within", "2d"],
        ["--at", "search", "--within", "2"],
        ["--at", "search", "--within", "2w"],
        ["--tolerance", "-1"],
        ["--tolerance", "nan"],
        ["--tolerance", "1e5"],
        ["--plan", "starter"],
        ["--json", "--table"],
        ["-", "-"],
    ],
)
def test_invalid_options_are_refused(options: list[str], cli: Cli) -> None:
    ran = cli("replay", "missing.har", *options)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("error: ")


def test_a_missing_recording_is_reported_before_a_missing_snapshot(cli: Cli) -> None:
    assert cli("replay", "missing.har", "-s", "missing.db").exit_code == 6
    assert cli("replay", os.devnull, "-s", "missing.db").exit_code == 3


def test_a_search_in_a_bundle_tells_what_it_searched(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    old = cli("compare", "a", "cfxId:x-b", "--range", "7d", "--at", str(AS_OF - DAY)).stdout
    stale = describe_exchange(COMPARE, old.decode().strip(), body=BODY, requestedAt=NOW)
    name = write_ndjson(tmp_path / "x.ndjson", [stale, *lines])
    bundle = str(tmp_path / "case.db")
    assert cli("snapshot", "bundle", "a", "b", "--range=7d", "-o", bundle).exit_code == 0

    assert cli("replay", name, "--at", "search").exit_code == 0
    ran = cli("replay", name, "--at", "search", "-s", bundle)
    shown = cli("replay", name, "--at", "search", "-s", bundle, "--table").stdout.decode()
    half, whole = ({"from": format_instant(AS_OF - age), "to": NOW} for age in (DAY // 2, 2 * DAY))
    assert ran.exit_code == 5
    assert [
        (each["class"], each["searched"], each["reason"]) for each in ran.json["exchanges"]
    ] == [
        ("differs", half, "the bundle covers only a part of the search"),
        ("match", half, None),
        ("match", whole, None),
    ]
    assert "was never right within 12 hours before the request" in shown


CASE = str(ROOT / "tests" / "corpus" / "files" / "case.ndjson")
"""A recording with all classes of exchanges and of differences in the servers of the demo."""


def test_explanations_are_under_their_exchanges(cli: Cli, demo_snapshot: str) -> None:
    table = ("--explain", "--table", "-s", demo_snapshot)
    explained = cli("replay", CASE, *table).stdout.decode()
    servers = ("harbor-city", "night-shift", "--range", "7d")
    text = cli("compare", *servers, "--at", "2026-03-01T12:00:00Z", *table)

    assert " ".join(explained.split()).count(" ".join(text.stdout.decode().split())) == 3
    shown = explained[explained.index("    This explains") : explained.index("    program:")]
    assert all(line[:4].isspace() for line in shown.split("\n") if line)
    assert max(map(len, shown.split("\n"))) <= 78


def test_a_run_of_matches_is_shortened(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    match, *_, damaged = Path(CASE).read_text(encoding="utf-8").splitlines()
    lines = "\n".join([damaged, *[match] * 99, damaged, match])
    (tmp_path / "x.ndjson").write_text(lines, encoding="utf-8")

    shown = cli("replay", str(tmp_path / "x.ndjson"), "--table", "-s", demo_snapshot).stdout

    assert shown.startswith(b"102 exchanges: 100 match, 2 unreadable\n\nunreadable ")
    assert re.search(rb"\n +and 98 more that match\n\n?unreadable ", shown)
    assert shown.count(b"harbor-city, night-shift; 7d") == 2
