"""Stop, kill or starve a build: the old snapshot stays whole."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from conftest import AS_OF, Cli, Ran, csv
from support.process import restore_signals
from support.snapshots import COMMAND, EXISTS, WEEK, read_directory, read_observations

pytestmark = pytest.mark.slow


SECONDS = 120
"""Seconds that a build takes at most, on a busy machine and a slow disk."""

SECONDS_TO_STOP = 5


@contextmanager
def start(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; a test that fails leaves no process, which would fail a later test."""
    with subprocess.Popen(
        [sys.executable, "-m", "srvstat", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[bytes], seconds: int = SECONDS) -> Ran:
    stdout, stderr = process.communicate(timeout=seconds)
    return Ran(process.returncode, stdout, stderr.decode())


def stop(process: subprocess.Popen[bytes], number: signal.Signals) -> Ran:
    """Send a signal until the process ends.

    Python notices a signal that arrives just before a blocking call only after the call.
    """
    for _ in range(SECONDS // SECONDS_TO_STOP):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            return finish(process, SECONDS_TO_STOP)
    pytest.fail(f"still running after {SECONDS} s of {number.name}")


def pipe_to(process: subprocess.Popen[bytes], path: str) -> BinaryIO:
    """Open a FIFO for writing once a build has opened it for reading."""
    while process.poll() is None:
        with suppress(OSError):
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(pipe, True)
            return os.fdopen(pipe, "wb")
        time.sleep(0.01)
    pytest.fail(f"ended before it read {path}: {finish(process).stderr}")


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture
def restored_signals() -> Iterator[None]:
    """Let child processes receive signals."""
    with restore_signals():
        yield


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("restored_signals")
@pytest.mark.parametrize(("number", "exit_code"), SIGNALS)
def test_a_build_stopped_while_reading_changes_nothing(
    number: signal.Signals, exit_code: int, here: Path
) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").write_bytes(b"old")
    Path("rejects.ndjson").write_bytes(b"old")
    before = read_directory(here)
    command = [*COMMAND, "--observations", "fifo.csv", "--rejects", "rejects.ndjson"]

    with start(*command, "--overwrite") as process, pipe_to(process, "fifo.csv") as pipe:
        pipe.write(csv([("a", AS_OF, 5), ("a", AS_OF, 6)]))
        pipe.flush()
        assert read_directory(here).keys() > before.keys()
        ran = stop(process, number)

    assert ran == Ran(exit_code, b"", "")
    assert read_directory(here) == before


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("restored_signals")
def test_a_signal_ignored_at_the_start_stays_ignored(here: Path) -> None:
    os.mkfifo("fifo.csv")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with start(*COMMAND, "--observations", "fifo.csv") as process:
        with pipe_to(process, "fifo.csv") as pipe:
            process.send_signal(signal.SIGHUP)
            pipe.write(csv([("a", AS_OF, 5)]))

        assert finish(process).exit_code == 0
    assert "out.db" in read_directory(here)


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("restored_signals")
def test_a_build_stopped_while_waiting_leaves_nothing(here: Path) -> None:
    os.mkfifo("fifo.csv")
    before = read_directory(here)

    with start(*COMMAND, "--observations", "fifo.csv") as process:
        while read_directory(here) == before:
            assert process.poll() is None
            time.sleep(0.01)

        assert stop(process, signal.SIGTERM) == Ran(143, b"", "")
    assert read_directory(here) == before


@pytest.mark.usefixtures("here")
def test_a_killed_build_leaves_the_old_snapshot_and_a_draft_that_the_next_build_removes(
    here: Path, cli: Cli
) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").write_bytes(b"old")
    before = read_directory(here)

    with (
        start(*COMMAND, "--observations", "fifo.csv", "--overwrite") as process,
        pipe_to(process, "fifo.csv") as pipe,
    ):
        pipe.write(csv([("a", AS_OF, 5)]))
        pipe.flush()
        process.kill()
        assert finish(process).exit_code == -signal.SIGKILL

    (draft,) = read_directory(here).keys() - before.keys()
    assert re.fullmatch(r"\.out\.db\.srvstat-[0-9a-f]{16}\.tmp", draft)
    assert Path("out.db").read_bytes() == b"old"
    assert cli(*WEEK, "--overwrite").exit_code == 0
    assert read_directory(here).keys() == before.keys()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("options", "exit_codes"), [(["--overwrite"], [0, 0]), ([], [0, 2])])
def test_two_simultaneous_builds_leave_one_complete_snapshot(
    options: list[str], exit_codes: list[int], here: Path, cli: Cli
) -> None:
    names = ["one.csv", "two.csv"]
    for name in names:
        os.mkfifo(name)
    before = read_directory(here)

    with ExitStack() as started:
        builds = [
            started.enter_context(start(*COMMAND, "--observations", name, *options))
            for name in names
        ]
        pipes = [pipe_to(process, name) for process, name in zip(builds, names, strict=True)]
        for count, pipe in enumerate(pipes, 1):
            with pipe:
                pipe.write(csv([("a", AS_OF + at, at) for at in range(count * 1000)]))
        ran = [finish(build) for build in builds]

    assert sorted(one.exit_code for one in ran) == exit_codes
    assert [one.stderr for one in ran if one.exit_code] == [EXISTS] * exit_codes.count(2)
    info = cli("snapshot", "info", "out.db").json
    (winner,) = (names.index(name) for name in info["sources"])
    assert ran[winner].exit_code == 0
    assert info["observations"] == len(read_observations("out.db")) == 1000 * (winner + 1)
    assert read_directory(here).keys() - before.keys() == {"out.db"}


BUILD = ["snapshot", "build", "out.db", "--servers", "servers.ndjson", "--observations", "many.csv"]


def test_a_full_disk_at_the_end_of_the_rejects_builds_nothing(here: Path, cli: Cli) -> None:
    rows: list[tuple[str, int | str, int | str]] = [("a", "never" * 20, at) for at in range(2_000)]
    Path("many.csv").write_bytes(csv([("a", AS_OF, 5), *rows]))
    command = [*BUILD, "--max-rejected=100%", "--rejects", "rejects.ndjson"]
    assert cli(*command).exit_code == 0
    room = Path("rejects.ndjson").stat().st_size - 10
    assert Path("out.db").stat().st_size < room
    for name in ("out.db", "rejects.ndjson"):
        Path(name).unlink()
    before = sorted(path.name for path in here.iterdir())

    with limit_file_size(room):
        ran = cli(*command)

    assert ran.exit_code == 4
    assert ran.stderr.startswith("error: rejects.ndjson: ")
    assert sorted(path.name for path in here.iterdir()) == before


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_full_disk_changes_nothing(old: bytes | None, here: Path, cli: Cli) -> None:
    Path("many.csv").write_bytes(csv([("a", AS_OF - at, at % 9) for at in range(20_000)]))
    if old:
        Path("out.db").write_bytes(old)
    before = read_directory(here)

    with limit_file_size(100_000):
        ran = cli(*BUILD, "--overwrite")

    assert ran.exit_code == 4
    assert ran.stderr.startswith("error: out.db: ")
    assert read_directory(here) == before
