"""Measure the memory of a build, which must not grow with its input."""

import gzip
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import AS_OF, csv, ndjson, server

pytestmark = pytest.mark.slow

MAX_MIB = 130
RSS_UNITS_PER_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10

# A small process starts the build, because the peak of a child includes the memory of its parent at
# the fork.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


def write_shuffled_rows() -> bytes:
    order = list(range(150_000))
    random.Random(7).shuffle(order)  # noqa: S311 - not a secret
    return csv((f"srv-{at % 100}", AS_OF - at // 100 * 300_000, at % 501) for at in order)


def write_empty_lines() -> bytes:
    return csv([("srv-1", AS_OF, 5)]) + b"\n" * 300_000


def write_invalid_rows() -> bytes:
    return csv([("srv-1", AS_OF, 5)]) + b"x\n" * 150_000


def write_repeats(path: Path, millions: int) -> None:
    """Write a compressed file that repeats one row."""
    header, row = csv([("srv-1", AS_OF, 5)]).splitlines(keepends=True)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header)
        for _ in range(100 * millions):
            file.write(row * 10_000)


# A build would write each conflict to the disk, which takes long.
STAGE_CONFLICTS = """
import sqlite3, sys
import numpy as np
from srvstat.snapshot.write.intake import Staging
staged = Staging(sqlite3.connect(""))
numbers = np.arange(100_000)
ones = np.ones_like(numbers)
for start in range(0, int(sys.argv[1]) * 1_000_000, len(numbers)):
    staged.add(ones, ones, numbers, start + numbers)
staged.take_series(1, lambda conflicts: None)
"""


def run_measured(directory: Path, *arguments: str) -> float:
    """Run srvstat in another process and return its peak memory in MiB."""
    return run_python_measured(directory, "-m", "srvstat", *arguments)


def run_python_measured(directory: Path, *arguments: str) -> float:
    """Run Python in another process and return its peak memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments],
        capture_output=True,
        cwd=directory,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.rpartition(b"\n")[0].rpartition(b"\n")[2]) / RSS_UNITS_PER_MIB


@pytest.mark.parametrize("rows", [write_shuffled_rows, write_empty_lines, write_invalid_rows])
def test_a_build_takes_little_memory_for_any_input(
    rows: Callable[[], bytes], tmp_path: Path
) -> None:
    (tmp_path / "servers.ndjson").write_bytes(ndjson(server(f"srv-{at}") for at in range(100)))
    (tmp_path / "week.csv").write_bytes(rows())
    sources = ["--servers", "servers.ndjson", "--observations", "week.csv"]
    build = ["snapshot", "build", "out.db", *sources, "--max-rejected", "100%"]

    assert run_measured(tmp_path, *build) < MAX_MIB


# A million rows are kept in memory.
MILLIONS = (1, 3)
MAX_GROWTH_MIB = 60


def test_repeated_rows_do_not_fill_the_memory(tmp_path: Path) -> None:
    peaks = []
    for millions in MILLIONS:
        write_repeats(tmp_path / "rows.csv.gz", millions)
        build = ["snapshot", "build", f"{millions}.db", "rows.csv.gz", "--quiet"]
        peaks.append(run_measured(tmp_path, *build))

    assert peaks[1] - peaks[0] < MAX_GROWTH_MIB


def test_conflicting_rows_do_not_fill_the_memory(tmp_path: Path) -> None:
    peaks = [run_python_measured(tmp_path, "-c", STAGE_CONFLICTS, str(each)) for each in MILLIONS]

    assert peaks[1] - peaks[0] < MAX_GROWTH_MIB


def test_a_draft_is_written_in_pieces(tmp_path: Path) -> None:
    command = ["snapshot", "draft-servers", "--game", "game_a", "--observations", "week.csv"]
    peaks = []
    for count in (1, 40_000):
        rows = csv((f"server-{number % count:06}", AS_OF, 5) for number in range(40_000))
        (tmp_path / "week.csv").write_bytes(rows)
        peaks.append(run_measured(tmp_path, *command))

    # The identifiers take 30 MiB. The draft would take 19 MiB more: 80,000 lines of 247 bytes.
    assert peaks[1] - peaks[0] < 40
