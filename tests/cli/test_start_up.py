"""A command imports what it uses and nothing more: that is most of the time it takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import srvstat
from support.process import run_in_terminal
from support.snapshots import WEEK

# The process ends itself, so it tells what it has imported just before.
SCRIPT = """
import os, sys
import srvstat.__main__
def tell(exit_code):
    print(exit_code, *sys.modules, file=sys.stderr)
    end(exit_code)
end, os._exit = os._exit, tell
sys.argv[0] = "srvstat"
srvstat.__main__.run()
"""

# What Typer and pydantic bring is the floor, and stands here as it is measured.
FLOOR = "import sys, typer, pydantic.types, pydantic.type_adapter; print(*sys.modules)"

# pydantic imports its json_schema whenever it is imported; nothing here asks it for a schema.
NEVER_TO_ANSWER = {
    "click",
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "rich",
    "sqlite_utils",
    "srvstat.files.toml_lines",
    "srvstat.snapshot.read.verify",
    "srvstat.snapshot.write",
    "starlette",
    "uvicorn",
}

COMPARE = ["compare", "harbor-city", "old-guard", "--json"]
GET = ["get", "harbor-city", "--json"]
INFO = ["snapshot", "info", "--json"]


@pytest.fixture(autouse=True)
def _snapshot(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)


def imported(*arguments: str, code: str = SCRIPT) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set((done.stderr or done.stdout).split())


@pytest.mark.parametrize("command", [COMPARE, GET, INFO])
def test_a_command_that_reads_imports_nothing_heavy(command: list[str]) -> None:
    modules = imported(*command)

    assert "0" in modules
    assert not NEVER_TO_ANSWER & modules


def test_beyond_typer_and_pydantic_an_answer_imports_little_of_python() -> None:
    more = {name.split(".")[0] for name in imported(*COMPARE) - imported(code=FLOOR)}
    standard = {name.removeprefix("_") for name in more & sys.stdlib_module_names}

    # From Python 3.13 on the floor has no urllib of its own.
    assert standard - {"urllib"} == {"array", "gc", "sqlite3", "unicodedata"}


def test_little_is_imported_before_the_signals_are_taken_over() -> None:
    code = "import sys; began = set(sys.modules); import srvstat.__main__"
    names = imported(code=f"{code}; print(*set(sys.modules) - began)")

    assert {name for name in names if name.split(".")[0] == "srvstat"} == {
        "srvstat",
        "srvstat.__main__",
        "srvstat.cli",
        "srvstat.cli.signals",
    }
    assert not {"re", "typing"} & names


def test_an_interruption_of_an_import_is_not_lost() -> None:
    code = """
import os, signal, sys
class Losing:
    def find_spec(self, name, *_):
        if name == "typer":
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except BaseException:
                pass
sys.meta_path.insert(0, Losing())
sys.argv = ["srvstat", "--version"]
from srvstat.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


TAKING_BACK = """
import sys
from contextlib import contextmanager
from srvstat.cli import signals
allow_cleanup = signals.allow_cleanup
@contextmanager
def watched():
    with allow_cleanup():
        before = set(sys.modules)
        yield
        print("IMPORTED", *set(sys.modules) - before, file=sys.stderr)
signals.allow_cleanup = watched
from srvstat.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [[*WEEK, "--rejects", "rejects.ndjson"], ["demo"]])
def test_what_takes_back_when_it_is_interrupted_imports_nothing(
    command: list[str], here: Path
) -> None:
    exit_code, shown = run_in_terminal(
        [sys.executable, "-c", TAKING_BACK, *command], columns=100, cwd=here
    )

    assert exit_code == 0
    assert "IMPORTED\n" in shown


def test_a_table_imports_rich() -> None:
    table = imported(*COMPARE[:-1], "--table")

    assert NEVER_TO_ANSWER & table == {"rich"}


def test_requests_are_judged_without_the_search_for_plugins() -> None:
    assert srvstat("compare", "harbor-city", "--json").exit_code == 40
    assert srvstat("compare", "harbor-city", "old-guard", "--range", "8d").exit_code == 40


def test_what_is_asked_of_the_loader_of_plugins_beyond_that_is_pydantics_own() -> None:
    code = """
from srvstat.cli.start_up import start_lean
start_lean()
from pydantic.plugin._loader import get_plugins
from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP
from pydantic.plugin import _loader
print(get_plugins(), PYDANTIC_ENTRY_POINT_GROUP, _loader.__file__ is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "() pydantic True\n"


def test_an_interruption_that_gets_lost_is_no_error_of_another_kind() -> None:
    code = """
import os, signal
from srvstat.cli.signals import take_over_signals, allow_cleanup
from srvstat.cli.main import main
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
