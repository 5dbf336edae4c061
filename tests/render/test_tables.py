"""Tables in a real terminal and in a pipe."""

import re

import pytest

from conftest import AS_OF, Build, Cli, server
from support.terminal import run_srvstat_in_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J\x1b]0;x\x07[red]A[/] [/x]\u202eb\n" + "z" + "\u0301" * 200 + "\x9b1m"
COMPARE = ["compare", "harbor-city", "night-shift", "empty-plains", "--range", "7d"]


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
    _, shown = run_srvstat_in_terminal(*COMPARE, env={"SRVSTAT_SNAPSHOT": demo_snapshot, **env})

    assert ("\x1b[" in shown) is is_colored


def test_a_pipe_never_cuts_an_identifier(build: Build, cli: Cli) -> None:
    ids = ["a" * 128, "b" * 128]
    servers = [server(name, cfxId=f"{name[1:]}c", hostname="x") for name in ids]
    path = build(servers, [(ids[0], AS_OF, 1)])
    shown = cli("compare", *ids, "-s", path, "--table").stdout.decode()

    for name in ids:
        assert f"\n{name}  " in shown
        assert f"\n  x  {name[1:]}c " in shown


@pytest.mark.parametrize("term", ["dumb", "unknown", "xterm"])
def test_a_pipe_has_the_natural_width_for_any_term(
    term: str, demo_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    plain = cli(*COMPARE, "--table").stdout.decode()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)

    colored = cli(*COMPARE, "--table").stdout.decode()

    assert "\x1b[1m" in colored
    assert [line.rstrip() for line in SGR.sub("", colored).split("\n")] == plain.split("\n")
