"""`srvstat replay`: its options and warnings, the classes of exchanges, and hidden keys."""

import hashlib
import json
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, ROOT, Build, Cli, build_in, few_examples, server
from replay.recorded import (
    COMPARE,
    SERVER,
    build_entry,
    build_har,
    convert_line,
    describe_exchange,
    record_comparison,
    record_get,
    write_har,
    write_ndjson,
)
from srvstat.cli.demo import read_demo_file
from srvstat.contract.errors import (
    ApiError,
    InvalidRequestError,
    RateLimitedError,
    ServerNotFoundError,
)
from srvstat.contract.http import Head
from srvstat.contract.requests import build_compare_request, build_server_reference
from srvstat.contract.responses import ErrorResponse
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DAYS, Range
from srvstat.documents.support import ReplayedExchange, find_nearest
from srvstat.operations import answers as operations
from srvstat.operations.access import Access, read_access
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable, keep_judged
from srvstat.support.replay import ReplaySettings, replay
from support.records import PLANS, format_key_table

NOW = format_instant(AS_OF)
BODY = '{"servers":[{"identifier":"a","by":"id"},{"identifier":"x-b","by":"cfxId"}],"range":"7d"}'


@pytest.fixture
def snapshot(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    rows = [(name, AS_OF - day * DAY // 2, day + 3) for name in ("a", "b") for day in range(9)]
    path = build([server("a"), server("b")], rows)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


def write_access(folder: Path, key: bytes) -> str:
    path = folder / "access.toml"
    path.write_text(PLANS + format_key_table(hashlib.sha256(key).hexdigest()), encoding="utf-8")
    return str(path)


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
    warning = f"warning: 2 responses for a time later than the snapshot, {ends}"
    assert cli("replay", name).stderr == (
        f"{warning}; use --at snapshot if the service answered from this snapshot, or --at search"
        " to find when the responses were right\n"
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
    assert "12 hours before 2026-03-01 12:00:00 UTC: stale" in " ".join(shown.split())


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
    for recording, code in (("missing.har", 6), (os.devnull, 6), ("-", 3)):
        ran = cli("replay", recording, "-s", "missing.db", stdin=b"curl http://localhost/a\n")
        assert ran.exit_code == code


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
    assert "no match within 12 hours before the request" in shown


CASE = str(ROOT / "tests" / "corpus" / "files" / "case.ndjson")
"""A recording with all classes of exchanges and of differences in the servers of the demo."""


def test_explanations_are_under_their_exchanges(cli: Cli, demo_snapshot: str) -> None:
    table = ("--explain", "--table", "-s", demo_snapshot)
    explained = cli("replay", CASE, *table).stdout.decode()
    servers = ("harbor-city", "night-shift", "--range", "7d")
    text = cli("compare", *servers, "--at", "2026-03-01T12:00:00Z", *table)

    assert " ".join(explained.split()).count(" ".join(text.stdout.decode().split())) == 3
    start = explained.index("  Compare Servers: ")
    shown = explained[start : explained.index("line 2: ")]
    assert all(line[:2].isspace() for line in shown.split("\n") if line)
    assert max(map(len, shown.split("\n"))) <= 78


def test_matches_of_many_exchanges_and_requests_to_one_host_share_a_line(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    match, *_, damaged = Path(CASE).read_text(encoding="utf-8").splitlines()
    foreign = [
        json.dumps({"request": {"method": "GET", "path": f"https://x.example/{number}"}})
        for number in range(3)
    ]
    lines = "\n".join([damaged, *[match] * 99, *foreign, damaged, match])
    (tmp_path / "x.ndjson").write_text(lines, encoding="utf-8")

    shown = cli("replay", str(tmp_path / "x.ndjson"), "--table", "-s", demo_snapshot).stdout

    assert (
        shown.decode().replace(str(tmp_path), "DIR").replace(demo_snapshot, "DEMO")
        == """\
DIR/x.ndjson: 105 exchanges, 100 matches, 2 unreadable, 3 to another API

✗  2 requests    can't be read: request: must be an object, from line 1 on
✓  100 requests  match
\N{EN DASH}  3 requests to x.example  another API

100 of 100 recorded responses are right. Show where the numbers come from:
  srvstat replay DIR/x.ndjson --snapshot DEMO --explain
"""
    )


def test_each_command_that_a_table_ends_with_works_and_leads_to_the_next(
    cli: Cli, demo_snapshot: str, here: Path
) -> None:
    recording = here / "Mira's case.har"
    recording.write_bytes(read_demo_file("customer.har"))
    command, findings = ["replay", str(recording), "-s", demo_snapshot], []
    while command[0] == "replay":
        *_, finding, last = cli(*command, "--table").stdout.decode().splitlines()
        findings.append(finding)
        assert last.startswith("  srvstat ")
        command = shlex.split(last)[1:]
    stale = "1 of 2 recorded responses was stale by 5 hours 20 minutes, but otherwise right"

    assert findings == [
        f"{stale}. Show where the numbers come from:",
        f"{stale}. Pack the case for others:",
    ]
    assert cli(*command).exit_code == 0
    assert cli("replay", str(recording), "--at", "search", "-s", "case.db").exit_code == 0


NEVER_RIGHT = (
    "The recorded response was never right within 1 hour: averagePlayers 8 where the data give 7."
    " Show where the numbers come from:"
)


def test_a_table_ends_with_what_was_found(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    old = cli("compare", "a", "cfxId:x-b", "--range", "7d", "--at", str(AS_OF - DAY)).stdout
    stale = describe_exchange(COMPARE, old.decode().strip(), body=BODY, requestedAt=NOW)
    foreign = describe_exchange("https://x.example/", "{}", requestedAt=NOW)
    search = ("--at", "search", "--within")

    def find(exchanges: list[dict[str, Any]], *options: str) -> list[str]:
        name = write_ndjson(tmp_path / "x.ndjson", exchanges)
        shown = cli("replay", name, "--table", *options).stdout.decode()
        return shown.replace(name, "x").splitlines()[-2:]

    assert find(lines) == [
        "2 of 2 recorded responses are right. Show where the numbers come from:",
        "  srvstat replay x --explain",
    ]
    assert find([stale], *search, "1h") == [
        NEVER_RIGHT,
        "  srvstat replay x --at search --within 1h --explain",
    ]
    assert find([stale])[0].startswith(
        "The recorded response was stale by 12 hours, but otherwise right."
    )
    slow = stale | {"requestedAt": format_instant(AS_OF - DAY - 5 * MINUTE)}
    assert find([slow])[0].startswith(
        "The recorded response was right at least 5 minutes later: a slow clock, or a response"
    )
    undated = describe_exchange(COMPARE, lines[0]["response"]["body"], body=BODY)
    assert find([undated])[0].startswith(
        "The recorded response is right at the end of the snapshot."
    )
    lost = describe_exchange(SERVER, "{}", status=404)
    assert find([stale, *lines, lost], "--at", "snapshot")[0].startswith(
        "2 of 4 recorded responses differ: averagePlayers 8 where the data give 7, and others."
    )
    unusable = "Nothing to compare: no usable responses; use srvstat when to date numbers."
    assert find([foreign, foreign])[-1] == unusable


OWN_KEY = b"a-customers-own-key"
Replaying = Callable[..., ReplayedExchange]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    times = range(AS_OF - 3 * DAY, AS_OF + 1, DAY // 4)
    rows = [(name, at, at // DAY % 7 + 1) for name in ("a", "b") for at in times]
    path = build_in(tmp_path_factory.mktemp("replayed"), [server("a"), server("b")], rows)
    with closing(open_file(str(path))) as file:
        yield file


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return read_access(write_access(tmp_path_factory.mktemp("access"), OWN_KEY))


@pytest.fixture
def replay_one(opened: SnapshotFile) -> Replaying:
    def run(exchange: Exchange | Unreadable, **settings: Any) -> ReplayedExchange:
        document = replay(opened, [exchange], ReplaySettings(**settings))
        (replayed,) = document.exchanges
        counts = document.counts.model_dump()
        assert counts == dict.fromkeys(counts, 0) | {replayed.class_: 1}
        return replayed

    return run


def answer(opened: SnapshotFile, names: list[str], range: Range, at: int | None = None) -> bytes:
    request = build_compare_request(names, range=range)
    return operations.compare(opened, request, at=at).to_json()


def get_detail(opened: SnapshotFile) -> bytes:
    return operations.get_server(opened, build_server_reference("a")).to_json()


def error(kind: type[ApiError]) -> bytes:
    return ErrorResponse.from_error(kind).to_json()


def list_differences(replayed: ReplayedExchange) -> list[tuple[str, Any, Any]]:
    return [(each.pointer, each.recorded, each.recomputed) for each in replayed.differences]


def test_another_status_is_the_only_difference(opened: SnapshotFile, replay_one: Replaying) -> None:
    lost = replay_one(record_get("a", error(ServerNotFoundError), status=404))
    found = replay_one(record_get("x", get_detail(opened)))
    other = replay_one(record_get("a?x=1", error(ServerNotFoundError), status=404))
    proxy = replay_one(record_get("x", b"<html>", status=413))

    assert list_differences(lost) == [("/status", 404, 200)]
    assert list_differences(found) == [("/status", 200, 404)]
    assert found.reason == "no server with id x"
    assert list_differences(other) == [("/status", 404, 400)]
    assert list_differences(proxy) == [("/status", 413, 404)]
    assert {each.class_ for each in (lost, found, other, proxy)} == {"differs"}


def test_what_was_not_recorded_is_answered(opened: SnapshotFile, replay_one: Replaying) -> None:
    bodiless = record_get("a", None)
    head = replace(bodiless, head=bodiless.head._replace(method="HEAD"))
    silent = replay_one(replace(bodiless, response=None))
    unknown = replay_one(replace(record_get("x", None), response=None))

    assert silent.class_ == unknown.class_ == "unrecorded"
    assert (
        unknown.reason
        == "the response was not recorded; the response is an error: no server with id x"
    )
    assert silent.answer
    assert silent.answer.body.text.encode() == get_detail(opened)
    assert silent.reason == "the response was not recorded"
    assert (
        replay_one(bodiless).reason
        == "the body of the response was not recorded, but the status 200 is right"
    )
    assert replay_one(record_get("x", None)).class_ == "differs"
    assert replay_one(head).class_ == "match"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", b"/healthz"),
        ("GET", b"/gateway/v1/servers/a/stats"),
        ("POST", b"/collect?id=1"),
        ("OPTIONS", b"/gateway/v1/compare"),
    ],
)
def test_other_requests_are_foreign(method: str, path: bytes, replay_one: Replaying) -> None:
    path, _, query = path.partition(b"?")
    exchange = replace(record_get("a", b""), head=Head(method, path, query, []), host="h:80")
    replayed = replay_one(exchange)

    assert (replayed.class_, replayed.answer, replayed.as_of) == ("foreign", None, None)
    assert replayed.path == f"h:80{path.decode()}"


@pytest.mark.parametrize("status", [302, 304, 401, 403, 408, 429, 500, 502, 503])
def test_a_status_that_only_the_service_knows_is_not_reproducible(
    status: int, replay_one: Replaying
) -> None:
    for exchange in (
        record_get("a", error(RateLimitedError), status=status),
        record_comparison(["a", "b"], "7d", None, status=status),
    ):
        replayed = replay_one(exchange)
        assert (replayed.class_, replayed.answer) == ("notReproducible", None)
        assert (replayed.reason or "").startswith(f"status {status}: ")


ANY = record_comparison(["a", "b"], "30d", b"")
SERVED = replace(ANY, is_from_service=True)


def with_key(*keys: bytes) -> Exchange:
    headers = [*ANY.head.headers, *((b"x-gateway-key", key) for key in keys)]
    return replace(ANY, head=ANY.head._replace(headers=headers))


@pytest.mark.parametrize(
    ("exchange", "recorded", "answer"),
    [
        (with_key(OWN_KEY), 200, 403),
        (with_key(OWN_KEY), 401, 403),
        (with_key(b"unknown-key"), 200, 401),
        (with_key(b""), 200, 401),
        (with_key(OWN_KEY, OWN_KEY), 200, 401),
        (ANY, 200, 200),
        (ANY, 403, 200),
        (ANY, 401, 401),
        (replace(SERVED, plan="starter"), 200, 403),
        (replace(SERVED, plan="details"), 403, 403),
        (replace(SERVED, plan="deleted"), 200, None),
        (SERVED, 401, 401),
        (SERVED, 200, 200),
        (with_key(OWN_KEY), 429, None),
        (with_key(OWN_KEY), 500, None),
    ],
)
def test_an_access_file_selects_the_plan(
    exchange: Exchange, recorded: int, answer: int | None, access: Access, replay_one: Replaying
) -> None:
    response = RecordedResponse(recorded, b"{}")
    replayed = replay_one(replace(exchange, response=response), access=access)

    assert (replayed.answer and replayed.answer.status) == answer
    assert (replayed.class_ == "notReproducible") == (answer is None)
    assert ("/status" in [each.pointer for each in replayed.differences]) == (
        answer not in {None, recorded}
    )


def test_a_key_that_is_nearly_a_placeholder_is_judged_in_a_moment(
    access: Access, opened: SnapshotFile, replay_one: Replaying
) -> None:
    right = RecordedResponse(200, answer(opened, ["a", "b"], "30d"))
    exchange = replace(with_key(b"-" * 16_000 + b"a"), response=right)
    started = time.process_time()

    found = [replay_one(exchange, access=access) for _ in range(20)]

    assert {one.answer and one.answer.status for one in found} == {401}
    assert time.process_time() - started < 5  # only a quadratic search takes longer


@pytest.mark.parametrize("key", [b"REDACTED", b"***", b"<key>", b"[Filtered]", b"xxxx", b"$KEY"])
def test_a_word_that_replaces_a_key_is_an_unknown_key(
    key: bytes, access: Access, opened: SnapshotFile, replay_one: Replaying
) -> None:
    right = RecordedResponse(200, answer(opened, ["a", "b"], "30d"))

    assert replay_one(replace(with_key(key), response=right), access=access).class_ == "match"
    refused = replay_one(replace(with_key(key), response=RecordedResponse(401, b"")), access=access)
    assert (refused.answer and refused.answer.status) == 401


def test_the_size_of_headers_that_were_accepted_is_not_judged(
    opened: SnapshotFile, replay_one: Replaying
) -> None:
    cookie = keep_judged([(b"cookie", b"c" * 16_384)])

    def ask(status: int, body: bytes) -> str:
        return replay_one(record_get("a", body, status=status, headers=cookie)).class_

    assert ask(200, get_detail(opened)) == "match"
    assert ask(400, error(InvalidRequestError)) == "match"


@pytest.mark.parametrize("count", [b"27.5", b"-1", b'"27"', b"null"])
def test_a_current_count_that_is_no_count_differs(
    count: bytes, opened: SnapshotFile, replay_one: Replaying
) -> None:
    body = re.sub(
        rb'"currentPlayers":[0-9]+',
        b'"currentPlayers":' + count,
        answer(opened, ["a", "b"], "7d"),
        count=1,
    )

    (difference,) = replay_one(record_comparison(["a", "b"], "7d", body)).differences
    assert (difference.pointer, difference.class_) == ("/data/0/currentPlayers", "value")


def test_a_given_plan_replaces_that_of_the_caller(access: Access, replay_one: Replaying) -> None:
    plan = access.get_plan("details")
    for exchange in (ANY, with_key(b"unknown-key"), replace(SERVED, plan="starter")):
        replayed = replay_one(exchange, access=access, plan=plan)
        assert replayed.answer
        assert replayed.answer.status == 403
    rejected = replace(ANY, response=RecordedResponse(401, b"{}"))
    assert replay_one(rejected, access=access, plan=plan).class_ == "notReproducible"


def test_a_key_is_hidden_before_a_value_is_cut(opened: SnapshotFile, replay_one: Replaying) -> None:
    key = "own/secret~0123456789"
    long = f"{'x' * 190}{key}{'x' * 20_000}"
    member = f'"{key}":"{long}","uptime":'.encode()
    named = answer(opened, ["a", "b"], "7d").replace(b'"uptime":', member, 1)
    (of_body,), (of_member,) = (
        replay_one(
            record_comparison(["a", "b"], "7d", body, headers=[(b"x-gateway-key", key.encode())])
        ).differences
        for body in (long.encode(), named)
    )

    assert (of_body.pointer, of_member.pointer) == ("", "/data/0/\u2026")
    shown = f"{'x' * 190}\u2026{'x' * 9}\u2026"
    assert (of_body.recorded, of_member.recorded) == (shown, shown)


HOUR = DAY // 24
MINUTE = HOUR // 60
LATE = [format_instant(AS_OF + 7 * MINUTE), format_instant(AS_OF - HOUR)]
NAMES = ("a", "b", "c")
Row = tuple[str, int, int]


def replay_all(path: str, exchanges: list[Exchange], **how: Any) -> tuple[ReplayedExchange, ...]:
    with closing(open_file(path)) as snapshot:
        return replay(snapshot, exchanges, ReplaySettings(**how)).exchanges


YEAR = 365 * DAY
INSTANTS = st.integers(-60, 0).map(lambda hours: AS_OF + hours * HOUR) | st.integers(
    AS_OF - 3 * DAY, AS_OF
)
OBSERVATIONS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), INSTANTS | INSTANTS.map(lambda at: at - YEAR)),
    st.integers(0, 9),
    max_size=40,
)


def find_true_intervals(
    snapshot: SnapshotFile, rows: list[Row], range: Range, recorded: bytes, last: int
) -> list[tuple[int, int]]:
    """Find when an answer was true in two days, by asking at every instant that can change it."""
    within = 2 * DAY
    changes = {at + shift for _, at, _ in rows for shift in (0, DAYS[range] * DAY)}
    starts = sorted({last - within, *(at for at in changes if last - within < at <= last)})
    found: list[tuple[int, int]] = []
    for start, end in zip(starts, [*(at - 1 for at in starts[1:]), last], strict=True):
        if answer(snapshot, list(NAMES), range, start) == recorded:
            is_adjacent = found and found[-1][1] == start - 1
            found.append((found.pop()[0] if is_adjacent else start, end))
    return found


@settings(max_examples=few_examples())
@given(
    observations=OBSERVATIONS,
    range=st.sampled_from(["24h", "7d", "1y"]),
    at=INSTANTS,
    age=st.integers(0, DAY) | st.just(0),
)
def test_an_answer_matches_at_its_instant_and_a_search_finds_it(
    observations: dict[tuple[str, int], int], range: Range, at: int, age: int
) -> None:
    rows = [(name, instant, players) for (name, instant), players in observations.items()]
    with tempfile.TemporaryDirectory() as directory:
        records = [server(name, players={"current": 3}) for name in NAMES]
        path = str(build_in(Path(directory), records, [*rows, ("a", AS_OF - 4 * DAY, 1)]))
        with closing(open_file(path)) as snapshot:
            body = answer(snapshot, list(NAMES), range, at)
            rows.append(("a", AS_OF - 4 * DAY, 1))
            expected = find_true_intervals(snapshot, rows, range, body, at + age)
        exchange = record_comparison(NAMES, range, body, as_of=at, requested_at=at + age)
        (recorded,) = replay_all(path, [exchange])
        (searched,) = replay_all(path, [exchange], at="search")

    assert (recorded.class_, recorded.as_of, recorded.differences) == ("match", at, ())
    assert [(each.from_, each.to) for each in searched.true_during or ()] == expected
    assert any(start <= at <= end for start, end in expected)
    assert (searched.class_, searched.as_of, searched.differences) == ("match", expected[-1][1], ())


def list_rows() -> list[Row]:
    """Return three servers' counts of 40 days, every 6 hours; each instant has another value."""
    times = range(AS_OF - 40 * DAY, AS_OF + 1, DAY // 4)
    return [(name, at, (at // HOUR * 7 + ord(name)) % 101 + 50) for at in times for name in NAMES]


REQUESTS: Mapping[tuple[str, Range], str | None] = {
    ("ab", "24h"): None,
    ("ba", "7d"): "/data/1/",
    ("bc", "7d"): None,
    ("cab", "30d"): "/data/1/",
    ("bc", "1y"): None,
}
"""Servers and a range, and where the answer has the result of a, unless its window is too short."""


def test_an_altered_observation_shows_in_exactly_the_answers_that_used_it(build: Build) -> None:
    records = [server(name, players={"current": 3}) for name in NAMES]
    rows = list_rows()
    altered_row = ("a", AS_OF - 3 * DAY)
    path = build(records, rows)
    altered = build(
        records, [(name, at, 999 if (name, at) == altered_row else was) for name, at, was in rows]
    )
    with closing(open_file(path)) as snapshot:
        recorded = [
            record_comparison(names, name, answer(snapshot, [*names], name), as_of=AS_OF)
            for names, name in REQUESTS
        ]
        recorded.append(record_get("a", get_detail(snapshot), as_of=AS_OF))

    assert {each.class_ for each in replay_all(path, recorded)} == {"match"}
    *compared, detail = replay_all(altered, recorded)
    assert detail.class_ == "match"
    for each, place in zip(compared, REQUESTS.values(), strict=True):
        pointers = {difference.pointer for difference in each.differences}
        certain = {f"{place}averagePlayers", f"{place}peakPlayers"} if place else set()
        assert each.class_ == ("differs" if place else "match")
        assert certain <= pointers <= certain | {f"{place}medianPlayers"}


def test_a_search_tells_which_results_were_true(
    opened: SnapshotFile, replay_one: Replaying
) -> None:
    body = answer(opened, ["a", "b"], "7d")
    later, wrong = json.loads(body), json.loads(body)
    later["data"][0]["currentPlayers"] += 1
    wrong["data"][1]["peakPlayers"] += 1

    def search(body: bytes) -> ReplayedExchange:
        return replay_one(record_comparison(["a", "b"], "7d", body), at="search")

    found, partly = (search(json.dumps(data).encode()) for data in (later, wrong))
    never = search(body.replace(b'"range":"7d","data"', b'"range":"30d","data"'))
    assert (found.class_, {each.class_ for each in found.differences}) == ("match", {"current"})
    assert [each.server_id for each in found.servers or ()] == ["a", "b"]
    assert (
        (never.class_, never.true_during) == (partly.class_, partly.true_during) == ("differs", ())
    )
    for each, expected in ((found, [True, True]), (partly, [True, False]), (never, [False, False])):
        assert [bool(one.true_during) for one in each.servers or ()] == expected


@pytest.mark.parametrize("error", [-7 * MINUTE, 7 * MINUTE, 700])
def test_the_date_of_a_response_corrects_the_clock_of_a_client(
    error: int, opened: SnapshotFile, replay_one: Replaying
) -> None:
    at = AS_OF - DAY + 300  # an observation was made 300 ms before
    body = answer(opened, ["a", "b"], "24h", at)
    exchange = record_comparison(
        ["a", "b"], "24h", body, requested_at=at + error, answered_at=at - 300
    )

    replayed = replay_one(exchange)
    assert (replayed.class_, replayed.requested_at) == ("match", at + error)
    assert (replayed.clock, replayed.as_of) == (
        ("client", at + error) if error == 700 else ("service", at - 300)
    )


def test_a_search_finds_what_was_true_after_a_slow_clock(
    opened: SnapshotFile, replay_one: Replaying
) -> None:
    right = AS_OF - DAY
    exchange = record_comparison(["a", "b"], "24h", answer(opened, ["a", "b"], "24h", right))

    slow = replay_one(replace(exchange, requested_at=right - 7 * MINUTE), at="search")
    assert (slow.class_, slow.as_of, slow.searched_around) == ("match", right, right - 7 * MINUTE)
    assert find_nearest(slow.true_during or (), right - 7 * MINUTE)[1] == -7 * MINUTE
    late = replay_one(replace(exchange, requested_at=right - 61 * MINUTE), at="search")
    assert (late.class_, late.true_during) == ("differs", ())
    # The service's own as-of time is no guess.
    sure = replay_one(replace(exchange, as_of=right - 7 * MINUTE), at="search")
    assert (sure.class_, sure.searched and sure.searched.to) == ("differs", right - 7 * MINUTE)
    assert replay_one(exchange, at="search").searched_around is None


def test_a_table_tells_whose_clock_it_used(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    body = lines[0]["response"]["body"].replace('"peakPlayers":', '"peakPlayers":9')
    late = lines[0] | {"response": {"status": 200, "body": body}}
    har = json.loads(build_har(*(convert_line(late | {"requestedAt": at}) for at in LATE)))
    for entry, date in zip(
        har["log"]["entries"], (["Sun, 01 Mar 2026 12:00:00 GMT"], []), strict=True
    ):
        entry["response"]["headers"] = [{"name": "Date", "value": each} for each in date]
    path = tmp_path / "x.har"
    path.write_text(json.dumps(har), encoding="utf-8")

    shown = cli("replay", str(path), "--table").stdout.decode()
    assert (
        "12:00:00 UTC by the Date of the response; the clock of the client was 7 minutes ahead"
        in shown
    )
    assert "11:00:00 UTC by the clock of the client" in shown
    never = cli("replay", str(path), "--at", "search", "--table").stdout.decode()
    assert "no match within 2 days before and 1 hour after the request" in " ".join(never.split())


def test_a_record_of_another_time_is_not_comparable(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The verdict is about what the snapshot can judge."""
    detail = json.loads(lines[1]["response"]["body"])
    detail["data"] |= {"hostname": "Old", "updatedAt": format_instant(AS_OF - DAY)}

    def replay_detail(data: dict[str, Any], at: int, *options: str) -> tuple[int, list[Any]]:
        line = describe_exchange(SERVER, json.dumps({"data": data}), requestedAt=format_instant(at))
        name = write_ndjson(tmp_path / "x.ndjson", [line])
        ran = cli("replay", name, *options)
        found = ran.json["exchanges"][0]["differences"]
        return ran.exit_code, sorted((one["pointer"], one["class"]) for one in found)

    apart = [("/data/hostname", "notComparable"), ("/data/updatedAt", "notComparable")]
    values = [(pointer, "value") for pointer, _ in apart]
    assert replay_detail(detail["data"], AS_OF - DAY) == (0, apart)
    assert replay_detail(detail["data"], AS_OF - DAY, "--at", "search") == (0, apart)
    assert replay_detail(detail["data"], AS_OF - DAY, "--at", "snapshot") == (5, values)
    assert replay_detail(detail["data"], AS_OF) == (5, values)
    other = detail["data"] | {"cfxId": "x-other", "region": 7}
    assert replay_detail(other, AS_OF - DAY) == (
        5,
        sorted([*apart, ("/data/cfxId", "value"), ("/data/region", "value")]),
    )


def test_what_a_bundle_redacted_is_not_comparable(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    bundle = str(tmp_path / "case.db")
    arguments = ("a", "b", "--range=7d", "--redact", "-o", bundle)
    assert cli("snapshot", "bundle", *arguments).exit_code == 0
    name = write_ndjson(tmp_path / "x.ndjson", lines)

    ran = cli("replay", name, "-s", bundle)
    shown = cli("replay", name, "-s", bundle, "--table").stdout.decode()
    assert (ran.exit_code, ran.json["counts"]["match"]) == (0, 2)
    classes = {one["class"] for one in ran.json["exchanges"][1]["differences"]}
    assert classes == {"notComparable"}
    assert "matches, apart from what can't be compared" in shown
    assert "not comparable: metadata from another time, or redacted" in shown


@pytest.mark.parametrize("redact", [[], ["--redact"]])
def test_a_bundle_for_a_recording_gives_its_verdict_again(
    redact: list[str], cli: Cli, lines: list[dict[str, Any]], here: Path
) -> None:
    """The snapshot ends ten days after the request, so the range alone would not cover it."""
    at = str(AS_OF - 10 * DAY)
    body = cli("compare", "a", "cfxId:x-b", "--range", "7d", "--at", at).stdout.decode().strip()
    right = describe_exchange(COMPARE, body, body=BODY, requestedAt=format_instant(int(at)))
    wrong = json.loads(json.dumps(right))
    wrong["response"]["body"] = body.replace('"sampleCount":', '"sampleCount":9')
    name = write_ndjson(here / "x.ndjson", [right, wrong, lines[1]])

    ran = cli("snapshot", "bundle", "--for", name, *redact, "-o", "case.db")
    assert ran.exit_code == 0, ran.stderr
    case = cli("snapshot", "info", "case.db").json["case"]
    assert case == {
        "verdict": "1 of 3 recorded responses was never right within 2 days: sampleCount 90 where"
        " the data give 0",
        "command": "srvstat replay x.ndjson --snapshot case.db",
        "explanation": "srvstat compare id:a cfxId:x-b --range 7d --at"
        f" {format_instant(int(at))} --explain --snapshot case.db",
    }
    words = shlex.split(case["explanation"])[1:]
    of_bundle, of_whole = (cli(*each, "--json").json["servers"] for each in (words, words[:-2]))
    assert [one | {"hostname": ""} for one in of_bundle] == [
        one | {"hostname": ""} for one in of_whole
    ]
    again, whole = cli(*shlex.split(case["command"])[1:]), cli("replay", name)
    assert again.exit_code == whole.exit_code == 5
    for one, other in zip(again.json["exchanges"][:2], whole.json["exchanges"], strict=False):
        assert (one["class"], one["differences"]) == (other["class"], other["differences"])
    searched = cli("replay", name, "--at", "search", "-s", "case.db").json["exchanges"][0]
    assert searched["searched"]["from"] == format_instant(int(at) - 2 * DAY)
    shown = cli("snapshot", "info", "case.db", "--table").stdout.decode()
    assert "1 of 3 recorded responses was never right" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("target", "exit_code", "reason"),
    [
        ("/collect", 6, "no request of the recording is one of the API"),
        # A bundle can't tell that a server is unknown.
        ("/gateway/v1/servers/unknown", 44, "no server with id unknown"),
    ],
)
@pytest.mark.usefixtures("snapshot")
def test_a_bundle_refuses_a_recording_that_it_cannot_cover(
    target: str, exit_code: int, reason: str, cli: Cli, here: Path
) -> None:
    name = write_ndjson(here / "x.ndjson", [describe_exchange(target, "{}", status=404)])

    ran = cli("snapshot", "bundle", "--for", name, "-o", "case.db")
    assert ran.exit_code == exit_code
    assert reason in ran.stderr
    assert not (here / "case.db").exists()
    mixed = cli("snapshot", "bundle", "a", "--for", name, "-o", "case.db")
    assert (mixed.exit_code, "--for can't be combined with" in mixed.stderr) == (2, True)


def test_exchanges_are_chosen_by_request_server_and_class(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    wrong = lines[0] | {"response": {"status": 404, "body": "{}"}}
    har = json.loads(build_har(*map(convert_line, [*lines, wrong])))
    for number, entry in enumerate(har["log"]["entries"]):
        entry["response"]["headers"] = [{"name": "x-request-id", "value": f"id-{number}"}]
    path = tmp_path / "x.har"
    path.write_text(json.dumps(har), encoding="utf-8")

    def choose(*options: str) -> tuple[int, list[str], int]:
        ran = cli("replay", str(path), *options)
        ids = [one["requestId"] for one in ran.json["exchanges"]]
        return ran.exit_code, ids, sum(ran.json["counts"].values())

    assert choose() == (5, ["id-0", "id-1", "id-2"], 3)
    assert choose("--request-id", "id-1") == (0, ["id-1"], 1)
    assert choose("--server", "x-b") == choose("--server", "cfxId:x-b") == (5, ["id-0", "id-2"], 2)
    assert choose("--only", "differs") == (5, ["id-2"], 3)
    assert choose("--only", "match", "--server", "a") == (5, ["id-0", "id-1"], 3)
    for options in (["--request-id", "id-9"], ["--server", "c"]):
        ran = cli("replay", str(path), *options)
        assert (ran.exit_code, f"{options[0]}: no request " in ran.stderr) == (2, True)


def test_a_prefix_is_found_or_offered(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    first, second = (json.loads(json.dumps(line)) for line in lines)
    first["request"]["path"] = f"/api{COMPARE}"
    second["request"]["path"] = f"/v2/stats{SERVER}"
    name = write_ndjson(tmp_path / "x.ndjson", [first, second, *lines])

    def list_classes(*options: str) -> list[str]:
        return [one["class"] for one in cli("replay", name, *options).json["exchanges"]]

    assert list_classes() == ["match", "foreign", "match", "match"]
    assert list_classes("--prefix", "\udcff") == ["foreign", "foreign", "match", "match"]
    assert list_classes("--prefix", "v2/stats/") == ["foreign", "match", "match", "match"]
    shown = cli("replay", name, "--table").stdout.decode()
    assert "POST /api/gateway/v1/compare 7d  matches" in shown
    assert "another API; add --prefix /v2/stats" in shown


def test_a_recording_without_a_request_of_the_api_exits_with_5(
    cli: Cli, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    def replay_path(path: str, *options: str) -> tuple[int, str]:
        line = lines[0] | {"request": lines[0]["request"] | {"path": path}}
        name = write_ndjson(tmp_path / "x.ndjson", [line, line])
        ran = cli("replay", name, *options)
        return ran.exit_code, ran.stderr

    error = "error: no request to this API"
    paths = "[PREFIX]/gateway/v1/compare or [PREFIX]/gateway/v1/servers/ID"
    assert replay_path("/collect") == (5, f"{error}\n")
    assert replay_path("https://a.example/api/compare?key=x") == (
        5,
        f"{error}; the nearest is POST a.example/api/compare; a path of the API is {paths}\n",
    )
    assert replay_path(f"https://a.example/api{COMPARE}", "--prefix", "/v2") == (
        5,
        f"{error}; the nearest is POST a.example/api{COMPARE}: add --prefix /api\n",
    )


KEYS = {
    place: f"{place}-secret-0123456789"
    for place in ("header", "cookie", "authorization", "registered", "parameter", "foreign")
}
GENERATED = "srvstat_" + "g" * 43
TARGETS = (
    *(f"/gateway/v1/servers/{key}" for key in (GENERATED, KEYS["header"], KEYS["registered"])),
    f"{SERVER}?by={KEYS['header']}&api_key={KEYS['parameter']}",
    f"{SERVER}?by=%73{GENERATED[1:]}",
    f"/login?access_token={KEYS['foreign']}",
    f"/gateway/v2/{KEYS['header']}",
    f"/{'a' * 990}/{KEYS['header']}",
    f"{SERVER}?{'?' * 10_000}",
)


def write_recordings_with_keys(directory: Path) -> list[str]:
    """Write recordings with keys in every part of a request and in answers; return their names."""
    headers = {
        "x-gateway-key": KEYS["header"],
        "cookie": f"session={KEYS['cookie']}",
        "authorization": f"Bearer {KEYS['authorization']}",
    }
    sent = " ".join((GENERATED, KEYS["header"], KEYS["registered"]))
    echo = json.dumps({"error": {sent: sent}, "list": [sent]})
    bodies = (sent, BODY.replace('"a"', f'"{GENERATED}"'), f'{{"{sent}":1}}', BODY)
    requests = [
        *((target, None, 200) for target in TARGETS),
        *((COMPARE, body, status) for status in (200, 400) for body in bodies),
    ]
    exchanges = [
        describe_exchange(target, echo, body=body, status=status, headers=headers, requestedAt=NOW)
        for target, body, status in requests
    ]
    commands = directory / "mail.txt"
    commands.write_text(
        "".join(
            f"curl '{each}' -H 'X-Gateway-Key: {KEYS['header']}' -b 'k={KEYS['cookie']}'"
            f" -H 'Authorization: Bearer {KEYS['authorization']}' -d '{sent}'\n"
            for each in TARGETS
        ),
        encoding="utf-8",
    )
    return [
        write_har(directory / "x.har", exchanges),
        write_ndjson(directory / "x.ndjson", exchanges),
        str(commands),
    ]


@pytest.mark.usefixtures("snapshot")
def test_no_key_is_shown(cli: Cli, tmp_path: Path) -> None:
    access = ["--access", write_access(tmp_path, KEYS["registered"].encode())]
    names = write_recordings_with_keys(tmp_path)
    hidden = {GENERATED, GENERATED[1:], *KEYS.values()}
    for options, unknown in (
        (access, set[str]()),
        ([*access, "--at", "search", "--table"], set[str]()),
        (["--json"], {KEYS["registered"]}),
        (["--table"], {KEYS["registered"]}),
    ):
        ran = cli("replay", *names, *options)
        shown = ran.stdout.decode() + ran.stderr
        assert ran.exit_code == 5
        assert "\u2026" in shown
        assert {key for key in hidden if key in shown} == unknown


SECRET_URL = json.dumps('https://me:hidden@maps.example/tile?k="hidden#hidden')


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f'{{"document":"{GENERATED}"}}', 'document: "…" is not one of recording'),
        (f'{{"{KEYS["registered"]}":1,"{KEYS["registered"]}":2}}', 'the key "…" is repeated'),
        (
            f'{{"document":{SECRET_URL}}}',
            'document: "https://maps.example/tile" is not one of recording',
        ),
        (f"{{{SECRET_URL}:1,{SECRET_URL}:2}}", 'the key "https://maps.example/tile" is repeated'),
        (
            f'{{"request":{{"method":"GET","path":"/",{SECRET_URL}:1}}}}',
            'request["https://maps.example/tile"]: unknown property',
        ),
    ],
)
def test_the_reason_of_an_unreadable_line_shows_no_secret(
    line: str, reason: str, cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "x.ndjson"
    path.write_text(f"{line}\n", encoding="utf-8")
    access = write_access(tmp_path, KEYS["registered"].encode())

    (exchange,) = cli("replay", str(path), "--access", access).json["exchanges"]

    assert exchange["reason"] == reason


@pytest.mark.usefixtures("snapshot")
def test_of_a_foreign_request_only_host_and_path_are_shown(cli: Cli, tmp_path: Path) -> None:
    urls = {
        "https://me:hidden@maps.example:8443/tile?k=hidden#hidden": "maps.example:8443/tile",
        "http://[::1]/login?code=hidden&state=hidden": "[::1]/login",
        "https://api.example/gateway/v1/servers/a/x?by=hidden": "api.example"
        "/gateway/v1/servers/a/x",
        "https://cdn.example?hidden": "cdn.example/",
        "https://me:hidden/": "/",  # no valid port, so perhaps a password
        "https://me:hidden/hidden@maps.example/p?k=hidden": "/…@maps.example/p",
        "https://me:12/hidden@maps.example/p": "/…@maps.example/p",  # the port is a password, too
        "https://cdn.example/vue@3/x.js": "cdn.example/…@3/x.js",
        "//me:hidden@maps.example/p?k=hidden": "/…@maps.example/p",
        "wss://chat.example/live?token=hidden": "wss:",
    }
    unusual = {
        " https://me:hidden@maps.example/p": "/…@maps.example/p",  # which curl refuses
        "hidden@maps.example/p": "/…@maps.example/p",  # which curl reads
        "hidden:x@maps.example/p": "/…@maps.example/p",
    }
    urls_of_files = {**urls, **unusual}
    exchanges = [describe_exchange(url, "{}", requestedAt=NOW) for url in urls_of_files]
    exchanges.append(describe_exchange("/implicit#access_token=hidden", "{}", requestedAt=NOW))
    har = tmp_path / "x.har"
    har.write_bytes(build_har(*map(build_entry, urls_of_files)))
    preflight = "https://api.example/gateway/v1/compare?hidden"
    commands = tmp_path / "mail.txt"
    commands.write_text(
        "".join(f"curl '{url}'\n" for url in urls)
        + f"curl -u me:hidden -G -d key=hidden maps.example/tile\ncurl -X OPTIONS {preflight}\n"
        "curl hidden:x@maps.example/p\ncurl -X 'GET?key=hidden' maps.example/p\n",
        encoding="utf-8",
    )
    names = (write_ndjson(tmp_path / "x.ndjson", exchanges), str(har), str(commands))

    ran = cli("replay", *names, "--json")

    exchanges = ran.json["exchanges"]
    assert {each["class"] for each in exchanges} == {"foreign"}
    assert [each["path"] for each in exchanges] == [
        *(*urls_of_files.values(), "/implicit"),
        *urls_of_files.values(),
        *(*urls.values(), "maps.example/tile", "api.example/gateway/v1/compare"),
        *("maps.example/p", "maps.example/p"),
    ]
    assert exchanges[-1]["method"] == "GET…"
    for options in (["--json"], ["--table"], ["--table", "--explain"], ["--at", "search"]):
        shown = cli("replay", *names, *options)
        assert "hidden" not in shown.stdout.decode() + shown.stderr
