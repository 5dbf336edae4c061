"""Open a session of Spark, on a cluster of any kind."""

import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from srvstat.contract.errors import MissingLibraryError
from srvstat.fleet.spark.classic import open_classic
from srvstat.fleet.spark.connect import open_connect
from srvstat.fleet.spark.java import check_java
from srvstat.fleet.spark.package import zip_package
from srvstat.fleet.spark.reach import CONNECT, check_master
from srvstat.fleet.spark.watch import IDLE_SECONDS, Report, watch_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL_SPARK = "run pip install 'srvstat[spark]'"

_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
}

_APPLICATION_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "srvstat fleet",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The settings of an application of our own; a Connect server has its own ones."""


@contextmanager
def open_session(
    master: str,
    settings: Mapping[str, str] | None = None,
    report: Report = lambda _share, _detail: None,
    idle_seconds: float = IDLE_SECONDS,
) -> Iterator["SparkSession"]:
    """Open a session on a master, such as `local[*]`, `spark://HOST:PORT` or `sc://HOST:PORT`.

    Executors import srvstat from a copy that the session sends to them. `settings` are settings of
    Spark in addition to ours. `report` is called with the progress of stages. If no executor runs
    a task for `idle_seconds`, the jobs are cancelled.

    Raises UsageError for an unknown form of master, MissingLibraryError without PySpark or Java,
    EngineError if Spark can't start. Errors of PySpark in the block are replaced by SourceError or
    EngineError.
    """
    check_master(master)
    with hide_warnings(), tempfile.TemporaryDirectory(prefix="srvstat-spark-") as folder:
        check_library()
        ours = {**_SETTINGS, **(settings or {})}
        if master.startswith(CONNECT):
            opened = open_connect(master, ours)
        else:
            check_java()
            log_path = os.path.join(folder, "java.log")
            opened = open_classic(master, {**_APPLICATION_SETTINGS, **ours}, log_path)
        with opened as session, watch_tasks(session, report, idle_seconds):
            session.addArtifacts(zip_package(folder), pyfile=True)
            yield session


@contextmanager
def hide_warnings() -> Iterator[None]:
    """Hide PySpark's warnings: that it may not support pandas 3, and that it tries no longer."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully", FutureWarning)
        warnings.filterwarnings("ignore", module=r"pyspark\b")
        yield


def check_library() -> None:
    """Import PySpark.

    Raises MissingLibraryError.
    """
    try:
        import pyspark.sql.pandas.utils as pandas  # noqa: PLC0415 - for this check

        pandas.require_minimum_pandas_version()
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise MissingLibraryError(f"Spark: {reason}; {INSTALL_SPARK}") from None
