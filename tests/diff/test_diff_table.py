"""The table of `snapshot diff`."""

import json
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, build_in, server
from srvstat import demo

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def new_snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the demo's fleet with changes: servers, fields, days in a row and apart, one value."""
    records = [json.loads(line) for line in demo.build_servers_file().splitlines()]
    changed = {"night-shift": {"tags": ["coop", "pve"], "players": {"max": 128}}}
    kept = [{**one, **changed.get(one["id"], {})} for one in records if one["id"] != "flaky-arena"]
    lines = demo.build_observations_file().decode("ascii").splitlines()[1:]
    rows = [(name, at, int(players)) for name, at, players in (one.split(",") for one in lines)]
    dropped = {"2025-12-30", "2026-02-10", "2026-02-11", "2026-02-12"}
    new = [
        (name, at, players + 1 if at[:13] == "2026-02-28T20" and name == "harbor-city" else players)
        for name, at, players in rows
        if name != "flaky-arena" and (name != "night-shift" or at[:10] not in dropped)
    ]
    directory = tmp_path_factory.mktemp("new")
    return str(build_in(directory, [*kept, server("added-later")], new))


def test_the_c_locale_gets_ascii(
    cli: Cli, demo_snapshot: str, new_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    shown = cli("snapshot", "diff", demo_snapshot, new_snapshot, "--table").stdout

    assert shown.isascii()
    assert b"averagePlayers 160.08 -> 160.12" in shown


def test_long_lists_are_cut(cli: Cli, build: Build) -> None:
    names = [f"s-{number:02}" for number in range(45)]
    rows = [(name, AS_OF - at * 2 * DAY, 1) for name in names for at in range(9)]
    old = build(map(server, names[:35]), rows)
    new = build(map(server, names[10:]), [(name, at, 2) for name, at, _ in rows if name != "s-44"])

    shown = cli("snapshot", "diff", old, new, "--table").stdout.decode()

    assert shown.startswith("25 servers changed, 10 added, 10 removed; 125 answers change\n")
    assert "and 5 more changed servers; --json lists all\n" in shown
    assert "and 105 more answers; --json lists all\n" in shown
    assert "2026-02-21, 2026-02-23, and 3 more" in shown
    assert f"removed  {', '.join(names[:10])}\n" in shown


def test_a_server_with_other_fields_only_has_no_days(cli: Cli, build: Build) -> None:
    rows = [("a", AS_OF, 1)]
    old, new = (build([server("a", hostname=name)], rows) for name in ("one", "other"))

    shown = cli("snapshot", "diff", old, new, "--table").stdout.decode()

    assert shown.count("hostname") == 1


def test_equal_snapshots_have_a_short_table(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(Path(demo_snapshot).read_bytes())
    ran = cli("snapshot", "diff", demo_snapshot, str(copy), "--table")

    assert (ran.exit_code, ran.stdout.decode().splitlines()[0]) == (0, "no difference")
