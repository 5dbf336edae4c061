"""The help, the version, and completion in real shells."""

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import ROOT, Cli
from srvstat.cli.app import COMMANDS
from support.terminal import SRVSTAT, run_in_terminal, talk_in_terminal


@pytest.mark.parametrize("group", ["", "snapshot", "access"])
def test_the_list_of_commands_cuts_no_line(cli: Cli, group: str) -> None:
    listed = cli(*group.split(), "--help").stdout.decode()

    assert "..." not in listed.partition("\n")[2]


def test_every_command_has_help(cli: Cli) -> None:
    for name, entry in COMMANDS.items():
        for command in [name, *(f"{name} {inner}" for inner in getattr(entry, "commands", ()))]:
            ran = cli(*command.split(), "--help")
            assert (ran.exit_code, ran.stderr) == (0, "")
            assert ran.stdout.decode().startswith(f"Usage: srvstat {command} ")
            assert command == "help" or cli("help", *command.split()) == ran
    assert cli("help") == cli("--help")


def test_without_a_command_the_commands_are_listed(cli: Cli) -> None:
    for arguments, command in (([], "compare"), (["snapshot"], "draft-servers")):
        lines = cli(*arguments).stderr.split("\n")
        assert lines[0].startswith("Usage: srvstat")
        assert any(line.startswith(f"  {command} ") for line in lines)


def test_version_shows_contract_and_format(cli: Cli) -> None:
    ran = cli("--version")

    assert ran.stdout == b"srvstat 1.0.0.dev0 (contract 1.0.0, snapshot format 2)\n"


@pytest.mark.parametrize(
    ("command", "typed", "picked"),
    [
        ("get", "NIGHT shi\r", "night-shift"),
        ("stats --range 7d", "host\x1b[B\x1b[B\x1b[A\n", "hostile-host"),
        ("growth --by cfxId", "cityx\x7f\r", "id:harbor-city"),
        ("history --step 1d", "\x1b[6~\x1b[A\r", "empty-plains"),
        ("integrity", "rac\t\x7f\x7f\x7fflaky \x1b[5~\r", "silent-valley flaky-arena"),
        ("compare --chart", "\r \x1b[B \x1b[A \x1b[B\x1b[B \r", "new-frontier silent-valley"),
        ("together", "   \x1bOB \x1bOB \r", "harbor-city new-frontier silent-valley"),
    ],
)
def test_a_terminal_offers_servers_where_none_is_named(
    demo_snapshot: str, command: str, typed: str, picked: str
) -> None:
    cwd, arguments = Path(demo_snapshot).parent, command.split()
    exit_code, shown = talk_in_terminal([*SRVSTAT, *arguments], ("Esc cancels", typed), cwd=cwd)
    line, answer = shown.rpartition("\x1b[J")[2].split("\n", 1)

    assert line == f"srvstat {command} {picked}"
    assert (exit_code, answer) == run_in_terminal([*SRVSTAT, *arguments, *picked.split()], cwd=cwd)


@pytest.mark.parametrize("end", ["\x1b", "\x03", "\x04", "x\x1b", signal.SIGTERM, signal.SIGHUP])
def test_leaving_the_offer_prints_nothing(demo_snapshot: str, end: str | int) -> None:
    cwd = Path(demo_snapshot).parent
    exit_code, shown = talk_in_terminal([*SRVSTAT, "compare"], ("Esc cancels", end), cwd=cwd)

    assert exit_code == (130 if isinstance(end, str) else 128 + end)
    assert shown.endswith("\r\x1b[J")


def test_an_offered_name_is_escaped(demo_snapshot: str) -> None:
    talk = ("\\u001b[2J", "2j"), ("1 of 9", "\x1b")
    _, shown = talk_in_terminal([*SRVSTAT, "get"], *talk, cwd=Path(demo_snapshot).parent)

    assert "\x1b[2J" not in shown


def test_only_a_terminal_is_offered_servers(demo_snapshot: str, cli: Cli) -> None:
    cwd = Path(demo_snapshot).parent
    for command, code in ("get", 2), ("stats", 2), ("compare", 40):
        assert cli(command, "-s", demo_snapshot).exit_code == code
        exit_code, shown = run_in_terminal([*SRVSTAT, command, "--json"], cwd=cwd)
        assert exit_code == code
        assert "Esc" not in shown
        piped = f"{shlex.join([*SRVSTAT, command])} | cat; exit ${{PIPESTATUS[0]}}"
        assert run_in_terminal(["bash", "-c", piped], cwd=cwd)[0] == code
    for command in "events", "today", "servers", "stats --all":
        assert run_in_terminal([*SRVSTAT, *command.split()], cwd=cwd)[0] == 0


SCRIPTS = ROOT / "docs" / "completions"
PROMPT = "ready> "
SECONDS = 60
CFX_IDS = ("ep1v8d", "fa9t5w", "hc4x2k", "hh7e3y", "nf8q1z", "ns6r0b", "og3m7p", "sv4d1h", "we5j9n")
SHELLS = ["bash", pytest.param("zsh", marks=pytest.mark.external)]
INTERACTIVE = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


@pytest.fixture
def environment(tmp_path: Path, demo_snapshot: str, quick_srvstat: str) -> dict[str, str]:
    """Return an environment with srvstat on the path and a snapshot to complete from."""
    return {
        "PATH": f"{quick_srvstat}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PS1": PROMPT,
        "SRVSTAT_SNAPSHOT": demo_snapshot,
    }


def write_script(shell: str, directory: Path, cli: Cli) -> Path:
    path = directory / f"completion.{shell}"
    path.write_bytes(cli("completion", shell).stdout)
    return path


def skip_without(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    if (
        shell == "bash"
        and subprocess.run(["bash", "-c", "((BASH_VERSINFO[0] < 4))"], check=False).returncode == 0
    ):
        pytest.skip("bash 3 splits words differently; Typer supports 4.4 and later")


def read_until(terminal: int, text: str) -> str:
    """Return the output of a terminal up to and including a text."""
    shown, end = "", time.monotonic() + SECONDS
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, f"no {text!r} in {shown!r}"
        shown += os.read(terminal, 65_536).decode("utf-8", "replace")
    return shown


def type_lines(
    shell: str, setup: str, lines: Sequence[str], environment: dict[str, str]
) -> list[str]:
    """Type lines into a shell after a line of setup; return the output of each command."""
    shown = []
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        INTERACTIVE[shell],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            read_until(ours, PROMPT)
            os.write(ours, f"{setup}; PS1='com''plete> '\n".encode())
            read_until(ours, "complete> ")
            for line in lines:
                os.write(ours, f"{line}; echo 'do''ne'\n".encode())
                shown.append(read_until(ours, "done"))
        finally:
            process.kill()
            os.close(ours)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_a_server_in_its_namespace(
    shell: str, tmp_path: Path, environment: dict[str, str], cli: Cli
) -> None:
    skip_without(shell)
    lines = [
        "srvstat get harb\t",
        "srvstat get id:harb\t",
        "srvstat get cfxId:hc4\t",
        "srvstat get --at 2026-01-31T12:00Z cfxId:hc4\t",
        "srvstat get --by cfxId id:harb\t",
        "srvstat get cf\thc4\t",
    ]

    typed = [f"{line} --json" for line in lines]
    compinit = "autoload -Uz compinit; compinit -u -D; " if shell == "zsh" else ""
    setup = f"{compinit}source '{write_script(shell, tmp_path, cli)}'"
    shown = type_lines(shell, setup, typed, environment)

    for line, output in zip(lines, shown, strict=True):
        assert '"hostname":"Harbor City Roleplay"' in output, line


@pytest.mark.external
def test_zsh_completes_from_the_first_time_with_the_file_of_a_wheel(
    environment: dict[str, str],
) -> None:
    skip_without("zsh")
    setup = f"fpath=('{SCRIPTS}' $fpath); autoload -Uz compinit; compinit -u -D"

    (shown,) = type_lines("zsh", setup, ["srvstat get harb\t --json"], environment)

    assert '"hostname":"Harbor City Roleplay"' in shown


@pytest.mark.external
def test_fish_completes_with_the_file_of_a_wheel(environment: dict[str, str]) -> None:
    skip_without("fish")
    command = f"set fish_complete_path '{SCRIPTS}'; complete -C 'srvstat get harb'"
    ran = subprocess.run(
        ["fish", "--no-config", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )

    assert ran.stdout.split() == ["harbor-city"]


@pytest.mark.external
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("srvstat get cfxId:", {f"cfxId:{name}" for name in CFX_IDS}),
        ("srvstat get cfxId:n", {"cfxId:nf8q1z", "cfxId:ns6r0b"}),
        ("srvstat get id:n", {"id:new-frontier", "id:night-shift"}),
        ("srvstat get n", {"new-frontier", "night-shift"}),
        ("srvstat compare a --range 7", {"7d"}),
    ],
)
def test_fish_offers_the_servers_of_a_namespace(
    line: str, offered: set[str], tmp_path: Path, environment: dict[str, str], cli: Cli
) -> None:
    skip_without("fish")
    script = write_script("fish", tmp_path, cli)
    ran = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )

    assert set(ran.stdout.split()) == offered


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "--command srvstat")]
)
def test_the_script_of_each_shell_is_printed_from_any_shell(
    cli: Cli, shell: str, mark: str
) -> None:
    script = cli("completion", shell)

    assert script.exit_code == 0
    assert mark in script.stdout.decode()


def test_bash_completes_ranges_namespaces_identifiers_and_shells(
    demo_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)

    def complete(words: str, current: int) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(current))
        return cli().stdout.decode().split()

    assert complete("srvstat compare a b --range ", 5) == ["24h", "7d", "30d", "90d", "1y"]
    assert complete("srvstat get a --by c", 4) == ["cfxId"]
    assert complete("srvstat replay x.har --at s", 4) == ["snapshot", "search"]
    assert complete("srvstat get ha", 2) == ["harbor-city"]
    assert complete("srvstat completion ", 2) == ["bash", "zsh", "fish"]
    assert complete("srvstat get --by cfxId n", 4) == ["nf8q1z", "ns6r0b"]
