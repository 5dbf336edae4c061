"""Format the measured cost of fleets, and the projected cost of a large one, for docs/fleet.md.

The measurements are in docs/fleet.json, which `make scaling` writes.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Run = dict[str, Any]
"""The measurements of one fleet, as benchmarks/scaling.py stores them."""

SERVERS, ROWS = 30_000, 30_000 * 288 * 365
"""The large fleet: polled every five minutes for a year."""

MACHINES, CORES, EXECUTOR_CORES = 8, 8, 4
"""The cluster of the projection: its machines, and the cores of each one and of an executor."""

ROWS_PER_TASK = 1_000_000
"""Those of srvstat.fleet.spark.counter, which can't be imported without PySpark."""

_MIB, _GIB, _HOUR = 1 << 20, 1 << 30, 3_600
_MILLION = 1_000_000


def format_machine() -> str:
    """Return a list that describes the machine of the measurements."""
    return "".join(f"- {line}\n" for line in _read_file()["machine"])


def format_measured() -> str:
    """Return a table with a row for each measured fleet."""
    head = (
        "rows", "servers", "DuckDB, s", "Spark, s", "task s per million rows",
        "bytes read per row", "bytes shuffled per row", "largest task / average", "MiB in a task",
        "MiB of Java", "MiB of Python",
    )  # fmt: skip
    return _format_table(head, [_list_figures(run) for run in _read_runs()])


def _list_figures(run: Run) -> list[str]:
    spark, rows = run["spark"], run["rows"]
    servers = f"{run['servers']:,}"
    if run["skew"] > 1:
        servers += f", one with {run['skew']:,} times the rows of another"
    return [
        f"{rows:,}",
        servers,
        f"{run['duckdb']['seconds']:,.1f}",
        f"{spark['seconds']:,.1f}",
        f"{spark['task_seconds'] / rows * _MILLION:.2f}",
        f"{spark['read_bytes'] / rows:.1f}",
        f"{spark['shuffled_bytes'] / rows:.1f}",
        f"{spark['unevenness']:.1f}",
        f"{spark['task_mib']:,.0f}",
        f"{spark['heap_mib']:,.0f}",
        f"{spark['python_mib']:,.0f}",
    ]


def format_projected() -> str:
    """Return a table with the cost of the large fleet on the cluster."""
    even = [run for run in _read_runs() if run["skew"] == 1]
    large = max(even, key=lambda run: int(run["rows"]))
    wide = max(even, key=lambda run: int(run["servers"]))
    spark = large["spark"]
    factor = ROWS / large["rows"]
    core_seconds = spark["task_seconds"] * factor
    shuffled = spark["shuffled_bytes"] * factor / _GIB
    answers = wide["spark"]["result_bytes"] * SERVERS / wide["servers"] / _MIB
    heap = spark["heap_mib"] * EXECUTOR_CORES / 1_024
    rows = [
        ("rows", f"{ROWS:,} of {SERVERS:,} servers"),
        ("files, stored once", f"{large['bytes'] * factor / _GIB:,.0f} GiB"),
        ("bytes read by tasks", f"{spark['read_bytes'] * factor / _GIB:,.0f} GiB"),
        (
            "bytes shuffled: written to local disks, then read over the network",
            f"{shuffled:,.0f} GiB, {shuffled / MACHINES:,.0f} GiB on each machine",
        ),
        ("time of all tasks", f"{core_seconds / _HOUR:,.1f} core hours"),
        (
            f"time on {MACHINES * CORES} cores",
            f"{core_seconds / MACHINES / CORES / 60:,.0f} minutes and the start of the cluster",
        ),
        ("tasks after the shuffle", f"{1 + ROWS // ROWS_PER_TASK:,}"),
        ("memory that a task groups in", f"{spark['task_mib']:,.0f} MiB"),
        (
            f"memory of an executor with {EXECUTOR_CORES} cores, if no task must spill",
            f"{heap:,.1f} GiB of Java",
        ),
        ("results that reach the driver", f"{answers:,.0f} MiB"),
    ]
    return _format_table(("", ""), rows)


def _read_runs() -> list[Run]:
    return list(_read_file()["runs"].values())


def _read_file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name("fleet.json").read_bytes())
    return content


def _format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table whose columns are right-aligned, apart from the first."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
