"""Names as identifiers: where they are accepted, and what is suggested for others."""

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
NOT_FOUND = b'{"error":{"code":"SERVER_NOT_FOUND","message":"Server not found"}}\n'
INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'
PATTERN = "may only contain letters, digits and hyphens"


@pytest.fixture
def named(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    """Build a snapshot of servers with names, and make it the default one."""
    rows = [(name, AS_OF - at * DAY // 4, 5 + at) for name in NAMES for at in range(8)]
    path = build([server(name, hostname=shown) for name, shown in NAMES.items()], rows)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


def find_ids(document: Any) -> list[str]:
    return [one["serverId"] for one in document["servers"]]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("command", ["stats", "growth", "peak-hours", "integrity"])
def test_a_name_is_accepted_as_tables_show_it(command: str, cli: Cli) -> None:
    ran = cli(command, "MAIN_LOBBY", "Lobby EU", "^1Lobby^7 EU", "LOBBY eu 2", "old-guard")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert find_ids(ran.json) == ["lobby", "eu-1", "eu-2", "old-guard"]


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


@pytest.mark.usefixtures("named")
def test_an_id_wins_over_a_name_and_an_explicit_namespace_has_no_names(cli: Cli) -> None:
    assert find_ids(cli("stats", "eu-1").json) == ["eu-1"]
    for arguments, reason in (
        (["id:MAIN_LOBBY"], f'"MAIN_LOBBY" {PATTERN}\n'),
        (["cfxId:Twice"], "no cfxId Twice\n"),
        (["MAIN_LOBBY", "--by", "cfxId"], f'"MAIN_LOBBY" {PATTERN}\n'),
        (["twice", "--by", "cfxId"], "no cfxId twice\n"),
    ):
        ran = cli("stats", *arguments)
        assert ran.exit_code in {40, 44}
        assert ran.stderr.endswith(reason)


@pytest.mark.usefixtures("named")
def test_a_name_of_several_servers_is_refused_with_their_ids(cli: Cli) -> None:
    ran = cli("stats", "twice", "--json")

    assert (ran.exit_code, ran.stdout) == (44, NOT_FOUND)
    assert ran.stderr == '"twice" is the name of 2 servers; give an id: eu-3, eu-4\n'


def test_a_name_that_is_the_identifier_of_another_server_is_refused(cli: Cli, build: Build) -> None:
    records = [
        server("weird", hostname="alpha2"),
        server("x10", cfxId="alpha2"),
        server("own", cfxId="own2", hostname="own2"),
        server("fake", hostname="^1SRV_7"),
        server("srv-7", sourceId="srv_7"),
    ]
    path = build(records, [("own", AS_OF, 1)])

    assert find_ids(cli("stats", "own2", "-s", path).json) == ["own"]
    for text, reason in (
        ("alpha2", '"alpha2" is the name of id:weird and the cfxId of id:x10; give one of these'),
        ("SRV_7", '"SRV_7" is the name of id:fake and the sourceId of id:srv-7; give one of these'),
    ):
        ran = cli("stats", text, "--json", "-s", path)
        assert (ran.exit_code, ran.stdout, ran.stderr) == (44, NOT_FOUND, f"{reason}\n")


def test_an_exact_name_wins_over_one_in_another_case(cli: Cli, build: Build) -> None:
    shown = {"a": "Lobby", "b": "LOBBY", "c": "^2lobby"}
    path = build([server(name, hostname=text) for name, text in shown.items()], [("a", AS_OF, 1)])

    for name, text in (("a", "Lobby"), ("b", "LOBBY"), ("c", "lobby")):
        assert find_ids(cli("stats", text, "-s", path).json) == [name]
    assert "give an id: a, b, c\n" in cli("stats", "LObby", "-s", path).stderr


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("tivoli", 44, 'similar: old-guard ("The old tivoli"), tivoli-1 ("Tivoli Gardens")'),
        ("tivoly_gardens", 40, 'similar: tivoli-1 ("Tivoli Gardens")'),
        ("main_lobbi", 40, 'similar: lobby ("MAIN_LOBBY")'),
        ("old-gard", 44, "similar: old-guard"),
        ("no such", 40, None),
        ("x-lobby", 44, "did you mean cfxId:x-lobby?"),
    ],
)
def test_the_error_of_an_unknown_text_suggests_ids_and_names(
    text: str, code: int, hint: str | None, cli: Cli
) -> None:
    ran = cli("stats", text, "--json")

    reason = f"no id {text}"
    if code == 40:
        reason = f'identifier: "{text}" {PATTERN}, and no server has this name'
    assert (ran.exit_code, ran.stdout) == (code, NOT_FOUND if code == 44 else INVALID)
    assert ran.stderr == f"{reason}; {hint}\n" if hint else f"{reason}\n"


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (
            ["get", "MAIN_LOBBY"],
            40,
            f'identifier: "MAIN_LOBBY" {PATTERN}; did you mean id:lobby ("MAIN_LOBBY")?',
        ),
        (
            ["compare", "lobby", "Lobby EU"],
            40,
            f'servers[1].identifier: "Lobby EU" {PATTERN}; did you mean id:eu-1 ("Lobby EU")?',
        ),
        (
            ["compare", "lobby", "twice"],
            44,
            'servers[1]: no id twice; similar: eu-3 ("Twice"), eu-4 ("Twice"), eu-5 ("TWICE 2")',
        ),
        (["get", "id:MAIN_LOBBY"], 40, f'identifier: "MAIN_LOBBY" {PATTERN}'),
        (["get", "MAIN_LOBBY", "-s", "absent.db"], 40, f'identifier: "MAIN_LOBBY" {PATTERN}'),
    ],
)
def test_the_contract_takes_no_name_but_suggests_the_id(
    arguments: list[str], code: int, reason: str, cli: Cli
) -> None:
    ran = cli(*arguments, "--json")

    assert (ran.exit_code, ran.stdout) == (code, INVALID if code == 40 else NOT_FOUND)
    assert ran.stderr == f"{reason}\n"


def test_the_python_api_takes_names(named: str) -> None:
    with srvstat.open_snapshot(named) as snapshot:
        found = snapshot.stats(["Lobby EU", "main_lobby"])
        assert [one.server_id for one in found.servers] == ["eu-1", "lobby"]
        with pytest.raises(ServerNotFoundError, match="give an id: eu-3, eu-4"):
            snapshot.growth(["twice"])
        with pytest.raises(InvalidRequestError, match="no server has this name"):
            snapshot.stats(["no such"])
