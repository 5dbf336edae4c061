"""At the limit of threads, processes or memory, the message names the limit and no bug."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from asgi.small_service import build_small
from campaigns.faults import NEEDS, Kind, compile_library
from conftest import AS_OF, srvstat
from srvstat.contract.errors import THREAD_LIMIT, describe_unexpected
from support.http import READY, get, send_request
from support.process import serve

MESSAGE = f"error: {THREAD_LIMIT}\n"
LOG, READERS, RECORDER = 1, 4, 1
"""The threads of a service."""

AT_LIMIT = """
import ctypes, operator
from srvstat.fleet.job import do_jobs
ctypes.CDLL(None).faultfs_arm(b"", int(NO_THREAD), 2, 2)
try:
    list(do_jobs(operator.is_, [1], processes=1, report=print))
except RuntimeError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if missing := [program for program in NEEDS if not shutil.which(program)]:
        pytest.skip(f"needs {', '.join(missing)}")
    return compile_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def refuse_threads(library: str) -> Callable[[int], dict[str, str]]:
    """Return variables for processes that get no thread from a certain one on."""
    return lambda first: {"LD_PRELOAD": library, "FAULTFS": f"{Kind.NO_THREAD} {first}"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a snapshot, and rows for DuckDB and as Parquet, in the current directory."""
    monkeypatch.chdir(tmp_path)
    build_small(tmp_path)
    with closing(duckdb.connect("rows.duckdb")) as connection:
        row = f"'a' AS serverId, {AS_OF} AS observedAt, 9 AS players"
        connection.execute(f"CREATE TABLE observations AS SELECT {row}")
        connection.execute("COPY observations TO 'rows.parquet'")
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("first", [LOG, LOG + READERS, LOG + READERS + RECORDER])
def test_a_service_starts_with_all_its_threads_or_not_at_all(
    first: int, refuse_threads: Callable[[int], dict[str, str]]
) -> None:
    options = ["--snapshot", "small.db", "--port", "0", "--record", "recording"]

    ran = srvstat("serve", *options, env=refuse_threads(first))

    assert (ran.exit_code, ran.stdout, ran.stderr) == (7, b"", MESSAGE)


@pytest.mark.slow
def test_a_service_that_can_not_start_a_thread_keeps_the_old_snapshot(
    refuse_threads: Callable[[int], dict[str, str]], here: Path
) -> None:
    with serve("small.db", env=refuse_threads(LOG + READERS + 1)) as service:
        build_small(here, "new.db", players=8)
        os.replace("new.db", "small.db")

        assert send_request(service, get(b"a")).json["data"]["players"]["current"] == 6
        assert send_request(service, READY).json["status"] == "outdated"
        rejected = [entry for entry in service.read_log() if "reason" in entry]
        assert [entry["reason"] for entry in rejected] == [THREAD_LIMIT]


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_service_answers_and_stops_without_another_thread(
    refuse_threads: Callable[[int], dict[str, str]],
) -> None:
    with serve("small.db", env=refuse_threads(LOG + READERS + 1)) as service:
        assert send_request(service, get(b"a")).status == 200
        assert service.stop() == 0
        assert service.read_log()[-1]["event"] == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["build new.db", "update small.db"])
def test_duckdb_without_threads_ends_a_command(
    command: str, refuse_threads: Callable[[int], dict[str, str]], here: Path
) -> None:
    before = (here / "small.db").read_bytes()
    options = ["--observations", "rows.duckdb"]

    ran = srvstat("snapshot", *command.split(), *options, env=refuse_threads(2))

    assert (ran.exit_code, ran.stdout) == (7, b"")
    assert ran.stderr.endswith(MESSAGE)
    assert (here / "small.db").read_bytes() == before
    assert not (here / "new.db").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_build_from_parquet_needs_no_thread(
    refuse_threads: Callable[[int], dict[str, str]],
) -> None:
    ran = srvstat("snapshot", "build", "new.db", "rows.parquet", env=refuse_threads(1))

    assert (ran.exit_code, "error" in ran.stderr) == (0, False), ran.stderr


@pytest.mark.slow
def test_jobs_do_not_wait_for_a_pool_that_can_not_start_its_threads(library: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AT_LIMIT.replace("NO_THREAD", f"{Kind.NO_THREAD}")],
        capture_output=True,
        env={**os.environ, "LD_PRELOAD": library},
        timeout=30,
        check=False,
        text=True,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "can't start new thread\n", "")


NO_MEMORY = "out of memory; free some, or raise the limit with ulimit -v"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), NO_MEMORY),
        (SystemError("error return without exception set"), NO_MEMORY),
        (SystemError("<method 'max'> returned NULL without setting an exception"), NO_MEMORY),
        (RuntimeError("can't allocate read lock"), NO_MEMORY),
        (ValueError("[digital envelope routines] initialization error"), NO_MEMORY),
        (RuntimeError("can't start new thread"), THREAD_LIMIT),
    ],
    ids=repr,
)
def test_a_limit_of_the_system_is_named(error: Exception, reason: str) -> None:
    assert describe_unexpected(error) == reason


@pytest.mark.parametrize("error", [KeyError("secret"), RuntimeError("secret")], ids=repr)
def test_any_other_error_is_a_bug_at_a_place(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        raise error

    name = type(error).__name__
    place = f"test_any_other_error_is_a_bug_at_a_place, {re.escape(__file__)} line [0-9]+"
    reason = f"a bug in srvstat: {name} in {place}; please report it"
    assert re.fullmatch(reason, describe_unexpected(raised.value))
