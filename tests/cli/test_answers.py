"""Request files, batches, invalid requests, and hints for unknown servers."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, Build, Cli, server, srvstat
from srvstat import open_snapshot
from srvstat.cli.hints import suggest_servers
from srvstat.contract.errors import ServerNotFoundError
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.file import SnapshotFile
from srvstat.snapshot.rows import ServerRow

INVALID = b'{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'


def request(*identifiers: str, by: str = "id", **fields: str) -> bytes:
    servers = [{"identifier": identifier, "by": by} for identifier in identifiers]
    return json.dumps({"servers": servers, **fields}).encode()


GOOD = request("harbor-city", "night-shift")
OTHER = request("hc4x2k", "fa9t5w", by="cfxId", range="90d")


@pytest.fixture
def demo_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo_snapshot: str) -> Path:
    """Work in an empty directory; the demo snapshot is the default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    return tmp_path


def answer_alone(cli: Cli, body: bytes, *options: str) -> bytes:
    """Return the answer of `--request` to a body."""
    Path("alone.json").write_bytes(body)
    return cli("compare", "--request", "alone.json", "--json", *options).stdout


@pytest.mark.usefixtures("demo_here")
def test_each_line_has_the_answer_of_a_single_request_in_order(cli: Cli) -> None:
    bodies = [GOOD, b"nonsense", OTHER, request("harbor-city", "nobody"), GOOD]
    Path("batch.ndjson").write_bytes(b"\n".join(bodies) + b"\n")

    ran = cli("compare", "--batch", "batch.ndjson")

    assert ran.exit_code == 0
    assert ran.stdout == b"".join(answer_alone(cli, body) for body in bodies)
    assert ran.stderr == (
        "line 2: body: not JSON at column 1: Expecting value\n"
        "line 4: servers[1]: no server with id nobody\n"
    )


@pytest.mark.usefixtures("demo_here")
def test_a_batch_may_come_from_standard_input(cli: Cli) -> None:
    bodies = [GOOD, OTHER, b"x" * 70_000, GOOD] * 50
    ran = cli("compare", "--batch", "-", stdin=b"\n".join(bodies))

    assert (
        ran.stdout
        == b"".join(
            [answer_alone(cli, GOOD), answer_alone(cli, OTHER), INVALID, answer_alone(cli, GOOD)]
        )
        * 50
    )


@pytest.mark.usefixtures("demo_here")
def test_an_answer_does_not_wait_for_the_next_request(cli: Cli) -> None:
    good, other = answer_alone(cli, GOOD), answer_alone(cli, OTHER)
    process = subprocess.Popen(
        [sys.executable, "-m", "srvstat", "compare", "--batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    with process as running:
        assert running.stdin
        assert running.stdout
        for body, answer in [(GOOD, good), (OTHER, other), (b"", INVALID), (GOOD, good)]:
            running.stdin.write(body + b"\n")
            assert running.stdout.readline() == answer
        running.stdin.write(GOOD[:10])
        running.stdin.write(GOOD[10:])
        running.stdin.close()
        assert running.stdout.read() == good
        assert running.wait(timeout=30) == 0


@pytest.mark.usefixtures("demo_here")
def test_a_batch_waits_for_a_nonblocking_pipe(cli: Cli) -> None:
    good = answer_alone(cli, GOOD)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    process = subprocess.Popen(
        [sys.executable, "-m", "srvstat", "compare", "--batch", "-"],
        stdin=reader,
        stdout=subprocess.PIPE,
    )
    os.close(reader)
    with process as running:
        assert running.stdout
        for _ in range(3):
            time.sleep(0.3)  # long enough for a read that finds nothing
            os.write(writer, GOOD + b"\n")
            assert running.stdout.readline() == good
        os.close(writer)
        assert running.wait(timeout=30) == 0


def test_damage_stops_a_batch_after_the_answers_before_it(
    demo_here: Path, demo_snapshot: str, cli: Cli
) -> None:
    good = answer_alone(cli, GOOD)
    damaged = str(demo_here / "damaged.db")
    shutil.copy(demo_snapshot, damaged)
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute(
            "UPDATE blocks SET players = x'0001' WHERE server_block / 1000000000 ="
            " (SELECT server FROM servers WHERE id = 'old-guard')"
        )
    Path("batch.ndjson").write_bytes(
        b"\n".join([GOOD, GOOD, request("harbor-city", "old-guard"), GOOD])
    )

    ran = cli("compare", "--batch", "batch.ndjson", "-s", damaged)

    assert (ran.exit_code, ran.stdout) == (3, good * 2)
    assert ran.stderr.startswith(f"error: {damaged}: damaged (observations of server old-guard ")


@pytest.mark.usefixtures("demo_here")
def test_a_reader_may_stop_a_batch(demo_snapshot: str) -> None:
    Path("batch.ndjson").write_bytes((GOOD + b"\n") * 5000)
    command = f"{sys.executable} -m srvstat compare --batch batch.ndjson -s {demo_snapshot}"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1 > /dev/null; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == (b"141\n", b"")


def test_arguments_that_are_not_utf8_are_an_invalid_request() -> None:
    for arguments in (
        [b"get", b"\xff"],
        [b"compare", b"a", b"b", b"--range", b"7d\xff"],
        [b"compare", b"a", b"b", b"--by", b"\xffid"],
    ):
        ran = srvstat(*arguments)
        assert (ran.exit_code, ran.stdout) == (40, INVALID)


@pytest.mark.usefixtures("crossed_snapshot")
def test_a_request_file_has_the_answer_of_the_same_arguments(cli: Cli, tmp_path: Path) -> None:
    body = b'{"servers":[{"identifier":"a","by":"id"},{"by":"cfxId","identifier":"a"}]}'
    (tmp_path / "request.json").write_bytes(body)

    from_file = cli("compare", "--request", str(tmp_path / "request.json"))
    from_stdin = cli("compare", "--request", "-", stdin=body)

    assert from_file.stdout == from_stdin.stdout == cli("compare", "a", "cfxId:a").stdout


@pytest.mark.usefixtures("demo_here")
@pytest.mark.parametrize("option", ["--request", "--batch"])
def test_a_closed_standard_input_exits_6(option: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m srvstat compare {option} - <&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == "error: standard input: bad file descriptor\n"


class CountedFile(SnapshotFile):
    """A snapshot that counts the identifiers and the servers that are read."""

    read = 0
    read_servers = 0

    def iter_servers(self) -> Iterator[ServerRow]:
        """Count each server."""
        for row in super().iter_servers():
            self.read_servers += 1
            yield row

    def iter_identifiers(self, *arguments: Any, **options: Any) -> Iterator[str]:
        """Count each identifier."""
        for name in super().iter_identifiers(*arguments, **options):
            self.read += 1
            yield name


def test_a_hint_reads_few_identifiers_and_the_first_servers_once(build: Build) -> None:
    names = [f"{'SRV' if number % 2 else 'srv'}-{number:05}" for number in range(10_100)]
    records = [server(name, hostname=f"The {number}") for number, name in enumerate(names)]
    snapshot = CountedFile(open_connection(build(records, [("srv-00000", AS_OF, 1)])))

    for missing, meant in (("srv-010000", "srv-01000"), ("srv-00101", "SRV-00101")):
        snapshot.read = snapshot.read_servers = 0
        hint = suggest_servers(snapshot, missing, "id")

        assert hint is not None
        assert meant in hint
        assert snapshot.read < len(names) / 5
        assert snapshot.read_servers == 10_000
    assert suggest_servers(snapshot, "THE  7", "id") == 'did you mean id:SRV-00007 ("The 7")?'
    assert "10050" not in (suggest_servers(snapshot, "The 10050", "id") or "")
    snapshot.close()


def test_a_name_is_an_identifier_in_every_command_of_an_owner(cli: Cli, here: Path) -> None:
    names = ("Main Lobby", "異環", "Bay", "Twin A", "Twin+A")
    rows = [f"{name},2026-03-01T12:00:00Z,1\n" for name in names]
    (here / "a.csv").write_text(f"server,time,players\n{''.join(rows)}")
    assert cli("snapshot", "build", "a.db", "a.csv", "--game", "game_a").exit_code == 0
    chosen = ["-s", "a.db"]

    for name, server_id in (("Main Lobby", "main-lobby"), ("main lobby", "main-lobby"),
                            ("異環", "yihuan"), ("bay", "Bay")):  # fmt: skip
        assert cli("get", name, *chosen).json["data"]["id"] == server_id
        compared = cli("compare", name, "Twin+A", *chosen)
        assert compared.json["data"][0]["serverId"] == server_id
        assert cli("stats", name, *chosen, "--json").json["servers"][0]["serverId"] == server_id
        with open_snapshot("a.db") as snapshot:
            assert snapshot.get(name).data.id == server_id
            assert snapshot.compare([name, "Twin A"]).data[0].server_id == server_id

    for command in (["get", "a b"], ["compare", "a b", "Bay"], ["get", "Bay!"]):
        assert cli(*command, *chosen).exit_code == cli(*command, "-s", "none.db").exit_code == 40
    for command in (["get", "id:bay"], ["get", "bay", "--by", "cfxId"], ["get", "unknown"]):
        assert cli(*command, *chosen).exit_code == 44
    (here / "request.json").write_bytes(request("bay", "Bay"))
    assert cli("compare", "--request", "request.json", *chosen).exit_code == 44


def test_the_errors_of_the_api_are_the_answers_about_its_servers(build: Build, cli: Cli) -> None:
    records = [
        server("main-lobby", sourceId=["Main Lobby", "異環"]),
        server("b", hostname="異環"),
        *(server(name, hostname="Twin") for name in ("one", "two")),
        server("c", cfxId="unknown", hostname="Bay"),
    ]
    path = build(records, [(name, AS_OF, 1) for name in ("main-lobby", "b", "c")])

    for name in ("Main Lobby", "main lobby", "異環"):
        stats = cli("stats", name, "-s", path, "--json").json
        assert [one["serverId"] for one in stats["servers"]] == ["main-lobby"]
        assert cli("get", name, "-s", path).exit_code == 40
        assert cli("compare", name, "b", "-s", path).exit_code == 40
    for name in ("Bay", "Twin"):
        assert cli("get", name, "-s", path).exit_code == 44
        with open_snapshot(path) as snapshot, pytest.raises(ServerNotFoundError):
            snapshot.get(name)
    ran = cli("stats", "Twin", "-s", path, "--table")
    assert ran.stderr.endswith('"Twin" is the name of 2 servers; give an id: one, two\n')
