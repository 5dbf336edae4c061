"""The help of the commands."""

import subprocess
import sys

import pytest

from conftest import Cli


@pytest.mark.parametrize("group", ["", "snapshot", "access"])
def test_no_line_of_a_list_of_commands_is_cut(cli: Cli, group: str) -> None:
    listed = cli(*group.split(), "--help").stdout.decode().partition("Commands:\n")[2]

    assert listed
    assert "..." not in listed


def test_no_command_is_cut_in_the_reference_that_the_commands_print() -> None:
    command = [sys.executable, "-m", "typer", "srvstat.cli.app", "utils", "docs"]
    printed = subprocess.run(
        [*command, "--name", "srvstat"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    entries = [line for line in printed.splitlines() if line.startswith("* `")]

    assert entries
    assert [line for line in entries if line.endswith("...")] == []
