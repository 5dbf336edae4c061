"""Build snapshots, beside `sqlite-utils insert` of the same observations."""

import os
from contextlib import suppress
from statistics import median
from typing import Literal, NamedTuple

from benchmarks.commands import without_pandas
from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, Ran, run, tell

SRVSTAT = "srvstat snapshot build"
SQLITE_UTILS = "sqlite-utils insert --csv"
SQLITE_UTILS_TUNED = "sqlite-utils insert --csv, told the types"

GIVEN = {
    SRVSTAT: "The servers file and the CSV, or the same through a pipe from a process that makes it"
    " on another core meanwhile. The time ends when the snapshot is complete, read back and in its"
    " place. pandas and numpy are hidden from it.",
    SQLITE_UTILS: "The CSV, into an empty file, with nothing else said: it finds out the types and"
    " makes a table without a key. pandas and numpy are hidden from it, too.",
    SQLITE_UTILS_TUNED: "The same with `--no-detect-types`, both integer columns named by `--type`"
    " and `--batch-size 10000`: the fastest we found.",
}

Order = Literal["recorded", "shuffled", "piped"]

_SRVSTAT = without_pandas("srvstat.__main__", "run")
_SQLITE_UTILS = without_pandas("sqlite_utils.cli", "cli")
_TUNED = ["--no-detect-types", "--batch-size", "10000"]
_TUNED += ["--type", "observedAt", "integer", "--type", "players", "integer"]


class Build(NamedTuple):
    """What it took to load a fleet's observations."""

    name: str
    servers: int
    order: Order
    rows: int
    runs: int
    seconds: float
    """Wall time of the whole process, the median of its runs."""
    peak_mib: float
    file_bytes: int

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def build_snapshot(files: FleetFiles, order: Order) -> Build:
    """Build the snapshot that a fleet's questions are asked of."""
    tell(f"building the snapshot of {files.size:,} servers, {order}")
    ran = _load(SRVSTAT, files, order, files.snapshot)
    return _build(SRVSTAT, files, order, [ran], files.snapshot)


def timed(files: FleetFiles, *, quick: bool) -> list[Build]:
    """Load a small fleet in each way, sqlite-utils amid the builds of srvstat.

    A quick run leaves out what only the report shows.
    """
    plan: list[tuple[str, Order]] = [
        (SRVSTAT, "recorded"),
        (SQLITE_UTILS, "recorded"),
        (SRVSTAT, "recorded"),
    ]
    if not quick:
        plan.append((SRVSTAT, "recorded"))
        plan.append((SQLITE_UTILS_TUNED, "recorded"))
        plan.extend((SRVSTAT, "shuffled") for _ in range(3))
    path = os.path.join(files.directory, "timed.db")
    runs: dict[tuple[str, Order], list[Ran]] = {}
    builds: dict[tuple[str, Order], Build] = {}
    for name, order in plan:
        tell(f"{name} of {files.size:,} servers, {order}")
        with suppress(FileNotFoundError):
            os.unlink(path)
        taken = runs.setdefault((name, order), [])
        taken.append(_load(name, files, order, path))
        builds[name, order] = _build(name, files, order, taken, path)
    os.unlink(path)
    return list(builds.values())


def _load(name: str, files: FleetFiles, order: Order, path: str) -> Ran:
    """Load a fleet's observations into a new file at a path."""
    if name != SRVSTAT:
        options = _TUNED if name == SQLITE_UTILS_TUNED else []
        insert = ["insert", path, "observations", files.recorded(), "--csv", "--silent"]
        return run([*_SQLITE_UTILS, *insert, *options])
    build = [*_SRVSTAT, "snapshot", "build", path, "--overwrite", "--quiet"]
    build += ["--servers", files.servers(), "--observations"]
    if order != "piped":
        return run([*build, files.recorded() if order == "recorded" else files.shuffled()])
    with files.pipe() as writer:
        ran = run([*build, "-", "--format", "csv"], stdin=writer.stdout)
    if writer.returncode:
        raise FailedError(f"exit code {writer.returncode} of what writes into the pipe")
    return ran


def _build(name: str, files: FleetFiles, order: Order, runs: list[Ran], path: str) -> Build:
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
