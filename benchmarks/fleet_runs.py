"""Time `srvstat fleet` with DuckDB and the plain query of `benchmarks.fleet_query`."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import median
from typing import NamedTuple

import polars as pl
from polars.testing import assert_frame_equal

from benchmarks.daily_files import FOLDER, SERVERS_FILE, create_fleet
from benchmarks.measure import Run, find_program, print_progress, run
from benchmarks.questions import WrongAnswerError

SERVERS = 1_000
ROWS, QUICK_ROWS = 105_000_000, 3_000_000
MEMORY = "4GiB"
LOW_MEMORY, QUICK_LOW_MEMORY = "1GiB", "200MiB"

SETUPS = {
    "srvstat fleet": "The whole process, from Parquet files to a Parquet file of results, with two"
    " threads and a limit of memory for DuckDB.",
    "DuckDB, plain query": "The whole process of `benchmarks/fleet_query.py`, with the same limits."
    " It resolves the same repeats, applies the same rules, and computes the same figures with"
    " DuckDB's functions, but counts no rejected, repeated or conflicting rows.",
}
"""The setup of each program, for the report."""

_RANGE = "1y"
_THREADS = "2"
_ROUNDS = 3
_MIB = 1 << 20
_SECONDS_PER_LOOK = 0.05
_LAST_BIT = 2.0**-52


class FleetRun(NamedTuple):
    """Medians of the runs of a process, and the largest total of its temporary files."""

    seconds: float
    peak_mib: float
    spilled_mib: float


class FleetCost(NamedTuple):
    """The runs over one fleet: with the same limit of memory, and with a low one."""

    rows: int
    srvstat: FleetRun
    duckdb: FleetRun
    low_memory: str
    low: FleetRun

    @property
    def is_full(self) -> bool:
        """Whether the fleet has the full size."""
        return self.rows > QUICK_ROWS


def measure_fleet(root: str, *, quick: bool) -> FleetCost:
    """Compute the results of a fleet with srvstat and with DuckDB, compare them, and time both.

    Raises WrongAnswerError, FailedError.
    """
    directory = create_fleet(root, SERVERS, QUICK_ROWS if quick else ROWS)
    low_memory = QUICK_LOW_MEMORY if quick else LOW_MEMORY
    with tempfile.TemporaryDirectory(dir=root) as folder:
        ours, peers, low = (os.path.join(folder, f"{name}.parquet") for name in ("1", "2", "3"))
        runs: dict[str, list[FleetRun]] = {"srvstat": [], "duckdb": []}
        for number in range(1, _ROUNDS + 1):
            print_progress(f"computing results of a fleet, round {number} of {_ROUNDS}")
            runs["srvstat"].append(_run_srvstat(directory, ours, MEMORY))
            runs["duckdb"].append(_run_query(directory, peers, MEMORY))
        _check_equal(ours, peers)
        print_progress(f"computing results of a fleet with {low_memory}")
        lowest = _run_srvstat(directory, low, low_memory)
        _check_equal(ours, low)
    return FleetCost(
        _count_rows(directory),
        _take_medians(runs["srvstat"]),
        _take_medians(runs["duckdb"]),
        low_memory,
        lowest,
    )


def _run_srvstat(directory: str, output: str, memory: str) -> FleetRun:
    sources = [os.path.join(directory, FOLDER), "--servers", os.path.join(directory, SERVERS_FILE)]
    limits = ["--memory", memory, "--threads", _THREADS]
    written = ["-o", output, "--overwrite", "--quiet"]
    command = [find_program("srvstat"), "fleet", "--range", _RANGE, *sources, *limits, *written]
    return _watch(lambda: run(command), os.path.dirname(output))


def _run_query(directory: str, output: str, memory: str) -> FleetRun:
    command = [sys.executable, "-m", "benchmarks.fleet_query", directory, _RANGE, output]
    limits = ["--memory", memory, "--threads", _THREADS]
    return _watch(lambda: run([*command, *limits]), os.path.dirname(output))


def _watch(start: Callable[[], Run], folder: str) -> FleetRun:
    """Run a process whose temporary files are in a new folder, and measure these."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary, _set_temporary(temporary):
        peak, is_done = [0], threading.Event()

        def look() -> None:
            while not is_done.wait(_SECONDS_PER_LOOK):
                peak[0] = max(peak[0], _measure_folder(temporary))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            ran = start()
        finally:
            is_done.set()
            watcher.join()
    return FleetRun(ran.seconds, ran.peak_mib, peak[0] / _MIB)


@contextmanager
def _set_temporary(folder: str) -> Iterator[None]:
    """Set the folder for temporary files of processes that are started in the block."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before


def _measure_folder(folder: str) -> int:
    """Return the bytes on disk of all files in a folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name)).st_blocks * 512
    return total


def _check_equal(one: str, other: str) -> None:
    """Compare two files of results in the columns that both have.

    DuckDB rounds some averages twice, so these may differ in the last bit.

    Raises WrongAnswerError.
    """
    left, right = pl.read_parquet(one), pl.read_parquet(other)
    rounded = "averagePlayers"
    exact = [name for name in left.columns if name in right.columns and name != rounded]
    try:
        assert_frame_equal(left[exact], right[exact], check_exact=True)
        assert_frame_equal(left[[rounded]], right[[rounded]], rel_tol=_LAST_BIT, abs_tol=0)
    except AssertionError as error:
        raise WrongAnswerError(f"results of a fleet: {error}") from None


def _count_rows(directory: str) -> int:
    pattern = os.path.join(directory, FOLDER, "*.parquet")
    return int(pl.scan_parquet(pattern).select(pl.len()).collect().item())


def _take_medians(runs: list[FleetRun]) -> FleetRun:
    return FleetRun(*(median(column) for column in zip(*runs, strict=True)))
