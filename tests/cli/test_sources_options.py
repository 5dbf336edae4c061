"""Options of a mapping, and the command that a dry run proposes: it keeps what the dry run says."""

import re
import runpy
import shlex
import shutil
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

from conftest import AS_OF, ROOT, Cli
from support.postgresql import DATABASE, PASSWORD, USER, start_postgresql
from support.snapshots import parse_summary, read_observations, read_root

BUILD = ["snapshot", "build", "out.db", "--observations"]
WIDE = [*BUILD, "wide.csv", "--wide", "at=date", "--ids", "slug"]


@pytest.fixture
def wide_file(here: Path) -> None:
    rows = [
        "date;MAIN_LOBBY;play.example.net:30120",
        "2026-02-28 12:00;5;6.0",
        "2026-03-01 12:00:00;7;",
        "2026-03-02 12:00:00;x;9",
    ]
    (here / "wide.csv").write_text("\n".join([*rows, ""]))


@pytest.mark.usefixtures("wide_file")
def test_a_saved_mapping_builds_the_same_and_options_win_over_it(cli: Cli) -> None:
    options = ["--time-zone", "UTC", "--game", "game_b"]
    first = cli(*WIDE, *options, "--save-mapping", "map.toml", "--quiet")
    again = cli("snapshot", "build", "again.db", "--observations", "wide.csv", "--mapping=map.toml")
    other = cli(
        *("snapshot", "build", "other.db", "--observations", "wide.csv", "--mapping", "map.toml"),
        *("--time-zone", "Europe/Berlin"),
    )

    assert (first.exit_code, again.exit_code, other.exit_code) == (0, 0, 0)
    assert Path("map.toml").read_text() == (
        'wide.at = "date"\ntime-zone = "UTC"\nids = "slug"\ngame = "game_b"\n'
    )
    assert read_root("out.db") == read_root("again.db") != read_root("other.db")
    last = cli("snapshot", "info", "other.db", "--json").json["lastObservedAt"]
    assert last == "2026-03-02T11:00:00.000Z"


@pytest.mark.usefixtures("wide_file")
@pytest.mark.parametrize(
    ("time", "given", "option"),
    [
        ("2026-03-01 12:00:00", [], "--time-zone UTC"),
        ("2026-03-01 12:00:00", ["--columns", "id=serverId"], "--time-zone UTC"),
        (str(AS_OF // 1000), [], "--time-unit s"),
        (str(AS_OF // 1000), ["--columns", "id=serverId"], "--time-unit s"),
        (str(AS_OF), ["--time-unit", "s"], "--time-unit ms"),
    ],
)
def test_a_dry_run_shows_the_command_that_would_help(
    time: str, given: list[str], option: str, cli: Cli
) -> None:
    Path("out.db").touch()
    stdin = f"serverId,observedAt,players\na,{time},5\n".encode()
    others = ["--rejects", "r.ndjson", "--overwrite"]

    ran = cli(*BUILD, "-", "--format", "csv", *given, *others, "--dry-run", stdin=stdin)
    shown = ran.stdout.decode() + ran.stderr
    (line,) = [line for line in shown.splitlines() if line.startswith("  srvstat ")]
    fixed = cli(*line.split()[1:], stdin=stdin)

    assert f"{option} " in line
    assert (fixed.exit_code, Path("r.ndjson").exists()) == (0, True)
    info = cli("snapshot", "info", "out.db", "--json").json
    assert info["asOf"] == "2026-03-01T12:00:00.000Z"


UGLY = ROOT / "tests" / "sources" / "ugly"

ALL_OF = {
    "daily-averages.csv": (4, 12),
    "long-compact-dates.csv": (3, 0),
    "long-numeric-ids.csv": (4, 0),
    "long-seconds.csv": (3, 0),
    "mixed-units.csv": (2, 1),
    "monthly-averages.csv": (1, 2),
    "naive.ndjson": (2, 0),
    "not-ascii.csv": (1, 1),
    "one-series.csv": (3, 0),
    "one-slug.csv": (1, 2),
    "quoted-names.csv": (3, 0),
    "strict-spreadsheet.csv": (3, 0),
    "thousands.csv": (2, 2),
    "wide-compact-dates.csv": (2, 2),
    "wide-ten-games.csv": (25, 0),
}
"""The rows of each ugly file that are valid in some form, and those that no option reads."""

SHAPES = {
    "long CSV": ["polls.csv"],
    "wide CSV": ["wide.csv"],
    "NDJSON": ["polls.ndjson"],
    "Parquet": ["polls.parquet"],
    "folder": ["polls-by-name"],
    "Minetrack": ["database.sql", "--from", "minetrack", "--servers", "servers.json"],
    "BattleMetrics": ["1234567.json", "--from", "battlemetrics"],
    "Prometheus": ["prometheus.json", "--from", "prometheus"],
    "Cfx.re": ["cfx-polls.csv", "--from", "cfx", "--servers", "cfx.json"],
    "DuckDB": ["games.duckdb", "--query", "FROM polls"],
    "snapshot": ["other.db", "--from", "snapshot"],
}
"""The sources of docs/sources.md, with the options that name them and no other."""

KEPT = {"BattleMetrics": 3, "Cfx.re": 2}
"""The rows that each of them has, if not 5."""

DRY_RUN = ["snapshot", "build", "out.db", "--dry-run"]


def run_dry(cli: Cli, *words: str) -> tuple[list[str], int, str]:
    """Return the command that a dry run proposes, the rows that it says it keeps, and its text."""
    ran = cli(*DRY_RUN, "--observations", *words)
    shown = ran.stdout.decode() + ran.stderr
    assert ran.exit_code in (0, 6), shown
    (line,) = re.findall(r"^  (srvstat .*)$", shown, re.MULTILINE)
    (kept,) = re.findall(r"^kept +([0-9,]+)$", shown, re.MULTILINE)
    query = words[words.index("--query") + 1] if "--query" in words else ""
    command = [word.replace("…", query) for word in shlex.split(line)]
    return command[1:], int(kept), shown


def check_law(cli: Cli, *words: str) -> tuple[int, int]:
    """Run the proposed command; return the numbers of rows that it keeps and rejects."""
    command, kept, shown = run_dry(cli, *words)
    built = cli(*command)

    assert built.exit_code == 0, (command, built.stderr)
    assert len(read_observations("out.db")) == kept, shown
    return kept, int(parse_summary(built)["rejected"])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ALL_OF)
def test_the_proposed_command_reads_an_ugly_file(name: str, cli: Cli) -> None:
    shutil.copy(UGLY / name, ".")

    assert check_law(cli, name) == ALL_OF[name]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_proposed_command_reads_a_shape_of_the_documentation(shape: str, cli: Cli) -> None:
    shutil.copytree(ROOT / "docs" / "examples" / "sources", ".", dirs_exist_ok=True)
    runpy.run_path("write_databases.py", run_name="__main__")
    other = [
        "--columns",
        "id=name,at=timestamp,players=online",
        "--time-unit",
        "s",
        "--ids",
        "slug",
    ]
    build = ["snapshot", "build", "other.db", "--game", "game_a", "--observations", "polls.csv"]
    assert cli(*build, *other).exit_code == 0

    assert check_law(cli, *SHAPES[shape]) == (KEPT.get(shape, 5), 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "row",
    ["a,soon,5", "a,2026-03-01T10:00Z,many", "a,2026-03-01T10:00Z,1.000", "a,2026-03-01T10:00Z,-1"],
)
def test_an_option_that_only_changes_a_reason_is_not_proposed(row: str, cli: Cli) -> None:
    Path("strict.csv").write_text(f"serverId,observedAt,players\nb,2026-03-01T10:00Z,7\n{row}\n")

    ran = cli(*DRY_RUN, "--observations", "strict.csv", "--game", "game_a")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert b"1 row rejected" in ran.stdout
    assert b"srvstat snapshot build" not in ran.stdout


@pytest.mark.usefixtures("here")
def test_no_command_is_proposed_that_keeps_nothing(cli: Cli) -> None:
    Path("week.csv").write_text("time,name,count\n2026-03-01 10:00,a,1.5\n")
    Path("servers.ndjson").write_text('{"id": "b"}\n')
    Path("listed.csv").write_text("time,name,count\n2026-03-01T10:00Z,a,5\n")

    for name, options in (("week.csv", []), ("listed.csv", ["--servers", "servers.ndjson"])):
        ran = cli(*DRY_RUN, "--observations", name, *options)

        assert (ran.exit_code, ran.stdout) == (6, b"")
        assert "add --columns id=name,at=time,players=count" in ran.stderr
        assert "srvstat snapshot build" not in ran.stderr
        assert ran.stderr.endswith("error: no observation would be kept\n")


@pytest.mark.usefixtures("here")
def test_a_unit_is_not_proposed_for_and_against(cli: Cli) -> None:
    Path("equal.csv").write_text("at,id,players\n1772359200,a,1\n1772366400000,a,3\n")

    command, _, shown = run_dry(cli, "equal.csv")

    assert "--time-unit s --game" in shlex.join(command)
    assert "--time-unit ms" not in shown


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("zone", ["Z", ""])
def test_no_columns_are_proposed_under_which_many_rows_conflict(zone: str, cli: Cli) -> None:
    rows = [
        f"2026-03-01T{hour:02}:00{zone},chess,{region},{hour + more}\n"
        for hour in range(5)
        for more, region in enumerate(("eu", "us"))
    ]
    Path("regions.csv").write_text(f"time,game,region,players\n{''.join(rows)}")

    ran = cli(*DRY_RUN, "--observations", "regions.csv")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == (
        "error: regions.csv, line 1: must be the header serverId,observedAt,players, not the"
        ' columns "time", "game", "region", "players"; name other columns with --columns or --wide;'
        " 5 of 10 rows would conflict with --columns id=game,at=time,players=players\n"
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("long-numeric-ids.csv", ["--wide", "at=Date"], "--columns id=AppID,at=Date,players=AvgP"),
        ("long-numeric-ids.csv", ["--columns", "id=AppID"], "--columns id=AppID,at=Date,players="),
        ("long-numeric-ids.csv", ["--columns", "at=day"], "--columns id=AppID,at=Date,players=Av"),
        ("wide-ten-games.csv", ["--wide", "at=date"], "--wide at=DateTime --time-zone UTC"),
        ("wide-ten-games.csv", ["--wide", "at=DateTime", "--time-zone", "UTC"], "--ids slug"),
        ("long-seconds.csv", ["--time-unit", "ms"], "players=players_online --time-unit s"),
    ],
)
def test_a_wrong_option_is_replaced(name: str, given: list[str], expected: str, cli: Cli) -> None:
    shutil.copy(UGLY / name, ".")

    command, _, _ = run_dry(cli, name, *given)

    assert expected in shlex.join(command)
    assert check_law(cli, name, *given) == ALL_OF[name]


@pytest.mark.usefixtures("here")
def test_a_long_file_that_is_read_as_a_wide_one_is_recognized(cli: Cli) -> None:
    rows = "".join(f"2026-03-0{day} 10:00,{name},5\n" for day in (1, 2) for name in ("PIT", "SMP"))
    Path("long.csv").write_text(f"timestamp,category,players\n{rows}")

    given = ["--wide", "at=timestamp", "--time-zone", "UTC"]

    assert "--wide" not in run_dry(cli, "long.csv", *given)[0]
    assert check_law(cli, "long.csv", *given) == (4, 0)


@pytest.mark.usefixtures("here")
def test_a_label_of_prometheus_is_proposed_by_its_name(cli: Cli) -> None:
    series = (ROOT / "docs" / "examples" / "sources" / "prometheus.json").read_text()
    Path("two.json").write_text(series.replace('"server":', '"job": "poll", "server":'))

    command, _, _ = run_dry(cli, "two.json", "--from", "prometheus")

    assert "id=server" in command
    assert check_law(cli, "two.json", "--from", "prometheus") == (5, 0)


@pytest.mark.usefixtures("here")
def test_names_that_a_shell_would_run_are_quoted(cli: Cli) -> None:
    name = "$(touch hacked) 'x'.csv"
    Path(name).write_text("when,`id`,count\n2026-03-01T10:00Z,a,5\n")

    command, _, _ = run_dry(cli, name)

    assert command[3:5] == ["--observations", name]
    assert check_law(cli, name) == (1, 0)


@pytest.mark.usefixtures("here")
def test_a_file_that_no_option_reads_is_refused_with_its_own_reason(cli: Cli) -> None:
    Path("prose.csv").write_text("Dear reader,\nthis is a letter.\n")

    ran = cli(*DRY_RUN, "--observations", "prose.csv")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == (
        "error: prose.csv, line 1: must be the header serverId,observedAt,players, not the columns"
        ' "Dear reader", ""; name other columns with --columns or --wide\n'
    )


@pytest.mark.usefixtures("here")
def test_a_file_that_the_proposed_columns_do_not_help_names_both_problems(cli: Cli) -> None:
    Path("twice.csv").write_text("time,name,count,time\n2026-03-01T10:00Z,a,5,2026-03-01T10:00Z\n")

    ran = cli(*DRY_RUN, "--observations", "twice.csv")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert "must be the header" in ran.stderr
    assert ran.stderr.endswith('line 1: has two columns "time"; rename one of them\n')


@pytest.mark.usefixtures("here")
def test_a_source_that_can_be_read_once_gets_the_first_option_that_helps(cli: Cli) -> None:
    rows = "serverId,observedAt,players\na,2026-03-01 10:00,5\nb,2026-03-01 10:00,5\n"
    from_stdin = ["-", "--format", "csv", "--dry-run", "--game", "game_a"]

    ran = cli("snapshot", "build", "out.db", "--observations", *from_stdin, stdin=rows.encode())

    assert ran.exit_code == 6
    assert "add --time-zone UTC if the times are in UTC" in ran.stderr
    assert "With the options below" not in ran.stderr
    assert "--time-zone UTC --game game_a\n" in ran.stderr

    nothing = cli(
        "snapshot", "build", "x.db", "--observations", *from_stdin, stdin=rows[:28].encode()
    )
    assert nothing.stderr.endswith("error: no observation would be kept\n")


@pytest.mark.usefixtures("here")
def test_identifiers_of_prometheus_are_converted(cli: Cli) -> None:
    series = (ROOT / "docs" / "examples" / "sources" / "prometheus.json").read_text()
    Path("p.json").write_text(series.replace("main-lobby", "main lobby"))

    assert check_law(cli, "p.json", "--from", "prometheus") == (5, 0)


@pytest.mark.usefixtures("here")
def test_columns_of_times_without_a_zone_are_read_with_one(cli: Cli) -> None:
    shutil.copytree(ROOT / "docs" / "examples" / "sources", ".", dirs_exist_ok=True)
    runpy.run_path("write_databases.py", run_name="__main__")
    query = "SELECT polled_at::TIMESTAMP AS polled_at, * EXCLUDE polled_at FROM 'polls.parquet'"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO 'local.parquet'")

    assert "--time-zone UTC" in shlex.join(run_dry(cli, "local.parquet")[0])
    assert check_law(cli, "local.parquet") == (5, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_proposed_command_reads_a_table_of_postgresql(cli: Cli) -> None:
    with start_postgresql() as server:
        server.connection.execute(
            "CREATE TABLE polls (polled_at timestamp, name text, online int);"
            "INSERT INTO polls VALUES ('2026-03-01 10:00', 'PVP_ARENA', 12),"
            " ('2026-03-01 11:00', 'PVP_ARENA', NULL)"
        )
        port = server.port
        url = f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/{DATABASE}"
        command, kept, shown = run_dry(cli, url, "--query", "TABLE polls")
        built = cli(*(url if word.startswith("postgresql:") else word for word in command))

    assert (built.exit_code, kept, len(read_observations("out.db"))) == (0, 1, 1), built.stderr
    assert PASSWORD not in shown
