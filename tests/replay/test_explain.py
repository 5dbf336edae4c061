"""`--explain`: every figure, recomputed from random rows by the definitions alone."""

import json
import tempfile
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, ROOT, Build, Cli, build_in, few_examples, server
from replay.explained import explain_naively, find_contradictions, format_naively
from replay.recorded import describe_exchange, write_ndjson
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.windows import DAYS, Range, Window
from srvstat.operations import answers as operations
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.observations import WindowFigures
from srvstat.support.explain import explain
from support.snapshots import forge

RANGES: list[Range] = list(DAYS)
EDGES = [AS_OF - days * DAY + offset for days in (0, *DAYS.values()) for offset in (-1, 0, 1)]
"""The instants at, just before and just after the edges of the windows that end at AS_OF."""

Rows = dict[int, int]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Draw observations: none, one, regular polling with gaps, and the edges of windows."""
    interval = draw(st.sampled_from([1, 2, 7, 60_000, 3_600_000, 3_600_001, DAY]))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 4, 10]), max_size=40))
    end = draw(st.sampled_from(EDGES[:6]))
    polled = [end - interval * step for step in accumulate(steps)]
    edges = draw(st.lists(st.sampled_from([0, 1, *EDGES]), max_size=4))
    values = draw(
        st.sampled_from([st.integers(0, 3), st.integers(0, 900), st.integers(0, 2**53 - 1)])
    )
    return {at: draw(values) for at in [*polled, *edges] if 0 <= at <= AS_OF}


class Case(NamedTuple):
    """The rows of each server, and the questions: a range and an as-of time."""

    servers: dict[str, Rows]
    questions: list[tuple[Range, int | None]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    servers = dict(zip("abc", draw(st.lists(rows(), min_size=3, max_size=3)), strict=True))
    servers["c"][AS_OF] = 7  # so that the snapshot is as of AS_OF
    seen = {at + offset for of_one in servers.values() for at in of_one for offset in (0, -1)}
    ats = st.none() | st.sampled_from([AS_OF + DAY, *sorted(at for at in seen if at >= 0)])
    questions = st.tuples(st.sampled_from(RANGES), ats)
    return Case(servers, draw(st.lists(questions, min_size=4, max_size=4)))


@settings(max_examples=few_examples())
@given(case=cases())
def test_every_figure_follows_from_the_rows(case: Case) -> None:
    records = [server("a", players={"current": 99}), server("b"), server("c")]
    observations = [
        (name, at, n) for name, of_one in case.servers.items() for at, n in of_one.items()
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), records, observations))
        with closing(open_file(path)) as snapshot:
            for question in case.questions:
                check_comparison(snapshot, case.servers, *question)
            for name in "abc":
                check_server(snapshot, case.servers[name], name, case.questions[0][1])


@pytest.mark.parametrize(
    ("instants", "end", "expected"),
    [
        ([0, 33, 66], 100, False),  # 101 instead of 100: exactly 1 percent
        ([0, 33, 65], 100, True),
        ([0, 66, 132], 134, False),  # the window ends soon after the last observation
        ([0, 33, 66], 132, True),  # a gap after the last observation
    ],
)
def test_intervals_are_uneven_if_they_change_the_mean_by_more_than_a_hundredth(
    instants: list[int], end: int, expected: bool
) -> None:
    observations = Observations(np.array(instants), np.array([0, 100, 200]))

    assert WindowFigures(observations, Window(-1, end)).has_uneven_intervals == expected


def check_comparison(
    snapshot: SnapshotFile, servers: dict[str, Rows], range: Range, at: int | None
) -> None:
    references = tuple(ServerReference(identifier=name, by="id") for name in servers)
    request = CompareRequest(servers=references, range=range)
    body = operations.compare(snapshot, request, at=at).to_json()
    shown = explain(snapshot, request, at).to_json()
    end = AS_OF if at is None else at

    explained = read_explanation(shown, body, end)
    assert explained["range"] == range
    results = json.loads(body)["data"]
    for found, result, of_one in zip(explained["servers"], results, servers.values(), strict=True):
        naive = explain_naively(of_one.items(), end - DAYS[range] * DAY, end)
        assert found == found | naive
        assert find_contradictions(found, result) == []
        check_current(found, of_one)


def check_server(snapshot: SnapshotFile, of_one: Rows, name: str, at: int | None) -> None:
    reference = ServerReference(identifier=f"x-{name}", by="cfxId")
    body = operations.get_server(snapshot, reference).to_json()
    end = AS_OF if at is None else at

    explained = read_explanation(explain(snapshot, reference, at).to_json(), body, end)
    (found,) = explained["servers"]
    assert explained["range"] is None
    assert found == found | explain_naively(of_one.items(), None, end)
    check_current(found, of_one)


def read_explanation(shown: bytes, body: bytes, end: int) -> Any:
    """Check that an explanation ends with the bytes of the answer, and return it."""
    assert shown.endswith(b',"answer":' + body + b"}")
    explained = json.loads(shown)
    assert explained["asOf"] == format_naively(end)
    assert explained["snapshotAsOf"] == format_naively(AS_OF)
    return explained


def check_current(found: dict[str, Any], of_one: Rows) -> None:
    instants = sorted(of_one)
    last = instants[-1] if instants else None
    is_fallback = found["serverId"] != "a"
    fallback = 0 if last is None else of_one[last]

    assert found["currentIsFallback"] == is_fallback
    assert found["currentPlayers"] == (fallback if is_fallback else 99)
    assert found["lastInSnapshot"] == (
        None if last is None else {"observedAt": format_naively(last), "players": of_one[last]}
    )
    assert found["firstInSnapshotAt"] == (format_naively(instants[0]) if instants else None)


PLAN = ["--plan", "starter", "--access", str(ROOT / "fixtures" / "access.toml")]
HOUR = DAY // 24


def build_hours(build: Build) -> str:
    """Build a snapshot of three days of server `a` without its own current count, and of `b`."""
    times = range(AS_OF - 3 * DAY, AS_OF + 1, 6 * HOUR)
    return build([server("a"), server("b")], [("a", at, at // HOUR % 50) for at in times])


@pytest.mark.parametrize("command", [["get", "a"], ["compare", "a", "b", "--range=24h"]])
def test_an_explanation_matches_its_schema_and_ends_with_the_answer(
    cli: Cli, build: Build, command: list[str]
) -> None:
    path = build_hours(build)
    answer = cli(*command, "-s", path).stdout.rstrip(b"\n")
    schema = json.loads(cli("schema", "explanation").stdout)
    ran = cli(*command, "-s", path, "--explain")

    jsonschema_rs.Draft202012Validator(schema).validate(ran.json)
    assert ran.stdout == cli(*command, "-s", path, "--explain", "--json").stdout
    assert ran.stdout.endswith(b',"answer":' + answer + b"}\n")
    assert (ran.exit_code, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (["get", "a/b"], 40),
        (["get", "id:x-a"], 44),
        (["compare", "a", "unknown"], 44),
        (["compare", "a", "b", "--range", "1y", *PLAN], 43),
    ],
)
def test_errors_are_those_without_the_option(
    cli: Cli, build: Build, command: list[str], exit_code: int
) -> None:
    path = build_hours(build)

    ran = cli(*command, "-s", path, "--explain")

    assert ran == cli(*command, "-s", path)
    assert ran.exit_code == exit_code


@pytest.mark.parametrize("command", [["get", "a"], ["compare", "a", "b", "--range=7d"]])
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE servers SET observation_count = 12 WHERE id = 'a'",
        "UPDATE servers SET last_players = 49 WHERE id = 'a'",
        "UPDATE servers SET last_observed_at = last_observed_at - 1 WHERE id = 'a'",
        "UPDATE servers SET first_observed_at = 253402300800000 WHERE id = 'a'",
        "UPDATE servers SET players_current = 49 WHERE id = 'a'",
        "UPDATE blocks SET times = zeroblob(length(times))",
        "UPDATE blocks SET players = zeroblob(observation_count)",
    ],
)
def test_figures_that_contradict_the_observations_are_damage(
    cli: Cli, build: Build, command: list[str], sql: str
) -> None:
    path = build_hours(build)
    forge(path, sql)

    ran = cli(*command, "-s", path, "--explain")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "damaged (" in ran.stderr


def test_an_answer_before_a_bundle_is_replayed_without_an_explanation(
    cli: Cli, build: Build, tmp_path: Path
) -> None:
    whole, part = build_hours(build), str(tmp_path / "part.db")
    cli("snapshot", "bundle", "a", "-s", whole, "--range=24h", "-o", part)
    line = describe_exchange("/gateway/v1/servers/a", "{}")
    name = write_ndjson(tmp_path / "x.ndjson", [line])
    command = ["replay", name, "-s", part, "--explain", "--at"]
    before = cli(*command, str(AS_OF - 2 * DAY))
    within = cli(*command, str(AS_OF))

    for ran, is_explained in ((before, False), (within, True)):
        (exchange,) = ran.json["exchanges"]
        assert (ran.exit_code, exchange["class"]) == (5, "differs")
        assert (exchange["explanation"] is not None) == is_explained


def test_an_explanation_before_a_bundle_is_refused(cli: Cli, build: Build, tmp_path: Path) -> None:
    whole, part = build_hours(build), str(tmp_path / "part.db")
    assert (
        cli("snapshot", "bundle", "a", "b", "-s", whole, "--range=24h", "-o", part).exit_code == 0
    )
    at = str(AS_OF - 3 * DAY // 2 - 1)  # the last instant before the bundle

    assert cli("get", "a", "-s", part, "--at", at, "--explain").exit_code == 3
    assert cli("compare", "a", "b", "-s", part, "--explain").exit_code == 3
    explained = cli("get", "a", "-s", part, "--explain").json
    assert explained["coveredFrom"] == "2026-02-28T00:00:00.000Z"

    explained, in_whole = (
        cli("compare", "a", "b", "--range=24h", "-s", path, "--explain").json
        for path in (part, whole)
    )
    for each in (*explained["servers"], *in_whole["servers"]):
        del each["firstInSnapshotAt"]
    assert explained["servers"] == in_whole["servers"]
    assert explained["answer"] == in_whole["answer"]
