"""Options of a mapping, its file, and the dry run that shows what they mean."""

import re
import sqlite3
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, ndjson, server
from srvstat.snapshot.write import dry_run
from support.snapshots import read_root
from support.terminal import run_srvstat_in_terminal

pytestmark = pytest.mark.usefixtures("here")

BUILD = ["snapshot", "build", "out.db", "--observations"]
WIDE = [*BUILD, "wide.csv", "--wide", "at=date", "--ids", "slug"]


@pytest.fixture(autouse=True)
def _wide(here: Path) -> None:
    rows = [
        "date;MAIN_LOBBY;play.example.net:30120",
        "2026-02-28 12:00;5;6.0",
        "2026-03-01 12:00:00;7;",
        "2026-03-02 12:00:00;x;9",
    ]
    (here / "wide.csv").write_text("\n".join([*rows, ""]))


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


def test_a_mapping_is_not_saved_over_a_file_or_for_a_failed_build(cli: Cli) -> None:
    refused = cli(*WIDE, "--time-zone", "UTC", "--game", "game_a", "--save-mapping", "week.csv")
    failed = cli(*WIDE, "--game", "game_a", "--save-mapping", "map.toml")

    assert (refused.exit_code, refused.stderr) == (
        2,
        "error: week.csv: exists; --overwrite replaces it\n",
    )
    assert failed.exit_code == 6
    assert not Path("map.toml").exists()
    assert not Path("out.db").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--columns", "id"], '--columns: can\'t be read from "id"; write at=NAME'),
        (["--columns", "name=a"], '--columns: "name" is not one of id, at, players'),
        (["--columns", "id=a,at=a"], "--columns: two fields can't have the same column"),
        (["--columns", "at="], "--columns: at: must be the name of a column"),
        (["--wide", "id=a"], "--wide: takes at=NAME only"),
        (["--wide", "at=a", "--columns", "at=a"], "--wide: can't be combined with columns"),
        (["--time-zone", "localtime"], '--time-zone: no time zone "localtime"; use UTC'),
        (["--time-unit", "us"], "'us' is not one of 's', 'ms'"),
        (["--game", "chess"], '--game: "chess" is not one of game_a, game_b'),
        (["--from", "xls"], '--from: "xls" is not one of csv, ndjson,'),
        (["--from", "minetrack", "--time-unit", "s"], "--from minetrack: has a form of its own"),
        (["--save-mapping", ""], "--save-mapping: the name is empty"),
        (["--save-mapping", "out.db"], "out.db: is also another output; name another file"),
        (["--mapping", "-", "--columns", "at=a", "--observations", "-"], "standard input (-) can"),
    ],
)
def test_an_option_that_means_nothing_is_invalid_usage(
    options: list[str], reason: str, cli: Cli
) -> None:
    ran = cli(*BUILD, "week.csv", "--servers", "servers.ndjson", *options)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert reason in ran.stderr


def test_a_missing_column_names_the_columns_there_are(cli: Cli) -> None:
    ran = cli(*BUILD, "week.csv", "--servers", "servers.ndjson", "--columns", "at=time")

    assert ran.exit_code == 6
    assert ran.stderr == (
        'error: week.csv, line 1: no column "time"; the columns are "serverId", "observedAt",'
        ' "players"; name them with --columns\n'
    )


def test_a_dry_run_shows_what_a_build_would_do_and_writes_nothing(cli: Cli, here: Path) -> None:
    before = sorted(here.iterdir())
    ran = cli(*WIDE, "--time-zone", "UTC", "--dry-run", "--save-mapping", "map.toml")

    lines = [re.sub(" {2,}", "  ", line) for line in ran.stdout.decode().splitlines()]
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert sorted(here.iterdir()) == before
    assert lines[2:4] == [
        "MAIN_LOBBY  main-lobby  2026-02-28 12:00:00  5",
        "play.example.net:30120  play-example-net-30120  2026-02-28 12:00:00  6",
    ]
    assert "servers  2" in lines
    assert "span  2026-02-28 12:00:00 UTC to 2026-03-02 12:00:00 UTC" in lines
    assert "interval  1 d (1 server), 2 d (1 server)" in lines
    assert "kept  4" in lines
    rejected = lines.index(
        "1 row rejected: players: must be a whole number from 0 to 9007199254740991"
    )
    assert lines[rejected + 1] == "  wide.csv, line 4: MAIN_LOBBY,2026-03-02 12:00:00,x"
    assert lines[-1] == (
        "  srvstat snapshot build out.db --observations wide.csv --wide at=date --time-zone UTC"
        " --save-mapping map.toml --ids slug --game game_a"
    )


def test_a_dry_run_counts_as_a_build_does(cli: Cli) -> None:
    rows = [
        *("serverId,observedAt,players", f"a,{AS_OF},1", f"a,{AS_OF},1", f"a,{AS_OF},2"),
        *(f"a,{AS_OF},3", f"b,{AS_OF - DAY},4", f"hidden,{AS_OF},5", f"c,{AS_OF},6", "a_b,5,7"),
    ]
    Path("rows.csv").write_text("\n".join([*rows, ""]))
    options = ["rows.csv", "--servers", "servers.ndjson"]
    dry = cli(*BUILD, *options, "--dry-run").stdout.decode()
    built = cli(*BUILD, *options).stderr

    for name in ("kept", "repeated", "read"):
        pattern = rf"^ *{name} +([0-9]+)"
        counts = [re.findall(pattern, text, re.MULTILINE) for text in (dry, built)]
        assert counts[0] == counts[1] != [], name
    assert "2 rows rejected: players: an earlier row of this server and instant has another" in dry
    assert "1 row rejected: serverId: must be" in dry
    assert "1 row skipped: not in the servers file\n  rows.csv, line 8\n" in dry
    assert "1 row skipped: not publishable" in dry


def test_a_dry_run_tells_of_servers_without_observations(cli: Cli) -> None:
    rows = "serverId,observedAt,players\n"
    Path("late.csv").write_text(f"{rows}late,{AS_OF + 1},5\n")
    options = ["week.csv", "--observations", "late.csv", "--as-of", str(AS_OF), "--dry-run"]
    shown = [
        cli(*BUILD, *options, "--game", "game_a").stdout.decode(),
        cli(
            *BUILD, "late.csv", "--observations", "week.csv", *options[3:], "--game", "game_a"
        ).stdout.decode(),
    ]
    Path("servers.ndjson").write_bytes(ndjson([server("a"), server("quiet")]))
    listed = cli(*BUILD, *options, "--servers", "servers.ndjson").stdout.decode()

    for text in (*shown, listed):
        assert re.search(r"^ *servers +2\b", text, re.MULTILINE), text
    assert re.search(r"^ *late +not kept ", shown[1], re.MULTILINE), shown[1]


def test_a_dry_run_without_temporary_space_is_an_error(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_rejects: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(dry_run, "_collect_examples", fail)

    ran = cli(*BUILD, "week.csv", "--game", "game_a", "--dry-run")

    assert ran.exit_code != 0
    assert "SQLite's temporary files: database or disk is full" in ran.stderr


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


def test_a_dry_run_that_keeps_nothing_explains_it_on_standard_error(cli: Cli) -> None:
    ran = cli(*WIDE, "--game", "game_a", "--dry-run")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr.startswith("5 rows rejected: observedAt: no time zone: end it with Z")
    assert "\n  wide.csv, line 2: 2026-02-28 12:00;5;6.0\n" in ran.stderr
    assert ran.stderr.endswith("error: no observation would be kept without these options\n")


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_dry_run_fits_the_terminal_except_for_its_command(
    columns: int,
) -> None:
    command = [*WIDE, "--time-zone", "UTC", "--dry-run"]
    exit_code, shown = run_srvstat_in_terminal(*command, columns=columns)
    *table, last = shown.splitlines()

    assert exit_code == 0
    assert max(map(len, table)) <= columns
    assert last.startswith("  srvstat snapshot build out.db --observations wide.csv")


@pytest.mark.parametrize(
    "rows", ["MAIN_LOBBY,1772366400000,5\n", "A_B,1772366400000,5\nlobby,1772366400000,5\n"]
)
def test_rejected_rows_come_with_the_option_that_would_keep_them(rows: str, cli: Cli) -> None:
    Path("own.csv").write_text(f"serverId,observedAt,players\n{rows}")
    for quiet in ([], ["--quiet"]):
        ran = cli(*BUILD, "own.csv", "--game", "game_a", "--overwrite", *quiet)

        assert ran.exit_code == (0 if "lobby," in rows else 6)
        assert ran.stderr.endswith("add --ids slug to convert the identifiers\n")


def test_objects_with_other_keys_need_columns(cli: Cli) -> None:
    Path("own.ndjson").write_text('{"server":"a","time":5,"count":5}\n')

    ran = cli(*BUILD, "own.ndjson", "--game", "game_a")

    assert ran.exit_code == 6
    assert ran.stderr.endswith("; name other keys with --columns id=KEY,at=KEY,players=KEY\n")
