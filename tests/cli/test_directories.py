"""Commands in a directory that was removed or can't be searched, and empty names."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conftest import Cli
from srvstat import demo

pytestmark = pytest.mark.slow

BUILD = ["snapshot", "build"]
SERVERS = ["--servers", "{}/servers.ndjson"]
ROWS = ["--observations", "{}/observations.csv"]

FAILURES = [
    (["get", "harbor-city"], 3, None),
    (["get", "harbor-city", "-s", "x.db"], 3, "x.db"),
    (["compare", "--batch", "x"], 6, "x"),
    (["snapshot", "info"], 3, None),
    ([*BUILD, "x.db", *SERVERS, *ROWS], 4, "x.db"),
    ([*BUILD, "{}/x.db", "--servers", "x.ndjson", *ROWS], 6, "x.ndjson"),
    ([*BUILD, "{}/x.db", *SERVERS, "--observations", "x.csv"], 6, "x.csv"),
    ([*BUILD, "{}/x.db", *SERVERS, *ROWS, "--rejects", "x"], 4, "x"),
    (["snapshot", "draft-servers", "--observations", "x.csv"], 6, "x.csv"),
    (["access", "check"], 6, "access.toml"),
    (["serve", "--port", "0", "--access", "x"], 6, "x"),
    (["demo"], 4, "srvstat-demo"),
    ([*BUILD, "{}/x.db", *SERVERS, *ROWS], 0, None),
]
OTHER_USER = 65_534


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a directory with the demo's sources that the user of `run` can write to."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "servers.ndjson").write_bytes(demo.build_servers_file())
        (place / "observations.csv").write_bytes(demo.build_observations_file())
        (place / "inner").mkdir()
        if os.geteuid() == 0:
            for path in (place, place / "inner"):
                os.chown(path, OTHER_USER, OTHER_USER)
        yield place
        if (place / "inner").exists():
            (place / "inner").chmod(0o700)


@cache
def find_user_prefix() -> list[str] | None:
    """Return the start of a command that a user without privileges runs; None if impossible."""
    if os.geteuid():
        return []
    prefix = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
    look = [*prefix, sys.executable, "-c", "import srvstat"]
    if not shutil.which("setpriv") or subprocess.run(look, check=False).returncode:
        return None
    return prefix


def run(before: str, place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command after a line of Python; not as root, which ignores permissions."""
    user = find_user_prefix()
    if user is None:
        pytest.skip("no other user can run this program")
    code = f"import os; {before}; from srvstat.__main__ import run; run()"
    return subprocess.run(
        [*user, sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        cwd=place / "inner",
        timeout=60,
        check=False,
    )


REMOVE, CLOSE = "os.rmdir(os.getcwd())", "os.chmod(os.getcwd(), 0)"


@pytest.mark.parametrize(
    ("command", "exit_code", "name", "before"),
    [
        *((*failure, REMOVE) for failure in FAILURES),
        *((*failure, CLOSE) for failure in FAILURES[::3]),
    ],
)
def test_a_removed_or_unsearchable_directory_is_not_reported_as_a_bug(
    command: list[str], exit_code: int, name: str | None, before: str, place: Path
) -> None:
    ran = run(before, place, *(word.format(place) for word in command))

    assert (ran.returncode, ran.stdout) == (exit_code, "")
    if exit_code:
        assert ran.stderr.count("\n") == 1
        assert ran.stderr.startswith(f"error: {name}: " if name else "error: ")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS can still find the file")
def test_a_default_snapshot_without_permission_is_not_reported_as_missing(place: Path) -> None:
    ran = run(f"open('snapshot.db', 'w').close(); {CLOSE}", place, "get", "harbor-city")

    assert (ran.returncode, ran.stderr) == (3, "error: snapshot.db: Permission denied\n")


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (["demo", ""], 2),
        (["get", "a", "--snapshot", ""], 3),
        (["compare", "--request", ""], 6),
        (["compare", "--batch", ""], 6),
        (["access", "check", "--access", ""], 6),
    ],
)
def test_an_empty_name_is_reported_as_empty(command: list[str], exit_code: int, cli: Cli) -> None:
    ran = cli(*command)

    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (exit_code, b"", 1)
    assert "empty" in ran.stderr
