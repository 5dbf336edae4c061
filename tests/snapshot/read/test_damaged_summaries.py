"""Detect changes to summaries and intervals, with and without matching digests."""

import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, DAY, build_in, server
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import ServerReference
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.snapshot.format.intervals import compute_server_coverage
from srvstat.snapshot.format.rows import read_schema
from srvstat.snapshot.read.reader import open_file
from srvstat.snapshot.read.verify import verify
from support.snapshots import change, forge

START = AS_OF // DAY * DAY - 150 * DAY
TABLES = ("summary_index", "summaries", "interval_counts", "intervals")
FULL = f"CAST(substr(x'{'ff' * 9_000}', 1, length({{0}})) AS BLOB)"
"""As many bytes as before, all of them 255."""

WINDOWS = (
    Window(BEFORE_ALL, AS_OF),
    Window(START + 5, START + 70 * DAY + 7),
    Window(START + 63 * DAY, START + 140 * DAY),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a server with three blocks of days, gaps, and intervals of many lengths."""
    drawn = random.Random(3)  # noqa: S311 - not for secrets
    rows, at = [], START
    while at < AS_OF - DAY:
        rows.append(("wide", at, drawn.randrange(900)))
        at += drawn.randrange(3, 9) * DAY // 12 + drawn.randrange(9_000)
        at += 3 * DAY if drawn.random() < 0.02 else 0
    return build_in(tmp_path_factory.mktemp("sound"), [server("even"), server("wide")], rows)


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> str:
    """Return a copy of the snapshot."""
    return str(shutil.copy(sound, tmp_path / "x.db"))


def ask(path: str, windows: Sequence[Window] = WINDOWS) -> list[Any]:
    """Return what a snapshot answers from its summaries; an error in place of an answer."""
    found: list[Any] = []
    for window in windows:
        edges = [window.start, *range(START + 64 * DAY - 1, START + 70 * DAY - 1, DAY), window.end]
        with closing(open_file(path)) as snapshot:
            (row,) = snapshot.find_servers([ServerReference(identifier="wide", by="id")])
            assert row
            try:
                found.append(snapshot.compute_figures([row], window, [Fraction(9, 10)]))
                found.append(snapshot.compute_step_totals(row, edges))
                found.append(snapshot.compute_totals([row], window))
            except SnapshotError as error:
                found.append(str(error))
    return found


CHANGED = {
    "DELETE FROM summary_index": "the summaries",
    "DELETE FROM summaries": "the summaries",
    "DELETE FROM interval_counts": "the summaries",
    "DELETE FROM intervals": "the bands",
    "UPDATE summary_index SET band_count = band_count - 1": "the summaries",
    "UPDATE summaries SET peaks = lowests": "the summaries",
    "UPDATE summaries SET long_count = 0": "the summaries",
    "UPDATE interval_counts SET counts = substr(counts, 2)": "the summaries",
    "UPDATE intervals SET lengths = zeroblob(length(lengths))": "the bands",
}


@pytest.mark.parametrize("sql", CHANGED)
def test_a_changed_row_is_refused_and_named(sql: str, path: str) -> None:
    change(path, sql)

    answers = ask(path)
    assert all(f"damaged ({CHANGED[sql]} of server wide)" in str(answer) for answer in answers)
    with pytest.raises(SnapshotError, match=f"damaged .{CHANGED[sql]} of server wide"):
        verify(path)


FORGED = {
    "UPDATE servers SET usual_interval = usual_interval + 1 WHERE id = 'wide'": "server wide",
    "UPDATE servers SET covered = covered + 1 WHERE id = 'wide'": "server wide",
    "UPDATE servers SET summary_digest = x'' WHERE id = 'wide'": "the summaries of server wide",
    "UPDATE servers SET summary_digest = zeroblob(16) WHERE id = 'even'": (
        "the summaries of server even"
    ),
    "UPDATE summary_index SET blocks = zeroblob(length(blocks))": "the summaries of server wide",
    "UPDATE summaries SET player_sums = zeroblob(length(player_sums))": (
        "the summaries of server wide"
    ),
    "UPDATE interval_counts SET counts = zeroblob(length(counts))": "the summaries of server wide",
    "UPDATE intervals SET lengths = zeroblob(length(lengths))": "the summaries of server wide",
    "INSERT INTO summary_index VALUES (9, x'', x'', x'', 0, x'', x'', 0)": (
        "the table summary_index"
    ),
    "INSERT INTO interval_counts VALUES (9, x'', x'')": "the table interval_counts",
    "INSERT INTO intervals VALUES (9, 1, x'')": "the table intervals",
}


@pytest.mark.parametrize("sql", FORGED)
def test_verify_finds_forgeries_with_matching_digests(sql: str, path: str) -> None:
    forge(path, sql)

    with pytest.raises(SnapshotError, match=f"damaged .{FORGED[sql]}"):
        verify(path)


def list_columns() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        return [
            (table, name)
            for table in TABLES
            for _, name, _, _, _, is_key in connection.execute(f"PRAGMA table_info({table})")
            if not is_key
        ]


@pytest.mark.parametrize(("table", "column"), list_columns())
def test_any_values_with_matching_digests_are_answered_or_refused(
    table: str, column: str, sound: Path, tmp_path: Path
) -> None:
    values: tuple[str, ...] = ("zeroblob(length({0}))", FULL, "zeroblob(300000)")
    if "count" in column and not column.startswith(("observation", "counts", "count_")):
        values = ("NULL", "-1", "9223372036854775807", "0", "{0} + 1")
    for value in values:
        path = str(shutil.copy(sound, tmp_path))
        forge(path, f"UPDATE {table} SET {column} = {value.format(column)}")  # noqa: S608 - our own names
        for answer in ask(path, WINDOWS[:2]):
            assert not isinstance(answer, str) or "damaged (" in answer


LARGE = "CAST(hex(zeroblob({0})) AS BLOB)"
"""Twice as many bytes, which are the sum of more players than there can be."""


@pytest.mark.parametrize("value", ["x''", LARGE.format(200)])
def test_totals_that_no_observations_have_are_refused(value: str, path: str) -> None:
    forge(path, f"UPDATE servers SET player_sum = {value} WHERE id = 'wide'")  # noqa: S608 - our own names

    with closing(open_file(path)) as snapshot:
        (row,) = snapshot.find_servers([ServerReference(identifier="wide", by="id")])
        assert row
        with pytest.raises(SnapshotError, match="damaged"):
            snapshot.compute_totals([row], Window(START + 50 * DAY, AS_OF))


@pytest.mark.parametrize(
    "columns",
    [
        "observation_counts = zeroblob(length(observation_counts))",
        f"player_sums = {LARGE.format('8 * day_count')}",
    ],
)
def test_steps_that_no_observations_have_are_refused(columns: str, path: str) -> None:
    forge(path, f"UPDATE summaries SET {columns}")  # noqa: S608 - our own names

    with closing(open_file(path)) as snapshot:
        (row,) = snapshot.find_servers([ServerReference(identifier="wide", by="id")])
        assert row
        with pytest.raises(SnapshotError, match="damaged"):
            snapshot.compute_step_totals(row, [START, START + 9 * DAY - 1, START + 20 * DAY])


def test_intervals_without_length_are_refused(path: str) -> None:
    forge(path, "UPDATE summary_index SET bands = zeroblob(length(bands))")
    forge(path, "UPDATE intervals SET lengths = zeroblob(length(lengths))")

    with closing(open_file(path)) as snapshot:
        (row,) = snapshot.find_servers([ServerReference(identifier="wide", by="id")])
        assert row
        with pytest.raises(SnapshotError, match="damaged"):
            snapshot.compute_figures([row], WINDOWS[1], [])


@pytest.mark.parametrize("value", ["NULL", "0", "-1", "9223372036854775807"])
@pytest.mark.parametrize("column", ["usual_interval", "covered", "first_observed_at"])
def test_a_forged_coverage_is_a_share_or_refused(column: str, value: str, path: str) -> None:
    forge(path, f"UPDATE servers SET {column} = {value} WHERE id = 'wide'")  # noqa: S608 - our own names

    ask(path, WINDOWS[:1])
    with closing(open_file(path)) as snapshot:
        (row,) = snapshot.find_servers([ServerReference(identifier="wide", by="id")])
        assert row
        try:
            coverage = compute_server_coverage(row, AS_OF)
        except ValueError:
            return
        assert coverage is None or 0 < coverage <= 1
