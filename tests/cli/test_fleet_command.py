"""`fleet`: its options, its results, what it refuses, and what it leaves behind."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, Cli, csv, ndjson, server
from support.process import ForkedCommand
from support.snapshots import parse_summary, read_directory
from support.terminal import SRVSTAT, run_in_terminal

FLEET = ["fleet", "week.csv", "--servers=servers.ndjson"]
RESULTS = [*FLEET, "--output=r.ndjson"]

A = (
    '{"serverId":"a","cfxId":"x-a","range":"%s","currentPlayers":6,"averagePlayers":%s,'
    '"medianPlayers":%s,"peakPlayers":6,"lowestPlayers":%s,"growth":{"players":%s,"percentage":%s},'
    '"uptime":null,"sampleCount":%s}\n'
)
B = A.replace('"a"', '"b"').replace("x-a", "x-b").replace(":6", ":7")
"""The results of the servers of `here`, `a` with 5 a day before the end and 6 at the end."""


def read_results(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


@pytest.mark.usefixtures("here")
def test_each_publishable_server_has_a_line_in_the_order_of_ids(cli: Cli) -> None:
    with open("servers.ndjson", "ab") as file:
        file.write(ndjson([server("Z", cfxId="a", players={"current": 3})]))

    ran = cli(*RESULTS, "--range=7d")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    first, *lines = Path("r.ndjson").read_text().splitlines(keepends=True)
    assert json.loads(first)["serverId"] == "Z"
    assert (json.loads(first)["currentPlayers"], json.loads(first)["peakPlayers"]) == (3, None)
    assert lines == [
        A % ("7d", "5.5", "5.5", "5", "1", "20", "2"),
        B % ("7d", "7", "7", "7", "null", "null", "1"),
    ]
    assert parse_summary(ran)["servers"] == "3 (1 not public, omitted)"
    assert parse_summary(ran)["with data"] == "2 in the window"
    assert parse_summary(ran)["window"].startswith("2026-02-22 12:00:00 UTC to 2026-03-01")


@pytest.mark.usefixtures("here")
def test_the_window_ends_as_of_a_given_time_and_excludes_its_start(cli: Cli) -> None:
    ran = cli(*RESULTS, f"--at={AS_OF - 1}", "--range=24h")

    assert ran.exit_code == 0
    a, b = read_results("r.ndjson")
    assert (a["sampleCount"], a["currentPlayers"], a["peakPlayers"]) == (1, 5, 5)
    assert (b["sampleCount"], b["currentPlayers"], b["peakPlayers"]) == (0, 0, None)
    assert parse_summary(ran)["skipped"] == "2 (2 after the as-of time)"

    cli(*RESULTS, "--range=24h", "--overwrite")

    assert [row["sampleCount"] for row in read_results("r.ndjson")] == [1, 1]


@pytest.mark.usefixtures("here")
def test_parquet_has_the_same_values_as_columns(cli: Cli) -> None:
    cli(*RESULTS, "--range=1y")
    ran = cli(*FLEET, "--output=r.PARQUET", "--range=1y")

    assert ran.exit_code == 0, ran.stderr
    table = parquet.read_table("r.PARQUET")
    rows = read_results("r.ndjson")
    for row in rows:
        growth = row.pop("growth")
        row |= {"growthPlayers": growth["players"], "growthPercentage": growth["percentage"]}
    assert table.to_pylist() == rows
    assert [field.name for field in table.schema if not field.nullable] == [
        "serverId", "cfxId", "range", "currentPlayers", "sampleCount"
    ]  # fmt: skip
    assert {field.type for field in table.schema} == {pa.string(), pa.int64(), pa.float64()}


@pytest.mark.usefixtures("here")
def test_without_a_servers_file_each_identifier_with_an_observation_has_a_result(cli: Cli) -> None:
    rows = csv([("A b", AS_OF, 5), ("c", AS_OF, 1), ("later", AS_OF + 1, 1), ("!", AS_OF, 1)])
    options = ["--output=r.jsonl", "--input-format=csv", f"--at={AS_OF}", "--game=game_a"]

    ran = cli("fleet", "-", *options, stdin=rows)

    assert ran.exit_code == 0, ran.stderr
    assert [row["serverId"] for row in read_results("r.jsonl")] == ["a-b", "c", "server-bb7208bc"]


@pytest.mark.usefixtures("here")
def test_a_lone_surrogate_makes_an_identifier_malformed(cli: Cli) -> None:
    row = rb'{"serverId":"a\ud800b","observedAt":%d,"players":%d}' + b"\n"
    rows = row % (AS_OF, 5) + row.replace(rb"\ud800", b"") % (AS_OF, 6)
    options = ["--game=game_a", "--input-format=ndjson", "--output=r.ndjson"]

    ran = cli("fleet", "-", *options, stdin=rows)

    assert (ran.exit_code, parse_summary(ran)["rejected"]) == (0, "1")
    assert [row["serverId"] for row in read_results("r.ndjson")] == ["ab"]


@pytest.mark.usefixtures("here")
def test_only_rows_that_could_be_missed_are_a_warning_when_quiet(cli: Cli) -> None:
    Path("bad.csv").write_bytes(csv([("a", AS_OF, -1), ("a", AS_OF, 9), ("no", 5, 5), ("a", 0, 1)]))
    quiet = ["fleet", "week.csv", "--output=r.ndjson", "--servers=servers.ndjson", "--quiet"]
    assert cli(*quiet).stderr == ""

    ran = cli(*quiet, "bad.csv", "--overwrite")

    assert ran.exit_code == 0
    assert ran.stderr == (
        "warning: 3 of 7 rows not kept: 1 rejected, players: must be a whole number from 0 to 2^53"
        " - 1, without separators, 1 conflicting, 1 not in the servers file; for example,"
        " bad.csv, line 3: server a has 9 players at 2026-03-01T12:00:00.000Z, but 6 in"
        " week.csv, line 3\n"
        'warning: 1 identifier is not in the servers file: "no"; add the records to'
        " servers.ndjson\n"
    )


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (FLEET, 2, "no output; add -o FILE (.ndjson, .jsonl, .parquet) or --snapshots DIR"),
        ([*FLEET, "--output=-"], 2, "-o: standard output is not supported"),
        (
            [*FLEET, "--output=old.ndjson"],
            2,
            "old.ndjson: already exists; add --overwrite to replace it",
        ),
        ([*FLEET, "old.ndjson", "--output=old.ndjson", "--overwrite"], 2, "same file as an input"),
        ([*FLEET, "--output=./servers.ndjson", "--overwrite"], 2, "same file as an input"),
        (
            [*FLEET, "--output=none/r.ndjson"],
            4,
            "none/r.ndjson: the folder does not exist; create it first",
        ),
        ([*RESULTS, "--at=today"], 2, "--at: "),
        ([*RESULTS, "--threads=1025"], 2, "--threads: must be from 1 to 1024"),
        ([*RESULTS, "--memory=4GB"], 2, '"4GB" is not a size such as 512MiB or 4GiB'),
        ([*RESULTS, "missing.csv"], 6, "missing.csv: no such file or directory"),
        ([*RESULTS, "--hold"], 2, "--hold: not supported by fleet"),
        ([*RESULTS, "--at=5"], 6, "no observations kept: 3 after the as-of time; use a"),
        (
            [*RESULTS, "--servers=old.ndjson"],
            6,
            '2 identifiers are not in the servers file: "a", "b"; add the records to old.ndjson\n',
        ),
    ],
    ids=str,
)
def test_what_is_refused_leaves_no_file(
    arguments: list[str], exit_code: int, message: str, cli: Cli, here: Path
) -> None:
    Path("old.ndjson").write_bytes(ndjson([server("other")]))
    before = read_directory(here)

    ran = cli(*arguments)

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert message in ran.stderr
    assert read_directory(here) == before


@pytest.mark.usefixtures("here")
def test_a_missing_library_is_named_with_its_extra(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ("srvstat.fleet", "srvstat.cli.fleet", "duckdb")
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)

    ran = cli(*RESULTS)

    assert ran.exit_code == 2
    assert "needs the library duckdb; run pip install 'srvstat[bulk]'" in ran.stderr


def test_an_interrupted_job_leaves_no_file(here: Path, tmp_path: Path) -> None:
    before = read_directory(here)
    os.mkfifo(tmp_path / "pipe.csv")  # nothing writes to it
    command = [*FLEET, str(tmp_path / "pipe.csv"), "--output=r.ndjson"]
    with open(tmp_path / "stderr", "wb") as stderr, ForkedCommand(command, stderr.fileno()) as job:
        while read_directory(here) == before:
            time.sleep(0.01)
        job.send_signal(signal.SIGTERM)
        assert job.wait(30) == 143

    assert (tmp_path / "stderr").read_bytes() == b""
    assert read_directory(here) == before


def test_a_terminal_shows_the_steps_and_then_the_summary(here: Path) -> None:
    name = "\x1b]0;title\x07 夜.csv"
    os.rename("week.csv", name)

    exit_code, shown = run_in_terminal(
        [*SRVSTAT, "fleet", name, "--servers=servers.ndjson", "--output=r.ndjson"],
        columns=60,
        cwd=here,
    )

    assert exit_code == 0
    assert "reading" in shown
    assert "\\u001b]0;title\\u0007 夜.csv" in shown
    assert "\x1b]0" not in shown
    assert "wrote r.ndjson\n  servers      2 (1 not public, omitted)\n" in shown
