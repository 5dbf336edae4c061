"""`servers`, and the filters that it shares with other commands."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from support.snapshots import forge

NOTE = "note: no server matches\n"
ALL = (("servers",), ("stats", "--all"), ("integrity", "--all"), ("top",))


def test_all_words_must_occur(cli: Cli, demo_snapshot: str) -> None:
    def find(*arguments: str) -> list[str]:
        found = cli("servers", "-s", demo_snapshot, *arguments).json
        return [one["id"] for one in found["servers"]]

    assert find("server", "slots", "PVP") == ["flaky-arena"]
    assert find("server slots  PVP") == ["flaky-arena"]
    assert find("night", "city") == []
    assert len(find()) == 9


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("--region", "mars"), '--region: no server has "mars"; regions are "US" (5), "EU" (4)'),
        (("--game", "x", "--tag", "pvp"), '--game: no server has "x"; games are "game_b" (5), "g'),
        (("--tag", "pvp", "--tag", "q"), '--tag: no server has "q"; tags are "pvp" (1), "roleplay'),
        (("--game", "GAME_A", "--tag", "pvp"), "no server matches all options\n"),
    ],
)
def test_an_unknown_value_lists_those_that_exist(
    cli: Cli, demo_snapshot: str, options: tuple[str, ...], note: str
) -> None:
    for command in ALL:
        ran = cli(*command, "-s", demo_snapshot, *options)
        assert (ran.exit_code, ran.json["servers"]) == (0, [])
        assert ran.stderr.startswith(f"note: {note}")


def test_a_note_lists_few_values_and_cannot_control_the_terminal(cli: Cli, build: Build) -> None:
    tags = [f"t{number:02}\x1b[31m" for number in range(12)]
    path = build([server("a", tags=tags), server("b", tags=tags[:1])], [("a", AS_OF, 1)])

    note = cli("servers", "-s", path, "--tag", "t").stderr

    assert r'tags are "t00\u001b[31m" (2), "t01\u001b[31m" (1), ' in note
    assert note.endswith(" and 2 more\n")
    assert note.count("t0") == 10
    assert "no server has a region" in cli("servers", "-s", path, "--region", "EU").stderr
    assert cli("servers", "-s", path, "nothing").stderr == NOTE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sort", "age"), "'--sort': 'age' is not one of 'id', 'hostname',"),
        (("--limit", "0"), "'--limit' / '-n': Input should be greater than or equal to 1"),
        (("--seen-within", "all"), '--seen-within: "all" is not a number of hours or days'),
        (("--seen-within", "7w"), '--seen-within: "7w" is not a number of hours or days'),
    ],
)
def test_a_bad_option_is_invalid_usage(
    cli: Cli, demo_snapshot: str, options: tuple[str, ...], message: str
) -> None:
    ran = cli("servers", "-s", demo_snapshot, *options)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert message in ran.stderr


def test_a_limit_keeps_the_count_of_matches_and_the_totals(cli: Cli, demo_snapshot: str) -> None:
    found = cli("servers", "-s", demo_snapshot, "--online", "--limit", "2").json
    info = cli("snapshot", "info", demo_snapshot, "--online", "--limit", "2").json
    whole = cli("snapshot", "info", demo_snapshot).json

    assert found["matched"] == info["matched"] == 6
    assert [one["id"] for one in found["servers"]] == ["flaky-arena", "harbor-city"]
    assert [one["id"] for one in info["identifiers"]] == ["flaky-arena", "harbor-city"]
    changed = {name for name in whole if whole[name] != info[name]}
    assert changed == {"matched", "identifiers"}


def test_a_table_lists_fifty_servers_by_default(cli: Cli, build: Build) -> None:
    path = build([server(f"s-{number:02}") for number in range(60)], [("s-00", AS_OF, 1)])

    def count_rows(*arguments: str) -> int:
        return cli(*arguments, "--table").stdout.decode().count("x-s-")

    for command in (("servers", "-s", path), ("snapshot", "info", path)):
        assert count_rows(*command) == 50
        assert count_rows(*command, "--limit", "55") == 55
        assert len(cli(*command, "--json").json.popitem()[1]) == 60


def test_a_silent_server_is_not_online(cli: Cli, build: Build) -> None:
    def describe(name: str, players: int) -> dict[str, Any]:
        return server(name, players={"current": players, "max": 999})

    path = build(
        [describe("a", 1), describe("b", 2), describe("never", 900), describe("silent", 800)],
        [("a", AS_OF, 5), ("b", AS_OF - DAY, 5), ("silent", AS_OF - DAY - 1, 5)],
    )

    def list_ids(*arguments: str) -> list[str]:
        found = cli(*arguments, "-s", path, "--json").json["servers"]
        return [one.get("id") or one["serverId"] for one in found]

    assert list_ids("servers", "--sort", "current") == ["b", "a", "never", "silent"]
    assert list_ids("servers", "--online") == ["a", "b"]
    assert list_ids("servers", "--offline") == ["never", "silent"]
    assert list_ids("stats", "--all", "--online") == ["a", "b"]
    assert list_ids("top", "--by", "current") == ["b", "a", "never", "silent"]
    # The current count is that of the record, whatever the window is.
    earlier = ("--to", str(AS_OF - DAY), "--range", "all")
    assert list_ids("top", "--by", "current", *earlier) == ["b", "a", "never", "silent"]

    shown = cli("top", "--by", "current", "-s", path, "--json").json["servers"]
    assert [(one["currentPlayers"], one["lastObservedAt"]) for one in shown] == [
        (2, "2026-02-28T12:00:00.000Z"),
        (1, "2026-03-01T12:00:00.000Z"),
        (900, None),
        (800, "2026-02-28T11:59:59.999Z"),
    ]
    detail = cli("get", "silent", "-s", path, "--json").json
    assert detail["data"]["players"]["current"] == 800
    past = ("--at", str(AS_OF - DAY * 9))
    for command in (
        ("servers",),
        ("stats", "--all"),
        ("top",),
        ("top", *earlier),
        ("compare", "silent", "never"),
        ("compare", "silent", "never", "a", *past),
    ):
        table = cli(*command, "-s", path, "--table").stdout.decode()
        for name, text in (("silent", "last seen Feb 28"), ("never", "not seen")):
            (line,) = re.findall(rf"^(?:\d )?{name}  .*", table, re.MULTILINE)
            assert text in line
        assert command[-1] not in past or re.search(r"^a +1 ", table, re.MULTILINE)


def test_the_day_of_the_last_observation_is_on_the_clock_of_the_question(
    cli: Cli, build: Build
) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF - 2 * DAY, 5), ("b", AS_OF, 5)])

    for zone, day in (("UTC", "Feb 27"), ("Pacific/Kiritimati", "Feb 28")):
        for command in (("stats", "a"), ("top",)):
            table = cli(*command, "--tz", zone, "-s", path, "--table").stdout.decode()
            assert f"  last seen {day}  " in table


Complete = Callable[[str, str], list[str]]


@pytest.fixture
def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Complete the last of some words as bash does, from a snapshot."""

    def run(path: str, words: str) -> list[str]:
        monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
        monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
        monkeypatch.setenv("COMP_WORDS", words.replace(" ", "\n"))
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        return cli().stdout.decode().split()

    return run


def test_filters_are_completed_with_values_that_need_no_quotes(
    complete: Complete, demo_snapshot: str
) -> None:
    assert complete(demo_snapshot, "srvstat servers --region ") == ["EU", "US"]
    assert complete(demo_snapshot, "srvstat top --game g") == ["game_a", "game_b"]
    assert complete(demo_snapshot, "srvstat stats --all --tag p") == ["pvp"]
    assert "mods" not in complete(demo_snapshot, "srvstat snapshot info --tag ")
    assert complete(demo_snapshot, "srvstat servers --sort c") == ["coverage", "current"]
    assert complete("missing.db", "srvstat servers --region ") == []


def test_many_identifiers_are_completed_by_what_follows(complete: Complete, build: Build) -> None:
    names = ["a-", *(f"a-{number:03}" for number in range(600)), "B-1", "a-x"]
    path = build(map(server, names), [("B-1", AS_OF, 1)])

    assert complete(path, "srvstat stats ") == ["B", "a"]
    following = ["a-", "a-0", "a-1", "a-2", "a-3", "a-4", "a-5", "a-x"]
    assert complete(path, "srvstat stats a") == following
    assert complete(path, "srvstat stats a-01") == [f"a-01{number}" for number in range(10)]
    assert complete(path, "srvstat integrity B") == ["B-1"]
    assert complete(path, "srvstat history cfxId:x") == ["cfxId:x-B", "cfxId:x-a"]


@pytest.mark.parametrize("change", ["covered = -1", "tags = '{'", "tags = '[1]'"])
def test_a_forged_server_is_damage(cli: Cli, build: Build, change: str) -> None:
    path = build([server("a")], [("a", AS_OF - 1000, 1), ("a", AS_OF, 2)])
    forge(path, f"UPDATE servers SET {change}")  # noqa: S608 - our own values

    for command in (("servers", "-s", path, "x"), ("snapshot", "info", path, "--text", "x")):
        ran = cli(*command)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert "damaged (the servers)" in ran.stderr
