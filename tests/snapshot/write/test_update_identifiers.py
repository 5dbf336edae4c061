"""Update snapshots whose identifiers become servers, or have slugs."""

import json
from pathlib import Path

import pytest

from conftest import Cli, csv, ndjson, server
from support.snapshots import parse_summary

GAME = ["--game", "game_a"]
SLUGS = ["--ids", "slug"]
BUILD = ["snapshot", "build", "--overwrite", "--observations", "old.csv"]
UPDATE = ["snapshot", "update", "out.db"]
NEW = ["--observations", "new.csv"]
SERVERS = ["--servers", "servers.ndjson"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of its own."""
    monkeypatch.chdir(tmp_path)


def write(old: list[str], new: list[str]) -> None:
    """Write an observation of each identifier in two files."""
    Path("old.csv").write_bytes(csv([(name, 5, 1) for name in old]))
    Path("new.csv").write_bytes(csv([(name, 6, 2) for name in new]))


def list_servers(cli: Cli) -> list[str]:
    return [one["id"] for one in cli("servers", "-s", "out.db", "--json").json["servers"]]


def test_a_withheld_server_does_not_become_one_again(cli: Cli) -> None:
    write(["a", "hidden"], ["a", "b", "hidden"])
    drafted = cli("snapshot", "draft-servers", "--observations", "old.csv", *GAME).stdout
    records = [json.loads(line) for line in drafted.splitlines()]
    withheld = records[1] | {"publishable": False}

    Path("servers.ndjson").write_bytes(ndjson([records[0], withheld]))
    assert cli(*BUILD, "out.db", *SERVERS).exit_code == 0
    assert cli(*UPDATE, *NEW, *GAME).exit_code == 0
    assert list_servers(cli) == ["a"]

    assert cli(*BUILD, "out.db", *GAME).exit_code == 0
    Path("servers.ndjson").write_bytes(ndjson([withheld]))
    assert cli(*UPDATE, *SERVERS).exit_code == 0
    assert cli(*UPDATE, *NEW, *GAME).exit_code == 0
    assert list_servers(cli) == ["a"]


def test_a_server_with_a_record_needs_no_observation(cli: Cli) -> None:
    write(["a"], ["a", "b"])
    Path("servers.ndjson").write_bytes(ndjson([server("quiet")]))
    assert cli(*BUILD, "out.db", *GAME).exit_code == 0
    assert cli(*UPDATE, *SERVERS).exit_code == 0

    ran = cli(*UPDATE, *NEW, *GAME)

    assert parse_summary(ran)["servers"] == "3 (1 added)"
    assert list_servers(cli) == ["a", "b", "quiet"]


def test_the_id_is_no_second_identifier_of_a_server_found_by_its_slug(cli: Cli) -> None:
    write(["MAIN_LOBBY"], ["main-lobby"])
    assert cli(*BUILD, "out.db", *GAME, *SLUGS).exit_code == 0

    ran = cli(*UPDATE, *NEW, *SLUGS)
    built = cli(*BUILD, "all.db", *NEW, *GAME, *SLUGS)

    assert (ran.exit_code, ran.stderr) == (built.exit_code, built.stderr) == (6, ran.stderr)
    Path("servers.ndjson").write_bytes(ndjson([server("main-lobby", sourceId="MAIN_LOBBY")]))
    assert cli(*UPDATE, *NEW, *SLUGS, *SERVERS).exit_code == 0
