"""Snapshots that were changed after they were built, where SQLite alone would go on."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Cli, srvstat
from forging import forge

BUILD_ONE = "build one with `srvstat snapshot build`"
COMPARE = ("compare", "harbor-city", "old-guard")

TABLES = {
    "a missing table": "DROP TABLE observations",
    "another index": "CREATE INDEX more ON observations (players)",
    "a view in the place of a table": (
        "DROP TABLE observations; CREATE VIEW observations AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS server, i AS observed_at, i AS players FROM n"
    ),
}

DAYS = {
    "fewer observations before a later day": (
        "UPDATE days SET prefix_count = -prefix_count"
        " WHERE server_day = (SELECT max(server_day) FROM days WHERE server_day / 10000000 ="
        " (SELECT server FROM servers WHERE id = 'harbor-city'))"
    ),
    "a day without observations": "UPDATE days SET observation_count = 0",
    "a day of half its observations": "UPDATE days SET observation_count = observation_count / 2",
    "a day with players of no width": "UPDATE days SET players = substr(players, 2)",
    "a day with times of no width": "UPDATE days SET times = substr(times, 2)",
    "a day with half a histogram": "UPDATE days SET cumulative = substr(cumulative, 2)",
    "a day with a histogram of nothing": "UPDATE days SET cumulative = x''",
    "a day without a sum": "UPDATE days SET prefix_sum = NULL",
    "a day without a lowest": "UPDATE days SET lowest = NULL",
    "a day that knows no neighbours": (
        "UPDATE days SET players_before = NULL, players_after = NULL,"
        " times = zeroblob(length(times))"
    ),
}


@pytest.fixture
def copy(tmp_path: Path, demo_snapshot: str) -> str:
    """Copy the demo's snapshot."""
    path = str(tmp_path / "damaged.db")
    shutil.copy(demo_snapshot, path)
    return path


def refuses(path: str, part: str, *command: str) -> None:
    for form in ("--json", "--table"):
        ran = srvstat(*command, "-s", path, form)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == f"error: {path}: damaged ({part}); copy it again, or {BUILD_ONE}\n"


@pytest.mark.parametrize("sql", TABLES.values(), ids=TABLES)
def test_tables_that_are_not_to_the_letter_ours_are_refused(sql: str, copy: str) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(sql)

    refuses(copy, "its tables", *COMPARE)


@pytest.mark.parametrize("sql", DAYS.values(), ids=DAYS)
def test_days_that_no_build_makes_are_refused_even_with_all_their_digests(
    sql: str, copy: str
) -> None:
    forge(copy, sql)

    refuses(copy, "the days", *COMPARE)
    assert srvstat("snapshot", "verify", copy).exit_code == 3


def test_a_forged_count_goes_unnoticed_until_the_root_is_asked_for(
    copy: str, demo_snapshot: str, cli: Cli
) -> None:
    forge(copy, "UPDATE servers SET players_current = 7 WHERE id = 'harbor-city'")

    root = cli("snapshot", "info", "--json", demo_snapshot).json["root"]
    assert cli("get", "harbor-city", "-s", copy).json["data"]["players"]["current"] == 7
    assert cli("snapshot", "verify", copy).exit_code == 0
    assert cli("snapshot", "verify", copy, "--expect", root).exit_code == 5
