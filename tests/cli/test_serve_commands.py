"""The variables and the options of `serve`, access files, and plans of `get` and `compare`."""

import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT, Cli, srvstat
from srvstat.asgi import SimulationSettings
from srvstat.cli.app import COMMANDS
from srvstat.cli.serve import SimulationOptions
from srvstat.operations.access import read_access
from support.records import PLANS, format_key_table


@pytest.fixture
def no_snapshot(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - an empty directory
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)


@pytest.mark.usefixtures("no_snapshot")
def test_every_option_of_serve_but_set_has_a_variable(cli: Cli) -> None:
    shown = " ".join(cli("serve", "--help").stdout.decode().split())
    options = re.findall(r" --([a-z-]+) (?!FILE FILE)", shown.partition(" Options: ")[2])
    options.remove("help")
    variables = [f"SRVSTAT_{option.upper().replace('-', '_')}" for option in options]

    assert len(variables) > 10
    # The values of --set may have spaces, at which a variable is divided.
    without = [name for name in variables if not re.search(rf"[$ ]{name}\b", shown)]
    assert without == ["SRVSTAT_SET"]


@pytest.mark.usefixtures("no_snapshot")
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("PORT", "http", "SRVSTAT_PORT: must be a whole number\n"),
        ("HOST", "0.0.0.0", "SRVSTAT_HOST 0.0.0.0: reachable from other machines"),  # noqa: S104 - refused
        ("RECORD", "-", "SRVSTAT_RECORD -: not a file"),
        ("AT", "x", 'SRVSTAT_AT: "x" is not a time'),
        ("EXPLORE", "perhaps", "SRVSTAT_EXPLORE: must be true or false\n"),
    ],
)
def test_an_invalid_variable_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str, error: str
) -> None:
    monkeypatch.setenv(f"SRVSTAT_{name}", value)
    ran = cli("serve")

    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"error: {error}")


@pytest.mark.usefixtures("no_snapshot")
def test_an_empty_variable_counts_as_unset(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_PORT", "")
    monkeypatch.setenv("SRVSTAT_EXPLORE", "")
    monkeypatch.setenv("SRVSTAT_ACCESS", "")

    # The snapshot is missing, which is checked last.
    assert cli("serve", "--port", "0").exit_code == 3


@pytest.mark.usefixtures("no_snapshot")
def test_other_commands_ignore_the_variables_of_serve(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: cli(name, "--help").stdout for name in COMMANDS}
    variables = set(re.findall(r"SRVSTAT_[A-Z_]+", before["serve"].decode()))
    for name in variables - {"SRVSTAT_SNAPSHOT"}:
        monkeypatch.setenv(name, "not-valid")

    assert not [name for name in COMMANDS if name != "serve" and b"[env var" in before[name]]
    assert cli("get", "a").stderr.startswith("error: no snapshot; use ")


def test_options_are_described_as_they_are_written() -> None:
    everything = SimulationOptions("50ms..2s", "5%", "0.5%", 7, allow_prefer=True)

    assert everything.describe() == "--delay 50ms..2s --fail 5% --drop 0.5% --seed 7 --allow-prefer"
    assert SimulationOptions(fail="5%").describe() == "--fail 5% --seed 1"
    assert SimulationOptions().describe() == ""
    assert everything.parse(explore=False) == SimulationSettings(
        (0.05, 2.0), 0.05, 0.005, 7, allows_prefer=True
    )
    assert SimulationOptions("0s", "0%").parse(explore=False) == SimulationSettings(seed=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "--delay 200",
            '--delay: "200" is not a time with a unit, such as 200ms, 1.5s or 50ms..2s',
        ),
        ("--delay 50..200ms", "is not a time"),
        ("--delay -1s", "is not a time"),
        ("--delay 1m", "is not a time"),
        ("--delay 1s..", "is not a time"),
        ("--delay 1_0s", "is not a time"),
        ("--delay \u0661s", "is not a time"),
        ("--delay 15.001s", "is too long; at most 15s, so that the response arrives before"),
        ("--fail 5", '--fail: "5" is not a share from 0% to 100%'),
        ("--fail 100.001%", "is not a share"),
        ("--drop -1%", "--drop: "),
        ("--drop 1e1%", "is not a share"),
        ("--seed 7", "--seed: nothing to draw; add --delay, --fail or --drop"),
        ("--allow-prefer --seed 7", "--seed: nothing to draw"),
        ("--allow-host http://x/", '--allow-host: "http://x/" is not a host name; write x\n'),
        ("--at soon", '--at: "soon" is not a time; use the form 2026-02-01T12:00Z'),
    ],
)
def test_a_malformed_value_is_refused_before_anything_else(
    cli: Cli, text: str, reason: str
) -> None:
    ran = cli("serve", "--snapshot", "missing.db", "--port", "0", *text.split())

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("error: --")
    assert reason in ran.stderr


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ("harbor-city.offline=maybe", 2, "error: --set: offline: must be true or false"),
        ("harbor-city.slots=4", 2, 'error: --set: "slots" is not a field of the record'),
        ("harbor-city", 2, 'error: --set: "harbor-city" is not ID.FIELD=VALUE, such as '),
        ("harbor-city.players=4 --set harbor-city.players.max=5", 2, "error: --set: players: "),
        ("nobody.offline=true", 44, "error: no server with id nobody; srvstat "),
    ],
)
def test_a_field_that_can_not_be_served_is_refused(
    cli: Cli, demo_snapshot: str, change: str, code: int, reason: str
) -> None:
    ran = cli("serve", "--snapshot", demo_snapshot, "--port", "0", "--set", *change.split())

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert ran.stderr.startswith(reason)


STARTER = ["--plan", "starter", "--access", "access.toml"]


@pytest.fixture
def access_file(tmp_path: Path, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with an access file; the demo snapshot is the default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    Path("access.toml").write_text(PLANS)


@pytest.mark.usefixtures("access_file")
def test_a_new_key_is_printed_and_its_digest_stored(cli: Cli) -> None:
    ran = cli("access", "new-key", "--plan", "starter")

    key = ran.stdout.decode().removesuffix("\n")
    assert ran.exit_code == 0
    assert re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key)
    assert ran.stderr == (
        "new key for plan starter; copy it now: access.toml stores only its hash\n"
    )
    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert Path("access.toml").read_text() == PLANS + format_key_table(sha256)


@pytest.mark.usefixtures("access_file")
@pytest.mark.parametrize(
    ("is_full", "exit_code", "error"),
    [(True, 4, "error: standard output: no space left on device\n"), (False, 141, "")],
    ids=["full disk", "no reader"],
)
def test_a_key_that_cannot_be_printed_is_reported_by_its_digest(
    is_full: bool, exit_code: int, error: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
    with open("/dev/full", "wb") as full, open(writing, "wb") as pipe:
        output = full if is_full else pipe
        ran = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)

    (digest,) = read_access("access.toml").keys
    added = f'the key was added but not printed; remove the one with sha256 = "{digest}"'
    assert (ran.returncode, ran.stderr) == (exit_code, f"access.toml: {added}\n{error}")


@pytest.mark.usefixtures("access_file")
def test_a_request_allowed_by_the_plan_has_the_same_answer_as_without_one(cli: Cli) -> None:
    for question in (
        ["get", "harbor-city"],
        ["get", "harbor-city", "--table"],
        ["compare", "harbor-city", "old-guard", "--range", "7d"],
        ["compare", "harbor-city", "old-guard", "--range", "7d", "--table"],
    ):
        allowed = cli(*question, *STARTER)
        assert allowed.exit_code == 0
        assert allowed == cli(*question)


@pytest.mark.usefixtures("access_file")
def test_bash_completes_plans(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
    for command in ("get a --access access.toml --plan ", "access new-key --plan "):
        monkeypatch.setenv("COMP_WORDS", f"srvstat {command}")
        monkeypatch.setenv("COMP_CWORD", str(len(command.split(" "))))
        ran = cli()
        assert (ran.stdout.decode().split(), ran.stderr) == (["starter", "details"], ""), command
    monkeypatch.setenv("COMP_WORDS", "srvstat get a --plan ")
    monkeypatch.setenv("COMP_CWORD", "4")
    without_a_file = cli()
    assert (without_a_file.exit_code, without_a_file.stdout) == (0, b"\n")


@pytest.mark.usefixtures("access_file")
def test_interrupting_new_key_stops_waiting_for_the_lock_and_keeps_the_file() -> None:
    with open("access.toml", "rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(1)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=10) == (b"", b"")
    assert process.returncode == 130
    assert Path("access.toml").read_text() == PLANS


OPENAPI = ROOT / "src" / "srvstat" / "contract" / "openapi.json"


def test_the_document_is_indented_utf_8_that_ends_with_a_newline(cli: Cli) -> None:
    text = cli("openapi").stdout.decode("utf-8")

    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert list(json.loads(text))[:2] == ["openapi", "info"]


def test_the_document_is_printed_in_utf_8_under_any_locale() -> None:
    other = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}

    assert srvstat("openapi", env=other).stdout == OPENAPI.read_bytes()
