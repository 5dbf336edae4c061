"""Options of a mapping, its file, and the dry run that shows what they mean."""

from pathlib import Path

import pytest

from conftest import AS_OF, Cli
from support.snapshots import read_root

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
