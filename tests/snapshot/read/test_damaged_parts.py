"""Report which part of a snapshot is damaged, whether or not its digests match."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Cli
from snapshot.opening import COMMANDS, FILE_ROW, format_damage
from support.snapshots import change, forge

pytestmark = pytest.mark.usefixtures("empty_directory")

INFO, GET, COMPARE = COMMANDS[3], COMMANDS[0], COMMANDS[2]
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


def test_zeros_after_a_valid_header_are_damage(
    two_servers: bytes, check_refusal: CheckRefusal
) -> None:
    Path("x.db").write_bytes(two_servers[:100] + bytes(len(two_servers) - 100))

    check_refusal("the whole file")


def test_another_text_encoding_is_damage(two_servers: bytes, check_refusal: CheckRefusal) -> None:
    Path("x.db").write_bytes(two_servers[:59] + b"\2" + two_servers[60:])

    check_refusal("its header")


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


@pytest.mark.parametrize(
    ("sql", "command", "part"),
    [
        ("DELETE FROM snapshot", INFO, FILE_ROW),
        ("INSERT INTO snapshot SELECT * FROM snapshot", INFO, FILE_ROW),
        ("UPDATE snapshot SET as_of = 'secret'", INFO, FILE_ROW),
        ("UPDATE snapshot SET as_of = 1.5", COMPARE, FILE_ROW),
        ("UPDATE snapshot SET as_of = as_of + 1", COMPARE, FILE_ROW),
        ("UPDATE snapshot SET sources = '[]'", INFO, FILE_ROW),
        ("UPDATE snapshot SET root = zeroblob(32)", GET, FILE_ROW),
        ("DELETE FROM directory", GET, "the directory of identifiers"),
        ("UPDATE directory SET entries = x''", GET, "the directory of identifiers"),
        (
            "UPDATE directory SET entries = substr(entries, 25)",
            INFO,
            "the directory of identifiers",
        ),
        ("UPDATE directory SET servers = zeroblob(8)", COMPARE, "server a"),
        ("UPDATE directory SET servers = x''", GET, "server a"),
        ("UPDATE directory SET servers = 5", GET, "the directory of identifiers"),
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
        ("UPDATE servers SET block_digests = x''", COMPARE, "server a"),
        ("UPDATE servers SET counts = x''", COMPARE, "server a"),
        ("DELETE FROM blocks", COMPARE, BLOCK.format("a")),
        ("DELETE FROM blocks WHERE server_block > 2000000000 - 1", COMPARE, BLOCK.format("b")),
        ("UPDATE blocks SET sum_before = x'01'", COMPARE, BLOCK.format("a")),
        ("UPDATE blocks SET counts_before = x'01'", VERIFY, BLOCK.format("a")),
        ("UPDATE blocks SET marks = x'0100'", VERIFY, BLOCK.format("a")),
        ("UPDATE blocks SET time_unit = 'secret'", COMPARE, BLOCK.format("a")),
        ("UPDATE blocks SET players = CAST(players AS TEXT)", COMPARE, BLOCK.format("a")),
    ],
)
def test_a_changed_part_is_damage_and_is_named(
    sql: str, command: list[str], part: str, two_servers: bytes, cli: Cli
) -> None:
    Path("x.db").write_bytes(two_servers)
    change("x.db", sql)

    ran = cli(*command, "x.db")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {format_damage(part)}\n")


@pytest.mark.parametrize(
    ("sql", "command", "part"),
    [
        ("UPDATE snapshot SET as_of = 'secret'", COMPARE, FILE_ROW),
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
        ("UPDATE servers SET players_current = 'secret'", COMPARE, "server a"),
        ("UPDATE servers SET tags = '{\"secret\"'", GET, "server a"),
        ("UPDATE servers SET tags = '[5]'", GET, "server a"),
        ("UPDATE servers SET tags = '[\"\\ud800\"]'", GET, "server a"),
        ("UPDATE servers SET tags = printf('%.*c', 100000, '[')", GET, "server a"),
        ("UPDATE servers SET first_seen_at = 'secret'", GET, "server a"),
        ("UPDATE servers SET updated_at = 4611686018427387904", GET, "server a"),
        ("UPDATE blocks SET time_unit = 'secret'", COMPARE, BLOCK.format("a")),
        ("UPDATE blocks SET time_unit = NULL", COMPARE, BLOCK.format("a")),
        ("UPDATE blocks SET players = 'secret'", COMPARE, BLOCK.format("a")),
        ("UPDATE blocks SET players_before = 'secret'", COMPARE, BLOCK.format("a")),
    ],
)
def test_values_that_no_build_writes_are_damage_even_with_matching_digests(
    sql: str, command: list[str], part: str, two_servers: bytes, cli: Cli
) -> None:
    Path("x.db").write_bytes(two_servers)
    forge("x.db", sql)

    ran = cli(*command, "x.db")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"", f"error: {format_damage(part)}\n")


def test_a_value_of_an_unexpected_type_is_damage(two_servers: bytes, cli: Cli) -> None:
    Path("x.db").write_bytes(two_servers)
    change("x.db", "UPDATE blocks SET sum_before = 1.5")

    assert cli(*COMPARE, "x.db").stderr == f"error: {format_damage(BLOCK.format('a'))}\n"


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
