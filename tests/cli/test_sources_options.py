"""The session of a build: what is read unseen, asked, proposed and remembered."""

from pathlib import Path

import pytest

from conftest import Cli
from support.snapshots import read_root

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
