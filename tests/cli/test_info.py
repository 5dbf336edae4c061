"""`snapshot info` and `snapshot verify`: the snapshot they read, and the list of its servers."""

import sqlite3
from contextlib import closing

import pytest

from conftest import AS_OF, DAY, Build, Cli, server


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("option", ["-s", "--snapshot"])
def test_an_option_names_the_snapshot(
    cli: Cli, build: Build, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "elsewhere.db")

    by_option = cli("snapshot", command, option, path)

    assert by_option.exit_code == 0
    assert by_option.stdout == cli("snapshot", command, path).stdout
    both = cli("snapshot", command, path, option, path)
    assert (both.exit_code, both.stdout) == (2, b"")
    assert both.stderr == "error: PATH and --snapshot can't be combined\n"


def test_the_list_shows_the_observations_of_each_server(cli: Cli, build: Build) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 1), ("a", AS_OF - DAY, 2)])

    listed = cli("snapshot", "info", path).json["identifiers"]

    assert [(one["id"], one["observations"]) for one in listed] == [("a", 2), ("b", 0)]
    assert [(one["firstObservedAt"], one["lastObservedAt"]) for one in listed] == [
        ("2026-02-28T12:00:00.000Z", "2026-03-01T12:00:00.000Z"),
        (None, None),
    ]
    shown = cli("snapshot", "info", path, "--table").stdout.decode().splitlines()[-4:]
    assert shown[0].split()[:3] == ["a", "1", "2"]
    assert shown[1].split() == ["x-a", "game_a;", *["seen", "2026-02-28", "to", "2026-03-01"]]
    assert shown[2].split() == ["b", "not", "seen", "0", "–", "–"]  # noqa: RUF001 - the dash of tables
    assert shown[3].split() == ["x-b", "game_a"]


@pytest.mark.parametrize("count", [1, 100, 101, 1_000])
def test_servers_are_listed_once_in_the_order_of_their_ids(
    cli: Cli, build: Build, count: int
) -> None:
    names = [f"s-{number:04}" for number in range(count)]
    path = build(map(server, reversed(names)), [("s-0000", AS_OF, 1)])

    info = cli("snapshot", "info", path).json

    assert [one["id"] for one in info["identifiers"]] == names
    assert info["servers"] == count
    assert list(info)[-1] == "identifiers"


def test_damage_in_the_last_server_prints_nothing(cli: Cli, build: Build) -> None:
    names = [f"s-{number:04}" for number in range(2_000)]
    path = build(map(server, names), [("s-0000", AS_OF, 1)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE servers SET hostname = 'other' WHERE server = 2000")

    ran = cli("snapshot", "info", path)

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert "damaged (the servers)" in ran.stderr
