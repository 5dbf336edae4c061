"""Set each integer to extreme values with matching digests: no crash and no endless search."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import DAY, Cli, build_in, csv, ndjson, server
from srvstat.snapshot.rows import read_schema
from support.snapshots import forge

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


@pytest.mark.parametrize("sql", [*list_extremes(), "UPDATE snapshot SET sources = '[1]'"])
def test_an_extreme_number_is_answered_or_refused(
    sql: str, sound: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sound.parent)
    path = str(shutil.copy(sound, tmp_path))
    forge(path, sql)
    for question in QUESTIONS:
        ran = cli(*question, path)
        assert ran.exit_code in (0, 3, 44), (question, ran.stderr)
