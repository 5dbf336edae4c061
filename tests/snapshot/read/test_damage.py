"""Detect changes to a built snapshot that SQLite alone does not notice."""

import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.contract.errors import OutputError
from srvstat.snapshot.digests import digest_row, seal
from srvstat.snapshot.rows import Bucket, FileRow
from srvstat.snapshot.write.build import check_draft
from support.snapshots import PAGE_SIZE, change, forge

BUILD_ONE = "build one with `srvstat snapshot build`"
COMPARE = ("compare", "harbor-city", "old-guard")

TABLES = {
    "a missing table": "DROP TABLE blocks",
    "a missing view": "DROP VIEW observations",
    "another index": "CREATE INDEX more ON blocks (players)",
    "another view": (
        "DROP VIEW observations; CREATE VIEW observations AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS server, i AS observed_at, i AS players FROM n"
    ),
}

BLOCKS = {
    "no observations": "UPDATE blocks SET observation_count = 0",
    "one more observation": "UPDATE blocks SET observation_count = observation_count + 1",
    "players of no valid width": "UPDATE blocks SET players = substr(players, 2)",
    "times of no valid width": "UPDATE blocks SET times = substr(times, 2)",
    "no unit of time": "UPDATE blocks SET time_unit = 0",
    "a sum that is a number": "UPDATE blocks SET sum_before = 5",
    "a sum that exceeds a double": (
        "UPDATE blocks SET sum_before = CAST(zeroblob(200) || x'ff' AS BLOB)"
    ),
    "sums of no marks": "UPDATE blocks SET mark_sums = x''",
    "no ends of blocks": "UPDATE servers SET block_ends = x''",
    "half an end of a block": "UPDATE servers SET block_ends = substr(block_ends, 5)",
    "more observations than blocks": "UPDATE servers SET observation_count = 999999",
    "counts of no valid width": "UPDATE servers SET counts = substr(counts, 2)",
    "no sum": "UPDATE servers SET player_sum = x''",
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


@pytest.mark.parametrize("sql", BLOCKS.values(), ids=BLOCKS)
def test_values_that_no_build_writes_are_refused_by_whatever_reads_them(
    sql: str, copy: str, cli: Cli
) -> None:
    forge(copy, sql)

    for command in (
        COMPARE,
        (*COMPARE, "--range", "1y"),
        (*COMPARE, "--at", "2026-02-10T00:00Z"),
        ("stats", "harbor-city", "--range", "all"),
        ("get", "harbor-city"),
    ):
        ran = cli(*command, "--json", "-s", copy)
        assert ran.exit_code == 0 or (ran.exit_code, ran.stdout) == (3, b""), command
        if ran.exit_code:
            assert ran.stderr.startswith(f"error: {copy}: damaged (")
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


def read_row(path: str) -> FileRow:
    """Return the row of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())


def test_an_incomplete_draft_is_refused(copy: str) -> None:
    row = read_row(copy)
    check_draft("out.db", copy, row)

    with pytest.raises(OutputError, match=r"^out\.db: the written file does not read back"):
        check_draft("out.db", copy, row._replace(repeated=row.repeated + 1))
    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", f"{copy}.gone", row)


def test_the_rows_that_an_update_wrote_are_read_back(copy: str, demo_snapshot: str) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        for step in (1, -1):  # SQLite does not write what does not change
            connection.execute("UPDATE snapshot SET repeated = repeated + ?", (step,))
        own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())

    check_draft(demo_snapshot, copy, own, {"harbor-city": 0})

    for output, row in ((copy, own), (demo_snapshot, own._replace(repeated=own.repeated + 1))):
        with pytest.raises(OutputError, match="does not read back"):
            check_draft(output, copy, row, {"harbor-city": 0})
    change(copy, "UPDATE blocks SET marks = zeroblob(length(marks))")
    check_draft(demo_snapshot, copy, own, {})
    with pytest.raises(OutputError, match="does not read back"):
        check_draft(demo_snapshot, copy, own, {"harbor-city": 0})


def test_a_draft_with_a_directory_that_lacks_identifiers_is_refused(copy: str) -> None:
    replace_bucket(copy, Bucket(1, b"", b""))

    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", copy, read_row(copy))


def test_a_draft_with_identifiers_that_no_request_accepts_is_checked(copy: str) -> None:
    forge(copy, "UPDATE servers SET cfx_id = 'not an identifier' WHERE server = 1")

    check_draft("out.db", copy, read_row(copy))


def test_a_draft_is_checked_beyond_what_answers_read(copy: str, cli: Cli) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_servers_1'"
        (page,) = connection.execute(query).fetchone()
    with Path(copy).open("r+b") as file:
        file.seek((page - 1) * PAGE_SIZE)
        file.write(b"\0")

    assert cli(*COMPARE, "-s", copy).exit_code == 0
    with pytest.raises(OutputError, match="does not read back"):
        check_draft("out.db", copy, read_row(copy))
