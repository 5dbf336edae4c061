"""Keep the stored schema equal in all files of a format version."""

import sqlite3
from contextlib import closing
from hashlib import sha256

from srvstat.snapshot.rows import FORMAT_VERSION, read_schema

SCHEMA_HASHES = {
    1: "dc7046c90fc9c752b6f661e847445ef105cff5d92b1be255585a159dd0b50cd1",
}
"""The SHA-256 of the stored CREATE statements, with their comments, by format version."""


def test_a_change_of_the_stored_schema_raises_the_format_version() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        statements = [sql for (sql,) in connection.execute(query)]
    found = sha256("\n".join(statements).encode()).hexdigest()

    assert SCHEMA_HASHES.get(FORMAT_VERSION) == found, (
        "schema.sql: the stored tables or the comments in them differ, so readers would refuse"
        f" existing snapshots; raise FORMAT_VERSION and add its hash, {found}, here"
    )
