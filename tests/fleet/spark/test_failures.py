"""Test that the failures of real jobs are explained in one line, without a stack trace."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.spark import make_environment, skip_without_spark

pytestmark = pytest.mark.external

EXPLAINED = {
    "bad row": ("SourceError", "a\x1b[2J.csv: line 3: not a number"),
    "full disk": (
        "EngineError",
        "Spark: a disk is full; free some, or set SPARK_LOCAL_DIRS to a larger one",
    ),
    "out of memory": (
        "EngineError",
        "Spark: out of memory; raise spark.executor.memory",
    ),
    "killed worker": (
        "EngineError",
        "Spark: a Python worker was killed or crashed, perhaps for lack of memory outside of Java",
    ),
    "missing module": (
        "EngineError",
        "Spark: executors have no Python module srvstat_missing; install it there",
    ),
    "missing source": ("SourceError", "FOLDER/no such folder: no such file or folder"),
    "vanished source": ("SourceError", "FOLDER/b c.parquet: it vanished while it was read"),
    "cut source": (
        "SourceError",
        "FOLDER/b c.parquet: not a whole Parquet file; it is damaged, cut off or unreadable",
    ),
    "mixed types": (
        "SourceError",
        "FOLDER/z.parquet: the column id is BINARY, but bigint in other files",
    ),
    "overflow": ("EngineError", "Spark: [ARITHMETIC_OVERFLOW]"),
    "killed java": ("EngineError", "Spark: its process ended, or the connection to it was lost"),
}


def test_failures_are_explained_in_one_line(tmp_path: Path) -> None:
    skip_without_spark()
    program = Path(__file__).with_name("failing_jobs.py")
    (tmp_path / "data").mkdir()

    ran = subprocess.run(
        [sys.executable, program, tmp_path / "data"],
        capture_output=True,
        check=True,
        env=make_environment(tmp_path / "settings"),
    )
    assert not ran.stderr

    found = json.loads(ran.stdout)
    assert found.keys() == EXPLAINED.keys()
    for job, (kind, reason) in found.items():
        assert (kind, reason[: len(EXPLAINED[job][1])]) == EXPLAINED[job]
        assert "\n" not in reason
