"""Read the observations with plain SQL."""

import sqlite3
from contextlib import closing
from pathlib import Path

from conftest import AS_OF, DAY, build_in, server
from support.snapshots import read_observations

MOST = 2**53 - 1
# Every byte of a time and of a count, and all widths of counts, each day with another one.
ROWS = sorted(
    {
        *(("b", AS_OF - DAY * at // 256, at) for at in range(256)),
        *(("b", AS_OF - 3 * DAY - 257 * at, 257 * at) for at in range(256)),
        *(("b", AS_OF - 6 * DAY - 65_537 * at, 0x01_01_01_01 * at) for at in range(256)),
        *(("c", AS_OF - 9 * DAY - at, MOST >> at) for at in range(54)),
        *(("c", DAY * day - after, 5) for day in (1, 2) for after in (0, 1, DAY)),
    }
)


def test_any_sqlite_program_reads_all_observations(tmp_path: Path) -> None:
    path = str(build_in(tmp_path, list(map(server, "abc")), ROWS))

    assert read_observations(path) == ROWS
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA trusted_schema = 0")
        query = "SELECT observed_at, players FROM observations WHERE server = 2"
        assert connection.execute(query).fetchall() == [
            (at, players) for name, at, players in ROWS if name == "b"
        ]
        plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert "SEARCH blocks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan
    assert not [step for step in plan if step.startswith(("SCAN blocks", "SCAN servers"))]
