"""Time `snapshot update` with the rows of one day, and compare its result with a build."""

import os
import shutil
from statistics import median
from typing import NamedTuple

from benchmarks import fleet
from benchmarks.builds import build_days, check_root
from benchmarks.commands import call_without_pandas
from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress, run

_ROUNDS = 3
_SRVSTAT = call_without_pandas("srvstat.__main__", "run")


class Update(NamedTuple):
    """Time and memory of adding the last day to all earlier ones."""

    servers: int
    seconds: float
    peak_mib: float


def time_update(files: FleetFiles) -> Update:
    """Build a fleet without its last day, and add it.

    Raises WrongAnswerError if the result is not the snapshot of the fleet.
    """
    earlier, updated, day = (
        os.path.join(files.directory, name) for name in ("earlier.db", "updated.db", "day.csv")
    )
    print_progress(f"building the snapshot of {files.size:,} servers without the last day")
    build_days(files, earlier, fleet.DAYS - 1)
    with open(day, "wb") as file:
        file.writelines(fleet.generate_recorded_csv(files.size, range(fleet.DAYS - 1, fleet.DAYS)))
    with open(day, "rb") as file:
        rows = sum(1 for _ in file) - 1
    print_progress(f"updating it with {rows:,} rows")
    runs = []
    for _ in range(_ROUNDS):
        shutil.copyfile(earlier, updated)
        command = [*_SRVSTAT, "snapshot", "update", updated, "--quiet"]
        runs.append(run([*command, "--observations", day]))
    check_root(updated, files.snapshot)
    for path in (earlier, updated, day):
        os.unlink(path)
    return Update(
        files.size,
        median(one.seconds for one in runs),
        max(one.peak_mib for one in runs),
    )
