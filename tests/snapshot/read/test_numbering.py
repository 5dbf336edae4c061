"""The numbers of servers in a file change no answer, and no digest."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from conftest import Cli
from srvstat.snapshot.digests import build_directory
from srvstat.snapshot.rows import BLOCKS_PER_SERVER, ServerRow

KEYS = {"servers": ("server", 1), "blocks": ("server_block", BLOCKS_PER_SERVER)}
"""The key of each table, and the keys of each server."""


def renumber(path: str, find_number: Callable[[int], int]) -> None:
    """Give each server another number, in all tables."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("renumber", 1, find_number)
        for table, (key, rows) in KEYS.items():
            # Negative first, as an old and a new number can be equal.
            for change in (f"-renumber({key} / {rows}) * {rows} - {key} % {rows}", f"-{key}"):
                connection.execute(f"UPDATE {table} SET {key} = {change}")  # noqa: S608 - our own names
        servers = map(ServerRow._make, connection.execute("SELECT * FROM servers").fetchall())
        connection.executemany(
            "REPLACE INTO directory VALUES (?, ?, ?)", build_directory(list(servers))
        )


def test_servers_can_have_any_numbers(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    other = str(tmp_path / "renumbered.db")
    shutil.copy(demo_snapshot, other)
    renumber(other, lambda number: 2**32 - number * number)

    for command in (
        ["snapshot", "verify"],
        ["snapshot", "info", "--json"],
        ["servers", "--json", "--snapshot"],
        ["stats", "--all", "--json", "--range", "7d", "--snapshot"],
        ["compare", "harbor-city", "night-shift", "--range", "1y", "--snapshot"],
        ["get", "harbor-city", "--json", "--snapshot"],
    ):
        own, renumbered = cli(*command, demo_snapshot), cli(*command, other)
        assert own.exit_code == 0
        assert renumbered.stdout.replace(other.encode(), demo_snapshot.encode()) == own.stdout
