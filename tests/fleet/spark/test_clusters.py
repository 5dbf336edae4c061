"""Run srvstat fleet on real clusters on the loopback interface, and kill parts of them."""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fleet.spark.clustered_fleet import SOURCES, Fleet, write_clustered_fleet
from support.spark import (
    find_descendants,
    skip_without_spark,
    start_connect,
    start_fleet,
    start_standalone,
    wait_for_descendant,
)

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux's /proc"),
]

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
EXECUTOR = "CoarseGrainedExecutorBackend"
PYTHON_TASKS = "pyspark.daemon"
JAVA_AT_START = "org.apache.spark.deploy.SparkSubmit"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    skip_without_spark()
    return write_clustered_fleet(tmp_path_factory.mktemp("fleet"))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results" / "fleet.ndjson"


def end(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    """Return the exit code and the standard error of a process, when it ends."""
    printed, problem = process.communicate(timeout=180)
    assert not printed
    return process.returncode, problem.decode()


def wait_until_gone(processes: dict[int, str]) -> None:
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in processes):
        assert time.monotonic() < deadline, processes
        time.sleep(0.1)


def test_a_standalone_cluster_gives_the_bytes_of_duckdb(
    fleet: Fleet, output: Path, tmp_path: Path
) -> None:
    with start_standalone(tmp_path / "cluster", workers=2) as url:
        process = start_fleet(fleet.directory, SOURCES, output, url, tmp_path / "driver")
        assert end(process) == (0, fleet.warning)

    assert output.read_bytes() == fleet.results


def test_spark_connect_gives_the_bytes_of_duckdb(
    fleet: Fleet, output: Path, tmp_path: Path
) -> None:
    folder, text = SOURCES
    sources = (f"file://{fleet.directory}/{folder}", text)  # the server lists the files
    with start_connect(tmp_path / "cluster") as url:
        process = start_fleet(fleet.directory, sources, output, url, tmp_path / "client")
        assert end(process) == (0, fleet.warning)

    assert output.read_bytes() == fleet.results


def test_a_job_survives_an_executor_that_is_killed(
    fleet: Fleet, output: Path, tmp_path: Path
) -> None:
    process = start_fleet(fleet.directory, SOURCES, output, LOCAL_CLUSTER, tmp_path / "driver")
    # One of the executors reads the text file, in Python.
    wait_for_descendant(process, PYTHON_TASKS)
    executors = [
        pid for pid, command in find_descendants(process.pid).items() if EXECUTOR in command
    ]
    killed = next(pid for pid in executors if PYTHON_TASKS in str(find_descendants(pid)))
    os.kill(killed, signal.SIGKILL)

    assert end(process) == (0, fleet.warning)
    assert output.read_bytes() == fleet.results


@pytest.mark.parametrize(
    ("number", "master"),
    [
        (signal.SIGINT, "local[1]"),
        (signal.SIGTERM, LOCAL_CLUSTER),
        (signal.SIGKILL, LOCAL_CLUSTER),
    ],
)
def test_a_job_that_is_stopped_leaves_no_output_and_no_process(
    fleet: Fleet, output: Path, tmp_path: Path, number: signal.Signals, master: str
) -> None:
    process = start_fleet(fleet.directory, SOURCES, output, master, tmp_path / "driver")
    wait_for_descendant(process, PYTHON_TASKS)

    check_stop(process, number, output)


def test_a_job_that_is_stopped_while_java_starts_leaves_no_process(
    fleet: Fleet, output: Path, tmp_path: Path
) -> None:
    process = start_fleet(fleet.directory, SOURCES, output, "local[1]", tmp_path / "driver")
    wait_for_descendant(process, JAVA_AT_START)

    check_stop(process, signal.SIGINT, output)


def check_stop(process: "subprocess.Popen[bytes]", number: signal.Signals, output: Path) -> None:
    """Send a signal, and check that no output and no process is left."""
    descendants = find_descendants(process.pid)
    process.send_signal(number)

    code = -number if number == signal.SIGKILL else 128 + number
    assert end(process) == (code, "")
    wait_until_gone(descendants)
    assert not output.exists()
    if number != signal.SIGKILL:
        assert not os.listdir(output.parent)


def test_a_source_that_vanishes_during_the_job_is_named(
    fleet: Fleet, output: Path, tmp_path: Path
) -> None:
    gone = fleet.directory / "days" / "day 1.parquet"
    content = gone.read_bytes()
    process = start_fleet(fleet.directory, SOURCES, output, "local[1]", tmp_path / "driver")
    wait_for_descendant(process, PYTHON_TASKS)
    gone.unlink()
    try:
        code, problem = end(process)
    finally:
        gone.write_bytes(content)

    assert (code, problem.count("\n")) == (6, 1), problem
    assert problem.startswith(f"error: {gone}: ")
    assert not os.listdir(output.parent)
