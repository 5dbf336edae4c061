"""Commands in a directory that was removed or can't be searched, and empty names."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

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
    (["snapshot", "draft-servers", "--game", "game_a", "--observations", "x.csv"], 6, "x.csv"),
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


def run_python(code: str, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in the inner directory; not as root, which ignores permissions."""
    user = find_user_prefix()
    if user is None:
        pytest.skip("no other user can run this program")
    return subprocess.run(
        [*user, sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=place / "inner",
        timeout=60,
        check=False,
    )


REMOVE, CLOSE = "os.rmdir(os.getcwd())", "os.chmod(os.getcwd(), 0)"

# Each command runs in a fork, because imports take most of the time of a process.
RUN_ALL = """
import json, os, sys, tempfile
from importlib import import_module
from pkgutil import iter_modules
import srvstat.cli
for module in iter_modules(srvstat.cli.__path__, "srvstat.cli."):
    import_module(module.name)
from srvstat.cli.main import main
directory = os.getcwd()
def run(before, command, stdout, stderr):
    if not (child := os.fork()):
        os.mkdir(f"{directory}/own")
        os.chdir(f"{directory}/own")
        os.dup2(stdout.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        exec(before)
        os._exit(main(command))
    _, status = os.waitpid(child, 0)
    for name, remove in (("own", os.rmdir), ("../x.db", os.remove)):
        if os.path.exists(name):
            remove(name)
    for file in (stdout, stderr):
        file.seek(0)
    return os.waitstatus_to_exitcode(status), stdout.read(), stderr.read()
for before, command in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        print(json.dumps(run(before, command, stdout, stderr)))
"""


def test_a_removed_or_unsearchable_directory_is_not_reported_as_a_bug(place: Path) -> None:
    cases = [
        *((*failure, REMOVE) for failure in FAILURES),
        *((*failure, CLOSE) for failure in FAILURES),
    ]
    commands = [(before, [word.format(place) for word in command]) for command, *_, before in cases]
    ran = run_python(RUN_ALL, place, json.dumps(commands))
    assert (ran.returncode, ran.stderr) == (0, "")

    for case, line in zip(cases, ran.stdout.splitlines(), strict=True):
        _, expected, name, _ = case
        exit_code, stdout, stderr = json.loads(line)
        assert (exit_code, stdout) == (expected, ""), case
        if exit_code:
            assert stderr.count("\n") == 1, case
            assert stderr.startswith(f"error: {name}: " if name else "error: "), case


@pytest.mark.parametrize("before", [REMOVE, CLOSE])
def test_a_program_starts_in_a_removed_or_unsearchable_directory(before: str, place: Path) -> None:
    code = f"import os; {before}; from srvstat.__main__ import run; run()"
    ran = run_python(code, place, "get", "harbor-city")

    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (3, "", 1)
    assert ran.stderr.startswith("error: ")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS can still find the file")
def test_a_default_snapshot_without_permission_is_not_reported_as_missing(place: Path) -> None:
    code = f"import os; open('snapshot.db', 'w').close(); {CLOSE}"
    ran = run_python(f"{code}; from srvstat.__main__ import run; run()", place, "get", "a")

    assert (ran.returncode, ran.stderr) == (3, "error: snapshot.db: Permission denied\n")
