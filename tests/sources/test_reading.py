"""Read an input to its end or refuse it."""

import fcntl
import os
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, Ran, csv, ndjson, server
from srvstat.contract.errors import SourceError
from srvstat.sources.source import Source
from support.snapshots import COMMAND

pytestmark = pytest.mark.slow

CHANGED = "changed while it was read; run again once nothing writes to it"
TEXT = b"".join(b"line %d\n" % number for number in range(60_000))


def replace_file(path: Path) -> None:
    copy = path.with_suffix(".new")
    copy.write_bytes(path.read_bytes())
    os.replace(copy, path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"one more\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: os.truncate(path, 200_000),
    "emptied": lambda path: os.truncate(path, 0),
    "grown": grow,
    "written again": lambda path: path.write_bytes(TEXT),
    "replaced": replace_file,
    "removed": Path.unlink,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_while_it_is_read_is_refused(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "week.ndjson"
    path.write_bytes(TEXT)
    os.utime(path, (0, 0))  # long ago, so that any write changes the time
    blocks = Source(str(path), "ndjson").read_blocks()
    next(blocks)

    change(path)

    with pytest.raises(SourceError) as caught:
        list(blocks)
    assert caught.value.reason == f"{path}: {CHANGED}"


def test_standard_input_may_be_a_file_that_was_partly_read(tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    path.write_bytes(b"a comment\n" + csv([("a", AS_OF, 5)]))
    with path.open("rb", 0) as stdin:
        stdin.readline()
        done = subprocess.run(
            [sys.executable, "-m", "srvstat", *DRAFT, "-", "--format", "csv"],
            stdin=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")
def test_a_file_without_a_size_is_read_to_its_end() -> None:
    assert list(Source("/proc/self/status", "ndjson").read_lines())


DRAFT = ["snapshot", "draft-servers", "--game", "game_a", "--observations"]
ROWS = [("ab"[at % 2], AS_OF - at * 60_000, at % 50) for at in range(300)]
OBSERVATIONS = [*COMMAND, "--format", "csv", "--observations"]


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("servers.ndjson").write_bytes(ndjson([server("a"), server("b")]))


@pytest.mark.usefixtures("_files")
def test_a_closed_standard_input_is_refused() -> None:
    words = [sys.executable, "-m", "srvstat", *OBSERVATIONS, "-"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *words], capture_output=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (6, b"")
    assert done.stderr == b"error: standard input: Bad file descriptor\n"


@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")
@pytest.mark.usefixtures("_files")
def test_a_file_whose_first_read_fails_is_refused(cli: Cli) -> None:
    ran = cli(*OBSERVATIONS, "/proc/self/mem")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == "error: /proc/self/mem: Input/output error\n"


def run_slowly(command: list[str], data: bytes) -> Ran:
    """Run a command whose standard input does not block and is often empty."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    cuts = [len(data) * part // 7 for part in range(1, 7)]
    with subprocess.Popen(
        [sys.executable, "-m", "srvstat", *command, "-"],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(read_end)
        for start, end in zip([0, 1, *cuts], [1, *cuts, len(data)], strict=True):
            os.write(write_end, data[start:end])
            deadline = time.monotonic() + 30
            while any(fcntl.ioctl(write_end, termios.FIONREAD, bytes(4))):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.001)
            time.sleep(0.01)  # so that the next read finds nothing
        os.close(write_end)
        stdout, stderr = process.communicate(timeout=60)
    return Ran(process.returncode, stdout, stderr.decode())


@pytest.mark.usefixtures("_files")
def test_a_nonblocking_standard_input_is_read_to_its_end(cli: Cli) -> None:
    data = csv(ROWS)
    assert cli(*OBSERVATIONS, "-", stdin=data).exit_code == 0
    expected = Path("out.db").read_bytes()
    Path("out.db").unlink()

    ran = run_slowly(OBSERVATIONS, data)

    assert (ran.exit_code, ran.stdout) == (0, b""), ran.stderr
    assert Path("out.db").read_bytes() == expected
