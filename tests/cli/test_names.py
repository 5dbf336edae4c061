"""Names as identifiers, and the order of results."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import srvstat
from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.contract.errors import InvalidRequestError, ServerNotFoundError

NAMES = {
    "lobby": "MAIN_LOBBY",
    "eu-1": "^1Lobby^7 EU",
    "eu-2": "lobby  eu 2",
    "eu-3": "Twice",
    "eu-4": "Twice",
    "eu-5": "TWICE 2",
    "cross": "eu-1",
    "tivoli-1": "Tivoli Gardens",
    "old-guard": "The old tivoli",
}


@pytest.fixture
def named(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    """Build a snapshot of servers with names, and make it the default one."""
    rows = [(name, AS_OF - at * DAY // 4, 5 + at) for name in NAMES for at in range(8)]
    path = build([server(name, hostname=shown) for name, shown in NAMES.items()], rows)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


def find_ids(document: Any) -> list[str]:
    return [one["serverId"] for one in document["servers"]]


def test_other_commands_accept_names_too(
    cli: Cli, empty_directory: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", named)  # which the empty directory removes
    assert cli("history", "Lobby EU", "--range", "24h").stdout.startswith(b'{"serverId":"eu-1",')
    for command, output in (("report", "x.html"), ("plot", "x.svg")):
        ran = cli(command, "Lobby EU", "MAIN_LOBBY", "-o", output)
        assert (command, ran.exit_code) == (command, 0)
        assert "MAIN_LOBBY" in Path(output).read_text(encoding="utf-8")
    assert cli("snapshot", "bundle", "Lobby EU", "-o", "case.db").exit_code == 0
    assert cli("snapshot", "export", "Lobby EU", "-o", "exported").exit_code == 0
    assert find_ids(cli("stats", "eu-1", "-s", "case.db").json) == ["eu-1"]
    missing = cli("stats", "MAIN_LOBBY", "-s", "case.db")
    assert (missing.exit_code, missing.stdout) == (3, b"")
    assert 'a bundle without a server named "MAIN_LOBBY"' in missing.stderr
    assert len(list(empty_directory.iterdir())) == 4


def test_the_python_api_takes_names(named: str) -> None:
    with srvstat.open_snapshot(named) as snapshot:
        found = snapshot.stats(["Lobby EU", "main_lobby"])
        assert [one.server_id for one in found.servers] == ["eu-1", "lobby"]
        with pytest.raises(ServerNotFoundError, match="give an id: eu-3, eu-4"):
            snapshot.growth(["twice"])
        with pytest.raises(InvalidRequestError, match="no server has this name"):
            snapshot.stats(["no such"])


def test_results_keep_the_order_of_the_request(cli: Cli, demo_snapshot: str) -> None:
    references = ["harbor-city", "cfxId:nf8q1z", "old-guard", "cfxId:fa9t5w", "id:night-shift"]
    ids = ["harbor-city", "new-frontier", "old-guard", "flaky-arena", "night-shift"]
    ids_by_reference = dict(zip(references, ids, strict=True))
    whole = cli("compare", *references, "-s", demo_snapshot, "--range", "24h").json["data"]
    results_by_reference = dict(zip(references, whole, strict=True))

    for order in itertools.permutations(references):
        data = cli("compare", *order, "-s", demo_snapshot, "--range", "24h").json["data"]
        assert [result["serverId"] for result in data] == [ids_by_reference[name] for name in order]
        assert data == [results_by_reference[name] for name in order]
