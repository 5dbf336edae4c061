"""Keep the modes and groups of replaced files; write rejects to streams and descriptors."""

import json
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from conftest import AS_OF, Cli, csv, srvstat
from srvstat.files.atomic import atomic_write
from support.process import replace_descriptor
from support.snapshots import WEEK, read_directory, read_rejects
from support.terminal import run_srvstat_in_terminal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change groups at will")
ODD = csv([("a", AS_OF, 5), *[("a", AS_OF, "x" * 99)] * 2_000])


def get_mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o666])
def test_a_replaced_file_keeps_its_mode(mode: int, cli: Cli) -> None:
    names = ["out.db", "rejects.ndjson"]
    for name in names:
        Path(name).touch()
        Path(name).chmod(mode)

    assert cli(*WEEK, "--overwrite", "--rejects", "rejects.ndjson").exit_code == 0

    assert [get_mode(name) for name in names] == [mode, mode]


def test_a_draft_has_no_more_permissions_than_the_replaced_file(here: Path) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").touch()
    Path("out.db").chmod(0o400)
    before = read_directory(here)
    command = [sys.executable, "-m", "srvstat", *WEEK, "--observations", "fifo.csv", "--overwrite"]
    with subprocess.Popen(command) as process:
        while not (drafts := read_directory(here).keys() - before.keys()):
            assert process.poll() is None
            time.sleep(0.01)
        (mode,) = map(get_mode, drafts)
        with open("fifo.csv", "wb") as pipe:
            pipe.write(csv([("a", AS_OF, 5)]))
        assert (process.wait(timeout=60), mode) == (0, 0o600)

    assert get_mode("out.db") == 0o400


@AS_ROOT
def test_a_replaced_file_keeps_its_group(cli: Cli) -> None:
    Path("out.db").touch()
    os.chown("out.db", -1, 12_345)
    Path("out.db").chmod(0o640)

    assert cli(*WEEK, "--overwrite").exit_code == 0

    assert (os.stat("out.db").st_gid, get_mode("out.db")) == (12_345, 0o640)


def replace_as_nobody(directory: str) -> None:
    os.chdir(directory)
    os.setgroups([])
    os.setgid(65_534)
    os.setuid(65_534)
    with atomic_write("out.db", overwrite=True):
        pass


@AS_ROOT
@pytest.mark.parametrize(("mode", "kept"), [(0o664, 0o644), (0o640, 0o600), (0o606, 0o606)])
def test_another_group_gets_no_more_rights_than_other_users(mode: int, kept: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, 65_534, 65_534)
        path = os.path.join(directory, "out.db")
        Path(path).touch()
        os.chown(path, -1, 12_345)
        os.chmod(path, mode)

        context = multiprocessing.get_context("fork")
        other = context.Process(target=replace_as_nobody, args=(directory,))
        other.start()
        other.join(60)

        assert other.exitcode == 0
        assert (os.stat(path).st_gid, get_mode(path)) == (65_534, kept)


STREAMS = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", "link", "log.log"]


@pytest.mark.parametrize("name", STREAMS)
def test_rejects_are_appended_to_the_log_of_standard_error(name: str, cli: Cli) -> None:
    if name.startswith("/proc") and not os.path.isdir("/proc/self/fd"):
        pytest.skip("a name of Linux")
    os.symlink("/dev/stderr", "link")
    Path("week.csv").write_bytes(ODD)
    Path("log.log").write_text("before\n", encoding="utf-8")

    with open("log.log", "ab") as log:
        identity = os.fstat(log.fileno()).st_ino
        with replace_descriptor(2, log.fileno()):
            assert cli(*WEEK, "--max-rejected=100%", "--rejects", name).exit_code == 0

    before, *lines = Path("log.log").read_text(encoding="utf-8").splitlines()
    assert (before, os.stat("log.log").st_ino) == ("before", identity)
    assert [json.loads(line)["line"] for line in lines[:2_000]] == [*range(3, 2_003)]
    assert lines[2_000] == "built out.db"


def test_rejects_may_go_to_standard_output_or_dev_null(here: Path, cli: Cli) -> None:
    Path("week.csv").write_bytes(ODD)
    before = read_directory(here)

    ran = cli(*WEEK, "--max-rejected=100%", "--rejects", "/dev/stdout")
    silent = cli(*WEEK, "--max-rejected=100%", "--rejects", "/dev/null", "--overwrite")

    assert (ran.exit_code, ran.stdout.count(b'"file":"week.csv"')) == (0, 2_000)
    assert (silent.exit_code, silent.stdout) == (0, b"")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert read_directory(here).keys() - before.keys() == {"out.db"}


def test_rejects_may_go_through_a_fifo(cli: Cli) -> None:
    Path("week.csv").write_bytes(ODD)
    os.mkfifo("fifo")
    received: list[bytes] = []
    reader = threading.Thread(
        target=lambda: received.append(Path("fifo").read_bytes()), daemon=True
    )
    reader.start()

    assert cli(*WEEK, "--max-rejected=100%", "--rejects", "fifo").exit_code == 0
    reader.join(60)
    assert (
        cli(*WEEK, "--max-rejected=100%", "--overwrite", "--rejects", "rejects.ndjson").exit_code
        == 0
    )

    assert received == [Path("rejects.ndjson").read_bytes()]
    assert len(read_rejects()) == 2_000


def test_rejects_for_a_slow_reader_of_a_pipe_are_complete() -> None:
    Path("week.csv").write_bytes(ODD)
    reading_end, writing_end = os.pipe()
    os.set_blocking(writing_end, False)
    command = [
        sys.executable,
        "-m",
        "srvstat",
        *WEEK,
        "--max-rejected=100%",
        "--quiet",
        "--rejects",
    ]
    with subprocess.Popen([*command, f"/dev/fd/{writing_end}"], pass_fds=[writing_end]) as process:
        os.close(writing_end)
        with open(reading_end, "rb") as pipe:
            assert pipe.read().count(b"\n") == 2_000
        assert process.wait(timeout=60) == 0


def test_rejects_on_a_terminal_have_no_control_characters(here: Path) -> None:
    Path("week.csv").write_bytes(csv([("a", AS_OF, 5), ("a", AS_OF + 1, "\x9b2J")]))

    _, shown = run_srvstat_in_terminal(*WEEK, "--quiet", "--rejects", "/dev/stderr", cwd=here)

    assert "\x9b" not in shown
    assert r"\u009b2J" in shown


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "link"])
def test_a_snapshot_cannot_be_built_to_a_descriptor(output: str) -> None:
    os.symlink("/dev/stdout", "link")
    with open("log.log", "w+b") as log:
        command = [sys.executable, "-m", "srvstat", *WEEK[:2], output, *WEEK[3:], "--overwrite"]
        assert subprocess.run(command, stdout=log, timeout=60, check=False).returncode == 2

    assert Path("log.log").read_bytes() == b""


def test_a_closed_descriptor_is_refused_for_rejects(here: Path) -> None:
    before = read_directory(here)

    ran = srvstat(*WEEK, "--rejects", "/dev/fd/99")

    assert (ran.exit_code, ran.stderr) == (4, "error: /dev/fd/99: Bad file descriptor\n")
    assert read_directory(here) == before
