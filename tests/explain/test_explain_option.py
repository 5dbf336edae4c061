"""`get --explain` and `compare --explain`: their errors, their forms and damaged snapshots."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from conftest import AS_OF, DAY, ROOT, Build, Cli, server
from replay.recording_files import describe_exchange, write_ndjson
from support.snapshots import forge

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
