"""Tables in a real terminal and in a pipe."""

import re

import pytest
from rich.cells import cell_len

from conftest import AS_OF, ROOT, Build, Cli, server
from support.terminal import SRVSTAT, run_in_terminal, run_srvstat_in_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J\x1b]0;x\x07[red]A[/] [/x]\u202eb\n" + "z" + "\u0301" * 200 + "\x9b1m"

CASES = {
    "compare": ["compare", "harbor-city", "night-shift", "empty-plains", "--range", "7d"],
    "compare-five": [
        "compare",
        *("harbor-city", "night-shift", "old-guard", "new-frontier", "flaky-arena"),
    ],
    "compare-90d": ["compare", "hostile-host", "cfxId:og3m7p", "--range", "90d"],
    "get": ["get", "hostile-host"],
    "explain": ["compare", "harbor-city", "night-shift", "empty-plains", "--range=7d", "--explain"],
    "explain-get": ["get", "hostile-host", "--explain", "--at=2026-02-20T12:00Z"],
    "info": ["snapshot", "info"],
    "servers": ["servers", "e", "--sort=last-seen", "--limit=4"],
    "access": ["access", "check", "--access", str(ROOT / "fixtures" / "access.toml")],
}


@pytest.mark.parametrize("width", ["0", "", "x", "-5"])
def test_an_invalid_columns_variable_is_ignored(width: str, demo_snapshot: str) -> None:
    env = {"SRVSTAT_SNAPSHOT": demo_snapshot, "COLUMNS": width}
    code, shown = run_srvstat_in_terminal(*CASES["compare"], columns=80, env=env)

    assert code == 0
    assert max(map(cell_len, shown.split("\n"))) == 80


@pytest.mark.parametrize("columns", [1, 10, 20, 30])
def test_the_narrowest_terminal_shows_all_identifiers(columns: int, build: Build) -> None:
    long = "a-" * 64
    path = build(
        [server(long, cfxId="x"), server("b", hostname=HOSTILE)], [("b", AS_OF, 2**53 - 1)]
    )
    code, shown = run_srvstat_in_terminal("compare", long, "b", "-s", path, columns=columns)

    assert code == 0
    assert long in shown.replace("\n", "")
    assert "9,007,199,254,740,991" in shown.replace("\n", "").replace(" ", "")


def test_the_narrowest_terminal_shows_every_field_of_a_server(demo_snapshot: str) -> None:
    env = {"SRVSTAT_SNAPSHOT": demo_snapshot}
    _, shown = run_srvstat_in_terminal("get", "harbor-city", columns=20, env=env)

    assert "id\nharbor-city\n" in shown


@pytest.mark.parametrize(
    ("env", "is_colored"),
    [
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": "", "TERM": "dumb"}, False),
        ({"NO_COLOR": "", "TERM": ""}, False),
    ],
)
def test_colors_follow_the_environment(
    env: dict[str, str], is_colored: bool, demo_snapshot: str
) -> None:
    _, shown = run_srvstat_in_terminal(
        *CASES["compare"], env={"SRVSTAT_SNAPSHOT": demo_snapshot, **env}
    )

    assert ("\x1b[" in shown) is is_colored


def test_a_hostile_hostname_is_escaped_on_one_line(build: Build, cli: Cli) -> None:
    path = build([server("a", hostname=HOSTILE), server("b")], [("a", AS_OF, 1)])
    shown = cli("compare", "a", "b", "-s", path, "--table").stdout.decode()

    visible = r"\u001b[2J\u001b]0;x\u0007[red]A[/] [/x]\u202eb\u000az" + "\u0301" * 4
    assert f"{visible}\\u009b1m" in shown
    assert "\x1b" not in shown


def test_a_pipe_never_cuts_an_identifier(build: Build, cli: Cli) -> None:
    ids = ["a" * 128, "b" * 128]
    servers = [server(name, cfxId=f"{name[1:]}c", hostname="x") for name in ids]
    path = build(servers, [(ids[0], AS_OF, 1)])
    shown = cli("compare", *ids, "-s", path, "--table").stdout.decode()

    for name in ids:
        assert f"\n{name}  " in shown
        assert f"\n  x  {name[1:]}c " in shown


UUIDS = ["0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"]


def test_two_long_identifiers_are_on_two_lines(build: Build) -> None:
    path = build(
        [server(UUIDS[0], cfxId=UUIDS[1]), server(UUIDS[1], cfxId=UUIDS[0])], [(UUIDS[0], AS_OF, 1)]
    )
    for columns in (60, 100):
        _, shown = run_srvstat_in_terminal("compare", *UUIDS, "-s", path, columns=columns)
        lines = [line[: len(UUIDS[0]) + 2].strip() for line in shown.split("\n")]
        assert lines.count(UUIDS[0]) == lines.count(UUIDS[1]) == 2


@pytest.mark.parametrize("term", ["dumb", "unknown", "xterm"])
def test_a_pipe_has_the_natural_width_for_any_term(
    term: str, demo_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    plain = cli(*CASES["compare"], "--table").stdout.decode()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    colored = cli(*CASES["compare"], "--table").stdout.decode()

    assert "\x1b[1m" in colored
    assert [line.rstrip() for line in SGR.sub("", colored).split("\n")] == plain.split("\n")


def test_counts_with_a_sum_beyond_64_bits_have_a_drawing(build: Build, cli: Cli) -> None:
    observations = [("a", AS_OF - at, 2**53 - 1) for at in range(2000)]
    path = build([server("a"), server("b")], observations)

    ran = cli("compare", "a", "b", "-s", path, "--table", "--range", "24h")

    assert ran.exit_code == 0
    assert "█│" in ran.stdout.decode()


def test_json_cannot_control_a_terminal(build: Build, cli: Cli) -> None:
    path = build([server("a", hostname="\x9b2J\u202e\u2028\x7f\U000e0041é")], [("a", AS_OF, 1)])
    _, shown = run_srvstat_in_terminal("get", "a", "-s", path, "--json", columns=200)
    piped = cli("get", "a", "-s", path, "--json").stdout.decode()

    assert r'"hostname":"\u009b2J\u202e\u2028\u007f\udb40\udc41é"' in shown.replace("\n", "")
    assert '"hostname":"\x9b2J\u202e\u2028\x7f\U000e0041é"' in piped


def test_a_terminal_gets_a_table_unless_a_flag_says_otherwise(
    demo_snapshot: str,
) -> None:
    get = [*SRVSTAT, "get", "harbor-city", "--snapshot", demo_snapshot]
    _, table = run_in_terminal(get, columns=60)
    _, json = run_in_terminal([*get, "--json"])

    assert table.startswith("Harbor City Roleplay\n")
    assert max(map(cell_len, table.split("\n"))) <= 60
    assert json.startswith('{"data":{"id":"harbor-city",')
