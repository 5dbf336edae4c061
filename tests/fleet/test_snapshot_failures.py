"""Stop or starve a command that writes shards: there is a whole folder or none."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from conftest import AS_OF, Cli, Ran, csv
from support.process import ForkedCommand

ONE_PROCESS = ["fleet", "rows.csv", "--game=game_a", "--snapshots=shards", "--threads=1"]
COMMAND = [*ONE_PROCESS, "--shards=2", "--threads=2"]
LIMITED = ["sh", "-c", 'ulimit -f "$0"; exec "$@"']
SECONDS = 120
SAME_NAME = "--snapshots x.ndjson: is the file of the results; name a folder"


@pytest.fixture(autouse=True)
def before(here: Path) -> set[str]:
    """Write a source, and return the names of the files in the current directory."""
    rows = [(f"srv-{at % 20}", AS_OF - at * 7_000_000, at % 300) for at in range(5_000)]
    (here / "rows.csv").write_bytes(csv(rows))
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


def test_an_existing_folder_is_not_replaced(cli: Cli) -> None:
    os.mkdir("shards")

    ran = cli(*COMMAND, "--overwrite")

    assert ran == Ran(2, b"", "error: shards: exists; name a new folder\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range=7d"], "--range: needs -o; a snapshot has all observations"),
        (["-o", "./x.ndjson", "--snapshots=x.ndjson"], SAME_NAME),
        (["--snapshots="], "--snapshots: the name is empty; name a file"),
        (
            ["--snapshots=a\udcff"],
            "--snapshots a\\udcff: the whole path must be UTF-8; name another one",
        ),
    ],
)
def test_invalid_options_of_shards_exit_with_2(cli: Cli, options: list[str], message: str) -> None:
    assert cli(*COMMAND, *options) == Ran(2, b"", f"error: {message}\n")


def test_shards_need_a_folder(cli: Cli) -> None:
    ran = cli("fleet", "rows.csv", "--game=game_a", "-o", "results.ndjson", "--shards=2")

    assert ran == Ran(2, b"", "error: --shards: needs --snapshots DIR\n")
