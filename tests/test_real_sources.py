"""The real data sets, built with the commands of docs/sources.md."""

import gzip
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

import srvstat
from conftest import SHARED_DATA, Cli
from support.markdown import read_command, read_marked_block

pytestmark = pytest.mark.slow

COMMANDS = {words[2]: words for words in map(read_command, read_marked_block("sources.md", "real"))}
"""The arguments of each build in the documentation, by its output."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with links to the files of the real data; skip without them."""
    monkeypatch.chdir(tmp_path)
    for data_set in ("warbrokers", "hypixel-hourly", "minetrack"):
        if not (SHARED_DATA / data_set).is_dir():
            pytest.skip("the real data is not beside the repository")
        for path in (SHARED_DATA / data_set).iterdir():
            target = tmp_path / (path.name if path.name != "servers.ndjson" else "records.ndjson")
            target.symlink_to(path)
    return tmp_path


def run(cli: Cli, *words: str) -> str:
    """Run a command that succeeds, and return the root of the snapshot that it writes."""
    ran = cli(*words)
    assert ran.exit_code == 0, ran.stderr
    return read_root(words[2])


def read_root(path: str) -> str:
    with srvstat.open_snapshot(path) as snapshot:
        return snapshot.root


def read_rows(path: str) -> dict[str, list[tuple[int, int]]]:
    """Return the observations of each server, by its id."""
    rows = defaultdict(list)
    query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
    with closing(sqlite3.connect(path)) as connection:
        for name, at, players in connection.execute(query):
            rows[name].append((at, players))
    return rows


@pytest.mark.usefixtures("here")
def test_war_brokers_wide_has_the_observations_of_the_long_file(
    war_brokers_rows: dict[str, list[tuple[int, int]]], cli: Cli
) -> None:
    words = COMMANDS["war-brokers.db"]
    run(cli, *words)

    assert {f"wb-{name}": rows for name, rows in read_rows(words[2]).items()} == war_brokers_rows


@pytest.mark.usefixtures("here")
def test_hypixel_has_the_hours_with_a_value_and_so_has_its_export(cli: Cli) -> None:
    words = COMMANDS["hypixel.db"]
    run(cli, *words)

    with gzip.open("player_counts.csv.gz", "rt", encoding="utf-8") as file:
        values = [line.rstrip().split(",")[1] for line in file][1:]
    (rows,) = read_rows(words[2]).values()
    assert [players for _, players in rows] == [int(value) for value in values if value]
    assert (rows[0][0], rows[-1][0]) == (1_487_311_200_000, 1_773_529_200_000)
    check_export(cli, words[2], "csv")


@pytest.mark.usefixtures("here")
def test_minetrack_has_the_answered_pings_and_so_has_its_export(cli: Cli) -> None:
    words = COMMANDS["minetrack.db"]
    run(cli, *words)

    query = "SELECT ip, timestamp, playerCount FROM pings WHERE playerCount IS NOT NULL"
    answered: dict[str, set[tuple[int, int]]] = defaultdict(set)
    with closing(sqlite3.connect("database_copy_1-8-2021.sql")) as connection:
        for address, at, players in connection.execute(query):
            answered[address.replace(".", "-")].add((at, players))
    assert {name: set(rows) for name, rows in read_rows(words[2]).items()} == answered
    check_export(cli, words[2], "ndjson")


def check_export(cli: Cli, path: str, form: str) -> None:
    """Check that an export of a snapshot builds one with the same root."""
    assert (
        cli("snapshot", "export", f"--snapshot={path}", f"--format={form}", "-o", "e").exit_code
        == 0
    )
    sources = ["--servers=e/servers.ndjson", f"--observations=e/observations.{form}"]
    assert run(cli, "snapshot", "build", "again.db", *sources) == read_root(path)
