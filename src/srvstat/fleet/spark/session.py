"""Open a session of Spark, on a cluster of any kind."""

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.pandas.utils import require_minimum_pandas_version

from srvstat.contract.errors import EngineError, MissingLibraryError
from srvstat.files.errors import convert_errors
from srvstat.fleet.spark.classic import open_classic
from srvstat.fleet.spark.java import check_java
from srvstat.fleet.spark.package import zip_package
from srvstat.fleet.spark.reach import CONNECT, check_master
from srvstat.fleet.spark.watch import IDLE_SECONDS, Report, watch_tasks

_INSTALL = "run pip install 'srvstat[spark]'"


_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # A cluster's configuration must not change what is read.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
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
) -> Iterator[SparkSession]:
    """Open a session on a master, such as `local[*]`, `spark://HOST:PORT` or `sc://HOST:PORT`.

    Executors import srvstat from a copy that the session sends to them. `settings` are settings of
    Spark in addition to ours. `report` is called with the progress of stages. If no executor runs
    a task for `idle_seconds`, the jobs are cancelled.

    Raises UsageError for an unknown form of master, MissingLibraryError without PySpark or Java,
    EngineError if Spark can't start. Errors of PySpark in the block are replaced by SourceError or
    EngineError.
    """
    check_master(master)
    with _hide_warnings(), tempfile.TemporaryDirectory(prefix="srvstat-spark-") as folder:
        with convert_errors(folder, EngineError):
            package = zip_package(folder)
        opened = _choose(master, {**_SETTINGS, **(settings or {})}, folder)
        with opened as session, watch_tasks(session, report, idle_seconds):
            session.addArtifacts(package, pyfile=True)
            yield session


def _choose(
    master: str, settings: Mapping[str, str], folder: str
) -> AbstractContextManager[SparkSession]:
    """Return what opens a session on a master, after a check of what it needs.

    Raises MissingLibraryError.
    """
    try:
        require_minimum_pandas_version()
        if master.startswith(CONNECT):
            from srvstat.fleet.spark.connect import open_connect  # noqa: PLC0415 - it needs gRPC

            return open_connect(master, settings)
    except ImportError as error:
        raise MissingLibraryError(f"Spark: {' '.join(str(error).split())}; {_INSTALL}") from None
    check_java()
    log_path = os.path.join(folder, "java.log")
    return open_classic(master, {**_APPLICATION_SETTINGS, **settings}, log_path)


@contextmanager
def _hide_warnings() -> Iterator[None]:
    """Hide what PySpark prints of its own.

    These are warnings, as of pandas 3, of which we use nothing, and errors, which we report.
    """
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully", FutureWarning)
            warnings.filterwarnings("ignore", module=r"pyspark\b")
            yield
    finally:
        logging.disable(before)
