"""Append newer observations to the rows of an open snapshot."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from conftest import DAY, Build, server
from snapshot.format.test_append import DerivedServer
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.format.append import append
from srvstat.snapshot.format.bands import find_epoch
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.read.verify import check_written
from srvstat.snapshot.write.update import append_observations
from support.snapshots import change

COUNT = find_epoch("a", 400) + 20
LATER = slice(COUNT - 16, COUNT)

TABLES = ("days", "bands", "summary_index", "summaries", "interval_counts", "intervals")


def test_observations_are_appended_to_verified_rows(build: Build) -> None:
    drawn = random.Random(3)  # noqa: S311 - not for secrets
    instants = [at * DAY // 4 + drawn.randrange(9_000) for at in range(COUNT)]
    players = [drawn.randrange(4_000) for _ in instants]
    rows = [("a", at, count) for at, count in zip(instants, players, strict=True)]
    path = Path(build([server("a")], rows[: LATER.start]))
    stored = DerivedServer(instants[: LATER.start], players[: LATER.start])
    expected = append(stored, instants[LATER], players[LATER])
    assert expected is not None
    assert {table for table, _ in expected.rows} == {*TABLES}

    with closing(open_file(str(path))) as snapshot:
        (found,) = snapshot.find_servers([ServerReference(identifier="a", by="id")])
        assert found is not None
        appended = append_observations(snapshot, found, instants[LATER], players[LATER])

    assert appended is not None
    assert appended.columns == expected.columns
    # The rows of the file are the old ones.
    written: dict[str, dict[int, bytes]] = {}
    for table, row in appended.rows:
        written.setdefault(table, {})[int(row[0] or 0)] = digest_row(table, row)
    for table, digests in written.items():
        with closing(open_file(str(path))) as snapshot:
            check_written(snapshot, {})
            with pytest.raises(SnapshotError, match=f"the table {table}"):
                check_written(snapshot, {table: digests})
    sound = path.read_bytes()
    for table in TABLES:
        path.write_bytes(sound)
        change(str(path), f"DELETE FROM {table}")  # noqa: S608 - our own names
        with closing(open_file(str(path))) as snapshot, pytest.raises(SnapshotError):
            append_observations(snapshot, found, instants[LATER], players[LATER])
