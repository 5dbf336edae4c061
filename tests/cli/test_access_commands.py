"""`access new-key` and `access check`, and `get` and `compare` with a plan."""

import fcntl
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.operations.access import read_access
from support.records import PLANS, format_key_table

STARTER = ["--plan", "starter", "--access", "access.toml"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with an access file; the demo snapshot is the default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    Path("access.toml").write_text(PLANS)


def test_a_new_key_is_printed_and_its_digest_stored(cli: Cli) -> None:
    ran = cli("access", "new-key", "--plan", "starter")

    key = ran.stdout.decode().removesuffix("\n")
    assert ran.exit_code == 0
    assert re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key)
    assert ran.stderr == (
        "a new key of the plan starter, shown only once: access.toml has only its digest\n"
    )
    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert Path("access.toml").read_text() == PLANS + format_key_table(sha256)


def test_new_key_takes_another_access_file(cli: Cli) -> None:
    Path("access.toml").rename("other.toml")

    ran = cli("access", "new-key", "--plan", "details", "--access", "other.toml")

    customer = read_access("other.toml").find_customer(ran.stdout.strip())
    assert customer is not None
    assert customer.plan.name == "details"


def test_a_key_that_cannot_be_printed_is_reported_by_its_digest() -> None:
    command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert ran.returncode == 4
    assert ran.stderr.decode() == (
        f"{format_unprinted_key_message()}\nerror: standard output: No space left on device\n"
    )


def test_a_key_without_a_reader_is_reported_by_its_digest() -> None:
    command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert (ran.returncode, ran.stderr.decode()) == (141, f"{format_unprinted_key_message()}\n")


def format_unprinted_key_message() -> str:
    """Return the message about the only key in the file."""
    (customer,) = read_access("access.toml").customers.values()
    digest = f'sha256 = "{customer.sha256.hex()}"'
    assert digest in Path("access.toml").read_text()
    return f"access.toml: the key was added but not printed; remove the one with {digest}"


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


def test_bash_completes_plans(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
    for command in ("get a --access access.toml --plan ", "access new-key --plan "):
        monkeypatch.setenv("COMP_WORDS", f"srvstat {command}")
        monkeypatch.setenv("COMP_CWORD", str(len(command.split(" "))))
        ran = cli()
        assert (ran.stdout.decode().split(), ran.stderr) == (["starter", "details"], ""), command


def test_completion_of_plans_needs_an_access_file(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "srvstat get a --plan ")
    monkeypatch.setenv("COMP_CWORD", "4")

    ran = cli()

    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, b"\n", "")


def test_only_a_plan_imports_the_reader_of_access_files() -> None:
    code = """
import os, sys
import srvstat.__main__
def report_modules(exit_code):
    names = {"srvstat.operations.access", "srvstat.files.toml", "tomllib"}
    print(exit_code, *sorted(names & set(sys.modules)), file=sys.stderr)
    end(exit_code)
end, os._exit = os._exit, report_modules
srvstat.__main__.run()
"""

    def list_imported(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    assert list_imported("get", "harbor-city") == "0\n"
    assert list_imported("get", "harbor-city", *STARTER) == (
        "0 srvstat.files.toml srvstat.operations.access tomllib\n"
    )


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
