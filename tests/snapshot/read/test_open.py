"""Opening: whatever the file is, one line says so within seconds, and nothing is written."""

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, server, srvstat
from srvstat.snapshot.format.schema import FORMAT_VERSION
from srvstat.snapshot.read.connection import identify_file
from support.forging import change, forge

BUILD_ONE = "build one with `srvstat snapshot build`"
GROWN_OR_CUT = "cut short or grown since it was built; copy it again"
COMMANDS = [
    ["get", "a", "--snapshot"],
    ["compare", "a", "b", "--table", "--snapshot"],
    ["compare", "a", "b", "--json", "--snapshot"],
    ["snapshot", "info", "--json"],
    ["snapshot", "info", "--table"],
    ["snapshot", "verify"],
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory, with no snapshot named by the environment."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    return directory


@pytest.fixture
def good(build: Build) -> bytes:
    """Return the bytes of a snapshot with two servers and two days."""
    times = range(AS_OF - 2 * DAY, AS_OF + 1, DAY // 24)
    return Path(
        build(
            [server("a", hostname="secret"), server("b")],
            [(name, at, at // DAY % 7) for name in ("a", "b") for at in times],
        )
    ).read_bytes()


def lies_beside(journal: str) -> str:
    return (
        f"{journal} lies beside it, so another program may not have finished writing; close the"
        f" programs that use it, remove {journal} if it is still there, and try again"
    )


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.fixture
def refused(here: Path, cli: Cli) -> Callable[[str, str], None]:
    """Check that every command refuses a path with one line, and creates and changes nothing."""

    def check(path: str, reason: str) -> None:
        before = content(here)
        for command in COMMANDS:
            ran = cli(*command, path)
            assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {reason}\n")
        assert content(here) == before

    return check


Refused = Callable[[str, str], None]


@pytest.mark.parametrize("path", ["x.db", "x?mode=rwc.db", "x#y.db", ":memory:", "file:x.db"])
def test_a_missing_snapshot_is_not_created(path: str, refused: Refused) -> None:
    refused(path, f"{path}: no such file; {BUILD_ONE}")


def test_a_link_to_nothing_is_a_missing_snapshot(refused: Refused) -> None:
    os.symlink("gone.db", "x.db")

    refused("x.db", f"x.db: no such file; {BUILD_ONE}")


def test_a_path_below_a_file_is_refused(refused: Refused) -> None:
    Path("file").touch()

    refused("file/x.db", "file/x.db: Not a directory")


def test_a_message_is_one_line_whatever_the_name(refused: Refused) -> None:
    refused("x\ny.db", f"x\\u000ay.db: no such file; {BUILD_ONE}")


def test_a_directory_is_no_snapshot(refused: Refused) -> None:
    refused(".", ".: a directory, not a snapshot")


def test_a_device_is_no_snapshot(refused: Refused) -> None:
    refused("/dev/null", "/dev/null: a pipe, socket or device, not a snapshot")


@pytest.mark.parametrize("command", COMMANDS[:4:3])
def test_a_fifo_is_no_snapshot_and_is_not_waited_for(command: list[str]) -> None:
    os.mkfifo("x.db")

    ran = srvstat(*command, "x.db")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == "error: x.db: a pipe, socket or device, not a snapshot\n"


def test_an_empty_file_is_no_snapshot(refused: Refused) -> None:
    Path("x.db").touch()

    refused("x.db", f"x.db: an empty file, not a snapshot; {BUILD_ONE}")


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
def test_what_is_no_sqlite_file_is_no_snapshot(data: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(data)

    refused("x.db", f"x.db: not a snapshot, nor any SQLite file; {BUILD_ONE}")


def test_a_sqlite_file_of_another_program_is_no_snapshot(refused: Refused) -> None:
    with closing(sqlite3.connect("x.db")) as connection, connection:
        connection.execute("CREATE TABLE secret (id TEXT)")

    refused("x.db", f"x.db: a SQLite file of another program; {BUILD_ONE}")


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (FORMAT_VERSION + 1, "upgrade srvstat"),
        (FORMAT_VERSION + 999, "upgrade srvstat"),
        (FORMAT_VERSION - 1, "build it again"),
    ],
)
def test_another_format_is_refused_with_both_versions(
    version: int, remedy: str, good: bytes, refused: Refused
) -> None:
    Path("x.db").write_bytes(good)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")

    refused(
        "x.db",
        f"x.db: a snapshot of format {version}, and this srvstat reads format {FORMAT_VERSION};"
        f" {remedy}",
    )


def test_write_ahead_log_mode_is_refused_until_it_is_reset(
    good: bytes, refused: Refused, cli: Cli
) -> None:
    Path("x.db").write_bytes(good)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")

    refused(
        "x.db",
        "x.db: another program has set it to write-ahead-log mode; reset it with SQLite's"
        " PRAGMA journal_mode = DELETE, or build it again",
    )
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert cli("get", "a", "-s", "x.db").exit_code == 0


@pytest.mark.parametrize("cut", [1, 511, 4096, 10_000])
def test_a_file_cut_short_is_refused(cut: int, good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good[:-cut])

    refused("x.db", f"x.db: {GROWN_OR_CUT}")


def test_a_header_alone_is_refused(good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good[:100])

    refused("x.db", f"x.db: {GROWN_OR_CUT}")


@pytest.mark.parametrize("more", [b"\x00", b"secret", bytes(4096)])
def test_a_file_that_has_grown_is_refused(more: bytes, good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good + more)

    refused("x.db", f"x.db: {GROWN_OR_CUT}")


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_a_journal_beside_the_file_is_named_and_refused_until_it_is_removed(
    ending: str, good: bytes, refused: Refused, cli: Cli
) -> None:
    Path("x.db").write_bytes(good)
    Path(f"x.db{ending}").write_bytes(b"secret")

    refused("x.db", f"x.db: {lies_beside(f'x.db{ending}')}")

    Path(f"x.db{ending}").unlink()
    assert cli("get", "a", "-s", "x.db").exit_code == 0


def test_a_journal_beside_the_target_of_a_link_is_refused(
    good: bytes, here: Path, refused: Refused
) -> None:
    Path("target.db").write_bytes(good)
    Path("target.db-journal").write_bytes(b"secret")
    os.symlink("target.db", "x.db")

    refused("x.db", f"x.db: {lies_beside(os.path.realpath(here / 'target.db-journal'))}")


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_an_empty_journal_holds_nothing_back(ending: str, good: bytes, cli: Cli) -> None:
    Path("x.db").write_bytes(good)
    Path(f"x.db{ending}").touch()

    assert cli("get", "a", "-s", "x.db").exit_code == 0


OWN = "its own row"


def damaged(part: str) -> str:
    return f"x.db: damaged ({part}); copy it again, or {BUILD_ONE}"


def test_a_right_header_before_nothing_is_damaged(good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good[:100] + bytes(len(good) - 100))

    refused("x.db", damaged("the whole file"))


def test_a_right_schema_before_nothing_is_damaged(good: bytes, refused: Refused) -> None:
    page_size = int.from_bytes(good[16:18])
    Path("x.db").write_bytes(good[:page_size] + bytes(len(good) - page_size))

    refused("x.db", damaged(OWN))


def test_text_in_another_encoding_is_damage(good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good[:59] + b"\2" + good[60:])

    refused("x.db", damaged("its header"))


def test_a_path_that_sqlite_finds_too_long_is_told_as_such(good: bytes, cli: Cli) -> None:
    deep = Path(*["d" * 200] * 4).absolute()
    deep.mkdir(parents=True)
    (deep / "x.db").write_bytes(good)

    ran = cli("get", "a", "-s", str(deep / "x.db"))
    assert ran.exit_code in (0, 3)  # SQLite's limit depends on how it was built
    if ran.exit_code:
        assert ran.stderr.endswith("x.db: too long a path for SQLite; open it from nearby\n")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE snapshot",
        "DROP TABLE servers",
        "DROP TABLE observations",
        "ALTER TABLE snapshot RENAME COLUMN as_of TO secret",
        "ALTER TABLE servers RENAME COLUMN hostname TO secret",
        "ALTER TABLE observations RENAME COLUMN players TO secret",
        # A view can hide work without end behind a name we trust.
        "DROP TABLE observations; CREATE VIEW observations AS SELECT 1 AS server, 5 AS players",
    ],
)
def test_other_tables_than_ours_are_damage(statement: str, good: bytes, refused: Refused) -> None:
    Path("x.db").write_bytes(good)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.executescript(statement)

    refused("x.db", damaged("its tables"))


INFO, GET, COMPARE = COMMANDS[3], COMMANDS[0], COMMANDS[2]


@pytest.mark.parametrize(
    ("sql", "command", "part"),
    [
        ("DELETE FROM snapshot", INFO, OWN),
        ("INSERT INTO snapshot SELECT * FROM snapshot", INFO, OWN),
        ("UPDATE snapshot SET as_of = 'secret'", INFO, OWN),
        ("UPDATE snapshot SET as_of = 1.5", COMPARE, OWN),
        ("UPDATE snapshot SET as_of = as_of + 1", COMPARE, OWN),
        ("UPDATE snapshot SET sources = '[]'", INFO, OWN),
        ("UPDATE snapshot SET root = zeroblob(32)", GET, OWN),
        ("DELETE FROM directory", GET, "the directory of identifiers"),
        ("UPDATE directory SET entries = x''", GET, "the directory of identifiers"),
        (
            "UPDATE directory SET entries = substr(entries, 29)",
            INFO,
            "the directory of identifiers",
        ),
        ("UPDATE servers SET hostname = CAST(x'ff736563726574' AS TEXT)", GET, "the servers"),
        ("UPDATE servers SET hostname = x'736563726574'", GET, "server a"),
        ("UPDATE servers SET hostname = 'b'", INFO, "the servers"),
        ("UPDATE servers SET hostname = 'b' || char(0)", COMPARE, "server a"),
        ("UPDATE servers SET id = 'c' WHERE id = 'a'", GET, "server a"),
        ("UPDATE servers SET players_current = players_current + 1", COMPARE, "server a"),
        ("DELETE FROM servers WHERE id = 'a'", GET, "server a"),
        ("DELETE FROM servers WHERE id = 'b'", INFO, "the servers"),
        (
            "UPDATE servers SET server = 3 WHERE server = 2",
            INFO,
            "the servers",
        ),
        ("UPDATE servers SET days = x'', day_digests = x''", COMPARE, "server a"),
        ("UPDATE servers SET band_count = 0, bands = x''", COMPARE, "server a"),
        ("DELETE FROM days", COMPARE, "day 2026-02-27 of server a"),
        ("DELETE FROM days WHERE server_day / 10000000 = 2", COMPARE, "day 2026-02-27 of server b"),
        ("UPDATE days SET prefix_count = prefix_count + 1", COMPARE, "day 2026-02-27 of server a"),
        ("UPDATE days SET prefix_count = 'secret'", COMPARE, "day 2026-02-27 of server a"),
        ("UPDATE days SET players = CAST(players AS TEXT)", COMPARE, "day 2026-02-27 of server a"),
    ],
)
def test_a_part_that_was_changed_is_damage_and_has_its_name(
    sql: str, command: list[str], part: str, good: bytes, cli: Cli
) -> None:
    Path("x.db").write_bytes(good)
    change("x.db", sql)

    ran = cli(*command, "x.db")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {damaged(part)}\n")


@pytest.mark.parametrize(
    ("sql", "command", "part"),
    [
        ("UPDATE snapshot SET as_of = 'secret'", COMPARE, OWN),
        ("UPDATE snapshot SET as_of = 4611686018427387904", INFO, OWN),
        ("UPDATE snapshot SET as_of = -1", INFO, OWN),
        ("UPDATE snapshot SET first_observed_at = 'secret'", INFO, OWN),
        ("UPDATE snapshot SET first_observed_at = -1", INFO, OWN),
        ("UPDATE snapshot SET observation_count = 'secret'", INFO, OWN),
        ("UPDATE snapshot SET sources = 'secret'", INFO, OWN),
        ("UPDATE snapshot SET sources = '5'", INFO, OWN),
        ("UPDATE snapshot SET sources = '[\"\\ud800\"]'", INFO, OWN),
        ("UPDATE servers SET hostname = x'736563726574'", GET, "server a"),
        ("UPDATE servers SET hostname = x'736563726574'", INFO, "the servers"),
        ("UPDATE servers SET game = 'secret'", GET, "server a"),
        ("UPDATE servers SET players_current = 'secret'", COMPARE, "server a"),
        ("UPDATE servers SET tags = '{\"secret\"'", GET, "server a"),
        ("UPDATE servers SET tags = '[5]'", GET, "server a"),
        ("UPDATE servers SET tags = '[\"\\ud800\"]'", GET, "server a"),
        ("UPDATE servers SET tags = printf('%.*c', 100000, '[')", GET, "server a"),
        ("UPDATE servers SET first_seen_at = 'secret'", GET, "server a"),
        ("UPDATE servers SET updated_at = 4611686018427387904", GET, "server a"),
        ("UPDATE days SET prefix_count = 'secret'", COMPARE, "day 2026-02-27 of server a"),
        ("UPDATE days SET prefix_count = NULL", COMPARE, "day 2026-02-27 of server a"),
        ("UPDATE days SET players = 'secret'", COMPARE, "day 2026-02-27 of server a"),
        ("UPDATE days SET cumulative = 5", COMPARE, "day 2026-02-27 of server a"),
    ],
)
def test_what_no_build_makes_is_damage_even_with_all_its_digests(
    sql: str, command: list[str], part: str, good: bytes, cli: Cli
) -> None:
    Path("x.db").write_bytes(good)
    forge("x.db", sql)

    ran = cli(*command, "x.db")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {damaged(part)}\n")


def test_a_value_of_no_type_of_ours_has_no_digest(good: bytes, cli: Cli) -> None:
    Path("x.db").write_bytes(good)
    change("x.db", "UPDATE days SET prefix_sum = 1.5")

    assert cli(*COMPARE, "x.db").stderr == f"error: {damaged('day 2026-02-27 of server a')}\n"


ODD_NAMES = [b"a#b.db", b"a?mode=rwc.db", b"a%41b.db", b"a b.db", b"a\nb.db", b":memory:"]
ODDER_NAMES = [b"file:a.db", b"a;b&c='d'.db", "ä夜.db".encode(), b"-"]
NOT_UTF8 = pytest.param(
    b"\xff\xfe.db",
    marks=pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8"),
)


@pytest.mark.parametrize("name", [*ODD_NAMES, *ODDER_NAMES, NOT_UTF8])
def test_a_snapshot_may_have_any_name(name: bytes, good: bytes, here: Path, cli: Cli) -> None:
    path = os.fsdecode(name)
    Path(path).write_bytes(good)

    assert cli("get", "a", f"--snapshot={path}").json["data"]["id"] == "a"
    assert cli("snapshot", "info", "--json", "--", path).json["servers"] == 2
    assert [found.name for found in here.iterdir()] == [path]


def test_a_path_may_begin_with_two_slashes(good: bytes, here: Path, cli: Cli) -> None:
    Path("x.db").write_bytes(good)

    assert cli("get", "a", "-s", f"/{here}/x.db").exit_code == 0


def test_a_snapshot_that_may_only_be_read_is_left_as_it_is(
    good: bytes, here: Path, cli: Cli
) -> None:
    Path("x.db").write_bytes(good)
    Path("x.db").chmod(0o400)

    for command in COMMANDS:
        assert cli(*command, "x.db").exit_code == 0
    assert content(here) == {"x.db": good}


@pytest.fixture
def three(build: Build, here: Path) -> Path:
    """Put down three snapshots, of one to three servers."""
    for count, name in enumerate(("snapshot.db", "environment.db", "option.db"), 1):
        names = "abc"[:count]
        path = build([server(name) for name in names], [(name, AS_OF, 1) for name in names])
        Path(path).rename(here / name)
    return here


def test_an_option_wins_over_the_environment_and_that_over_the_file_at_hand(
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


@pytest.mark.usefixtures("three")
def test_a_snapshot_that_is_named_and_missing_is_not_replaced_by_another(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "gone.db")

    assert cli("get", "a").exit_code == 3
    assert cli("get", "a").stderr == f"error: gone.db: no such file; {BUILD_ONE}\n"


def test_without_any_snapshot_the_error_says_where_one_is_looked_for(here: Path, cli: Cli) -> None:
    for command in (["get", "a"], ["compare", "a", "b"], ["snapshot", "info"]):
        ran = cli(*command)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == (
            "error: no snapshot: give --snapshot PATH, set SRVSTAT_SNAPSHOT, or have snapshot.db"
            " in the current directory\n"
        )
    assert content(here) == {}


def test_a_file_has_another_identity_than_what_was_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    assert identify_file(str(path)) is None
    path.write_bytes(b"one")
    first = identify_file(str(path))
    assert first == identify_file(str(path))

    (tmp_path / "next").write_bytes(b"two")
    (tmp_path / "next").replace(path)

    assert identify_file(str(path)) not in (None, first)
