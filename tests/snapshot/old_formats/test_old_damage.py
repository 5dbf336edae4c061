"""Upgrade damaged snapshots of older formats: what the format can verify is refused by name."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from conftest import Cli
from srvstat.contract.errors import SnapshotError
from srvstat.snapshot.old_formats.digests import CHAINS
from srvstat.snapshot.write.upgrade import upgrade
from support.old_formats import VERSIONS, read_old_file, write_old_file

SILENT_SINCE_LATER = """
    UPDATE observations SET observed_at = observed_at + (1 << 32)
    WHERE server = 3 AND observed_at = (SELECT max(observed_at) FROM observations WHERE server = 3)
"""

CHANGES = (
    (1, "UPDATE snapshot SET observation_count = 100000", "the table snapshot"),
    (1, "UPDATE snapshot SET as_of = 1 << 60", "the table snapshot"),
    (1, "UPDATE snapshot SET sources = '['", "the table snapshot"),
    (1, "UPDATE snapshot SET rejected = -1", "the table snapshot"),
    (1, "DELETE FROM snapshot", "the table snapshot"),
    (1, "INSERT INTO snapshot SELECT * FROM snapshot", "the table snapshot"),
    (1, "UPDATE servers SET offline = 2 WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET players_max = -1 WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET players_max = 1 << 53 WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET game = 'game_c' WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET tags = '{' WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET players_current = 0 WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET region = char(0) WHERE id = 'one-look'", "server one-look"),
    (1, "UPDATE servers SET id = '?' WHERE id = 'one-look'", "a server"),
    (1, "UPDATE snapshot SET as_of = 1", "the observations of server big-numbers"),
    (1, "INSERT INTO observations VALUES (99, 1, 1)", "the table observations"),
    (
        2,
        "UPDATE observations SET players = 3 WHERE server = 7",
        "the observations of day 2026-02-26",
    ),
    (
        2,
        "UPDATE observations SET observed_at = observed_at + 1 WHERE server = 7",
        "the observations",
    ),
    (
        3,
        "UPDATE observations SET observed_at = observed_at - (1 << 32) WHERE server = 7",
        "the obs",
    ),
    (3, SILENT_SINCE_LATER, "the observations of day"),
    (3, "UPDATE snapshot SET repeated = 0", "the table snapshot"),
    (4, "UPDATE snapshot SET sources = char(0)", "the table snapshot"),
    (5, "UPDATE directory SET entries = x''", "the directory"),
    (3, "UPDATE servers SET hostname = 'x' WHERE id = 'one-look'", "the servers"),
    (3, "UPDATE servers SET hostname = char(0) WHERE id = 'one-look'", "the servers"),
    (6, "UPDATE servers SET server = 99 WHERE id = 'one-look'", "the servers"),
    (3, "UPDATE calendars SET digests = x'00'", "the calendar of server big-numbers"),
    (6, "UPDATE days SET server_day = server_day + 1 WHERE server_day = 70020510", "day 2026-"),
    (7, "DELETE FROM days WHERE server_day = 70020510", "day 2026-02-26 of server one-look"),
    (
        4,
        "UPDATE observations SET players = 3 WHERE server = 7",
        "the observations of day",
    ),
    (
        5,
        "DELETE FROM observations WHERE server = 7",
        "the observations of day 2026-02-26",
    ),
    (
        6,
        "INSERT INTO observations VALUES (7, 1772366400000, 1)",
        "the observations of server one-look",
    ),
    (6, "INSERT INTO calendars VALUES (990000, x'', x'')", "the table calendars"),
    (6, "DELETE FROM bands", "the bands of server big-numbers"),
    (7, "UPDATE summaries SET peaks = x'00'", "the summaries of server big-numbers"),
    (7, "DELETE FROM interval_counts", "the summaries of server big-numbers"),
    (7, "UPDATE summary_index SET bands = x'00'", "the summaries of server big-numbers"),
    (7, "UPDATE intervals SET interval_count = 1", "the summaries of server deep-water"),
    (4, "CREATE TABLE more (x INTEGER) STRICT", "its tables"),
    (7, "PRAGMA user_version = 6", "its tables"),
    (4, "PRAGMA user_version = 5", "its tables"),
    (3, "PRAGMA user_version = 0", "its header"),
)
"""The version of a snapshot, a change to it, and the part that the error names.

Server 3 is fell-silent. Server 7 is one-look, whose observation is on day 20510."""


@pytest.mark.parametrize(("version", "sql", "part"), CHANGES)
def test_a_changed_snapshot_is_refused_and_stays(
    version: int, sql: str, part: str, tmp_path: Path
) -> None:
    path = write_old_file(f"format-{version}", tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)
    changed = Path(path).read_bytes()

    with pytest.raises(SnapshotError) as raised:
        upgrade(path)

    assert raised.value.reason.startswith(f"{path}: damaged ({part}"), raised.value.reason
    assert Path(path).read_bytes() == changed
    assert list(tmp_path.iterdir()) == [Path(path)]


def test_a_root_that_is_not_that_of_the_content_is_refused(tmp_path: Path) -> None:
    path = write_old_file("format-5", tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        (row,) = connection.execute("SELECT * FROM snapshot")
        forged = dict(row) | {"root": bytes(32)}
        digest = CHAINS[5].digest_file_row(forged)
        connection.execute("UPDATE snapshot SET root = ?, digest = ?", (forged["root"], digest))

    with pytest.raises(SnapshotError, match="the table snapshot"):
        upgrade(path)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version > 2])
def test_a_flipped_bit_never_changes_an_upgraded_snapshot(version: int, tmp_path: Path) -> None:
    old = read_old_file(f"format-{version}")
    path = tmp_path / "old.db"
    path.write_bytes(old)
    upgrade(str(path))
    expected = path.read_bytes()
    rng = Random(version)  # noqa: S311 - the same bits in each run
    for _ in range(6):
        flipped = bytearray(old)
        flipped[rng.randrange(len(old))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)

        with suppress(SnapshotError):
            upgrade(str(path))

        assert path.read_bytes() in (expected, bytes(flipped))


def test_a_damaged_structure_is_refused(tmp_path: Path, cli: Cli) -> None:
    path = Path(write_old_file("format-1", tmp_path / "old.db"))
    changed = bytearray(path.read_bytes())
    changed[4096:8192] = bytes(4096)
    path.write_bytes(changed)

    ran = cli("snapshot", "upgrade", str(path))

    assert ran.exit_code == 3
    assert "damaged (the structure of the SQLite file)" in ran.stderr
