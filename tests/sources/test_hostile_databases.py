"""A stranger's database must not read other files of the person who builds from it."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from conftest import AS_OF, Cli, Ran
from support.snapshots import read_directory

SECRET = "hunter2-in-a-file"  # noqa: S105 - of no one
ROW = f"{AS_OF} AS observedAt, 5 AS players"

VIEWS = {
    "text": "SELECT content AS serverId, {row} FROM read_text('{folder}/secret.txt')",
    "names": "SELECT file AS serverId, {row} FROM glob('{folder}/*')",
    "csv": "SELECT column0 AS serverId, {row} FROM read_csv('{folder}/secret.txt', header = false)",
    "name": "SELECT serverId, {row} FROM '{folder}/secret.csv'",
    "macro": "SELECT content AS serverId, {row} FROM secret()",
}
POLLS = f"CREATE TABLE polls AS SELECT 'a' AS serverId, {ROW}"
MACRO = "CREATE MACRO secret() AS TABLE SELECT * FROM read_text('{folder}/secret.txt')"

OPTIONS = ["--game", "game_a", "--ids", "slug"]
BUILD = ["snapshot", "build", "out.db", "--rejects", "r.ndjson", *OPTIONS]
UPDATE = ["snapshot", "update", "old.db", "--rejects", "r.ndjson", *OPTIONS]
FLEET = ["fleet", "-o", "out.ndjson", *OPTIONS]


def write_hostile(folder: Path, view: str) -> None:
    """Write files of the victim, and a stranger's database with a view over them."""
    (folder / "secret.txt").write_text(SECRET)
    (folder / "secret.csv").write_text(f"serverId\n{SECRET}\n")
    with closing(duckdb.connect("games.duckdb")) as connection:
        connection.execute(MACRO.format(folder=folder))
        connection.execute(f"CREATE VIEW observations AS {view.format(folder=folder, row=ROW)}")


def check_nothing_leaked(ran: Ran, here: Path, before: dict[str, bytes | None]) -> None:
    """Check that the command wrote nothing, and showed no text or name of a file."""
    shown = ran.stdout + ran.stderr.encode()
    assert SECRET.encode() not in shown
    assert b"secret." not in shown
    after = read_directory(here)
    assert {name: after[name] for name in before} == before
    new = b"".join(after[name] or b"" for name in after.keys() - before.keys())
    assert SECRET.encode() not in new


@pytest.mark.parametrize(
    ("command", "view"), [*((BUILD, view) for view in VIEWS), (UPDATE, "text"), (FLEET, "text")]
)
def test_a_view_of_a_duckdb_file_reads_no_other_file(
    command: Sequence[str],
    view: str,
    here: Path,
    tmp_path_factory: pytest.TempPathFactory,
    cli: Cli,
) -> None:
    Path("old.csv").write_text(f"serverId,observedAt,players\na,{AS_OF},5\n")
    build = ["snapshot", "build", "old.db", "--game", "game_a", "--observations", "old.csv"]
    assert cli(*build).exit_code == 0
    write_hostile(tmp_path_factory.mktemp("victim"), VIEWS[view])
    before = read_directory(here)
    source = ["games.duckdb"] if command is FLEET else ["--observations", "games.duckdb"]

    for query in ([], ["--query", "FROM observations"]):
        ran = cli(*command, *source, *query)

        assert (ran.exit_code, ran.stderr) == (
            6,
            (
                "error: games.duckdb: a view or the query reads another file, but a database has no"
                " access to other files; copy the rows into a table of the database\n"
            ),
        )
        check_nothing_leaked(ran, here, before)


def test_a_query_reads_files_and_the_tables_of_databases_but_no_views(
    here: Path, tmp_path_factory: pytest.TempPathFactory, cli: Cli
) -> None:
    write_hostile(tmp_path_factory.mktemp("victim"), VIEWS["text"])
    with closing(duckdb.connect("games.duckdb")) as connection:
        connection.execute(POLLS)
    Path("week.csv").write_text(f"serverId,observedAt,players\nb,{AS_OF},5\n")
    before = read_directory(here)

    ran = cli(*BUILD, "--query", "FROM read_duckdb('games.duckdb', table_name = 'observations')")
    assert ran.exit_code == 6
    check_nothing_leaked(ran, here, before)

    query = "FROM read_duckdb('games.duckdb', table_name = 'polls') UNION ALL FROM 'week.csv'"
    assert cli(*BUILD, "--query", query).exit_code == 0


def test_a_query_over_a_database_reads_no_other_file(here: Path, cli: Cli) -> None:
    Path("names.csv").write_text("serverId\na\n")
    with closing(duckdb.connect("games.duckdb")) as connection:
        connection.execute(POLLS)
    query = ["--observations", "games.duckdb", "--query"]

    assert cli(*BUILD, *query, "FROM polls SEMI JOIN 'names.csv' USING (serverId)").exit_code == 6
    assert cli(*BUILD, *query, "FROM polls").exit_code == 0
    assert (here / "out.db").exists()


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE VIRTUAL TABLE pings USING fts5(timestamp, ip, playerCount)",
        "CREATE VIRTUAL TABLE t USING fts5(ip); CREATE VIEW pings AS SELECT * FROM t",
    ],
    ids=["virtual table", "view"],
)
@pytest.mark.parametrize("command", [BUILD, FLEET], ids=["build", "fleet"])
def test_only_a_real_table_of_minetrack_is_read(
    command: Sequence[str], schema: str, here: Path, cli: Cli
) -> None:
    Path("old.csv").write_text(f"serverId,observedAt,players\na,{AS_OF},5\n")
    build = ["snapshot", "build", "old.db", "--game", "game_a", "--observations", "old.csv"]
    assert cli(*build).exit_code == 0
    with closing(sqlite3.connect("pings.sql")) as connection, connection:
        connection.executescript(schema)
    before = read_directory(here)
    source = ["pings.sql"] if command is FLEET else ["--observations", "pings.sql"]

    ran = cli(*command, "--from", "minetrack", *source)

    assert ran.exit_code == 6
    assert ran.stderr.startswith(
        "error: pings.sql: no table pings (views and virtual tables are not read); the tables are:"
        " none"
    )
    check_nothing_leaked(ran, here, before)
