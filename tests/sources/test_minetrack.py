"""Read databases of Minetrack."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, SHARED_DATA, Cli, Ran
from sources.readings import read_rows
from srvstat.contract.errors import SourceError
from srvstat.sources.source import Source, read_batches

REAL = SHARED_DATA / "minetrack" / "database_copy_1-8-2021.sql"
SCHEMA = "timestamp BIGINT NOT NULL, ip TINYTEXT, playerCount MEDIUMINT"
RULE = "must be a whole number from 0 to 9007199254740991"


def write_database(
    path: Path, rows: Sequence[Sequence[Any]], columns: str = SCHEMA, settings: str = ""
) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"{settings}; CREATE TABLE pings ({columns})")
        marks = ", ".join("?" * (columns.count(",") + 1))
        connection.executemany(f"INSERT INTO pings VALUES ({marks})", rows)  # noqa: S608 - our own names
    return path


def test_a_failed_ping_is_no_observation(tmp_path: Path) -> None:
    rows = [(AS_OF, "mc.example.net", 5), (AS_OF, "b:25566", None), (AS_OF + 3, "b:25566", 0)]

    found = read_rows(write_database(tmp_path / "database.sql", rows), "minetrack")

    assert found.kept == {1: ("mc.example.net", AS_OF, 5), 3: ("b:25566", AS_OF + 3, 0)}
    assert found.skipped == {"failed ping": 1}
    assert not found.rejects


def test_the_columns_of_2015_are_read_in_the_order_of_rows(tmp_path: Path) -> None:
    # SQLite prefers an index with all columns that are read if the table has more.
    columns = "id INTEGER PRIMARY KEY, timestamp BIGINT, ip TINYTEXT, player MEDIUMINT, more TEXT"
    rows = [(7, AS_OF, "a", 5, None), (8, AS_OF, "b", None, None)]

    path = write_database(tmp_path / "database.sql", rows, columns)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE INDEX of_three ON pings (player, ip, timestamp)")

    found = read_rows(path, "minetrack")

    assert found.kept == {1: ("a", AS_OF, 5)}
    assert found.skipped == {"failed ping": 1}


def test_a_malformed_row_is_rejected_with_its_column(tmp_path: Path) -> None:
    rows = [
        (AS_OF, "a", 5),
        (AS_OF, None, 5),
        (-1, "a", None),
        ("soon", "a", 5),
        (AS_OF, "a", 2.5),
        (AS_OF, "a", -1),
        (AS_OF, "a", 1 << 60),
        (AS_OF + 1, "a", None),
        (AS_OF // 1000, "a", 5),
    ]

    found = read_rows(write_database(tmp_path / "database.sql", rows), "minetrack")

    assert found.kept == {1: ("a", AS_OF, 5)}
    assert found.rejects == {
        2: "ip: must be text",
        3: "timestamp: must be Unix milliseconds in the years 2001 to 9999",
        4: "timestamp: must be Unix milliseconds in the years 2001 to 9999",
        **dict.fromkeys((5, 6, 7), f"playerCount: {RULE}"),
        9: "timestamp: must be Unix milliseconds in the years 2001 to 9999",
    }
    assert found.skipped == {"failed ping": 1}
    for place, row in enumerate(rows, 1):
        alone = read_rows(write_database(tmp_path / f"{place}.sql", [row]), "minetrack")
        assert alone.rejects.get(1) == found.rejects.get(place)


def test_a_database_that_is_written_to_is_read_as_of_one_moment(tmp_path: Path) -> None:
    settings = "PRAGMA journal_mode = WAL"
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)], settings=settings)
    assert [each.name for each in tmp_path.iterdir()] == ["database.sql"]

    assert len(read_rows(path, "minetrack").kept) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["database.sql"]
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO pings VALUES (1772366400001, 'a', 1)")
        assert len(read_rows(path, "minetrack").kept) == 1
        writer.commit()
        link = tmp_path / "link.sql"
        link.symlink_to(path)
        assert [len(read_rows(each, "minetrack").kept) for each in (path, link)] == [2, 2]


def test_a_database_that_changes_while_it_is_read_without_a_lock_is_refused(tmp_path: Path) -> None:
    settings = "PRAGMA journal_mode = WAL"
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)], settings=settings)
    batches = read_batches(Source(str(path), "minetrack"))
    next(batches)

    with closing(sqlite3.connect(path)) as writer, writer:
        writer.execute("INSERT INTO pings VALUES (1, 'a', 1)")

    with pytest.raises(SourceError, match=f"{path}: changed while it was read; read a copy"):
        list(batches)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE pings", "no table pings .* are: none"),
        (
            "ALTER TABLE pings RENAME playerCount TO players",
            "the table pings has no playerCount; its columns are timestamp, ip, players",
        ),
        (
            "ALTER TABLE pings RENAME TO t; CREATE VIEW pings AS SELECT * FROM t",
            "no table pings .views",
        ),
        ("UPDATE pings SET ip = CAST(x'ff' AS TEXT)", "can't be read as a SQLite database: "),
    ],
)
def test_another_database_is_refused(sql: str, reason: str, tmp_path: Path) -> None:
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)

    with pytest.raises(SourceError, match=f"{path}: {reason}"):
        read_rows(path, "minetrack")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "not a SQLite database"),
        (b"SQLite format 3\0" + bytes(100), "can't be read as a SQLite database: "),
    ],
)
def test_another_file_is_refused(content: bytes | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "data?base#.sql"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SourceError) as caught:
        read_rows(path, "minetrack")

    assert caught.value.reason.startswith(f"{path}: {reason}")


@pytest.mark.skipif(not REAL.exists(), reason="the real data is not here")
def test_a_real_database_is_read() -> None:
    with closing(sqlite3.connect(f"file:{REAL}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT ip, timestamp, playerCount FROM pings").fetchall()

    found = read_rows(REAL, "minetrack")

    expected = dict(enumerate(rows, 1))
    assert found.kept == {at: row for at, row in expected.items() if row[2] is not None}
    assert found.skipped == {"failed ping": sum(row[2] is None for row in rows)}


def build(directory: Path, cli: Cli, servers: str, rows: Sequence[Sequence[Any]]) -> Ran:
    """Build a snapshot from a database and a servers.json."""
    (directory / "servers.json").write_text(servers)
    path = write_database(directory / "database.sql", rows)
    return cli(
        *("snapshot", "build", str(directory / "s.db"), "--from", "minetrack", "--game", "game_a"),
        *("--observations", str(path), "--servers", str(directory / "servers.json")),
    )


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("{}", ": must be an array of servers, as in Minetrack's servers.json"),
        ("[] []", ": must be an array of servers, as in Minetrack's servers.json"),
        ('[{"name": "a"}]', ", server 1: ip: required, but missing"),
        ('[{"name": "a", "ip": "a"}, 5]', ", server 2: must be an object"),
        ('[{"name": "a", "ip": "a"}', ": the JSON is empty or cut off"),
        (
            '[{"name": "a", "ip": "a.b"}, {"name": "b", "ip": "a:b"}]',
            ': two servers have the id "a-b", made from "a.b" and "a:b"',
        ),
    ],
)
def test_another_servers_json_is_refused(
    servers: str, message: str, tmp_path: Path, cli: Cli
) -> None:
    ran = build(tmp_path, cli, servers, [(AS_OF, "a", 5)])

    assert (ran.exit_code, ran.stderr) == (6, f"error: {tmp_path}/servers.json{message}\n")
