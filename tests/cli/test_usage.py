"""Invalid usage, missing snapshots, and the version."""

from pathlib import Path

import pytest

from conftest import Cli


@pytest.mark.parametrize(
    "arguments",
    [
        ["get"],
        ["get", "a", "b"],
        ["get", "-a"],
        ["compare", "a", "b", "--json", "--table"],
        ["compare", "a", "b", "--at", "yesterday"],
        ["compare", "a", "b", "--at", "2026-01-01T00:00"],
        ["get", "a", "--at", ""],
        ["compare", "--request", "-", "a"],
        ["compare", "--request", "-", "--by", "id"],
        ["compare", "--request", "-", "--range", "7d"],
        ["compare", "a", "b", "--nonsense"],
        ["nonsense"],
        ["snapshot"],
        [],
    ],
)
def test_invalid_usage_exits_2_and_prints_nothing_to_stdout(cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        (["get"], "Missing argument 'IDENTIFIER'."),
        (["nonsense"], "No such command 'nonsense'."),
        (["compare", "--nonsense"], "No such option: --nonsense"),
        (["snapshot", "build"], "Missing argument 'OUTPUT'."),
    ],
)
def test_invalid_usage_is_reported_in_two_lines(
    cli: Cli, arguments: list[str], finding: str
) -> None:
    remedy = "srvstat --help shows the commands and their options"

    assert cli(*arguments).stderr == f"error: {finding}\n{remedy}\n"


def test_without_a_command_the_commands_are_listed(cli: Cli) -> None:
    for arguments, command in (([], "compare"), (["snapshot"], "draft-servers")):
        lines = cli(*arguments).stderr.split("\n")
        assert lines[0].startswith("Usage: srvstat")
        assert any(line.startswith(f"  {command} ") for line in lines)


def test_without_a_snapshot_the_error_lists_the_places_searched(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)

    ran = cli("get", "a")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == (
        "error: no snapshot: give --snapshot PATH, set SRVSTAT_SNAPSHOT, or change to a"
        " directory with snapshot.db\n"
    )


@pytest.mark.usefixtures("crossed_snapshot")
def test_an_empty_name_does_not_mean_the_default_snapshot(cli: Cli) -> None:
    for arguments in (["get", "a", "--snapshot", ""], ["snapshot", "info", ""]):
        ran = cli(*arguments)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == "error: snapshot: the name is empty; name a file\n"


def test_a_line_break_in_a_file_name_is_escaped(cli: Cli) -> None:
    ran = cli("get", "a", "--snapshot", "x\nerror: forged")

    assert ran.exit_code == 3
    assert ran.stderr.startswith("error: x\\u000aerror: forged: no such file")
    assert ran.stderr.count("\n") == 1


def test_version_shows_contract_and_format(cli: Cli) -> None:
    ran = cli("--version")

    assert ran.stdout == b"srvstat 1.0.0.dev0 (contract 1.0.0, snapshot format 8)\n"
