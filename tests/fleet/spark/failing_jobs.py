"""Run jobs that fail on a local master, and print how each failure is explained, as JSON.

It is a program of its own, because a process can have only one classic session at a time.
"""

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from srvstat.contract.errors import EngineError, SourceError, SrvstatError
from srvstat.fleet.spark.failures import explain_failure
from srvstat.fleet.spark.session import open_session

Batches = Iterator[pa.RecordBatch]


def read_bad_row(_batches: Batches) -> Batches:
    raise SourceError("a\x1b[2J.csv: line 3: not a number")


def fill_disk(_batches: Batches) -> Batches:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/blockmgr")  # noqa: S108 - a name in a message


def fill_memory(_batches: Batches) -> Batches:
    yield pa.RecordBatch.from_pydict({"id": [len(bytearray(1 << 60))]})


def kill_worker(_batches: Batches) -> Batches:
    os.kill(os.getpid(), signal.SIGKILL)
    yield from ()


def import_missing(_batches: Batches) -> Batches:
    import srvstat_missing  # type: ignore[import-not-found]  # noqa: F401, PLC0415 - it is missing

    yield from ()


def run_task(task: Callable[[Batches], Batches]) -> Callable[[SparkSession, Path], None]:
    """Return a job of one task in Python."""
    return lambda session, _: session.range(1).mapInArrow(task, "id long").toArrow()


def read_files(session: SparkSession, folder: Path) -> None:
    session.read.schema("id long").parquet(str(folder)).selectExpr("sum(id)").toArrow()


def read_missing(session: SparkSession, folder: Path) -> None:
    read_files(session, folder / "no such folder")


def read_vanished(session: SparkSession, folder: Path) -> None:
    frame = session.read.parquet(str(folder))
    (folder / "b c.parquet").rename(folder.parent / "gone")
    try:
        frame.selectExpr("sum(id)").toArrow()
    finally:
        (folder.parent / "gone").rename(folder / "b c.parquet")


def read_cut(session: SparkSession, folder: Path) -> None:
    content = (folder / "b c.parquet").read_bytes()
    (folder / "b c.parquet").write_bytes(content[:-20])
    try:
        read_files(session, folder)
    finally:
        (folder / "b c.parquet").write_bytes(content)


def read_mixed(session: SparkSession, folder: Path) -> None:
    parquet.write_table(pa.table({"id": ["text"]}), folder / "z.parquet")
    try:
        read_files(session, folder)
    finally:
        (folder / "z.parquet").unlink()


def overflow(session: SparkSession, _folder: Path) -> None:
    session.range(1).selectExpr("id + 9223372036854775807L + 1L").toArrow()


def kill_java(session: SparkSession, _folder: Path) -> None:
    os.kill(session.sparkContext._gateway.proc.pid, signal.SIGKILL)  # noqa: SLF001 - our own process
    session.range(1).count()


JOBS: dict[str, Callable[[SparkSession, Path], None]] = {
    "bad row": run_task(read_bad_row),
    "full disk": run_task(fill_disk),
    "out of memory": run_task(fill_memory),
    "killed worker": run_task(kill_worker),
    "missing module": run_task(import_missing),
    "missing source": read_missing,
    "vanished source": read_vanished,
    "cut source": read_cut,
    "mixed types": read_mixed,
    "overflow": overflow,
    "killed java": kill_java,
}


def run_all(folder: Path) -> Iterator[tuple[str, SrvstatError]]:
    """Yield the name of each job with its failure; the last job ends the session."""
    try:
        with open_session("local[1]") as session:
            for name, job in JOBS.items():
                try:
                    job(session, folder)
                except Exception as error:  # PySpark and Py4J have no common class of errors
                    if name == "killed java":
                        raise
                    yield name, explain_failure(error, str)
    except EngineError as error:
        yield name, error


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for number, name in enumerate(("a.parquet", "b c.parquet")):
        parquet.write_table(pa.table({"id": [number]}), folder / name)
    explained = {
        name: [type(error).__name__, error.reason.replace(str(folder), "FOLDER")]
        for name, error in run_all(folder)
    }
    json.dump(explained, sys.stdout)
