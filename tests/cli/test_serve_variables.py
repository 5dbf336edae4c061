"""Configure `serve` by environment variables."""

import re
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.cli.app import COMMANDS


@pytest.fixture(autouse=True)
def _no_snapshot(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - an empty directory
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)


def test_every_option_of_serve_has_a_variable(cli: Cli) -> None:
    shown = " ".join(cli("serve", "--help").stdout.decode().split())
    options = re.findall(r" --([a-z-]+) (?!FILE FILE)", shown.partition(" Options: ")[2])
    variables = [f"SRVSTAT_{option.upper().replace('-', '_')}" for option in options]

    assert variables[-1] == "SRVSTAT_HELP"
    assert [name for name in variables[:-1] if not re.search(rf"[$ ]{name}\b", shown)] == []


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        (
            "PORT",
            "http",
            "Invalid value for '--port' (env var: 'SRVSTAT_PORT'): ",
        ),
        ("HOST", "0.0.0.0", "SRVSTAT_HOST 0.0.0.0: reachable from other machines"),  # noqa: S104 - refused
        ("RECORD", "-", "SRVSTAT_RECORD -: not a file"),
        (
            "EXPLORE",
            "perhaps",
            "Invalid value for '--explore' (env var: 'SRVSTAT_EXPLORE'): ",
        ),
    ],
)
def test_an_invalid_variable_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str, error: str
) -> None:
    monkeypatch.setenv(f"SRVSTAT_{name}", value)
    ran = cli("serve")

    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"error: {error}")


def test_an_option_takes_precedence_over_its_variable(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_PORT", "http")

    assert cli("serve", "--port", "ftp").exit_code == 2
    assert cli("serve", "--port", "0").exit_code == 3


def test_an_empty_variable_counts_as_unset(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_PORT", "")
    monkeypatch.setenv("SRVSTAT_EXPLORE", "")
    monkeypatch.setenv("SRVSTAT_ACCESS", "")

    # The snapshot is missing, which is checked last.
    assert cli("serve", "--port", "0").exit_code == 3


def test_other_commands_ignore_the_variables_of_serve(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: cli(name, "--help").stdout for name in COMMANDS}
    variables = set(re.findall(r"SRVSTAT_[A-Z_]+", before["serve"].decode()))
    for name in variables - {"SRVSTAT_SNAPSHOT"}:
        monkeypatch.setenv(name, "not-valid")

    assert not [name for name in COMMANDS if name != "serve" and b"[env var" in before[name]]
    assert cli("get", "a").stderr.startswith("error: no snapshot: ")
