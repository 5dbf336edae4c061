"""Snapshots made to do harm: each function here turns a real snapshot into one."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from forging import change, forge
from srvstat.snapshot.schema import APPLICATION_ID, FORMAT_VERSION, schema

Harm = Callable[[Path], None]

_PAGE = 16_384
_INTERIOR = b"\x05"

_TABLES = ("snapshot", "directory", "servers", "calendars", "observations", "days")
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_ROOT_OF = "(SELECT rootpage FROM sqlite_schema WHERE name = '{}')"


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def _sql(*statements: str) -> Harm:
    """Run statements, which may change `sqlite_schema` too."""

    def harm(path: Path) -> None:
        for statement in statements:
            with _opened(path) as connection:
                connection.execute(statement)

    return harm


def _in_place_of(table: str, kind: str, sql: str) -> Harm:
    """Drop a table and put an entry in the schema that bears its name, without asking SQLite."""
    entry = f"INSERT INTO sqlite_schema VALUES ('{kind}', '{table}', '{table}', 0, '{sql}')"
    return _sql(f"DROP TABLE {table}", entry)


def _changed(sql: str) -> Harm:
    """Change rows past the checks of their tables."""
    return lambda path: change(str(path), sql)


def _uneven(assignment: str) -> Harm:
    """Change the row of the server `uneven`."""
    return _changed(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _without_indexes(statement: str) -> Harm:
    """Run a statement while the tables have no indexes, which come back as they were."""

    def harm(path: Path) -> None:
        with _opened(path) as connection:
            entries = connection.execute("SELECT * FROM sqlite_schema").fetchall()
            connection.execute("DELETE FROM sqlite_schema WHERE type = 'index'")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE', '')")
        with _opened(path) as connection:
            connection.execute(statement)
        with _opened(path) as connection:
            connection.execute("DELETE FROM sqlite_schema")
            connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", entries)

    return harm


def _header(at: int, data: bytes) -> Harm:
    """Overwrite a part of the file's header."""

    def harm(path: Path) -> None:
        _overwrite(path, at, data)

    return harm


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def _place_of(path: Path, table: str) -> int:
    """Return where a table's first page begins."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(query, (table,)).fetchone()
    return (int(page) - 1) * _PAGE


def _own_child(table: str) -> Harm:
    """Make a table's first page an interior one, whose only child is the page itself."""

    def harm(path: Path) -> None:
        place = _place_of(path, table)
        itself = (place // _PAGE + 1).to_bytes(4)
        header = _INTERIOR + bytes(4) + _PAGE.to_bytes(2) + bytes(1) + itself
        _overwrite(path, place, header)

    return harm


def _last_child(table: str, of: str) -> Harm:
    """Let the last child of a table's first page, which has some, be a page of another table."""

    def harm(path: Path) -> None:
        place, child = _place_of(path, table), _place_of(path, of)
        with open(path, "rb") as file:
            file.seek(place)
            assert file.read(1) == _INTERIOR
        _overwrite(path, place + 8, (child // _PAGE + 1).to_bytes(4))

    return harm


def _of_utf_16(path: Path) -> None:
    """Write the same rows to a file of another encoding."""
    with closing(sqlite3.connect(path)) as connection:
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES}
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = {_PAGE}")
        connection.executescript(schema())
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        for name, of_table in rows.items():
            values = ", ".join("?" * len(of_table[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({values})", of_table)


def _interrupted(path: Path) -> None:
    """Leave what a writer leaves that is killed: half of what it wrote, and its journal."""
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE observations SET players = players + 1")
        connection.execute("UPDATE days SET prefix_count = prefix_count + 1")
        shutil.copy(work, path)
        shutil.copy(f"{work}-journal", f"{path}-journal")
    work.unlink()


def _grown_by_nothing(path: Path) -> None:
    """Add 200 MB of empty pages, as the header says."""
    pages = path.stat().st_size // _PAGE + 12_800
    os.truncate(path, pages * _PAGE)
    _overwrite(path, 28, pages.to_bytes(4))


STRUCTURES: Mapping[str, Harm] = {
    "a view": _sql("CREATE VIEW secret AS SELECT 1 AS secret"),
    "a view without end in the place of the days": _sql(
        "DROP TABLE days", f"CREATE VIEW days AS {_ENDLESS} SELECT i AS server_day FROM n"
    ),
    "a view that fills memory in the place of the file's row": _sql(
        "DROP TABLE snapshot",
        "CREATE VIEW snapshot AS SELECT length(hex(zeroblob(400000000))) AS as_of",
    ),
    "a trigger": _sql("CREATE TRIGGER secret AFTER INSERT ON servers BEGIN SELECT 1; END"),
    "a column that is computed": _sql(
        "ALTER TABLE servers ADD COLUMN secret INTEGER"
        " GENERATED ALWAYS AS (length(hex(zeroblob(100000000))))"
    ),
    "another table": _sql("CREATE TABLE secret (id)"),
    "an index of an expression": _sql("CREATE INDEX secret ON servers (length(hostname))"),
    "statistics for SQLite's planner": _sql("ANALYZE"),
    "a virtual table": _sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', 'secret', 'secret', 0, 'CREATE VIRTUAL TABLE secret USING fts5(secret)')"
    ),
    "a virtual table in the place of the observations": _in_place_of(
        "observations",
        "table",
        "CREATE VIRTUAL TABLE observations USING fts5(server, observed_at, players)",
    ),
    "a view under the name and the text of a table": _sql(
        "UPDATE sqlite_schema SET type = 'view', rootpage = 0 WHERE name = 'observations'"
    ),
    "a name in another case": _sql(
        "ALTER TABLE observations RENAME TO secret", "ALTER TABLE secret RENAME TO Observations"
    ),
    "an entry of no kind": _sql(
        "INSERT INTO sqlite_schema VALUES ('secret', 'secret', 'secret', 0, NULL)"
    ),
    "a name that is not UTF-8": _sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', CAST(x'736563726574ff' AS TEXT), 'secret', 2, 'CREATE TABLE secret (')"
    ),
    "a table that is there twice": _sql(
        "INSERT INTO sqlite_schema SELECT type, name, tbl_name,"
        f" {_ROOT_OF.format('days')}, sql FROM sqlite_schema WHERE name = 'servers'"
    ),
    "20,000 tables": _sql(
        f"INSERT INTO sqlite_schema {_ENDLESS} SELECT 'table', 't' || i, 't' || i, 2,"
        " 'CREATE TABLE t' || i || ' (secret)' FROM n LIMIT 20000"
    ),
    "a CREATE TABLE of 20 MB": _sql(
        "UPDATE sqlite_schema SET sql = sql || ' -- ' || printf('%.*c', 20000000, 'x')"
        " WHERE name = 'servers'"
    ),
    "a table without a page": _sql("UPDATE sqlite_schema SET rootpage = 0 WHERE name = 'servers'"),
    "a table beyond the end": _sql(
        "UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = 'servers'"
    ),
    "an interrupted writer": _interrupted,
    "a header that says UTF-16": _header(56, (2).to_bytes(4)),
    "a header that says write-ahead log to writers": _header(18, b"\x02\x01"),
    "a header that says write-ahead log to readers": _header(18, b"\x01\x02"),
    "a header of a later SQLite": _header(18, b"\x01\x03"),
    "a header of a later schema": _header(44, (5).to_bytes(4)),
    "a header with other fractions of pages": _header(21, b"\x20"),
    "a header of pages half as large": _header(16, (_PAGE // 2).to_bytes(2)),
}
"""What no command may answer."""

CONTENTS: Mapping[str, Harm] = {
    "a text of 300 MB": _uneven("hostname = printf('%.*c', 300000000, 'x')"),
    "a text that is not UTF-8": _uneven("hostname = CAST(x'ff736563726574' AS TEXT)"),
    "half a character": _uneven("hostname = CAST(x'eda080736563726574' AS TEXT)"),
    "a NUL in a text": _uneven("hostname = 'secret' || char(0) || 'secret'"),
    "a NUL in an identifier": _uneven("id = id || char(0) || 'secret'"),
    "a NUL in tags": _uneven("""tags = '["secret' || char(0) || '"]'"""),
    "a text that is a blob": _uneven("region = x'736563726574'"),
    "an identifier that is a blob": _uneven("cfx_id = x'736563726574'"),
    "tags of 400,000 lists": _uneven("tags = printf('%.*c', 400000, '[')"),
    "a negative count of players": _uneven("players_max = -1"),
    "more players than a double can count": _uneven("players_max = 9223372036854775807"),
    "neither offline nor online": _uneven("offline = 2"),
    "no server": _changed("DELETE FROM servers"),
    "a server more": _changed(
        "INSERT INTO servers SELECT 7, 'secret', 'secret', game, hostname, project_name,"
        " project_description, region, players_current, players_max, tags, flags, chat_url,"
        " icon_url, offline, first_seen_at, updated_at, current_is_stand_in, calendar_digest"
        " FROM servers WHERE id = 'once'"
    ),
    "players that are a text": _changed("UPDATE observations SET players = 'secret'"),
    "a negative observation": _changed("UPDATE observations SET players = -1"),
    "an observation more": _changed("INSERT INTO observations VALUES (9, 5, 5)"),
    "a day of 300 MB": _changed(
        "UPDATE days SET players = zeroblob(300000000), observation_count = 300000000"
        " WHERE server_day = (SELECT max(server_day) FROM days)"
    ),
    "an index that disagrees with its table": _without_indexes(
        "UPDATE servers SET id = CASE id WHEN 'uneven' THEN 'busy' ELSE 'uneven' END"
        " WHERE id IN ('uneven', 'busy')"
    ),
    "two indexes at each other's place": _sql(
        "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema"
        " WHERE type = 'index') - rootpage WHERE type = 'index'"
    ),
    "a table at the place of another": _sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('days')} WHERE name = 'servers'"
    ),
    "two tables at each other's place": _sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('days')}"
        f" + {_ROOT_OF.format('calendars')} - rootpage WHERE name IN ('days', 'calendars')"
    ),
    "a table at the place of the schema": _sql(
        "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'servers'"
    ),
    "servers whose page is its own child": _own_child("servers"),
    "days whose page is its own child": _own_child("days"),
    "observations whose page is its own child": _own_child("observations"),
    "days that end where they begin": _last_child("days", "days"),
    "days that end in the observations": _last_child("days", "observations"),
    "days that end in the servers": _last_child("days", "servers"),
    "texts in UTF-16": _of_utf_16,
    "a header that reserves bytes of each page": _header(20, b"\x20"),
    "a header that reserves most of each page": _header(20, b"\xff"),
    "a header with free pages": _header(32, (3).to_bytes(4) + (99).to_bytes(4)),
    "a header of pages that move": _header(52, (5).to_bytes(4)),
    "a header without an encoding": _header(56, bytes(4)),
    "200 MB of empty pages": _grown_by_nothing,
}
"""What a command may answer rightly where it need not read the harm; `verify` reads it all."""


def _forged(sql: str) -> Harm:
    """Change rows, and make every digest anew."""
    return lambda path: forge(str(path), sql)


def _forged_uneven(assignment: str) -> Harm:
    return _forged(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


_LAST_DAY_OF_UNEVEN = "(SELECT max(server_day) FROM days WHERE server_day / 10000000 = 5)"

FORGERIES: Mapping[str, Harm] = {
    "a text of 20 MB": _forged_uneven("hostname = printf('%.*c', 20000000, 'x')"),
    "a text of 2 MB": _forged_uneven("hostname = printf('%.*c', 2000000, 'x')"),
    "an identifier of 1 MB": _forged_uneven("cfx_id = printf('%.*c', 1000000, 'x')"),
    "an identifier that drives a terminal": _forged(
        "UPDATE servers SET id = char(27) || '[2J' || 'secret' WHERE id = 'wide';"
        " UPDATE observations SET players = players + 1 WHERE server = 6"
    ),
    "tags of 400,000 lists": _forged_uneven("tags = printf('%.*c', 400000, '[')"),
    "tags of 400,000 objects": _forged_uneven(
        "tags = replace(printf('%.*c', 400000, '['), '[', '{\"a\":')"
    ),
    "a tag of 400,000 digits": _forged_uneven("tags = printf('%.*c', 400000, '9')"),
    "300,000 tags": _forged_uneven(
        "tags = '[' || replace(printf('%.*c', 299999, '0'), '0', '\"\",') || '\"\"]'"
    ),
    "a histogram of 2^62 values": _forged("UPDATE days SET highest = 4611686018427387904"),
    "a sum beyond an integer": _forged(
        "UPDATE days SET prefix_sum = 9223372036854775807 WHERE prefix_sum IS NOT NULL"
    ),
    "a day of 500,000 observations at once": _forged(
        "UPDATE days SET times = zeroblob(500000), players = zeroblob(500000),"
        f" observation_count = 500000 WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a day of 2^62 observations": _forged(
        "UPDATE days SET times = x'', players = x'', observation_count = 4611686018427387904"
        f" WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a day after time": _forged(
        f"UPDATE days SET server_day = 59999999 WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a server seen after time": _forged_uneven("first_seen_at = 9223372036854775807"),
    "an as_of after time": _forged("UPDATE snapshot SET as_of = 9223372036854775807"),
    "a source of 2 MB": _forged(
        "UPDATE snapshot SET sources = '[\"' || printf('%.*c', 2000000, 'x') || '\"]'"
    ),
    "sources of 400,000 lists": _forged(
        "UPDATE snapshot SET sources = printf('%.*c', 400000, '[')"
    ),
}
"""What whoever makes the digests anew can have answered; the answer ends well all the same."""
