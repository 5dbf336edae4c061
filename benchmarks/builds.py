"""Time builds of snapshots, and `sqlite-utils insert` of the same observations."""

import os
from contextlib import closing, suppress
from statistics import median
from typing import Literal, NamedTuple

from benchmarks import fleet
from benchmarks.commands import call_without_pandas
from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, Run, print_progress, run
from benchmarks.questions import WrongAnswerError
from srvstat.snapshot.read.reader import open_file

SRVSTAT = "srvstat snapshot build"
SRVSTAT_PARQUET = "srvstat snapshot build, Parquet"
SQLITE_UTILS = "sqlite-utils insert --csv"
SQLITE_UTILS_TUNED = "sqlite-utils insert --csv, tuned"

SETUPS = {
    SRVSTAT: "From the servers file and the CSV, or from a pipe that another process fills on"
    " another core. The time includes reading the snapshot back and renaming it. pandas and numpy"
    " are hidden.",
    SRVSTAT_PARQUET: "The same from Parquet with the same rows in the same order, written by Polars"
    " with its default options.",
    SQLITE_UTILS: "Inserts the CSV into an empty file with the default options: detects the types"
    " and creates a table without a primary key. pandas and numpy are hidden.",
    SQLITE_UTILS_TUNED: "The same with `--no-detect-types`, a `--type` for both integer columns,"
    " and `--batch-size 10000`: the fastest options that we found.",
}
"""The setup of each tool, for the report."""

Order = Literal["recorded", "shuffled", "piped"]

_SRVSTAT = call_without_pandas("srvstat.__main__", "run")
_SQLITE_UTILS = call_without_pandas("sqlite_utils.cli", "cli")
_TUNED = ["--no-detect-types", "--batch-size", "10000"]
_TUNED += ["--type", "observedAt", "integer", "--type", "players", "integer"]


class Build(NamedTuple):
    """Time, memory and file size of loading a fleet's observations."""

    name: str
    servers: int
    order: Order
    rows: int
    runs: int
    seconds: float
    """Median wall time of the whole process."""
    peak_mib: float
    file_bytes: int

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


def build_snapshot(files: FleetFiles, order: Order) -> Build:
    """Build the snapshot of a fleet."""
    print_progress(f"building the snapshot of {files.size:,} servers, {order}")
    ran = _load(SRVSTAT, files, order, files.snapshot)
    return _summarize(SRVSTAT, files, order, [ran], files.snapshot)


def time_builds(files: FleetFiles, *, quick: bool) -> list[Build]:
    """Load a small fleet with each tool; runs sqlite-utils between the builds of srvstat.

    With `quick`, skips everything that no requirement needs.

    Raises WrongAnswerError if the snapshots differ.
    """
    plan: list[tuple[str, Order]] = [
        (SRVSTAT, "recorded"),
        (SRVSTAT_PARQUET, "recorded"),
        (SQLITE_UTILS, "recorded"),
        (SRVSTAT, "recorded"),
        (SRVSTAT_PARQUET, "recorded"),
    ]
    if not quick:
        plan.append((SRVSTAT, "recorded"))
        plan.append((SRVSTAT_PARQUET, "recorded"))
        plan.append((SQLITE_UTILS_TUNED, "recorded"))
        plan.extend((SRVSTAT, "shuffled") for _ in range(3))
    path = os.path.join(files.directory, "timed.db")
    runs: dict[tuple[str, Order], list[Run]] = {}
    builds: dict[tuple[str, Order], Build] = {}
    for name, order in plan:
        print_progress(f"{name} of {files.size:,} servers, {order}")
        with suppress(FileNotFoundError):
            os.unlink(path)
        taken = runs.setdefault((name, order), [])
        taken.append(_load(name, files, order, path))
        if name in (SRVSTAT, SRVSTAT_PARQUET):
            check_root(path, files.snapshot)
        builds[name, order] = _summarize(name, files, order, taken, path)
    os.unlink(path)
    return list(builds.values())


def check_root(path: str, expected: str) -> None:
    """Check that two snapshots have equal content.

    Raises WrongAnswerError.
    """
    with closing(open_file(path)) as one, closing(open_file(expected)) as other:
        if one.root != other.root:
            raise WrongAnswerError(f"{path}: its root is not that of {expected}")


def _load(name: str, files: FleetFiles, order: Order, path: str) -> Run:
    """Load a fleet's observations into a new file at a path."""
    if name in (SQLITE_UTILS, SQLITE_UTILS_TUNED):
        options = _TUNED if name == SQLITE_UTILS_TUNED else []
        insert = ["insert", path, "observations", files.recorded_path(), "--csv", "--silent"]
        return run([*_SQLITE_UTILS, *insert, *options])
    if order == "piped":
        return build_days(files, path, fleet.DAYS)
    build = _build_line(files, path)
    if name == SRVSTAT_PARQUET:
        return run([*build, files.recorded_parquet_path()])
    return run([*build, files.recorded_path() if order == "recorded" else files.shuffled_path()])


def build_days(files: FleetFiles, path: str, days: int) -> Run:
    """Build a snapshot of the first days of a fleet, from a pipe.

    Raises FailedError.
    """
    with files.start_pipe(days) as writer:
        ran = run([*_build_line(files, path), "-", "--format", "csv"], stdin=writer.stdout)
    if writer.returncode:
        raise FailedError(f"the process that writes to the pipe: exit code {writer.returncode}")
    return ran


def _build_line(files: FleetFiles, path: str) -> list[str]:
    """Return the command that builds a snapshot, without the name of its source."""
    build = [*_SRVSTAT, "snapshot", "build", path, "--overwrite", "--quiet"]
    return [*build, "--servers", files.servers_path(), "--observations"]


def _summarize(name: str, files: FleetFiles, order: Order, runs: list[Run], path: str) -> Build:
    return Build(
        name=name,
        servers=files.size,
        order=order,
        rows=files.observation_count,
        runs=len(runs),
        seconds=median(ran.seconds for ran in runs),
        peak_mib=median(ran.peak_mib for ran in runs),
        file_bytes=os.path.getsize(path),
    )
