"""Keep the stored schema equal in all files of a format version."""

import sqlite3
from contextlib import closing
from hashlib import sha256

from srvstat.snapshot.format.rows import FORMAT_VERSION, read_schema

SCHEMA_HASHES = {
    5: "48469514c1def24679469cffcbb32632848a9b9d539698cce5651bf40c4acec7",
    6: "107d32f8a0bdc2df739df1eeb705fdff7a856836c36f7a76a20d57fc5803794c",
    7: "8b86c2d5a5a8ca8515046f9e93bb5c1a8ade87dfe13a56a52d9611e1d6caec6d",
    8: "86129511bccda5c82e47f0248316a5c9af98e7ba978195cfd1d89e6172e1ff44",
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
