"""The process: imports, signals, descriptors, terminals, and writing its output."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer

import pytest

from conftest import AS_OF, ROOT, Cli, csv, srvstat
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
from support.records import PLANS
from support.snapshots import COMMAND, WEEK
from support.terminal import PLAIN, run_in_terminal

pytestmark = pytest.mark.slow

# The process exits without clean-up, so it lists its modules just before.
SCRIPT = """
import os, sys
import srvstat.__main__
def list_modules(exit_code):
    print(exit_code, *sys.modules, file=sys.stderr)
    end(exit_code)
end, os._exit = os._exit, list_modules
sys.argv[0] = "srvstat"
srvstat.__main__.run()
"""

# The modules that Typer and pydantic import.
FLOOR = "import sys, typer, pydantic.types, pydantic.type_adapter; print(*sys.modules)"

UNUSED = {
    "click",
    "duckdb",
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "numpy",
    "psycopg",
    "pyarrow",
    "resvg_py",
    "rich",
    "sqlite_utils",
    "starlette",
    "tomllib",
    "uvicorn",
}
"""Libraries that no answer imports; whatever reads observations imports numpy."""

COMPARE = ("compare", "harbor-city", "old-guard", "--json")
GET = ("get", "harbor-city", "--json")
REPLAY = ("replay", str(ROOT / "src" / "srvstat" / "cli" / "demo_files" / "mail.txt"), "--json")
INFO = ("snapshot", "info", "--json")
VERIFY = ("snapshot", "verify", "--json")


@pytest.fixture(autouse=True)
def _default_snapshot(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)


@cache
def list_imported(*arguments: str, code: str = SCRIPT) -> set[str]:
    """Return the modules that a process has imported; the snapshot is the same in all tests."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set((done.stderr or done.stdout).split())


@pytest.mark.parametrize(
    ("command", "used"),
    [
        (COMPARE, set[str]()),
        (GET, set[str]()),
        (REPLAY, {"tomllib"}),
        (INFO, {"numpy"}),
        (VERIFY, {"numpy"}),
    ],
)
def test_a_command_imports_only_libraries_that_it_uses(
    command: tuple[str, ...], used: set[str]
) -> None:
    modules = list_imported(*command)

    assert "0" in modules
    assert UNUSED & modules == used
    assert not (command in {COMPARE, GET} and "srvstat.documents" in modules)


def test_an_answer_imports_little_besides_typer_and_pydantic() -> None:
    more = {name.split(".")[0] for name in list_imported(*COMPARE) - list_imported(code=FLOOR)}
    standard = {name.removeprefix("_") for name in more & sys.stdlib_module_names}

    # Not every version of pydantic and Python imports these for the floor, too.
    assert standard - {"bisect", "blake2", "hashlib", "urllib"} == {
        "array",
        "gc",
        "sqlite3",
        "unicodedata",
    }


def test_little_is_imported_before_the_signal_handlers() -> None:
    code = "import sys; began = set(sys.modules); import srvstat.__main__"
    names = list_imported(code=f"{code}; print(*set(sys.modules) - began)")

    assert {name for name in names if name.split(".")[0] == "srvstat"} == {
        "srvstat",
        "srvstat.__main__",
        "srvstat.cli",
        "srvstat.cli.process",
    }
    assert not {"re", "typing"} & names


def test_an_import_cannot_swallow_an_interruption() -> None:
    code = """
import os, signal, sys
class SwallowingFinder:
    def find_spec(self, name, *_):
        if name == "typer":
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except BaseException:
                pass
sys.meta_path.insert(0, SwallowingFinder())
sys.argv = ["srvstat", "--version"]
from srvstat.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


WATCHED_CLEANUP = """
import sys
from contextlib import contextmanager
from srvstat.cli import process
allow_cleanup = process.allow_cleanup
@contextmanager
def watched():
    with allow_cleanup():
        before = set(sys.modules)
        yield
        print("IMPORTED", *set(sys.modules) - before, file=sys.stderr)
process.allow_cleanup = watched
from srvstat.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [[*WEEK, "--rejects", "rejects.ndjson"], ["demo"]])
def test_a_block_that_cleans_up_imports_nothing(command: list[str], here: Path) -> None:
    exit_code, shown = run_in_terminal(
        [sys.executable, "-c", WATCHED_CLEANUP, *command], columns=100, cwd=here
    )

    assert exit_code == 0
    assert "IMPORTED\n" in shown


def test_only_a_plan_imports_the_reader_of_access_files(here: Path) -> None:
    (here / "access.toml").write_text(PLANS)
    readers = {"srvstat.operations.access", "srvstat.files.toml", "tomllib"}

    assert not readers & list_imported(*GET)
    assert readers <= list_imported(*GET, "--plan", "starter", "--access", "access.toml")


def test_a_table_imports_rich_and_numpy() -> None:
    table = list_imported(*COMPARE[:-1], "--table")

    assert UNUSED & table == {"numpy", "rich"}


def test_a_service_imports_no_analyzer_unless_it_explores() -> None:
    modules = list_imported(
        code="import sys, srvstat.cli.serve, srvstat.asgi.server; print(*sys.modules)"
    )

    assert not {"srvstat.analysis.statistics", "srvstat.asgi.explore", "numpy"} & modules


def test_other_attributes_of_the_plugin_loader_are_pydantics() -> None:
    code = """
from srvstat.cli.process import start_lean
start_lean()
from pydantic.plugin._loader import get_plugins
from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP
from pydantic.plugin import _loader
print(get_plugins(), PYDANTIC_ENTRY_POINT_GROUP, _loader.__file__ is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "() pydantic True\n"


def test_a_swallowed_interruption_still_sets_the_exit_code() -> None:
    code = """
import os, signal
from srvstat.cli.process import take_over_signals, allow_cleanup
from srvstat.cli.app import main
take_over_signals()
try:
    with allow_cleanup():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait([], 5)
except SystemExit:
    pass
os._exit(main(["get", "a", "-s", "missing.db"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (143, b"")


SRVSTAT = [sys.executable, "-m", "srvstat"]
STANDARD, NEEDED = 3, 16
TOO_FEW = "error: open files: the limit leaves fewer than 16 for srvstat; raise it with ulimit -n\n"

LIMITED = [
    ["get", "harbor-city", "--json"],
    ["compare", "harbor-city", "old-guard", "--table"],
    [*WEEK, "--rejects", "rejects.ndjson"],
    ["snapshot", "draft-servers", "--game", "game_a", "--observations", "week.csv"],
    ["snapshot", "verify", "--table"],
    ["demo", "demo"],
    ["openapi"],
]


def run_with_limit(limit: int, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *SRVSTAT, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", LIMITED, ids=lambda command: " ".join(command[:2]))
def test_a_command_works_or_reports_the_limit(
    command: list[str], demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    before = sorted(Path.cwd().iterdir())

    for limit in (6, 9, STANDARD + NEEDED - 1):
        refused = run_with_limit(limit, *command)
        assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", TOO_FEW)
    assert sorted(Path.cwd().iterdir()) == before

    done = run_with_limit(STANDARD + NEEDED, *command)
    assert (done.returncode, "error" in done.stderr) == (0, False)


def test_serve_reports_the_limit(demo_snapshot: str) -> None:
    refused = run_with_limit(6, "serve", "--port", "0", "--snapshot", demo_snapshot)

    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", TOO_FEW)


HUNG_UP = 129
OBSERVATIONS = [("ab"[at % 2], AS_OF - at * 1000, at % 50) for at in range(200_000)]
ROWS = csv(OBSERVATIONS)
BUILD = [*COMMAND, "--observations", "-", "--format", "csv"]

# Sets the handler of SIGHUP: in a shell's background job, the tests would inherit an ignored one.
START = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.Handlers(int(sys.argv[1])))
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "srvstat", *sys.argv[2:]])
"""


@contextmanager
def run_in_own_terminal(
    command: list[str], hang_up: signal.Handlers
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """Run a command in its own terminal; yield the process and a function that closes the terminal.

    The system sends SIGHUP when the terminal closes. Standard input is a pipe, and standard output
    is the file `answer`.
    """
    ours, theirs = pty.openpty()

    with Path("answer").open("wb") as answer:
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(int(hang_up)), *command],
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=theirs,
            env={**os.environ, **PLAIN},
            start_new_session=True,
        )

    def close() -> None:
        drawn, _, _ = select.select([ours], [], [], 60)
        assert drawn
        # Stop the output, so that the command can't end before its terminal closes.
        termios.tcflow(theirs, termios.TCOOFF)
        os.close(ours)
        os.close(theirs)

    with process:
        try:
            yield process, close
        finally:
            process.kill()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("hang_up", "exit_code"),
    [(signal.SIG_DFL, HUNG_UP), (signal.SIG_IGN, 0)],
    ids=["default", "ignored"],
)
def test_a_build_survives_or_ends_with_its_terminal(
    hang_up: signal.Handlers, exit_code: int, cli: Cli
) -> None:
    with run_in_own_terminal(BUILD, hang_up) as (process, close_terminal):
        assert process.stdin is not None
        process.stdin.write(ROWS[:100])
        process.stdin.flush()
        close_terminal()
        if exit_code:
            assert process.wait(60) == exit_code
        else:
            process.stdin.write(ROWS[100:])
            process.stdin.close()
            assert process.wait(60) == 0

    assert not [name for name in os.listdir() if name.startswith(".out.db")]
    assert Path("out.db").exists() == (not exit_code)
    if not exit_code:
        assert cli("snapshot", "verify", "out.db").exit_code == 0


SHELL_COMMAND = f"{sys.executable} -m srvstat"


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


ASK = f"{SHELL_COMMAND} compare harbor-city new-frontier"
NO_SPACE = "error: standard output: no space left on device\n"


@each_form
def test_a_full_disk_exits_4(flag: str, environment: dict[str, str]) -> None:
    done = run_shell(f"{ASK} {flag} > /dev/full", environment)

    assert (done.returncode, done.stderr) == (4, NO_SPACE)


@either_buffering
def test_a_closed_standard_output_exits_4(environment: dict[str, str]) -> None:
    done = run_shell(f"{ASK} >&-", environment)

    assert (done.returncode, done.stderr) == (4, "error: standard output: bad file descriptor\n")


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

    done = run_shell(f"cd {tmp_path} && {SHELL_COMMAND} {arguments} <&- >&- 2>&-", environment)

    assert done.returncode == 0
    assert (
        run_shell(f"{SHELL_COMMAND} snapshot info {tmp_path}/new.db", environment).returncode == 0
    )


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
    assert done.stderr == "error: standard output: file too large\n"


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
        pytest.raises(OutputError, match=r"^standard output: bad file descriptor$"),
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
    dry_run = f"{SHELL_COMMAND} {build} --game game_a --dry-run"
    done = run_shell(f"ulimit -f 200; {dry_run}", environment)

    assert done.returncode == 4
    assert "error: SQLite's temporary files: " in done.stderr


def test_an_unwritable_standard_error_changes_no_answer(environment: dict[str, str]) -> None:
    done = run_shell(f"{SHELL_COMMAND} compare one --json 2> /dev/full", environment)

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


def test_options_choose_the_form_and_else_a_terminal_gets_a_table(
    terminal: int, pipe: tuple[int, int]
) -> None:
    for descriptor, default in ((terminal, Form.TABLE), (pipe[1], Form.JSON)):
        with replace_descriptor(1, descriptor):
            assert FormOptions().choose() is default
            assert FormOptions(json=True).choose() is Form.JSON
            assert FormOptions(table=True).choose() is Form.TABLE
            assert FormOptions(format="csv").choose() is Form.CSV
            with pytest.raises(UsageError, match=r"^json and table can't be combined$"):
                FormOptions(json=True, table=True).choose()
            with pytest.raises(UsageError, match="format can't be combined with json or table"):
                FormOptions(json=True, format="csv").choose()
    with replace_descriptor(1, pipe[1]):
        assert FormOptions(format="parquet").choose() is Form.PARQUET
    with (
        replace_descriptor(1, terminal),
        pytest.raises(UsageError, match=r"parquet is binary; redirect it: > file\.parquet"),
    ):
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
