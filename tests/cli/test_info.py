"""`snapshot info` and `snapshot verify`: the snapshot they read, and the list of its servers."""

import pytest

from conftest import AS_OF, Build, Cli, server


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
