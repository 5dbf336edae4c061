"""Detect changes to a built snapshot that SQLite alone does not notice."""

import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.contract.errors import OutputError
from srvstat.snapshot.format.digest import digest_row, seal
from srvstat.snapshot.format.rows import Bucket, FileRow
from srvstat.snapshot.write.database import check_changes, check_draft
from support.snapshots import forge

BUILD_ONE = "build one with `srvstat snapshot build`"
COMPARE = ("compare", "harbor-city", "old-guard")

TABLES = {
    "a missing table": "DROP TABLE intervals",
    "a missing view": "DROP VIEW observations",
    "another index": "CREATE INDEX more ON days (players)",
    "another view": (
        "DROP VIEW observations; CREATE VIEW observations AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS server, i AS observed_at, i AS players FROM n"
    ),
}

DAYS = {
    "a prefix with more observations than exist": (
        "UPDATE days SET prefix_count = prefix_count + 1000000"
    ),
    "a day without observations": "UPDATE days SET observation_count = 0",
    "a day with one more observation": "UPDATE days SET observation_count = observation_count + 1",
    "a day with players of no valid width": "UPDATE days SET players = substr(players, 2)",
    "a day with times of no valid width": "UPDATE days SET times = substr(times, 2)",
    "a day with half a histogram": "UPDATE days SET cumulative = substr(cumulative, 2)",
    "a day with an empty histogram": "UPDATE days SET cumulative = x''",
    "a day without a sum": "UPDATE days SET prefix_sum = NULL",
    "a day whose sum is a number": "UPDATE days SET prefix_sum = 5",
    "a day whose sum exceeds a double": (
        "UPDATE days SET prefix_sum = CAST(zeroblob(200) || x'ff' AS BLOB)"
    ),
    "a day without the players before and after it": (
        "UPDATE days SET players_before = NULL, players_after = NULL,"
        " times = zeroblob(length(times))"
    ),
}


@pytest.fixture
def copy(tmp_path: Path, demo_snapshot: str) -> str:
    """Copy the demo's snapshot."""
    path = str(tmp_path / "damaged.db")
    shutil.copy(demo_snapshot, path)
    return path


def check_refused(cli: Cli, path: str, part: str) -> None:
    for form in ("--json", "--table"):
        ran = cli(*COMPARE, "-s", path, form)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == f"error: {path}: damaged ({part}); copy it again, or {BUILD_ONE}\n"


@pytest.mark.parametrize("sql", TABLES.values(), ids=TABLES)
def test_tables_with_another_definition_are_refused(sql: str, copy: str, cli: Cli) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(sql)

    check_refused(cli, copy, "its tables")


@pytest.mark.parametrize("sql", DAYS.values(), ids=DAYS)
def test_days_that_no_build_writes_are_refused_even_with_matching_digests(
    sql: str, copy: str, cli: Cli
) -> None:
    forge(copy, sql)

    is_of_other_kind = sql in (DAYS["a day without a sum"], DAYS["a day whose sum is a number"])
    check_refused(
        cli, copy, "day 2026-01-30 of server harbor-city" if is_of_other_kind else "the days"
    )
    assert cli("snapshot", "verify", copy).exit_code == 3


def test_a_forged_count_changes_the_root(copy: str, demo_snapshot: str, cli: Cli) -> None:
    forge(copy, "UPDATE servers SET players_current = 7 WHERE id = 'harbor-city'")

    root = cli("snapshot", "info", "--json", demo_snapshot).json["root"]
    assert cli("get", "harbor-city", "-s", copy).json["data"]["players"]["current"] == 7
    assert cli("snapshot", "verify", copy).exit_code == 0
    assert cli("snapshot", "verify", copy, "--expect", root).exit_code == 5


def replace_bucket(path: str, bucket: Bucket) -> None:
    """Replace a row of the directory, and update the digests that cover it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("REPLACE INTO directory VALUES (?, ?, ?)", bucket)
        rows = connection.execute("SELECT * FROM directory ORDER BY bucket").fetchall()
        own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
        own = seal(
            own._replace(bucket_digests=b"".join(digest_row("directory", row) for row in rows))
        )
        query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
        connection.execute(query, (own.bucket_digests, own.root, own.digest))


def read_bucket(path: str, bucket: int) -> Bucket:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT * FROM directory WHERE bucket = ?"
        return Bucket._make(connection.execute(query, (bucket,)).fetchone())


def test_the_row_decides_between_identifiers_with_equal_hashes(copy: str, cli: Cli) -> None:
    bucket, entries, servers = read_bucket(copy, 0)
    asked, nobody = (sha256(b"id\0" + name).digest()[:8] for name in (b"harbor-city", b"nobody"))
    hashes = [entries[at : at + 8] for at in range(0, len(entries), 24)]
    other = next(at for at, each in enumerate(hashes) if each != asked)
    digest, number = entries[24 * other + 8 : 24 * other + 24], servers[4 * other : 4 * other + 4]
    replace_bucket(
        copy,
        Bucket(bucket, asked + digest + nobody + digest + entries, number + number + servers),
    )

    assert cli("get", "harbor-city", "-s", copy).json["data"]["id"] == "harbor-city"
    assert cli("get", "nobody", "-s", copy).exit_code == 44


def test_a_root_of_other_content_is_damage(copy: str, cli: Cli) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
        own = own._replace(root=bytes(32))
        digest = digest_row("snapshot", own[:-1])
        connection.execute("UPDATE snapshot SET root = ?, digest = ?", (own.root, digest))

    check_refused(cli, copy, "the table snapshot")


@pytest.mark.parametrize("change", [slice(0, -16), slice(0, 16)])
def test_digests_of_other_buckets_are_damage(change: slice, copy: str, cli: Cli) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
        own = seal(own._replace(bucket_digests=own.bucket_digests[change] + bytes(16)))
        query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
        connection.execute(query, (own.bucket_digests, own.root, own.digest))

    ran = cli("snapshot", "verify", copy)
    assert (ran.exit_code, ran.stdout) == (3, b"")


def test_an_incomplete_draft_is_refused(copy: str) -> None:
    check_draft("out.db", copy, 12_043)

    with pytest.raises(OutputError, match=r"^out\.db: the written file does not read back"):
        check_draft("out.db", copy, 12_042)
    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", f"{copy}.gone", 12_043)


def test_the_rows_that_an_update_wrote_are_read_back(copy: str, demo_snapshot: str) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        for change in (1, -1):  # SQLite does not write what does not change
            connection.execute("UPDATE snapshot SET repeated = repeated + ?", (change,))
        own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
        day = connection.execute("SELECT * FROM days").fetchone()
    digest = digest_row("days", day)

    check_changes(demo_snapshot, copy, {"days": {day[0]: digest}}, own)

    for output, written, row in (
        (copy, {day[0]: digest}, own),  # nothing was written
        (demo_snapshot, {day[0]: bytes(16)}, own),
        (demo_snapshot, {day[0] + 5_000_000: digest}, own),
        (demo_snapshot, {}, own._replace(repeated=own.repeated + 1)),
    ):
        with pytest.raises(OutputError, match="does not read back"):
            check_changes(output, copy, {"days": written}, row)


def test_a_draft_with_a_directory_that_lacks_identifiers_is_refused(copy: str) -> None:
    replace_bucket(copy, Bucket(1, b"", b""))

    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", copy, 12_043)


def test_a_draft_with_identifiers_that_no_request_accepts_is_checked(copy: str) -> None:
    forge(copy, "UPDATE servers SET cfx_id = 'not an identifier' WHERE server = 1")

    check_draft("out.db", copy, 12_043)


def test_a_draft_is_checked_beyond_what_answers_read(copy: str, cli: Cli) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_servers_1'"
        (page,) = connection.execute(query).fetchone()
    with Path(copy).open("r+b") as file:
        file.seek((page - 1) * 16_384)
        file.write(b"\0")

    assert cli(*COMPARE, "-s", copy).exit_code == 0
    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", copy, 12_043)
