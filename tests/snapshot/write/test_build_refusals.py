"""Refuse builds that would replace a good snapshot by a useless one; count the rows not kept."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv, ndjson, server
from support.snapshots import COMMAND, WEEK, read_directory, read_rejects

pytestmark = pytest.mark.usefixtures("here")

REPLACE = [*WEEK, "--overwrite"]
Row = tuple[str, int | str, int | str]


@pytest.mark.parametrize("records", [[], [server("a", publishable=False)]])
def test_a_servers_file_without_publishable_servers_is_refused(
    records: list[object], here: Path, cli: Cli
) -> None:
    assert cli(*WEEK).exit_code == 0
    Path("servers.ndjson").write_bytes(ndjson(records))
    before = read_directory(here)

    ran = cli(*REPLACE)

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith("error: servers.ndjson: no ")
    assert read_directory(here) == before
    assert cli(*REPLACE, "--allow-empty", "--as-of", str(AS_OF)).exit_code == 0
    assert cli("get", "a", "-s", "out.db").exit_code == 44


def test_the_error_without_observations_gives_the_commonest_reasons(cli: Cli) -> None:
    at = ["--as-of", str(AS_OF)]
    skipped: list[Row] = [("unknown", AS_OF, 5), ("hidden", AS_OF, 5), ("other", AS_OF, 5)]
    no_zone: list[Row] = [("a", "2026-03-01 12:00", 5), ("b", AS_OF, "x"), *skipped]
    many = [*no_zone, *no_zone[:1] * 9, ("a", "soon", 1)]
    nothing = "there are no rows; check the names of the observation files"
    withheld = "the servers file says that these servers are not publishable"
    unknown = (
        '2 identifiers are not in the servers file: "unknown", "other"; add the records to'
        " servers.ndjson"
    )
    of_skipped = (
        "2 not in the servers file (first: week.csv, line 2); 1 not publishable (first: week.csv,"
        f" line 3); {withheld}; {unknown}"
    )
    later = (
        "1 after the as-of time (first: week.csv, line 2); give a later time, or leave it out to"
        " use all observations"
    )
    of_many = (
        "10 rejected, observedAt: no time zone: end it with Z or an offset such as +02:00 (first:"
        ' week.csv, line 2, observedAt: "2026-03-01 12:00"); 2 not in the servers file (first:'
        " week.csv, line 4); 1 not publishable (first: week.csv, line 5); 2 for 2 other reasons;"
        f" add --time-zone UTC if the times are in UTC; {withheld}; {unknown}"
    )
    cases: list[tuple[list[Row], list[str], str]] = [
        ([], [], nothing),
        ([], at, nothing),
        ([], ["--allow-empty"], f"{nothing}; an empty snapshot needs --as-of TIME"),
        (skipped, [], of_skipped),
        ([("a", AS_OF + 1, 5)], at, later),
        (many, [], of_many),
    ]
    for rows, options, reason in cases:
        Path("week.csv").write_bytes(csv(rows))
        ran = cli(*WEEK, *options, "--rejects", "rejects.ndjson")
        assert (ran.exit_code, ran.stderr) == (6, f"error: no observation was kept: {reason}\n")
        malformed = sum(row in (*no_zone[:2], ("a", "soon", 1)) for row in rows)
        assert len(read_rejects()) == malformed


LIMITS = [
    ("0", False),
    ("1", False),
    ("2", True),
    ("19%", False),
    ("19.99%", False),
    ("20%", True),
    ("20.0%", True),
    ("100%", True),
]


@pytest.mark.parametrize(("limit", "builds"), LIMITS)
def test_too_many_rejects_build_nothing_but_are_written(
    limit: str, *, builds: bool, here: Path, cli: Cli
) -> None:
    # Ten rows: two malformed, one conflicting, one skipped.
    good = [("a", AS_OF - at, 5) for at in range(6)]
    others = [("a", AS_OF, 6), ("unknown", AS_OF, 5)]
    Path("week.csv").write_bytes(csv([("a", AS_OF, "x"), *good, *others, ("a", "soon", 5)]))
    Path("out.db").write_bytes(b"old")

    ran = cli(*REPLACE, "--rejects", "rejects.ndjson", "--max-rejected", limit)

    assert [reject["line"] for reject in read_rejects()] == [2, 9, 11]
    assert (Path("out.db").read_bytes() != b"old") is builds
    assert read_directory(here).keys() == {"servers.ndjson", "week.csv", "out.db", "rejects.ndjson"}
    assert ran.exit_code == (0 if builds else 6)
    if not builds:
        assert ran.stderr == (
            f"error: 2 of 10 rows were rejected, but --max-rejected allows {limit}; first rejected"
            " or conflicting row: week.csv, line 2: players: must be a whole number from 0 to"
            " 9007199254740991, in digits only\n"
        )


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
@pytest.mark.parametrize("name", ["out.db", "link.db"])
def test_an_output_with_a_journal_is_refused(name: str, ending: str, here: Path, cli: Cli) -> None:
    os.symlink("out.db", "link.db")
    Path(f"out.db{ending}").write_bytes(b"left")
    before = read_directory(here)
    command = ["snapshot", "build", name, *REPLACE[3:]]

    ran = cli(*command)

    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert f"out.db{ending} exists, and SQLite would apply it" in ran.stderr
    assert read_directory(here) == before
    Path(f"out.db{ending}").unlink()
    assert cli(*command).exit_code == 0
    assert cli("get", "a", "-s", name).exit_code == 0


def test_a_snapshot_that_another_program_writes_to_is_not_replaced(cli: Cli) -> None:
    assert cli(*WEEK).exit_code == 0
    with closing(sqlite3.connect("out.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (number INTEGER)")

        for command in (REPLACE, ["get", "a", "-s", "out.db"]):
            refused = cli(*command)
            assert refused.exit_code in (2, 3)
            assert ": out.db-wal " in refused.stderr

    assert cli(*REPLACE).exit_code == 0
    assert cli("get", "a", "-s", "out.db").exit_code == 0


@pytest.mark.parametrize(
    "options",
    [
        [*COMMAND[:2], "", *WEEK[3:]],
        [*WEEK, "--rejects", ""],
        [*COMMAND, "--observations", ""],
        [*COMMAND[:3], "--servers", "", "--observations", "week.csv"],
        ["snapshot", "draft-servers", "--observations", ""],
    ],
)
def test_an_empty_file_name_is_invalid_usage(options: list[str], here: Path, cli: Cli) -> None:
    before = read_directory(here)

    ran = cli(*options)

    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, b"", 1)
    assert "name" in ran.stderr
    assert "empty" in ran.stderr
    assert read_directory(here) == before


def test_the_snapshot_and_the_rejects_are_different_files(here: Path, cli: Cli) -> None:
    before = read_directory(here)

    ran = cli("snapshot", "build", "out", *WEEK[3:], "--rejects", "./out")

    assert (ran.exit_code, read_directory(here)) == (2, before)
    assert ran.stderr == ("error: ./out: is also the snapshot; name another file for the rejects\n")


@pytest.mark.parametrize("limit", ["", "-1", "1e3", "100.1%", "%"])
def test_an_invalid_limit_of_rejects_is_invalid_usage(limit: str, cli: Cli) -> None:
    assert cli(*COMMAND, "--observations", "week.csv", f"--max-rejected={limit}").exit_code == 2


def test_a_source_with_an_invalid_name_is_refused(cli: Cli) -> None:
    ran = cli(*COMMAND, "--observations", "a\0.csv")

    assert (ran.exit_code, "not a file name" in ran.stderr) == (6, True)
