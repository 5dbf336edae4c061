"""The help and the version."""

import pytest

from conftest import Cli
from srvstat.cli.app import COMMANDS


@pytest.mark.parametrize("group", ["", "snapshot", "access"])
def test_the_list_of_commands_cuts_no_line(cli: Cli, group: str) -> None:
    listed = cli(*group.split(), "--help").stdout.decode().partition("Commands:\n")[2]

    assert listed
    assert "..." not in listed


def test_every_command_has_help(cli: Cli) -> None:
    for name, entry in COMMANDS.items():
        for command in [name, *(f"{name} {inner}" for inner in getattr(entry, "commands", ()))]:
            ran = cli(*command.split(), "--help")
            assert (ran.exit_code, ran.stderr) == (0, "")
            assert ran.stdout.decode().startswith(f"Usage: srvstat {command} ")


def test_an_unknown_command_suggests_a_similar_one(cli: Cli) -> None:
    ran = cli("snapshot", "biuld")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert "No such command 'biuld'. Did you mean 'build'?" in ran.stderr


def test_without_a_command_the_commands_are_listed(cli: Cli) -> None:
    for arguments, command in (([], "compare"), (["snapshot"], "draft-servers")):
        lines = cli(*arguments).stderr.split("\n")
        assert lines[0].startswith("Usage: srvstat")
        assert any(line.startswith(f"  {command} ") for line in lines)


def test_version_shows_contract_and_format(cli: Cli) -> None:
    ran = cli("--version")

    assert ran.stdout == b"srvstat 1.0.0.dev0 (contract 1.0.0, snapshot format 1)\n"
