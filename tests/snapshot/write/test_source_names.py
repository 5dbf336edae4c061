"""Store the names of the sources in the snapshot."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cli, csv
from support.snapshots import COMMAND

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]


def build_in_shell(shell: str, redirection: str, name: str) -> bytes:
    """Build from a descriptor that a shell opens, and return the bytes of the snapshot."""
    build = [sys.executable, "-m", "srvstat", *COMMAND, "--overwrite", "--format", "csv"]
    script = f'exec "$@" --observations {name} {redirection}'
    subprocess.run([shell, "-c", script, shell, *build], check=True, timeout=60)
    return Path("out.db").read_bytes()


def test_all_descriptors_have_one_name(cli: Cli) -> None:
    built = {
        build_in_shell("sh", "7< week.csv", "/dev/fd/7"),
        build_in_shell("sh", "8< week.csv", "/dev/fd/8"),
        *([build_in_shell("bash", "", "<(cat week.csv)")] if shutil.which("bash") else []),
    }

    assert len(built) == 1
    assert cli("snapshot", "info", "out.db", "--json").json["sources"] == ["file descriptor"]


def test_a_file_is_stored_by_its_name_without_directories(cli: Cli) -> None:
    Path("fd").mkdir()
    Path("fd/63").write_bytes(csv([("a", 5, 5)]))

    assert cli(*COMMAND, "--observations", "fd/63", "--format", "csv").exit_code == 0

    assert cli("snapshot", "info", "out.db", "--json").json["sources"] == ["63"]
