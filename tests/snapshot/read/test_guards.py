"""Allow statements to read the tables of a snapshot in limited time, and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, Build, server
from srvstat.contract.errors import SnapshotError
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection


@pytest.fixture
def connection(build: Build) -> Iterator[SnapshotConnection]:
    """Open a snapshot of 20 blocks."""
    path = build(
        servers := [server(f"s{at}") for at in range(20)],
        [(one["id"], AS_OF, 5) for one in servers],
    )
    with closing(open_connection(path)) as opened:
        yield opened


def test_a_slow_statement_is_interrupted(connection: SnapshotConnection) -> None:
    endless = "SELECT count(*) FROM blocks a, blocks b, blocks c, blocks d, blocks e, blocks f"

    with pytest.raises(SnapshotError, match=r"damaged \(a part\)"):
        connection.fetch_rows(endless, part="a part", seconds=0.05)
    assert connection.fetch_rows("SELECT count(*) FROM blocks", part="") == [(20,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random()",
        "SELECT hex(zeroblob(1000000000))",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM sqlite_temp_master",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "INSERT INTO directory VALUES (1, x'00', x'00')",
        "SELECT * FROM observations",
        "UPDATE servers SET hostname = ''",
        "DELETE FROM blocks",
        "CREATE TABLE more (a)",
        "CREATE TEMP TABLE more (a)",
        "DROP TABLE blocks",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = 1",
        "PRAGMA journal_mode = WAL",
        "VACUUM",
        "BEGIN",
        "ANALYZE",
        "REINDEX",
    ],
)
def test_statements_other_than_reads_of_our_tables_are_denied(
    sql: str, connection: SnapshotConnection
) -> None:
    before = Path(connection.path).read_bytes()

    with pytest.raises(SnapshotError, match=r"damaged \(a part\)"):
        connection.fetch_rows(sql, part="a part")
    assert Path(connection.path).read_bytes() == before
