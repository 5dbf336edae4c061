"""Snapshots that were changed after they were built, where SQLite alone would go on."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Cli, srvstat

CHANGES = {
    "an as_of beyond time": "UPDATE snapshot SET as_of = 9223372036854775807",
    "an as_of before time": "UPDATE snapshot SET as_of = -1",
    "no row about the file": "DELETE FROM snapshot",
    "two rows about the file": "INSERT INTO snapshot SELECT * FROM snapshot",
    "a missing table": "DROP TABLE observations",
    "another index": "CREATE INDEX more ON observations (players)",
    "a view in the place of a table": (
        "DROP TABLE observations; CREATE VIEW observations AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS server, i AS observed_at, i AS players FROM n"
    ),
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

CHANGED_SERVERS = {
    "a game nobody knows": "UPDATE servers SET game = 'chess'",
    "tags that are no list": "UPDATE servers SET tags = '{'",
    "tags that are nested without end": "UPDATE servers SET tags = printf('%.*c', 100000, '[')",
    "a server seen after time": "UPDATE servers SET updated_at = 9223372036854775807",
}


@pytest.fixture
def damaged(tmp_path: Path, demo_snapshot: str, request: pytest.FixtureRequest) -> str:
    """Copy the demo's snapshot and change it with SQL."""
    path = str(tmp_path / "damaged.db")
    shutil.copy(demo_snapshot, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(request.param)
    return path


def refuses(damaged: str, *command: str) -> None:
    for form in ("--json", "--table"):
        ran = srvstat(*command, "-s", damaged, form)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr == (
            f"error: {damaged}: damaged; copy it again, or build one"
            " with `srvstat snapshot build`\n"
        )


@pytest.mark.parametrize("damaged", CHANGES.values(), ids=CHANGES, indirect=True)
def test_a_comparison_refuses_what_it_needs_and_is_changed(damaged: str) -> None:
    refuses(damaged, "compare", "harbor-city", "old-guard")


@pytest.mark.parametrize("damaged", CHANGED_SERVERS.values(), ids=CHANGED_SERVERS, indirect=True)
def test_a_server_that_was_changed_is_refused(damaged: str) -> None:
    refuses(damaged, "get", "harbor-city")


@pytest.mark.parametrize(
    "damaged", ["UPDATE snapshot SET first_observed_at = -1"], ids=["span"], indirect=True
)
def test_info_refuses_a_span_outside_time(damaged: str, cli: Cli) -> None:
    for form in ("--json", "--table"):
        assert cli("snapshot", "info", damaged, form).exit_code == 3
