"""Refuse files that are not snapshots: with one line, within seconds, without writing."""

import os
import shutil
import signal
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from conftest import AS_OF, Build, Cli, server, srvstat
from snapshot.observed import BUILD_ONE, COMMANDS
from srvstat import open_snapshot
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection
from srvstat.snapshot.read.file import open_file
from support.snapshots import read_directory

pytestmark = pytest.mark.usefixtures("empty_directory")

MISSING = ["x.db", "x?mode=rwc.db", "x#y.db", ":memory:", "file:x.db"]
WRONG_SIZE = "damaged; copy or build it again"


CheckRefusal = Callable[[str, str], None]


def journal_exists(journal: str) -> str:
    return (
        f"{journal} exists, so another program may not have finished writing; close the"
        f" programs that use it, remove {journal} if it still exists, and try again"
    )


@pytest.fixture
def check_refusal(empty_directory: Path, cli: Cli) -> CheckRefusal:
    """Check that every command refuses a path with one line, and creates and changes nothing."""

    def check(path: str, reason: str) -> None:
        before = read_directory(empty_directory)
        for command in COMMANDS:
            ran = cli(*command, path)
            assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {reason}\n")
        assert read_directory(empty_directory) == before

    return check


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        *((name, f"no such file; {BUILD_ONE}") for name in MISSING),
        (
            ".",
            (
                "a directory without manifest.json, not a snapshot; name a snapshot file, or a"
                " directory from `srvstat fleet --snapshots`"
            ),
        ),
        ("/dev/null", "a pipe, socket or device, not a snapshot"),
    ],
)
def test_what_is_no_file_is_refused(path: str, problem: str, check_refusal: CheckRefusal) -> None:
    check_refusal(path, f"{path}: {problem}")


@pytest.mark.parametrize("command", COMMANDS[:4:3])
def test_a_fifo_is_refused_without_waiting(command: list[str]) -> None:
    os.mkfifo("x.db")

    ran = srvstat(*command, "x.db")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == "error: x.db: a pipe, socket or device, not a snapshot\n"


OTHER_FILES = [
    b"x",
    b"secret text\n" * 1000,
    b'{"secret": 1}',
    b"SQLite format 3",
    b"SQLite format 3\x00",
    b"SQLite format 3\x00" + bytes(83),
    b"\xff" * 4096,
]


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"", "an empty file, not a snapshot"), *((data, "not a snapshot") for data in OTHER_FILES)],
)
def test_other_file_formats_are_refused(
    data: bytes, problem: str, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(data)

    check_refusal("x.db", f"x.db: {problem}; {BUILD_ONE}")


def test_a_sqlite_file_of_another_program_is_refused(check_refusal: CheckRefusal) -> None:
    with closing(sqlite3.connect("x.db")) as connection, connection:
        connection.execute("CREATE TABLE secret (id TEXT)")

    check_refusal("x.db", f"x.db: a SQLite file, but not a snapshot; {BUILD_ONE}")


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (0, f"damaged (its header); copy it again, or {BUILD_ONE}"),
        (
            8,
            (
                "a snapshot of format 8, but this srvstat reads format 2; upgrade srvstat, or"
                " build it again"
            ),
        ),
    ],
)
def test_another_format_version_is_refused_with_its_remedy(
    version: int, problem: str, two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")

    check_refusal("x.db", f"x.db: {problem}")


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


@pytest.mark.parametrize("end", [-1, -511, -4096, -10_000, 1, 100, 4096])
def test_a_truncated_or_extended_file_is_refused(
    end: int, two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers[:end] if end < 0 else two_servers + bytes(end))

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

    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "gone.db")
    missing = "gone.db: no such file; build one with `srvstat snapshot build`\n"
    assert cli("get", "c").stderr == f"error: SRVSTAT_SNAPSHOT: {missing}"
    assert cli("snapshot", "verify").stderr == f"error: SRVSTAT_SNAPSHOT: {missing}"
    assert cli("get", "c", "--snapshot=gone.db").stderr == f"error: {missing}"


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


Replacing = Callable[[int], None]


@pytest.fixture
def replace_before_opening(
    demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Replacing:
    """Replace the snapshot a number of times just before SQLite opens it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(demo_snapshot, "snapshot.db")
    connect = sqlite3.connect
    times_left = 0

    def late(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal times_left
        if times_left:
            times_left -= 1
            shutil.copy("snapshot.db", "new.db")
            os.replace("new.db", "snapshot.db")
        connection: sqlite3.Connection = connect(*arguments, **options)
        return connection

    def replace(times: int) -> None:
        nonlocal times_left
        times_left = times
        monkeypatch.setattr(sqlite3, "connect", late)

    return replace


def test_a_snapshot_replaced_while_opening_is_opened_again(
    replace_before_opening: Replacing,
) -> None:
    replace_before_opening(3)

    with open_snapshot("snapshot.db") as snapshot:
        assert snapshot.get("harbor-city").data.id == "harbor-city"


def test_a_snapshot_replaced_at_every_attempt_is_refused(replace_before_opening: Replacing) -> None:
    replace_before_opening(1000)

    with pytest.raises(SnapshotError) as given_up:
        open_snapshot("snapshot.db")

    assert given_up.value.reason == "snapshot.db: keeps being replaced; try again"


@pytest.fixture
def connection(build: Build) -> Iterator[SnapshotConnection]:
    """Open a snapshot of 20 blocks."""
    path = build(
        servers := [server(f"s{at}") for at in range(20)],
        [(one["id"], AS_OF, 5) for one in servers],
    )
    with closing(open_connection(path)) as opened:
        yield opened


def test_a_slow_statement_is_interrupted(connection: SnapshotConnection) -> None:
    endless = "SELECT count(*) FROM blocks a, blocks b, blocks c, blocks d, blocks e, blocks f"

    with pytest.raises(SnapshotError, match=r"damaged \(a part\)"):
        connection.fetch_rows(endless, part="a part", seconds=0.05)
    assert connection.fetch_rows("SELECT count(*) FROM blocks", part="") == [(20,)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO directory VALUES (1, x'00', x'00')",
        "UPDATE servers SET hostname = ''",
        "DELETE FROM blocks",
        "CREATE TABLE more (a)",
        "CREATE TEMP TABLE more (a)",
        "DROP TABLE blocks",
        "ATTACH 'other.db' AS other",
        "VACUUM",
        "ANALYZE",
        "REINDEX",
    ],
)
def test_statements_that_write_are_denied(sql: str, connection: SnapshotConnection) -> None:
    before = Path(connection.path).read_bytes()

    with pytest.raises(SnapshotError, match=r"damaged \(a part\)"):
        connection.fetch_rows(sql, part="a part")
    assert Path(connection.path).read_bytes() == before


class StoppedError(Exception):
    """Like SystemExit of the command line's handler."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise StoppedError


@pytest.fixture
def _stoppable() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_stoppable")
def test_an_exception_of_a_signal_handler_passes_through_sqlite(demo_snapshot: str) -> None:
    with closing(open_file(demo_snapshot)) as snapshot:
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        with pytest.raises(StoppedError):
            deque(iter(snapshot.connection.check_structure, "never"))
