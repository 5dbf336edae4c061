"""Output to closed pipes, full disks, closed descriptors and terminals, and the names of files."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from conftest import AS_OF, Cli, csv, srvstat
from srvstat.cli.output import (
    Form,
    FormOptions,
    ReaderGoneError,
    prepare_json,
    report,
    show_progress,
    write,
)
from srvstat.contract.errors import OutputError, UsageError
from support.process import replace_descriptor

pytestmark = pytest.mark.slow

COMMAND = f"{sys.executable} -m srvstat"


@pytest.fixture
def environment(request: pytest.FixtureRequest, demo_snapshot: str) -> dict[str, str]:
    """Return an environment with a snapshot, with Python's own streams buffered or not."""
    unbuffered = "1" if getattr(request, "param", "") == "unbuffered" else ""
    return {**os.environ, "SRVSTAT_SNAPSHOT": demo_snapshot, "PYTHONUNBUFFERED": unbuffered}


either_buffering = pytest.mark.parametrize("environment", ["buffered", "unbuffered"], indirect=True)
each_form = pytest.mark.parametrize(
    ("flag", "environment"),
    [("--json", "buffered"), ("--table", "unbuffered")],
    indirect=["environment"],
)


def run_shell(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
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


@each_form
def test_a_full_disk_exits_4(flag: str, environment: dict[str, str]) -> None:
    done = run_shell(f"{ASK} {flag} > /dev/full", environment)

    assert (done.returncode, done.stderr) == (4, NO_SPACE)


@either_buffering
def test_a_closed_standard_output_exits_4(environment: dict[str, str]) -> None:
    done = run_shell(f"{ASK} >&-", environment)

    assert (done.returncode, done.stderr) == (4, "error: standard output: Bad file descriptor\n")


def test_files_never_get_standard_descriptors(environment: dict[str, str]) -> None:
    script = (
        "import os, sys; from srvstat.__main__ import occupy_standard_descriptors as occupy;"
        " occupy(); sys.exit(os.open(os.devnull, os.O_RDONLY))"
    )

    done = run_shell(f"{sys.executable} -c '{script}' <&- >&- 2>&-", environment)

    assert done.returncode == 3


def test_a_build_needs_no_standard_descriptor(environment: dict[str, str], tmp_path: Path) -> None:
    source = Path(environment["SRVSTAT_SNAPSHOT"]).parent
    arguments = "snapshot build new.db --servers servers.ndjson --observations observations.csv"
    run_shell(f"cd {tmp_path} && cp {source}/*.ndjson {source}/*.csv .", environment)

    done = run_shell(f"cd {tmp_path} && {COMMAND} {arguments} <&- >&- 2>&-", environment)

    assert done.returncode == 0
    assert run_shell(f"{COMMAND} snapshot info {tmp_path}/new.db", environment).returncode == 0


@each_form
def test_a_closed_pipe_exits_141_silently(flag: str, environment: dict[str, str]) -> None:
    # The reader ends before the first byte is written.
    script = f"(sleep 0.2; {ASK} {flag}; echo $? >&2) | true"

    done = run_shell(script, environment)

    assert done.stderr == "141\n"


def test_a_file_size_limit_exits_4(environment: dict[str, str], tmp_path: Path) -> None:
    # The limit counts blocks; the answer is shorter than one, so the file starts near its end.
    # No module may be compiled: a file that is cut off would remain.
    limits = "export PYTHONDONTWRITEBYTECODE=1; ulimit -f 1"
    script = f"cd {tmp_path}; head -c 1000 /dev/zero > out; {limits}; {ASK} --json >> out; echo $?"

    done = run_shell(script, environment)

    assert done.stdout == "4\n"
    assert done.stderr == "error: standard output: File too large\n"


def test_a_nonblocking_pipe_loses_nothing(demo_snapshot: str) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Fill the pipe, so that a write has to wait.
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


def test_write_waits_for_a_full_pipe_and_reports_one_that_fails(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    body = bytes(1 << 20)  # more than any pipe holds
    read = bytearray()

    def read_all() -> None:
        while len(read) < len(body):
            read.extend(os.read(reading, 100_000))

    reader = Timer(0.2, read_all)
    reader.start()
    with replace_descriptor(1, writing):
        write(body)
    reader.join()
    assert bytes(read) == body
    with (
        replace_descriptor(1, reading),
        pytest.raises(OutputError, match=r"^standard output: Bad file descriptor$"),
    ):
        write(b"x")
    with open(os.devnull, "rb") as other:
        os.dup2(other.fileno(), reading)
    with replace_descriptor(1, writing), pytest.raises(ReaderGoneError):
        write(b"x")


def test_a_terminal_shows_a_bar(terminal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with (
        replace_descriptor(2, terminal),
        show_progress(lambda bars: bars.show_rows_progress(), quiet=False) as advance,
    ):
        advance(1, 2)


def test_a_dry_run_without_temporary_space_is_an_error(
    environment: dict[str, str], tmp_path: Path
) -> None:
    rows = csv(("a", AS_OF - at, 5) for at in range(400_000))
    (tmp_path / "week.csv").write_bytes(rows)
    build = f"snapshot build {tmp_path}/out.db --observations {tmp_path}/week.csv"
    dry_run = f"{COMMAND} {build} --game game_a --dry-run"
    done = run_shell(f"ulimit -f 200; {dry_run}", environment)

    assert done.returncode == 4
    assert "error: SQLite's temporary files: " in done.stderr


def test_an_unwritable_standard_error_changes_no_answer(environment: dict[str, str]) -> None:
    done = run_shell(f"{COMMAND} compare one --json 2> /dev/full", environment)

    assert done.returncode == 40
    assert done.stdout == '{"error":{"code":"INVALID_REQUEST","message":"Invalid request"}}\n'


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("KeyError('secret')", "error: a bug in srvstat: KeyError in build_result, "),
        ("MemoryError", "error: out of memory; "),
    ],
)
def test_an_unexpected_error_is_reported_in_one_line_without_a_traceback(
    error: str, message: str, tmp_path: Path, demo_snapshot: str
) -> None:
    # A copy of the package with a bug in it, to test the real handling of bugs.
    shutil.copytree(sys.modules["srvstat"].__path__[0], tmp_path / "srvstat")
    with (tmp_path / "srvstat" / "contract" / "responses.py").open("a") as responses:
        responses.write(f"def build_result(*_): raise {error}\n")

    ran = srvstat(
        *("compare", "harbor-city", "old-guard", "-s", demo_snapshot),
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )

    assert (ran.exit_code, ran.stdout) == (1, b"")
    assert ran.stderr.startswith(message)
    assert "secret" not in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Yield the read end and the write end of a pipe."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def terminal() -> Iterator[int]:
    """Yield a terminal without a reader."""
    ours, theirs = os.openpty()
    yield theirs
    os.close(theirs)
    os.close(ours)


def test_the_default_form_is_a_table_on_a_terminal_and_json_elsewhere(
    terminal: int, pipe: tuple[int, int]
) -> None:
    with replace_descriptor(1, terminal):
        on_a_terminal = FormOptions().choose()
    with replace_descriptor(1, pipe[1]):
        in_a_pipe = FormOptions().choose()

    assert (on_a_terminal, in_a_pipe) == (Form.TABLE, Form.JSON)


def test_a_flag_sets_the_form(terminal: int, pipe: tuple[int, int]) -> None:
    for descriptor in (terminal, pipe[1]):
        with replace_descriptor(1, descriptor):
            assert FormOptions(json=True).choose() is Form.JSON
            assert FormOptions(table=True).choose() is Form.TABLE
            with pytest.raises(UsageError, match=r"^json and table can't be combined$"):
                FormOptions(json=True, table=True).choose()


def test_a_format_is_a_form_of_its_own(terminal: int, pipe: tuple[int, int]) -> None:
    with replace_descriptor(1, pipe[1]):
        assert FormOptions(format="parquet").choose() is Form.PARQUET
        with pytest.raises(UsageError, match="format can't be combined with json or table"):
            FormOptions(json=True, format="csv").choose()
    with replace_descriptor(1, terminal):
        assert FormOptions(format="csv").choose() is Form.CSV
        with pytest.raises(UsageError, match=r"not for a terminal; add > file\.parquet"):
            FormOptions(format="parquet").choose()


def test_json_is_escaped_on_a_terminal_only(terminal: int, pipe: tuple[int, int]) -> None:
    body = '"\u202e\u00e9"'.encode()

    with replace_descriptor(1, terminal):
        on_a_terminal = prepare_json(body)
    with replace_descriptor(1, pipe[1]):
        in_a_pipe = prepare_json(body)

    assert on_a_terminal == b'"\\u202e\xc3\xa9"'
    assert in_a_pipe == b'"\xe2\x80\xae\xc3\xa9"'


LOCALES = [
    ({}, "né…\n"),
    ({"LANG": "C"}, "n\\u00e9...\n"),
    ({"LANG": "POSIX"}, "n\\u00e9...\n"),
    ({"LANG": "C.UTF-8"}, "né…\n"),
    ({"LANG": "C", "LC_CTYPE": "sv_SE.UTF-8"}, "né…\n"),
    ({"LANG": "sv_SE.UTF-8", "LC_CTYPE": "C"}, "n\\u00e9...\n"),
    ({"LC_CTYPE": "C", "LC_ALL": "C.UTF-8"}, "né…\n"),
    ({"LC_CTYPE": "C.UTF-8", "LC_ALL": "C"}, "n\\u00e9...\n"),
    ({"LANG": "C", "LC_CTYPE": "", "LC_ALL": ""}, "n\\u00e9...\n"),
]


@pytest.mark.parametrize(("environment", "line"), LOCALES)
def test_an_ascii_locale_gets_ascii_messages(
    environment: dict[str, str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    report("né…")

    assert capfd.readouterr() == ("", line)


def test_each_reported_line_stays_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    report("one\ntwo", "", "\x1b[31mthree")
    report()

    assert capfd.readouterr() == ("", "one\\u000atwo\n\n\\u001b[31mthree\n")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["players", "players.page", "x.HTML", "x.2026"])
def test_any_other_ending_is_accepted(name: str, cli: Cli) -> None:
    rows = "".join(f"a,{AS_OF - hour * 3_600_000},5\n" for hour in range(100))
    Path("week.csv").write_text(f"serverId,observedAt,players\n{rows}")
    build = ("snapshot", "build", "snapshot", "--game", "game_a", "--observations", "week.csv")
    assert cli(*build).exit_code == 0

    assert cli("report", "a", "-o", name, "--snapshot", "snapshot").exit_code == 0
    assert Path(name).read_bytes().startswith(b"<!DOCTYPE html>")
