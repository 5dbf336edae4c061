"""Read sources during a build: progress, and lines at the ends of blocks."""

import gzip
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, csv
from srvstat.snapshot.write.intake import Intake
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources.source import Source

pytestmark = pytest.mark.usefixtures("here")


def test_progress_counts_stored_bytes_and_rows() -> None:
    packed = gzip.compress(csv([("a", AS_OF + at, "x" if at % 9 else 5) for at in range(30_000)]))
    Path("rows.csv.gz").write_bytes(packed)
    sources = [Source("week.csv", "csv"), Source("rows.csv.gz", "csv")]
    bytes_of: Counter[str] = Counter()
    rows_of: Counter[str] = Counter()

    def progress(step: str, bytes_done: int, rows_done: int) -> None:
        bytes_of[step] += bytes_done
        rows_of[step] += rows_done

    with closing(sqlite3.connect(":memory:")) as connection:
        servers_source = Source("servers.ndjson", "ndjson")
        roster = read_roster(servers_source, uses_slugs=False, game=None, warn=print)
        intake = Intake(connection, roster, sources, None)
        intake.read(progress, strict=False)

    assert bytes_of == {"reading": Path("week.csv").stat().st_size + len(packed)}
    assert rows_of == {"reading": 3 + 30_000}
    assert intake.rows == 3 + 30_000
