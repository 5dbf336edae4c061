"""Start real clusters of Spark on the loopback interface, and run srvstat on them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from srvstat.contract.errors import MissingLibraryError
from srvstat.fleet.spark.java import check_java
from support.signals import restore_signals

START_SECONDS = 90
_LOG = "log"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # compiles for short jobs
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


def skip_without_spark() -> None:
    """Skip the test without PySpark or Java."""
    pytest.importorskip("pyspark", reason="needs PySpark; see `make external`")
    try:
        check_java()
    except MissingLibraryError as error:
        pytest.skip(error.reason)


def make_environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a program that uses Spark, with its settings in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in {**_SETTINGS, **settings}.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder),
    }


@contextmanager
def start_standalone(folder: Path, *, workers: int) -> Iterator[str]:
    """Start a standalone master, and workers with one core and 1 GiB each; yield its URL."""
    place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
    with ExitStack() as stack:
        stack.enter_context(_start(folder / "master", "spark-class", _MASTER, *place))
        url = _wait_for(folder / "master", r"Starting Spark master at (spark://\S+)")
        names = [f"worker-{number}" for number in range(workers)]
        for name in names:
            command = ("spark-class", _WORKER, *place, *size, url)
            stack.enter_context(_start(folder / name, *command))
        for name in names:
            _wait_for(folder / name, "(Successfully registered) with master")
        yield url


@contextmanager
def start_connect(folder: Path) -> Iterator[str]:
    """Start a Spark Connect server on a local master with two cores; yield its URL."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.master": "local[2]",
    }
    command = ("spark-submit", "--class", _CONNECT_SERVER)
    with _start(folder, *command, settings=settings):
        port = _wait_for(folder, r"server started at: 127\.0\.0\.1:(\d+)")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _start(
    folder: Path, program: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Start a program of Spark, which logs to a file in a folder, and kill it after the block."""
    import pyspark  # noqa: PLC0415 - only `make external` installs it

    folder.mkdir(parents=True)
    path = Path(pyspark.__file__).parent / "bin" / program
    with (folder / _LOG).open("wb") as log, restore_signals():
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=make_environment(folder / "conf", **(settings or {})),
            start_new_session=True,
        )
    try:
        yield
    finally:
        # Its executors are in the same session.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(folder: Path, pattern: str) -> str:
    """Wait until a line of a program's log matches, and return its first group."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        text = (folder / _LOG).read_text(encoding="utf-8", errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(text)


def start_fleet(
    directory: Path, sources: Iterable[str], output: Path, master: str, folder: Path
) -> "subprocess.Popen[bytes]":
    """Start `srvstat fleet` in a directory; Spark has its settings and files in another folder."""
    command = ["fleet", *sources, "--engine=spark", f"--master={master}", f"--output={output}"]
    with restore_signals():
        return subprocess.Popen(
            [sys.executable, "-m", "srvstat", *command, "--game=game_a", "--range=30d", "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=make_environment(folder),
        )


def find_descendants(pid: int) -> dict[int, str]:
    """Return the processes that a process started, directly or not, with their command lines."""
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for children in Path("/proc", str(waiting.pop()), "task").glob("*/children"):
            with suppress(OSError):  # it may have ended
                for child in map(int, children.read_text(encoding="ascii").split()):
                    command = Path(f"/proc/{child}/cmdline").read_bytes()
                    found[child] = command.replace(b"\0", b" ").decode(errors="replace")
                    waiting.append(child)
    return found


def wait_for_descendant(process: "subprocess.Popen[bytes]", text: str) -> None:
    """Wait until a process has a descendant with a text in its command line."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if any(text in command for command in find_descendants(process.pid).values()):
            return
        time.sleep(0.1)
    raise AssertionError(process.communicate())


_SESSION = """
from srvstat.contract.errors import SrvstatError
from srvstat.fleet.spark.session import open_session
import sys
try:
    with open_session(sys.argv[1], idle_seconds=3) as session:
        {}
except SrvstatError as error:
    print(type(error).__name__, error.reason, sep=": ")
"""


def run_session(master: str, body: str, folder: Path) -> str:
    """Run a line of Python with a session on a master; return what it printed, or the error."""
    ran = subprocess.run(
        [sys.executable, "-c", _SESSION.format(body), master],
        capture_output=True,
        check=True,
        env=make_environment(folder),
    )
    assert not ran.stderr
    return ran.stdout.decode().strip()
