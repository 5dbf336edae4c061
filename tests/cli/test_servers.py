"""`servers`, and the filters that it shares with other commands."""

from collections.abc import Callable

import pytest

from conftest import AS_OF, Build, Cli, server
from support.snapshots import forge


def test_all_words_must_occur(cli: Cli, demo_snapshot: str) -> None:
    def find(*arguments: str) -> list[str]:
        found = cli("servers", "-s", demo_snapshot, *arguments).json
        return [one["id"] for one in found["servers"]]

    assert find("server", "slots", "PVP") == ["flaky-arena"]
    assert find("server slots  PVP") == ["flaky-arena"]
    assert find("night", "city") == []
    assert len(find()) == 9


def test_a_limit_keeps_the_count_of_matches_and_the_totals(cli: Cli, demo_snapshot: str) -> None:
    found = cli("servers", "-s", demo_snapshot, "--online", "--limit", "2").json
    info = cli("snapshot", "info", demo_snapshot, "--online", "--limit", "2").json
    whole = cli("snapshot", "info", demo_snapshot).json

    assert found["matched"] == info["matched"] == 6
    assert [one["id"] for one in found["servers"]] == ["flaky-arena", "harbor-city"]
    assert [one["id"] for one in info["identifiers"]] == ["flaky-arena", "harbor-city"]
    changed = {name for name in whole if whole[name] != info[name]}
    assert changed == {"matched", "identifiers"}


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


@pytest.mark.parametrize("change", ["tags = '{'", "tags = '[1]'"])
def test_a_forged_server_is_damage(cli: Cli, build: Build, change: str) -> None:
    path = build([server("a")], [("a", AS_OF - 1000, 1), ("a", AS_OF, 2)])
    forge(path, f"UPDATE servers SET {change}")  # noqa: S608 - our own values

    for command in (("servers", "-s", path, "x"), ("snapshot", "info", path, "--text", "x")):
        ran = cli(*command)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert "damaged (the servers)" in ran.stderr
