"""`fleet --snapshots`: shards are what builds of their servers make, in several processes."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, Cli, Ran, csv
from fleet.fleet_runs import FleetFiles, build, write_fleet
from srvstat.contract.errors import THREAD_LIMIT, EngineError, OutputError
from srvstat.fleet.job import WorkerError, do_jobs
from srvstat.snapshot.rows import find_shard
from support.process import ForkedCommand
from support.snapshots import parse_summary, read_directory, read_root


def write_snapshots(cli: Cli, files: FleetFiles, folder: Path, *options: str) -> Ran:
    ran = cli(
        "fleet", *map(str, files.sources), f"--servers={files.servers}", *files.options,
        f"--snapshots={folder}", *options,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return ran


def read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return manifest


def build_shard(cli: Cli, files: FleetFiles, folder: Path, number: int) -> str:
    """Build a snapshot of the servers of a shard from all sources, and return its root."""
    manifest = read_manifest(folder)
    records = [json.loads(line) for line in files.servers.read_bytes().splitlines()]
    servers = folder / "servers.ndjson"
    servers.write_bytes(
        b"".join(
            json.dumps(record).encode() + b"\n"
            for record in records
            if find_shard(record["id"], len(manifest["shards"])) == number
        )
    )
    path = folder / "expected.db"
    ran = cli(
        "snapshot", "build", str(path), f"--servers={servers}", f"--at={manifest['asOf']}",
        *(f"--observations={source}" for source in files.sources),
        # Other servers' identifiers may be malformed without the records that name them.
        "--allow-empty", "--overwrite", "--max-rejected=100%",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return read_root(str(path)).hex()


@settings(
    max_examples=max(2, settings().max_examples // 50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # `cli` keeps no state
)
@given(seed=st.integers(min_value=0), shards=st.integers(1, 4), threads=st.integers(1, 2))
def test_a_shard_is_the_build_of_its_servers(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, seed: int, shards: int, threads: int
) -> None:
    directory = tmp_path_factory.mktemp("fleet")
    files = write_fleet(directory, Random(seed), servers=30)  # noqa: S311 - not a secret
    folder = directory / "shards"

    options = [f"--shards={shards}", f"--threads={threads}", "--conflicts=first"]
    ran = write_snapshots(cli, files, folder, *options)

    manifest = read_manifest(folder)
    names = [f"shard-{number:03}.db" for number in range(shards)]
    assert sorted(read_directory(folder)) == ["manifest.json", *names]
    assert [shard["file"] for shard in manifest["shards"]] == names
    roots = [build_shard(cli, files, folder, number) for number in range(shards)]
    assert [shard["root"] for shard in manifest["shards"]] == roots
    assert [read_root(str(folder / name)).hex() for name in names] == roots
    build(cli, files, directory)
    built = cli("snapshot", "info", f"{directory}/snapshot.db").json
    for name in ("observations", "servers", "repeated", "conflicting", "rejected", "sources"):
        assert manifest[name] == built[name]
    for name in ("asOf", "firstObservedAt", "lastObservedAt"):
        assert manifest[name] == built[name]
    assert parse_summary(ran)["root"] == manifest["root"]


@pytest.mark.usefixtures("here")
def test_one_shard_of_servers_without_records_is_the_whole_snapshot(cli: Cli) -> None:
    rows = [(name, AS_OF - at, at) for name in ("MAIN LOBBY", "b") for at in range(9)]
    Path("rows.csv").write_bytes(csv([*rows, ("late", AS_OF + 1, 5)]))
    options = ["--slug-ids", "--game=game_b", f"--at={AS_OF}"]

    shards = cli(
        "fleet", "rows.csv", *options, "--snapshots=one", "--shards=1", "--output=r.ndjson"
    )
    built = cli("snapshot", "build", "all.db", "--observations=rows.csv", *options)

    assert (shards.exit_code, built.exit_code) == (0, 0)
    assert read_root("one/shard-000.db") == read_root("all.db")
    compare = ["compare", "main-lobby", "b", "--json", "--snapshot"]
    answer = cli(*compare, "one").stdout
    assert answer == cli(*compare, "all.db").stdout
    b, lobby = Path("r.ndjson").read_bytes().splitlines()
    assert answer == b'{"range":"30d","data":[%s,%s]}\n' % (lobby, b)
    assert parse_summary(shards)["snapshot"] == "18 observations in 1 shard"


def test_lowest_conflicts_do_not_depend_on_the_order_of_sources(cli: Cli, tmp_path: Path) -> None:
    files = write_fleet(tmp_path, Random(7), servers=10)  # noqa: S311 - not a secret
    turned = files._replace(sources=files.sources[::-1])
    options = ["--shards=2", "--conflicts=lowest", "--threads=1"]

    write_snapshots(cli, files, tmp_path / "one", *options)
    write_snapshots(cli, turned, tmp_path / "two", *options)

    found = [read_manifest(tmp_path / name) for name in ("one", "two")]
    assert found[0]["conflicting"] > 0
    assert found[0]["root"] == found[1]["root"]
    assert cli("snapshot", "verify", str(tmp_path / "one")).exit_code == 0


ONE_PROCESS = ["fleet", "rows.csv", "--game=game_a", "--snapshots=shards", "--threads=1"]
COMMAND = [*ONE_PROCESS, "--shards=2", "--threads=2"]
LIMITED = ["sh", "-c", 'ulimit -f "$0"; exec "$@"']
SECONDS = 120


@pytest.fixture
def before(here: Path) -> set[str]:
    """Write a source, and return the names of the files in the current directory."""
    rows = [(f"srv-{at % 20}", AS_OF - at * 7_000_000, at % 300) for at in range(5_000)]
    (here / "rows.csv").write_bytes(csv(rows))
    (here / "old").mkdir()
    return {*os.listdir()}


class Command(NamedTuple):
    """The command in a process of its own."""

    process: ForkedCommand
    stderr: IO[bytes]

    def wait_for_children(self) -> list[int]:
        """Return the processes that build shards, once there are two."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while True:
            children = path.read_text().split()  # no file once the command has ended
            commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
            found = [
                int(child)
                for child, command in zip(children, commands, strict=True)
                if b"spawn_main" in command
            ]
            if len(found) == 2:
                return found
            time.sleep(0.01)

    def finish(self) -> Ran:
        """Wait until the command and all of its children have ended: they share standard error."""
        stderr = self.stderr.read().decode()
        return Ran(self.process.wait(), b"", stderr)


@contextmanager
def start() -> Iterator[Command]:
    """Start the command; a test that fails leaves no process."""
    reading, writing = os.pipe()
    with open(reading, "rb") as stderr, ForkedCommand(COMMAND, writing) as process:
        os.close(writing)
        try:
            yield Command(process, stderr)
        finally:
            process.kill()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@needs_proc
@pytest.mark.slow
def test_a_killed_process_of_a_shard_is_an_error(before: set[str]) -> None:
    with start() as command:
        os.kill(command.wait_for_children()[1], signal.SIGKILL)

        assert command.finish() == Ran(
            7,
            b"",
            "error: shards: a process ended by SIGKILL; if memory ran out, use more --shards or"
            " fewer --threads\n",
        )
    assert {*os.listdir()} == before


@needs_proc
@pytest.mark.slow
def test_a_killed_command_leaves_no_process_and_a_draft_that_the_next_one_removes(
    before: set[str], cli: Cli
) -> None:
    with start() as command:
        command.wait_for_children()
        command.process.kill()

        assert command.finish().exit_code == -9
    (draft,) = {*os.listdir()} - before
    assert draft.startswith(".shards.srvstat-")
    assert cli(*ONE_PROCESS, "--shards=1").exit_code == 0
    assert {*os.listdir()} == {*before, "shards"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "code", "message"),
    [
        ("16", 7, r'error: DuckDB: Could not write file "\S+": File too large\n'),
        ("128", 4, r"error: shards/shard-000\.db: .+\n"),
    ],
)
def test_a_full_disk_is_an_error_and_leaves_nothing(
    before: set[str], blocks: str, code: int, message: str
) -> None:
    done = subprocess.run(
        [*LIMITED, blocks, sys.executable, "-m", "srvstat", *ONE_PROCESS, "--shards=1"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == code
    assert re.fullmatch(message, done.stderr)
    assert {*os.listdir()} == before


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*COMMAND, "--range=7d"], "--range requires -o; a snapshot always has all observations"),
        ([*COMMAND, "--snapshots="], "--snapshots: empty; give a file name"),
        (
            [*COMMAND, "--snapshots=a\udcff"],
            "--snapshots a\\udcff: the whole path must be UTF-8; name another one",
        ),
        ([*COMMAND, "--snapshots=old", "--overwrite"], "old: already exists; choose a new folder"),
        (
            ["fleet", "rows.csv", "--game=game_a", "-o", "results.ndjson", "--shards=2"],
            "--shards requires --snapshots DIR",
        ),
    ],
)
def test_invalid_options_of_shards_exit_with_2(
    cli: Cli, arguments: list[str], message: str
) -> None:
    assert cli(*arguments) == Ran(2, b"", f"error: {message}\n")


Report = Callable[[int], None]


def square(number: int, report: Report) -> tuple[int, int]:
    report(number)
    return number**2, os.getpid()


def fail(number: int, _report: Report) -> None:
    if number == 1:
        raise OutputError("shard: no space left on device")


def die(_number: int, _report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_in_others(process: int, _report: Report) -> int:
    """Stop this process, unless it is the given one."""
    if os.getpid() != process:
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid()


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_parent_that_ignores_the_end_of_processes_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "week.csv").write_bytes(csv([("a", AS_OF, 5), ("b", AS_OF, 7)]))
    command = [sys.executable, "-m", "srvstat", "fleet", "week.csv", "--snapshots=shards"]

    ran = subprocess.run(
        ["sh", "-c", 'trap "" CHLD; exec "$@"', "sh", *command, "--shards=2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, "bug" in ran.stderr) == (0, False), ran.stderr


def test_jobs_are_done_in_other_processes_which_then_end() -> None:
    reports: list[int] = []

    found = dict(do_jobs(square, range(20), processes=2, report=reports.append))

    assert {item: result for item, (result, _) in found.items()} == {n: n**2 for n in range(20)}
    assert sorted(reports) == [*range(20)]
    children = {process for _, process in found.values()}
    assert os.getpid() not in children
    assert not any(map(is_running, children))


def test_jobs_of_processes_that_do_not_answer_are_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("srvstat.fleet.job._SECONDS_TO_ANSWER", 2)
    ours = os.getpid()

    found = [*do_jobs(stop_in_others, [ours] * 3, processes=2, report=print)]

    assert found == [(ours, ours)] * 3


SLOW_JOBS = """
import os, sys, time
from srvstat.fleet import job

def work(item, report):
    time.sleep(0.7)
    return os.getpid()

if __name__ == "__main__":
    jobs = job.do_jobs(work, range(4), processes=1, report=print)
    print(next(jobs), flush=True)
    job._SECONDS_TO_ANSWER = 1.5
    print(os.getpid() in [process for _, process in jobs])
"""


@pytest.mark.slow
def test_jobs_of_a_suspended_program_continue_in_other_processes(tmp_path: Path) -> None:
    """As after Ctrl-Z and fg, or when a laptop wakes up."""
    script = tmp_path / "jobs.py"
    script.write_text(SLOW_JOBS, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(2)
        os.killpg(process.pid, signal.SIGCONT)

        assert process.stdout.read() == b"False\n"


def test_an_error_of_a_job_is_raised() -> None:
    with pytest.raises(OutputError, match="shard: no space left on device"):
        [*do_jobs(fail, range(3), processes=2, report=print)]


def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(WorkerError, match="a process ended by SIGKILL"):
        [*do_jobs(die, [1, 2], processes=2, report=print)]


@pytest.mark.parametrize(
    ("number", "error", "reason"),
    [
        (errno.EAGAIN, EngineError, THREAD_LIMIT),
        (errno.ENOMEM, WorkerError, "a process can't be started: cannot allocate memory"),
    ],
)
def test_processes_that_can_not_start(
    number: int, error: type[Exception], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("multiprocessing.util.spawnv_passfds", refuse)

    with pytest.raises(error, match=f"^{reason}$"):
        [*do_jobs(square, [1], processes=1, report=print)]
