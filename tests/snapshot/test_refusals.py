"""Refuse builds that would replace a good snapshot by a useless one; count the rows not kept."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, Cli, csv, ndjson, server
from support.snapshots import (
    COMMAND,
    WEEK,
    parse_summary,
    read_directory,
    read_observations,
    read_rejects,
)

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
    assert cli(*REPLACE, "--allow-empty", "--at", str(AS_OF)).exit_code == 0
    assert cli("get", "a", "-s", "out.db").exit_code == 44


def test_the_error_without_observations_gives_the_commonest_reasons(cli: Cli) -> None:
    at = ["--at", str(AS_OF)]
    skipped: list[Row] = [("unknown", AS_OF, 5), ("hidden", AS_OF, 5), ("other", AS_OF, 5)]
    no_zone: list[Row] = [("a", "2026-03-01 12:00", 5), ("b", AS_OF, "x"), *skipped]
    many = [*no_zone, *no_zone[:1] * 9, ("a", "soon", 1)]
    nothing = "the files have no rows"
    withheld = "the servers file marks them as not public"
    unknown = (
        '2 identifiers are not in the servers file: "unknown", "other"; add the records to'
        " servers.ndjson"
    )
    of_skipped = (
        "2 not in the servers file (first: week.csv, line 2); 1 not public (first: week.csv,"
        f" line 3); {withheld}; {unknown}"
    )
    later = "1 after the as-of time (first: week.csv, line 2); use a later --at, or omit it"
    of_many = (
        "10 rejected, observedAt: no time zone; add Z or an offset such as +02:00 (first:"
        ' week.csv, line 2: "2026-03-01 12:00"); 2 not in the servers file (first:'
        " week.csv, line 4); 1 not public (first: week.csv, line 5); 2 for 2 other reasons;"
        f" add --time-zone UTC if the times are in UTC; {withheld}; {unknown}"
    )
    cases: list[tuple[list[Row], list[str], str]] = [
        ([], [], nothing),
        ([], at, nothing),
        ([], ["--allow-empty"], f"{nothing}; an empty snapshot needs --at TIME"),
        (skipped, [], of_skipped),
        ([("a", AS_OF + 1, 5)], at, later),
        (many, [], of_many),
    ]
    for rows, options, reason in cases:
        Path("week.csv").write_bytes(csv(rows))
        ran = cli(*WEEK, *options, "--rejects", "rejects.ndjson")
        assert (ran.exit_code, ran.stderr) == (6, f"error: no observations kept: {reason}\n")
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
            f"error: 2 of 10 rows rejected, more than --max-rejected {limit}; first: week.csv,"
            " line 2: players: must be a whole number from 0 to 2^53"
            " - 1, without separators\n"
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
    assert ran.stderr == "error: ./out: same file as the snapshot; choose another for --rejects\n"


BUILD = ["snapshot", "build", "out.db"]
OPEN = [*BUILD, "--game=game_a", "--overwrite"]
FLEET = ["fleet", "--output=r.ndjson", "--game=game_a", "--overwrite"]
COUNT = "must be a whole number from 0 to 2^53 - 1"


def write_rows(path: str, good: int, bad: int) -> None:
    """Write rows of a server, and after them rows without a count that can be read."""
    rows: list[tuple[str, int | str, int | str]] = [("a", AS_OF - at, 5) for at in range(good)]
    rows += [("a", AS_OF - good - at, "x") for at in range(bad)]
    if path.endswith(".csv"):
        Path(path).write_bytes(csv(rows))
        return
    names, times, players = zip(*rows, strict=True)
    counts = [-1 if count == "x" else count for count in players]
    columns = {"serverId": names, "observedAt": times, "players": counts}
    parquet.write_table(pa.table({name: pa.array(each) for name, each in columns.items()}), path)


def test_a_refusal_names_a_value_its_place_and_what_reads_it(here: Path, cli: Cli) -> None:
    rows = "".join(f'a,{AS_OF + at},"1,{at:03}"\n' for at in range(11))
    Path("people.csv").write_text(f"serverId,observedAt,players\nb,{AS_OF},5\n{rows}")
    Path("out.db").write_bytes(b"old")
    command = [*BUILD, "people.csv", "--game=game_a", "--overwrite"]
    before = read_directory(here)
    refusal = (
        f"error: people.csv: 11 of 12 rows rejected: 11 players: {COUNT}, without separators"
        ' (first: people.csv, line 3: "1,000"); add --thousands , if a comma'
        " separates thousands; add --max-rejected 95% to keep the other rows\n"
    )

    ran = cli(*command)
    dry = cli(*command, "--dry-run")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (6, b"", refusal)
    assert (dry.exit_code, dry.stdout) == (6, b"")
    assert dry.stderr.endswith(refusal)
    assert read_directory(here) == before
    assert cli(*command, "--rejects=rejects.ndjson").exit_code == 6
    assert (Path("out.db").read_bytes(), len(read_rejects())) == (b"old", 11)
    ran = cli(*command, "--max-rejected=95%", "--quiet")
    assert (ran.exit_code, len(read_observations("out.db"))) == (0, 1)
    assert ran.stderr.startswith("warning: 11 of 12 rows not kept: 11 rejected")


@pytest.mark.parametrize(
    ("good", "bad", "limit", "builds"),
    [
        (1, 10, None, True),
        (1, 11, None, False),
        (1_089, 11, None, True),
        (1_088, 11, None, False),
        (1, 11, "11", True),
        (1, 11, "95%", True),
        (1_000, 3, "2", False),
        (1_000, 3, "0.2%", False),
        (1_000, 3, "0.3%", True),
    ],
)
def test_ten_rows_or_a_hundredth_may_be_lost_or_what_an_option_says(
    good: int, bad: int, limit: str | None, *, builds: bool, cli: Cli
) -> None:
    options = [] if limit is None else [f"--max-rejected={limit}"]
    counts = f"{bad} of {good + bad:,} rows"
    for name, value, place in (
        ("rows.csv", "x", f"line {good + 2}"),
        ("rows.parquet", "-1", f"row {good + 1}"),
    ):
        write_rows(name, good, bad)
        for ran in (cli(*OPEN, f"--observations={name}", *options), cli(*FLEET, name, *options)):
            line = ran.stderr.splitlines()[-1]
            if builds:
                assert ran.exit_code == 0
                assert line.startswith(f"warning: {counts} not kept: {bad} rejected")
                continue
            assert (ran.exit_code, ran.stderr.count("\n")) == (6, 1)
            if limit is None:
                assert line.startswith(f"error: {name}: {counts} rejected: {bad} players: {COUNT}")
                assert f' (first: {name}, {place}: "{value}"); add --max-rejected ' in line
            else:
                assert line.startswith(
                    f"error: {counts} rejected, more than --max-rejected {limit}; first:"
                    f" {name}, {place}: players: {COUNT}"
                )
        assert Path("out.db").exists() is Path("r.ndjson").exists() is builds


@pytest.mark.parametrize("command", [OPEN, FLEET], ids=["build", "fleet"])
def test_the_limit_is_that_of_each_source_and_the_proposed_one_admits_all(
    command: list[str], cli: Cli
) -> None:
    for name, good, bad in (("a.csv", 2_000, 0), ("b.csv", 88, 12), ("c.csv", 50, 50)):
        write_rows(name, good, bad)
    names = ["a.csv", "b.csv", "c.csv"]
    given = [f"--observations={name}" for name in names] if command is OPEN else names

    ran = cli(*command, *given)

    assert ran.exit_code == 6
    assert ran.stderr.startswith(
        "error: c.csv: 50 of 100 rows rejected (and too many of 1 more): 50 players: "
    )
    assert ran.stderr.endswith("; add --max-rejected 50% to keep the other rows\n")
    assert cli(*command, *given, "--max-rejected=50%").exit_code == 0


@pytest.mark.parametrize("name", ["wide.csv", "wide.parquet"])
def test_a_wide_line_without_a_time_that_can_be_read_loses_all_its_counts(
    name: str, cli: Cli
) -> None:
    times = [f"2026-03-01T{at // 60:02}:{at % 60:02}:00Z" for at in range(190)]
    times += [f"soon {at}" for at in range(10)]
    columns = {f"s{number}": [*range(199), None] for number in range(40)}
    if name == "wide.csv":
        rows = zip(times, *columns.values(), strict=True)
        lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
        Path(name).write_text("\n".join([",".join(["date", *columns]), *lines, ""]))
    else:
        parquet.write_table(pa.table({"date": times, **columns}), name)

    for command, given in ((OPEN, f"--observations={name}"), (FLEET, name)):
        ran = cli(*command, given, "--wide=at=date")

        assert ran.exit_code == 6
        # The last line has no counts, so it is one row.
        assert ran.stderr.startswith(f"error: {name}: 361 of 7,961 rows rejected: 361 observe")
        assert ': "soon 0"); add --max-rejected 5% ' in ran.stderr


def test_an_update_that_loses_rows_leaves_the_snapshot_as_it_is(here: Path, cli: Cli) -> None:
    assert cli(*OPEN, "--observations=week.csv").exit_code == 0
    write_rows("today.csv", 30, 20)
    before = read_directory(here)
    update = ["snapshot", "update", "out.db", "--observations=today.csv"]

    ran = cli(*update, "--quiet")

    assert ran.exit_code == 6
    assert ran.stderr.startswith("error: today.csv: 20 of 50 rows rejected: 20 players: ")
    assert read_directory(here) == before

    ran = cli(*update, "--max-rejected=40%", "--rejects=rejects.ndjson")

    assert (ran.exit_code, len(read_rejects())) == (0, 21)
    assert "\nwarning: 21 of 50 rows not kept: 20 rejected, 1 conflicting; first: " in ran.stderr


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_update_names_identifiers_that_the_snapshot_does_not_have(
    quiet: list[str], cli: Cli
) -> None:
    records = ["--servers=servers.ndjson"]
    for name, options in (("open.db", ["--game=game_b"]), ("listed.db", records)):
        built = cli("snapshot", "build", name, "--observations=week.csv", *options)
        assert built.exit_code == 0, built.stderr
    names = ["a", "arena", "Arena2", "lobby", "hall", "arena"]
    Path("today.csv").write_bytes(csv([(name, AS_OF + at, 6) for at, name in enumerate(names)]))
    Path("new.ndjson").write_bytes(ndjson([server("hall"), server("arena")]))
    unknown = (
        '4 identifiers are not in the snapshot: "arena", "Arena2", "lobby" and 1 more; add the'
    )

    def update(name: str, *options: str) -> list[str]:
        ran = cli("snapshot", "update", name, "--observations=today.csv", *quiet, *options)
        assert ran.exit_code == 0, ran.stderr
        shown = parse_summary(ran)
        assert bool(shown) is not bool(quiet)
        return [line for line in ran.stderr.splitlines() if line.startswith("warning: ")]

    lost = "warning: 5 of 6 rows not kept: 5 not in the snapshot"
    assert update("listed.db") == [lost, f"warning: {unknown} records with --servers FILE"]
    assert update("open.db") == []
    assert update("listed.db", "--servers=new.ndjson") == [
        "warning: 2 of 6 rows not kept: 2 not in the snapshot",
        (
            'warning: 2 identifiers are not in the snapshot: "Arena2", "lobby"; add the records to'
            " new.ndjson"
        ),
    ]
    assert {row[0] for row in read_observations("listed.db")} == {"a", "b", "arena", "hall"}
    assert {row[0] for row in read_observations("open.db")} == {"b", *names}


@pytest.mark.parametrize("command", [[*BUILD, "--overwrite"], FLEET[:2]], ids=["build", "fleet"])
def test_every_row_that_is_not_kept_is_in_a_warning_after_the_summary(
    command: list[str], cli: Cli
) -> None:
    rows = [("b", AS_OF, 8), ("new", AS_OF, 1), ("hidden", AS_OF, 1), ("a", AS_OF + 1, 1)]
    Path("more.csv").write_bytes(csv([*rows, ("a", "soon", 1), ("a", AS_OF, 6)]))
    names = ["week.csv", "more.csv"]
    given = [f"--observations={name}" for name in names] if BUILD[0] in command else names

    ran = cli(*command, *given, "--servers=servers.ndjson", f"--at={AS_OF}")

    *summary, not_kept, unknown = ran.stderr.splitlines()
    assert (ran.exit_code, parse_summary(ran)["conflicting"]) == (0, "1")
    assert not any(line.startswith("warning: ") for line in summary)
    assert not_kept.startswith("warning: 5 of 9 rows not kept: 1 rejected")
    skipped = "1 conflicting, 1 after the as-of time, 1 not in the servers file, 1 not public"
    assert skipped in not_kept
    assert unknown == (
        'warning: 1 identifier is not in the servers file: "new"; add the records to servers.ndjson'
    )
    with open("servers.ndjson", "ab") as file:
        file.write(ndjson([server("new")]))
    assert (
        "identifier"
        not in cli(*command, *given, "--servers=servers.ndjson", "-q", "--overwrite").stderr
    )


QUIET_BUILD = ["snapshot", "build", "out.db", "--game=game_a", "--overwrite", "--quiet"]
COLUMNS = "--columns id=serverId,at=observedAt,players=players"
HEADER_LINE = "serverId,observedAt,players\n"
TIME = "2026-03-01T10:00Z"


def find_remedy(cli: Cli, *options: str) -> str:
    """Build from sources with one malformed row; return the last part of the warning."""
    ran = cli(*QUIET_BUILD, *options)
    assert ran.exit_code == 0, ran.stderr
    (line,) = ran.stderr.splitlines()
    assert line.startswith("warning: 1 of 2 rows not kept: 1 rejected; first: ")
    return line.rpartition("; ")[2]


AS_COLUMNS = f"add {COLUMNS} to read such values"
IN_ANOTHER_FORM = [
    ("a,01.03.2026 10:00,5", "add --time-format day-first or month-first"),
    *((f"a,{TIME},{value}", AS_COLUMNS) for value in ("007", "0.0", "", "NA", "12.00")),
    *(
        (f'{{"serverId":"a","observedAt":"{TIME}","players":{value}}}', AS_COLUMNS)
        for value in ('"5"', "1.0")
    ),
    ("a,2026-03-01,4", "add --time-zone UTC if the times are in UTC"),
]


@pytest.mark.parametrize(("row", "remedy"), IN_ANOTHER_FORM)
def test_a_remedy_reads_values_in_another_form(row: str, remedy: str, cli: Cli) -> None:
    Path("week.csv").write_text(f"{HEADER_LINE}{row}\nb,{TIME},5\n")
    good = {"serverId": "b", "observedAt": TIME, "players": 5}
    Path("week.ndjson").write_text(f"{row}\n{json.dumps(good)}\n")
    source = "--observations=week.ndjson" if row[0] == "{" else "--observations=week.csv"

    assert find_remedy(cli, source) == remedy

    if remedy.startswith("add ") and " or " not in remedy:
        option, value = remedy.split()[1:3]
        ran = cli(*QUIET_BUILD, source, option, value)
        assert (ran.exit_code, "rejected" in ran.stderr) == (0, False)


def test_a_source_without_columns_names_the_malformed_value(cli: Cli) -> None:
    points = [
        {"attributes": {"timestamp": f"2026-03-01T1{hour}:00:00Z", "value": count}}
        for hour, count in enumerate((5.5, 6))
    ]
    Path("1.json").write_text(json.dumps({"data": points}))

    ran = cli(*QUIET_BUILD, "1.json", "--source=battlemetrics", "--at=2026-03-01T09:00Z")

    assert '(first: 1.json, row 1: "5.5"); ' in ran.stderr


ROWS = f"serverId,observedAt,players\na,{AS_OF},5\n"


def write_files() -> None:
    Path("good.csv").write_text(ROWS)
    Path("bad.csv").write_text("serverId,observedAt,players\na,soon,5\n")
    Path("servers.ndjson").write_text('{"id":"a"}\n')
    Path("snapshot.db").write_text("no snapshot")


BUILD_COMMAND = ("snapshot", "build", "out.db")
DRAFT_COMMAND = ("snapshot", "draft-servers")
FLEET_COMMAND = ("fleet", "-o", "out.ndjson")
MISSING = "missing.csv: no such file or directory"


@pytest.mark.parametrize(
    ("files", "options", "reason", "exit_code"),
    [
        (("missing.csv",), (), MISSING, 6),
        (("good.csv", "missing.csv"), (), MISSING, 6),
        (("bad.csv", "missing.csv"), ("--strict",), MISSING, 6),
        (("missing.csv",), ("--servers", "servers.ndjson"), MISSING, 6),
        (("good.csv",), ("--servers", "missing.csv"), MISSING, 6),
        (("bad.csv",), (), "no observations kept: 1 rejected", 6),
    ],
)
def test_the_first_thing_to_mend_is_named(
    files: tuple[str, ...], options: tuple[str, ...], reason: str, exit_code: int, cli: Cli
) -> None:
    write_files()
    sources = [f"--observations={name}" for name in files]
    commands = [(*BUILD_COMMAND, *sources, *options)]
    if not options and "bad.csv" not in files:
        commands += [(*FLEET_COMMAND, *files), (*DRAFT_COMMAND, *sources)]

    for command in commands:
        ran = cli(*command)

        assert (ran.exit_code, ran.stderr[: len(reason) + 7]) == (exit_code, f"error: {reason}")
        assert not Path("out.db").exists()


@pytest.mark.usefixtures("here")
def test_a_file_that_may_not_be_read_comes_before_the_game(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files()
    monkeypatch.setattr("os.access", lambda *_: False)  # tests may run as root

    ran = cli(*BUILD_COMMAND, "--observations=good.csv")

    assert (ran.exit_code, ran.stderr) == (6, "error: good.csv: permission denied\n")
