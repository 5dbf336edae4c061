"""`access new-key` and `access check`, and `get` and `compare` with a plan."""

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

from conftest import Cli
from srvstat.access import read_access
from support.access import PLANS, format_key_table

INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'
FORBIDDEN = (
    b'{"error":{"code":"FEATURE_NOT_AVAILABLE",'
    b'"message":"Feature not available for this subscription"}}\n'
)
NOT_FOUND = b'{"error":{"code":"SERVER_NOT_FOUND","message":"Server not found"}}\n'
MAKE_ONE = "see docs/access.md, or run `srvstat demo` to write one"
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
    (customer,) = read_access("access.toml").customers
    digest = f'sha256 = "{customer.sha256.hex()}"'
    assert digest in Path("access.toml").read_text()
    return f"access.toml: the key was added but not printed; remove the one with {digest}"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "finding"),
    [
        ("new-key", 2, "Missing option '--plan'."),
        ("new-key --plan pro", 2, 'no plan "pro"; the file has starter, details'),
        ("new-key --plan pro --access none.toml", 6, f"none.toml: no such file; {MAKE_ONE}"),
        ("new-key --plan pro --access bad.toml", 6, "bad.toml, line 1: plans: missing"),
        ("check --access bad.toml", 6, "bad.toml, line 1: plans: missing"),
        ("new-key --plan pro --access .", 6, ".: a directory, not an access file"),
        ("check --access .", 6, ".: a directory, not an access file"),
        ("check --json --table", 2, "--json and --table can't be combined"),
    ],
)
def test_errors_are_reported_and_write_nothing(
    cli: Cli, arguments: str, exit_code: int, finding: str
) -> None:
    Path("bad.toml").write_text("")

    ran = cli("access", *arguments.split())

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.splitlines()[0] == f"error: {finding}"
    assert Path("access.toml").read_text() == PLANS
    assert Path("bad.toml").read_text() == ""


def test_check_shows_what_each_plan_allows(cli: Cli) -> None:
    Path("access.toml").write_text(PLANS + format_key_table("1" * 64) + format_key_table("2" * 64))

    ran = cli("access", "check")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == (
        b'{"document":"accessCheck","version":1,"plans":[{"name":"starter","operations":["get-server","compare-servers"],'
        b'"ranges":["24h","7d"],"rawHistoryDays":0,"requestsPerMinute":60,"keys":2},'
        b'{"name":"details","operations":["get-server"],"ranges":[],"rawHistoryDays":7,'
        b'"requestsPerMinute":null,"keys":0}],"keys":2}\n'
    )
    assert "1111" not in cli("access", "check", "--table").stdout.decode()


def test_check_shows_a_file_without_plans(cli: Cli) -> None:
    Path("access.toml").write_text("plans = {}")

    assert cli("access", "check").stdout == (
        b'{"document":"accessCheck","version":1,"plans":[],"keys":0}\n'
    )
    assert cli("access", "check", "--table").stdout.decode().startswith("plan ")


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


@pytest.mark.parametrize(
    ("question", "plan", "reason"),
    [
        ("compare a b --range 1y", "starter", "the plan starter does not include 1y, only 24h, 7d"),
        ("compare a b", "starter", "the plan starter does not include 30d, only 24h, 7d"),
        (
            "compare --request month.json",
            "starter",
            "the plan starter does not include 30d, only 24h, 7d",
        ),
        (
            "compare a b --range 24h",
            "details",
            "the plan details does not include compare-servers, only get-server",
        ),
        ("get a", "closed", "the plan closed does not include get-server or any other operation"),
    ],
)
def test_a_request_not_allowed_by_the_plan_has_the_403_of_the_api(
    cli: Cli, question: str, plan: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [{"identifier": name, "by": "id"} for name in "ab"]
    Path("month.json").write_text(json.dumps({"servers": servers}))
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "missing.db")
    Path("access.toml").write_text(f"{PLANS}[plans.closed]\noperations = []\nranges = []\n")
    asked = [*question.split(), "--plan", plan, "--access", "access.toml"]

    as_json = cli(*asked, "--json")
    as_table = cli(*asked, "--table")

    assert (as_json.exit_code, as_json.stdout, as_json.stderr) == (43, FORBIDDEN, f"{reason}\n")
    assert (as_table.exit_code, as_table.stdout) == (43, b"")
    assert as_table.stderr == (
        f"error: FEATURE_NOT_AVAILABLE: Feature not available for this subscription\n{reason}\n"
    )


def test_the_plan_is_checked_for_each_line_of_a_batch(cli: Cli) -> None:
    def body(*names: str, **fields: str) -> bytes:
        servers = [{"identifier": name, "by": "id"} for name in names]
        return json.dumps({"servers": servers, **fields}).encode() + b"\n"

    week, year = (body("harbor-city", "old-guard", range=name) for name in ("7d", "1y"))
    nobody = body("harbor-city", "nobody", range="7d")
    Path("batch.ndjson").write_bytes(week + year + b"{}\n" + nobody + week)

    ran = cli("compare", "--batch", "batch.ndjson", *STARTER)

    answer = cli("compare", "harbor-city", "old-guard", "--range", "7d").stdout
    assert ran.exit_code == 0
    assert ran.stdout == answer + FORBIDDEN + INVALID + NOT_FOUND + answer
    assert (
        ran.stderr.splitlines()[0] == "line 2: the plan starter does not include 1y, only 24h, 7d"
    )


def test_errors_are_reported_in_the_documented_order(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step fixes the error of the one before: usage, file, plan, request, and so on."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "missing.db")
    Path("bad.toml").write_text("")
    wrong = ["compare", "a", "a", "--range", "1y"]
    steps = [
        ([*wrong, "--plan", "x", "--access", "bad.toml", "--at", "never"], 2),
        ([*wrong, "--plan", "x", "--access", "bad.toml"], 6),
        ([*wrong, "--plan", "x", "--access", "access.toml"], 2),
        ([*wrong, *STARTER], 40),
        (["compare", "a", "b", "--range", "1y", *STARTER], 43),
        (["compare", "a", "b", "--range", "7d", *STARTER], 3),
    ]

    assert [cli(*arguments).exit_code for arguments, _ in steps] == [code for _, code in steps]


def test_plan_and_access_must_be_used_together(cli: Cli) -> None:
    for command in (["get", "a"], ["compare", "a", "b"], ["compare", "--batch", "none"]):
        for options in (["--plan", "starter"], ["--access", "access.toml"]):
            ran = cli(*command, *options)
            assert (ran.exit_code, ran.stdout) == (2, b"")
            assert ran.stderr == "error: --plan NAME and --access FILE must be used together\n"


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
    names = {"srvstat.access", "srvstat.files.toml_lines", "tomllib"}
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
        "0 srvstat.access srvstat.files.toml_lines tomllib\n"
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
