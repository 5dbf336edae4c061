"""Refuse to lose many rows of a source, and warn of every row that is not kept."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, ROOT, Cli, csv, ndjson, server
from support.snapshots import parse_summary, read_directory, read_observations, read_rejects

pytestmark = pytest.mark.usefixtures("here")

UGLY = ROOT / "tests" / "snapshot" / "write" / "ugly"
OPTIONS = ["--time-zone=UTC", "--game=game_a"]
BUILD = ["snapshot", "build", "out.db"]
OPEN = [*BUILD, "--game=game_a", "--overwrite"]
FLEET = ["fleet", "--output=r.ndjson", "--game=game_a", "--overwrite"]
COUNT = "must be a whole number from 0 to 9007199254740991"


class Export(NamedTuple):
    """A file for people: how it is read, how many rows are lost, why, and what keeps them."""

    name: str
    columns: str
    rejected: int
    rows: int
    reason: str
    limit: str
    query: str


EXPORTS = [
    Export(
        "thousands.csv",
        "id=Server,at=Date,players=Players online",
        11,
        72,
        'line 33, Players online: "1,014"); remove the separators of thousands, or use --query with'
        " replace(\"Players online\", ',', '')",
        "20%",
        "SELECT Server AS serverId, Date AS observedAt, replace(\"Players online\", ',', '') AS"
        " players FROM 'thousands.csv'",
    ),
    Export(
        "averages.csv",
        "id=Game,at=Month,players=Average",
        21,
        24,
        'line 2, Average: "41.2"); round the counts to whole numbers, or use --query with'
        ' round("Average")',
        "90%",
        'SELECT Game AS serverId, Month AS observedAt, round("Average") AS players'
        " FROM 'averages.csv'",
    ),
]


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


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)
def test_an_export_for_people_is_refused_with_values_and_what_reads_them(
    export: Export, here: Path, cli: Cli
) -> None:
    shutil.copy(UGLY / export.name, ".")
    Path("out.db").write_bytes(b"old")
    options = [f"--observations={export.name}", f"--columns={export.columns}", *OPTIONS]
    replace = [*BUILD, *options, "--overwrite"]
    before = read_directory(here)
    refusal = (
        f"error: {export.name}: {export.rejected} of {export.rows} rows were rejected:"
        f" {export.rejected} players: {COUNT} (first: {export.name}, {export.reason};"
        f" --max-rejected {export.limit} keeps the other rows\n"
    )

    ran = cli(*replace)
    dry = cli(*replace, "--dry-run")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (6, b"", refusal)
    assert (dry.exit_code, dry.stdout) == (6, b"")
    assert dry.stderr.endswith(refusal)
    assert read_directory(here) == before

    ran = cli(*replace, "--rejects=rejects.ndjson")

    assert (ran.exit_code, Path("out.db").read_bytes()) == (6, b"old")
    assert len(read_rejects()) == export.rejected

    ran = cli(*replace, f"--max-rejected={export.limit}", "--quiet")

    assert ran.exit_code == 0
    assert ran.stderr.startswith(
        f"warning: {export.rejected} of {export.rows} rows not kept: {export.rejected} rejected"
    )
    assert len(read_observations("out.db")) == export.rows - export.rejected

    ran = cli(*BUILD, "--overwrite", "--query", export.query, *OPTIONS, "--quiet")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert len(read_observations("out.db")) == export.rows


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
                assert line.startswith(
                    f"error: {name}: {counts} were rejected: {bad} players: {COUNT}"
                )
                assert f' (first: {name}, {place}, players: "{value}"); --max-rejected ' in line
            else:
                assert line.startswith(
                    f"error: {counts} were rejected, but --max-rejected allows {limit}; first"
                    f" rejected or conflicting row: {name}, {place}: players: {COUNT}"
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
        "error: c.csv: 50 of 100 rows were rejected (and too many of 1 more): 50 players: "
    )
    assert ran.stderr.endswith("; --max-rejected 50% keeps the other rows\n")
    assert cli(*command, *given, "--max-rejected=50%").exit_code == 0


@pytest.mark.parametrize("name", ["wide.csv", "wide.parquet"])
def test_a_wide_line_without_a_time_that_can_be_read_loses_all_its_counts(
    name: str, cli: Cli
) -> None:
    times = [f"2026-03-01T{at // 60:02}:{at % 60:02}:00Z" for at in range(190)]
    times += [f"01.03.2026 {at}:00" for at in range(10)]
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
        assert ran.stderr.startswith(f"error: {name}: 361 of 7,961 rows were rejected: 361 observe")
        assert ', date: "01.03.2026 0:00"); --max-rejected 5% ' in ran.stderr


def test_an_update_that_loses_rows_leaves_the_snapshot_as_it_is(here: Path, cli: Cli) -> None:
    assert cli(*OPEN, "--observations=week.csv").exit_code == 0
    write_rows("today.csv", 30, 20)
    before = read_directory(here)
    update = ["snapshot", "update", "out.db", "--observations=today.csv"]

    ran = cli(*update, "--quiet")

    assert ran.exit_code == 6
    assert ran.stderr.startswith("error: today.csv: 20 of 50 rows were rejected: 20 players: ")
    assert read_directory(here) == before

    ran = cli(*update, "--max-rejected=40%", "--rejects=rejects.ndjson")

    assert (ran.exit_code, len(read_rejects())) == (0, 21)
    assert "\nwarning: 21 of 50 rows not kept: 20 rejected, 1 conflicting; first " in ran.stderr


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
    assert update("open.db") == [lost, f"warning: {unknown} servers with --game game_b"]
    assert update("listed.db", "--servers=new.ndjson") == [
        "warning: 2 of 6 rows not kept: 2 not in the snapshot",
        (
            'warning: 2 identifiers are not in the snapshot: "Arena2", "lobby"; add the records to'
            " new.ndjson"
        ),
    ]
    assert {row[0] for row in read_observations("listed.db")} == {"a", "b", "arena", "hall"}
    assert update("open.db", "--game=game_b") == []
    assert {row[0] for row in read_observations("open.db")} == {"b", *names}


@pytest.mark.parametrize("command", [[*BUILD, "--overwrite"], FLEET[:2]], ids=["build", "fleet"])
def test_every_row_that_is_not_kept_is_in_a_warning_after_the_summary(
    command: list[str], cli: Cli
) -> None:
    rows = [("b", AS_OF, 8), ("new", AS_OF, 1), ("hidden", AS_OF, 1), ("a", AS_OF + 1, 1)]
    Path("more.csv").write_bytes(csv([*rows, ("a", "soon", 1), ("a", AS_OF, 6)]))
    names = ["week.csv", "more.csv"]
    given = [f"--observations={name}" for name in names] if BUILD[0] in command else names

    ran = cli(*command, *given, "--servers=servers.ndjson", f"--as-of={AS_OF}")

    *summary, not_kept, unknown = ran.stderr.splitlines()
    assert (ran.exit_code, parse_summary(ran)["conflicting"]) == (0, "1")
    assert not any(line.startswith("warning: ") for line in summary)
    assert not_kept.startswith("warning: 5 of 9 rows not kept: 1 rejected")
    skipped = "1 conflicting, 1 after the as-of time, 1 not in the servers file, 1 not publishable"
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
