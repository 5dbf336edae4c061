"""Find the snapshot to open: any file name, and the order of the ways to name one."""

import os
import sys
from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, server
from snapshot.opening import COMMANDS
from support.snapshots import read_directory

pytestmark = pytest.mark.usefixtures("empty_directory")

ODD_NAMES = [b"a#b.db", b"a?mode=rwc.db", b"a%41b.db", b"a b.db", b"a\nb.db", b":memory:"]
ODDER_NAMES = [b"file:a.db", b"a;b&c='d'.db", "ä夜.db".encode(), b"-"]
NOT_UTF8 = pytest.param(
    b"\xff\xfe.db",
    marks=pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8"),
)


@pytest.mark.parametrize("name", [*ODD_NAMES, *ODDER_NAMES, NOT_UTF8])
def test_a_snapshot_may_have_any_name(
    name: bytes, two_servers: bytes, empty_directory: Path, cli: Cli
) -> None:
    path = os.fsdecode(name)
    Path(path).write_bytes(two_servers)

    assert cli("get", "a", f"--snapshot={path}").json["data"]["id"] == "a"
    assert cli("snapshot", "info", "--json", "--", path).json["servers"] == 2
    assert [found.name for found in empty_directory.iterdir()] == [path]


def test_a_read_only_snapshot_is_not_changed(
    two_servers: bytes, empty_directory: Path, cli: Cli
) -> None:
    Path("x.db").write_bytes(two_servers)
    Path("x.db").chmod(0o400)

    for command in COMMANDS:
        assert cli(*command, "x.db").exit_code == 0
    Path("case.db").unlink()  # the bundle
    assert read_directory(empty_directory) == {"x.db": two_servers}


@pytest.fixture
def three(build: Build, empty_directory: Path) -> Path:
    """Build three snapshots of one, two and three servers."""
    for count, name in enumerate(("snapshot.db", "environment.db", "option.db"), 1):
        names = "abc"[:count]
        path = build([server(name) for name in names], [(name, AS_OF, 1) for name in names])
        Path(path).rename(empty_directory / name)
    return empty_directory


def test_the_option_precedes_the_environment_and_the_default_file(
    three: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("get", "b").exit_code == 44
    assert cli("snapshot", "info", "--json").json["servers"] == 1

    monkeypatch.setenv("SRVSTAT_SNAPSHOT", str(three / "environment.db"))
    assert cli("get", "b").exit_code == 0
    assert cli("get", "c").exit_code == 44
    assert cli("snapshot", "info", "--json").json["servers"] == 2

    assert cli("get", "c", "--snapshot", "option.db").exit_code == 0
    assert cli("snapshot", "info", "--json", "option.db").json["servers"] == 3


def test_a_path_too_long_for_sqlite_is_reported(two_servers: bytes, cli: Cli) -> None:
    deep = Path(*["d" * 200] * 4).absolute()
    deep.mkdir(parents=True)
    (deep / "x.db").write_bytes(two_servers)

    ran = cli("get", "a", "-s", str(deep / "x.db"))
    assert ran.exit_code in (0, 3)  # SQLite's limit depends on how it was built
    if ran.exit_code:
        assert ran.stderr.endswith(
            "x.db: the path is too long for SQLite; use a shorter relative path\n"
        )
