"""Invalid usage, missing snapshots, and the version."""

from conftest import Cli


def test_without_a_command_the_commands_are_listed(cli: Cli) -> None:
    for arguments, command in (([], "compare"), (["snapshot"], "draft-servers")):
        lines = cli(*arguments).stderr.split("\n")
        assert lines[0].startswith("Usage: srvstat")
        assert any(line.startswith(f"  {command} ") for line in lines)


def test_version_shows_contract_and_format(cli: Cli) -> None:
    ran = cli("--version")

    assert ran.stdout == b"srvstat 1.0.0.dev0 (contract 1.0.0, snapshot format 8)\n"
