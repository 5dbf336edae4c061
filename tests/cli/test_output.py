"""Output that cannot lie: closed pipes, full disks, closed descriptors."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import srvstat

COMMAND = f"{sys.executable} -m srvstat"


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def environment(request: pytest.FixtureRequest, demo_snapshot: str) -> dict[str, str]:
    """Give a shell what it needs; Python's own streams may be buffered or not."""
    return {**os.environ, "SRVSTAT_SNAPSHOT": demo_snapshot, "PYTHONUNBUFFERED": request.param}


def shell(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


ASK = f"{COMMAND} compare harbor-city new-frontier"
NO_SPACE = "error: standard output: No space left on device\n"


@pytest.mark.parametrize("flag", ["--json", "--table"])
def test_a_full_disk_exits_4_and_says_so(flag: str, environment: dict[str, str]) -> None:
    done = shell(f"{ASK} {flag} > /dev/full", environment)

    assert (done.returncode, done.stderr) == (4, NO_SPACE)


def test_help_on_a_full_disk_exits_4_and_says_so(environment: dict[str, str]) -> None:
    done = shell(f"{COMMAND} --help > /dev/full", environment)

    assert (done.returncode, done.stderr) == (4, NO_SPACE)


def test_an_api_error_that_cannot_be_written_exits_4(environment: dict[str, str]) -> None:
    done = shell(f"{COMMAND} compare one --json > /dev/full", environment)

    assert done.returncode == 4
    assert done.stderr.endswith(NO_SPACE)


def test_a_closed_standard_output_exits_4_and_says_so(environment: dict[str, str]) -> None:
    done = shell(f"{ASK} >&-", environment)

    assert (done.returncode, done.stderr) == (4, "error: standard output: Bad file descriptor\n")


def test_the_next_file_gets_none_of_the_standard_descriptors(environment: dict[str, str]) -> None:
    script = (
        "import os, sys; from srvstat.__main__ import _occupy_standard_descriptors as occupy;"
        " occupy(); sys.exit(os.open(os.devnull, os.O_RDONLY))"
    )

    done = shell(f"{sys.executable} -c '{script}' <&- >&- 2>&-", environment)

    assert done.returncode == 3


def test_a_build_needs_no_standard_descriptor(environment: dict[str, str], tmp_path: Path) -> None:
    source = Path(environment["SRVSTAT_SNAPSHOT"]).parent
    arguments = "snapshot build new.db --servers servers.ndjson --observations observations.csv"
    shell(f"cd {tmp_path} && cp {source}/*.ndjson {source}/*.csv .", environment)

    done = shell(f"cd {tmp_path} && {COMMAND} {arguments} <&- >&- 2>&-", environment)

    assert done.returncode == 0
    assert shell(f"{COMMAND} snapshot info {tmp_path}/new.db", environment).returncode == 0


@pytest.mark.parametrize("flag", ["--json", "--table"])
def test_a_reader_that_is_gone_exits_141_and_nothing_is_said(
    flag: str, environment: dict[str, str]
) -> None:
    # The reader is surely gone before the first byte is written.
    script = f"(sleep 0.2; {ASK} {flag}; echo $? >&2) | true"

    done = shell(script, environment)

    assert done.stderr == "141\n"


def test_head_may_close_the_pipe(environment: dict[str, str]) -> None:
    done = shell(f"({ASK}; echo $? >&2) | head -c0", environment)

    assert done.stderr in {"141\n", "0\n"}


def test_a_file_size_limit_exits_4(environment: dict[str, str], tmp_path: Path) -> None:
    # The limit counts blocks; the answer is shorter than one, so the file starts near its end.
    script = (
        f"cd {tmp_path}; head -c 1000 /dev/zero > out; ulimit -f 1; {ASK} --json >> out; echo $?"
    )

    done = shell(script, environment)

    assert done.stdout == "4\n"
    assert done.stderr == "error: standard output: File too large\n"


def test_a_pipe_that_does_not_block_loses_nothing(demo_snapshot: str) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Fuller than the pipe can hold, so that a write has to wait.
    os.write(writing, b"x" * 65_536)
    with subprocess.Popen(
        [sys.executable, "-m", "srvstat", "snapshot", "info", demo_snapshot], stdout=writing
    ) as process:
        os.close(writing)
        # Long enough for the command to find the pipe full.
        time.sleep(1)
        with open(reading, "rb") as pipe:
            output = pipe.read()
    ran = srvstat("snapshot", "info", demo_snapshot)

    assert process.returncode == 0
    assert output == b"x" * 65_536 + ran.stdout


def test_an_unwritable_standard_error_changes_no_answer(environment: dict[str, str]) -> None:
    done = shell(f"{COMMAND} compare one --json 2> /dev/full", environment)

    assert done.returncode == 40
    assert done.stdout == '{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'


def test_a_bug_is_reported_in_one_line_without_a_traceback(
    tmp_path: Path, demo_snapshot: str
) -> None:
    # A copy of the package with a mistake in it, so that the real way out of one is taken.
    shutil.copytree(sys.modules["srvstat"].__path__[0], tmp_path / "srvstat")
    with (tmp_path / "srvstat" / "operations.py").open("a") as operations:
        operations.write("def _result(*_): raise KeyError('secret')\n")

    ran = srvstat(
        *("compare", "harbor-city", "old-guard", "-s", demo_snapshot),
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )

    assert (ran.exit_code, ran.stdout) == (1, b"")
    assert ran.stderr.startswith("error: a bug in srvstat: KeyError in _result, ")
    assert "secret" not in ran.stderr
    assert ran.stderr.count("\n") == 1
