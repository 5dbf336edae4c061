"""Change a valid snapshot into a hostile one."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from srvstat.snapshot.rows import APPLICATION_ID, FORMAT_VERSION, read_schema
from support.snapshots import PAGE_SIZE as PAGE
from support.snapshots import change, forge

Harm = Callable[[Path], None]

_INTERIOR = b"\x05"

_TABLES = ("snapshot", "directory", "servers", "blocks")


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def run_sql(*statements: str) -> Harm:
    """Run statements, which may also change `sqlite_schema`."""

    def harm(path: Path) -> None:
        for statement in statements:
            with _open(path) as connection:
                connection.execute(statement)

    return harm


def replace_table(table: str, sql: str) -> Harm:
    """Replace a table by an entry of the schema with its name, without checks by SQLite."""
    entry = f"INSERT INTO sqlite_schema VALUES ('table', '{table}', '{table}', 0, '{sql}')"
    return run_sql(f"DROP TABLE {table}", entry)


def change_rows(sql: str) -> Harm:
    """Change rows without the checks of their tables."""
    return lambda path: change(str(path), sql)


def run_without_indexes(statement: str) -> Harm:
    """Run a statement without indexes, and restore the old indexes."""

    def harm(path: Path) -> None:
        with _open(path) as connection:
            entries = connection.execute("SELECT * FROM sqlite_schema").fetchall()
            connection.execute("DELETE FROM sqlite_schema WHERE type = 'index'")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE', '')")
        with _open(path) as connection:
            connection.execute(statement)
        with _open(path) as connection:
            connection.execute("DELETE FROM sqlite_schema")
            connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", entries)

    return harm


def overwrite_header(at: int, data: bytes) -> Harm:
    """Overwrite a part of the file's header."""

    def harm(path: Path) -> None:
        _overwrite(path, at, data)

    return harm


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def _find_page(path: Path, table: str) -> int:
    """Return the offset of a table's first page."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(query, (table,)).fetchone()
    return (int(page) - 1) * PAGE


def link_to_itself(table: str) -> Harm:
    """Make a table's first page an interior page that is its own only child."""

    def harm(path: Path) -> None:
        place = _find_page(path, table)
        itself = (place // PAGE + 1).to_bytes(4)
        header = _INTERIOR + bytes(4) + PAGE.to_bytes(2) + bytes(1) + itself
        _overwrite(path, place, header)

    return harm


def convert_to_utf_16(path: Path) -> None:
    """Write the same rows to a file with another text encoding."""
    with closing(sqlite3.connect(path)) as connection:
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES}
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = {PAGE}")
        connection.executescript(read_schema())
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        for name, of_table in rows.items():
            values = ", ".join("?" * len(of_table[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({values})", of_table)


def interrupt_writer(path: Path) -> None:
    """Leave the file and the journal of a writer that was killed midway."""
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE blocks SET sum_before = x'01'")
        connection.execute("UPDATE servers SET hostname = 'secret'")
        shutil.copy(work, path)
        shutil.copy(f"{work}-journal", f"{path}-journal")
    work.unlink()


def append_empty_pages(path: Path) -> None:
    """Add 200 MB of empty pages, and count them in the header."""
    pages = path.stat().st_size // PAGE + 12_800
    os.truncate(path, pages * PAGE)
    _overwrite(path, 28, pages.to_bytes(4))


def forge_rows(sql: str) -> Harm:
    """Change rows, and recompute all digests."""
    return lambda path: forge(str(path), sql)
