"""Detect changes to a built snapshot that SQLite alone does not notice."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest

from conftest import DAY, Cli, build_in, csv, ndjson, server
from snapshot.observed import BUILD_ONE, COMMANDS, FILE_ROW, format_damage
from srvstat.contract.errors import OutputError
from srvstat.snapshot.rows import Bucket, FileRow, digest_row, read_schema, seal
from srvstat.snapshot.write.build import check_draft
from support.snapshots import PAGE_SIZE, change, forge

COMPARE = ("compare", "harbor-city", "old-guard")


BLOCKS = [
    "UPDATE blocks SET observation_count = 0",
    "UPDATE blocks SET observation_count = observation_count + 1",
    "UPDATE blocks SET players = substr(players, 2)",
    "UPDATE blocks SET times = substr(times, 2)",
    "UPDATE blocks SET time_unit = 0",
    "UPDATE blocks SET sum_before = 5",
    "UPDATE blocks SET sum_before = CAST(zeroblob(200) || x'ff' AS BLOB)",
    "UPDATE blocks SET mark_sums = x''",
    "UPDATE servers SET block_ends = x''",
    "UPDATE servers SET block_ends = substr(block_ends, 5)",
    "UPDATE servers SET observation_count = 999999",
    "UPDATE servers SET counts = substr(counts, 2)",
    "UPDATE servers SET player_sum = x''",
]
"""Impossible values, such as a sum beyond a double or a blob of no valid width."""


@pytest.fixture
def copy(tmp_path: Path, demo_snapshot: str) -> str:
    """Copy the demo's snapshot."""
    path = str(tmp_path / "damaged.db")
    shutil.copy(demo_snapshot, path)
    return path


def test_a_forged_count_changes_the_root(copy: str, demo_snapshot: str, cli: Cli) -> None:
    forge(copy, "UPDATE servers SET players_current = 7 WHERE id = 'harbor-city'")

    root = cli("snapshot", "info", "--json", demo_snapshot).json["root"]
    assert cli("get", "harbor-city", "-s", copy).json["data"]["players"]["current"] == 7
    assert cli("snapshot", "verify", copy).exit_code == 0
    assert cli("snapshot", "verify", copy, "--expect", root).exit_code == 5


def read_row(path: str) -> FileRow:
    """Return the row of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())


def write_row(path: str, row: FileRow) -> None:
    """Store the digests in the row of a file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
        connection.execute(query, (row.bucket_digests, row.root, row.digest))


def replace_bucket(path: str, bucket: Bucket) -> None:
    """Replace a row of the directory, and update the digests that cover it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("REPLACE INTO directory VALUES (?, ?, ?)", bucket)
        rows = connection.execute("SELECT * FROM directory ORDER BY bucket").fetchall()
    digests = b"".join(digest_row("directory", row) for row in rows)
    write_row(path, seal(read_row(path)._replace(bucket_digests=digests)))


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
        copy, Bucket(bucket, asked + digest + nobody + digest + entries, number + number + servers)
    )

    assert cli("get", "harbor-city", "-s", copy).json["data"]["id"] == "harbor-city"
    assert cli("get", "nobody", "-s", copy).exit_code == 44


def test_a_root_of_other_content_is_damage(copy: str, cli: Cli) -> None:
    row = read_row(copy)._replace(root=bytes(32))
    write_row(copy, row._replace(digest=digest_row("snapshot", row[:-1])))

    ran = cli(*COMPARE, "-s", copy)
    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == f"error: {copy}: damaged ({FILE_ROW}); copy it again, or {BUILD_ONE}\n"


@pytest.mark.parametrize("change", [slice(0, -16), slice(0, 16)])
def test_digests_of_other_buckets_are_damage(change: slice, copy: str, cli: Cli) -> None:
    row = read_row(copy)
    write_row(copy, seal(row._replace(bucket_digests=row.bucket_digests[change] + bytes(16))))

    ran = cli("snapshot", "verify", copy)
    assert (ran.exit_code, ran.stdout) == (3, b"")


def test_an_incomplete_draft_is_refused(copy: str) -> None:
    row = read_row(copy)
    check_draft("out.db", copy, row)

    with pytest.raises(OutputError, match=r"^out\.db: verification after writing failed"):
        check_draft("out.db", copy, row._replace(repeated=row.repeated + 1))
    with pytest.raises(OutputError, match="verification after writing failed"):
        check_draft("out.db", f"{copy}.gone", row)


def test_the_rows_that_an_update_wrote_are_read_back(copy: str, demo_snapshot: str) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        for step in (1, -1):  # SQLite does not write what does not change
            connection.execute("UPDATE snapshot SET repeated = repeated + ?", (step,))
    own = read_row(copy)

    check_draft(demo_snapshot, copy, own, {"harbor-city": 0})

    for output, row in ((copy, own), (demo_snapshot, own._replace(repeated=own.repeated + 1))):
        with pytest.raises(OutputError, match="verification after writing failed"):
            check_draft(output, copy, row, {"harbor-city": 0})
    change(copy, "UPDATE blocks SET marks = zeroblob(length(marks))")
    check_draft(demo_snapshot, copy, own, {})
    with pytest.raises(OutputError, match="verification after writing failed"):
        check_draft(demo_snapshot, copy, own, {"harbor-city": 0})


def test_a_draft_with_a_directory_that_lacks_identifiers_is_refused(copy: str) -> None:
    replace_bucket(copy, Bucket(1, b"", b""))

    with pytest.raises(OutputError, match="verification after writing failed"):
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
    with pytest.raises(OutputError, match="verification after writing failed"):
        check_draft("out.db", copy, read_row(copy))


INFO, GET, COMPARE_A_AND_B = COMMANDS[3], COMMANDS[0], COMMANDS[2]
VERIFY = ["snapshot", "verify"]
BLOCK = "observations of server {} from 2026-02-27T12:00:00.000Z to 2026-03-01T12:00:00.000Z"
CheckRefusal = Callable[[str], None]


@pytest.fixture
def check_refusal(cli: Cli) -> CheckRefusal:
    """Check that every command names a part of x.db as damaged."""

    def check(part: str) -> None:
        for command in COMMANDS:
            ran = cli(*command, "x.db")
            assert (ran.exit_code, ran.stdout, ran.stderr) == (
                3,
                b"",
                f"error: {format_damage(part)}\n",
            )

    return check


@pytest.mark.usefixtures("empty_directory")
def test_zeros_after_a_valid_header_and_another_text_encoding_are_damage(
    two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers[:100] + bytes(len(two_servers) - 100))
    check_refusal("the whole file")

    Path("x.db").write_bytes(two_servers[:59] + b"\2" + two_servers[60:])
    check_refusal("its header")


@pytest.mark.usefixtures("empty_directory")
@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE snapshot",
        "DROP TABLE servers",
        "DROP TABLE blocks",
        "DROP VIEW observations",
        "ALTER TABLE snapshot RENAME COLUMN as_of TO secret",
        "ALTER TABLE servers RENAME COLUMN hostname TO secret",
        "ALTER TABLE blocks RENAME COLUMN marks TO secret",
        "CREATE INDEX more ON blocks (players)",
        "DROP VIEW observations; CREATE VIEW observations AS SELECT 1 AS server",
        # A view under a trusted name could compute endlessly.
        "DROP TABLE blocks; CREATE VIEW blocks AS SELECT 1 AS server_block, 5 AS players",
    ],
)
def test_changed_tables_are_damage(
    statement: str, two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers)
    with closing(sqlite3.connect("x.db")) as connection:
        connection.executescript(statement)

    check_refusal("its tables")


CHANGED = [
    ("DELETE FROM snapshot", INFO, FILE_ROW),
    ("INSERT INTO snapshot SELECT * FROM snapshot", INFO, FILE_ROW),
    ("UPDATE snapshot SET as_of = 'secret'", INFO, FILE_ROW),
    ("UPDATE snapshot SET as_of = 1.5", COMPARE_A_AND_B, FILE_ROW),
    ("UPDATE snapshot SET as_of = as_of + 1", COMPARE_A_AND_B, FILE_ROW),
    ("UPDATE snapshot SET sources = '[]'", INFO, FILE_ROW),
    ("UPDATE snapshot SET root = zeroblob(32)", GET, FILE_ROW),
    ("DELETE FROM directory", GET, "the directory of identifiers"),
    ("UPDATE directory SET entries = x''", GET, "the directory of identifiers"),
    ("UPDATE directory SET entries = substr(entries, 25)", INFO, "the directory of identifiers"),
    ("UPDATE directory SET servers = zeroblob(8)", COMPARE_A_AND_B, "server a"),
    ("UPDATE directory SET servers = x''", GET, "server a"),
    ("UPDATE directory SET servers = 5", GET, "the directory of identifiers"),
    ("UPDATE servers SET hostname = CAST(x'ff736563726574' AS TEXT)", GET, "the servers"),
    ("UPDATE servers SET hostname = x'736563726574'", GET, "server a"),
    ("UPDATE servers SET hostname = 'b'", INFO, "the servers"),
    ("UPDATE servers SET hostname = 'b' || char(0)", COMPARE_A_AND_B, "server a"),
    ("UPDATE servers SET id = 'c' WHERE id = 'a'", GET, "server a"),
    ("UPDATE servers SET players_current = players_current + 1", COMPARE_A_AND_B, "server a"),
    ("DELETE FROM servers WHERE id = 'a'", GET, "server a"),
    ("DELETE FROM servers WHERE id = 'b'", INFO, "the servers"),
    ("UPDATE servers SET server = 3 WHERE server = 2", INFO, "the servers"),
    ("UPDATE servers SET block_digests = x''", COMPARE_A_AND_B, "server a"),
    ("UPDATE servers SET counts = x''", COMPARE_A_AND_B, "server a"),
    ("DELETE FROM blocks", COMPARE_A_AND_B, BLOCK.format("a")),
    ("DELETE FROM blocks WHERE server_block > 2000000000 - 1", COMPARE_A_AND_B, BLOCK.format("b")),
    ("UPDATE blocks SET sum_before = x'01'", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET sum_before = 1.5", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET counts_before = x'01'", VERIFY, BLOCK.format("a")),
    ("UPDATE blocks SET marks = x'0100'", VERIFY, BLOCK.format("a")),
    ("UPDATE blocks SET time_unit = 'secret'", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET players = CAST(players AS TEXT)", COMPARE_A_AND_B, BLOCK.format("a")),
]
FORGED = [
    ("UPDATE snapshot SET as_of = 'secret'", COMPARE_A_AND_B, FILE_ROW),
    ("UPDATE snapshot SET as_of = 4611686018427387904", INFO, FILE_ROW),
    ("UPDATE snapshot SET as_of = -1", INFO, FILE_ROW),
    ("UPDATE snapshot SET first_observed_at = 'secret'", INFO, FILE_ROW),
    ("UPDATE snapshot SET first_observed_at = -1", INFO, FILE_ROW),
    ("UPDATE snapshot SET observation_count = 'secret'", INFO, FILE_ROW),
    ("UPDATE snapshot SET sources = 'secret'", INFO, FILE_ROW),
    ("UPDATE snapshot SET sources = '5'", INFO, FILE_ROW),
    ("UPDATE snapshot SET sources = '[\"\\ud800\"]'", INFO, FILE_ROW),
    ("UPDATE servers SET hostname = x'736563726574'", GET, "server a"),
    ("UPDATE servers SET hostname = x'736563726574'", INFO, "the servers"),
    ("UPDATE servers SET game = 'secret'", GET, "server a"),
    ("UPDATE servers SET players_current = 'secret'", COMPARE_A_AND_B, "server a"),
    ("UPDATE servers SET tags = '{\"secret\"'", GET, "server a"),
    ("UPDATE servers SET tags = '[5]'", GET, "server a"),
    ("UPDATE servers SET tags = '[\"\\ud800\"]'", GET, "server a"),
    ("UPDATE servers SET tags = printf('%.*c', 100000, '[')", GET, "server a"),
    ("UPDATE servers SET first_seen_at = 'secret'", GET, "server a"),
    ("UPDATE servers SET updated_at = 4611686018427387904", GET, "server a"),
    ("UPDATE blocks SET time_unit = 'secret'", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET time_unit = NULL", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET players = 'secret'", COMPARE_A_AND_B, BLOCK.format("a")),
    ("UPDATE blocks SET players_before = 'secret'", COMPARE_A_AND_B, BLOCK.format("a")),
]
"""Values whose digests match, although no build writes them."""


@pytest.mark.usefixtures("empty_directory")
@pytest.mark.parametrize(("harm", "case"), [*product([change], CHANGED), *product([forge], FORGED)])
def test_a_changed_part_is_damage_and_is_named(
    harm: Callable[[str, str], None], case: tuple[str, list[str], str], two_servers: bytes, cli: Cli
) -> None:
    sql, command, part = case
    Path("x.db").write_bytes(two_servers)
    harm("x.db", sql)

    ran = cli(*command, "x.db")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {format_damage(part)}\n")


@pytest.mark.usefixtures("empty_directory")
def test_servers_in_another_order_than_that_of_their_ids_are_damage(
    two_servers: bytes, cli: Cli
) -> None:
    data = bytearray(two_servers)
    Path("x.db").write_bytes(data)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_servers_1'"
    with closing(sqlite3.connect("x.db")) as connection:
        ((page,),) = connection.execute(query)
        ((size,),) = connection.execute("PRAGMA page_size")
    # The positions of the cells of the index follow the header of its page.
    first = (page - 1) * size + 8
    data[first : first + 4] = data[first + 2 : first + 4] + data[first : first + 2]
    Path("x.db").write_bytes(data)

    ran = cli("servers", "--snapshot", "x.db")

    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr == f"error: {format_damage('the servers')}\n"


QUESTIONS = (
    ("get", "a", "--table", "-s"),
    ("get", "nobody", "-s"),
    ("compare", "a", "b", "--table", "--at", str(70 * DAY), "-s"),
    ("compare", "a", "b", "--range", "1y", "--json", "-s"),
    ("stats", "a", "b", "--json", "-s"),
    ("snapshot", "info", "--json"),
    ("snapshot", "verify", "--quiet"),
    ("snapshot", "update", "--servers=more.ndjson", "--observations=more.csv"),
)


def list_extremes() -> list[str]:
    """Return SQL that sets an integer column other than the key, in a table with digests."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        return [
            f"UPDATE {table} SET {name} = {extreme}"  # noqa: S608 - our own names
            for table in ("snapshot", "servers", "blocks")
            for _, name, kind, is_set, _, is_key in connection.execute(
                f"PRAGMA table_info({table})"
            )
            if kind == "INTEGER" and not is_key
            for extreme in (-1, 2**63 - 1, *(() if is_set else ("NULL",)))
        ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a server of two blocks, and one with a single observation; add files for an update."""
    rows = [("a", day * DAY + at, day * at % 9_001) for day in range(150) for at in range(1, 40, 2)]
    directory = tmp_path_factory.mktemp("sound")
    (directory / "more.ndjson").write_bytes(ndjson([server("c")]))
    # A row to keep, a repeated, a conflicting and a malformed one.
    (directory / "more.csv").write_bytes(csv([("c", 5, players) for players in (5, 5, 6, -1)]))
    return build_in(directory, [server("a"), server("b")], [*rows, ("b", 5, 5)])


@pytest.mark.parametrize("sql", [*list_extremes(), *BLOCKS, "UPDATE snapshot SET sources = '[1]'"])
def test_an_impossible_value_is_answered_or_refused(
    sql: str, sound: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sound.parent)
    path = str(shutil.copy(sound, tmp_path))
    forge(path, sql)
    for question in QUESTIONS:
        ran = cli(*question, path)
        assert ran.exit_code in (0, 3, 44), (question, ran.stderr)
