"""DuckDB databases, and queries over any of DuckDB's readers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from conftest import AS_OF, Cli, Ran
from sources.readings import Table, read_table
from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import IN_MEMORY, Source
from support.process import restore_signals
from support.snapshots import read_directory

UTC = ColumnMapping(time_zone="UTC")

_FAILS_LATE = """
    SELECT CAST(if(i < 99999, '1', 'no') AS int) AS serverId, 1 AS observedAt, 1 AS players
    FROM range(100000) numbers(i)
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a database with a table `observations` and another one."""
    path = str(tmp_path_factory.mktemp("duckdb") / "games.duckdb")
    with duckdb.connect(path) as connection:
        for statement in (
            "CREATE TABLE observations (serverid TEXT, observedat TIMESTAMPTZ, players UTINYINT)",
            f"INSERT INTO observations VALUES ('a', make_timestamptz({AS_OF}000), 7)",  # noqa: S608 - values of ours
            "INSERT INTO observations VALUES ('b', NULL, 1)",
            "CREATE SEQUENCE numbers",
            """CREATE TABLE polls (name ENUM ('x', 'y'), "at" TIMESTAMP, online DECIMAL(18, 3))""",
            f"INSERT INTO polls VALUES ('y', make_timestamp({AS_OF}999), 3)",  # noqa: S608 - values of ours
        ):
            connection.execute(statement)
    return path


def run_query(query: str, mapping: ColumnMapping = UTC) -> Table:
    """Read the rows of a query in memory."""
    return read_table(Source(IN_MEMORY, "duckdb", mapping, query))


def test_a_database_has_a_table_of_observations(database: str) -> None:
    table = read_table(Source.from_name(database, None))

    assert table.kept == [(1, "a", AS_OF, 7)]
    assert [reason for _, reason, _ in table.rejects] == ["observedAt: missing"]


def test_a_query_chooses_the_rows_of_a_database(database: str) -> None:
    mapping = ColumnMapping(id="name", players="online", at="at", time_zone="UTC")
    source = Source(database, "duckdb", mapping, "FROM polls;")

    assert read_table(source).kept == [(1, "y", AS_OF, 3)]


def test_a_query_can_not_write_to_a_database(database: str) -> None:
    query = "SELECT 'a' AS serverId, nextval('numbers') AS observedAt, 1 AS players"

    with pytest.raises(SourceError, match="read-only mode"):
        read_table(Source(database, "duckdb", UTC, query))


def test_dates_and_clock_times_can_be_two_columns_in_any_capitals(tmp_path: Path) -> None:
    path = f"{tmp_path}/a.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE \"my polls\" AS SELECT DATE '2026-03-01' AS Datum,"
            " TIME '12:00' AS Uhrzeit, 5.5 AS n UNION ALL SELECT '2026-03-01', '12:05', 6"
        )
    mapping = ColumnMapping(
        id=None,
        server="a",
        at="datum+UHRZEIT",
        players="N",
        time_zone="UTC",
        rounds=True,
        table="my polls",
    )

    table = read_table(Source.from_name(path, None, mapping))

    assert list(table.rows.values()) == [("a", AS_OF, 6), ("a", AS_OF + 300_000, 6)]


def test_rows_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    rows = [f"a,{AS_OF + row // 2},{row}" for row in range(150_000)]
    (tmp_path / "week.csv").write_text("\n".join(["serverId,observedAt,players", *rows]))
    table = run_query(f"FROM '{tmp_path}/week.csv'")

    assert [row[-1] for row in table.kept] == list(range(150_000))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELEC 1", 'query: Parser Error: syntax error at or near "SELEC"'),
        ("FROM 'none.csv'", 'query: IO Error: No files found that match the pattern "none.csv"'),
        ("SELECT 1 AS serverId, 2 AS players", 'query: no column "observedAt"; the columns are "s'),
        (
            "SELECT 'a' AS serverId, 1 AS observedAt, 2 AS players, 3 AS Players",
            'query: has two columns "players"; rename one of them',
        ),
        ("SELECT error('no') AS serverId, 1 AS observedAt, 1 AS players", "query: Invalid Input E"),
        (_FAILS_LATE, "query: Conversion Error: Could not convert string 'no' to"),
        ("FROM sqlite_scan('x.db', 'y')", "sqlite_scanner"),
        ("COPY (SELECT 1) TO 'written.csv'", "query: must be one SELECT statement"),
        ("SELECT 1; SELECT 2", "query: must be one SELECT statement"),
        (" ; ", "query: must be one SELECT statement"),
        ("SELECT '\udcff'", "query: the query is not UTF-8"),
    ],
)
def test_a_query_that_fails_is_refused_in_one_line(query: str, reason: str) -> None:
    with pytest.raises(SourceError) as caught:
        run_query(query)

    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert not Path("written.csv").exists()


def test_a_file_that_is_no_database_of_observations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "games.duckdb"
    with pytest.raises(SourceError, match="no such file"):
        read_table(Source(str(path), "duckdb"))
    path.write_bytes(b"x" * 9999)
    with pytest.raises(SourceError, match="not a valid DuckDB database file"):
        read_table(Source(str(path), "duckdb"))
    path = path.rename(tmp_path / "\udcff.duckdb")
    with pytest.raises(SourceError, match="DuckDB needs a name in UTF-8"):
        read_table(Source(str(path), "duckdb"))
    empty = str(tmp_path / "empty.duckdb")
    duckdb.connect(empty).close()
    with pytest.raises(SourceError, match=r"no table observations; name one with --input-table"):
        read_table(Source(empty, "duckdb"))


def test_a_query_needs_a_database(cli: Cli, tmp_path: Path) -> None:
    build = ("snapshot", "build", f"{tmp_path}/s.db", "--query=SELECT 1")
    with_file = cli(*build, "--observations=week.csv")

    assert with_file.exit_code == 2
    assert "--query: week.csv is not a database; omit FILE and name it" in with_file.stderr
    other_kind = cli(*build, "--source=postgresql")
    assert other_kind.exit_code == 2
    assert "no input; give a postgresql source" in other_kind.stderr


@pytest.mark.slow
def test_an_interruption_ends_a_long_query(tmp_path: Path) -> None:
    query = (
        "SELECT 'a' AS serverId, max(a.i * b.i % 7) AS observedAt, 1 AS players"
        " FROM range(3000000) a(i), range(10000000) b(i)"
    )
    command = [sys.executable, "-m", "srvstat", "snapshot", "build", "s.db", "--game=game_a"]
    with restore_signals():
        process = subprocess.Popen(
            [*command, f"--query={query}"], cwd=tmp_path, stderr=subprocess.PIPE
        )
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)

    _, errors = process.communicate(timeout=20)
    assert (process.returncode, b"Traceback" in errors) == (130, False)
    assert os.listdir(tmp_path) == []


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

OPTIONS = ["--game", "game_a", "--slug-ids"]
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
