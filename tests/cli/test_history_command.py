"""`srvstat history`: forms, plans, errors and tables."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, ROOT, Build, Cli, server
from srvstat.analysis.history import describe_observations, describe_steps
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.selection import find_references
from srvstat.analysis.steps import divide_window
from srvstat.analysis.windows import find_zone
from srvstat.contract.ranges import Window
from srvstat.contract.requests import build_server_reference
from srvstat.documents.analysis import HistoryQuery
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from srvstat.snapshot.read.reader import open_file

ACCESS = ["--access", str(ROOT / "fixtures" / "access.toml"), "--plan"]
HOUR = DAY // 24


@pytest.fixture
def demo(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the snapshot of the demo the default."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    return demo_snapshot


def test_observations_are_rows_in_the_order_of_the_servers(build: Build, cli: Cli) -> None:
    rows = [("a", AS_OF - HOUR, 5), ("a", AS_OF, 6), ("b", AS_OF, 7), ("b", AS_OF - 31 * DAY, 8)]
    path = build([server("a"), server("b")], rows)
    asked = ["history", "b", "cfxId:x-a", "b", "-s", path]

    assert cli(*asked).stdout == (
        b'{"serverId":"b","observedAt":"2026-03-01T12:00:00.000Z","players":7}\n'
        b'{"serverId":"a","observedAt":"2026-03-01T11:00:00.000Z","players":5}\n'
        b'{"serverId":"a","observedAt":"2026-03-01T12:00:00.000Z","players":6}\n'
    )
    assert cli(*asked, "--from=2026-03-01T11:00Z", "--format=csv").stdout == (
        b"serverId,observedAt,players\nb,2026-03-01T12:00:00.000Z,7\na,2026-03-01T12:00:00.000Z,6\n"
    )


def test_steps_have_a_row_each_and_null_without_observations(build: Build, cli: Cli) -> None:
    half, quarter = HOUR // 2, HOUR // 4
    rows = [("a", AS_OF - half, 5), ("a", AS_OF - quarter, 8), ("a", AS_OF, 6), ("b", AS_OF, 8)]
    path = build([server("a"), server("b")], rows)
    asked = ["history", "a", "b", "-s", path, "--range=2h", "--step=1h"]

    assert cli(*asked).stdout == (
        b'{"serverId":"a","from":"2026-03-01T10:00:00.000Z","to":"2026-03-01T11:00:00.000Z",'
        b'"sampleCount":0,"players":null,"observedShare":0,"isPartial":true}\n'
        b'{"serverId":"a","from":"2026-03-01T11:00:00.000Z","to":"2026-03-01T12:00:00.000Z",'
        b'"sampleCount":3,"players":6.333333333333333,"observedShare":0.5,"isPartial":true}\n'
        b'{"serverId":"b","from":"2026-03-01T10:00:00.000Z","to":"2026-03-01T11:00:00.000Z",'
        b'"sampleCount":0,"players":null,"observedShare":0,"isPartial":true}\n'
        b'{"serverId":"b","from":"2026-03-01T11:00:00.000Z","to":"2026-03-01T12:00:00.000Z",'
        b'"sampleCount":1,"players":8,"observedShare":0,"isPartial":true}\n'
    )
    assert cli(*asked, "--sum", "--aggregate=max", "--format=csv").stdout == (
        b"from,to,sampleCount,serverCount,players,observedShare,isPartial\n"
        b"2026-03-01T10:00:00.000Z,2026-03-01T11:00:00.000Z,0,0,,0,true\n"
        b"2026-03-01T11:00:00.000Z,2026-03-01T12:00:00.000Z,4,2,16,0,true\n"
    )


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], 2, "error: no server; give IDENTIFIER…\n"),
        (["a", "--sum"], 2, "error: --sum: needs --step or --chart\n"),
        (["a", "--aggregate=max"], 2, "error: --aggregate: needs --step or --chart\n"),
        (["a", "--step=1h", "--aggregate="], 2, "'' is not one of 'mean', 'median',"),
        (["a", "--step=7h"], 2, '--step: "7h" does not divide 24 hours'),
        (["harbor-city", "--step=1m", "--range=90000h"], 2, "more than 1,000,000 steps"),
        (["a", "--tz=Mars", "-s", "absent.db"], 2, '--tz: no time zone "Mars"'),
        (["a", "--range=8", "-s", "absent.db"], 2, '--range: "8" is not a number of hours'),
        (["harbor-city", "--from=2026-04-01"], 2, "must be earlier than the end of the snap"),
        (["a", "--plan=starter"], 2, "--plan NAME and --access FILE must be used together"),
        (["a b", "--access=absent.toml", "--plan=a"], 6, "absent.toml"),
        (["id:a b", *ACCESS, "starter"], 40, "may only contain"),
        (["a", "-s", "absent.db", *ACCESS, "starter"], 43, "starter does not include raw history"),
        (["a", "-s", "absent.db", *ACCESS, "studio"], 3, "absent.db"),
        (["a", "--range=all", *ACCESS, "studio"], 43, "includes 365 days of raw history"),
        (["harbor-cty"], 44, "no id harbor-cty; "),
    ],
)
def test_errors_leave_standard_output_empty(
    arguments: list[str], code: int, reason: str, cli: Cli
) -> None:
    ran = cli("history", *arguments, "--format=csv")

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr


@pytest.mark.usefixtures("demo")
def test_an_error_of_the_api_is_its_body_as_json(cli: Cli) -> None:
    ran = cli("history", "harbor-city", "nobody", "--json")

    assert (ran.exit_code, ran.json["error"]["code"]) == (44, "SERVER_NOT_FOUND")


@pytest.mark.parametrize(
    ("window", "is_allowed"),
    [
        (["--range=7d"], True),
        (["--range=7d", "--to=2026-03-01T11:59:59.999Z"], False),
        (["--range=8d"], False),
        (["--from=2026-02-22T12:00Z", "--to=2026-02-23"], True),
        (["--range=7d", "--step=1h", "--sum"], True),
        (["--step=1h"], False),
    ],
)
def test_a_plan_limits_the_depth_of_raw_history(
    window: list[str], is_allowed: bool, build: Build, cli: Cli, tmp_path: Path
) -> None:
    # Neither operations nor ranges matter.
    (tmp_path / "access.toml").write_text(
        "[plans.week]\noperations = []\nranges = []\nraw_history_days = 7\n", encoding="utf-8"
    )
    path = build([server("a")], [("a", AS_OF, 5)])
    plan = ["--plan=week", f"--access={tmp_path}/access.toml"]
    ran = cli("history", "a", "-s", path, *window, *plan, "--format=csv")

    if is_allowed:
        assert (ran.exit_code, ran.stderr.startswith("error")) == (0, False)
        return
    assert (ran.exit_code, ran.stdout) == (43, b"")
    assert ran.stderr == (
        "error: FEATURE_NOT_AVAILABLE: Feature not available for this subscription\n"
        "the plan week includes 7 days of raw history, but the window begins earlier; use --from"
        " 2026-02-22T12:00:00.000Z or later\n"
    )


@pytest.mark.parametrize("step", [[], ["--step=1h"], ["--step=1h", "--sum"]])
def test_damage_stops_a_history_after_the_rows_before_it(
    step: list[str], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF - at * HOUR, at % 7) for at in range(2_160)])
    asked = ["history", "a", "-s", path, "--range=90d", *step]
    whole = cli(*asked).stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE days SET players = x'00' WHERE server_day % 10000000 = 20512")
    ran = cli(*asked)

    assert (ran.exit_code, ran.stderr.startswith(f"error: {path}: damaged (day 2026-02-28")) == (
        3,
        True,
    )
    assert ran.stdout.count(b"\n") >= 1000
    assert whole.startswith(ran.stdout)


def test_a_server_named_many_times_is_read_once(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 5), ("b", AS_OF, 6)])
    ran = cli("history", *["a", "b", "cfxId:x-a", "id:b"] * 2_500, "-s", path)

    assert [json.loads(line)["serverId"] for line in ran.stdout.splitlines()] == ["a", "b"]


def test_an_empty_window_has_no_row_and_says_why(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("silent")], [("a", AS_OF, 5)])
    ran = cli("history", "a", "--to=2026-01-01", "-s", path)
    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert "note: no observation in the window; the snapshot has 2026-03-01" in ran.stderr

    ran = cli("history", "silent", "-s", path, "--range=all", "--step=1d", "--table")
    assert ran.stdout.startswith(b"no step in the window\n\nwindow  ")
    assert cli("history", "silent", "-s", path, "--table").stdout.startswith(
        b"silent\nx-silent\nno observation in the window\n"
    )


QUERIES = {
    "observations": (["night-shift", "hostile-host"], "UTC", None, False),
    "steps": (["night-shift", "hostile-host"], "Europe/Berlin", "1h", False),
    "sum": (["harbor-city", "night-shift"], "UTC", "6h", True),
}


def render_history(case: str, path: str, screen: Screen) -> str:
    names, zone, step, is_sum = QUERIES[case]
    query = HistoryQuery(Window(AS_OF - 6 * DAY, AS_OF), zone, is_sum=is_sum, step=step)
    with closing(open_file(path)) as snapshot:
        servers = find_references(snapshot, map(build_server_reference, names))
        if step is None:
            parts = describe_observations(snapshot, servers, query)
        else:
            asked = query.window, parse_step(step), find_zone(zone)
            steps = divide_window(snapshot, servers, *asked)
            parts = describe_steps(snapshot, servers, steps, query)
        return "\n".join(render_table(part, screen) for part in parts)


def test_a_history_is_ascii_where_it_must_be(demo_snapshot: str) -> None:
    screen = Screen(80, ascii_only=True)

    assert render_history("observations", demo_snapshot, screen).isascii()
    assert render_history("sum", demo_snapshot, screen).isascii()


def test_local_times_show_their_offset_only_where_it_changes(build: Build, cli: Cli) -> None:
    summer = AS_OF + 28 * DAY
    path = build([server("a")], [("a", summer - 12 * HOUR, 4), ("a", summer, 5)])
    asked = ["history", "a", "-s", path, "--step=6h", "--tz=Europe/Berlin", "--table"]

    shown = cli(*asked, "--range=18h").stdout.decode().split("\n")
    assert [re.split("  +", line) for line in shown[4:7]] == [
        ["2026-03-28 19:00+01:00", "2026-03-29 00:00+01:00", "–", "gap of 5 hours"],  # noqa: RUF001
        ["2026-03-29 00:00+01:00", "2026-03-29 06:00+02:00", "*4.00", "1"],
        ["2026-03-29 06:00+02:00", "2026-03-29 12:00+02:00", "–", "gap of 6 hours"],  # noqa: RUF001
    ]
    shown = cli(*asked, "--range=2h").stdout.decode().split("\n")
    assert re.split("  +", shown[4]) == ["2026-03-29 12:00", "2026-03-29 14:00", "*5.00", "1"]


def test_the_last_year_has_a_table_in_every_zone(build: Build, cli: Cli) -> None:
    end = 253_402_300_799_999
    path = build([server("a")], [("a", end - DAY, 4), ("a", end, 5)])
    asked = ["history", "a", "-s", path, "--tz=Asia/Tokyo", "--range=72h", "--table"]

    assert "9999-12-31 23:59:59.999" in cli(*asked).stdout.decode()
    assert cli(*asked, "--step=day").exit_code == 0


def test_a_window_of_one_instant_has_one_step(build: Build, cli: Cli) -> None:
    path = build([server("a")], [("a", AS_OF, 5)])
    asked = ["history", "a", "-s", path, "--range=all"]

    (step,) = cli(*asked, "--step=1h").stdout.splitlines()
    assert b'"from":"2026-03-01T11:00:00.000Z","to":"2026-03-01T12:00:00.000Z"' in step
    assert cli(*asked, "--chart").exit_code == 0
    assert cli(*asked, "--chart", "--sum").exit_code == 0
