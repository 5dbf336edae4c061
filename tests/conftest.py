"""What the tests share: the real command line, the real builder, and small real snapshots."""

import fcntl
import gc
import gzip
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import ijson
import pytest
from hypothesis import settings

from srvstat.cli.app import main
from srvstat.cli.demo import read_demo_file
from support.process import replace_descriptor, start_quick_srvstat, stop_quick_srvstat
from support.records import AS_OF, DAY, csv, ndjson, server

# Tests import these from here; the processes of campaigns import them without pytest.
__all__ = ["AS_OF", "DAY", "csv", "ndjson", "server"]

# A shell's background job ignores it, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make check` measures what the processes of pytest run, but not what other processes run.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

# Tests start hundreds of processes. Each would compile srvstat if none may store what it compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline, because other processes can slow down a test. `make soak` uses the long profile.
settings.register_profile("short", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=5_000)
settings.load_profile("short")


# Collecting tests creates many objects and no garbage; looking for it takes a third of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Exclude what pytest has collected from garbage collection, which takes 7 % of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20)  # other collections take 5 %
    gc.enable()


def pytest_unconfigure() -> None:
    """Undo it: DuckDB complains of modules that are not collected at the end of the process."""
    gc.unfreeze()
    stop_quick_srvstat()


def few_examples() -> int:
    """Return the number of examples for a property test that builds snapshots."""
    return settings().max_examples // 3


ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Ran:
    """What a command line ended with."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output, read as JSON."""
        return json.loads(self.stdout)


Cli = Callable[..., Ran]
Build = Callable[..., str]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Run srvstat in this process; standard output is no terminal, and `stdin` is from a pipe."""

    def run(*arguments: str, stdin: bytes | None = None) -> Ran:
        capfdbinary.readouterr()
        with nullcontext() if stdin is None else _replace_stdin(stdin):
            exit_code = main(list(arguments))
        captured = capfdbinary.readouterr()
        return Ran(exit_code, captured.out, captured.err.decode("utf-8"))

    return run


@contextmanager
def _replace_stdin(data: bytes) -> Iterator[None]:
    """Replace the standard input of this process by a pipe with data."""
    reading, writing = os.pipe()
    writer = Thread(target=_write_all, args=(writing, data))
    with replace_descriptor(0, reading):
        os.close(reading)
        writer.start()
        yield
    writer.join()


def _write_all(pipe: int, data: bytes) -> None:
    # The program may refuse its input before the end.
    with suppress(BrokenPipeError), open(pipe, "wb", 0) as file:
        file.write(data)


def srvstat(
    *arguments: str | bytes,
    stdin: bytes = b"",
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Ran:
    """Run srvstat in a process of its own; `env` is added to the environment."""
    done = subprocess.run(
        [sys.executable, "-m", "srvstat", *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "surrogateescape"))


def build_in(
    directory: Path,
    servers: Iterable[dict[str, Any]],
    observations: Iterable[tuple[str, int | str, int | str]],
    *options: str,
) -> Path:
    """Build a snapshot in a directory, for a fixture that tests share."""
    (directory / "servers.ndjson").write_bytes(ndjson(servers))
    (directory / "observations.csv").write_bytes(csv(observations))
    path = directory / "snapshot.db"
    sources = [
        f"--servers={directory}/servers.ndjson",
        f"--observations={directory}/observations.csv",
    ]
    assert main(["snapshot", "build", str(path), *sources, "--quiet", *options]) == 0
    return path


@pytest.fixture
def build(tmp_path: Path, cli: Cli) -> Build:
    """Build a snapshot from records and observations, through the command line."""

    def run(
        servers: Iterable[dict[str, Any]],
        observations: Iterable[tuple[str, int | str, int | str]],
        *options: str,
    ) -> str:
        number = len(list(tmp_path.iterdir()))
        path = tmp_path / f"built-{number}.db"
        (tmp_path / f"servers-{number}.ndjson").write_bytes(ndjson(servers))
        (tmp_path / f"observations-{number}.csv").write_bytes(csv(observations))
        ran = cli(
            "snapshot",
            "build",
            str(path),
            "--servers",
            str(tmp_path / f"servers-{number}.ndjson"),
            "--observations",
            str(tmp_path / f"observations-{number}.csv"),
            *options,
        )
        assert ran.exit_code == 0, ran.stderr
        return str(path)

    return run


@pytest.fixture(scope="session")
def demo_snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the snapshot of the demo's fleet."""
    directory = tmp_path_factory.mktemp("demo")
    (directory / "servers.ndjson").write_bytes(read_demo_file("servers.ndjson"))
    (directory / "observations.csv").write_bytes(read_demo_file("observations.csv"))
    sources = ["--servers", "servers.ndjson", "--observations", "observations.csv"]
    with chdir(directory):
        assert main(["snapshot", "build", "snapshot.db", *sources, "--quiet"]) == 0
    return str(directory / "snapshot.db")


@pytest.fixture(scope="session")
def war_brokers() -> Path:
    """Return the directory of the War Brokers data: sources and expected answers."""
    directory = SHARED_DATA / "warbrokers"
    if not directory.is_dir():
        pytest.skip("the War Brokers data is not beside the repository")
    return directory


@pytest.fixture(scope="session")
def war_brokers_snapshot(war_brokers: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the snapshot of the War Brokers data; only one process of pytest builds it."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent
    path = directory / "war_brokers.db"
    with (directory / "war_brokers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            sources = [
                f"--servers={war_brokers}/servers.ndjson",
                f"--observations={war_brokers}/observations.csv.gz",
            ]
            ran = srvstat("snapshot", "build", str(path), *sources)
            assert (ran.exit_code, "790,996 rows" in ran.stderr) == (0, True), ran.stderr
    return str(path)


@pytest.fixture(scope="session")
def war_brokers_rows(war_brokers: Path) -> dict[str, list[tuple[int, int]]]:
    """Return the (instant, players) of each War Brokers server, in order of time."""
    rows = defaultdict(list)
    with gzip.open(war_brokers / "observations.csv.gz", "rt", encoding="ascii") as file:
        next(file)
        for line in file:
            name, at, players = line.split(",")
            rows[name].append((int(at), int(players)))
    return rows


@pytest.fixture(scope="session")
def two_servers(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a snapshot of the servers `a` and `b` with two days."""
    times = range(AS_OF - 2 * DAY, AS_OF + 1, DAY // 24)
    rows = [(name, at, at // DAY % 7) for name in ("a", "b") for at in times]
    records = [server("a", hostname="secret"), server("b")]
    return build_in(tmp_path_factory.mktemp("two_servers"), records, rows).read_bytes()


@pytest.fixture
def quick_srvstat() -> str:
    """Return a directory for the search path of a shell; its `srvstat` starts quickly."""
    return start_quick_srvstat()


@pytest.fixture
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory, with no snapshot named by the environment."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    return directory


SERVERS = [server("a"), server("b"), server("hidden", hostname="secret", publishable=False)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory that holds a servers file and a week of observations."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    Path("servers.ndjson").write_bytes(ndjson(SERVERS))
    Path("week.csv").write_bytes(csv([("a", AS_OF - DAY, 5), ("a", AS_OF, 6), ("b", AS_OF, 7)]))
    return directory


@pytest.fixture
def crossed_snapshot(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    """Build a snapshot of two servers, a and b, where b's cfxId is a's id; it is the default."""
    path = build(
        [server("a", cfxId="x-a"), server("b", cfxId="a"), server("hidden", publishable=False)],
        [("a", AS_OF - 1, 10), ("a", AS_OF, 15), ("b", AS_OF, 0), ("hidden", AS_OF, 99)],
    )
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


@pytest.fixture(params=["yajl2_c", "python"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse JSON events with one of ijson's backends; the one in C is not available everywhere."""
    try:
        parse = ijson.get_backend(request.param).basic_parse_coro
    except ImportError:
        pytest.skip("ijson was installed without its C extension")
    monkeypatch.setattr(ijson, "basic_parse_coro", parse)
