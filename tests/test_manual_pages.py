"""Check the manual pages and completion scripts that wheels contain."""

import shutil
import subprocess

import pytest

from conftest import ROOT
from test_docs import list_commands

PAGES = ROOT / "docs" / "man"


def test_each_command_has_a_page_and_nothing_else_has() -> None:
    names = {"-".join(["srvstat", *command.split()]) for command in list_commands()}

    assert {path.name for path in PAGES.iterdir()} == {f"{name}.1" for name in names}


def test_each_shell_has_a_completion_script() -> None:
    found = {path.name for path in (ROOT / "docs" / "completions").iterdir()}

    assert found == {"srvstat.bash", "_srvstat", "srvstat.fish"}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_nothing_to_warn_about() -> None:
    pages = sorted(PAGES.iterdir())

    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *pages],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
