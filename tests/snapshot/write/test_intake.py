"""Read sources during a build: progress, and lines at the ends of blocks."""

import gzip
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv
from srvstat.snapshot.write.intake import Intake
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources import source
from srvstat.sources.source import Source
from support.snapshots import COMMAND, expect_conflict, read_rejects

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


def test_conflicts_quote_their_line_for_any_size_of_blocks(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Lines of the second kind can be written again, so a block of them alone is not kept.
    lines = [
        "a,2026-03-01T12:00:00Z,1",
        *["a,2026-03-01 12:00:00Z,2", f"a,{AS_OF},3", "nonsense"] * 2,
        *[f"a,{AS_OF},4"] * 6,
    ]
    Path("odd.csv").write_text("\n".join(["serverId,observedAt,players", *lines, ""]))
    command = [*COMMAND, "--observations", "odd.csv", "--rejects", "rejects.ndjson", "--overwrite"]
    shape = {"file": "odd.csv", "reason": "must have 3 fields, not 1", "text": "nonsense"}
    expected = [
        shape | {"line": line} if text == "nonsense" else expect_conflict("odd.csv", line, 1, text)
        for line, text in enumerate(lines[1:], 3)
    ]

    for block_bytes in range(1, 300, 3):
        monkeypatch.setattr(source, "_BLOCK_BYTES", block_bytes)
        assert cli(*command).exit_code == 0
        assert read_rejects() == expected
