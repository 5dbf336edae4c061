"""Detect changes to bands and calendars, with and without matching digests."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, build_in, server, srvstat
from support.snapshots import change, forge

pytestmark = pytest.mark.slow

RANGES = ("24h", "30d", "1y")
MOMENTS = (AS_OF, AS_OF - 50 * DAY, AS_OF - 110 * DAY - DAY // 2, AS_OF - 200 * DAY)
QUESTIONS = [
    ("compare", "wide", "even", "--range", range_, "--at", str(at), "--json", "-s")
    for range_ in RANGES
    for at in MOMENTS
]
YEAR = QUESTIONS[8]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a snapshot of 130 days: a server with wide bands, and one with bands of one value."""
    drawn = random.Random(3)  # noqa: S311 - not for secrets
    days = [AS_OF - day * DAY for day in range(130)]
    rows = [("wide", at, drawn.randrange(900)) for at in days]
    rows += [("even", at, drawn.randrange(7)) for at in days]
    return build_in(tmp_path_factory.mktemp("sound"), [server("even"), server("wide")], rows)


ANSWERS: dict[tuple[str, ...], bytes] = {}
"""The answers of the undamaged snapshot, computed on first use."""


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> str:
    """Return a copy of the snapshot."""
    return str(shutil.copy(sound, tmp_path / "x.db"))


def test_the_snapshot_has_rows_of_every_table(sound: Path) -> None:
    with closing(sqlite3.connect(sound)) as connection:
        for table in ("bands", "calendars"):
            ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608 - our own names
            assert count > 5, table


def check_answers(cli: Cli, path: str, sound: Path, part: str) -> None:
    """Check that each answer of a damaged snapshot is right or names the part, and one names it."""
    refused = 0
    for question in QUESTIONS:
        ran = cli(*question, path)
        if ran.exit_code == 0:
            if question not in ANSWERS:
                ANSWERS[question] = cli(*question, str(sound)).stdout
            assert ran.stdout == ANSWERS[question]
        else:
            refused += 1
            assert (ran.exit_code, ran.stdout) == (3, b"")
            assert ran.stderr.startswith(f"error: {path}: damaged ({part}")
    assert refused
    ran = cli("snapshot", "verify", path)
    assert (ran.exit_code, ran.stdout) == (3, b"")


BANDS = "the bands of server wide"
CALENDAR = "the calendar of server wide"

CHANGED = {
    "DELETE FROM bands": BANDS,
    "DELETE FROM bands WHERE server_band = (SELECT max(server_band) FROM bands)": BANDS,
    "UPDATE bands SET players = substr(players, 2)": BANDS,
    "UPDATE bands SET players = zeroblob(length(players))": BANDS,
    "UPDATE bands SET players = CAST(players AS TEXT)": BANDS,
    "UPDATE bands SET observation_count = observation_count - 1": BANDS,
    "UPDATE bands SET server_band = 2 * server_band": BANDS,
    "DELETE FROM calendars": CALENDAR,
    "UPDATE calendars SET days = substr(days, 3)": CALENDAR,
    "UPDATE calendars SET days = x'', digests = x''": CALENDAR,
    "UPDATE calendars SET digests = zeroblob(512)": CALENDAR,
    "UPDATE calendars SET server_block = server_block + 5000": CALENDAR,
}


@pytest.mark.parametrize("sql", CHANGED)
def test_a_changed_row_is_refused_by_its_readers_and_named(
    sql: str, path: str, sound: Path, cli: Cli
) -> None:
    change(path, sql)

    check_answers(cli, path, sound, CHANGED[sql])


FORGED = {
    "DELETE FROM bands": BANDS,
    "UPDATE bands SET players = substr(players, 2)": "the days",
    "UPDATE bands SET players = x''": "the days",
    "UPDATE bands SET players = 'secret'": BANDS,
    "UPDATE bands SET players = NULL": BANDS,
    "UPDATE bands SET observation_count = observation_count - 1": "the days",
    "UPDATE bands SET observation_count = observation_count + 1": "the days",
    "UPDATE bands SET observation_count = 0": "the days",
    "UPDATE bands SET observation_count = -observation_count": "the days",
    "UPDATE bands SET observation_count = 4611686018427387904": "the days",
    "UPDATE bands SET observation_count = 'secret'": BANDS,
    "UPDATE bands SET observation_count = 1, players = zeroblob(1)"
    " WHERE observation_count > 9": "the days",
    "UPDATE servers SET band_count = band_count + 1": BANDS,
    "UPDATE servers SET band_count = -1": BANDS,
    "UPDATE servers SET band_count = 4611686018427387904": BANDS,
    "UPDATE servers SET bands = substr(bands, 3), band_count = band_count - 1": "the days",
    "UPDATE servers SET bands = x'', band_count = 0": "the days",
    "DELETE FROM calendars": CALENDAR,
    "UPDATE calendars SET days = substr(days, 2)": CALENDAR,
    "UPDATE calendars SET days = NULL": CALENDAR,
    "UPDATE calendars SET digests = NULL": CALENDAR,
    "UPDATE calendars SET days = 'secret'": CALENDAR,
    "UPDATE calendars SET digests = zeroblob(length(digests))": "day 20",
    "UPDATE servers SET blocks = substr(blocks, 2) WHERE id = 'wide'": CALENDAR,
    "UPDATE servers SET blocks = x'' WHERE id = 'wide'": CALENDAR,
    "UPDATE servers SET days = substr(days, 2) WHERE id = 'wide'": CALENDAR,
}


@pytest.mark.parametrize("sql", FORGED)
def test_bands_that_no_build_writes_are_refused_even_with_matching_digests(
    sql: str, path: str, sound: Path, cli: Cli
) -> None:
    forge(path, sql)

    check_answers(cli, path, sound, FORGED[sql])


CONSISTENT = {
    "UPDATE servers SET day_digests = x'' WHERE id = 'wide'": "the calendar of server wide",
    "UPDATE bands SET players = zeroblob(length(players))": BANDS,
    "UPDATE bands SET players = CAST(players || players AS BLOB),"
    " observation_count = observation_count * 2": BANDS,
    "UPDATE servers SET band_digests = x'' WHERE id = 'wide'": BANDS,
    "UPDATE servers SET band_digests = CAST(band_digests || zeroblob(20) AS BLOB)"
    " WHERE id = 'wide'": BANDS,
    "UPDATE servers SET band_digests = zeroblob(20) WHERE id = 'even'": (
        "the bands of server even"
    ),
    "INSERT INTO bands VALUES (1000000, 1, x'00')": "the table bands",
    "INSERT INTO bands VALUES (9000000, 1, x'00')": "the table bands",
    "INSERT INTO calendars VALUES (25000, x'00', zeroblob(16))": "the table calendars",
    "INSERT INTO calendars VALUES (90000, x'00', zeroblob(16))": "the table calendars",
    "UPDATE days SET players = zeroblob(length(players)) WHERE server_day ="
    " (SELECT max(server_day) FROM days WHERE server_day < 30000000)": "day ",
    "UPDATE calendars SET days = CAST(x'00' || substr(days, 2) AS BLOB)": "",
    "UPDATE servers SET blocks = zeroblob(length(blocks))": "",
}


@pytest.mark.parametrize("sql", CONSISTENT)
def test_verify_finds_forgeries_that_answers_cannot_detect(sql: str, path: str, cli: Cli) -> None:
    forge(path, sql)

    for question in QUESTIONS:
        assert cli(*question, path).exit_code in (0, 3)
    ran = cli("snapshot", "verify", path)
    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith(f"error: {path}: damaged ({CONSISTENT[sql]}")


def test_verify_finds_days_deleted_with_their_calendars(path: str, cli: Cli) -> None:
    forge(path, "DELETE FROM days WHERE server_day / 10000000 = 2 AND server_day % 4 = 0")

    for question in QUESTIONS:
        assert cli(*question, path).exit_code in (0, 3)
    assert "damaged (day 20" in cli("snapshot", "verify", path).stderr


def test_blocks_that_begin_after_their_edges_end_the_search(
    build: Build,
) -> None:
    days = [first + day for first in (0, 100, 200, 300) for day in range(32)]
    path = build([server("a"), server("b")], [("a", day * DAY, 5) for day in days])
    forge(path, "UPDATE days SET times = x'ffffffff'")
    # The edge of the second block, which begins with day 100, is set to day 50.
    forge(path, "UPDATE servers SET blocks = x'00001f0032008300c800e700' WHERE id = 'a'")

    ran = srvstat(
        "compare", "a", "b", *("--range", "24h", "--at", str(60 * DAY)), "-s", path, "--table"
    )
    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert f"error: {path}: damaged (the calendar of server a)" in ran.stderr
