"""Set each integer to extreme values with matching digests: no crash and no endless search."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import DAY, Cli, build_in, server
from srvstat.snapshot.format.rows import read_schema
from support.snapshots import forge

EXTREMES = (-1, 2**63 - 1)
QUESTIONS = (
    ("get", "a", "--table", "-s"),
    ("get", "nobody", "-s"),
    ("compare", "a", "b", "--table", "--at", str(70 * DAY), "-s"),
    ("compare", "a", "b", "--json", "-s"),
    ("stats", "a", "b", "--json", "-s"),
    ("snapshot", "info", "--json"),
    ("snapshot", "verify", "--quiet"),
)


def list_integer_columns() -> list[tuple[str, str]]:
    """Return the tables with digests and their integer columns other than the key."""
    tables = ("snapshot", "servers", "blocks")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        return [
            (table, name)
            for table in tables
            for _, name, kind, _, _, is_key in connection.execute(f"PRAGMA table_info({table})")
            if kind == "INTEGER" and not is_key
        ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a server of two blocks, and one with a single observation."""
    rows = [("a", day * DAY + at, day * at % 9_001) for day in range(150) for at in range(1, 40, 2)]
    directory = tmp_path_factory.mktemp("sound")
    return build_in(directory, [server("a"), server("b")], [*rows, ("b", 5, 5)])


@pytest.mark.parametrize(("table", "column"), list_integer_columns())
def test_an_extreme_number_is_answered_or_refused(
    table: str, column: str, sound: Path, tmp_path: Path, cli: Cli
) -> None:
    for extreme in EXTREMES:
        path = str(shutil.copy(sound, tmp_path))
        forge(path, f"UPDATE {table} SET {column} = {extreme}")  # noqa: S608 - our own names
        for question in QUESTIONS:
            ran = cli(*question, path)
            assert ran.exit_code in (0, 3, 44), (extreme, question, ran.stderr)
