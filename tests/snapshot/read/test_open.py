"""Refuse files that are not snapshots: with one line, within seconds, without writing."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Cli, srvstat
from snapshot.opening import BUILD_ONE, COMMANDS
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.read.file import open_file
from support.snapshots import read_directory

pytestmark = pytest.mark.usefixtures("empty_directory")

WRONG_SIZE = "truncated or extended since it was built; copy it again"


def journal_exists(journal: str) -> str:
    return (
        f"{journal} exists, so another program may not have finished writing; close the"
        f" programs that use it, remove {journal} if it still exists, and try again"
    )


@pytest.fixture
def check_refusal(empty_directory: Path, cli: Cli) -> "CheckRefusal":
    """Check that every command refuses a path with one line, and creates and changes nothing."""

    def check(path: str, reason: str) -> None:
        before = read_directory(empty_directory)
        for command in COMMANDS:
            ran = cli(*command, path)
            assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {reason}\n")
        assert read_directory(empty_directory) == before

    return check


CheckRefusal = Callable[[str, str], None]


@pytest.mark.parametrize("path", ["x.db", "x?mode=rwc.db", "x#y.db", ":memory:", "file:x.db"])
def test_a_missing_snapshot_is_not_created(path: str, check_refusal: CheckRefusal) -> None:
    check_refusal(path, f"{path}: no such file; {BUILD_ONE}")


def test_a_directory_is_refused(check_refusal: CheckRefusal) -> None:
    check_refusal(
        ".",
        ".: a directory without manifest.json, not a snapshot; name a snapshot file, or a directory"
        " from `srvstat fleet --snapshots`",
    )


def test_a_device_is_refused(check_refusal: CheckRefusal) -> None:
    check_refusal("/dev/null", "/dev/null: a pipe, socket or device, not a snapshot")


@pytest.mark.parametrize("command", COMMANDS[:4:3])
def test_a_fifo_is_refused_without_waiting(command: list[str]) -> None:
    os.mkfifo("x.db")

    ran = srvstat(*command, "x.db")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == "error: x.db: a pipe, socket or device, not a snapshot\n"


def test_an_empty_file_is_refused(check_refusal: CheckRefusal) -> None:
    Path("x.db").touch()

    check_refusal("x.db", f"x.db: an empty file, not a snapshot; {BUILD_ONE}")


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"secret text\n" * 1000,
        b'{"secret": 1}',
        b"SQLite format 3",
        b"SQLite format 3\x00",
        b"SQLite format 3\x00" + bytes(83),
        b"\xff" * 4096,
    ],
)
def test_other_file_formats_are_refused(data: bytes, check_refusal: CheckRefusal) -> None:
    Path("x.db").write_bytes(data)

    check_refusal("x.db", f"x.db: not a snapshot and not a SQLite file; {BUILD_ONE}")


def test_a_sqlite_file_of_another_program_is_refused(check_refusal: CheckRefusal) -> None:
    with closing(sqlite3.connect("x.db")) as connection, connection:
        connection.execute("CREATE TABLE secret (id TEXT)")

    check_refusal("x.db", f"x.db: a SQLite file of another program; {BUILD_ONE}")


def test_another_format_version_is_refused_with_its_remedy(
    two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA user_version = 8")

    problem = "a snapshot of format 8, but this srvstat reads format 1; upgrade srvstat"
    check_refusal("x.db", f"x.db: {problem}, or build it again")


def test_a_header_without_a_format_is_damage(
    two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA user_version = 0")

    check_refusal("x.db", f"x.db: damaged (its header); copy it again, or {BUILD_ONE}")


def test_write_ahead_log_mode_is_refused_until_it_is_reset(
    two_servers: bytes, check_refusal: CheckRefusal, cli: Cli
) -> None:
    Path("x.db").write_bytes(two_servers)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")

    check_refusal(
        "x.db",
        "x.db: set to write-ahead-log mode by another program; reset it with SQLite's"
        " PRAGMA journal_mode = DELETE, or build it again",
    )
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert cli("get", "a", "-s", "x.db").exit_code == 0


@pytest.mark.parametrize("cut", [1, 511, 4096, 10_000])
def test_a_truncated_file_is_refused(
    cut: int, two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers[:-cut])

    check_refusal("x.db", f"x.db: {WRONG_SIZE}")


def test_a_header_without_content_is_refused(
    two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers[:100])

    check_refusal("x.db", f"x.db: {WRONG_SIZE}")


@pytest.mark.parametrize("more", [b"\x00", b"secret", bytes(4096)])
def test_a_file_with_appended_bytes_is_refused(
    more: bytes, two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers + more)

    check_refusal("x.db", f"x.db: {WRONG_SIZE}")


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_a_journal_of_the_file_is_refused_until_it_is_removed(
    ending: str, two_servers: bytes, check_refusal: CheckRefusal, cli: Cli
) -> None:
    Path("x.db").write_bytes(two_servers)
    Path(f"x.db{ending}").write_bytes(b"secret")

    check_refusal("x.db", f"x.db: {journal_exists(f'x.db{ending}')}")

    Path(f"x.db{ending}").unlink()
    assert cli("get", "a", "-s", "x.db").exit_code == 0


def test_a_journal_of_the_target_of_a_link_is_refused(
    two_servers: bytes, empty_directory: Path, check_refusal: CheckRefusal
) -> None:
    Path("target.db").write_bytes(two_servers)
    Path("target.db-journal").write_bytes(b"secret")
    os.symlink("target.db", "x.db")

    check_refusal(
        "x.db", f"x.db: {journal_exists(os.path.realpath(empty_directory / 'target.db-journal'))}"
    )


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_an_empty_journal_is_ignored(ending: str, two_servers: bytes, cli: Cli) -> None:
    Path("x.db").write_bytes(two_servers)
    Path(f"x.db{ending}").touch()

    assert cli("get", "a", "-s", "x.db").exit_code == 0


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(SnapshotError, match="empty"):
        open_file("")


def test_a_closed_snapshot_is_not_read(two_servers: bytes) -> None:
    Path("x.db").write_bytes(two_servers)
    file = open_file("x.db")
    file.close()

    with pytest.raises(sqlite3.ProgrammingError):
        file.find_servers([ServerReference(identifier="a", by="id")])
