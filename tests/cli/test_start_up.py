"""Start of a process: what it imports, signals, too few descriptors, and a terminal that closes."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from conftest import AS_OF, ROOT, Cli, csv, srvstat
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
REPLAY = ("replay", str(ROOT / "docs" / "examples" / "support" / "mail.txt"), "--json")
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


def test_a_table_imports_rich_and_numpy() -> None:
    table = list_imported(*COMPARE[:-1], "--table")

    assert UNUSED & table == {"numpy", "rich"}


def test_a_service_imports_no_analyzer_unless_it_explores() -> None:
    modules = list_imported(
        code="import sys, srvstat.cli.serve, srvstat.asgi.server; print(*sys.modules)"
    )

    assert not {"srvstat.analysis.statistics", "srvstat.asgi.explore", "numpy"} & modules


def test_requests_are_validated_without_pydantics_plugins() -> None:
    assert srvstat("compare", "harbor-city", "--json").exit_code == 40
    assert srvstat("compare", "harbor-city", "old-guard", "--range", "8d").exit_code == 40


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

COMMANDS = [
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
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
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
