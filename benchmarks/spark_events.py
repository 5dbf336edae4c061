"""Read what the tasks of a Spark application read, wrote and needed from its event log."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# Vectored reads are missing from the bytes that Spark counts.
_SETTINGS = """spark.eventLog.enabled true
spark.eventLog.dir file://{folder}
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.eventLog.logStageExecutorMetrics true
spark.executor.processTreeMetrics.enabled true
spark.hadoop.parquet.hadoop.vectored.io.enabled false
"""

_MIB = 1 << 20


class TaskTotals(NamedTuple):
    """Totals of all tasks, and the largest values of one task or executor."""

    tasks: int
    task_seconds: float
    """Of all tasks together, their Python included."""
    read_bytes: int
    """Bytes of the sources, some of them read more than once."""
    shuffled_bytes: int
    largest_shuffle_bytes: int
    """Of the stage that wrote most."""
    spilled_bytes: int
    unevenness: float
    """In the shuffle of most rows: the rows of the largest task divided by the average."""
    result_bytes: int
    """Bytes of the results of tasks, which go to the driver."""
    task_mib: float
    """The most memory that one task held for sorting and grouping."""
    heap_mib: float
    """The largest Java heap of an executor."""
    python_mib: float
    """The most memory of the Python processes of an executor."""


@contextmanager
def log_events(folder: str) -> Iterator[None]:
    """Have Spark write event logs into a folder, if it is started in the block."""
    conf = os.path.join(folder, "conf")
    os.makedirs(conf)
    with open(os.path.join(conf, "spark-defaults.conf"), "w", encoding="utf-8") as file:
        file.write(_SETTINGS.format(folder=folder))
    os.environ["SPARK_CONF_DIR"] = conf
    try:
        yield
    finally:
        del os.environ["SPARK_CONF_DIR"]


def read_totals(folder: str) -> TaskTotals:
    """Add up the tasks in the only event log of a folder."""
    (name,) = (name for name in os.listdir(folder) if name != "conf")
    sums: Counter[str] = Counter()
    peaks: Counter[str] = Counter()
    shuffled: Counter[int] = Counter()
    fetched: defaultdict[int, list[int]] = defaultdict(list)
    for event in _read_events(os.path.join(folder, name)):
        kind = event["Event"]
        if kind == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            metrics = event["Task Metrics"]
            shuffled[event["Stage ID"]] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            fetched[event["Stage ID"]].append(metrics["Shuffle Read Metrics"]["Total Records Read"])
            sums.update(_read_task(metrics))
            _raise(peaks, "task", metrics["Peak Execution Memory"])
            _raise_memory(peaks, event.get("Task Executor Metrics", {}))
        elif kind == "SparkListenerStageExecutorMetrics" and event["Executor ID"] != "driver":
            _raise_memory(peaks, event["Executor Metrics"])
    return TaskTotals(
        sums["tasks"],
        sums["milliseconds"] / 1_000,
        sums["read"],
        shuffled.total(),
        max(shuffled.values()),
        sums["spilled"],
        _compare_tasks(max(fetched.values(), key=sum)),
        sums["result"],
        *(peaks[name] / _MIB for name in ("task", "heap", "python")),
    )


def _read_events(path: str) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)


def _compare_tasks(rows: list[int]) -> float:
    """Return the most rows of a task divided by the average."""
    return max(rows) * len(rows) / sum(rows)


def _read_task(metrics: dict[str, Any]) -> dict[str, int]:
    return {
        "tasks": 1,
        "milliseconds": metrics["Executor Run Time"],
        "read": metrics["Input Metrics"]["Bytes Read"],
        "spilled": metrics["Disk Bytes Spilled"],
        "result": metrics["Result Size"],
    }


def _raise_memory(peaks: Counter[str], metrics: dict[str, int]) -> None:
    _raise(peaks, "heap", metrics.get("JVMHeapMemory", 0))
    _raise(peaks, "python", metrics.get("ProcessTreePythonRSSMemory", 0))


def _raise(peaks: Counter[str], name: str, value: int) -> None:
    peaks[name] = max(peaks[name], value)
