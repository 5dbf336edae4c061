"""The session of a build: what is read unseen, asked, proposed and remembered."""

import shlex
import subprocess
from pathlib import Path

import pytest

from conftest import Cli
from support.snapshots import parse_summary, read_directory, read_observations, read_root
from support.terminal import PLAIN, SRVSTAT, run_in_terminal

BUILD = ["snapshot", "build", "out.db", "--observations"]
WIDE = [*BUILD, "wide.csv", "--wide", "at=date", "--slug-ids"]


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
        'wide.at = "date"\ntime-zone = "UTC"\nslug-ids = true\ngame = "game_b"\n'
    )
    assert read_root("out.db") == read_root("again.db") != read_root("other.db")
    last = cli("snapshot", "info", "other.db", "--json").json["lastObservedAt"]
    assert last == "2026-03-02T11:00:00.000Z"


DRY_RUN = ["snapshot", "build", "out.db", "--dry-run"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "row",
    ["a,soon,5", "a,2026-03-01T10:00Z,many", "a,2026-03-01T10:00Z,1.000", "a,2026-03-01T10:00Z,-1"],
)
def test_a_dry_run_shows_rows_that_no_option_reads(row: str, cli: Cli) -> None:
    Path("strict.csv").write_text(f"serverId,observedAt,players\nb,2026-03-01T10:00Z,7\n{row}\n")

    ran = cli(*DRY_RUN, "--observations", "strict.csv", "--game", "game_a")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert b"1 row rejected" in ran.stdout


@pytest.mark.usefixtures("here")
def test_the_placeholder_of_a_proposed_command_is_not_a_zone(cli: Cli) -> None:
    ran = cli("snapshot", "build", "out.db", "week.csv", "--time-zone", "ZONE")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr == (
        'error: --time-zone: "ZONE" stands for your time zone; write it, such as Europe/Berlin or'
        " UTC\n"
    )


TWO_COUNTS = """name;when;avg;peak
Main Lobby;05/01/2026 00:00;5;9
Main Lobby;05/01/2026 01:00;6;10
Sky;05/01/2026 01:00;7;11
"""
PROPOSED = (
    "--columns id=name,at=when,players=avg --time-format day-first --slug-ids --game game_a"
    " --time-zone ZONE"
)


@pytest.fixture
def two_counts(here: Path) -> Path:
    """Work in a directory with a file in which most can be read in two ways."""
    (here / "two $(counts).csv").write_text(TWO_COUNTS)
    return here


BUILD_TWO = [
    *("snapshot", "build", "out.db", "two $(counts).csv", "--slug-ids", "--game", "game_a")
]


def test_without_a_terminal_the_command_is_printed_that_asks_nothing(
    two_counts: Path, cli: Cli
) -> None:
    before = read_directory(two_counts)

    ran = cli(*BUILD_TWO, "--quiet")

    assert (ran.exit_code, ran.stdout, read_directory(two_counts)) == (2, b"", before)
    *_, unclear, nothing, line = ran.stderr.splitlines()
    assert unclear.startswith("unclear: which column has the counts: avg or peak; ")
    assert nothing == "nothing written; check the options and run:"
    assert line == f"  srvstat snapshot build out.db 'two $(counts).csv' {PROPOSED}"
    assert cli(*shlex.split(line)[1:]).exit_code == 2
    built = cli(*shlex.split(line.replace("ZONE", "Europe/Berlin"))[1:])
    assert (built.exit_code, "not clear" in built.stderr) == (0, False)
    assert read_observations("out.db")[0] == ("main-lobby", 1767567600000, 5)


def test_on_a_terminal_each_question_is_asked_until_the_answer_is_valid(two_counts: Path) -> None:
    answers = "2\nmonth\nMars\nUTC\n2\nmonth-first\nEurope/Berlin\n"

    code, shown = run_in_terminal([*SRVSTAT, *BUILD_TWO], cwd=two_counts, answers=answers)

    assert code == 0, shown
    assert "  1  players=avg\n  2  players=peak\nanswer [players=avg]: " in shown
    assert ']: "month" is not day-first, month-first, or a strptime format' in shown
    assert ']: no time zone "month-first"; use UTC or a name such as Europe/Berlin' in shown
    command = PROPOSED.replace("avg", "peak").replace("day-", "month-")
    command = command.replace("--time-format", "--time-zone Europe/Berlin --time-format")
    assert f"{command.replace(' --time-zone ZONE', '')}\n" in shown
    assert read_observations(str(two_counts / "out.db"))[0] == ("main-lobby", 1777586400000, 9)


def test_nothing_is_asked_for_an_output_that_exists(two_counts: Path, cli: Cli) -> None:
    (two_counts / "out.db").write_bytes(b"old")

    ran = cli(*BUILD_TWO)

    assert (ran.exit_code, ran.stderr) == (
        2,
        "error: out.db: already exists; add --overwrite to replace it\n",
    )


def test_enter_takes_the_proposal_and_the_zone_of_the_machine(two_counts: Path) -> None:
    env = {**PLAIN, "TZ": "Asia/Tokyo"}

    code, shown = run_in_terminal([*SRVSTAT, *BUILD_TWO], cwd=two_counts, env=env, answers="\n\n\n")

    assert code == 0, shown
    assert "the time zone [Asia/Tokyo]: " in shown
    assert read_observations(str(two_counts / "out.db"))[0] == ("main-lobby", 1767538800000, 5)
    today = [*SRVSTAT, "today", "--snapshot", "out.db"]
    hint = "note: times are UTC; add --tz Asia/Tokyo for local times\n"
    assert run_in_terminal(today, cwd=two_counts)[1].startswith(hint)
    assert hint not in run_in_terminal([*today, "--tz", "UTC"], cwd=two_counts)[1]


def test_the_end_of_input_prints_the_command(two_counts: Path) -> None:
    code, shown = run_in_terminal([*SRVSTAT, *BUILD_TWO], cwd=two_counts, answers="\n")

    assert (code, (two_counts / "out.db").exists()) == (2, False)
    assert shown.endswith(f"  srvstat snapshot build out.db 'two $(counts).csv' {PROPOSED}\n")


@pytest.mark.usefixtures("here")
def test_names_of_columns_can_be_copied_from_the_proposed_command(cli: Cli) -> None:
    name = 'the server\'s\u00a0name, "x" \\ 異'
    quoted = name.replace('"', '""')
    rows = "2026-03-01T10:00,a,5\n2026-03-01T10:00,b,6\n2026-03-01T11:00,a,7\n"
    Path("odd.csv").write_text(f'when,"{quoted}",count\n{rows}')

    line = cli("snapshot", "build", "out.db", "odd.csv").stderr.splitlines()[-1]
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
    ).stdout.decode()
    built = cli(*words.replace("ZONE", "UTC").split("\0")[1:-1], "--game", "game_a")

    assert built.exit_code == 0, built.stderr
    assert read_observations("out.db")[-1] == ("b", 1772359200000, 6)


@pytest.mark.usefixtures("here")
def test_an_update_needs_no_option_and_says_what_the_snapshot_expects(cli: Cli) -> None:
    rows = "{},{},{}\nlobby,2026-03-0{}T10:00Z,5\nhub,2026-03-01T11:00Z,6\n"
    Path("one.csv").write_text(rows.format("server", "time", "online", 1))
    Path("two.csv").write_text(
        rows.format("server", "time", "online", 2) + "sky,2026-03-03T10:00Z,6\n"
    )
    Path("other.csv").write_text(rows.format("name", "when", "count", 3))
    assert cli("snapshot", "build", "out.db", "one.csv", "--game", "game_a").exit_code == 0

    updated = cli("snapshot", "update", "out.db", "two.csv")
    before = Path("out.db").read_bytes()
    refused = cli("snapshot", "update", "out.db", "other.csv")

    assert (updated.exit_code, parse_summary(updated)["kept"]) == (0, "2")
    assert (refused.exit_code, Path("out.db").read_bytes()) == (2, before)
    first, *_, line = refused.stderr.splitlines()
    assert first.startswith('other.csv: no column "server"; ')
    assert first.endswith("; out.db was built with --columns id=server,at=time,players=online")
    assert (
        line == "  srvstat snapshot update out.db other.csv --columns id=name,at=when,players=count"
    )
    assert cli(*line.split()[1:]).exit_code == 0
    assert cli("snapshot", "update", "out.db", "week.csv").exit_code == 0


@pytest.mark.usefixtures("here")
def test_an_update_of_a_wide_table_stays_wide_whatever_the_case_of_its_header(cli: Cli) -> None:
    rows = "{};Lobby;Arena;Total\n2026-03-0{} 10:00;5;6;11\n"
    for name, header, day in ("one", "date", 1), ("two", "Date", 2), ("three", "day", 3):
        Path(f"{name}.csv").write_text(rows.format(header, day))
    options = ["--wide", "at=DATE,except=total", "--time-zone", "UTC"]
    update = ["snapshot", "update", "out.db"]

    built = cli("snapshot", "build", "out.db", "one.csv", *options)
    updated = cli(*update, "two.csv")
    refused = cli(*update, "three.csv")

    assert [parse_summary(each)["kept"] for each in (built, updated)] == ["2", "2"]
    assert refused.exit_code == 2
    line = refused.stderr.splitlines()[-1].strip()
    assert line == "srvstat snapshot update out.db three.csv --wide at=day,except=Total"
    assert parse_summary(cli(*line.split()[1:]))["kept"] == "2"
    other = cli("snapshot", "build", "x.db", "one.csv", "two.csv", *options).stderr
    assert other.startswith('error: two.csv: no column "date"; the columns are "Date", ')


@pytest.mark.usefixtures("here")
def test_a_dry_run_proposes_as_a_build_does(cli: Cli) -> None:
    Path("one.csv").write_text(
        "server;time;online\nlobby;2026-03-01 10:00;5\narena;2026-03-01 10:00;\n"
    )
    command = ["snapshot", "build", "out.db", "one.csv", "--game", "game_a"]

    asked = cli(*command, "--dry-run")
    shown = cli(*command, "--dry-run", "--time-zone", "UTC")

    assert (asked.exit_code, asked.stderr) == (2, cli(*command).stderr)
    assert (shown.exit_code, b"2026-03-01 10:00:00" in shown.stdout) == (0, True)
    assert b"1 row skipped: without a player count\n" in shown.stdout
    assert not Path("out.db").exists()
