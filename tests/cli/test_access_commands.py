"""`access new-key` and `access check`, and `get` and `compare` under a plan."""

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

from conftest import Cli, srvstat
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
    """Work beside an access file, with the demo's snapshot to ask."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    Path("access.toml").write_text(PLANS)


def test_a_new_key_is_printed_once_and_kept_as_its_digest(cli: Cli) -> None:
    ran = cli("access", "new-key", "--plan", "starter")

    key = ran.stdout.decode().removesuffix("\n")
    assert ran.exit_code == 0
    assert re.fullmatch(r"srvstat_[A-Za-z0-9_-]{43}", key)
    assert ran.stderr == (
        "a key of the plan starter, printed only once: access.toml keeps nothing but its digest\n"
    )
    sha256 = hashlib.sha256(key.encode()).hexdigest()
    assert Path("access.toml").read_text() == PLANS + format_key_table(sha256)


def test_the_file_of_a_new_key_may_be_named(cli: Cli) -> None:
    Path("access.toml").rename("other.toml")

    ran = cli("access", "new-key", "--plan", "details", "--access", "other.toml")

    customer = read_access("other.toml").find_customer(ran.stdout.strip())
    assert customer is not None
    assert customer.plan.name == "details"


def test_a_key_that_cannot_be_shown_is_said_to_be_seen_by_nobody() -> None:
    command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert ran.returncode == 4
    assert ran.stderr.decode() == (
        f"{not_seen()}\nerror: standard output: No space left on device\n"
    )


def test_a_key_whose_reader_has_gone_is_said_to_be_seen_by_nobody() -> None:
    command = [sys.executable, "-m", "srvstat", "access", "new-key", "--plan", "starter"]
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert (ran.returncode, ran.stderr.decode()) == (141, f"{not_seen()}\n")


def not_seen() -> str:
    """Return what is told of the only key in the file where nobody has seen it."""
    (customer,) = read_access("access.toml").customers
    digest = f'sha256 = "{customer.sha256.hex()}"'
    assert digest in Path("access.toml").read_text()
    return f"the key was not printed: remove the one with {digest} from access.toml"


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
        ("check --json --table", 2, "--json and --table exclude each other"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    cli: Cli, arguments: str, exit_code: int, finding: str
) -> None:
    Path("bad.toml").write_text("")

    ran = cli("access", *arguments.split())

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.splitlines()[0] == f"error: {finding}"
    assert Path("access.toml").read_text() == PLANS
    assert Path("bad.toml").read_text() == ""


def test_check_says_what_each_plan_may_do(cli: Cli) -> None:
    Path("access.toml").write_text(PLANS + format_key_table("1" * 64) + format_key_table("2" * 64))

    ran = cli("access", "check")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == (
        b'{"plans":[{"name":"starter","operations":["get-server","compare-servers"],'
        b'"ranges":["24h","7d"],"rawHistoryDays":0,"requestsPerMinute":60,"keys":2},'
        b'{"name":"details","operations":["get-server"],"ranges":[],"rawHistoryDays":7,'
        b'"requestsPerMinute":null,"keys":0}],"keys":2}\n'
    )
    assert "1111" not in cli("access", "check", "--table").stdout.decode()


def test_check_shows_a_file_without_plans(cli: Cli) -> None:
    Path("access.toml").write_text("plans = {}")

    assert cli("access", "check").stdout == b'{"plans":[],"keys":0}\n'
    assert cli("access", "check", "--table").stdout.decode().startswith("plan ")


def test_a_request_that_the_plan_allows_is_answered_as_without_one(cli: Cli) -> None:
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
def test_a_request_that_the_plan_does_not_allow_is_the_apis_403(
    cli: Cli, question: str, plan: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [{"identifier": name, "by": "id"} for name in "ab"]
    Path("month.json").write_text(json.dumps({"servers": servers}))
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "there-is-none.db")
    Path("access.toml").write_text(f"{PLANS}[plans.closed]\noperations = []\nranges = []\n")
    asked = [*question.split(), "--plan", plan, "--access", "access.toml"]

    as_json = cli(*asked, "--json")
    as_table = cli(*asked, "--table")

    assert (as_json.exit_code, as_json.stdout, as_json.stderr) == (43, FORBIDDEN, f"{reason}\n")
    assert (as_table.exit_code, as_table.stdout) == (43, b"")
    assert as_table.stderr == (
        f"error: FEATURE_NOT_AVAILABLE: Feature not available for this subscription\n{reason}\n"
    )


def test_each_line_of_a_batch_is_judged_by_the_plan(cli: Cli) -> None:
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


def test_what_is_wrong_is_judged_in_its_order(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step mends what the one before was told of: usage, file, plan, request, and so on."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "none.db")
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


def test_a_plan_and_its_file_need_each_other(cli: Cli) -> None:
    for command in (["get", "a"], ["compare", "a", "b"], ["compare", "--batch", "none"]):
        for options in (["--plan", "starter"], ["--access", "access.toml"]):
            ran = cli(*command, *options)
            assert (ran.exit_code, ran.stdout) == (2, b"")
            assert ran.stderr == "error: --plan NAME and --access FILE need each other\n"


def test_the_names_of_plans_are_completed() -> None:
    for command in ("get a --access access.toml --plan ", "access new-key --plan "):
        completing = {"_SRVSTAT_COMPLETE": "complete_bash", "COMP_WORDS": f"srvstat {command}"}
        completing["COMP_CWORD"] = str(len(command.split(" ")))
        ran = srvstat(env=completing)
        assert (ran.stdout.decode().split(), ran.stderr) == (["starter", "details"], ""), command


def test_names_are_not_completed_from_a_file_that_is_none() -> None:
    completing = {"COMP_WORDS": "srvstat get a --plan ", "COMP_CWORD": "4"}

    ran = srvstat(env={"_SRVSTAT_COMPLETE": "complete_bash", **completing})

    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, b"\n", "")


def test_access_is_read_by_those_alone_who_ask_under_a_plan() -> None:
    code = """
import os, sys
import srvstat.__main__
def tell(exit_code):
    names = {"srvstat.access", "srvstat.files.toml_lines", "tomllib"}
    print(exit_code, *sorted(names & set(sys.modules)), file=sys.stderr)
    end(exit_code)
end, os._exit = os._exit, tell
srvstat.__main__.run()
"""

    def imported(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    assert imported("get", "harbor-city") == "0\n"
    assert imported("get", "harbor-city", *STARTER) == (
        "0 srvstat.access srvstat.files.toml_lines tomllib\n"
    )


def test_an_interrupted_new_key_waits_for_no_lock_and_leaves_the_file_as_it_was() -> None:
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
