"""Update snapshots of real data: the result has the root of one build from everything."""

import gzip
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import SHARED_DATA, Cli

GAME = ["--game", "game_a"]


def split_lines(path: Path, earlier: Path, later: Path) -> None:
    """Write most rows of a CSV file to one file, and the last ones with some others to another."""
    header, *rows = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    at = len(rows) * 19 // 20
    earlier.write_bytes(b"".join([header, *rows[:at]]))
    later.write_bytes(b"".join([header, *rows[at - 50 :]]))


def split_pings(path: Path, earlier: Path, later: Path) -> None:
    """Copy a Minetrack database without its last pings, and with only these."""
    for copy, operator in ((earlier, ">"), (later, "<=")):
        shutil.copyfile(path, copy)
        with closing(sqlite3.connect(copy)) as connection, connection:
            split = "(SELECT max(timestamp) - 3600000 FROM pings)"
            connection.execute(f"DELETE FROM pings WHERE timestamp {operator} {split}")  # noqa: S608 - our own text


class RealData(NamedTuple):
    """A real data set: its file, how to split it, and the options that read it."""

    file: str
    split: Callable[[Path, Path, Path], None]
    options: list[str]
    ending: str = ".csv"
    servers: str | None = None


DATA = {
    "Hypixel": RealData(
        "hypixel-hourly/player_counts.csv.gz",
        split_lines,
        ["--wide", "at=Timestamp", "--time-zone", "UTC", "--ids", "slug", *GAME],
    ),
    "Minetrack": RealData(
        "minetrack/database_copy_1-8-2021.sql",
        split_pings,
        ["--from", "minetrack", *GAME],
        ending=".sql",
        servers="minetrack/servers.json",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_an_update_of_real_data_has_the_root_of_a_build(
    data: RealData,
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not (SHARED_DATA / data.file).exists():
        pytest.skip("the data is not beside the repository")
    monkeypatch.chdir(tmp_path)
    parts = [f"{name}{data.ending}" for name in ("earlier", "later")]
    data.split(SHARED_DATA / data.file, *map(Path, parts))
    servers = [] if data.servers is None else ["--servers", str(SHARED_DATA / data.servers)]
    earlier, later = (["--observations", part] for part in parts)
    build = ["snapshot", "build", *data.options, *servers, "--quiet"]
    assert cli(*build, "u.db", *earlier).exit_code == 0
    assert cli(*build, "all.db", "--observations", str(SHARED_DATA / data.file)).exit_code == 0

    ran = cli("snapshot", "update", "u.db", *data.options, *later)

    assert ran.exit_code == 0, ran.stderr
    root = cli("snapshot", "info", "all.db").json["root"]
    assert cli("snapshot", "verify", "u.db", "--expect", root).exit_code == 0
